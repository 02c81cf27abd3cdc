#include "grouping/grouping.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "grouping/sub_groups.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/qualified_name.h"

namespace fairlead::grouping {
namespace {

// KAI's keys that nothing else reads.

// Annotation of pods and their owners: "true" if another program makes the group.
constexpr char kSkipAnnotation[] = "kai.scheduler/skip-podgrouper";
// Label of pods and PodGroups: the user; Fairlead copies it to groups that it makes.
constexpr char kUserLabel[] = "user";
constexpr char kNamePrefix[] = "pg-";

absl::Status About(const ObjectName& object, const absl::Status& error) {
  return {error.code(), absl::StrCat(object.Text(), ": ", error.message())};
}

// The pod as an owner of itself: what rows of kind Pod read.
Json PodObject(const model::Pod& pod) {
  const auto copy = [](const model::StringMap& map) {
    Json out = Json::Object();
    for (const auto& [key, value] : map) out.Append(key, Json::String(value));
    return out;
  };
  Json metadata = Json::Object();
  metadata.Set("name", pod.meta.name).Set("uid", pod.meta.uid);
  metadata.Set("labels", copy(pod.meta.labels));
  metadata.Set("annotations", copy(pod.meta.annotations));
  Json out = Json::Object();
  out.Set("metadata", std::move(metadata));
  return out;
}

// An object that says something about the pod, and its row.
struct Source {
  ObjectName name;
  const Json* object = nullptr;
  const KindRow* row = nullptr;
};

// Makes the answer about one pod. `pod_object` outlives it.
class Grouper {
 public:
  Grouper(const model::Pod& pod, const KindTable& table, const Objects& objects,
          const Json& pod_object)
      : pod_(pod), table_(table), objects_(objects), pod_object_(pod_object) {}

  absl::StatusOr<Grouping> Group();

 private:
  // From the deciding object to the topmost. Nothing: an object has to be read (out_.needs).
  absl::StatusOr<bool> FindSources();
  absl::StatusOr<bool> AddRelated();
  [[nodiscard]] bool IsForeign(const Chain& chain) const;
  [[nodiscard]] Scope ScopeOf(const Source& source) const {
    return {.object = *source.object, .pod = pod_};
  }
  // False: the object's labels name no queue. Admission does not ask about pods of another
  // scheduler, which may say anything (docs/admission.md).
  [[nodiscard]] bool MayNameQueue(const Source& source) const {
    const bool pod = source.name.kind == "Pod" && GroupOfVersion(source.name.api_version).empty();
    return !pod || source.object == &pod_object_ ||
           source.object->TextAt({"spec", "schedulerName"}) == pod_.scheduler_name;
  }
  [[nodiscard]] const Source& deciding() const { return sources_.front(); }
  [[nodiscard]] const KindRow& row() const { return *row_; }

  // Of the sources in order, then of the pod.
  absl::StatusOr<std::string> LabelOf(absl::string_view key) const;
  absl::StatusOr<std::string> AnnotationOf(absl::string_view key) const;
  absl::StatusOr<std::string> FirstOf(Text::From from, absl::string_view key) const;

  absl::Status ReadTerms(const Scope& scope);
  absl::Status ReadQueue(const Scope& scope);
  absl::Status ReadPriority(const Scope& scope);
  absl::Status ReadTopology(const Scope& scope);
  absl::Status ReadSizes(const Scope& scope);
  absl::StatusOr<bool> IsLone(const Scope& scope) const;
  absl::Status Name();
  absl::Status Fill();
  absl::Status FindSuspendable();

