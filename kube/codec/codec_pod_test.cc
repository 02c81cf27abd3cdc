// What both decoders of pods and nodes share: effective requests, images and KAI's GPU annotations.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/effective_requests.h"
#include "kube/codec/pod_draft.h"
#include "kube/codec/testing/core_subset.pb.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using model::ResourceList;

using Containers = std::vector<ContainerResources>;

PodResources Of(Containers containers, Containers init_containers = {}, ResourceList overhead = {},
                ResourceList pod_requests = {}, ResourceList pod_limits = {}) {
  return {std::move(containers), std::move(init_containers), std::move(overhead),
          std::move(pod_requests), std::move(pod_limits)};
}

TEST(EffectiveRequestsTest, Table) {
  struct Case {
    const char* name;
    PodResources resources;
    ResourceList want;
  };
  const Case cases[] = {
      {"nothing", Of({}), {}},
      {"containers add up",
       Of({{false, {{"cpu", 100}}, {}}, {false, {{"cpu", 200}, {"memory", 5}}, {}}}),
       {{"cpu", 300}, {"memory", 5}}},
      {"an absent request is the limit, an explicit zero is zero",
       Of({{false, {{"cpu", 0}}, {{"cpu", 900}, {"memory", 7}}}}),
       {{"memory", 7}}},
      {"a large init container decides",
       Of({{false, {{"cpu", 100}, {"memory", 50}}, {}}},
          {{false, {{"cpu", 700}}, {}}, {false, {{"memory", 20}}, {}}}),
       {{"cpu", 700}, {"memory", 50}}},
      {"a sidecar runs beside the containers and beside later init containers only",
       Of({{false, {{"cpu", 100}}, {}}},
          {{false, {{"cpu", 400}}, {}}, {true, {{"cpu", 50}}, {}}, {false, {{"cpu", 380}}, {}}}),
       {{"cpu", 430}}},
      {"overhead is added last",
       Of({{false, {{"cpu", 100}}, {}}}, {}, {{"cpu", 10}, {"memory", 1}}),
       {{"cpu", 110}, {"memory", 1}}},
      {"pod-level requests replace cpu and memory, not devices",
       Of({{false, {{"cpu", 100}, {"nvidia.com/gpu", 1000}}, {}}}, {}, {{"cpu", 5}},
          {{"cpu", 900}, {"nvidia.com/gpu", 9000}}),
       {{"cpu", 905}, {"nvidia.com/gpu", 1000}}},
      {"pod-level limits stand in only where the containers say nothing",
       Of({{false, {{"cpu", 100}}, {}}}, {}, {}, {},
          {{"cpu", 900}, {"hugepages-2Mi", 4}, {"memory", 8}}),
       {{"cpu", 100}, {"hugepages-2Mi", 4}, {"memory", 8}}},
      {"pods is not a request", Of({{false, {{"pods", 3}}, {}}}), {}},
      {"sums saturate",
       Of({{false, {{"memory", INT64_MAX}}, {}}, {false, {{"memory", 1}}, {}}}),
       {{"memory", INT64_MAX}}},
  };
  for (const Case& c : cases) {
    PodResources resources = c.resources;
    EXPECT_EQ(EffectiveRequests(std::move(resources)).requests, c.want) << c.name;
  }
}

// The pod in the wire format, in which a quantity is a message.
std::string WireOfPod(const std::string& json) {
  const std::string text =
      std::regex_replace(json, std::regex(R"("cpu":("[^"]*"))"), R"("cpu":{"string":$1})");
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // apiVersion and kind
  testing::core::Pod pod;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &pod, options).ok()) << text;
  return testing::Envelope("v1", "Pod", pod.SerializeAsString());
}

