#include "sim/world/api_pods.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

constexpr size_t kMaxDisruptedPods = 2000;
constexpr char kBudgetMessage[] =
    "Cannot evict pod as it would violate the pod's disruption budget.";

const ResourceRow& Pods() { return RowOf(ResourceType::kPods); }
const ResourceRow& Budgets() { return RowOf(ResourceType::kPodDisruptionBudgets); }

void MergeStrings(const Json& from, const char* field, Json& pod) {
  const Json* const given = At(from, {"metadata", field});
  if (given == nullptr || !given->is_object()) return;
  Json& meta = MakeObject(pod, {"metadata", field});
  for (auto it = given->begin(); it != given->end(); ++it) meta[it.key()] = *it;
}

ApiError Assign(const Json& binding, const std::string& node, absl::Time now, Json& pod) {
  const std::string name = TextAt(pod, {"metadata", "name"});
  const std::string uid = TextAt(pod, {"metadata", "uid"});
  const std::string wanted = TextAt(binding, {"metadata", "uid"});
  if (!wanted.empty() && wanted != uid) {
    return ConflictError(
        "pods", name,
        absl::StrCat("StorageError: invalid object, Code: 4, Key: /registry/pods/",
                     TextAt(pod, {"metadata", "namespace"}), "/", name,
                     ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                     "precondition: ",
                     wanted, ", UID in object meta: ", uid));
  }
  std::string why;
  if (At(pod, {"metadata", "deletionTimestamp"}) != nullptr) {
    why = absl::StrCat("pod ", name, " is being deleted, cannot be assigned to a host");
  } else if (const std::string at = TextAt(pod, {"spec", "nodeName"}); !at.empty()) {
    why = absl::StrCat("pod ", name, " is already assigned to node \"", at, "\"");
  } else if (HasItems(pod, {"spec", "schedulingGates"})) {
    why = absl::StrCat("pod ", name, " has non-empty .spec.schedulingGates");
  }
  if (!why.empty()) return ConflictError("pods/binding", name, why);
  pod["spec"]["nodeName"] = node;
  MergeStrings(binding, "annotations", pod);
  MergeStrings(binding, "labels", pod);
  SetCondition(pod, {{"type", "PodScheduled"}, {"status", "True"}}, now);
  Erase(pod, {"status"}, "nominatedNodeName");
  return {};
}

// ---- eviction -----------------------------------------------------------------------------------

bool IsReady(const Json& pod) {
  const Json* const conditions = At(pod, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::any_of(conditions->begin(), conditions->end(), [](const Json& condition) {
    return TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) == "True";
  });
}

bool NeedsNoBudget(const Json& pod) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         At(pod, {"metadata", "deletionTimestamp"}) != nullptr;
}

ApiError BudgetRefusal(std::string cause, int retry_after_seconds) {
  ApiError error = TooManyRequestsError(kBudgetMessage, retry_after_seconds);
  error.details["causes"] =
      Json::array({{{"reason", "DisruptionBudget"}, {"message", std::move(cause)}}});
  return error;
}

