// NodeVolumeLimits.
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scheduler/plugins/volume_testing.h"

namespace fairlead::plugins {
namespace {

constexpr char kDriver[] = "csi.example.com";
constexpr char kOther[] = "other.example.com";
constexpr char kTooMany[] = "U node(s) exceed max volume count";

class VolumeLimitsTest : public VolumeTest {
 protected:
  VolumeLimitsTest() { AddNode(MakeNode("n", 0)); }
  void PutLimits(std::vector<model::CsiNode::Driver> drivers, absl::string_view node = "n") {
    model::CsiNode out;
    out.meta.name = std::string(node);
    out.drivers = std::move(drivers);
    Put(out);
  }
  // A bound claim "NAME" with volume "pv-NAME" of the driver.
  void PutClaim(const std::string& name, absl::string_view driver = kDriver) {
    PutBound(name, OfDriver(Volume("pv-" + name, "fast"), driver), model::kReadWriteMany);
  }
  void Attach(const std::string& name, const std::string& volume, absl::string_view node = "n",
              absl::string_view driver = kDriver) {
    model::VolumeAttachment out;
    out.meta.name = name;
    out.driver = std::string(driver);
    out.node_name = std::string(node);
    out.volume_name = volume;
    Put(out);
  }
};

TEST_F(VolumeLimitsTest, CountsWhatPodsOnTheNodeAttach) {
  const auto limits = Only("NodeVolumeLimits");
  for (const char* name : {"a", "b", "c", "d"}) PutClaim(name);
  PutClaim("x", kOther);
  PutBound("plain", Volume("pv-plain", "fast"));  // of no driver
  AddPod(On("n", PodWith("one", {"a", "plain", "x"})));
  AddPod(On("n", PodWith("two", {"a", "b"})));
  AddPod(On("elsewhere", PodWith("three", {"c"})));
  struct Case {
    std::vector<model::CsiNode::Driver> drivers;
    std::vector<std::string> claims;
    const char* why;
  };
  const Case cases[] = {
      // a and b are there.
      {{{kDriver, 2}}, {"c"}, kTooMany},
      {{{kDriver, 3}}, {"c"}, ""},
      {{{kDriver, 3}}, {"c", "d"}, kTooMany},
      {{{kDriver, 4}}, {"c", "d"}, ""},
      {{{kDriver, 3}}, {"a", "b", "c"}, ""},
      {{{kDriver, 2}}, {"a", "b"}, ""},
      {{{kDriver, 0}}, {"a", "b"}, ""},  // above the limit already, but not by this pod
      {{{kDriver, 0}}, {"c"}, kTooMany},
      {{{kDriver, 0}}, {"plain"}, ""},
      // Each driver for itself; without a limit there is none.
      {{{kDriver, 3}, {kOther, 0}}, {"c"}, ""},
      {{{kDriver, 3}, {kOther, 0}}, {"c", "x"}, ""},
      {{{kOther, 0}}, {"c", "d"}, ""},
      {{{kDriver, std::nullopt}}, {"c", "d"}, ""},
      {{}, {"c", "d"}, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    PutLimits(c.drivers);
    WaitingWith(c.claims);
    EXPECT_EQ(Why(*limits, "n"), c.why);
  }
  state_.RemoveVolumeObject(model::Kind::kCsiNode, "", "n");
  WaitingWith({"c", "d"});
  EXPECT_EQ(Why(*limits, "n"), "");
}

TEST_F(VolumeLimitsTest, VolumesOfOnePodEachAreCountedOneByOne) {
  const auto limits = Only("NodeVolumeLimits");
  Put(Class("made", kDriver));
  for (const char* name : {"p", "q", "r"}) {
    Put(Claim(absl::StrCat("new-", name), "made"));
    PutClaim(absl::StrCat("old-", name));
  }
  AddPod(On("n", PodWith("p", {"old-p"})));
  AddPod(On("n", PodWith("q", {"new-q", "old-q"})));
  WaitingWith({"new-r", "old-r"});
  PutLimits({{kDriver, 4}});
  EXPECT_EQ(Why(*limits, "n"), kTooMany);
  PutLimits({{kDriver, 5}});
  EXPECT_EQ(Why(*limits, "n"), "");
}

TEST_F(VolumeLimitsTest, CountsAttachmentsThatNoPodOfTheNodeExplains) {
  const auto limits = Only("NodeVolumeLimits");
  for (const char* name : {"a", "left", "b", "new"}) PutClaim(name);
  PutClaim("x", kOther);
  AddPod(On("n", PodWith("runs", {"a"})));
  AddPod(On("elsewhere", PodWith("moved", {"b"})));
  PutLimits({{kDriver, 2}});
  WaitingWith({"new"});
  struct Case {
    const char* volume;
    const char* node;
    const char* driver;
    const char* why;
  };
  const Case cases[] = {
      {"pv-a", "n", kDriver, ""},  // the pod's
      {"pv-left", "n", kDriver, kTooMany},
      {"pv-b", "n", kDriver, kTooMany},  // its pod is on another node now
      {"pv-left", "elsewhere", kDriver, ""},
      {"pv-x", "n", kOther, ""},
      {"pv-unknown", "n", kDriver, ""},
      {"", "n", kDriver, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.volume);
    Attach("va", c.volume, c.node, c.driver);
    EXPECT_EQ(Why(*limits, "n", Capacity::kNow), c.why);
    EXPECT_EQ(Why(*limits, "n", Capacity::kFuture), c.why);
    EXPECT_EQ(Why(*limits, "n", Capacity::kEmpty), "");
  }
  Attach("va", "pv-left");
  Attach("again", "pv-left");
  PutLimits({{kDriver, 3}});
  EXPECT_EQ(Why(*limits, "n"), "") << "one volume, two objects";
  PutLimits({{kDriver, 1}});
  EXPECT_EQ(Why(*limits, "n", Capacity::kEmpty), "") << "all will be detached";
  state_.RemoveVolumeObject(model::Kind::kVolumeAttachment, "", "va");
  state_.RemoveVolumeObject(model::Kind::kVolumeAttachment, "", "again");
  PutLimits({{kDriver, 2}});
  EXPECT_EQ(Why(*limits, "n"), "") << "detached";
}

TEST_F(VolumeLimitsTest, ByCapacity) {
  const auto limits = Only("NodeVolumeLimits");
  for (const char* name : {"a", "b", "new"}) PutClaim(name);
  PutLimits({{kDriver, 1}});
  WaitingWith({"new"});
  AddPod(On("n", PodWith("runs", {"a"})));
  Attach("va", "pv-a");
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), kTooMany);
  EXPECT_EQ(Why(*limits, "n", Capacity::kFuture), kTooMany);
  EXPECT_EQ(Why(*limits, "n", Capacity::kEmpty), "");
  const auto why_if_evicted = [&] {
    state::Transaction txn(state_);
    txn.Evict(state_.FindPod("ns", "runs"));
    return Why(*limits, "n", Capacity::kFuture);
  };
  EXPECT_EQ(why_if_evicted(), kTooMany) << "it is attached all the same";
  state_.RemoveVolumeObject(model::Kind::kVolumeAttachment, "", "va");
  EXPECT_EQ(why_if_evicted(), "");
  Attach("va", "pv-a");
  AddPod(Deleting(On("n", PodWith("runs", {"a"}))));
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), kTooMany);
  EXPECT_EQ(Why(*limits, "n", Capacity::kFuture), "") << "it will be detached";
  AddPod(PodWith("promised", {"b"}));
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n"));
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), kTooMany);
  EXPECT_EQ(Why(*limits, "n", Capacity::kFuture), kTooMany);
  PutLimits({{kDriver, 0}});
  EXPECT_EQ(Why(*limits, "n", Capacity::kEmpty), kTooMany) << "the limit alone";
}

