#include "scheduler/verdict/text.h"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/verdict/nodes_available.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::verdict {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::shared_ptr<const model::PodSpec> GpuPod(int64_t gpus) {
  auto spec = std::make_shared<model::PodSpec>();
  spec->requests = {{"cpu", 4000}, {"memory", int64_t{16} << 30}, {"nvidia.com/gpu", gpus * 1000}};
  return spec;
}

Verdict Of(Code code) {
  Verdict v;
  v.code = code;
  v.queue = "research";
  v.pods_waiting = 1;
  return v;
}

struct GoldenCase {
  const char* name;
  Code code;
  std::function<void(Verdict&)> set;
  const char* message;
};

const std::vector<GoldenCase>& Golden() {
  static const auto& cases = *new std::vector<GoldenCase>{
#include "scheduler/verdict/text_golden.inc"
  };
  return cases;
}

TEST(MessageTest, Golden) {
  for (const GoldenCase& c : Golden()) {
    Verdict v = Of(c.code);
    c.set(v);
    EXPECT_EQ(Message(v), c.message) << c.name;
  }
}

TEST(MessageTest, TheSentenceOfAPodThatAPluginHoldsBackSaysWhatHelps) {
  Verdict v = Of(Code::kGated);
  v.subject = HeldByPlugin("Grouping", "its owner may not be read", "add a rule");
  EXPECT_EQ(ConditionMessage(v),
            "Held back by plugin Grouping: its owner may not be read; what helps: add a rule.");
  v.subject = HeldByPlugin("Budget", "none is left");
  EXPECT_EQ(ConditionMessage(v), "Held back by plugin Budget: none is left.");
}

TEST(MessageTest, EveryCodeHasAGoldenText) {
  std::map<Code, int> seen;
  for (const GoldenCase& c : Golden()) ++seen[c.code];
  EXPECT_EQ(seen.size(), static_cast<size_t>(kCodeCount));
}

// A verdict that has nothing but its code still makes a sentence.
TEST(MessageTest, BareVerdicts) {
  for (int i = 0; i < kCodeCount; ++i) {
    Verdict v;
    v.code = static_cast<Code>(i);
    const std::string text = Message(v);
    EXPECT_THAT(text, EndsWith(".")) << CodeName(v.code);
    EXPECT_THAT(text, Not(HasSubstr(".."))) << CodeName(v.code);
    EXPECT_THAT(text, Not(HasSubstr("  "))) << CodeName(v.code);
  }
}

TEST(MessageTest, InfiniteTimesAreNotTold) {
  for (Code code : {Code::kPreemptionDelay, Code::kNodesRequested, Code::kWaitingForVictims}) {
    Verdict v = Of(code);
    v.until = absl::InfiniteFuture();
    v.expected_at = absl::InfiniteFuture();
    EXPECT_THAT(Message(v), Not(HasSubstr("infinite")));
  }
}

TEST(MessageTest, DoesNotRepeatAFullStop) {
  Verdict v = Of(Code::kInvalidRequest);
  v.subject = "metadata.annotations[gpu-fraction]: \"2\" is not below 1.\n";
  v.details = {"seen first at generation 3."};
  EXPECT_THAT(Message(v), Not(HasSubstr("..")));
  EXPECT_THAT(Message(v), EndsWith("generation 3."));
}

TEST(MessageTest, CutAtACodePoint) {
  for (size_t filler = 0; filler < 8; ++filler) {
    Verdict v = Of(Code::kInvalidRequest);
    v.subject.assign(filler, 'x');
    for (int i = 0; i < 600; ++i) v.subject += "\xE2\x82\xAC";  // euro sign
    const std::string text = Message(v);
    EXPECT_LE(text.size(), 1024u);
    EXPECT_GT(text.size(), 1016u);
    EXPECT_EQ(ToValidUtf8(text), text);
    EXPECT_THAT(text, EndsWith("\xE2\x80\xA6"));
  }
}

