// Rules of our own kinds: Queue, PodGroup, NodePool, NodeRequest.
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "admission/names.h"
#include "admission/validate.h"
#include "kube/codec/json_codec.h"
#include "queues/contradictions.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/gang_sets.h"

namespace fairlead::admission {
namespace {

constexpr char kParentField[] = "spec.parentQueue";
constexpr char kRestrictedField[] = "metadata.annotations[fairlead.dev/restricted]";

// As the program reads it; `out` gets what is wrong with its content. None if it is no such object.
template <typename T>
std::optional<T> Decode(model::Kind kind, const Json& object, Findings& out) {
  kube::Problems found;
  absl::StatusOr<model::Object> decoded = kube::json::DecodeObject(kind, object.Compact(), found);
  if (!decoded.ok()) {
    out.problems.push_back({"", std::string(decoded.status().message())});
    return std::nullopt;
  }
  for (const kube::Problems::Entry& entry : found.Sorted()) {
    out.problems.push_back({entry.path, entry.text});
  }
  return std::get<T>(*std::move(decoded));
}

// What the tree of queues makes of the queue among those that are known.
void CheckPlace(const model::Queue& queue, const Cluster& cluster, Findings& out) {
  model::ResourceNames names;
  queues::QueueTree tree(names);
  for (const auto& [name, other] : cluster.queues) {
    if (name != queue.meta.name) tree.Upsert(*other);
  }
  model::Queue read = queue;
  read.invalid.clear();  // told by its decoder
  const queues::QueueId id = tree.Upsert(read);
  const std::optional<std::string>& problem = tree.Problem(id);
  if (!problem.has_value()) return;
  if (queue.parent.empty()) return out.Add("spec.resources", *problem);
  const std::optional<queues::QueueId> declared = tree.Find(queue.parent);
  if (!declared.has_value()) {
    return out.Warn(kParentField, absl::StrCat(*problem, "; until then the queue runs nothing"));
  }
  const std::optional<queues::QueueId> parent = tree.Parent(id);
  if (!parent.has_value()) return out.Add(kParentField, *problem);
  if (tree.Usable(*parent)) return out.Add("spec.resources", *problem);
  out.Warn(kParentField, *problem);
}

}  // namespace

Findings CheckByDecoder(model::Kind kind, const Json& object) {
  Findings out;
  if (kind == model::Kind::kNodePool) Decode<model::NodePool>(kind, object, out);
  if (kind == model::Kind::kNodeRequest) Decode<model::NodeRequest>(kind, object, out);
  return out;
}

Findings CheckQueue(const Json& object, const Cluster& cluster) {
  Findings out;
  const std::optional<model::Queue> queue = Decode<model::Queue>(model::Kind::kQueue, object, out);
  if (!queue.has_value()) return out;
  const std::vector<queues::Contradiction> contradictions = queues::ContradictionsOf(*queue);
  for (const queues::Contradiction& found : contradictions) out.Add(found.field, found.what);
  const absl::string_view restricted = queue->meta.annotations.Get(kRestrictedAnnotation);
  if (!restricted.empty() && restricted != "true" && restricted != "false") {
    out.Add(kRestrictedField, absl::StrCat("\"", restricted, "\" must be true or false"));
  }
  if (queue->parent.empty() || queue->parent != queue->meta.name) CheckPlace(*queue, cluster, out);
  return out;
}

Findings CheckPodGroup(const Json& object, const Cluster& cluster, const Policy& policy) {
  Findings out;
  const std::optional<model::PodGroup> group =
      Decode<model::PodGroup>(model::Kind::kPodGroup, object, out);
  if (!group.has_value()) return out;
  const state::GangSets sets = state::ReadGangSets(*group);
  // "PodGroup ns/name: spec.subGroups[0].name: what"
  const std::string subject = absl::StrCat("PodGroup ", model::Key(group->meta), ": ");
  if (!sets.problem.empty()) {
    const std::string text(absl::StripPrefix(sets.problem, subject));
    out.problems.push_back({text.substr(0, text.find(": ")), text});
  }
  if (!sets.warning.empty()) {
    out.warnings.emplace_back(absl::StripPrefix(sets.warning, subject));
  }
  if (!group->queue.empty()) WarnOfQueue(group->queue, "spec.queue", cluster, policy, out);
  return out;
}

void WarnOfQueue(const std::string& queue, absl::string_view path, const Cluster& cluster,
                 const Policy& policy, Findings& out) {
  const bool builtin = policy.builtin_default_queue && queue == policy.default_queue;
  const auto found = cluster.queues.find(queue);
  if (found == cluster.queues.end()) {
    if (!builtin) out.Warn(path, absl::StrCat("queue \"", queue, "\" does not exist"));
    return;
  }
  if (!found->second->invalid.empty()) {
    return out.Warn(path,
                    absl::StrCat("queue \"", queue, "\" is invalid: ", found->second->invalid));
  }
  for (const auto& [name, other] : cluster.queues) {
    if (other->parent != queue) continue;
    return out.Warn(path, absl::StrCat("queue \"", queue, "\" has queues below it, such as \"",
                                       name, "\"; only queues without run pods"));
  }
}

}  // namespace fairlead::admission