TEST(EffectiveRequestsTest, WhileAPodIsResized) {
  struct Case {
    const char* name;
    const char* spec;
    const char* status;
    ResourceList want;
  };
  constexpr char kOne[] = R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})";
  constexpr char kWithInit[] =
      R"({"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}],"initContainers":[)"
      R"({"name":"i","resources":{"requests":{"cpu":"2"}}},)"
      R"({"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}]})";
  constexpr char kPodLevel[] =
      R"({"containers":[{"name":"a","resources":{}}],"resources":{"requests":{"cpu":"4"}}})";
  const Case cases[] = {
      {"no status", kOne, "{}", {{"cpu", 1000}}},
      {"allocated alone says nothing",
       kOne,
       R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"8"}}]})",
       {{"cpu", 1000}}},
      {"a shrink that the kubelet has not begun",
       kOne,
       R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"4"},)"
       R"("resources":{"requests":{"cpu":"4"}}}]})",
       {{"cpu", 4000}}},
      {"a shrink that is granted, and in force by half",
       kOne,
       R"({"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"1"},)"
       R"("resources":{"requests":{"cpu":"3"}}}]})",
       {{"cpu", 3000}}},
      {"growth that waits",
       kOne,
       R"({"conditions":[{"type":"PodResizePending","status":"True","reason":"Deferred"}],)"
       R"("containerStatuses":[{"name":"a","allocatedResources":{"cpu":"500m"},)"
       R"("resources":{"requests":{"cpu":"500m"}}}]})",
       {{"cpu", 1000}}},
      {"growth that is infeasible",
       kOne,
       R"({"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],)"
       R"("containerStatuses":[{"name":"a","allocatedResources":{"cpu":"500m"},)"
       R"("resources":{"requests":{"cpu":"500m"}}}]})",
       {{"cpu", 500}}},
      {"a status of some other container",
       kOne,
       R"({"containerStatuses":[{"name":"b","resources":{"requests":{"cpu":"9"}}}]})",
       {{"cpu", 1000}}},
      {"a sidecar by its status, an init container by its spec",
       kWithInit,
       R"({"initContainerStatuses":[{"name":"i","resources":{"requests":{"cpu":"9"}}},)"
       R"({"name":"s","resources":{"requests":{"cpu":"3"}}}]})",
       {{"cpu", 4000}}},
      {"the pod as a whole",
       kPodLevel,
       R"({"allocatedResources":{"cpu":"6"},"resources":{"requests":{"cpu":"5"}}})",
       {{"cpu", 6000}}},
      {"the pod as a whole, infeasible",
       kPodLevel,
       R"({"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],)"
       R"("allocatedResources":{"cpu":"2"},"resources":{"requests":{"cpu":"2"}}})",
       {{"cpu", 2000}}},
  };
  for (const Case& c : cases) {
    const std::string text = absl::StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":)",
        c.spec, R"(,"status":)", c.status, "}");
    for (const bool wire : {false, true}) {
      SCOPED_TRACE(absl::StrCat(c.name, wire ? ", protobuf" : ", JSON"));
      absl::StatusOr<Object> pod = wire
                                       ? DecodeObject(model::Kind::kPod, kProtobuf, WireOfPod(text))
                                       : DecodeObject(model::Kind::kPod, kJson, text);
      ASSERT_TRUE(pod.ok()) << pod.status();
      EXPECT_EQ(std::get<model::Pod>(*pod).spec.requests, c.want);
      EXPECT_EQ(std::get<model::Pod>(*pod).invalid, "");
    }
  }
}

TEST(EffectiveRequestsTest, ScoringTable) {
  constexpr int64_t kMib = int64_t{1} << 20;
  struct Case {
    const char* name;
    PodResources resources;
    int64_t cpu_milli, memory_mib;
    int64_t waiting_cpu_milli = -1, waiting_memory_mib = -1;  // -1: the same
  };
  const Case cases[] = {
      {"no containers", Of({}), 0, 0},
      {"a container that says nothing", Of({{}}), 100, 200},
      {"each container by itself",
       Of({{false, {{"cpu", 300}}, {}}, {false, {{"memory", 5 * kMib}}, {}}, {}}), 500, 405},
      {"zero is said, and so is a limit", Of({{false, {{"cpu", 0}}, {{"memory", 7 * kMib}}}}), 0,
       7},
      {"init containers and sidecars, too", Of({{}}, {{true, {}, {}}, {false, {{"cpu", 350}}, {}}}),
       450, 400},
      {"a sidecar after the init container",
       Of({{}}, {{false, {{"cpu", 350}}, {}}, {true, {}, {}}}), 350, 400},
      {"overhead is added", Of({{}}, {}, {{"cpu", 10}, {"memory", kMib}}), 110, 201},
      {"a pod-level request replaces, one resource at a time",
       Of({{}, {}}, {}, {{"cpu", 5}}, {{"cpu", 50}}), 55, 400, 205, -1},
      {"what some container says is all there is besides",
       Of({{false, {{"memory", kMib}}, {}}, {}}, {}, {}, {{"cpu", 50}}), 50, 1, 200, 201},
      {"so is overhead", Of({{}}, {}, {{"memory", kMib}}, {{"cpu", 50}}), 50, 1, 100, 201},
      {"pod-level limits count as requests",
       Of({{false, {{"memory", kMib}}, {}}, {}}, {}, {}, {}, {{"cpu", 50}}), 50, 1, 200, 201},
      {"pod-level limits of something else", Of({{}, {}}, {}, {}, {}, {{"hugepages-2Mi", 4}}), 200,
       400},
      {"sums saturate", Of({{false, {{"cpu", INT64_MAX}}, {}}, {}}), INT64_MAX, 400},
  };
  for (const Case& c : cases) {
    PodResources resources = c.resources;
    const model::ScoringRequests scoring = EffectiveRequests(std::move(resources)).scoring;
    EXPECT_EQ(scoring.cpu_milli, c.cpu_milli) << c.name;
    EXPECT_EQ(scoring.memory_bytes, c.memory_mib * kMib) << c.name;
    EXPECT_EQ(scoring.WaitingCpu(), c.waiting_cpu_milli < 0 ? c.cpu_milli : c.waiting_cpu_milli)
        << c.name;
    EXPECT_EQ(scoring.WaitingMemory(),
              (c.waiting_memory_mib < 0 ? c.memory_mib : c.waiting_memory_mib) * kMib)
        << c.name;
  }
}

