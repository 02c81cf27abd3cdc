#include "extenders/wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "kube/codec/json_reader.h"

namespace fairlead::extenders {
namespace {

using kube::FieldPath;
using kube::JsonReader;
using kube::JsonType;
using kube::JsonValue;

// Calls fn(reader, root) for a document whose root is of the wanted type, or nothing for null.
template <typename Fn>
absl::Status ReadValid(absl::string_view text, JsonType wanted, Fn& fn) {
  if (absl::StripAsciiWhitespace(text) == "null") return absl::OkStatus();
  const simdjson::padded_string padded(text.data(), text.size());
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  JsonReader reader;
  JsonType type{};
  JsonValue root;
  if (!reader.Check(parser.iterate(padded).get(document)) ||
      !reader.Check(document.type().get(type))) {
    return reader.error();
  }
  if (type != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the answer is not ", wanted == JsonType::object ? "a JSON object" : "a JSON list"));
  }
  if (!reader.Check(document.get_value().get(root))) return reader.error();
  fn(reader, root);
  if (reader.ok() && document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    reader.Fail("malformed JSON: something follows the value");
  }
  FAIRLEAD_RETURN_IF_ERROR(reader.error());
  const std::string problems = reader.problems().Text();
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems);
}

template <typename Fn>
absl::Status Read(absl::string_view text, JsonType wanted, Fn fn) {
  if (text.size() > kAnswerBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the answer is larger than ", kAnswerBytesMax, " bytes"));
  }
  // Go's decoder replaces invalid sequences; the parser refuses them.
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    return ReadValid(ToValidUtf8(text), wanted, fn);
  }
  return ReadValid(text, wanted, fn);
}

// The value of `key`, in any case, of an object.
template <typename Fn>
void Field(JsonReader& reader, JsonValue object, const FieldPath& path, absl::string_view key,
           Fn fn) {
  reader.Fields(object, path, [&](absl::string_view found, JsonValue value) {
    if (absl::EqualsIgnoreCase(found, key)) fn(value, path.Field(key));
  });
}

// One of the two lists of nodes that an answer may have.
struct Listed {
  explicit Listed(const AskedNodes& asked) : nodes(asked), has(asked.size()) {}
  void Clear() {
    present = true;
    stranger.reset();
    std::fill(has.begin(), has.end(), false);
  }
  void Add(absl::string_view name) {
    if (const std::optional<size_t> node = nodes.Find(name)) {
      has[*node] = true;
    } else if (!stranger.has_value()) {
      stranger = TruncateUtf8(name, kTextBytes);
    }
  }

  const AskedNodes& nodes;
  bool present = false;
  std::vector<bool> has;
  std::optional<std::string> stranger;  // the first that was not asked about
};

std::string NameOf(JsonReader& reader, JsonValue object, const FieldPath& path) {
  std::string name;
  Field(reader, object, path, "metadata", [&](JsonValue metadata, const FieldPath& at) {
    Field(reader, metadata, at, "name",
          [&](JsonValue v, const FieldPath& field) { reader.String(v, field, name); });
  });
  return name;
}

class FilterReader {
 public:
  explicit FilterReader(const AskedNodes& nodes)
      : nodes_(nodes), names_(nodes), objects_(nodes), verdicts_(nodes.size()) {}

  void Read(JsonReader& reader, JsonValue root) {
    const FieldPath path;
    reader.Fields(root, path, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = path.Field(key);
      if (absl::EqualsIgnoreCase(key, "Error")) return reader.String(v, at, error_);
      if (absl::EqualsIgnoreCase(key, "Nodes")) return ReadObjects(reader, v, at);
      if (absl::EqualsIgnoreCase(key, "NodeNames")) return ReadNames(reader, v, at);
      if (absl::EqualsIgnoreCase(key, "FailedNodes")) return ReadFailed(reader, v, at, false);
      if (absl::EqualsIgnoreCase(key, "FailedAndUnresolvableNodes")) {
        return ReadFailed(reader, v, at, true);
      }
    });
  }

  absl::StatusOr<std::vector<NodeVerdict>> Result(bool node_cache_capable) {
    if (!error_.empty()) return absl::InvalidArgumentError(TruncateUtf8(error_, kTextBytes));
    const Listed& list = node_cache_capable && names_.present ? names_ : objects_;
    if (list.stranger.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("returned node ", kube::Quoted(*list.stranger), " was not asked about"));
    }
    for (size_t i = 0; i < verdicts_.size(); ++i) {
      if (!list.has[i]) continue;
      verdicts_[i] = NodeVerdict();
      verdicts_[i].admitted = true;
    }
    return std::move(verdicts_);
  }

 private:
  void ReadNames(JsonReader& reader, JsonValue value, const FieldPath& path) {
    names_.Clear();
    reader.Items(value, path,
                 [&](size_t i, JsonValue item) { names_.Add(reader.Text(item, path.Item(i))); });
  }
  void ReadObjects(JsonReader& reader, JsonValue value, const FieldPath& path) {
    objects_.Clear();
    Field(reader, value, path, "items", [&](JsonValue items, const FieldPath& at) {
      objects_.Clear();
      reader.Items(items, at, [&](size_t i, JsonValue item) {
        objects_.Add(NameOf(reader, item, at.Item(i)));
      });
    });
  }
  void ReadFailed(JsonReader& reader, JsonValue value, const FieldPath& path, bool unresolvable) {
    reader.Fields(value, path, [&](absl::string_view name, JsonValue text) {
      const std::optional<size_t> node = nodes_.Find(name);
      const absl::string_view reason = reader.Text(text, path.Key(name));
      if (!node.has_value()) return;
      NodeVerdict& verdict = verdicts_[*node];
      if (verdict.unresolvable && !unresolvable) return;
      verdict.unresolvable = unresolvable;
      verdict.reason = TruncateUtf8(reason, kTextBytes);
    });
  }

  const AskedNodes& nodes_;
  Listed names_, objects_;
  std::vector<NodeVerdict> verdicts_;
  std::string error_;
};

}  // namespace

