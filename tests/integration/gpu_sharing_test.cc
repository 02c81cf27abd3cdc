// Shared GPUs on a real API server, from the pod that requests half a GPU to the environment of its
// container. There is no kubelet: the test runs the program of the reservation pods, with its own
// libnvidia-ml.
#include <signal.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kReserved[] = "/api/v1/namespaces/kai-resource-reservation/pods";
constexpr char kReservationManifest[] = FAIRLEAD_SOURCE_DIR "/manifests/base/gpu-reservation.yaml";
constexpr char kPolicyManifest[] = FAIRLEAD_SOURCE_DIR "/manifests/gpu-sharing/policy.yaml";

// The collection in which objects of a kind are created.
std::string CollectionOf(const Json& object) {
  static const auto& collections = *new std::map<std::string, std::string>{
      {"Namespace", "/api/v1/namespaces"},
      {"ServiceAccount", "/api/v1/namespaces/kai-resource-reservation/serviceaccounts"},
      {"MutatingAdmissionPolicy",
       "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"},
      {"MutatingAdmissionPolicyBinding",
       "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"},
      {"ValidatingAdmissionPolicy",
       "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"},
      {"ValidatingAdmissionPolicyBinding",
       "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"},
  };
  const auto found = collections.find(object.TextAt({"kind"}));
  return found == collections.end() ? "" : found->second;
}

class GpuSharingTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Install(kReservationManifest);
    Forget();
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    Forget();
    for (const auto& path : installed_) api().Delete(path);
  }
  // Skips kinds that the tests do not need (rights).
  void Install(const char* manifest, bool for_this_test = false) {
    for (const Json& object : ObjectsOf(manifest)) {
      const std::string collection = CollectionOf(object);
      if (collection.empty()) continue;
      const Answer answer = api().Call("POST", collection, object.Compact());
      EXPECT_TRUE(answer.ok() || answer.status == 409) << answer.text;
      if (for_this_test)
        installed_.push_back(Path(collection, object.TextAt({"metadata", "name"})));
    }
  }
  void Forget() {
    for (const Json& pod : Reservations()) api().Delete(Path(kReserved, NameOf(pod)));
    EXPECT_TRUE(Eventually("no reservations", [this] { return Reservations().empty(); }));
  }

  static std::string NameOf(const Json& object) { return object.TextAt({"metadata", "name"}); }
  static std::string UidOf(const Json& object) { return object.TextAt({"metadata", "uid"}); }
  std::vector<Json> Reservations() { return api().List(kReserved); }
  // The only reservation pod, once it exists.
  Json TheReservation() {
    EXPECT_TRUE(Eventually("a reservation pod", [this] { return Reservations().size() == 1; }));
    const std::vector<Json> there = Reservations();
    return there.size() == 1 ? there[0] : Json();
  }
  Json MakeShare(const std::string& name, const std::string& fraction = "0.5",
                 const std::string& more = "") {
    return api().Create(
        kPods,
        absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                     R"(","labels":{"kai.scheduler/queue":"team"},"annotations":{"gpu-fraction":")",
                     fraction, "\"", more, R"(}},"spec":{"schedulerName":"fairlead",)",
                     R"("containers":[{"name":"main","image":"registry.example/i:1"},)",
                     R"({"name":"second","image":"registry.example/i:1",)",
                     R"("env":[{"name":"OWN","value":"1"},)",
                     R"({"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]}})"));
  }
  // Runs the container of a reservation pod with this GPU, as the kubelet would.
  ChildProcess& RunIndexProgram(const Json& reservation, const std::string& gpu) {
    Plane* const plane = Plane::Get();
    programs_.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{"/usr/bin/env", absl::StrCat("KUBECONFIG=", plane->kubeconfig()),
                                 absl::StrCat("POD_NAME=", NameOf(reservation)),
                                 "POD_NAMESPACE=kai-resource-reservation",
                                 "NVIDIA_VISIBLE_DEVICES=void",
                                 absl::StrCat("FAIRLEAD_NVML_LIBRARY=", FAIRLEAD_FAKE_NVML),
                                 absl::StrCat("FAKE_NVML_GPUS=", gpu), FAIRLEAD_GPU_INDEX},
        plane->NewFile("gpu-index.log")));
    return *programs_.back();
  }
  std::string AnnotationOf(const std::string& pod, const char* key) {
    return Pod(pod).TextAt({"metadata", "annotations", key});
  }
  bool EventSays(const std::string& pod, const std::string& reason, const std::string& text) {
    const auto events = api().List("/apis/events.k8s.io/v1/namespaces/default/events");
    return std::any_of(events.begin(), events.end(), [&](const Json& event) {
      return event.TextAt({"regarding", "name"}) == pod && event.TextAt({"reason"}) == reason &&
             absl::StrContains(event.TextAt({"note"}), text);
    });
  }

  std::vector<std::unique_ptr<ChildProcess>> programs_;
  std::vector<std::string> installed_;
};