TEST(MessageTest, AlwaysValidAndBounded) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<unsigned>(engine()); };
  const auto bytes = [&](size_t max) {
    std::string out(random() % (max + 1), '\0');
    for (char& c : out) c = static_cast<char>(random() % 256);
    return out;
  };
  for (int round = 0; round < 500; ++round) {
    Verdict v;
    v.code = static_cast<Code>(random() % kCodeCount);
    v.queue = bytes(40);
    v.subject = bytes(900);
    v.min_member = random() % 3;
    v.position = random() % 3;
    v.queue_block = QueueBlock{bytes(20), bytes(8), static_cast<int64_t>(random()), 5, 7};
    for (unsigned i = random() % 9; i > 0; --i) {
      v.failed_predicates.push_back({bytes(9), bytes(90), static_cast<int64_t>(random() % 99), {}});
    }
    for (unsigned i = random() % 4; i > 0; --i) v.details.push_back(bytes(300));
    for (unsigned i = random() % 4; i > 0; --i)
      v.unblockers.push_back({ResolvableBy::kTime, bytes(99)});
    const std::string text = Message(v);
    ASSERT_LE(text.size(), 1024u);
    ASSERT_EQ(ToValidUtf8(text), text);
  }
}

TEST(PhrasesTest, Amounts) {
  struct Case {
    const char* resource;
    int64_t amount;
    const char* text;
  };
  const Case cases[] = {
      {"nvidia.com/gpu", 1000, "1 GPU"},
      {"nvidia.com/gpu", 8000, "8 GPUs"},
      {"nvidia.com/gpu", 500, "0.5 GPUs"},
      {"nvidia.com/gpu", 0, "0 GPUs"},
      {"cpu", 1000, "1 CPU core"},
      {"cpu", 2500, "2.5 CPU cores"},
      {"memory", int64_t{16} << 30, "16Gi of memory"},
      {"memory", 512, "512 bytes of memory"},
      {"memory", 1, "1 byte of memory"},
      {"ephemeral-storage", 2048, "2Ki of ephemeral-storage"},
      {"pods", 1, "1 pod slot"},
      {"rdma/hca", 4, "4 rdma/hca"},
      {"deviceclass:gpu.nvidia.com", 1, "1 device of class gpu.nvidia.com"},
      {"deviceclass:gpu.nvidia.com", 2, "2 devices of class gpu.nvidia.com"},
      {"deviceclaim:device claim to all of fpga", 1, "devices for a device claim to all of fpga"},
  };
  for (const Case& c : cases) EXPECT_EQ(AmountText(c.resource, c.amount), c.text);
}

TEST(PhrasesTest, Lists) {
  EXPECT_EQ(AndList({}, 3), "");
  EXPECT_EQ(AndList({"a"}, 3), "a");
  EXPECT_EQ(AndList({"a", "b"}, 3), "a and b");
  EXPECT_EQ(AndList({"a", "b", "c"}, 3), "a, b and c");
  EXPECT_EQ(AndList({"a", "b", "c", "d", "e"}, 3), "a, b, c and 2 more");
}

TEST(PhrasesTest, RequestsOfSharedGpus) {
  model::PodSpec spec;
  EXPECT_EQ(RequestText(spec), "no resources");
  spec.requests = {{"cpu", 500}};
  spec.gpu_share.fraction_milli = 500;
  EXPECT_EQ(RequestText(spec), "0.5 of a GPU and 0.5 CPU cores");
  spec.gpu_share = {0, 4096, 2};
  EXPECT_EQ(RequestText(spec), "4096Mi of the memory of each of 2 GPUs and 0.5 CPU cores");
}

