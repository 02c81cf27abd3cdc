#include "tests/integration/live_behaviour.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

using behaviours::ObjectRef;
using behaviours::Scheduler;
using behaviours::Seen;
using behaviours::SeenPod;
using behaviours::Step;
using behaviours::Wait;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

constexpr char kFairleadKind[] = "FairleadConfiguration";
constexpr char kDisruptionTarget[] = "DisruptionTarget";
constexpr char kByScheduler[] = "PreemptionByScheduler";

Json NoElection() {
  Json election = Json::Object();
  election.Set("leaderElect", Json::Bool(false));
  return election;
}

// The file's documents, with what a test's process needs; JSON is YAML.
std::string FairleadConfig(const behaviours::Behaviour& behaviour) {
  std::vector<Json> documents = behaviour.CompleteConfig();
  if (std::none_of(documents.begin(), documents.end(), [](const Json& document) {
        return document.TextAt({"kind"}) == kFairleadKind;
      })) {
    Json own = Json::Object();
    own.Set("apiVersion", "config.fairlead.dev/v1alpha1").Set("kind", kFairleadKind);
    documents.push_back(std::move(own));
  }
  std::string text;
  for (Json& document : documents) {
    if (document.TextAt({"kind"}) == kFairleadKind) document.Set("leaderElection", NoElection());
    absl::StrAppend(&text, "---\n", document.Compact(), "\n");
  }
  return text;
}

std::string KubeSchedulerConfig(const behaviours::Behaviour& behaviour, const Plane& plane) {
  for (Json& document : behaviour.CompleteConfig()) {
    if (document.TextAt({"kind"}) == kFairleadKind) continue;
    Json connection = Json::Object();
    connection.Set("kubeconfig", plane.kubeconfig());
    connection.Set("qps", Json::Int(500)).Set("burst", Json::Int(1000));
    document.Set("clientConnection", std::move(connection));
    document.Set("leaderElection", NoElection());
    document.Set("podMaxBackoffSeconds", Json::Int(1));
    return document.Compact();
  }
  return "";
}

std::string KeyOf(const Json& object) {
  return absl::StrCat(object.TextAt({"metadata", "namespace"}), "/",
                      object.TextAt({"metadata", "name"}));
}

bool IsEvicted(const Json& pod) {
  const Json* const condition = FindCondition(pod, kDisruptionTarget);
  return !pod.TextAt({"metadata", "deletionTimestamp"}).empty() && condition != nullptr &&
         condition->TextAt({"status"}) == "True" && condition->TextAt({"reason"}) == kByScheduler;
}

}  // namespace

LiveBehaviour::LiveBehaviour(Api& api, Plane& plane, behaviours::Behaviour behaviour,
                             Scheduler scheduler)
    : api_(api), plane_(plane), behaviour_(std::move(behaviour)), scheduler_(scheduler) {
  const bool has_claims =
      std::any_of(behaviour_.manifests.begin(), behaviour_.manifests.end(),
                  [](const auto& entry) { return entry.first.kind == "PersistentVolumeClaim"; });
  if (has_claims) {
    std::vector<std::string> command =
        plane_.ControllerManager("persistentvolume-binder-controller");
    command.emplace_back("--pvclaimbinder-sync-period=1s");  // 15 s otherwise
    controllers_ =
        std::make_unique<ChildProcess>(std::move(command), plane_.NewFile("controllers.log"));
  }
}

LiveBehaviour::~LiveBehaviour() {
  process_.reset();
  controllers_.reset();
  std::reverse(made_.begin(), made_.end());
  for (const ObjectRef& ref : made_) Delete(ref);
}

std::string LiveBehaviour::Log() const { return process_ == nullptr ? "" : process_->Log(); }

void LiveBehaviour::Start() {
  const std::string config = plane_.NewFile("scheduler.yaml");
  std::vector<std::string> command;
  if (scheduler_ == Scheduler::kFairlead) {
    std::ofstream(config) << FairleadConfig(behaviour_);
    command = {FAIRLEAD_BINARY, "run",  "--kubeconfig", plane_.kubeconfig(),
               "--config",      config, "--log-level",  "debug"};
  } else {
    std::ofstream(config) << KubeSchedulerConfig(behaviour_, plane_);
    command = plane_.KubeScheduler(config);
  }
  process_ = std::make_unique<ChildProcess>(std::move(command), plane_.NewFile("scheduler.log"));
}

