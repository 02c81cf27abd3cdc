// The real adapters of kube/ over simulated networks: what they tell of the world is what its
// objects say.
#include <deque>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/leader/lease.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/source.h"
#include "kube/write/executor.h"
#include "sim/world/api_testing.h"
#include "sim/world/network.h"
#include "sim/world/virtual_clock.h"

namespace fairlead::sim::world {
namespace {

using model::Kind;
using What = decltype(model::Action::what);

kube::SourceOptions Options(uint64_t seed, int page_size) {
  kube::SourceOptions options;
  options.seed = seed;
  options.reflector.page_size = page_size;
  options.unread = {Kind::kNodeResourceTopology, Kind::kService, Kind::kReplicationController,
                    Kind::kReplicaSet, Kind::kStatefulSet};
  return options;
}

kube::ExecutorOptions Writer(const std::string& host) {
  kube::ExecutorOptions options;
  options.identity.host = host;
  return options;
}

// One replica's adapters, and what they have told.
struct Replica {
  Replica(TestWorld& world, const std::string& name, uint64_t seed, int page_size = 500)
      : clock(&world.time, world.time.now()),
        network(&world.time, &world.server, name, seed),
        executor(network, network, clock, queue, Writer(name)),
        source(network, network, clock, queue, Options(seed, page_size)) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Takes what has come; returns answers in order.
  void Drain() {
    std::vector<model::ClusterEvent> events;
    queue.DrainInto(events, absl::ZeroDuration());
    for (model::ClusterEvent& event : events) {
      if (auto* upsert = std::get_if<model::Upsert>(&event)) {
        if (auto* pod = std::get_if<model::Pod>(&upsert->object)) pods[pod->meta.name] = *pod;
      } else if (auto* gone = std::get_if<model::Delete>(&event)) {
        if (gone->kind == Kind::kPod) pods.erase(gone->name);
      } else if (auto* result = std::get_if<model::ActionResult>(&event)) {
        answers[result->action_id] = result->status;
      } else if (auto* synced = std::get_if<model::Synced>(&event)) {
        kinds.insert(synced->kind);
      }
    }
  }
  void Submit(uint64_t id, What what) {
    model::Action action;
    action.id = id;
    action.what = std::move(what);
    executor.Submit(action);
  }

  VirtualClock clock;
  Network network;
  kube::EventQueue queue;
  kube::Executor executor;
  kube::ClusterSource source;
  std::map<std::string, model::Pod> pods;
  std::map<uint64_t, absl::Status> answers;
  std::set<Kind> kinds;
  std::set<std::string> asked;  // pods that it has asked to bind
};

class NetworkAdaptersTest : public ::testing::Test {
 protected:
  NetworkAdaptersTest() { world_.Create(ResourceType::kNodes, NodeJson("n1")); }

  Replica& Start(const std::string& name, uint64_t seed) {
    Replica& replica = replicas_.emplace_back(world_, name, seed);
    replica.source.Start();
    return replica;
  }
  void Run(absl::Duration by) {
    world_.Run(by);
    for (Replica& replica : replicas_) replica.Drain();
  }
  // Carries it out; the answer, whenever it comes.
  absl::Status Do(Replica& replica, What what) {
    const uint64_t id = ++last_action_;
    replica.Submit(id, std::move(what));
    for (int i = 0; i < 600 && !replica.answers.contains(id); ++i) Run(absl::Seconds(1));
    return replica.answers.contains(id) ? replica.answers[id] : absl::InternalError("no answer");
  }
  model::BindPod Bind(Replica& replica, const std::string& pod) {
    return {"default", pod, replica.pods.at(pod).meta.uid, "n1", {{"k", "v"}}};
  }
  const Json& Pod(const std::string& name) const { return world_.Get(ResourceType::kPods, name); }
  // What a replica has been told is what the objects say.
  void ExpectInStep(Replica& replica) {
    std::set<std::string> told;
    std::set<std::string> real;
    for (const auto& [name, pod] : replica.pods) {
      told.insert(absl::StrCat(name, "@", pod.node_name, " ", pod.meta.uid, " ",
                               pod.meta.resource_version));
    }
    world_.server.ForEach(ResourceType::kPods, [&](const Json& pod) {
      const std::string phase = TextAt(pod, {"status", "phase"});
      if (phase == "Succeeded" || phase == "Failed") return;
      real.insert(absl::StrCat(
          TextAt(pod, {"metadata", "name"}), "@", TextAt(pod, {"spec", "nodeName"}), " ",
          TextAt(pod, {"metadata", "uid"}), " ", TextAt(pod, {"metadata", "resourceVersion"})));
    });
    EXPECT_EQ(told, real);
    EXPECT_THAT(world_.server.unimplemented(), ::testing::IsEmpty());
  }

