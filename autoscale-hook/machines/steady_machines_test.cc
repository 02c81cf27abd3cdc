// Steady machines: a step that leaves them out decides what one that looks at all of them does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/hook_testing.h"

namespace fairlead::hook {
namespace {

using model::NodeRequest;
using testing::HookTest;
using testing::kDollar;
using testing::kGiB;

// ---- one machine

class SteadyMachinesTest : public HookTest {
 protected:
  // A machine that is in use.
  void BuySteady() {
    BuyReady();
    StepAndApply();
    ASSERT_EQ(Steady(), 1);
  }
  [[nodiscard]] int64_t Steady() const { return hook_->machines().steady().size(); }
};

TEST_F(SteadyMachinesTest, IsOneThatIsInUseOnceItsStatusIsSeen) {
  BuyReady();
  EXPECT_EQ(Steady(), 0) << "its status is not seen yet";
  StepAndApply();
  EXPECT_EQ(Steady(), 1);
}

TEST_F(SteadyMachinesTest, WithoutVersionsNoneIs) {
  BuySteady();
  StepInput input;
  input.now = now_;
  const std::vector<NodeUse> uses = {nodes_.at(TheName())};
  input.nodes = &uses;
  hook_->Step(input, placement_);
  EXPECT_EQ(Steady(), 0);
}

TEST_F(SteadyMachinesTest, AnUnneededOneIsUntilItIsDue) {
  BuySteady();
  nodes_.at(TheName()).needed = false;
  StepTwice();
  EXPECT_EQ(Steady(), 1);
  const absl::Time due = *The().unneeded_since + options_.unneeded_after;
  EXPECT_EQ(Step().wake_at, due);
  now_ = due;
  EXPECT_THAT(All<model::SetNodeTaint>(StepAndApply()), ::testing::SizeIs(1));
  EXPECT_EQ(Steady(), 0);
}

TEST_F(SteadyMachinesTest, AnUnneededOneIsUntilItsPoolSaysAnotherWait) {
  pools_.resize(1);
  pools_[0].meta.name = "a";
  BuySteady();
  nodes_.at(TheName()).needed = false;
  StepTwice();
  ASSERT_EQ(Steady(), 1);
  now_ += absl::Seconds(10);
  pools_[0].disruption.consolidate_after = absl::Seconds(10);
  EXPECT_THAT(All<model::SetNodeTaint>(StepAndApply()), ::testing::SizeIs(1));
}

TEST_F(SteadyMachinesTest, OneWhoseNodeIsGoneIsNot) {
  BuySteady();
  const NodeUse node = nodes_.at(TheName());
  nodes_.clear();
  StepAndApply();
  EXPECT_EQ(Steady(), 0);
  nodes_[node.name] = node;  // as it was
  StepAndApply();
  EXPECT_EQ(Steady(), 1);
}

TEST_F(SteadyMachinesTest, AnotherNodeOfItEndsIt) {
  BuySteady();
  nodes_["ip-2"] = Arrived("ip-2", TheName());
  StepAndApply();
  EXPECT_EQ(Steady(), 0);
}

TEST_F(SteadyMachinesTest, TheWatchOfItsRequestEndsItUntilTheNextStep) {
  BuySteady();
  hook_->Observe(The());
  EXPECT_EQ(Steady(), 0);
  StepAndApply();
  EXPECT_EQ(Steady(), 1);
}

TEST_F(SteadyMachinesTest, OneThatMayHaveTwoMachinesIsNot) {
  BuySteady();
  for (const char* id : {"cloud://1", "cloud://2"}) {
    hook_->OnProviderResult({TheName(), The().meta.uid, "", true}, absl::OkStatus(), now_, id);
    StepTwice();
  }
  EXPECT_EQ(Steady(), 0) << "the node has no id and may be either of them: both cost money";
}

TEST_F(SteadyMachinesTest, ALostMachineOfItsNameEndsIt) {
  BuySteady();
  hook_->OnMachineReport(
      {"kwok", TheName(), "another-uid", "cloud://9", MachineState::kRunning, {}}, now_);
  now_ += absl::Minutes(2);  // the machine is unclaimed for so long that it is a lost one
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), ::testing::IsEmpty())
        << "the node has no id, and may be that of the lost machine";
  }
  EXPECT_THAT(hook_->machines().ProviderIdsOf(TheName()), ::testing::ElementsAre("cloud://9"));
}