  const model::Pod& pod_;
  const KindTable& table_;
  const Objects& objects_;
  const Json& pod_object_;
  std::vector<Source> sources_;
  const KindRow* row_ = nullptr;  // of the deciding object
  Grouping out_;
};

bool IsSkipped(const Json& object) {
  return object.TextAt({"metadata", "annotations", kSkipAnnotation}) == "true";
}

bool Grouper::IsForeign(const Chain& chain) const {
  return IsSkipped(pod_object_) ||
         std::any_of(chain.owners.begin(), chain.owners.end(), [](const Owner& owner) {
           return owner.object != nullptr && IsSkipped(*owner.object);
         });
}

absl::StatusOr<bool> Grouper::FindSources() {
  FAIRLEAD_ASSIGN_OR_RETURN(Chain chain, OwnersOf(pod_, table_, objects_));
  if (IsForeign(chain)) {
    out_.kind = Grouping::Kind::kForeign;
    return false;
  }
  if (chain.needs.has_value()) {
    out_.kind = Grouping::Kind::kNeeds;
    out_.needs = *std::move(chain.needs);
    return false;
  }
  const ObjectName self{"v1", "Pod", pod_.meta.ns, pod_.meta.name, pod_.meta.uid};
  chain.owners.insert(chain.owners.begin(), Owner{self, &pod_object_});
  for (size_t i = chain.owners.size(); i-- > 0;) {
    const Owner& owner = chain.owners[i];
    Source source{owner.name, owner.object == nullptr ? &pod_object_ : owner.object, nullptr};
    absl::StatusOr<const KindRow*> found =
        table_.Find(owner.name.api_version, owner.name.kind, ScopeOf(source));
    if (!found.ok()) return About(owner.name, found.status());
    if (*found == nullptr) {
      return About(owner.name, absl::InvalidArgumentError("the table of kinds has no row for it"));
    }
    source.row = *found;
    sources_.insert(sources_.begin(), source);
    if (source.row->per != Per::kNextOwner) break;
  }
  row_ = deciding().row;
  return AddRelated();
}

// The related object decides; it stands before the owner that names it.
absl::StatusOr<bool> Grouper::AddRelated() {
  if (!row_->from.has_value()) return true;
  const RelatedRow& related = *row_->from;
  absl::StatusOr<std::string> name = related.name.Get(ScopeOf(deciding()));
  if (name.ok() && name->empty()) {
    name = Wrong(related.name.Field(ScopeOf(deciding())),
                 absl::StrCat("is missing: it names a ", related.kind));
  }
  if (!name.ok()) return About(deciding().name, name.status());
  ObjectName object{related.api_version, related.kind, pod_.meta.ns, *std::move(name), ""};
  FAIRLEAD_ASSIGN_OR_RETURN(const Json* found, objects_.Find(object));
  if (found == nullptr) {
    out_.kind = Grouping::Kind::kNeeds;
    out_.needs = std::move(object);
    return false;
  }
  object.uid = found->TextAt({"metadata", "uid"});
  sources_.insert(sources_.begin(), Source{std::move(object), found, nullptr});
  return true;
}

// ---- what is common to all kinds ----------------------------------------------------------------

absl::StatusOr<std::string> Grouper::FirstOf(Text::From from, absl::string_view key) const {
  Text text;
  text.from = from;
  text.name = std::string(key);
  const bool queue =
      from == Text::From::kLabel && (key == model::kQueueLabel || key == model::kProjectLabel);
  for (const Source& source : sources_) {
    if (queue && !MayNameQueue(source)) continue;
    absl::StatusOr<std::string> found = text.Get(ScopeOf(source));
    if (!found.ok()) return About(source.name, found.status());
    if (!found->empty()) return found;
  }
  return "";
}

absl::StatusOr<std::string> Grouper::LabelOf(absl::string_view key) const {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string found, FirstOf(Text::From::kLabel, key));
  return found.empty() ? std::string(pod_.meta.labels.Get(key)) : found;
}

absl::StatusOr<std::string> Grouper::AnnotationOf(absl::string_view key) const {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string found, FirstOf(Text::From::kAnnotation, key));
  return found.empty() ? std::string(pod_.meta.annotations.Get(key)) : found;
}

absl::Status Grouper::ReadQueue(const Scope& scope) {
  std::string& queue = out_.group.queue;
  FAIRLEAD_ASSIGN_OR_RETURN(queue, row().queue.Get(scope));
  if (!queue.empty()) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(queue, LabelOf(model::kQueueLabel));
  if (!queue.empty()) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string project, LabelOf(model::kProjectLabel));
  queue = model::QueueOfProject(project, pod_.meta.labels.Get(model::kNodePoolLabel));
  return absl::OkStatus();
}