  TestWorld world_;
  std::deque<Replica> replicas_;
  uint64_t last_action_ = 0;
};

TEST_F(NetworkAdaptersTest, AReplicaSyncsAndBinds) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Replica& replica = Start("r1", 1);
  Run(absl::Seconds(1));
  EXPECT_TRUE(replica.source.Synced()) << replica.source.Health(absl::Minutes(1));
  EXPECT_EQ(replica.kinds.size(), std::size(model::kAllKinds) - 5) << "five are not read";
  EXPECT_TRUE(Do(replica, Bind(replica, "a")).ok());
  EXPECT_EQ(replica.pods["a"].node_name, "n1");
  EXPECT_EQ(TextAt(Pod("a"), {"metadata", "annotations", "k"}), "v");
  ExpectInStep(replica);
}

TEST_F(NetworkAdaptersTest, OfTwoThatBindOneWins) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Replica& one = Start("r1", 1);
  Replica& two = Start("r2", 2);
  Run(absl::Seconds(1));
  model::BindPod other = Bind(two, "a");
  other.node = "n2";
  one.Submit(1, Bind(one, "a"));
  two.Submit(2, other);
  last_action_ = 2;
  Run(absl::Seconds(5));
  ASSERT_TRUE(one.answers.contains(1) && two.answers.contains(2));
  EXPECT_NE(one.answers[1].ok(), two.answers[2].ok());
  const absl::Status& lost = one.answers[1].ok() ? two.answers[2] : one.answers[1];
  EXPECT_TRUE(absl::IsFailedPrecondition(lost)) << lost;
  ExpectInStep(one);
  ExpectInStep(two);
}

