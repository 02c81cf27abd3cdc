// What groups sell, when they are read, and servers that say what cannot be.
#include <cmath>
#include <limits>

#include "autoscale-hook/providers/groups/groups_fixture_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GroupsReads : public GroupsFixture {
 protected:
  const InstanceType* Offer(const std::string& group = "g") const {
    return offers_.empty() ? nullptr : offers_.back()->Find(group);
  }
  // Starts, and lets one round pass.
  const InstanceType* First() {
    Start();
    Pass(absl::Seconds(1));
    return Offer();
  }
  InstanceType Configured(const std::string& name, int64_t price) {
    InstanceType type;
    type.name = name;
    type.on_demand_micro_usd = price;
    return type;
  }
};

// ---- offers

TEST_F(GroupsReads, AGroupIsAnInstanceType) {
  FakeCloud::Group& group = cloud_.AddGroup("g");
  group.price = 1.25;
  model::Node& node = group.node;
  node.meta.labels = {{"kubernetes.io/arch", "arm64"},
                      {"kubernetes.io/hostname", "template-1"},
                      {"node.kubernetes.io/instance-type", "g6.4xlarge"},
                      {"topology.kubernetes.io/zone", "z7"},
                      {"cloud/gpu", "nvidia-l4"},
                      {"nvidia.com/gpu.memory", "23034"},
                      {"tier", "fast"}};
  node.taints = {{"nvidia.com/gpu", "present", model::TaintEffect::kNoSchedule},
                 {"node.kubernetes.io/not-ready", "", model::TaintEffect::kNoSchedule}};
  node.allocatable = {{"cpu", 15'890},     {"ephemeral-storage", 900},
                      {"memory", 1 << 30}, {"nvidia.com/gpu", 2000},
                      {"pods", 29},        {"vpc.amazonaws.com/efa", 1}};
  const InstanceType* type = First();
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->architecture, "arm64");
  EXPECT_EQ(type->cpu_milli, 15'890);
  EXPECT_EQ(type->memory_bytes, 1 << 30);
  EXPECT_EQ(type->max_pods, 29);
  EXPECT_EQ(type->gpu_count, 2);
  EXPECT_EQ(type->gpu_model, "nvidia-l4");
  EXPECT_EQ(type->gpu_memory_mib, 23'034);
  EXPECT_THAT(type->zones, ElementsAre("z7"));
  EXPECT_EQ(type->on_demand_micro_usd, 1'250'000);
  EXPECT_EQ(type->spot_micro_usd, std::nullopt);
  EXPECT_EQ(type->taints, (std::vector<model::Taint>{node.taints[0]}));
  EXPECT_EQ(type->labels, (model::StringMap{{"node.kubernetes.io/instance-type", "g6.4xlarge"},
                                            {"cloud/gpu", "nvidia-l4"},
                                            {"tier", "fast"}}));
  EXPECT_EQ(type->extra,
            (model::ResourceList{{"ephemeral-storage", 900}, {"vpc.amazonaws.com/efa", 1}}));
  EXPECT_EQ(offers_.size(), 1u);
  Pass(absl::Minutes(5));
  EXPECT_EQ(offers_.size(), 1u) << "the same as before";
  EXPECT_EQ(cloud_.calls["NodeGroupTemplateNodeInfo"], 1);
  EXPECT_EQ(cloud_.calls["GPULabel"], 1);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(GroupsReads, AGroupOfSpotMachinesIsSoldAsSpot) {
  int number = 0;
  for (const auto& [label, value] : {std::pair("eks.amazonaws.com/capacityType", "SPOT"),
                                     {"cloud.google.com/gke-spot", "true"},
                                     {"kubernetes.azure.com/scalesetpriority", "spot"},
                                     {"karpenter.sh/capacity-type", "spot"}}) {
    cloud_.AddGroup(absl::StrCat("g", ++number)).node.meta.labels.Set(label, value);
  }
  First();
  for (const InstanceType& type : offers_.back()->types()) {
    EXPECT_EQ(type.on_demand_micro_usd, std::nullopt) << type.name;
    EXPECT_EQ(type.spot_micro_usd, 1'000'000) << type.name;
  }
  EXPECT_EQ(offers_.back()->types().size(), 4u);
}

TEST_F(GroupsReads, WithoutAPriceTheCataloguesCounts) {
  InstanceType known = Configured("m5.xlarge", 192'000);
  known.gpu_model = "NVIDIA-A10G";
  known.gpu_memory_mib = 24'000;
  configured_ = Catalog::FromTypes({known});
  cloud_.AddGroup("g").node.allocatable.insert(cloud_.groups["g"].node.allocatable.begin() + 2,
                                               {"nvidia.com/gpu", 1000});
  cloud_.AddGroup("h").node.meta.labels.Set(model::kInstanceTypeLabel, "new.large");
  cloud_.AddGroup("i").node.meta.labels.Erase(model::kInstanceTypeLabel);
  cloud_.has_prices = false;
  const InstanceType* type = First();
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->on_demand_micro_usd, 192'000);
  EXPECT_EQ(type->gpu_model, "NVIDIA-A10G");
  EXPECT_EQ(type->gpu_memory_mib, 24'000);
  EXPECT_EQ(offers_.back()->types().size(), 1u);
  Pass(absl::Minutes(5));
  EXPECT_THAT(
      problems_,
      ElementsAre("group h: price: the server tells none, and no type \"new.large\" in the "
                  "catalogue has one, so the group is not offered; add the type with its "
                  "price to the catalogue",
                  HasSubstr("group i: price: the server tells none, and its template has no "
                            "label node.kubernetes.io/instance-type")));
  EXPECT_EQ(cloud_.calls["PricingNodePrice"], 3) << "the server has no prices";
  configured_ = Catalog::FromTypes({known, Configured("new.large", 5)});
  Pass(absl::Seconds(15));
  EXPECT_NE(Offer("h"), nullptr);
}

TEST_F(GroupsReads, PricesAndTemplatesAreFollowed) {
  cloud_.AddGroup("g");
  ASSERT_NE(First(), nullptr);
  cloud_.groups["g"].price = 2;
  Pass(absl::Seconds(15));
  EXPECT_EQ(Offer()->on_demand_micro_usd, 2'000'000);
  cloud_.groups["g"].node.meta.labels.Set("tier", "slow");
  Pass(absl::Minutes(1));
  EXPECT_EQ(Offer()->labels.Get("tier"), "") << "read once";
  cloud_.groups["g"].told.debug = "version 2";
  Pass(absl::Seconds(15));
  EXPECT_EQ(Offer()->labels.Get("tier"), "slow");
  cloud_.AddGroup("h");
  cloud_.groups.erase("g");
  Pass(absl::Seconds(15));
  EXPECT_EQ(Offer("g"), nullptr);
  EXPECT_NE(Offer("h"), nullptr);
}

TEST_F(GroupsReads, AReportOfEverythingHasTheOffers) {
  cloud_.AddGroup("g");
  First();
  provider_->ReportAll();
  EXPECT_EQ(offers_.size(), 2u);
  EXPECT_EQ(offers_[0], offers_[1]);
}

// ---- rounds

TEST_F(GroupsReads, ReadsOftenWhileSomethingIsOpen) {
  cloud_.AddGroup("g").runs_after = absl::Minutes(3);
  First();
  Pass(absl::Minutes(2));
  EXPECT_LE(cloud_.calls["Refresh"], 14);
  EXPECT_GE(cloud_.calls["Refresh"], 11);
  Launch({"fl-1"});
  const int before = cloud_.calls["Refresh"];
  Pass(absl::Minutes(2));
  EXPECT_GE(cloud_.calls["Refresh"] - before, 50);
  EXPECT_LE(cloud_.calls["Refresh"] - before, 61);
  Pass(absl::Minutes(2));
  const int after = cloud_.calls["Refresh"];
  Pass(absl::Minutes(2));
  EXPECT_LE(cloud_.calls["Refresh"] - after, 13);
}

TEST_F(GroupsReads, AServerThatIsDownIsAskedLessAndLess) {
  cloud_.AddGroup("g");
  NextCalls("Refresh", Fails(absl::UnavailableError("RPC Refresh at s:1: no connection")), 20);
  Start();
  Pass(absl::Minutes(1));
  EXPECT_LE(cloud_.calls["Refresh"], 7);
  const int before = cloud_.calls["Refresh"];
  for (int i = 0; i < 20; ++i) {
    Launch({absl::StrCat("fl-early-", i)});
    Pass(absl::Seconds(1));
  }
  EXPECT_LE(cloud_.calls["Refresh"] - before, 1) << "orders do not shorten a pause";
  Pass(absl::Minutes(5) - absl::Seconds(20));
  EXPECT_LE(cloud_.calls["Refresh"], 13);
  EXPECT_THAT(problems_, ElementsAre("RPC Refresh at s:1: no connection"));
  EXPECT_THAT(offers_, IsEmpty());
  const Asked* order = Launch({"fl-1"});
  Pass(absl::Minutes(1));
  EXPECT_TRUE(absl::IsUnavailable(order->answer.status));
}

TEST_F(GroupsReads, AnErrorOfAReadIsNoRefusalOfAnOrder) {
  cloud_.AddGroup("g");
  First();
  int number = 0;
  for (const char* call : {"Refresh", "NodeGroups", "NodeGroupTargetSize", "NodeGroupNodes"}) {
    for (const absl::Status& error : {absl::ResourceExhaustedError("throttled"),
                                      absl::InternalError("x"), absl::PermissionDeniedError("x")}) {
      NextCalls(call, Fails(error), 2);
      const Asked* order = Launch({absl::StrCat("fl-", ++number)});
      Pass(absl::Seconds(1));
      EXPECT_EQ(order->answer.status.code(), absl::IsPermissionDenied(error)
                                                 ? absl::StatusCode::kPermissionDenied
                                                 : absl::StatusCode::kUnavailable)
          << call << " " << order->answer.status;
      Pass(absl::Minutes(2));
    }
  }
  EXPECT_THAT(cloud_.writes, IsEmpty());
}

TEST_F(GroupsReads, AnswersThatComeLateTwiceOrNever) {
  cloud_.AddGroup("g");
  for (const char* call : {"Refresh", "NodeGroups", "GPULabel", "NodeGroupTemplateNodeInfo",
                           "PricingNodePrice", "NodeGroupTargetSize", "NodeGroupNodes"}) {
    NextCalls(call, Never());
    NextCalls(call, Late(absl::Minutes(3)));
    NextCalls(call, Twice());
  }
  Start();
  Pass(absl::Hours(1));
  EXPECT_NE(Offer(), nullptr);
  const Asked* order = Launch({"fl-1"});
  Pass(absl::Seconds(20));
  EXPECT_TRUE(order->answer.status.ok());
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0001");
}

TEST_F(GroupsReads, OneGroupThatFailsDoesNotConcernTheOthers) {
  cloud_.AddGroup("bad").wrong_target = -1;
  cloud_.AddGroup("g");
  First();
  const auto asked = LaunchSet({{"fl-1", "bad"}, {"fl-2", "g"}});
  Pass(absl::Seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(asked[0]->answer.status));
  EXPECT_TRUE(asked[1]->answer.status.ok());
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

TEST_F(GroupsReads, DestructionWhileCallsAreUnderWay) {
  cloud_.AddGroup("g");
  for (int ms = 0; ms < 120; ms += 7) {
    Start();
    const Asked* order = Launch({absl::StrCat("fl-", ms)});
    Pass(absl::Milliseconds(ms));
    const int answers = order->answers;
    const size_t reports = reports_.size();
    provider_.reset();
    Pass(absl::Minutes(5));
    EXPECT_EQ(order->answers, answers);
    EXPECT_EQ(reports_.size(), reports);
  }
}

// ---- what cannot be

TEST_F(GroupsReads, WrongGroups) {
  cloud_.AddGroup("g");
  First();
  cloud_.groups["g"].told.min_size = -1;
  cloud_.AddGroup("h", 5, 4);
  cloud_.AddGroup("twice");
  cloud_.more_groups = {{"twice", 0, 100, ""}, {"", 0, 1, ""}};
  Pass(absl::Minutes(1));
  EXPECT_THAT(problems_, ElementsAre("groups: a group has no id", "group g: minSize: -1",
                                     "group h: maxSize: 4 is less than minSize 5",
                                     "group twice: id: listed times: 2"));
  ASSERT_EQ(offers_.back()->types().size(), 1u);
  EXPECT_NE(Offer("g"), nullptr) << "the last good value";
  const auto asked = LaunchSet({{"fl-1", "g"}, {"fl-2", "h"}, {"fl-3", "twice"}});
  Pass(absl::Seconds(20));
  EXPECT_TRUE(asked[0]->answer.status.ok());
  EXPECT_TRUE(absl::IsNotFound(asked[1]->answer.status));
  EXPECT_TRUE(absl::IsNotFound(asked[2]->answer.status));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

TEST_F(GroupsReads, WrongSizesAndInstances) {
  cloud_.AddGroup("g");
  First();
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  const std::string id = IdOf("fl-1");
  const size_t reports = reports_.size();
  cloud_.writes.clear();
  std::vector<CloudInstance> many(100'000);
  for (size_t i = 0; i < many.size(); ++i) many[i].id = absl::StrCat("cloud:///", i);
  const std::vector<std::pair<std::vector<CloudInstance>, std::string>> wrong = {
      {{{""}}, "group g: instances: an id is empty"},
      {{{id}, {id}}, absl::StrCat("group g: instances: ", id, " is there twice")},
      {many, "group g: instances: 100000 are more than the 50000 that a group may have"},
  };
  for (const auto& [list, problem] : wrong) {
    problems_.clear();
    cloud_.groups["g"].wrong_list = list;
    Pass(absl::Minutes(1));
    EXPECT_THAT(problems_, ElementsAre(problem));
    const Asked* end = End("fl-1", id);
    Pass(absl::Seconds(10));
    EXPECT_TRUE(absl::IsUnavailable(end->answer.status)) << end->answer.status;
    cloud_.groups["g"].wrong_list.reset();
    Pass(absl::Minutes(1));
  }
  problems_.clear();
  cloud_.groups["g"].wrong_target = -5;
  Pass(absl::Minutes(1));
  EXPECT_THAT(problems_, ElementsAre("group g: targetSize: -5"));
  EXPECT_EQ(reports_.size(), reports);
  EXPECT_THAT(cloud_.writes, IsEmpty());
}

TEST_F(GroupsReads, AnInstanceInTwoGroups) {
  cloud_.AddGroup("g");
  cloud_.AddGroup("h");
  First();
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  const size_t reports = reports_.size();
  const std::string id = IdOf("fl-1");
  cloud_.groups["h"].wrong_list = std::vector<CloudInstance>{{id}};
  const Asked* end = End("fl-1", id);
  Pass(absl::Minutes(1));
  EXPECT_THAT(problems_,
              ElementsAre(absl::StrCat("group g: instances: ", id, " is in groups g and h"),
                          absl::StrCat("group h: instances: ", id, " is in groups g and h")));
  EXPECT_TRUE(absl::IsUnavailable(end->answer.status));
  EXPECT_EQ(reports_.size(), reports);
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

TEST_F(GroupsReads, WrongTemplates) {
  model::Node& node = cloud_.AddGroup("g").node;
  const model::Node good = node;
  node.invalid = "status.allocatable[cpu]: \"x\" is no quantity";
  EXPECT_EQ(First(), nullptr);
  node = good;
  node.allocatable.erase(node.allocatable.begin());
  Pass(absl::Seconds(15));
  NextCalls("NodeGroupTemplateNodeInfo", Fails(absl::UnimplementedError("no")));
  Pass(absl::Seconds(25));
  EXPECT_THAT(problems_,
              ElementsAre("group g: template: status.allocatable[cpu]: \"x\" is no quantity",
                          "group g: template: allocatable cpu is 0",
                          HasSubstr("serve NodeGroupTemplateNodeInfo"), HasSubstr("cpu is 0")));
  EXPECT_EQ(Offer(), nullptr);
  node = good;
  Pass(absl::Seconds(15));
  ASSERT_NE(Offer(), nullptr);
  node.allocatable[0].second = -1;
  cloud_.groups["g"].told.debug = "version 2";
  Pass(absl::Minutes(1));
  EXPECT_EQ(Offer()->cpu_milli, 4000) << "the last good one";
  EXPECT_EQ(problems_.back(), "group g: template: cpu is negative");
}

TEST_F(GroupsReads, WrongPrices) {
  FakeCloud::Group& group = cloud_.AddGroup("g");
  ASSERT_NE(First(), nullptr);
  for (const double price : {std::nan(""), -0.01, 1e9, std::numeric_limits<double>::infinity()}) {
    problems_.clear();
    group.price = price;
    Pass(absl::Seconds(30));
    EXPECT_EQ(problems_.size(), 1u) << price;
    EXPECT_THAT(problems_.front(), HasSubstr("group g: price: "));
    EXPECT_EQ(Offer()->on_demand_micro_usd, 1'000'000);
    group.price = 1;
    Pass(absl::Seconds(30));
  }
  group.price = 0;  // a server that has no price may say so
  Pass(absl::Seconds(30));
  EXPECT_EQ(Offer(), nullptr);
  EXPECT_THAT(problems_.back(), HasSubstr("the server tells none"));
}

}  // namespace
}  // namespace fairlead::hook