// ---- failures
// -------------------------------------------------------------------------------

TEST_F(GpuSharingTest, ARefusedReservationIsSaidAndTriedAgain) {
  MakeNode("n1", 1);
  const std::string quotas = "/api/v1/namespaces/kai-resource-reservation/resourcequotas";
  api().Create(quotas, R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"none"},)"
                       R"("spec":{"hard":{"pods":"0"}}})");
  // The effect of the quota controller.
  api().Call("PATCH", Path(quotas, "none") + "/status",
             R"({"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}})", kube::kMergePatch);
  installed_.push_back(Path(quotas, "none"));
  Start({});
  MakeShare("a");
  ASSERT_TRUE(Eventually(
      "the reason", [this] { return EventSays("a", "FailedBinding", "exceeded quota: none"); }));
  EXPECT_EQ(NodeOf("a"), "");
  api().Delete(Path(quotas, "none"));
  RunIndexProgram(TheReservation(), "GPU-1");
  EXPECT_TRUE(Bound({"a"}));
}

TEST_F(GpuSharingTest, AReservationThatTheKubeletRefusesIsRemovedAndMadeAnew) {
  MakeNode("n1", 1);
  Start({});
  MakeShare("a");
  const Json first = TheReservation();
  const Answer failed = api().Call(
      "PATCH", Path(kReserved, NameOf(first)) + "/status",
      R"({"status":{"phase":"Failed","reason":"UnexpectedAdmissionError"}})", kube::kMergePatch);
  ASSERT_TRUE(failed.ok()) << failed.text;
  ASSERT_TRUE(Eventually("another one", [&] {
    const std::vector<Json> there = Reservations();
    return there.size() == 1 && UidOf(there[0]) != UidOf(first);
  }));
  EXPECT_TRUE(EventSays("a", "FailedBinding", "before it had its device"));
  EXPECT_EQ(NameOf(TheReservation()), NameOf(first)) << "the name follows from node and GPU";
  RunIndexProgram(TheReservation(), "GPU-1");
  EXPECT_TRUE(Bound({"a"}));
}

TEST_F(GpuSharingTest, WithoutAnyGpuTheProgramSaysSoAndEnds) {
  MakeNode("n1", 1);
  Start({});
  MakeShare("a");
  ChildProcess& program = RunIndexProgram(TheReservation(), "");
  EXPECT_EQ(program.Wait(kPatience), 1);
  EXPECT_TRUE(absl::StrContains(program.Log(), "NVML sees no GPU")) << program.Log();
  EXPECT_EQ(NodeOf("a"), "");
  EXPECT_EQ(VerdictOf("a"), "") << "it has its place, and waits for its device";
}

// ---- the whole way
// ---------------------------------------------------------------------------------