// ---- all that a step may do, in two hooks

std::string Text(const std::optional<absl::Time>& time) {
  return time.has_value() ? absl::FormatTime(*time, absl::UTCTimeZone()) : "-";
}

std::string Text(const NodeRequest& request) {
  return absl::StrCat(
      request.meta.name, " ", request.meta.uid, " ", static_cast<int>(request.phase), " ",
      request.node_name, " ", request.provider_id, " '", request.message, "' ", request.failure,
      " ", Text(request.launched_at), Text(request.registered_at), Text(request.ready_at),
      Text(request.unneeded_since), Text(request.failed_at), " ", request.instance_type);
}

std::string Text(const model::Action& action) {
  std::string text = absl::StrCat(action.what.index(), " ");
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    absl::StrAppend(&text, Text(create->request));
  } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    absl::StrAppend(&text, Text(update->request));
  } else if (const auto* erase = std::get_if<model::DeleteNodeRequest>(&action.what)) {
    absl::StrAppend(&text, erase->name, " ", erase->uid);
  } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
    absl::StrAppend(&text, Text(launch->request));
  } else if (const auto* end = std::get_if<model::TerminateNode>(&action.what)) {
    absl::StrAppend(&text, end->request_name, " ", end->node_name, " ", end->provider_id);
  } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
    absl::StrAppend(&text, taint->node, " ", taint->uid, " ", taint->present);
  } else if (const auto* event = std::get_if<model::EmitEvent>(&action.what)) {
    absl::StrAppend(&text, event->name, " ", event->reason, " ", event->note);
  }
  return text;
}

std::string Text(const StepOutput& out) {
  std::vector<std::string> lines;
  for (const model::Action& action : out.actions) lines.push_back(Text(action));
  for (const ProviderCall& end : out.ends) {
    lines.push_back(
        absl::StrCat("end ", end.request_name, " ", end.request_uid, " ", end.provider_id));
  }
  for (const StepOutput::NewNode& created : out.created) {
    lines.push_back(absl::StrCat("created ", Text(created.request), created.adopted, " ",
                                 model::Get(created.node.allocatable, "cpu")));
  }
  for (const DemandOutcome& outcome : out.outcomes) {
    lines.push_back(absl::StrCat(
        "outcome ", outcome.workload, " ", outcome.members, " ", static_cast<int>(outcome.code),
        " ", static_cast<int>(outcome.service), " ", absl::StrJoin(outcome.node_requests, ","), " ",
        Text(outcome.expected_at), " ", absl::StrJoin(outcome.details, "; ")));
  }
  for (const auto& node : out.emptied) lines.push_back(absl::StrCat("emptied ", node.name));
  lines.push_back(absl::StrCat("list ", out.node_list, " withdrawn ",
                               absl::StrJoin(out.withdrawn, ","), " again ",
                               absl::StrJoin(out.look_again, ","), " wake ", Text(out.wake_at)));
  return absl::StrJoin(lines, "\n");
}

std::string Text(const Hook& hook) {
  std::vector<std::string> lines;
  for (const auto& [key, row] : hook.machines().rows()) {
    lines.push_back(absl::StrCat(key, " ", Text(row.desired), " lost ", row.lost, " ids ",
                                 absl::StrJoin(row.provider_ids, ","), " emptying ",
                                 row.emptying.has_value(), " learned ", row.shape_learned,
                                 " missing ", Text(row.missing_since), " given up ", row.given_up));
  }
  for (const model::OfferedNode& offered : hook.NodesOnOffer({})) {
    lines.push_back(absl::StrCat("offer ", model::Get(offered.node.allocatable, "cpu")));
  }
  return absl::StrJoin(lines, "\n");
}

