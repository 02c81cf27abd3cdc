#include "core/shard.h"

#include <gmock/gmock.h>

#include <random>

#include "absl/strings/match.h"
#include "core/config_shard.h"
#include "core/configuration.h"
#include "core/machines_testing.h"

namespace fairlead::core::testing {
namespace {

using model::kNodePoolLabel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kReservations[] = "reservations";

template <typename T>
T InPool(T object, absl::string_view pool) {
  if (!pool.empty()) object.meta.labels.Set(kNodePoolLabel, pool);
  return object;
}

// What the core has, as the events that it was passed say.
class PassedWorld {
 public:
  void Take(const model::ClusterEvent& event) {
    if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
      const model::ObjectMeta& meta = model::MetaOf(upsert->object);
      std::string text = meta.uid;
      if (const auto* pod = std::get_if<model::Pod>(&upsert->object)) {
        const bool other = pod->scheduler_name == ShardFilter::kOtherShard;
        absl::StrAppend(&text, other ? " other" : "");
        // A pod never changes its scheduler.
        const auto known = objects.find({model::Kind::kPod, model::Key(meta)});
        if (known != objects.end()) {
          EXPECT_TRUE(known->second == text || !absl::StartsWith(known->second, meta.uid))
              << known->second << " becomes " << text;
        }
      }
      objects[{model::KindOf(upsert->object), model::Key(meta)}] = text;
    } else if (const auto* removed = std::get_if<model::Delete>(&event)) {
      const auto known = objects.find({removed->kind, model::Key(removed->ns, removed->name)});
      if (known == objects.end()) return;
      if (!removed->uid.empty() && !absl::StartsWith(known->second, removed->uid)) return;
      objects.erase(known);
    }
  }
  std::map<std::pair<model::Kind, std::string>, std::string> objects;
};

class ShardFilterTest : public ::testing::Test {
 protected:
  void Begin(const std::string& value) {
    filter_.emplace(Shard{value}, std::vector<std::string>{"fairlead"}, kReservations,
                    /*grouping=*/false, [this](const model::Pod& pod) {
                      return pod.node_name.empty() && sent_.contains(pod.meta.name);
                    });
    world_ = {};
  }
  template <typename T>
  void Put(const T& object) {
    Pass(model::Upsert{object});
  }
  void Pass(const model::ClusterEvent& event) {
    filter_->Apply(event, [this](const model::ClusterEvent& own) { world_.Take(own); });
  }
  // "" if the core has no such object.
  std::string Has(model::Kind kind, const std::string& key) const {
    const auto found = world_.objects.find({kind, key});
    return found == world_.objects.end() ? "" : found->second;
  }
  std::optional<ShardFilter> filter_;
  PassedWorld world_;
  std::set<std::string> sent_;  // names of pods of which a binding is open
};

TEST_F(ShardFilterTest, TheLabelDecides) {
  for (const std::string shard : {"", "a"}) {
    Begin(shard);
    for (const std::string pool : {"", "a", "b"}) {
      Put(InPool(MakeNode(absl::StrCat("n-", pool), 1), pool));
      Put(InPool(MakeQueue(absl::StrCat("q-", pool), "", 1, 1), pool));
      Put(InPool(MakeGroup("ns", absl::StrCat("g-", pool), "q", 1), pool));
      Put(InPool(PodBuilder("ns", absl::StrCat("p-", pool)).Build(), pool));
      const bool own = pool == shard;
      EXPECT_EQ(!Has(model::Kind::kNode, absl::StrCat("n-", pool)).empty(), own);
      EXPECT_EQ(!Has(model::Kind::kQueue, absl::StrCat("q-", pool)).empty(), own);
      EXPECT_EQ(!Has(model::Kind::kPodGroup, absl::StrCat("ns/g-", pool)).empty(), own);
      EXPECT_EQ(Has(model::Kind::kPod, absl::StrCat("ns/p-", pool)),
                absl::StrCat("uid-ns-p-", pool, own ? "" : " other"));
    }
  }
}

TEST_F(ShardFilterTest, OtherKindsAndPodsOfOtherSchedulersAreEveryShards) {
  Begin("a");
  model::PriorityClass priority;
  priority.meta.name = "high";
  Put(priority);
  EXPECT_EQ(world_.objects.size(), 1u);
  Put(InPool(PodBuilder("ns", "p").Scheduler("default-scheduler").Build(), "b"));
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p");
}

TEST_F(ShardFilterTest, AnObjectThatMovesComesAndGoes) {
  Begin("a");
  Put(InPool(MakeNode("n", 1), "a"));
  EXPECT_NE(Has(model::Kind::kNode, "n"), "-");
  Put(InPool(MakeNode("n", 1), "b"));
  EXPECT_EQ(Has(model::Kind::kNode, "n"), "");
  Put(InPool(MakeNode("n", 1), "a"));
  model::Node again = InPool(MakeNode("n", 1), "b");
  again.meta.uid = "another";  // the deletion of the former was not seen yet
  Put(again);
  EXPECT_EQ(Has(model::Kind::kNode, "n"), "");
}

TEST_F(ShardFilterTest, PodsFollowTheirGroupWhateverTheirOwnLabelSays) {
  Begin("a");
  Put(InPool(PodBuilder("ns", "p").Group("g").Build(), "b"));
  Put(InPool(PodBuilder("ns", "q").Group("g").Build(), "a"));
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p other") << "the group has not been seen";
  EXPECT_EQ(Has(model::Kind::kPod, "ns/q"), "uid-ns-q");
  Put(InPool(MakeGroup("ns", "g", "q", 2), "a"));
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p");
  Put(InPool(MakeGroup("ns", "g", "q", 2), "b"));
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p other");
  EXPECT_EQ(Has(model::Kind::kPod, "ns/q"), "uid-ns-q other");
  EXPECT_EQ(Has(model::Kind::kPodGroup, "ns/g"), "");
}

// Who deletes a group must not take what its pods hold out of the account of their queue.
TEST_F(ShardFilterTest, PodsOfADeletedGroupStay) {
  Begin("a");
  const model::PodGroup group = InPool(MakeGroup("ns", "g", "q", 1), "a");
  Put(group);
  Put(PodBuilder("ns", "p").Group("g").Build());
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p");
  Pass(model::Delete{model::Kind::kPodGroup, "ns", "g", group.meta.uid});
  EXPECT_EQ(Has(model::Kind::kPodGroup, "ns/g"), "");
  Put(PodBuilder("ns", "p").Group("g").Build());
  EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p");
  // Without any pod nothing remembers it.
  Pass(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  Put(PodBuilder("ns", "late").Group("g").Build());
  EXPECT_EQ(Has(model::Kind::kPod, "ns/late"), "uid-ns-late other");
}

TEST_F(ShardFilterTest, APodStaysUntilItsBindingIsKnown) {
  Begin("a");
  const auto let_go = [&] {
    filter_->LetGo([this](const model::ClusterEvent& own) { world_.Take(own); });
  };
  const model::Pod pod = PodBuilder("ns", "p");
  model::Pod bound = pod;
  bound.node_name = "n";
  for (const bool with_group : {false, true}) {
    const auto put = [&](model::Pod object, const std::string& pool) {
      if (!with_group) return Put(InPool(object, pool));
      Put(InPool(MakeGroup("ns", "g", "q", 1), pool));
      object.meta.annotations.Set(model::kPodGroupAnnotation, "g");
      Put(object);
    };
    put(pod, "a");
    sent_ = {"p"};
    put(pod, "b");
    let_go();
    EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p") << "perhaps it is bound";
    put(bound, "b");
    EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p other");
    Pass(model::Delete{model::Kind::kPod, "ns", "p", ""});

    put(pod, "a");
    put(pod, "b");
    sent_ = {};
    let_go();
    EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "uid-ns-p other") << "it is refused";
    Pass(model::Delete{model::Kind::kPod, "ns", "p", ""});

    put(pod, "a");
    sent_ = {"p"};
    put(pod, "b");
    Pass(model::Delete{model::Kind::kPod, "ns", "p", ""});
    let_go();
    EXPECT_EQ(Has(model::Kind::kPod, "ns/p"), "");
  }
}

TEST_F(ShardFilterTest, AReservationPodIsOfItsNodesShard) {
  Begin("a");
  Put(PodBuilder(kReservations, "r").Scheduler("").On("n").Build());
  EXPECT_EQ(Has(model::Kind::kPod, "reservations/r"), "");
  Put(InPool(MakeNode("n", 1), "a"));
  EXPECT_EQ(Has(model::Kind::kPod, "reservations/r"), "uid-reservations-r");
  Put(InPool(MakeNode("n", 1), ""));
  EXPECT_EQ(Has(model::Kind::kPod, "reservations/r"), "");
}

TEST_F(ShardFilterTest, NodesOfAPoolOfTheShardBearItsLabel) {
  model::NodePool pool;
  pool.meta.name = "p";
  for (const std::string shard : {"", "a"}) {
    Begin(shard);
    std::vector<std::string> labels;
    filter_->Apply(model::Upsert{InPool(pool, shard)}, [&](const model::ClusterEvent& event) {
      const auto& own = std::get<model::NodePool>(std::get<model::Upsert>(event).object);
      labels.emplace_back(own.labels.Get(kNodePoolLabel));
    });
    EXPECT_THAT(labels, ElementsAre(shard));
  }
}

// Objects come, move and go in any order. The oracle has all of them, and knows of each group which
// shard it was seen in last.
TEST_F(ShardFilterTest, TheCoreHasWhatBelongsToTheShard) {
  constexpr uint32_t kSeeds = 300;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const auto pick = [&](std::vector<std::string> from) { return from[random() % from.size()]; };
    const std::string shard = pick({"", "a"});
    Begin(shard);
    std::map<std::string, model::Pod> pods;
    std::map<std::string, model::PodGroup> groups;
    std::map<std::string, bool> seen;  // group -> whether it was of the shard
    int made = 0;
    for (int i = 0; i < 60; ++i) {
      const std::string pool = pick({"", "a", "b"});
      const std::string name = pick({"x", "y", "z"});
      switch (random() % 5) {
        case 0:
        case 1: {
          PodBuilder pod("ns", name);
          const std::string group = pick({"", "g", "h"});
          if (!group.empty()) pod.Group(group);
          if (random() % 6 == 0) pod.Scheduler("other");
          model::Pod built = InPool(pod.Build(), pool);
          const auto known = pods.find(name);
          const bool anew = known == pods.end() || random() % 4 == 0;
          built.meta.uid = anew ? absl::StrCat("u", ++made) : known->second.meta.uid;
          if (!anew) built.scheduler_name = known->second.scheduler_name;
          pods[name] = built;
          Put(built);
          break;
        }
        case 2: {
          const std::string group = pick({"g", "h"});
          groups[group] = InPool(MakeGroup("ns", group, "q", 1), pool);
          seen[group] = pool == shard;
          Put(groups[group]);
          break;
        }
        case 3: {
          if (!pods.contains(name)) break;
          Pass(model::Delete{model::Kind::kPod, "ns", name, pods[name].meta.uid});
          pods.erase(name);
          break;
        }
        default: {
          const std::string group = pick({"g", "h"});
          if (groups.erase(group) > 0) {
            Pass(model::Delete{model::Kind::kPodGroup, "ns", group, ""});
          }
        }
      }
      std::erase_if(seen, [&](const auto& entry) {
        return !groups.contains(entry.first) &&
               std::none_of(pods.begin(), pods.end(), [&](const auto& pod) {
                 return pod.second.meta.annotations.Get(model::kPodGroupAnnotation) ==
                            entry.first &&
                        pod.second.scheduler_name == "fairlead";
               });
      });
      std::map<std::pair<model::Kind, std::string>, std::string> expected;
      for (const auto& [key, pod] : pods) {
        const std::string group(pod.meta.annotations.Get(model::kPodGroupAnnotation));
        const bool own =
            seen.contains(group) ? seen[group] : pod.meta.labels.Get(kNodePoolLabel) == shard;
        const bool foreign = pod.scheduler_name == "fairlead" && !own;
        expected[{model::Kind::kPod, absl::StrCat("ns/", key)}] =
            absl::StrCat(pod.meta.uid, foreign ? " other" : "");
      }
      for (const auto& [key, group] : groups) {
        if (group.meta.labels.Get(kNodePoolLabel) != shard) continue;
        expected[{model::Kind::kPodGroup, absl::StrCat("ns/", key)}] = group.meta.uid;
      }
      ASSERT_EQ(world_.objects, expected);
    }
  }
}