TEST_F(GpuSharingTest, TwoHalvesShareOneGpuAndItIsGivenBack) {
  MakeNode("n1", 1);
  const auto reservations = api().Watch(kReserved);
  Start({});
  MakeShare("a");
  const Json reservation = TheReservation();
  const std::string group = reservation.TextAt({"metadata", "labels", model::kGpuGroupLabel});
  EXPECT_NE(group, "");
  EXPECT_EQ(reservation.TextAt({"spec", "nodeName"}), "n1");
  EXPECT_EQ(NodeOf("a"), "");
  ChildProcess& program = RunIndexProgram(reservation, "GPU-4fa2");
  ASSERT_TRUE(Bound({"a"})) << program.Log();
  EXPECT_EQ(Pod("a").TextAt({"metadata", "labels", model::kGpuGroupLabel}), group);
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/visible-devices"), "GPU-4fa2");
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/gpu-portion"), "0.50");
  EXPECT_EQ(AnnotationOf("a", "received-resource-type"), "Fraction");

  MakeShare("b");
  ASSERT_TRUE(Bound({"b"}));
  EXPECT_EQ(AnnotationOf("b", "fairlead.dev/visible-devices"), "GPU-4fa2");
  MakeShare("c");
  ASSERT_TRUE(Eventually("no room for a third half", [this] { return !VerdictOf("c").empty(); }));
  api().Delete(Path(kPods, "c"));

  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(kPatience), 0) << program.Log();
  api().Delete(Path(kPods, "a"));
  api().Delete(Path(kPods, "b"));
  EXPECT_TRUE(Eventually("the reservation pod is asked to end", [&] {
    return reservations->Any(
        [](const Json& pod) { return pod.At({"metadata", "deletionTimestamp"}) != nullptr; });
  }));
  EXPECT_EQ(reservations->objects(), 1u);
}

TEST_F(GpuSharingTest, TwoDevicesForOnePod) {
  MakeNode("n1", 2);
  Start({});
  MakeShare("a", "0.3", R"(,"gpu-fraction-num-devices":"2")");
  ASSERT_TRUE(Eventually("two reservation pods", [this] { return Reservations().size() == 2; }));
  std::vector<Json> there = Reservations();
  std::sort(there.begin(), there.end(), [](const Json& x, const Json& y) {
    return x.TextAt({"metadata", "labels", model::kGpuGroupLabel}) <
           y.TextAt({"metadata", "labels", model::kGpuGroupLabel});
  });
  RunIndexProgram(there[0], "GPU-1");
  ASSERT_TRUE(Says(*programs_[0], "announced it"));
  EXPECT_EQ(NodeOf("a"), "");
  RunIndexProgram(there[1], "GPU-2");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/visible-devices"), "GPU-1,GPU-2");
  for (const Json& pod : there) {
    const std::string group = pod.TextAt({"metadata", "labels", model::kGpuGroupLabel});
    EXPECT_EQ(Pod("a").TextAt({"metadata", "labels", absl::StrCat("runai-gpu-group/", group)}),
              group);
  }
}

// ---- restarts
// --------------------------------------------------------------------------------------

TEST_F(GpuSharingTest, KilledBetweenReservationAndBindingNothingIsMadeTwice) {
  MakeNode("n1", 4);
  const auto reservations = api().Watch(kReserved);
  ChildProcess& first = Start({});
  MakeShare("a");
  const Json reservation = TheReservation();
  first.Kill();
  ChildProcess& program = RunIndexProgram(reservation, "GPU-4fa2");
  ASSERT_TRUE(Says(program, "announced it"));
  ASSERT_EQ(NodeOf("a"), "");
  Start({.identity = "fairlead-b"});
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/visible-devices"), "GPU-4fa2");
  EXPECT_EQ(Pod("a").TextAt({"metadata", "labels", model::kGpuGroupLabel}),
            reservation.TextAt({"metadata", "labels", model::kGpuGroupLabel}));
  EXPECT_EQ(reservations->objects(), 1u);
}

TEST_F(GpuSharingTest, KaisReservationIsUsedAndOneThatNoPodNamesIsRemoved) {
  MakeNode("n1", 2);
  const auto make = [this](const std::string& name, const std::string& group) {
    api().Create(
        kReserved,
        absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                     R"(","labels":{"app":"kai-resource-reservation","runai-gpu-group":")", group,
                     R"("},"annotations":{"run.ai/reserve_for_gpu_index":"GPU-)", group,
                     R"("}},"spec":{"nodeName":"n1","containers":[{"name":"resource-reservation",)",
                     R"("image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})"));
  };
  make("gpu-reservation-n1-abcde", "used");
  make("gpu-reservation-n1-fghij", "idle");
  MakeShare("kais");
  api().Merge(Path(kPods, "kais"), R"({"metadata":{"labels":{"runai-gpu-group":"used"}}})");
  ASSERT_EQ(BindPod("kais", "n1"), 201);
  Start({});
  MakeShare("a");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/visible-devices"), "GPU-used");
  EXPECT_TRUE(Eventually("the idle one is asked to end", [this] {
    return api()
               .Get(Path(kReserved, "gpu-reservation-n1-fghij"))
               .body.At({"metadata", "deletionTimestamp"}) != nullptr;
  }));
  EXPECT_EQ(api()
                .Get(Path(kReserved, "gpu-reservation-n1-abcde"))
                .body.At({"metadata", "deletionTimestamp"}),
            nullptr);
}

