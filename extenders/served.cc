#include "extenders/served.h"

#include <simdjson.h>

#include <variant>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "kube/codec/json_codec.h"

namespace fairlead::extenders {
namespace {

namespace dom = simdjson::dom;

absl::Status Bad(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("the question's ", field, " ", problem));
}

std::string Text(const dom::element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

// Null counts as absent, as in Go.
bool Find(const dom::element& object, std::string_view key, dom::element& value) {
  return object[key].get(value) == simdjson::SUCCESS && !value.is_null();
}

absl::StatusOr<model::Pod> ReadPod(const dom::element& root) {
  dom::element value;
  if (!Find(root, "Pod", value) || !value.is_object()) return Bad("Pod", "is missing");
  FAIRLEAD_ASSIGN_OR_RETURN(
      kube::Object object,
      kube::json::DecodeObject(model::Kind::kPod, std::string(simdjson::minify(value))));
  model::Pod& pod = std::get<model::Pod>(object);
  if (pod.meta.name.empty() || pod.meta.uid.empty()) return Bad("Pod", "has no name, or no uid");
  return std::move(pod);
}

// A question; it outlives what is read of its root.
struct Parsed {
  dom::parser parser;
  dom::element root;

  // Its pod goes into `pod`.
  absl::Status Read(absl::string_view body, model::Pod& pod) {
    if (const auto error = parser.parse(ToValidUtf8(body)).get(root)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the question is no JSON: ", simdjson::error_message(error)));
    }
    if (!root.is_object()) return absl::InvalidArgumentError("the question is no JSON object");
    FAIRLEAD_ASSIGN_OR_RETURN(pod, ReadPod(root));
    return absl::OkStatus();
  }
};

// MetaVictims of Victims, or of MetaVictims, whose pods name their uid themselves.
std::string MetaVictims(const dom::element& victims) {
  JsonWriter out;
  out.BeginObject().Key("Pods").BeginArray();
  dom::array pods;
  if (victims["Pods"].get(pods) == simdjson::SUCCESS) {
    for (const dom::element pod : pods) {
      dom::element uid;
      const bool found = pod["UID"].get(uid) == simdjson::SUCCESS ||
                         pod["metadata"]["uid"].get(uid) == simdjson::SUCCESS;
      if (found) out.BeginObject().Field("UID", Text(uid)).EndObject();
    }
  }
  int64_t violations = 0;
  if (victims["NumPDBViolations"].get(violations) != simdjson::SUCCESS) violations = 0;
  out.EndArray().Key("NumPDBViolations").Int(violations).EndObject();
  return out.Take();
}

}  // namespace

absl::StatusOr<FilterQuestion> ReadFilterQuestion(absl::string_view body) {
  Parsed parsed;
  FilterQuestion question;
  FAIRLEAD_RETURN_IF_ERROR(parsed.Read(body, question.pod));
  dom::element value;
  dom::array items;
  if (Find(parsed.root, "NodeNames", value)) {
    if (value.get(items) != simdjson::SUCCESS) return Bad("NodeNames", "is no list");
    question.by_name = true;
    for (const dom::element name : items) question.names.push_back(Text(name));
    return question;
  }
  if (!Find(parsed.root, "Nodes", value)) return Bad("Nodes", "and NodeNames are missing");
  if (!Find(value, "items", value)) return question;
  if (value.get(items) != simdjson::SUCCESS) return Bad("Nodes.items", "is no list");
  for (const dom::element node : items) {
    dom::element name;
    const bool named = node["metadata"]["name"].get(name) == simdjson::SUCCESS;
    question.names.push_back(named ? Text(name) : "");
    question.objects.push_back(simdjson::minify(node));
  }
  return question;
}

std::string FilterAnswer(const FilterQuestion& question, const Admission& admission) {
  const auto is_admitted = [&](size_t node) {
    return admission.everywhere || question.names[node] == admission.node;
  };
  JsonWriter out;
  out.BeginObject();
  if (question.by_name) {
    out.Key("NodeNames").BeginArray();
    for (size_t i = 0; i < question.names.size(); ++i) {
      if (is_admitted(i)) out.String(question.names[i]);
    }
    out.EndArray();
  } else {
    out.Key("Nodes").BeginObject().Key("items").BeginArray();
    for (size_t i = 0; i < question.names.size(); ++i) {
      if (is_admitted(i)) out.Raw(question.objects[i]);
    }
    out.EndArray().EndObject();
  }
  out.Key("FailedAndUnresolvableNodes").BeginObject();
  for (size_t i = 0; i < question.names.size(); ++i) {
    if (!is_admitted(i)) out.Field(question.names[i], admission.reason);
  }
  out.EndObject().Field("Error", "").EndObject();
  return out.Take();
}

std::string FilterFailure(absl::string_view reason) {
  JsonWriter out;
  out.BeginObject().Field("Error", reason).EndObject();
  return out.Take();
}

absl::StatusOr<PreemptionQuestion> ReadPreemptionQuestion(absl::string_view body) {
  Parsed parsed;
  PreemptionQuestion question;
  FAIRLEAD_RETURN_IF_ERROR(parsed.Read(body, question.pod));
  for (const char* key : {"NodeNameToMetaVictims", "NodeNameToVictims"}) {
    dom::element value;
    dom::object nodes;
    if (!Find(parsed.root, key, value)) continue;
    if (value.get(nodes) != simdjson::SUCCESS) return Bad(key, "is no object");
    for (const auto& [node, victims] : nodes) {
      question.victims.emplace_back(std::string(node), MetaVictims(victims));
    }
    break;
  }
  return question;
}

std::string PreemptionAnswer(const PreemptionQuestion& question, bool keep) {
  JsonWriter out;
  out.BeginObject().Key("NodeNameToMetaVictims").BeginObject();
  if (keep) {
    for (const auto& [node, victims] : question.victims) out.Key(node).Raw(victims);
  }
  out.EndObject().EndObject();
  return out.Take();
}

}  // namespace fairlead::extenders
