// The filters and scores of plain pods run millions of times a decision: without a status they must
// not touch the heap. Counts calls of operator new on this thread.
#include <cstdlib>
#include <new>

#include "scheduler/plugins/plugin_test_util.h"

namespace {
thread_local long allocations = 0;  // NOLINT(google-runtime-int)
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
// Not inlined: the optimiser would see free() of what another file's operator new returned.
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace fairlead::plugins {
namespace {

TEST_F(PluginTest, PlainPodsCostNoAllocation) {
  auto made = framework::Framework::Make(framework::DefaultProfile(), registry_);
  ASSERT_TRUE(made.ok()) << made.status();
  const framework::Framework& all = **made;
  // More resources than fit into a vector of amounts without the heap.
  model::ResourceList requests = {{"cpu", 1000}, {"nvidia.com/gpu", 2000}};
  model::Node node = MakeNode("fits", 8);
  for (const char* name : {"a.com/a", "a.com/b", "a.com/c", "a.com/d", "a.com/e"}) {
    model::Set(requests, name, 1);
    model::Set(node.allocatable, name, 4);
  }
  AddNode(node);
  node.meta = MakeNode("full", 8).meta;
  node.taints = {{"soft", "", model::TaintEffect::kPreferNoSchedule}};
  AddNode(node);
  AddPod(PodBuilder("ns", "runs").Gpus(7).On("full"));
  AddPod(PodBuilder("ns", "ends").Gpus(1).On("fits").Deleting());
  model::PodSpec spec;
  spec.requests = requests;
  spec.tolerations = {{"x", true, "", {}}};
  Waiting(spec);
  for (Capacity capacity : {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty}) {
    const framework::Context context = Ctx(capacity);
    const state::NodeInfo& fits = Node("fits");
    const state::NodeInfo& full = Node("full");
    ASSERT_TRUE(all.NodeLocal(context.pod_class));
    const auto before = allocations;
    const bool yes = all.Filter(context, fits, nullptr);
    const bool no = all.Filter(context, full, nullptr);
    const int64_t scores = all.Score(context, fits) + all.Score(context, full);
    const auto after = allocations;
    EXPECT_EQ(after, before);
    EXPECT_TRUE(yes);
    EXPECT_EQ(no, capacity == Capacity::kEmpty);
    EXPECT_GT(scores, 0);
  }
  // The counter counts.
  const auto before = allocations;
  framework::Status why;
  EXPECT_FALSE(all.Filter(Ctx(), Node("full"), &why));
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace fairlead::plugins