AssertionResult LiveBehaviour::Play(absl::Duration patience) {
  for (const Step& step : behaviour_.steps) {
    if (AssertionResult result = PlayStep(step, patience); !result) {
      return result << "\nin the step of line " << step.place.line;
    }
  }
  return AssertionSuccess();
}

AssertionResult LiveBehaviour::PlayStep(const Step& step, absl::Duration patience) {
  evicted_.clear();
  for (const ObjectRef& ref : step.apply) {
    if (AssertionResult result = Create(ref); !result) return result;
  }
  for (const auto& [ref, patch] : step.patch) {
    if (AssertionResult result = Patch(ref, patch); !result) return result;
  }
  for (const ObjectRef& ref : step.remove) Delete(ref);
  if (process_ == nullptr) Start();

  std::vector<std::string> failures;
  const auto met = [&] {
    failures = behaviours::Failures(behaviour_, step, WorkAndSee(), scheduler_);
    return failures.empty();
  };
  const auto state = [&] { return absl::StrJoin(failures, "\n"); };
  if (AssertionResult result = Eventually("the expectations", met, state, patience); !result) {
    return result;
  }
  if (AssertionResult result = DecidesOnALaterPod(); !result) return result;
  if (met()) return AssertionSuccess();
  return AssertionFailure() << "met, but not for long:\n" << state();
}

// What waits must still wait when the scheduler has gone on: a pod that no node may take is decided
// on after everything that was there before.
AssertionResult LiveBehaviour::DecidesOnALaterPod() {
  const ObjectRef ref{"Pod", "default", absl::StrCat("later-", ++later_pods_)};
  api_.Create(ref.CollectionPath(),
              absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", ref.name,
                           R"("},"spec":{"schedulerName":")", behaviour_.SchedulerName(),
                           R"(","nodeSelector":{"behaviours.test/no":"node"},"containers":)",
                           R"([{"name":"c","image":"i"}]}})"));
  AssertionResult result = Eventually("a later pod is decided on", [&] {
    WorkAndSee();
    const Json pod = api_.Get(ref.Path()).body;
    return FindCondition(pod, "PodScheduled") != nullptr;
  });
  Delete(ref);
  return result;
}

AssertionResult LiveBehaviour::Create(const ObjectRef& ref) {
  const Json& manifest = behaviour_.manifests.at(ref);
  Answer answer;
  // Admission learns of priority classes, and of the end of a former object, a moment later.
  const auto created = [&] {
    answer =
        api_.Call("POST", ref.CollectionPath() + "?fieldValidation=Strict", manifest.Compact());
    const bool stays = ref.kind == "Namespace" && answer.status == 409;
    return answer.ok() || stays || (answer.status != 403 && answer.status != 409);
  };
  AssertionResult result =
      Eventually(absl::StrCat(ref.Text(), " created"), created, [&] { return answer.text; });
  if (!result) return result;
  if (ref.kind == "Namespace") {
    Json labels = Json::Object();
    if (const Json* const given = manifest.At({"metadata", "labels"})) labels = *given;
    Json metadata = Json::Object();
    metadata.Set("metadata", Json::Object().Set("labels", std::move(labels)));
    return Patch(ref, metadata);
  }
  if (!answer.ok()) return AssertionFailure() << ref.Text() << ": " << answer.text;
  made_.push_back(ref);
  const Json* const status = manifest.Find("status");
  if (status == nullptr) return AssertionSuccess();
  Json patch = Json::Object();
  patch.Set("status", *status);
  return Patch(ref, patch);
}