// ---- the containers' environment
// --------------------------------------------------------------------

class GpuPolicyTest : public GpuSharingTest {
 protected:
  void SetUp() override {
    GpuSharingTest::SetUp();
    Install(kPolicyManifest, /*for_this_test=*/true);
    // Policies take effect some time after they are written.
    ASSERT_TRUE(Eventually("the policies are in force", [this] {
      const Answer answer = api().Call("POST", std::string(kPods) + "?dryRun=All",
                                       PodText(R"("gpu-fraction":"2")", "fairlead"));
      const Answer mutated = api().Call("POST", std::string(kPods) + "?dryRun=All",
                                        PodText(R"("gpu-fraction":"0.5")", "fairlead"));
      return !answer.ok() && !EnvOf(mutated.body, "containers", "main").empty();
    }));
  }
  static std::string PodText(const std::string& annotations, const std::string& scheduler) {
    return absl::StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe","annotations":{)",
        annotations, R"(}},"spec":{"schedulerName":")", scheduler,
        R"(","initContainers":[{"name":"first","image":"i"}],)",
        R"("containers":[{"name":"main","image":"i"},{"name":"second","image":"i",)",
        R"("env":[{"name":"OWN","value":"1"},{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]}})");
  }
  // name=value or name<-field of a container, sorted.
  static std::vector<std::string> EnvOf(const Json& pod, const char* list, const char* container) {
    std::vector<std::string> env;
    const Json* const containers = pod.At({"spec", list});
    if (containers == nullptr) return env;
    for (const Json& each : containers->items()) {
      const Json* const variables = each.At({"env"});
      if (each.TextAt({"name"}) != container || variables == nullptr) continue;
      for (const Json& variable : variables->items()) {
        const std::string field = variable.TextAt({"valueFrom", "fieldRef", "fieldPath"});
        env.push_back(field.empty()
                          ? absl::StrCat(variable.TextAt({"name"}), "=", variable.TextAt({"value"}))
                          : absl::StrCat(variable.TextAt({"name"}), "<-", field));
      }
    }
    std::sort(env.begin(), env.end());
    return env;
  }
  Answer Try(const std::string& annotations, const std::string& scheduler = "fairlead") {
    return api().Call("POST", std::string(kPods) + "?dryRun=All", PodText(annotations, scheduler));
  }
};

const std::vector<std::string>& Injected() {
  static const auto& injected = *new std::vector<std::string>{
      "GPU_PORTION<-metadata.annotations['fairlead.dev/gpu-portion']",
      "NVIDIA_VISIBLE_DEVICES<-metadata.annotations['fairlead.dev/visible-devices']"};
  return injected;
}

TEST_F(GpuPolicyTest, WhatCannotRunAndWhatIsForgedIsRefused) {
  struct Row {
    const char* annotations;
    const char* why;
  };
  const Row rows[] = {
      {R"("gpu-fraction":"NaN")", "above 0 and below 1"},
      {R"("gpu-fraction":"1")", "above 0 and below 1"},
      {R"("gpu-fraction":"0.0")", "above 0 and below 1"},
      {R"("gpu-memory":"-5")", "whole number of MiB"},
      {R"("gpu-fraction":"0.5","gpu-memory":"5")", "only one"},
      {R"("gpu-fraction":"0.5","gpu-fraction-container-name":"none")", "name a container"},
      {R"("fairlead.dev/visible-devices":"all")", "written by the scheduler alone"},
  };
  for (const Row& row : rows) {
    const Answer answer = Try(row.annotations);
    EXPECT_EQ(answer.status, 422) << row.annotations;
    EXPECT_TRUE(absl::StrContains(answer.text, row.why)) << answer.text;
  }
  MakeShare("a");
  const Answer forged = api().Call(
      "PATCH", Path(kPods, "a"),
      R"({"metadata":{"annotations":{"fairlead.dev/visible-devices":"all"}}})", kube::kMergePatch);
  EXPECT_EQ(forged.status, 422) << forged.text;
}