TEST(NormalizedImageTest, Table) {
  const char* const cases[][2] = {
      {"nginx", "nginx:latest"},
      {"nginx:1", "nginx:1"},
      {"r.io/nginx", "r.io/nginx:latest"},
      {"r.io:5000/nginx", "r.io:5000/nginx:latest"},
      {"r.io:5000/nginx:1", "r.io:5000/nginx:1"},
      {"nginx@sha256:abc", "nginx@sha256:abc"},
      {":", ":"},
      {"/", "/:latest"},
  };
  for (const auto& [image, want] : cases) EXPECT_EQ(NormalizedImage(image), want);
}

struct GpuCase {
  const char *fraction, *memory, *devices;
  int64_t fraction_milli, memory_mib, device_count;
  const char* problem;  // the key that the problem names; null: none
};

TEST(GpuShareTest, Table) {
  const GpuCase cases[] = {
      {"0.5", nullptr, nullptr, 500, 0, 1, nullptr},
      {"0.25", nullptr, "4", 250, 0, 4, nullptr},
      {".7", nullptr, nullptr, 700, 0, 1, nullptr},
      {"0.0001", nullptr, nullptr, 1, 0, 1, nullptr},
      {"0.99999", nullptr, nullptr, 999, 0, 1, nullptr},
      {"0.3333", nullptr, nullptr, 333, 0, 1, nullptr},
      {"5e-1", nullptr, nullptr, 500, 0, 1, nullptr},
      {nullptr, "2048", nullptr, 0, 2048, 1, nullptr},
      {nullptr, "2048", "2", 0, 2048, 2, nullptr},
      {"0", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"-0.5", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"1", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"1.0", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"7", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"NaN", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"Inf", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {" 0.5", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"0.5x", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"500m", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {"1e400", nullptr, nullptr, 0, 0, 1, "gpu-fraction"},
      {nullptr, "0", nullptr, 0, 0, 1, "gpu-memory"},
      {nullptr, "-5", nullptr, 0, 0, 1, "gpu-memory"},
      {nullptr, "1.5", nullptr, 0, 0, 1, "gpu-memory"},
      {nullptr, "2Gi", nullptr, 0, 0, 1, "gpu-memory"},
      {nullptr, "99999999999999999999", nullptr, 0, 0, 1, "gpu-memory"},
      {"0.5", "2048", nullptr, 0, 0, 1, "gpu-fraction"},
      {nullptr, nullptr, "2", 0, 0, 1, "gpu-fraction-num-devices"},
      {"0.5", nullptr, "0", 500, 0, 1, "gpu-fraction-num-devices"},
      {"0.5", nullptr, "two", 500, 0, 1, "gpu-fraction-num-devices"},
      {"0.5", nullptr, "1.0", 500, 0, 1, "gpu-fraction-num-devices"},
  };
  for (const GpuCase& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.fraction ? c.fraction : "-", " ", c.memory ? c.memory : "-", " ",
                              c.devices ? c.devices : "-"));
    model::StringMap annotations;
    if (c.fraction != nullptr) annotations.Set("gpu-fraction", c.fraction);
    if (c.memory != nullptr) annotations.Set("gpu-memory", c.memory);
    if (c.devices != nullptr) annotations.Set("gpu-fraction-num-devices", c.devices);
    Problems problems;
    const model::GpuShare share = ParseGpuShare(annotations, {}, problems);
    EXPECT_EQ(share.fraction_milli, c.fraction_milli);
    EXPECT_EQ(share.memory_mib, c.memory_mib);
    EXPECT_EQ(share.devices, c.device_count);
    if (c.problem == nullptr) {
      EXPECT_EQ(problems.Text(), "");
    } else {
      const std::string prefix = absl::StrCat("metadata.annotations[", c.problem, "]: ");
      EXPECT_EQ(problems.Text().substr(0, prefix.size()), prefix);
    }
  }
}