AskedNodes::AskedNodes(absl::Span<const std::string> names) : names_(names) {
  positions_.reserve(names.size());
  left_.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    left_[i] = positions_.emplace(names[i], i).second;
    if (left_[i]) ++count_left_;
  }
}

void AskedNodes::Remove(size_t node) {
  if (!left_[node]) return;
  left_[node] = false;
  --count_left_;
}

std::optional<size_t> AskedNodes::Find(absl::string_view name) const {
  const auto found = positions_.find(name);
  if (found == positions_.end() || !left_[found->second]) return std::nullopt;
  return found->second;
}

std::string ArgsWithNames(absl::string_view pod, const AskedNodes& nodes) {
  JsonWriter json;
  json.BeginObject().Key("Pod").Raw(pod).Key("Nodes").Null().Key("NodeNames").BeginArray();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.IsLeft(i)) json.String(nodes.name(i));
  }
  return json.EndArray().EndObject().Take();
}

std::string ArgsWithNodes(absl::string_view pod, absl::Span<const absl::string_view> nodes) {
  static constexpr absl::string_view kBegin = R"({"Pod":)";
  static constexpr absl::string_view kMiddle = R"(,"Nodes":{"metadata":{},"items":[)";
  static constexpr absl::string_view kEnd = R"(]},"NodeNames":null})";
  size_t bytes = kBegin.size() + pod.size() + kMiddle.size() + nodes.size() + kEnd.size();
  for (const absl::string_view node : nodes) bytes += node.size();
  std::string json;
  json.reserve(bytes);
  absl::StrAppend(&json, kBegin, pod, kMiddle);
  for (size_t i = 0; i < nodes.size(); ++i) absl::StrAppend(&json, i == 0 ? "" : ",", nodes[i]);
  absl::StrAppend(&json, kEnd);
  return json;
}

std::string BindingArgs(absl::string_view ns, absl::string_view name, absl::string_view uid,
                        absl::string_view node) {
  JsonWriter json;
  json.BeginObject().Field("PodName", name).Field("PodNamespace", ns).Field("PodUID", uid);
  return json.Field("Node", node).EndObject().Take();
}

std::string PreemptionArgs(absl::string_view pod, bool node_cache_capable, const AskedNodes& nodes,
                           absl::Span<const VictimsOfNode> victims) {
  JsonWriter json;
  json.BeginObject().Key("Pod").Raw(pod);
  json.Key(node_cache_capable ? "NodeNameToVictims" : "NodeNameToMetaVictims").Null();
  json.Key(node_cache_capable ? "NodeNameToMetaVictims" : "NodeNameToVictims").BeginObject();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes.IsLeft(i)) continue;
    json.Key(nodes.name(i)).BeginObject().Key("Pods").BeginArray();
    for (const absl::string_view victim : victims[i].pods) {
      if (node_cache_capable) {
        json.BeginObject().Field("UID", victim).EndObject();
      } else {
        json.Raw(victim);
      }
    }
    json.EndArray().Key("NumPDBViolations").Int(victims[i].budget_violations).EndObject();
  }
  return json.EndObject().EndObject().Take();
}

absl::StatusOr<std::vector<NodeVerdict>> ReadFilterResult(absl::string_view body,
                                                          bool node_cache_capable,
                                                          const AskedNodes& nodes) {
  FilterReader filter(nodes);
  FAIRLEAD_RETURN_IF_ERROR(Read(body, JsonType::object, [&](JsonReader& reader, JsonValue root) {
    filter.Read(reader, root);
  }));
  return filter.Result(node_cache_capable);
}

int64_t AddPoints(int64_t a, int64_t b) {
  return std::min(a, kPointsMax) + std::min(b, kPointsMax - std::min(a, kPointsMax));
}