TEST(ShardNames, AreApart) {
  const Shard none{""}, a{"gpu-a"}, odd{"Pool_B.1"};
  EXPECT_EQ(LeaseNameOf("fairlead", none), "fairlead");
  EXPECT_EQ(LeaseNameOf("fairlead", a), "fairlead-gpu-a");
  EXPECT_THAT(LeaseNameOf("fairlead", odd), ::testing::MatchesRegex("fairlead-[0-9a-f]{8}"));
  EXPECT_EQ(RequestPrefixOf(nullptr), "fl-");
  EXPECT_EQ(RequestPrefixOf(&none), "fl-");
  EXPECT_THAT(RequestPrefixOf(&a), ::testing::MatchesRegex("fl-[0-9a-f]{8}-"));
  EXPECT_NE(RequestPrefixOf(&a), RequestPrefixOf(&odd));
}

TEST(ShardConfiguration, IsRead) {
  const auto read = [](const std::string& fields) {
    return ReadConfiguration({absl::StrCat(
        R"({"apiVersion": "config.fairlead.dev/v1alpha1", "kind": "FairleadConfiguration", )",
        fields, "}")});
  };
  const auto a = read(R"("shard": {"partitionLabelValue": "gpu-a"})");
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->options.shard, Shard{"gpu-a"});
  EXPECT_EQ(a->options.usage_store.name, "fairlead-gpu-a-usage");
  EXPECT_EQ(a->options.hook.node_labels.Get(kNodePoolLabel), "gpu-a");
  const auto rest = read(R"("shard": {"partitionLabelValue": ""})");
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->options.shard, Shard{""});
  EXPECT_EQ(rest->options.usage_store.name, "fairlead-usage");
  EXPECT_EQ(read(R"("events": true)")->options.shard, std::nullopt);
  const std::pair<const char*, const char*> kWrong[] = {
      {R"("shard": {})", "shard.partitionLabelValue: must be set"},
      {R"("shard": {"partitionLabelValue": 3})", "shard.partitionLabelValue: must be a string"},
      {R"("shard": {"partitionLabelValue": "a b"})", "\"a b\" is not the value of a label"},
      {R"("shard": {"partitionLabelValue": "-a"})", "\"-a\" is not the value of a label"},
      {R"("shard": {"labelValue": "a"})", "shard.labelValue"},
      {R"("shard": {"partitionLabelValue": "a"}, "guests": {"schedulerNames": ["x"]})",
       "guests: cannot be combined with a shard"},
  };
  for (const auto& [fields, message] : kWrong) {
    EXPECT_THAT(read(fields).status().message(), HasSubstr(message)) << fields;
  }
  EXPECT_THAT(LabelValueFault(std::string(64, 'a')), HasSubstr("has 64 characters"));
}