TEST_F(GpuPolicyTest, TheContainerThatIsMeantReadsTheDevice) {
  Json pod = Try(R"("gpu-fraction":"0.5")").body;
  EXPECT_EQ(EnvOf(pod, "containers", "main"), Injected());
  EXPECT_EQ(EnvOf(pod, "containers", "second"),
            (std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=all", "OWN=1"}));

  pod = Try(R"("gpu-memory":"2000","gpu-fraction-container-name":"second")").body;
  std::vector<std::string> expected = Injected();
  expected.emplace_back("OWN=1");
  EXPECT_EQ(EnvOf(pod, "containers", "second"), expected);
  EXPECT_EQ(EnvOf(pod, "containers", "main"), std::vector<std::string>{});

  pod = Try(R"("gpu-fraction":".25","gpu-fraction-container-name":"first")").body;
  EXPECT_EQ(EnvOf(pod, "initContainers", "first"), Injected());
}

TEST_F(GpuPolicyTest, OtherPodsAreLeftAlone) {
  const std::vector<std::string> nothing;
  EXPECT_EQ(EnvOf(Try("").body, "containers", "main"), nothing);
  EXPECT_EQ(EnvOf(Try(R"("gpu-fraction":"0.5")", "default-scheduler").body, "containers", "main"),
            nothing);
  EXPECT_EQ(EnvOf(Try(R"("gpu-fraction":"0.5","runai/shared-gpu-configmap":"c")").body,
                  "containers", "main"),
            nothing);
}

TEST_F(GpuPolicyTest, ItsBindingIsLetThrough) {
  MakeNode("n1", 1);
  Start({});
  MakeShare("a");
  RunIndexProgram(TheReservation(), "GPU-4fa2");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(AnnotationOf("a", "fairlead.dev/visible-devices"), "GPU-4fa2");
  EXPECT_EQ(EnvOf(Pod("a"), "containers", "main"), Injected());
}

// With KAI's webhook: its config maps exist before the pod is bound.
TEST_F(GpuSharingTest, KaisConfigMapsAreWritten) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  MakeNode("n1", 1);
  Start({});
  api().Create(
      kPods,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"kai.scheduler/queue":)"
      R"("team"},"annotations":{"gpu-fraction":"0.5","runai/shared-gpu-configmap":)"
      R"("a-x-shared-gpu"}},"spec":{"schedulerName":"fairlead","volumes":[{"name":"v",)"
      R"("configMap":{"name":"a-x-shared-gpu-0"}}],"containers":[{"name":"c","image":"i",)"
      R"("envFrom":[{"configMapRef":{"name":"a-x-shared-gpu-0-evar"}}]}]}})");
  RunIndexProgram(TheReservation(), "GPU-4fa2");
  ASSERT_TRUE(Bound({"a"}));
  const Json map = api().Get(Path(maps, "a-x-shared-gpu-0")).body;
  EXPECT_EQ(map.TextAt({"data", "NVIDIA_VISIBLE_DEVICES"}), "GPU-4fa2");
  EXPECT_EQ(map.TextAt({"data", "GPU_PORTION"}), "0.50");
  EXPECT_EQ(map.At({"metadata", "ownerReferences"})->items().at(0).TextAt({"uid"}),
            UidOf(Pod("a")));
  EXPECT_EQ(api()
                .Get(Path(maps, "a-x-shared-gpu-0-evar"))
                .body.TextAt({"data", "NVIDIA_VISIBLE_DEVICES"}),
            "GPU-4fa2");
  installed_ = {Path(maps, "a-x-shared-gpu-0"), Path(maps, "a-x-shared-gpu-0-evar")};
}

}  // namespace
}  // namespace fairlead::integration
