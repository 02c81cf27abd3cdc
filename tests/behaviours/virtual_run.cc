#include "tests/behaviours/virtual_run.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "core/configuration.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "scheduler/model/cluster_event.h"
#include "sim/api_writes.h"
#include "sim/simulator.h"
#include "tests/behaviours/expectations.h"
#include "tests/behaviours/volume_binder.h"

namespace fairlead::behaviours {
namespace {

// A step has ended when no action has been decided for this long. It is longer than kubelets take,
// and shorter than the timers of the decision loop, so that a pod that only a timer helps is found.
constexpr absl::Duration kQuiet = absl::Seconds(5);
// A step that never gets quiet ends as well, and its expectations are checked as they are.
constexpr absl::Duration kLongest = absl::Hours(1);
constexpr char kNamespaceLabel[] = "kubernetes.io/metadata.name";

absl::StatusOr<core::Options> OptionsOf(const Behaviour& behaviour) {
  const std::vector<Json> config = behaviour.CompleteConfig();
  std::vector<std::string> texts;
  for (const Json& document : config) texts.push_back(document.Compact());
  absl::StatusOr<core::Configuration> read = core::ReadConfiguration(texts);
  if (read.ok()) return read->options;
  TextPlace place;
  if (const auto field = core::FieldPlaceOf(read.status());
      field.has_value() && field->document < config.size()) {
    place = FindPlace(config[field->document], field->path);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(behaviour.file, ":", place.line, ": config: ", read.status().message()));
}

class VirtualRun {
 public:
  static absl::StatusOr<std::unique_ptr<VirtualRun>> Start(const Behaviour& behaviour,
                                                           HeardFirst first) {
    sim::SimulatorOptions options;
    FAIRLEAD_ASSIGN_OR_RETURN(options.core, OptionsOf(behaviour));
    options.check_invariants = true;
    const absl::Duration answer = options.cluster.executor.answer_latency;
    options.cluster.watch_delay = first == HeardFirst::kWatch ? answer / 2 : answer * 2;
    sim::Scenario scenario;
    scenario.name = behaviour.name;
    scenario.start = absl::FromCivil(absl::CivilSecond(2026, 3, 2), absl::UTCTimeZone());
    scenario.end = scenario.start + kLongest * static_cast<double>(behaviour.steps.size() + 1);
    FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<sim::Simulator> simulator,
                              sim::Simulator::Make(std::move(scenario), std::move(options)));
    std::unique_ptr<VirtualRun> run(new VirtualRun(behaviour, std::move(simulator)));
    FAIRLEAD_RETURN_IF_ERROR(run->MakeBuiltInObjects());
    return run;
  }

  absl::Status Play(const Step& step) {
    first_event_ = simulator_->recorder().timeline().size();
    for (const ObjectRef& ref : step.apply) {
      manifests_[ref] = behaviour_.manifests.at(ref);
      FAIRLEAD_RETURN_IF_ERROR(Done(step, ref, Create(ref)));
    }
    for (const auto& [ref, patch] : step.patch) {
      manifests_[ref] = MergePatch(manifests_[ref], patch);
      FAIRLEAD_RETURN_IF_ERROR(Done(step, ref, Change(ref)));
    }
    for (const ObjectRef& ref : step.remove) {
      FAIRLEAD_RETURN_IF_ERROR(Done(step, ref, Remove(ref)));
    }
    return Settle();
  }

  [[nodiscard]] Seen See() const {
    Seen seen;
    for (const auto& [key, pod] : server().All<model::Pod>()) seen.pods[key].node = pod.node_name;
    for (const core::WaitingRow& row : simulator_->view().waiting) {
      for (const std::string& pod : row.pods) seen.pods[pod].wait = WaitOf(row);
    }
    for (const auto& [name, node] : server().All<model::Node>()) {
      for (const auto& [key, value] : node.meta.labels) seen.node_labels[name][key] = value;
    }
    const std::vector<sim::TimelineEvent>& timeline = simulator_->recorder().timeline();
    for (size_t i = first_event_; i < timeline.size(); ++i) {
      if (timeline[i].event == "pod_evicted") seen.evicted.insert(timeline[i].object);
    }
    return seen;
  }

 private:
  VirtualRun(const Behaviour& behaviour, std::unique_ptr<sim::Simulator> simulator)
      : behaviour_(behaviour),
        simulator_(std::move(simulator)),
        volume_binder_(&simulator_->cluster().queue(), &simulator_->cluster().server()) {}

  sim::ApiServer& server() { return simulator_->cluster().server(); }
  [[nodiscard]] const sim::ApiServer& server() const { return simulator_->cluster().server(); }