// Upstream's sum, made of sets of unique names.
// The one that waits has its room of what leaves, whose volumes are attached until then.
TEST_F(VolumeLimitsTest, WhatIsSharedWithAPromisedPodIsNotThereYet) {
  const auto limits = Only("NodeVolumeLimits");
  for (const char* name : {"a", "shared"}) PutClaim(name);
  PutLimits({{kDriver, 1}});
  AddPod(Deleting(On("n", PodWith("leaves", {"a"}))));
  AddPod(PodWith("promised", {"shared"}));
  WaitingWith({"shared"});
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n"));
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), kTooMany);
  EXPECT_EQ(Why(*limits, "n", Capacity::kFuture), "");
  PutLimits({{kDriver, 2}});
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), "") << "shared counts once";
}

// The successor of a victim would keep the volume there that the promise takes the room of.
TEST_F(VolumeLimitsTest, WhatIsSharedWithAPodThatLeavesKeepsNoRoomFromAPromise) {
  const auto limits = Only("NodeVolumeLimits");
  for (const char* name : {"a", "shared"}) PutClaim(name);
  PutLimits({{kDriver, 1}});
  AddPod(Deleting(On("n", PodWith("leaves", {"shared"}))));
  AddPod(PodWith("promised", {"a"}));
  WaitingWith({"shared"});
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), "") << "it is attached";
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n"));
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), kTooMany);
  PutLimits({{kDriver, 2}});
  EXPECT_EQ(Why(*limits, "n", Capacity::kNow), "");
}

