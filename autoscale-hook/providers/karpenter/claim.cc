#include "autoscale-hook/providers/karpenter/claim.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::hook {
namespace {

void WriteClaimTaints(absl::string_view key, const std::vector<model::Taint>& taints,
                      JsonWriter& out) {
  if (taints.empty()) return;
  out.Key(key).BeginArray();
  for (const model::Taint& taint : taints) {
    out.BeginObject().Field("key", taint.key).FieldUnlessEmpty("value", taint.value);
    out.Field("effect", model::TaintEffectName(taint.effect)).EndObject();
  }
  out.EndArray();
}

void WriteClaimMap(absl::string_view key, const model::StringMap& map, JsonWriter& out) {
  out.Key(key).BeginObject();
  for (const auto& [name, value] : map) out.Field(name, value);
  out.EndObject();
}

absl::Status ClaimFault(absl::string_view name, absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("NodeClaim ", name.empty() ? "without a name" : name, ": ", field, ": ", what));
}

// Reads one object; the first fault is kept.
class ClaimReader {
 public:
  explicit ClaimReader(const Json& json) : json_(json) {}

  // A string that may be absent.
  std::string Text(std::initializer_list<absl::string_view> path, absl::string_view field) {
    const Json* value = At(path, Json::Type::kString, field, "string");
    if (value == nullptr) return "";
    if (value->text().size() <= kLongestClaimText) return value->text();
    Fail(field, absl::StrCat("longer than ", kLongestClaimText, " bytes"));
    return "";
  }
  // Null if absent or of another type.
  const Json* At(std::initializer_list<absl::string_view> path, Json::Type type,
                 absl::string_view field, absl::string_view type_name) {
    const Json* at = &json_;
    for (const absl::string_view key : path) {
      if (!at->is_object()) {
        Fail(field, "the field around it is not an object");
        return nullptr;
      }
      at = at->Find(key);
      if (at == nullptr || at->is_null()) return nullptr;
    }
    if (at->type() == type) return at;
    Fail(field, absl::StrCat("not a ", type_name));
    return nullptr;
  }
  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok()) status_ = ClaimFault(name, field, what);
  }
  [[nodiscard]] const absl::Status& status() const { return status_; }
  std::string name;

 private:
  const Json& json_;
  absl::Status status_;
};

std::string CutClaimText(std::string text) {
  if (text.size() > kLongestClaimText) text.resize(kLongestClaimText);
  return text;
}

// Conditions of other types, and items that are no conditions, are not read.
void ReadClaimConditions(const Json& conditions, NodeClaim& claim) {
  for (const Json& item : conditions.items()) {
    const std::string type = item.TextAt({"type"});
    ClaimCondition* condition = type == "Launched"      ? &claim.launched
                                : type == "Registered"  ? &claim.registered
                                : type == "Initialized" ? &claim.initialized
                                                        : nullptr;
    if (condition == nullptr) continue;
    *condition = {CutClaimText(item.TextAt({"status"})), CutClaimText(item.TextAt({"reason"})),
                  CutClaimText(item.TextAt({"message"}))};
  }
}

}  // namespace

std::string EncodeNodeClaim(const NewNodeClaim& claim) {
  JsonWriter out;
  out.BeginObject().Field("apiVersion", "karpenter.sh/v1").Field("kind", "NodeClaim");
  out.Key("metadata").BeginObject().Field("name", claim.name);
  WriteClaimMap("labels", claim.labels, out);
  WriteClaimMap("annotations", claim.annotations, out);
  out.EndObject();
  out.Key("spec").BeginObject();
  WriteClaimTaints("taints", claim.taints, out);
  WriteClaimTaints("startupTaints", claim.startup_taints, out);
  out.Key("requirements").BeginArray();
  for (const ClaimRequirement& requirement : claim.requirements) {
    out.BeginObject().Field("key", requirement.key).Field("operator", "In");
    out.Key("values").BeginArray().String(requirement.value).EndArray().EndObject();
  }
  out.EndArray();
  if (!claim.requests.empty()) {
    out.Key("resources").BeginObject().Key("requests").BeginObject();
    for (const auto& [name, amount] : claim.requests) {
      out.Field(name, model::FormatQuantity(name, amount));
    }
    out.EndObject().EndObject();
  }
  out.Key("nodeClassRef").BeginObject().Field("group", claim.node_class.group);
  out.Field("kind", claim.node_class.kind).Field("name", claim.node_class.name).EndObject();
  out.Field("expireAfter", "Never");
  return out.EndObject().EndObject().Take();
}

absl::StatusOr<NodeClaim> DecodeNodeClaim(const Json& json) {
  ClaimReader reader(json);
  NodeClaim claim;
  claim.name = reader.name = reader.Text({"metadata", "name"}, "metadata.name");
  if (claim.name.empty()) reader.Fail("metadata.name", "missing");
  claim.uid = reader.Text({"metadata", "uid"}, "metadata.uid");
  if (claim.uid.empty()) reader.Fail("metadata.uid", "missing");
  claim.request = reader.Text({"metadata", "labels", model::kNodeRequestLabel},
                              "metadata.labels[fairlead.dev/node-request]");
  claim.request_uid = reader.Text({"metadata", "annotations", kNodeRequestUidAnnotation},
                                  "metadata.annotations[fairlead.dev/node-request-uid]");
  claim.deleting =
      !reader.Text({"metadata", "deletionTimestamp"}, "metadata.deletionTimestamp").empty();
  claim.provider_id = reader.Text({"status", "providerID"}, "status.providerID");
  claim.node_name = reader.Text({"status", "nodeName"}, "status.nodeName");
  const Json* conditions =
      reader.At({"status", "conditions"}, Json::Type::kArray, "status.conditions", "list");
  if (!reader.status().ok()) return reader.status();
  if (conditions != nullptr) ReadClaimConditions(*conditions, claim);
  return claim;
}

absl::StatusOr<ClaimPage> DecodeClaimPage(absl::string_view json) {
  absl::StatusOr<Json> root = Json::Parse(json);
  if (!root.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("NodeClaimList: ", root.status().message()));
  }
  const Json* items = root->Find("items");
  if (items == nullptr || (!items->is_array() && !items->is_null())) {
    return absl::InvalidArgumentError("NodeClaimList: items: missing, or not a list");
  }
  if (items->items().size() > kMostClaimsOfPage) {
    return absl::InvalidArgumentError(
        absl::StrCat("NodeClaimList: items: more than ", kMostClaimsOfPage));
  }
  ClaimPage page;
  if (const Json* next = root->At({"metadata", "continue"}); next != nullptr && !next->is_null()) {
    if (next->type() != Json::Type::kString) {
      return absl::InvalidArgumentError("NodeClaimList: metadata.continue: not a string");
    }
    page.next = next->text();
  }
  page.claims.reserve(items->items().size());
  for (const Json& item : items->items()) {
    absl::StatusOr<NodeClaim> claim = DecodeNodeClaim(item);
    if (claim.ok()) {
      page.claims.push_back(*std::move(claim));
      continue;
    }
    page.faults.push_back(claim.status());
    const Json* name = item.At({"metadata", "name"});
    if (name == nullptr || name->type() != Json::Type::kString || name->text().empty()) continue;
    NodeClaim unreadable;
    unreadable.name = CutClaimText(name->text());
    unreadable.readable = false;
    page.claims.push_back(std::move(unreadable));
  }
  return page;
}

}  // namespace fairlead::hook
