// The cost of a large cluster: memory when all of it is known, and the time to read it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
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

namespace {

// Bytes that a process of its own made, so that the memory which making them took is not at hand
// for what this process allocates next.
class BytesMadeElsewhere {
 public:
  explicit BytesMadeElsewhere(absl::FunctionRef<std::string()> make) {
    const int file = memfd_create("bench", MFD_CLOEXEC);
    Require(file >= 0, "memfd_create failed");
    const pid_t maker = fork();
    Require(maker >= 0, "fork failed");
    if (maker == 0) _exit(WriteAll(file, make()) ? 0 : 1);
    int status = 0;
    Require(waitpid(maker, &status, 0) == maker && status == 0, "the input was not made");
    size_ = static_cast<size_t>(lseek(file, 0, SEEK_END));
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    close(file);
    Require(data_ != MAP_FAILED, "mmap failed");
  }
  ~BytesMadeElsewhere() { munmap(data_, size_); }
  BytesMadeElsewhere(const BytesMadeElsewhere&) = delete;
  BytesMadeElsewhere& operator=(const BytesMadeElsewhere&) = delete;

  absl::string_view view() const { return {static_cast<const char*>(data_), size_}; }

 private:
  static bool WriteAll(int file, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(file, bytes.data(), bytes.size());
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

std::string BodyOf(model::Kind kind, int64_t first, int64_t count, bool groups) {
  if (kind == model::Kind::kPodGroup) return PodGroupListBody(first, count);
  std::string items;
  for (const int64_t end = first + count; first < end; first += kBigPage) {
    items += PodItems(first, kBigPage, groups);
  }
  return PodListBody(items);
}

// Prints what it takes to decode all pods, or all of their PodGroups, from lists of `page`. A list
// is let go before the next is decoded.
void PrintDecoding(absl::string_view figure, model::Kind kind, int64_t page, bool groups) {
  std::vector<std::unique_ptr<BytesMadeElsewhere>> bodies;
  size_t bytes = 0;
  for (int64_t first = 0; first < kMemoryPods; first += page) {
    bodies.push_back(
        std::make_unique<BytesMadeElsewhere>([&] { return BodyOf(kind, first, page, groups); }));
    bytes += bodies.back()->view().size();
  }
  const absl::string_view format = kind == model::Kind::kPod ? kube::kProtobuf : kube::kJson;
  size_t decoded = 0;
  const Stopwatch watch;
  for (const auto& body : bodies) {
    auto list = kube::DecodeList(kind, format, body->view());
    Require(list.ok(), "a list is malformed");
    decoded += list->items.size();
  }
  absl::PrintF("%s=%f %s_cpu=%f %s_megabytes=%f ", figure, watch.Seconds(), figure,
               watch.CpuSeconds(), figure, static_cast<double>(bytes) / 1e6);
  Require(decoded == kMemoryPods, "objects are missing");
}

}  // namespace

// As a program does that has just started: its memory is new.
void DecodePods100kChild(bool groups) {
  PrintDecoding("pages", model::Kind::kPod, kBigPage, groups);
  PrintDecoding("one_list", model::Kind::kPod, kMemoryPods, groups);
  if (groups) PrintDecoding("podgroups", model::Kind::kPodGroup, kBigPage, groups);
  std::printf("\n");
}

namespace {

void DecodePods100kWith(Run& run, bool groups) {
  const std::string name = NameOf("decode_pods_100k", groups);
  ChildFigures figures = RunChildren(name, run.repetitions);
  const double megabytes = Median(figures["pages_megabytes"]);
  std::vector<double> speed;
  for (const double seconds : figures["pages"]) speed.push_back(megabytes / seconds);
  run.report.Add({name, "s", Better::kLower, figures["pages"], 0.3, std::nullopt,
                  Median(figures["pages_cpu"]),
                  absl::StrFormat("%.0f MB, %.0f bytes a pod, in pages of %d", megabytes,
                                  megabytes * 1e6 / kMemoryPods, kBigPage)});
  run.report.Add({name + "/speed", "MB/s", Better::kHigher, speed, std::nullopt, std::nullopt,
                  std::nullopt, ""});
  run.report.Add({name + "/one_list", "s", Better::kLower, figures["one_list"], std::nullopt,
                  std::nullopt, Median(figures["one_list_cpu"]),
                  "all in one list, so all of the memory is touched for the first time"});
  if (!groups) return;
  run.report.Add(
      {name + "/podgroups", "s", Better::kLower, figures["podgroups"], std::nullopt, std::nullopt,
       Median(figures["podgroups_cpu"]),
       absl::StrFormat("their PodGroups, JSON, %.0f MB", Median(figures["podgroups_megabytes"]))});
}

}  // namespace

void DecodePods100k(Run& run) {
  for (const bool groups : {false, true}) DecodePods100kWith(run, groups);
}

}  // namespace fairlead::bench