// Two processes, each with its shard, on one cluster.
class ShardsTest : public MachinesTest {
 protected:
  void Start(const std::string& value) {
    options_ = KwokOptions();
    options_.emit_events = false;
    options_.hook.gathering_quiet = absl::ZeroDuration();
    SetShard(Shard{value}, "fairlead", options_);
    Restart();
    SyncAll();
  }
};

TEST_F(ShardsTest, EachPlacesItsPodsOnItsNodesWithinItsQueues) {
  for (const std::string shard : {"", "a"}) {
    Start(shard);
    options_.hook.enabled = false;
    for (const std::string pool : {"", "a"}) {
      Put(InPool(MakeNode(absl::StrCat("n-", pool), 4), pool));
      Put(InPool(MakeQueue(absl::StrCat("q-", pool), "", 4, 4), pool));
      Put(InPool(PodBuilder("ns", absl::StrCat("p-", pool))
                     .Queue(absl::StrCat("q-", pool))
                     .Gpus(1)
                     .Build(),
                 pool));
      Put(InPool(MakeGroup("ns", absl::StrCat("g-", pool), absl::StrCat("q-", pool), 2), pool));
      for (const char* member : {"0", "1"}) {
        Put(PodBuilder("ns", absl::StrCat("m-", pool, member))
                .Group(absl::StrCat("g-", pool))
                .Gpus(1)
                .Build());
      }
    }
    std::vector<std::string> bound;
    for (const model::BindPod& bind : Of<model::BindPod>(Step(1))) {
      EXPECT_EQ(bind.node, absl::StrCat("n-", shard));
      bound.push_back(bind.name);
    }
    std::sort(bound.begin(), bound.end());
    EXPECT_THAT(bound, ElementsAre(absl::StrCat("m-", shard, "0"), absl::StrCat("m-", shard, "1"),
                                   absl::StrCat("p-", shard)));
  }
}