// Says what the world says.
class WorldsWord final : public Evacuation {
 public:
  [[nodiscard]] Occupants OccupantsOf(const std::string& node) override {
    Occupants occupants;
    occupants.staying = 1;
    occupants.lost_work = absl::Minutes(static_cast<int64_t>(node.back() % 5));
    if (blocked.contains(node)) occupants.blocked_by = "no";
    return occupants;
  }
  [[nodiscard]] bool FindRoom(const std::vector<std::string>& nodes) override {
    return nodes.size() <= room;
  }
  [[nodiscard]] model::ResourceList RequestsOf(const std::vector<std::string>&) override {
    return {};
  }
  [[nodiscard]] bool FitOn(const std::vector<std::string>& nodes, const model::Node&) override {
    return !blocked.contains(nodes.front()) && nodes.front().back() % 2 == 0;
  }
  std::set<std::string> blocked;
  size_t room = 0;
};

// A hook with versions of nodes, and one without, in one world.
class TwinWorld {
 public:
  explicit TwinWorld(uint64_t seed) : random_(seed) {
    InstanceType g1 = testing::Type("g.1", 8, 32, 1, kDollar);
    InstanceType c1 = testing::Type("c.1", 16, 64, 0, kDollar / 2);
    catalog_ = Catalog::FromTypes({g1, c1});
    options_.provider = "kwok";
    options_.gathering_quiet = absl::ZeroDuration();
    options_.unneeded_after = absl::Minutes(2);
    options_.ready_timeout = absl::Minutes(4);
    options_.launch_timeout = absl::Minutes(3);
    options_.cluster_gpu_limit = 12;
    options_.removals_per_minute = 3;
    options_.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
    model::DisruptionBudget budget;
    budget.nodes = 30;
    budget.percent = true;
    options_.disruption.budgets = {budget};
    pools_.resize(2);
    pools_[0].meta.name = "a";
    pools_[1].meta.name = "b";
    pools_[1].instance_types = {"c.1"};
    cap_.queue = "q";
    cap_.queues = {"q"};
    cap_.gpus = 9;
    lazy_ = std::make_unique<Hook>(options_, &catalog_);
    eager_ = std::make_unique<Hook>(options_, &catalog_);
  }

