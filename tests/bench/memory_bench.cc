// The cost of a large cluster: memory when all of it is known, and the time to read it.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/big_load.h"
#include "tests/bench/big_pods.h"

namespace fairlead::bench {
namespace {

constexpr int64_t kMemoryNodes = 5000;
constexpr int64_t kMemoryPods = 100'000;

}  // namespace

void Memory5k100kChild(bool groups) {
  LoopCluster cluster;
  cluster.Add(model::testing::MakeQueue("research", "", model::kUnlimited, model::kUnlimited));
  for (int q = 0; q < 20; ++q) {
    cluster.Add(
        model::testing::MakeQueue(absl::StrCat("team-", q), "research", 100, model::kUnlimited));
  }
  // The first page warms up what is allocated once.
  (void)PodListBody(PodItems(0, kBigPage));
  const double empty = MemoryMib("VmRSS");
  double seconds = LoadBig(cluster, model::Kind::kNode, kMemoryNodes);
  const double nodes = MemoryMib("VmRSS");
  if (groups) seconds += LoadBig(cluster, model::Kind::kPodGroup, kMemoryPods);
  seconds += LoadBig(cluster, model::Kind::kPod, kMemoryPods, groups);
  cluster.Sync();
  const double loaded = MemoryMib("VmRSS");
  const Stopwatch watch;
  const core::StepResult result = cluster.Step();
  const double step = watch.Seconds();
  cluster.Confirm(result);
  std::printf("empty=%f nodes=%f loaded=%f decided=%f peak=%f load=%f step=%f\n", empty, nodes,
              loaded, MemoryMib("VmRSS"), MemoryMib("VmHWM"), seconds, step);
}

namespace {

void Memory5k100kWith(Run& run, bool groups) {
  const std::string name = NameOf("memory_5k_100k", groups);
  ChildFigures figures = RunChildren(name, run.repetitions);
  auto each = [&](const char* of, const char* less) {
    std::vector<double> bytes;
    for (size_t i = 0; i < figures[of].size(); ++i) {
      bytes.push_back((figures[of][i] - figures[less][i]) * 1048576);
    }
    return bytes;
  };
  std::vector<double> by_pod = each("loaded", "nodes");
  for (double& value : by_pod) value /= kMemoryPods;
  std::vector<double> by_node = each("nodes", "empty");
  for (double& value : by_node) value /= kMemoryNodes;
  // KAI's scheduler at 5,000 nodes and 10,000 pods (measured facts, section 1 table e).
  run.report.Add({name, "MiB", Better::kLower, figures["decided"], 300,
                  Rival{"KAI peak, 10,000 pods", 1009}, std::nullopt,
                  "resident after the first decision"});
  run.report.Add({name + "/peak", "MiB", Better::kLower, figures["peak"], std::nullopt,
                  std::nullopt, std::nullopt, "pages of 500 in flight included"});
  run.report.Add({name + "/bytes_per_pod", "bytes", Better::kLower, by_pod, std::nullopt,
                  std::nullopt, std::nullopt, ""});
  run.report.Add({name + "/bytes_per_node", "bytes", Better::kLower, by_node, std::nullopt,
                  std::nullopt, std::nullopt, "48 labels a node"});
  run.report.Add({name + "/load", "s", Better::kLower, figures["load"], 5, std::nullopt,
                  std::nullopt, "decode and apply, without the network"});
  run.report.Add({name + "/first_step", "s", Better::kLower, figures["step"], std::nullopt,
                  std::nullopt, std::nullopt, "5,000 pods waiting"});
}

}  // namespace

void Memory5k100k(Run& run) {
  for (const bool groups : {false, true}) Memory5k100kWith(run, groups);
}

// Decodes one list of all pods, and one of their PodGroups, as a program does that has just
// started: its memory is new.
void DecodePods100kChild(bool groups) {
  std::string body;
  {
    std::string items;
    for (int64_t first = 0; first < kMemoryPods; first += kBigPage) {
      items += PodItems(first, kBigPage, groups);
    }
    body = PodListBody(items);
  }
  const std::string group_body = groups ? PodGroupListBody(0, kMemoryPods) : "";
  const Stopwatch watch;
  auto list = kube::DecodeList(model::Kind::kPod, kube::kProtobuf, body);
  const double seconds = watch.Seconds();
  const double cpu = watch.CpuSeconds();
  Require(list.ok() && list->items.size() == kMemoryPods, "pods are missing");
  double group_seconds = 0;
  if (groups) {
    const Stopwatch of_groups;
    auto group_list = kube::DecodeList(model::Kind::kPodGroup, kube::kJson, group_body);
    group_seconds = of_groups.Seconds();
    Require(group_list.ok() && group_list->items.size() == kMemoryPods, "PodGroups are missing");
  }
  std::printf("seconds=%f cpu=%f megabytes=%f groups=%f group_megabytes=%f\n", seconds, cpu,
              static_cast<double>(body.size()) / 1e6, group_seconds,
              static_cast<double>(group_body.size()) / 1e6);
}

namespace {

void DecodePods100kWith(Run& run, bool groups) {
  const std::string name = NameOf("decode_pods_100k", groups);
  ChildFigures figures = RunChildren(name, run.repetitions);
  const double megabytes = Median(figures["megabytes"]);
  std::vector<double> speed;
  for (const double seconds : figures["seconds"]) speed.push_back(megabytes / seconds);
  run.report.Add({name, "s", Better::kLower, figures["seconds"], 0.3, std::nullopt,
                  Median(figures["cpu"]),
                  absl::StrFormat("%.0f MB, %.0f bytes a pod; a process of its own", megabytes,
                                  megabytes * 1e6 / kMemoryPods)});
  run.report.Add({name + "/speed", "MB/s", Better::kHigher, speed, std::nullopt, std::nullopt,
                  std::nullopt, ""});
  if (!groups) return;
  run.report.Add({name + "/podgroups", "s", Better::kLower, figures["groups"], std::nullopt,
                  std::nullopt, std::nullopt,
                  absl::StrFormat("the list of their PodGroups, JSON, %.0f MB",
                                  Median(figures["group_megabytes"]))});
}

}  // namespace

void DecodePods100k(Run& run) {
  for (const bool groups : {false, true}) DecodePods100kWith(run, groups);
}

}  // namespace fairlead::bench