// The binding was sent before its label was seen to change.
TEST_F(ShardsTest, WhatIsBoundWhileItMovesCountsOnItsNode) {
  Start("a");
  options_.hook.enabled = false;
  Put(InPool(MakeNode("n", 1), "a"));
  Put(InPool(MakeQueue("q", "", 8, 8), "a"));
  const model::Pod first = PodBuilder("ns", "first").Queue("q").Gpus(1);
  Put(InPool(first, "a"));
  const StepResult sent = Step(1);
  ASSERT_EQ(Of<model::BindPod>(sent).size(), 1u);
  Put(InPool(first, "b"));
  Put(InPool(PodBuilder("ns", "second").Queue("q").Gpus(1).Build(), "a"));
  EXPECT_TRUE(Of<model::BindPod>(Step(2)).empty()) << "the only GPU may be taken";
  // It is refused: now it is gone, and its room is free.
  AnswerThe<model::BindPod>(sent, absl::PermissionDeniedError("no"));
  const std::vector<model::BindPod> binds = Of<model::BindPod>(Step(3));
  ASSERT_EQ(binds.size(), 1u);
  EXPECT_EQ(binds.front().name, "second");
}

TEST_F(ShardsTest, WhatIsProvisionedBelongsToTheShard) {
  Start("a");
  Put(InPool(MakeQueue("research", "", 400, 400), "a"));
  AddPod(InPool(GpuPod("p0"), "a"));
  Play(absl::Minutes(3));
  EXPECT_EQ(created_, 1);
  ASSERT_THAT(bound_, SizeIs(1));
  const auto& [name, request] = *requests_.begin();
  EXPECT_TRUE(absl::StartsWith(name, options_.hook.request_prefix)) << name;
  EXPECT_EQ(request.meta.labels.Get(kNodePoolLabel), "a");
  EXPECT_EQ(nodes_.at(bound_.at("p0")).meta.labels.Get(kNodePoolLabel), "a");
}

