#include "tests/bench/big_load.h"

#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "tests/bench/big_pods.h"

namespace fairlead::bench {

namespace {

std::string ListOf(model::Kind kind, int64_t first, bool groups) {
  if (kind == model::Kind::kPodGroup) return PodGroupListBody(first, kBigPage);
  if (kind == model::Kind::kPod) return PodListBody(PodItems(first, kBigPage, groups));
  return NodeListBody(NodeItems(first, kBigPage));
}

}  // namespace

double LoadBig(LoopCluster& cluster, model::Kind kind, int64_t count, bool groups) {
  const char* type = kube::HasProtobuf(kind) ? kube::kProtobuf : kube::kJson;
  double seconds = 0;
  for (int64_t first = 0; first < count; first += kBigPage) {
    const std::string body = ListOf(kind, first, groups);
    const Stopwatch watch;
    auto page = kube::DecodeList(kind, type, body);
    Require(page.ok(), page.status().ToString());
    Require(page->items.size() == kBigPage, "a page did not decode whole");
    for (kube::Object& object : page->items) {
      cluster.loop().Apply(model::Upsert{std::move(object)});
    }
    seconds += watch.Seconds();
  }
  return seconds;
}

ChildFigures RunChildren(const std::string& name, int repetitions) {
  ChildFigures figures;
  for (int i = 0; i < repetitions; ++i) {
    std::FILE* child = popen(absl::StrCat("exec /proc/$PPID/exe --child ", name).c_str(), "r");
    Require(child != nullptr, "cannot start");
    char line[512] = "";
    const bool read = std::fgets(line, sizeof(line), child) != nullptr;
    Require(pclose(child) == 0 && read, "the child failed");
    for (absl::string_view part : absl::StrSplit(absl::string_view(line), ' ')) {
      const std::vector<std::string> pair = absl::StrSplit(part, '=');
      double value = 0;
      if (pair.size() == 2 && absl::SimpleAtod(pair[1], &value)) figures[pair[0]].push_back(value);
    }
  }
  return figures;
}

}  // namespace fairlead::bench