// A class that does not exist is ignored.
absl::Status Grouper::ReadPriority(const Scope& scope) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string of_row, row().priority_class.Get(scope));
  FAIRLEAD_ASSIGN_OR_RETURN(std::string label, LabelOf(model::kPriorityClassLabel));
  const std::string names[] = {std::move(of_row), std::move(label), pod_.priority_class_name,
                               row().default_priority_class};
  for (const std::string& name : names) {
    if (name.empty() || !objects_.HasPriorityClass(name)) continue;
    out_.group.priority_class_name = name;
    break;
  }
  return absl::OkStatus();
}

absl::Status Grouper::ReadTopology(const Scope& scope) {
  std::optional<model::TopologyConstraint> constraint;
  if (row().topology.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(constraint, ReadTopologyOf(*row().topology, scope));
  }
  if (!constraint.has_value()) {
    constraint.emplace();
    FAIRLEAD_ASSIGN_OR_RETURN(constraint->required_level,
                              AnnotationOf(model::kTopologyRequiredAnnotation));
    FAIRLEAD_ASSIGN_OR_RETURN(constraint->preferred_level,
                              AnnotationOf(model::kTopologyPreferredAnnotation));
    // A topology without a level constrains nothing.
    if (constraint->required_level.empty() && constraint->preferred_level.empty()) {
      return absl::OkStatus();
    }
    FAIRLEAD_ASSIGN_OR_RETURN(constraint->topology, AnnotationOf(model::kTopologyAnnotation));
    if (constraint->topology.empty()) {
      return Wrong(absl::StrCat("annotation ", model::kTopologyAnnotation),
                   "is missing: a level of it is named");
    }
  }
  out_.group.topology = *std::move(constraint);
  return absl::OkStatus();
}

// Durations that cannot be read are ignored, as they are on pods.
absl::Status Grouper::ReadTerms(const Scope& scope) {
  FAIRLEAD_RETURN_IF_ERROR(ReadQueue(scope));
  FAIRLEAD_RETURN_IF_ERROR(ReadPriority(scope));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string preemptibility, LabelOf(model::kPreemptibilityLabel));
  out_.group.preemptibility = model::ParsePreemptibility(preemptibility);
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string delay,
                            AnnotationOf(model::kPreemptionDelayAnnotation));
  out_.group.preemption_delay = model::ParseSpan(delay);
  if (out_.group.preemption_delay < absl::ZeroDuration()) out_.group.preemption_delay.reset();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string grace,
                            AnnotationOf(model::kStalenessGraceAnnotation));
  out_.group.staleness_grace_period = model::ParseSpan(grace);
  for (const char* key : {model::kQueueLabel, model::kNodePoolLabel, kUserLabel}) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string value, LabelOf(key));
    if (!value.empty()) out_.group.meta.labels.Set(key, value);
  }
  return absl::OkStatus();
}

// ---- the group ----------------------------------------------------------------------------------

absl::StatusOr<bool> Grouper::IsLone(const Scope& scope) const {
  if (row().per == Per::kPod || row().per == Per::kNextOwner) return true;
  if (!row().most.has_value()) return false;
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<int64_t> most, row().most->Find(scope));
  if (!most.has_value() || *most > 1) return false;
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t minimum, row().min_member.Get(scope));
  return minimum <= 1;
}

absl::Status Grouper::ReadSizes(const Scope& scope) {
  for (const Path& path : row().required) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Json* found, path.Find(scope));
    if (found == nullptr) return Wrong(path.text(), "is missing");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(SubGroups sub_groups, MakeSubGroups(row().sub_groups, scope));
  const int64_t top = std::count_if(sub_groups.list.begin(), sub_groups.list.end(),
                                    [](const model::SubGroup& s) { return s.parent.empty(); });
  if (!sub_groups.list.empty() && !sub_groups.of_pod.has_value() && !row().others_join) {
    return absl::InvalidArgumentError(
        absl::StrCat("pod ", model::Key(pod_.meta), " belongs to none of its sub-groups"));
  }
  out_.sub_group = sub_groups.of_pod.value_or("");
  out_.group.sub_groups = std::move(sub_groups.list);
  const bool by_sub_groups = row().min_sub_group.has_value();
  const Number& number = by_sub_groups ? *row().min_sub_group : row().min_member;
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t minimum, number.Get(scope));
  if (minimum == 0) return Wrong(number.Field(scope), "the minimum of the group is 0");
  if (by_sub_groups && minimum > top) {
    return Wrong(number.Field(scope),
                 absl::StrCat("the minimum is ", minimum, " of ", top, " sub-groups"));
  }
  (by_sub_groups ? out_.group.min_sub_group : out_.group.min_member) =
      static_cast<int32_t>(minimum);
  return absl::OkStatus();
}