// Both objects have another label: the machine is another shard's now, and stays.
TEST_F(ShardsTest, AMachineThatMovesIsNotEnded) {
  Start("a");
  Put(InPool(MakeQueue("research", "", 400, 400), "a"));
  AddPod(InPool(GpuPod("p0"), "a"));
  Play(absl::Minutes(3));
  ASSERT_THAT(bound_, SizeIs(1));
  model::NodeRequest request = requests_.begin()->second;
  request.meta.labels.Set(kNodePoolLabel, "b");
  Put(request);
  model::Node& node = nodes_.at(bound_.at("p0"));
  node.meta.labels.Set(kNodePoolLabel, "b");
  Put(node);
  EndPod("p0");
  int ended = 0;
  for (int i = 0; i < 600; ++i, now_ += absl::Seconds(5)) {
    const StepResult result = StepAt(now_);
    ended += static_cast<int>(Of<model::TerminateNode>(result).size() +
                              Of<model::DeleteNodeRequest>(result).size() +
                              Of<model::SetNodeTaint>(result).size());
    AnswerAll(result);
  }
  EXPECT_EQ(ended, 0);
}

// Providers list the machines of all shards.
TEST_F(ShardsTest, AMachineOfAnotherShardIsLeftAlone) {
  const Shard a{"a"}, b{"b"};
  for (const std::string shard : {"", "a"}) {
    Start(shard);
    const std::pair<std::string, bool> kNames[] = {
        {absl::StrCat(RequestPrefixOf(&b), "0123456789abcdef"), false},
        {absl::StrCat(RequestPrefixOf(&a), "0123456789abcdef"), shard == "a"},
        {"fl-0123456789abcdef", shard.empty()}};
    std::set<std::string> ended;
    for (const auto& [name, own] : kNames) {
      hook::MachineReport report;
      report.provider = "kwok";
      report.request_name = name;
      report.request_uid = absl::StrCat("uid-", name);
      report.machine_id = absl::StrCat("kwok://", name);
      report.state = hook::MachineState::kRunning;
      loop_->MachineReported(report);
    }
    for (int i = 0; i < 120; ++i) {
      const StepResult result = Step(5 * i);
      for (const auto& end : Of<model::TerminateNode>(result)) {
        ended.insert(end.request_name);
      }
      AnswerAll(result);
    }
    for (const auto& [name, own] : kNames) EXPECT_EQ(ended.contains(name), own) << name;
  }
}

}  // namespace
}  // namespace fairlead::core::testing