  void Run(int rounds) {
    for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(absl::StrCat("round ", i));
      now_ += absl::Seconds(OneIn(10) ? Pick(30, 200) : OneIn(40) ? -Pick(1, 60) : Pick(0, 15));
      if (OneIn(50)) Restart();
      if (!OneIn(4)) {
        for (int64_t events = Pick(0, 3); events > 0; --events) Happen();
      }
      for (auto& [name, node] : nodes_) Boot(node);
      Step();
    }
  }
  int64_t steady = 0, looked_at = 0;  // machines, over all steps

 private:
  int64_t Pick(int64_t low, int64_t high) { return random_.Between(low, high); }
  bool OneIn(int64_t n) { return random_.OneIn(n); }
  void Both(absl::FunctionRef<void(Hook&)> tell) {
    tell(*lazy_);
    tell(*eager_);
  }
  template <typename Map>
  typename Map::mapped_type* Any(Map& map) {
    if (map.empty()) return nullptr;
    auto it = map.begin();
    std::advance(it, Pick(0, static_cast<int64_t>(map.size()) - 1));
    return &it->second;
  }

  void Restart() {
    auto lazy = std::make_unique<Hook>(options_, &catalog_);
    auto eager = std::make_unique<Hook>(options_, &catalog_);
    if (OneIn(2)) {  // the configuration is read again
      lazy->Continue(*lazy_);
      eager->Continue(*eager_);
    }
    lazy_ = std::move(lazy);
    eager_ = std::move(eager);
    for (const auto& [name, request] : requests_) {
      Both([&, &shown = request](Hook& hook) { hook.Observe(shown); });
    }
  }
  void Boot(NodeUse& node) {
    if (!node.registered && launched_.contains(node.name) && OneIn(3)) {
      node.registered = true;
      node.uid = absl::StrCat("node-uid-", ++uids_);
      node.allocatable = {{"cpu", 8000}, {"memory", 32 * kGiB}, {"nvidia.com/gpu", 1000}};
      if (OneIn(2)) node.provider_id = absl::StrCat("cloud://", node.name);
      node.pool = "a";
      node.instance_type = "g.1";
      node.daemon_requests = {{"cpu", 100 * Pick(1, 3)}};
    } else if (node.registered && !node.ready && OneIn(5)) {
      node.ready = true;
    }
  }

  void Happen() {
    const int64_t what = Pick(0, 19);
    if (what < 10) return HappenToNode(what);
    if (what < 16) return HappenToRequest(what);
    if (what == 16) {
      model::NodePool& pool = pools_[static_cast<size_t>(Pick(0, 1))];
      pool.disruption.consolidate_after = absl::Seconds(Pick(1, 300));
      pool.disruption.consolidation = OneIn(3)
                                          ? model::ConsolidationPolicy::kWhenEmpty
                                          : model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
      ++pool.meta.generation;
    } else if (what == 17) {
      word_.room = static_cast<size_t>(Pick(0, 3));
    } else if (what == 18) {
      const auto catalog = std::make_shared<const Catalog>(
          Catalog::FromTypes({testing::Type("g.1", 8, 32, 1, Pick(1, 3) * kDollar),
                              testing::Type("c.1", 16, 64, 0, kDollar)}));
      Both([&](Hook& hook) { hook.OnOffers("kwok", catalog); });
    } else {
      cap_.gpus = Pick(3, 12);
    }
  }

  void HappenToNode(int64_t what) {
    NodeUse* const node = Any(nodes_);
    if (node == nullptr) return;
    if (what <= 3) {
      node->needed = OneIn(2);
      node->needed_by_pods_alone = node->needed && !OneIn(4);
    } else if (what == 4 && OneIn(3)) {  // a part of the network fails
      for (auto& [name, other] : nodes_) other.ready = other.ready && OneIn(2);
    } else if (what == 4 && node->registered) {
      node->ready = !OneIn(3);
    } else if (what == 5 && node->registered) {
      node->interrupted = OneIn(2);
    } else if (what == 6 && node->registered) {
      node->daemon_requests = {{"cpu", 100 * Pick(1, 9)}};
    } else if (what == 7 && node->registered) {
      if (OneIn(2))
        word_.blocked.insert(node->name);
      else
        word_.blocked.erase(node->name);
    } else if (what == 8 && node->registered && OneIn(2)) {
      if (OneIn(2)) hidden_[node->name] = *node;
      nodes_.erase(std::string(node->name));
    } else if (what == 9) {
      if (!hidden_.empty()) {
        nodes_.insert(hidden_.extract(hidden_.begin()));
      } else if (node->registered && OneIn(3)) {
        NodeUse second = *node;
        second.name = absl::StrCat("ip-", ++uids_);
        second.uid = absl::StrCat("uid-", second.name);
        second.provider_id = absl::StrCat("cloud://", second.name);
        second.needed = OneIn(3);
        nodes_[second.name] = second;
      }
    }
  }

  void HappenToRequest(int64_t what) {
    NodeRequest* const request = Any(requests_);
    if (request == nullptr) return;
    const NodeRequest copy = *request;
    if (what == 10) return Both([&](Hook& hook) { hook.Observe(copy); });
    if (what == 11 && OneIn(4)) {
      requests_.erase(copy.meta.name);
      return Both([&](Hook& hook) { hook.ObserveGone(copy.meta.name, copy.meta.uid); });
    }
    if (what == 12 && OneIn(2)) {
      request->meta.deletion = now_;
      const NodeRequest deleted = *request;
      return Both([&](Hook& hook) { hook.Observe(deleted); });
    }
    if (what == 13 && OneIn(2)) {
      request->message = absl::StrCat("written by another ", ++uids_);
      const NodeRequest written = *request;
      return Both([&](Hook& hook) { hook.Observe(written); });
    }
    if (what == 14) {
      const MachineReport report = {"kwok",
                                    copy.meta.name,
                                    OneIn(4) ? absl::StrCat("uid-", ++uids_) : copy.meta.uid,
                                    OneIn(2) ? absl::StrCat("cloud://", copy.meta.name) : "",
                                    OneIn(4) ? MachineState::kGone : MachineState::kRunning,
                                    {}};
      return Both([&](Hook& hook) { hook.OnMachineReport(report, now_); });
    }
    if (what == 15) {
      const std::string id = OneIn(3) ? absl::StrCat("cloud://other-", ++uids_) : "";
      return Both([&](Hook& hook) {
        hook.OnProviderResult({copy.meta.name, copy.meta.uid, "", true}, absl::OkStatus(), now_,
                              id);
      });
    }
  }

  Demand Wanted() {
    Demand demand;
    const bool more = nodes_.size() < 14 ? !OneIn(3) : OneIn(4);
    if (!more) return demand;
    demand.push_back(
        testing::Item(absl::StrCat("team/job-", OneIn(3) ? Pick(1, jobs_ + 1) : ++jobs_),
                      testing::Spec(1000, 1, OneIn(3) ? 0 : 1), 1));
    return demand;
  }

  void Step() {
    const Demand demand = Wanted();
    std::vector<NodeUse> uses;
    for (const auto& [name, node] : nodes_) uses.push_back(node);
    StepInput input;
    input.now = now_;
    input.demand = &demand;
    for (const model::NodePool& pool : pools_) input.pools.push_back(&pool);
    input.nodes = &uses;
    const std::vector<QueueCap> caps = {cap_};
    input.queue_caps = &caps;
    input.evacuation = OneIn(20) ? nullptr : &word_;
    const StepOutput expected = eager_->Step(input, placement_);
    input.node_versions = versions_.Of(uses);
    const StepOutput out = lazy_->Step(input, placement_);
    ASSERT_EQ(Text(out), Text(expected));
    ASSERT_EQ(Text(*lazy_), Text(*eager_));
    ASSERT_EQ(lazy_->offers_version(), eager_->offers_version());
    ASSERT_EQ(eager_->machines().steady().size(), 0);
    steady += lazy_->machines().steady().size();
    looked_at += static_cast<int64_t>(lazy_->machines().rows().size());
    Carry(out);
  }

  // What the step says is done, mostly.
  void Carry(const StepOutput& out) {
    for (const std::string& name : out.withdrawn) {
      const auto node = nodes_.find(name);
      if (node != nodes_.end() && !node->second.registered) nodes_.erase(node);
    }
    for (const StepOutput::NewNode& created : out.created) {
      if (created.adopted) continue;
      NodeUse& use = nodes_[created.request.meta.name];
      use.name = use.node_request = created.request.meta.name;
      use.needed = use.needed_by_pods_alone = true;
    }
    for (const auto& emptied : out.emptied) {
      const auto node = nodes_.find(emptied.name);
      if (node != nodes_.end() && OneIn(3)) node->second.needed = false;
    }
    if (out.node_list != 0 && !OneIn(4)) {
      Both([&](Hook& hook) { hook.OnNodesListed(out.node_list, absl::OkStatus(), {}, now_); });
    }
    size_t end = 0;
    for (const model::Action& action : out.actions) {
      const bool ends = std::holds_alternative<model::TerminateNode>(action.what);
      CarryOne(action, ends ? &out.ends[end++] : nullptr);
    }
  }

  void CarryOne(const model::Action& action, const ProviderCall* end) {
    const absl::Status answer = OneIn(12) ? absl::UnavailableError("lost") : absl::OkStatus();
    if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
      NodeRequest request = create->request;
      request.meta.uid = absl::StrCat("uid-", (7919 * ++uids_) % 10007);
      request.meta.creation = now_;
      if (!requests_.emplace(request.meta.name, request).second) return;
      Both([&](Hook& hook) { hook.OnCreateResult(request.meta.name, answer, now_); });
      Both([&](Hook& hook) { hook.Observe(request); });
    } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      const auto known = requests_.find(update->request->meta.name);
      if (known == requests_.end() || known->second.meta.uid != update->request->meta.uid) return;
      Both([&](Hook& hook) { hook.OnStatusResult(update->request, answer, now_); });
      if (OneIn(10)) return;
      const model::ObjectMeta meta = known->second.meta;
      known->second = update->request;
      known->second.meta = meta;
      const NodeRequest shown = known->second;
      Both([&](Hook& hook) { hook.Observe(shown); });
    } else if (const auto* erase = std::get_if<model::DeleteNodeRequest>(&action.what)) {
      requests_.erase(erase->name);
      Both([&](Hook& hook) { hook.OnDeleteResult(erase->name, erase->uid, answer, now_); });
      Both([&](Hook& hook) { hook.ObserveGone(erase->name, erase->uid); });
    } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
      const model::ObjectMeta meta = launch->request->meta;
      const std::string id = OneIn(2) ? absl::StrCat("cloud://", meta.name) : "";
      launched_.insert(meta.name);
      Both([&](Hook& hook) {
        hook.OnProviderResult({meta.name, meta.uid, "", true}, answer, now_, id);
      });
    } else if (end != nullptr) {
      std::erase_if(nodes_, [&](const auto& node) {
        return node.second.registered && node.second.node_request == end->request_name &&
               (end->provider_id.empty() || node.second.provider_id.empty() ||
                node.second.provider_id == end->provider_id);
      });
      Both([&](Hook& hook) { hook.OnProviderResult(*end, answer, now_); });
    } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
      const auto node = nodes_.find(taint->node);
      if (node != nodes_.end() && !OneIn(8)) node->second.removal_tainted = taint->present;
      Both([&](Hook& hook) { hook.OnTaintResult(taint->uid, taint->present, answer, now_); });
    }
  }

  testing::Random random_;
  Catalog catalog_;
  HookOptions options_;
  std::vector<model::NodePool> pools_;
  QueueCap cap_;
  std::unique_ptr<Hook> lazy_, eager_;
  testing::ArithmeticPlacement placement_;
  testing::NodeVersions versions_;
  WorldsWord word_;
  absl::Time now_ = testing::kStart;
  std::map<std::string, NodeRequest> requests_;
  std::map<std::string, NodeUse> nodes_, hidden_;
  std::set<std::string> launched_;
  int uids_ = 0, jobs_ = 0;
};

TEST(SteadyMachinesPropertyTest, DecisionsAreThoseOfAStepThatLooksAtAllMachines) {
  const uint64_t seeds = fairlead::testing::FromEnvironment("FAIRLEAD_STEADY_SEEDS", 40);
  int64_t steady = 0, looked_at = 0;
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    TwinWorld world(seed);
    world.Run(300);
    steady += world.steady;
    looked_at += world.looked_at;
  }
  std::cout << "seeds 1.." << seeds << ": " << steady << " of " << looked_at
            << " machines were steady\n";
  EXPECT_GT(steady * 10, looked_at) << "the worlds must have steady machines";
}

}  // namespace
}  // namespace fairlead::hook