// "pg-OWNER-UID", the owner's name cut where the whole would be too long: the uid tells owners
// apart.
std::string OwnersName(const ObjectName& owner, absl::string_view suffix) {
  const size_t rest = sizeof(kNamePrefix) + owner.uid.size() + suffix.size();
  const size_t room = model::kLongestName - std::min(model::kLongestName, rest);
  absl::string_view name = absl::string_view(owner.name).substr(0, room);
  while (!name.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(name.back()))) {
    name.remove_suffix(1);
  }
  return absl::StrCat(kNamePrefix, name, "-", owner.uid, suffix);
}

absl::Status Grouper::Name() {
  std::string& name = out_.group.meta.name;
  const ObjectName& owner = deciding().name;
  if (row().per == Per::kPodName) {
    name = pod_.meta.name.substr(0, pod_.meta.name.rfind('-'));
  } else if (row().per == Per::kLabel) {
    const absl::string_view value = pod_.meta.labels.Get(row().label);
    const std::string field = absl::StrCat("pod label ", row().label);
    if (value.empty()) return Wrong(field, "is missing");
    name =
        row().bare ? std::string(value) : OwnersName(owner, absl::StrCat("-", row().infix, value));
    if (!model::IsDnsSubdomain(name)) {
      return Wrong(field, absl::StrCat(Shown(value), " cannot be part of a name"));
    }
  } else {
    name = OwnersName(owner, "");
  }
  if (model::IsDnsSubdomain(name)) return absl::OkStatus();
  return Wrong("metadata.uid", absl::StrCat(Shown(name), " cannot be the name of a PodGroup"));
}

absl::Status Grouper::Fill() {
  const Scope scope = ScopeOf(deciding());
  FAIRLEAD_RETURN_IF_ERROR(ReadTerms(scope));
  FAIRLEAD_ASSIGN_OR_RETURN(const bool lone, IsLone(scope));
  const ObjectName& owner = deciding().name;
  out_.group.meta.owners = {
      {owner.api_version, owner.kind, owner.name, owner.uid, /*controller=*/true}};
  if (lone) return absl::OkStatus();
  out_.kind = Grouping::Kind::kGroup;
  FAIRLEAD_RETURN_IF_ERROR(ReadTopology(scope));
  FAIRLEAD_RETURN_IF_ERROR(ReadSizes(scope));
  out_.group.meta.ns = pod_.meta.ns;
  return Name();
}

// The topmost: what is below it, its controller makes anew. It is none if it would hold back pods
// of other groups: those of an object whose pods are several groups, or, for a pod that is alone,
// those beside it of an object further up (the cluster of a RayJob, for the pod that submits it).
absl::Status Grouper::FindSuspendable() {
  if (row().per != Per::kOwner) return absl::OkStatus();
  for (auto source = sources_.rbegin(); source != sources_.rend(); ++source) {
    if (source->row == nullptr || !source->row->suspend.has_value()) continue;
    const SuspendRow& suspend = *source->row->suspend;
    const bool above = source->row != row_;
    if (suspend.path.empty() || (above && out_.kind == Grouping::Kind::kLone)) break;
    if (suspend.when.has_value()) {
      const absl::StatusOr<bool> holds = suspend.when->Holds(ScopeOf(*source));
      if (!holds.ok()) return About(source->name, holds.status());
      if (!*holds) break;
    }
    out_.suspendable = source->name;
    out_.suspend = suspend.path.text();
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<Grouping> Grouper::Group() {
  FAIRLEAD_ASSIGN_OR_RETURN(const bool complete, FindSources());
  if (!complete) return std::move(out_);
  if (const absl::Status filled = Fill(); !filled.ok()) return About(deciding().name, filled);
  FAIRLEAD_RETURN_IF_ERROR(FindSuspendable());
  return std::move(out_);
}

}  // namespace

absl::StatusOr<Grouping> GroupOf(const model::Pod& pod, const KindTable& table,
                                 const Objects& objects) {
  const Json pod_object = PodObject(pod);
  return Grouper(pod, table, objects, pod_object).Group();
}

}  // namespace fairlead::grouping