// As kube-scheduler sorts them: by their text, so by the first figure of the count.
TEST(NodesAvailableTest, ReasonsAreSortedAsText) {
  Verdict v = Of(Code::kInsufficientCapacity);
  v.failed_predicates = {
      {"NodeResourcesFit", "Too many pods, Insufficient cpu", 100, {}},
      {"NodeResourcesFit", "Insufficient cpu", 20, {}},
      {"NodePorts", "node(s) didn't have free ports for the requested pod ports", 3, {}},
      {"Plugin", "", 9, {}}};
  EXPECT_EQ(NodesAvailable(v),
            "0/132 nodes are available: 100 Too many pods, 120 Insufficient cpu, 3 node(s) didn't "
            "have free ports for the requested pod ports, 9 Plugin.");
}

// A comma in a reason of another plugin is part of the reason.
TEST(NodesAvailableTest, OnlyAmountsAreCountedApart) {
  Verdict v = Of(Code::kInsufficientCapacity);
  v.failed_predicates = {{"Numa", "a, b", 2, {}}};
  EXPECT_EQ(NodesAvailable(v), "0/2 nodes are available: 2 a, b.");
}

TEST(NodesAvailableTest, PolicyIsNotAboutNodes) {
  for (int i = 0; i < kCodeCount; ++i) {
    Verdict v = Of(static_cast<Code>(i));
    v.nodes_asked = 3;
    v.failed_predicates = {{"NodeResourcesFit", "Insufficient cpu", 3, {}}};
    const bool silent = CategoryOf(v.code) == Category::kPolicy ||
                        v.code == Code::kWaitingForVictims || v.code == Code::kNodesRequested;
    EXPECT_EQ(NodesAvailable(v).empty(), silent) << CodeName(v.code);
    EXPECT_EQ(EventNote(v) == Message(v), !silent || IsExpected(v)) << CodeName(v.code);
    EXPECT_TRUE(!silent || ConditionMessage(v) == Sentence(v)) << CodeName(v.code);
  }
}

TEST(EventNoteTest, TellsTheCodeIfNothingElseDoes) {
  Verdict v = Of(Code::kQueueNotFound);
  EXPECT_THAT(EventNote(v), StartsWith("QueueNotFound: Queue research does not exist."));
  v = Of(Code::kGated);
  EXPECT_EQ(EventNote(v), Message(v)) << "the event's reason is the code";
  v = Of(Code::kNodesRequested);
  v.node_requests = {"nr-1"};
  EXPECT_EQ(EventNote(v), "Waiting for 1 requested node (nr-1).");
  v = Of(Code::kInvalidRequest);
  v.subject = std::string(2000, 'x');
  EXPECT_EQ(EventNote(v).size(), 1024u);
}

TEST(ConditionMessageTest, IsKubeSchedulersTextAndWhatItDoesNotSay) {
  Verdict v = Of(Code::kInsufficientCapacity);
  v.nodes_asked = 12;
  v.failed_predicates = {
      {"NodeResourcesFit", "Insufficient nvidia.com/gpu", 12, {{"nvidia.com/gpu", 2000}}}};
  v.demand = {{GpuPod(8), 1, 1}};
  EXPECT_EQ(ConditionMessage(v), "0/12 nodes are available: 12 Insufficient nvidia.com/gpu.");
  EXPECT_EQ(Sentence(v), "No node has capacity for the pod: nodes lack GPUs.") << "no number";
  v.code = Code::kNoInstanceTypeFits;
  EXPECT_EQ(ConditionMessage(v),
            "0/12 nodes are available: 12 Insufficient nvidia.com/gpu. No instance type on offer "
            "can run a pod that requests 8 GPUs, 4 CPU cores and 16Gi of memory.");
  v = Of(Code::kQueueNotFound);
  EXPECT_EQ(ConditionMessage(v), Sentence(v));
}

TEST(PhrasesTest, TheSmallestShortageOfEachResource) {
  EXPECT_EQ(ShortageText({}), "");
  EXPECT_EQ(ShortageText({{"P", "r", 1, {{"cpu", 2000}, {"memory", 0}}},
                          {"P", "s", 1, {{"cpu", 1000}, {"nvidia.com/gpu", 500}}}}),
            "Smallest shortage on a node: 1 CPU core and 0.5 GPUs");
}

}  // namespace
}  // namespace fairlead::verdict