AssertionResult LiveBehaviour::Patch(const ObjectRef& ref, const Json& patch) {
  Json main = Json::Object(), status = Json::Object();
  for (const auto& [key, value] : patch.fields()) {
    (key == "status" ? status : main).Append(key, value);
  }
  for (const auto& [path, part] :
       {std::pair(ref.Path(), &main), std::pair(ref.Path() + "/status", &status)}) {
    if (part->fields().empty()) continue;
    const Answer answer = api_.Call("PATCH", path, part->Compact(), kube::kMergePatch);
    if (!answer.ok()) return AssertionFailure() << "PATCH " << path << ": " << answer.text;
  }
  return AssertionSuccess();
}

void LiveBehaviour::Delete(const ObjectRef& ref) {
  const Json object = api_.Get(ref.Path()).body;
  if (object.At({"metadata", "finalizers"}) != nullptr) {
    api_.Merge(ref.Path(), R"({"metadata":{"finalizers":null}})");
  }
  api_.Delete(ref.Path());
}

Seen LiveBehaviour::WorkAndSee() {
  Seen seen;
  for (const Json& pod : api_.List("/api/v1/pods")) {
    BeKubeletOf(pod);
    const std::string key = KeyOf(pod);
    if (IsEvicted(pod)) {
      evicted_.insert(key);
      continue;
    }
    SeenPod& seen_pod = seen.pods[key];
    seen_pod.node = pod.TextAt({"spec", "nodeName"});
    if (seen_pod.node.empty()) seen_pod.wait = WaitOf(pod);
  }
  for (const Json& node : api_.List(kNodes)) {
    const Json* const labels = node.At({"metadata", "labels"});
    if (labels == nullptr) continue;
    for (const auto& [key, value] : labels->fields()) {
      seen.node_labels[node.TextAt({"metadata", "name"})][key] = value.text();
    }
  }
  seen.evicted = evicted_;
  return seen;
}

void LiveBehaviour::BeKubeletOf(const Json& pod) {
  const std::string path =
      absl::StrCat("/api/v1/namespaces/", pod.TextAt({"metadata", "namespace"}), "/pods/",
                   pod.TextAt({"metadata", "name"}));
  if (IsEvicted(pod)) return api_.Delete(path);
  const bool is_new = !pod.TextAt({"spec", "nodeName"}).empty() &&
                      pod.TextAt({"metadata", "deletionTimestamp"}).empty() &&
                      pod.TextAt({"status", "phase"}) == "Pending";
  if (!is_new) return;
  // It may have been deleted since; then there is nothing to run.
  api_.Call("PATCH", path + "/status",
            R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})",
            kube::kStrategicMergePatch);
}

std::optional<Wait> LiveBehaviour::WaitOf(const Json& pod) {
  const Json* const condition = FindCondition(pod, "PodScheduled");
  if (scheduler_ == Scheduler::kFairlead) return VerdictOf(pod, condition);
  if (condition == nullptr || condition->TextAt({"status"}) != "False") return std::nullopt;
  Wait wait;
  wait.is_gated = condition->TextAt({"reason"}) == "SchedulingGated";
  wait.message = condition->TextAt({"message"});
  wait.reasons = {wait.message};
  return wait;
}

std::optional<Wait> LiveBehaviour::VerdictOf(const Json& pod, const Json* condition) {
  const Json* const annotations = pod.At({"metadata", "annotations"});
  if (annotations == nullptr) return std::nullopt;
  Json verdict;
  if (const Json* const group = annotations->Find(model::kPodGroupAnnotation)) {
    const Json object = api_.Get(absl::StrCat(kGroups, "/", group->text())).body;
    if (const Json* const status = object.At({"status", "schedulability"})) verdict = *status;
  } else if (const Json* const text = annotations->Find(model::kVerdictAnnotation)) {
    if (auto parsed = Json::Parse(text->text()); parsed.ok()) verdict = *std::move(parsed);
  }
  if (!verdict.is_object()) return std::nullopt;
  Wait wait;
  wait.code = verdict.TextAt({"code"});
  if (condition != nullptr) wait.message = condition->TextAt({"message"});
  if (const Json* const predicates = verdict.Find("predicates")) {
    for (const Json& predicate : predicates->items()) {
      wait.reasons.push_back(predicate.TextAt({"reason"}));
    }
  }
  return wait;
}

}  // namespace fairlead::integration