ApiError CheckAndDecrement(const std::string& pod, absl::Time now, Json& budget) {
  const std::string name = TextAt(budget, {"metadata", "name"});
  if (IntAt(budget, {"status", "observedGeneration"}) < IntAt(budget, {"metadata", "generation"})) {
    return BudgetRefusal(
        absl::StrCat("The disruption budget ", name, " is still being processed by the server."),
        10);
  }
  const int64_t allowed = IntAt(budget, {"status", "disruptionsAllowed"});
  if (allowed < 0) return ForbiddenError(Budgets(), name, "pdb disruptions allowed is negative");
  Json& disrupted = MakeObject(budget, {"status", "disruptedPods"});
  if (disrupted.size() > kMaxDisruptedPods) {
    return ForbiddenError(
        Budgets(), name,
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (allowed == 0) {
    return BudgetRefusal(
        absl::StrCat("The disruption budget ", name, " needs ",
                     IntAt(budget, {"status", "desiredHealthy"}), " healthy pods and has ",
                     IntAt(budget, {"status", "currentHealthy"}), " currently"),
        0);
  }
  budget["status"]["disruptionsAllowed"] = allowed - 1;
  disrupted[pod] = TimeText(now);
  return {};
}

std::vector<ObjectPtr> BudgetsOf(const ApiStore& store, const Json& pod) {
  std::vector<ObjectPtr> found;
  const std::string ns = TextAt(pod, {"metadata", "namespace"});
  for (const auto& [key, budget] : store.All(ResourceType::kPodDisruptionBudgets)) {
    if (TextAt(budget->json(), {"metadata", "namespace"}) == ns &&
        SelectorMatches(At(budget->json(), {"spec", "selector"}),
                        At(pod, {"metadata", "labels"}))) {
      found.push_back(budget);
    }
  }
  return found;
}

// Whether an unhealthy pod may go without the budget's leave.
bool MayGoUnhealthy(const Json& pod, const Json& budget) {
  if (IsReady(pod)) return false;
  if (TextAt(budget, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow") return true;
  const int64_t desired = IntAt(budget, {"status", "desiredHealthy"});
  return desired > 0 && IntAt(budget, {"status", "currentHealthy"}) >= desired;
}

ApiError MarkAndDelete(ApiWriter& writer, const std::string& ns, const std::string& name,
                       const DeleteOptions& options, absl::string_view actor) {
  const ObjectPtr pod = writer.store().Find(ResourceType::kPods, ObjectKey(Pods(), ns, name));
  const std::string uid = TextAt(pod->json(), {"metadata", "uid"});
  if (!options.uid.empty() && options.uid != uid) {
    return ConflictError("Pod", name,
                         absl::StrCat("the UID in the precondition (", options.uid,
                                      ") does not match the UID in record (", uid,
                                      "). The object might have been deleted and then recreated"));
  }
  const absl::Time now = writer.now();
  ApiResult marked = writer.Update(
      Pods(), ns, name, WriteScope::kSubresource,
      [&](Json& object) -> ApiError {
        SetCondition(object,
                     {{"type", "DisruptionTarget"},
                      {"status", "True"},
                      {"reason", "EvictionByEvictionAPI"},
                      {"message", "Eviction API: evicting"}},
                     now);
        return {};
      },
      actor);
  if (!marked.error.ok()) return marked.error;
  DeleteOptions without_version = options;
  without_version.resource_version.clear();
  return writer.Delete(Pods(), ns, name, without_version, actor).error;
}

EvictionAnswer Refuse(ApiError error) { return {std::move(error), nullptr}; }

}  // namespace

bool SelectorMatches(const Json* selector, const Json* labels) {
  if (selector == nullptr || !selector->is_object()) return false;
  const auto label = [&](const std::string& key) -> const Json* {
    return labels == nullptr ? nullptr : At(*labels, {key.c_str()});
  };
  const Json* const exact = At(*selector, {"matchLabels"});
  if (exact != nullptr && exact->is_object()) {
    for (auto it = exact->begin(); it != exact->end(); ++it) {
      const Json* const value = label(it.key());
      if (value == nullptr || *value != *it) return false;
    }
  }
  const Json* const expressions = At(*selector, {"matchExpressions"});
  if (expressions == nullptr || !expressions->is_array()) return true;
  return std::all_of(expressions->begin(), expressions->end(), [&](const Json& expression) {
    const Json* const value = label(TextAt(expression, {"key"}));
    const Json* const values = At(expression, {"values"});
    const bool in = value != nullptr && values != nullptr && values->is_array() &&
                    std::find(values->begin(), values->end(), *value) != values->end();
    const std::string op = TextAt(expression, {"operator"});
    if (op == "In") return in;
    if (op == "NotIn") return !in;
    if (op == "Exists") return value != nullptr;
    return op == "DoesNotExist" && value == nullptr;
  });
}

void SetCondition(Json& object, Json condition, absl::Time now) {
  Json& conditions = MakeObject(object, {"status"})["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  condition["lastTransitionTime"] = TimeText(now);
  for (Json& existing : conditions) {
    if (TextAt(existing, {"type"}) != TextAt(condition, {"type"})) continue;
    const std::string since = TextAt(existing, {"lastTransitionTime"});
    if (TextAt(existing, {"status"}) == TextAt(condition, {"status"}) && !since.empty()) {
      condition["lastTransitionTime"] = since;
    }
    existing = std::move(condition);
    return;
  }
  conditions.push_back(std::move(condition));
}

ApiError BindPod(ApiWriter& writer, const std::string& ns, const std::string& name,
                 const Json& binding, absl::string_view actor) {
  if (TextAt(binding, {"metadata", "name"}) != name) {
    return BadRequestError("name in URL does not match name in Binding object");
  }
  const std::string node = TextAt(binding, {"target", "name"});
  const std::string kind = TextAt(binding, {"target", "kind"});
  // Upstream gives these back as plain errors, which makes them a 500.
  ApiError error = GenericError(500, "");
  if (!kind.empty() && kind != "Node") {
    error.message = absl::StrCat("target.kind: Unsupported value: \"", kind,
                                 "\": supported values: \"Node\", \"<empty>\"");
    return error;
  }
  if (node.empty()) {
    error.message = "target.name: Required value";
    return error;
  }
  const absl::Time now = writer.now();
  return writer
      .Update(
          Pods(), ns, name, WriteScope::kSubresource,
          [&](Json& pod) { return Assign(binding, node, now, pod); }, actor)
      .error;
}

EvictionAnswer EvictPod(ApiWriter& writer, const std::string& ns, const std::string& name,
                        const Json& eviction, absl::string_view actor) {
  if (TextAt(eviction, {"metadata", "name"}) != name) {
    return Refuse(BadRequestError("name in URL does not match name in Eviction object"));
  }
  const ObjectPtr pod = writer.store().Find(ResourceType::kPods, ObjectKey(Pods(), ns, name));
  if (pod == nullptr) return Refuse(NotFoundError(Pods(), name));
  const Json* const given = At(eviction, {"deleteOptions"});
  const DeleteOptions options = given == nullptr ? DeleteOptions() : ReadDeleteOptions(*given);
  if (!NeedsNoBudget(pod->json())) {
    const std::vector<ObjectPtr> budgets = BudgetsOf(writer.store(), pod->json());
    if (budgets.size() > 1) {
      Json status = {{"kind", "Status"},
                     {"apiVersion", "v1"},
                     {"metadata", Json::object()},
                     {"status", "Failure"},
                     {"message",
                      "This pod has more than one PodDisruptionBudget, which the eviction "
                      "subresource does not support."},
                     {"code", 500}};
      return {{}, std::move(status)};
    }
    if (!budgets.empty() && !MayGoUnhealthy(pod->json(), budgets[0]->json())) {
      const absl::Time now = writer.now();
      ApiResult counted = writer.Update(
          Budgets(), ns, TextAt(budgets[0]->json(), {"metadata", "name"}), WriteScope::kSubresource,
          [&](Json& budget) { return CheckAndDecrement(name, now, budget); }, actor);
      if (!counted.error.ok()) return Refuse(std::move(counted.error));
    }
  }
  if (ApiError error = MarkAndDelete(writer, ns, name, options, actor); !error.ok()) {
    return Refuse(std::move(error));
  }
  return {{}, SuccessStatus(201)};
}

}  // namespace fairlead::sim::world