TEST_F(NetworkAdaptersTest, EveryWriteOfTheProductIsTaken) {
  Json pod = PodJson("a");
  pod["metadata"]["labels"]["app"] = "web";
  world_.Create(ResourceType::kPods, pod);
  world_.Create(ResourceType::kPodGroups, {{"metadata", {{"name", "g"}, {"namespace", "default"}}},
                                           {"spec", {{"minMember", 1}}}});
  world_.Create(
      ResourceType::kResourceClaims,
      {{"metadata", {{"name", "c"}, {"namespace", "default"}}}, {"spec", Json::object()}});
  world_.Create(ResourceType::kPodDisruptionBudgets,
                {{"metadata", {{"name", "b"}, {"namespace", "default"}}},
                 {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}},
                 {"status", {{"observedGeneration", 1}, {"disruptionsAllowed", 0}}}});
  Replica& replica = Start("r1", 1);
  Run(absl::Seconds(1));
  const auto uid = [&](ResourceType type, const char* name) {
    return TextAt(world_.Get(type, name), {"metadata", "uid"});
  };
  const std::string pod_uid = uid(ResourceType::kPods, "a");
  const std::string group = uid(ResourceType::kPodGroups, "g");
  const auto expect_ok = [&](What what) {
    const absl::Status status = Do(replica, std::move(what));
    EXPECT_TRUE(status.ok()) << status;
  };

  expect_ok(model::SetPodUnschedulable{"default", "a", pod_uid, "R", "m", R"({"v":1})", "n9", 1});
  EXPECT_EQ(Pod("a")["status"]["conditions"][0]["reason"], "R");
  EXPECT_EQ(TextAt(Pod("a"), {"status", "nominatedNodeName"}), "n9");
  EXPECT_EQ(TextAt(Pod("a"), {"metadata", "annotations", "fairlead.dev/verdict"}), R"({"v":1})");
  expect_ok(model::SetPodUnschedulable{"default", "a", pod_uid, "R2", "m", "", "", 1});
  EXPECT_EQ(At(Pod("a"), {"metadata", "annotations"}), nullptr);
  expect_ok(model::SetPodGroupSchedulability{
      "default", "g", group, R"({"v":1,"code":"C","category":"policy","hash":"h"})", "R", "m"});
  EXPECT_EQ(TextAt(world_.Get(ResourceType::kPodGroups, "g"), {"status", "schedulability", "code"}),
            "C");
  expect_ok(model::SetPodGroupAnnotations{"default", "g", group, {{"x", "1"}}});
  EXPECT_EQ(TextAt(world_.Get(ResourceType::kPodGroups, "g"), {"metadata", "annotations", "x"}),
            "1");

  model::WritePodGroup grouping;
  grouping.group.Own().meta.ns = "default";
  grouping.group.Own().meta.name = "pg";
  grouping.group.Own().min_member = 2;
  expect_ok(grouping);
  EXPECT_TRUE(absl::IsAlreadyExists(Do(replica, grouping)));
  grouping.group.Own().min_member = 3;
  grouping.group.Own().meta.uid = uid(ResourceType::kPodGroups, "pg");
  grouping.group.Own().meta.resource_version = "1";
  EXPECT_TRUE(absl::IsFailedPrecondition(Do(replica, grouping))) << "of an old version";
  EXPECT_EQ(world_.Get(ResourceType::kPodGroups, "pg")["spec"]["minMember"], 2);
  grouping.group.Own().meta.resource_version =
      TextAt(world_.Get(ResourceType::kPodGroups, "pg"), {"metadata", "resourceVersion"});
  expect_ok(grouping);
  EXPECT_EQ(world_.Get(ResourceType::kPodGroups, "pg")["spec"]["minMember"], 3);
  expect_ok(model::SetPodGroup{"default", "a", pod_uid, "pg", "s"});
  EXPECT_EQ(TextAt(Pod("a"), {"metadata", "annotations", "pod-group-name"}), "pg");
  EXPECT_EQ(TextAt(Pod("a"), {"metadata", "labels", "kai.scheduler/subgroup-name"}), "s");

  model::CreateNodeRequest request;
  request.request.Own().meta.name = "r";
  request.request.Own().provider = "p";
  request.request.Own().instance_type = "t";
  expect_ok(request);
  model::UpdateNodeRequestStatus update;
  update.request = request.request;
  update.request.Own().meta.uid = uid(ResourceType::kNodeRequests, "r");
  update.request.Own().phase = model::NodeRequestPhase::kLaunched;
  update.request.Own().launched_at = world_.time.now();
  expect_ok(update);
  EXPECT_EQ(TextAt(world_.Get(ResourceType::kNodeRequests, "r"), {"status", "phase"}), "Launched");
  EXPECT_TRUE(absl::IsAlreadyExists(Do(replica, request)));
  expect_ok(model::DeleteNodeRequest{"r", update.request->meta.uid});
  EXPECT_EQ(world_.Find(ResourceType::kNodeRequests, "r"), nullptr);

  const model::Taint taint{"fairlead.dev/t", "v", model::TaintEffect::kNoSchedule};
  expect_ok(model::SetNodeTaint{"n1", uid(ResourceType::kNodes, "n1"), taint, true});
  EXPECT_EQ(world_.Get(ResourceType::kNodes, "n1")["spec"]["taints"].size(), 1u);
  expect_ok(model::SetNodeTaint{"n1", uid(ResourceType::kNodes, "n1"), taint, false});
  EXPECT_FALSE(HasItems(world_.Get(ResourceType::kNodes, "n1"), {"spec", "taints"}));

  model::ReserveClaim claim;
  claim.ns = "default";
  claim.name = "c";
  claim.uid = uid(ResourceType::kResourceClaims, "c");
  claim.resource_version =
      TextAt(world_.Get(ResourceType::kResourceClaims, "c"), {"metadata", "resourceVersion"});
  claim.allocate = true;
  claim.allocation = {"n1", {{"r", "d", "pool", "dev"}}, {}};
  claim.pods = {{"a", pod_uid}};
  expect_ok(claim);
  const Json& held = world_.Get(ResourceType::kResourceClaims, "c");
  EXPECT_EQ(held["status"]["reservedFor"][0]["uid"], pod_uid);
  EXPECT_EQ(held["metadata"]["finalizers"].size(), 1u);
  expect_ok(model::DeallocateClaim{"default", "c", claim.uid,
                                   TextAt(held, {"metadata", "resourceVersion"})});

  expect_ok(model::CreateGpuReservation{"default", "res", "n1", "grp", "image", "", "", {}});
  EXPECT_EQ(TextAt(Pod("res"), {"spec", "nodeName"}), "n1");
  expect_ok(model::DeletePod{"default", "res", uid(ResourceType::kPods, "res")});
  expect_ok(model::ApplyConfigMap{"default", "m", {{"k", "v"}}, "a", pod_uid});
  expect_ok(model::StoreUsage{"default", "usage", R"({"u":1})"});
  EXPECT_EQ(TextAt(world_.Get(ResourceType::kConfigMaps, "usage"), {"data", "usage"}),
            R"({"u":1})");
  model::EmitEvent event;
  event.about = Kind::kPod;
  event.ns = "default";
  event.name = "a";
  event.uid = pod_uid;
  event.reason = "Evicted";
  event.note = "note";
  event.related.Own() = {Kind::kPod, "default", "b", "uid-b"};
  expect_ok(event);
  expect_ok(event);
  const Json events =
      world_.Call("GET", "/apis/events.k8s.io/v1/namespaces/default/events").body["items"];
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(TextAt(events[0], {"related", "name"}), "b");
  EXPECT_EQ(events[0].at("series").at("count"), 2);

  expect_ok(Bind(replica, "a"));
  world_.Merge(ResourceType::kPods, "a",
               {{"status",
                 {{"phase", "Running"},
                  {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
  const model::EvictPod evict{"default", "a", pod_uid, "PreemptionByScheduler", "words"};
  const absl::Status refused = Do(replica, evict);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("The disruption budget b needs"));
  world_.Merge(ResourceType::kPodDisruptionBudgets, "b", {{"status", {{"disruptionsAllowed", 1}}}});
  expect_ok(evict);
  EXPECT_EQ(Pod("a")["status"]["conditions"][1]["reason"], "PreemptionByScheduler");
  EXPECT_NE(At(Pod("a"), {"metadata", "deletionTimestamp"}), nullptr);
  Run(absl::Seconds(1));
  ExpectInStep(replica);
}

TEST_F(NetworkAdaptersTest, AfterCompactionTheWorldIsReadAgain) {
  for (const char* name : {"a", "b"}) world_.Create(ResourceType::kPods, PodJson(name));
  Replica& replica = Start("r1", 1);
  Run(absl::Seconds(1));
  ExpectInStep(replica);
  replica.network.HalfOpen(kube::TrafficClass::kWatch, world_.time.now() + absl::Minutes(1));
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  world_.Create(ResourceType::kPods, PodJson("c"));
  Run(absl::Minutes(1));
  EXPECT_TRUE(replica.pods.contains("a")) << "nothing is heard on a half-open connection";
  world_.server.Compact();
  world_.Create(ResourceType::kPods, PodJson("d"));
  Run(absl::Minutes(6));
  ExpectInStep(replica);
  EXPECT_EQ(replica.source.GetStats().back().snapshots, 2);
}

TEST_F(NetworkAdaptersTest, AServerWithoutWatchListIsReadInPages) {
  for (int i = 0; i < 7; ++i) world_.Create(ResourceType::kPods, PodJson(absl::StrCat("p", i)));
  Replica& replica = replicas_.emplace_back(world_, "r1", 1, /*page_size=*/3);
  // As an older server says it.
  replica.network.Refuse("GET", "/api/v1/nodes?watch=1&sendInitialEvents", "", 422,
                         world_.time.now() + absl::Minutes(1));
  replica.source.Start();
  Run(absl::Seconds(30));
  EXPECT_TRUE(replica.source.Synced());
  ExpectInStep(replica);
}

TEST_F(NetworkAdaptersTest, TheLeaseGoesFromTheDeadToTheLiving) {
  kube::LeaseOptions options{"fairlead", "l", "r1"};
  Replica& one = Start("r1", 1);
  Replica& two = Start("r2", 2);
  std::vector<std::string> told;
  kube::LeaderElector first(one.network, one.network, one.clock, options,
                            {[&] { told.push_back("+r1"); }, [&] { told.push_back("-r1"); }});
  options.identity = "r2";
  kube::LeaderElector second(two.network, two.network, two.clock, options,
                             {[&] { told.push_back("+r2"); }, [&] { told.push_back("-r2"); }});
  first.Start();
  Run(absl::Seconds(1));
  second.Start();
  Run(absl::Minutes(1));
  EXPECT_TRUE(first.IsLeader());
  EXPECT_FALSE(second.IsLeader());
  one.network.Die();
  Run(absl::Seconds(10));
  EXPECT_FALSE(first.IsLeader());
  EXPECT_FALSE(second.IsLeader());
  Run(absl::Seconds(20));
  EXPECT_TRUE(second.IsLeader());
  EXPECT_THAT(told, ::testing::ElementsAre("+r1", "+r2"));
  const Json* const lease = world_.server.Find(ResourceType::kLeases, "fairlead", "l");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(TextAt(*lease, {"spec", "holderIdentity"}), "r2");
  EXPECT_EQ(IntAt(*lease, {"spec", "leaseTransitions"}), 1);
  bool released = false;
  second.Stop([&] { released = true; });
  Run(absl::Seconds(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(TextAt(*world_.server.Find(ResourceType::kLeases, "fairlead", "l"),
                   {"spec", "holderIdentity"}),
            "");
}

TEST_F(NetworkAdaptersTest, APartitionedLeaderKnowsThatItIsNone) {
  Replica& one = Start("r1", 1);
  kube::LeaderElector elector(one.network, one.network, one.clock, {"fairlead", "l", "r1"}, {});
  elector.Start();
  Run(absl::Seconds(5));
  ASSERT_TRUE(elector.IsLeader());
  one.network.Partition(world_.time.now() + absl::Seconds(30));
  Run(absl::Seconds(11));
  EXPECT_FALSE(elector.IsLeader());
}

// Whatever the network does, in the end every write has one answer, no pod has two nodes, and both
// replicas know what is so.
TEST_F(NetworkAdaptersTest, InAStormTruthWinsInTheEnd) {
  constexpr int kPods = 40;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    TestWorld world;
    world.Create(ResourceType::kNodes, NodeJson("n1"));
    std::map<std::string, std::set<std::string>> nodes;
    world.server.Listen([&](const ApiServer::Commit& commit) {
      if (commit.type != ResourceType::kPods || commit.after == nullptr) return;
      const std::string node = TextAt(*commit.after, {"spec", "nodeName"});
      if (!node.empty()) nodes[TextAt(*commit.after, {"metadata", "name"})].insert(node);
    });
    std::deque<Replica> replicas;
    for (uint64_t i = 1; i <= 2; ++i) {
      Replica& replica = replicas.emplace_back(world, absl::StrCat("r", i), seed * 10 + i);
      replica.network.SetFaults({.lose_request = 50,
                                 .lose_answer = 50,
                                 .throttle = 20,
                                 .server_error = 20,
                                 .gateway_timeout = 20,
                                 .max_delay = absl::Milliseconds(50),
                                 .max_watch_delay = absl::Milliseconds(500)});
      replica.source.Start();
    }
    for (int i = 0; i < kPods; ++i)
      world.Create(ResourceType::kPods, PodJson(absl::StrCat("p", i)));
    for (int step = 0; step < 60; ++step) {
      world.Run(absl::Seconds(5));
      for (Replica& replica : replicas) {
        replica.Drain();
        // Each asks for another node.
        const std::string node = &replica == &replicas.front() ? "n1" : "n2";
        for (const auto& [name, pod] : replica.pods) {
          if (!pod.node_name.empty() || replica.asked.contains(name)) continue;
          replica.asked.insert(name);
          replica.Submit(replica.asked.size(),
                         model::BindPod{"default", name, pod.meta.uid, node, {}});
        }
      }
      if (step % 10 == 5) replicas[0].network.GoAway();
      if (step % 20 == 7) world.server.Compact();
      if (step == 30)
        replicas[1].network.HalfOpen(kube::TrafficClass::kWatch,
                                     world.time.now() + absl::Minutes(1));
    }
    for (Replica& replica : replicas) replica.network.SetFaults({});
    world.Run(absl::Minutes(2));
    // The executor attempts a binding once: its owner repeats it.
    for (Replica& replica : replicas) {
      replica.Drain();
      for (const auto& [name, pod] : replica.pods) {
        if (!pod.node_name.empty()) continue;
        replica.asked.insert(absl::StrCat(name, "/again"));
        replica.Submit(replica.asked.size(),
                       model::BindPod{"default", name, pod.meta.uid, "n1", {}});
      }
    }
    world.Run(absl::Minutes(10));
    EXPECT_EQ(nodes.size(), static_cast<size_t>(kPods));
    for (const auto& [name, where] : nodes) EXPECT_EQ(where.size(), 1u) << name;
    for (Replica& replica : replicas) {
      replica.Drain();
      EXPECT_EQ(replica.answers.size(), replica.asked.size());
      ASSERT_EQ(replica.pods.size(), static_cast<size_t>(kPods));
      for (const auto& [name, pod] : replica.pods) {
        EXPECT_EQ(pod.node_name, *nodes[name].begin());
      }
    }
    EXPECT_THAT(world.server.unimplemented(), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace fairlead::sim::world