model::Pod FromJson(absl::string_view json) {
  absl::StatusOr<Object> object = DecodeObject(model::Kind::kPod, kJson, json);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<model::Pod>(*object) : model::Pod();
}

TEST(PodJsonTest, GpuShareAndItsConflicts) {
  const model::Pod shared =
      FromJson(R"({"metadata":{"name":"p","annotations":{"gpu-fraction":"0.5","other":"x"}}})");
  EXPECT_EQ(shared.spec.gpu_share.fraction_milli, 500);
  EXPECT_EQ(shared.invalid, "");
  EXPECT_EQ(shared.meta.annotations.size(), 1u);
  const model::Pod both = FromJson(
      R"({"metadata":{"annotations":{"gpu-fraction":"0.5"}},
          "spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}]}})");
  EXPECT_FALSE(both.spec.gpu_share.IsSet()) << "it holds a whole GPU if it runs";
  EXPECT_EQ(both.invalid,
            "metadata.annotations[gpu-fraction]: cannot be combined with a request for "
            "nvidia.com/gpu");
}

TEST(PodJsonTest, GpuShareGoesWithNoOtherGpu) {
  for (const char* gpu : {"amd.com/gpu", "nvidia.com/mig-1g.10gb"}) {
    const model::Pod pod = FromJson(absl::StrCat(
        R"({"metadata":{"annotations":{"gpu-memory":"500"}},"spec":{"containers":[{"resources":{"limits":{")",
        gpu, R"(":1}}}]}})"));
    EXPECT_EQ(pod.invalid,
              absl::StrCat(
                  "metadata.annotations[gpu-memory]: cannot be combined with a request for ", gpu));
  }
}

TEST(PodJsonTest, LegacyMig) {
  const model::Pod pod = FromJson(
      R"({"metadata":{"annotations":{"nvidia.com/mig-1g.10gb":"2","nvidia.com/gpu.x":"1"}}})");
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.spec.legacy_mig, (ResourceList{{"nvidia.com/mig-1g.10gb", 2}}));
  const model::Pod odd =
      FromJson(R"({"metadata":{"annotations":{"nvidia.com/mig-1g.10gb":"two"}}})");
  EXPECT_EQ(odd.invalid,
            "metadata.annotations[nvidia.com/mig-1g.10gb]: \"two\" must be a whole number above 0");
  EXPECT_TRUE(odd.spec.legacy_mig.empty());
}

TEST(PodJsonTest, ImagesInUpstreamsOrder) {
  const model::Pod pod = FromJson(
      R"({"spec":{"volumes":[{"name":"v","image":{"reference":"data"}},{"name":"w","image":{}}],
          "containers":[{"image":"a"},{},{"image":"b:1"},{"image":""}],
          "initContainers":[{"image":"i"}]}})");
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.images.names,
            (std::vector<std::string>{"i:latest", "a:latest", "b:1", "data:latest"}));
  EXPECT_EQ(pod.images.containers, 5);
}

TEST(PodJsonTest, NumbersAreQuantitiesToo) {
  const model::Pod pod = FromJson(
      R"({"spec":{"containers":[{"resources":{"requests":{"cpu":1.5,"memory":1e9,"nvidia.com/gpu":"2"}}}]}})");
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.spec.requests,
            (ResourceList{{"cpu", 1500}, {"memory", 1000000000}, {"nvidia.com/gpu", 2000}}));
}