  // What every API server has.
  absl::Status MakeBuiltInObjects() {
    model::Namespace ns;
    ns.meta.name = "default";
    ns.meta.labels.Set(kNamespaceLabel, ns.meta.name);
    FAIRLEAD_RETURN_IF_ERROR(server().Create(ns));
    for (const auto& [name, value] : {std::pair("system-cluster-critical", 2'000'000'000),
                                      std::pair("system-node-critical", 2'000'001'000)}) {
      model::PriorityClass priority;
      priority.meta.name = name;
      priority.value = value;
      FAIRLEAD_RETURN_IF_ERROR(server().Create(priority));
    }
    return absl::OkStatus();
  }

  // The object of the manifest, with the API server's defaults that decisions read.
  absl::StatusOr<sim::Object> Decode(const ObjectRef& ref) const {
    FAIRLEAD_ASSIGN_OR_RETURN(kube::Manifests decoded,
                              kube::DecodeManifests(manifests_.at(ref).Compact()));
    if (decoded.objects.size() != 1) {
      return absl::InvalidArgumentError("is not one object that Fairlead reads");
    }
    sim::Object object = std::move(decoded.objects[0]);
    if (const std::string* invalid = kube::InvalidOf(object);
        invalid != nullptr && !invalid->empty()) {
      return absl::InvalidArgumentError(*invalid);
    }
    if (auto* pod = std::get_if<model::Pod>(&object);
        pod != nullptr && pod->scheduler_name.empty()) {
      pod->scheduler_name = kDefaultScheduler;
    }
    if (auto* ns = std::get_if<model::Namespace>(&object)) {
      ns->meta.labels.Set(kNamespaceLabel, ns->meta.name);
    }
    return object;
  }

  absl::Status Create(const ObjectRef& ref) {
    if (!ref.ModelKind().has_value()) return absl::OkStatus();  // of the API server's admission
    FAIRLEAD_ASSIGN_OR_RETURN(sim::Object object, Decode(ref));
    if (auto* pod = std::get_if<model::Pod>(&object);
        pod != nullptr && pod->priority_class_name.empty() && !HasDefaultPriority()) {
      pod->priority = 0;
    }
    return server().CreateAny(std::move(object));
  }

  [[nodiscard]] bool HasDefaultPriority() const {
    const auto& classes = server().All<model::PriorityClass>();
    return std::any_of(classes.begin(), classes.end(),
                       [](const auto& entry) { return entry.second.global_default; });
  }

  absl::Status Change(const ObjectRef& ref) {
    FAIRLEAD_ASSIGN_OR_RETURN(const sim::Object wanted, Decode(ref));
    const bool found = std::visit(
        [&]<typename T>(const T& object) {
          return server().Modify<T>(ref.Key(), [&](T& stored) { Replace(stored, object); });
        },
        wanted);
    return found ? absl::OkStatus() : absl::NotFoundError("does not exist");
  }

  // A pod keeps its status and what others have written; the API server lets little of it change.
  template <typename T>
  static void Replace(T& stored, const T& wanted) {
    if constexpr (std::is_same_v<T, model::Pod>) {
      stored.meta.labels = wanted.meta.labels;
      stored.scheduling_gates = wanted.scheduling_gates;
    } else {
      const model::ObjectMeta before = stored.meta;
      stored = wanted;
      stored.meta.uid = before.uid;
      stored.meta.creation = before.creation;
    }
    ++stored.meta.generation;
  }

  absl::Status Remove(const ObjectRef& ref) {
    if (ref.kind == "Pod") return sim::DeletePod(server(), ref.Key());
    const std::optional<model::Kind> kind = ref.ModelKind();
    if (!kind.has_value() || server().Remove(*kind, ref.Key())) return absl::OkStatus();
    return absl::NotFoundError("does not exist");
  }

  [[nodiscard]] absl::Status Done(const Step& step, const ObjectRef& ref,
                                  const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::InvalidArgumentError(absl::StrCat(behaviour_.file, ":", step.place.line, ": ",
                                                   ref.Text(), ": ", status.message()));
  }

  absl::Status Settle() {
    const absl::Time longest = simulator_->now() + kLongest;
    for (uint64_t before = 0; simulator_->now() < longest;) {
      before = simulator_->trace_hash();
      const absl::Status status = simulator_->RunUntil(simulator_->now() + kQuiet);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(behaviour_.file, ": ", status.message()));
      }
      if (simulator_->trace_hash() == before) break;
    }
    return absl::OkStatus();
  }

  static Wait WaitOf(const core::WaitingRow& row) {
    Wait wait;
    wait.code = std::string(verdict::CodeName(row.verdict.code));
    wait.message = row.message;
    for (const verdict::FailedPredicate& predicate : row.verdict.failed_predicates) {
      wait.reasons.push_back(predicate.reason);
    }
    return wait;
  }

  const Behaviour& behaviour_;
  std::unique_ptr<sim::Simulator> simulator_;
  VolumeBinder volume_binder_;
  std::map<ObjectRef, Json> manifests_;  // as applied and patched
  size_t first_event_ = 0;               // of the step, in the recorder's timeline
};

}  // namespace

absl::StatusOr<std::vector<std::string>> PlayInVirtualTime(const Behaviour& behaviour,
                                                           HeardFirst first) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<VirtualRun> run, VirtualRun::Start(behaviour, first));
  for (const Step& step : behaviour.steps) {
    FAIRLEAD_RETURN_IF_ERROR(run->Play(step));
    std::vector<std::string> failures = Failures(behaviour, step, run->See(), Scheduler::kFairlead);
    if (!failures.empty()) return failures;
  }
  return std::vector<std::string>();
}

}  // namespace fairlead::behaviours