absl::StatusOr<std::vector<int64_t>> ReadScores(absl::string_view body, int64_t weight,
                                                const AskedNodes& nodes) {
  const int64_t points_per_score =
      std::clamp<int64_t>(weight, 0, kPointsMax / kPointsPerScore / kScoreMax) * kPointsPerScore;
  std::vector<int64_t> points(nodes.size());
  const auto read_entry = [&](JsonReader& reader, JsonValue entry, const FieldPath& path) {
    std::string host;
    int64_t score = 0;
    reader.Fields(entry, path, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = path.Field(key);
      if (absl::EqualsIgnoreCase(key, "Host")) return reader.String(v, at, host);
      if (absl::EqualsIgnoreCase(key, "Score")) score = reader.Int64(v, at).value_or(0);
    });
    const std::optional<size_t> node = nodes.Find(host);
    if (!node.has_value()) return;
    points[*node] =
        AddPoints(points[*node], std::clamp<int64_t>(score, 0, kScoreMax) * points_per_score);
  };
  FAIRLEAD_RETURN_IF_ERROR(Read(body, JsonType::array, [&](JsonReader& reader, JsonValue root) {
    const FieldPath path;
    reader.Items(root, path,
                 [&](size_t i, JsonValue entry) { read_entry(reader, entry, path.Item(i)); });
  }));
  return points;
}

absl::StatusOr<std::vector<std::vector<std::string>>> ReadPreemptionResult(
    absl::string_view body, const AskedNodes& nodes) {
  std::vector<std::vector<std::string>> victims(nodes.size());
  std::optional<std::string> stranger;
  const auto read_pods = [&](JsonReader& reader, JsonValue v, const FieldPath& path,
                             std::vector<std::string>& uids) {
    Field(reader, v, path, "Pods", [&](JsonValue pods, const FieldPath& at) {
      uids.clear();
      reader.Items(pods, at, [&](size_t i, JsonValue pod) {
        Field(reader, pod, at.Item(i), "UID", [&](JsonValue uid, const FieldPath& field) {
          reader.String(uid, field, uids.emplace_back());
        });
      });
    });
  };
  FAIRLEAD_RETURN_IF_ERROR(Read(body, JsonType::object, [&](JsonReader& reader, JsonValue root) {
    Field(reader, root, FieldPath(), "NodeNameToMetaVictims",
          [&](JsonValue map, const FieldPath& path) {
            reader.Fields(map, path, [&](absl::string_view name, JsonValue v) {
              const std::optional<size_t> node = nodes.Find(name);
              if (node.has_value()) return read_pods(reader, v, path.Key(name), victims[*node]);
              if (!stranger.has_value()) stranger = TruncateUtf8(name, kTextBytes);
            });
          });
  }));
  if (stranger.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("returned node ", kube::Quoted(*stranger), " was not asked about"));
  }
  for (std::vector<std::string>& uids : victims) {
    std::sort(uids.begin(), uids.end());
    uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  }
  return victims;
}

absl::StatusOr<std::string> ReadBindingResult(absl::string_view body) {
  std::string error;
  FAIRLEAD_RETURN_IF_ERROR(Read(body, JsonType::object, [&](JsonReader& reader, JsonValue root) {
    Field(reader, root, FieldPath(), "Error",
          [&](JsonValue v, const FieldPath& at) { reader.String(v, at, error); });
  }));
  return TruncateUtf8(error, kTextBytes);
}

absl::StatusOr<std::string> ReadUid(absl::string_view body) {
  std::string uid;
  FAIRLEAD_RETURN_IF_ERROR(kube::ReadJson(body, [&](JsonReader& reader, JsonValue root) {
    Field(reader, root, FieldPath(), "metadata", [&](JsonValue metadata, const FieldPath& path) {
      Field(reader, metadata, path, "uid",
            [&](JsonValue v, const FieldPath& at) { reader.String(v, at, uid); });
    });
  }));
  return uid;
}

absl::Status ReadItems(absl::string_view body,
                       absl::FunctionRef<void(absl::string_view name, std::string text)> item) {
  const auto read_item = [&](JsonReader& reader, JsonValue v, const FieldPath& path) {
    std::string text, name;
    reader.RawFields(v, path, text, [&](absl::string_view key, JsonValue metadata) {
      if (key != "metadata") return;
      const FieldPath at = path.Field(key);
      Field(reader, metadata, at, "name",
            [&](JsonValue value, const FieldPath& field) { reader.String(value, field, name); });
    });
    if (reader.ok() && !name.empty()) item(name, std::move(text));
  };
  return kube::ReadJson(body, [&](JsonReader& reader, JsonValue root) {
    Field(reader, root, FieldPath(), "items", [&](JsonValue items, const FieldPath& path) {
      reader.Items(items, path, [&](size_t i, JsonValue v) { read_item(reader, v, path.Item(i)); });
    });
  });
}

}  // namespace fairlead::extenders