TEST_F(VolumeLimitsTest, AgreesWithUpstreamsSum) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  constexpr int kClaims = 12;
  constexpr int kPods = 6;
  const auto driver_of = [](int claim) { return claim % 3 == 0 ? kOther : kDriver; };
  const auto name_of = [](int claim) { return absl::StrCat("c", claim); };
  for (int claim = 0; claim < kClaims; ++claim) PutClaim(name_of(claim), driver_of(claim));
  const auto some_claims = [&] {
    std::set<int> out;
    for (int i = below(4); i > 0; --i) out.insert(below(kClaims));
    return out;
  };
  const auto names_of = [&](const std::set<int>& claims) {
    std::vector<std::string> out;
    for (const int claim : claims) out.push_back(name_of(claim));
    std::sort(out.begin(), out.end());
    return out;
  };
  const auto limits = Only("NodeVolumeLimits");
  std::map<int, std::set<int>> pods;  // on the node
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    const int pod = below(kPods);
    state_.RemovePod("ns", absl::StrCat("p", pod), "");
    pods.erase(pod);
    const std::set<int> claims = some_claims();
    const bool here = below(3) > 0;
    AddPod(On(here ? "n" : "elsewhere", PodWith(absl::StrCat("p", pod), names_of(claims))));
    if (here) pods[pod] = claims;
    std::set<int> attachments = some_claims();
    for (int claim = 0; claim < kClaims; ++claim) {
      const std::string name = absl::StrCat("va-", claim);
      if (attachments.contains(claim)) {
        Attach(name, "pv-" + name_of(claim), "n", driver_of(claim));
      } else {
        state_.RemoveVolumeObject(model::Kind::kVolumeAttachment, "", name);
      }
    }
    const std::map<std::string, int64_t> limit = {{kDriver, below(8)}, {kOther, below(5)}};
    PutLimits({{kDriver, limit.at(kDriver)}, {kOther, limit.at(kOther)}});
    const std::set<int> wanted = some_claims();
    WaitingWith(names_of(wanted));

    std::set<int> of_pods;
    for (const auto& [id, each] : pods) of_pods.insert(each.begin(), each.end());
    std::map<std::string, int64_t> attached, added;
    for (const int claim : of_pods) ++attached[driver_of(claim)];
    for (const int claim : attachments) attached[driver_of(claim)] += !of_pods.contains(claim);
    for (const int claim : wanted) added[driver_of(claim)] += !of_pods.contains(claim);
    bool fits = true;
    for (const auto& [driver, count] : added) {
      if (count > 0 && attached[driver] + count > limit.at(driver)) fits = false;
    }
    ASSERT_EQ(Why(*limits, "n"), fits ? "" : kTooMany) << "round " << round;
    refused += !fits;
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 550);
}

}  // namespace
}  // namespace fairlead::plugins