TEST(PodJsonTest, WrongTypesAreProblemsOfThisPod) {
  struct Case {
    const char *json, *want;
  };
  const Case cases[] = {
      {R"({"spec":{"priority":"high"}})", "spec.priority: must be a number, not a string"},
      {R"({"spec":{"priority":1.5}})", "spec.priority: \"1.5\" is not an integer of 32 bits"},
      {R"({"spec":{"priority":3000000000}})",
       "spec.priority: \"3000000000\" is not an integer of 32 bits"},
      {R"({"spec":[]})", "spec: must be an object, not a list"},
      {R"({"spec":{"containers":{}}})", "spec.containers: must be a list, not an object"},
      {R"({"spec":{"nodeSelector":{"a":1}}})",
       "spec.nodeSelector[a]: must be a string, not a number"},
      {R"({"spec":{"overhead":{"cpu":true}}})",
       "spec.overhead[cpu]: must be a number or a string, not true or false"},
      {R"({"metadata":{"creationTimestamp":"yesterday"}})",
       "metadata.creationTimestamp: \"yesterday\" is not a time (RFC 3339)"},
      {R"({"spec":{"hostNetwork":"yes"}})",
       "spec.hostNetwork: must be true or false, not a string"},
      {R"({"spec":{"topologySpreadConstraints":[{"maxSkew":0}]}})",
       "spec.topologySpreadConstraints[0].maxSkew: 0 must be at least 1"},
      {R"({"spec":{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0}]}}}})",
       "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0 "
       "must "
       "be between 1 and 100"},
      {R"({"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Is"}]}]}}}}})",
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0]"
       ".matchExpressions[0].operator: \"Is\" is none of In, NotIn, Exists, DoesNotExist, Gt, Lt"},
      {R"({"spec":{"containers":[{"image":7}]}})",
       "spec.containers[0].image: must be a string, not a number"},
      {R"({"spec":{"volumes":[{"image":{"reference":[]}}]}})",
       "spec.volumes[0].image.reference: must be a string, not a list"},
      {R"({"spec":{"containers":[{"image":null}],"volumes":[{"image":null}]}})", ""},
      {R"({"spec":null,"status":{"phase":null},"metadata":{"labels":null}})", ""},
  };
  for (const Case& c : cases) EXPECT_EQ(FromJson(c.json).invalid, c.want) << c.json;
}

TEST(NodeJsonTest, Images) {
  struct Case {
    const char* images;
    std::vector<model::NodeImage> want;
    const char* invalid;
  };
  const Case cases[] = {
      {"null", {}, ""},
      {R"([{"names":["b:1","a@sha256:0"],"sizeBytes":7},{"names":null,"sizeBytes":5},{}])",
       {{"a@sha256:0", 7}, {"b:1", 7}},
       ""},
      {R"([{"names":["b:1"],"sizeBytes":7},{"sizeBytes":8,"names":["b:1","a:1","a:1",""]}])",
       {{"a:1", 8}, {"b:1", 7}},
       ""},
      {R"([{"names":["a:1",null]}])", {{"a:1", 0}}, ""},
      {R"([{"names":[3,"a:1"],"sizeBytes":"7"}])",
       {{"a:1", 0}},
       "status.images[0].names[0]: must be a string, not a number; "
       "status.images[0].sizeBytes: must be a number, not a string"},
      {R"([7])", {}, "status.images[0]: must be an object, not a number"},
      {R"([{"names":["a:1"],"sizeBytes":1e30}])",
       {{"a:1", 0}},
       "status.images[0].sizeBytes: \"1e30\" is not an integer of 64 bits"},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<Object> object = DecodeObject(
        model::Kind::kNode, kJson, absl::StrCat(R"({"status":{"images":)", c.images, "}}"));
    ASSERT_TRUE(object.ok()) << object.status();
    const auto& node = std::get<model::Node>(*object);
    EXPECT_TRUE(node.images == c.want) << c.images;
    EXPECT_EQ(node.invalid, c.invalid);
  }
}

TEST(PodJsonTest, MalformedMessages) {
  for (const char* json :
       {"", "null", "[]", "7", "\"x\"", "{", "}", "{}}", "{} {}", "{\"a\":}", "{\"spec\":{]}",
        "{\"spec\":nul}", "{\"metadata\":{\"name\":\"x}}", "{\"metadata\":{\"name\":\"\xFF\"}}",
        "{\"kind\":\"Status\"}", "{\"kind\":7}"}) {
    EXPECT_EQ(DecodeObject(model::Kind::kPod, kJson, json).status().code(),
              absl::StatusCode::kInvalidArgument)
        << json;
  }
  for (const char* json :
       {"{\"items\":[7]}", "{\"items\":[null]}", "{\"kind\":\"Status\"}", "{}"}) {
    EXPECT_EQ(DecodeList(model::Kind::kPod, kJson, json).status().code(),
              absl::StatusCode::kInvalidArgument)
        << json;
  }
  EXPECT_TRUE(
      DecodeList(model::Kind::kPod, kJson, R"({"items":null,"metadata":{"resourceVersion":"1"}})")
          .ok());
}

}  // namespace
}  // namespace fairlead::kube
