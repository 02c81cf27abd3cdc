// What ClusterApiGroups writes, and what it does when that fails.
#include "autoscale-hook/providers/clusterapi/cluster_api_fixture_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ClusterApiWrites : public ClusterApiFixture {
 protected:
  void Touch() { objects().Change(deployment_, R"({"status":{"seen":"again"}})"); }
  std::string RecordOf() {
    return objects().TextOf(deployment_, {"metadata", "annotations", kRemovedMachinesAnnotation});
  }
  std::string UidOf(const std::string& machine) {
    return objects().TextOf(FakeClusterApi::MachinePath(machine), {"metadata", "uid"});
  }
};

// ---- sizes

TEST_F(ClusterApiWrites, IncreasesWithAPrecondition) {
  Running(1);
  const std::string version = objects().TextOf(deployment_, {"metadata", "resourceVersion"});
  EXPECT_EQ(Increase(2), absl::OkStatus());
  EXPECT_EQ(Replicas(), 3);
  EXPECT_THAT(objects().writes,
              ElementsAre(absl::StrCat(patch_deployment_, R"( {"metadata":{"resourceVersion":")",
                                       version, R"("},"spec":{"replicas":3}})")));
}

TEST_F(ClusterApiWrites, AConflictIsNotDone) {
  Running(1);
  NextCalls(patch_deployment_, After([this] { Touch(); }));
  EXPECT_EQ(Increase(2), absl::OkStatus());
  EXPECT_EQ(Replicas(), 3) << "another program's change stays, and the increase is done once";
  NextCalls(patch_deployment_, After([this] { Touch(); }), 3);
  EXPECT_TRUE(absl::IsAborted(Increase(2)));
  EXPECT_EQ(Replicas(), 3);
  // Another program has raised it meanwhile.
  NextCalls(patch_deployment_,
            After([this] { objects().Change(deployment_, R"({"spec":{"replicas":9}})"); }));
  EXPECT_TRUE(absl::IsResourceExhausted(Increase(2)));
  EXPECT_EQ(Replicas(), 9);
}

TEST_F(ClusterApiWrites, TheMaximumIsThatOfNow) {
  Running(1);
  objects().Change(deployment_, R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"2"}}})");
  EXPECT_TRUE(absl::IsResourceExhausted(Increase(2)));
  EXPECT_TRUE(absl::IsResourceExhausted(Increase(int64_t{1} << 62)));
  EXPECT_EQ(Increase(1), absl::OkStatus());
}

TEST_F(ClusterApiWrites, PausedAndDeletedAndReplacedObjectsAreNotWritten) {
  const std::vector<std::string> machines = Running(2);
  const auto refused = [&] {
    return absl::IsFailedPrecondition(Increase(1)) &&
           absl::IsFailedPrecondition(Remove(Id(machines[0])));
  };
  objects().Change(deployment_, R"({"spec":{"paused":true}})");
  EXPECT_TRUE(refused());
  objects().Change(deployment_, R"({"spec":{"paused":false},"metadata":{"annotations":{
      "cluster.x-k8s.io/paused":"true"}}})");
  EXPECT_TRUE(refused());
  objects().Change(deployment_, R"({"metadata":{"annotations":{"cluster.x-k8s.io/paused":null},
      "deletionTimestamp":"2026-01-01T00:00:00Z"}})");
  EXPECT_TRUE(refused());
  objects().Erase(deployment_);
  EXPECT_TRUE(absl::IsNotFound(Increase(1)));
  cluster_.AddDeployment("workers", 0, 10, 2);
  EXPECT_TRUE(absl::IsUnavailable(Increase(1))) << "another object of that name";
  EXPECT_THAT(objects().writes, IsEmpty());
}

TEST_F(ClusterApiWrites, ErrorsOfAWriteKeepTheirMeaning) {
  Running(1);
  const struct {
    absl::Status status;
    absl::StatusCode code;
  } cases[] = {{absl::PermissionDeniedError("403"), absl::StatusCode::kPermissionDenied},
               {absl::InvalidArgumentError("422"), absl::StatusCode::kInvalidArgument},
               // Not a cloud without machines.
               {absl::ResourceExhaustedError("429"), absl::StatusCode::kUnavailable},
               {absl::UnavailableError("503"), absl::StatusCode::kUnavailable}};
  for (const auto& c : cases) {
    NextCalls(patch_deployment_, Fails(c.status));
    EXPECT_EQ(Increase(1).code(), c.code) << c.status;
    NextCalls("GET " + deployment_, Fails(c.status));
    EXPECT_EQ(Increase(1).code(), c.code) << c.status;
  }
  EXPECT_EQ(Replicas(), 1);
}

TEST_F(ClusterApiWrites, AnAnswerThatComesTwiceIsTakenOnce) {
  const std::vector<std::string> machines = Running(3);
  NextCalls("GET " + deployment_, Twice());
  EXPECT_EQ(Increase(1), absl::OkStatus());
  EXPECT_EQ(Replicas(), 4);
  time_.Advance(absl::Minutes(2));
  ASSERT_EQ(Refresh(), absl::OkStatus());
  NextCalls(patch_machine_, Twice());
  EXPECT_EQ(Remove(Id(machines[0])), absl::OkStatus());
  EXPECT_EQ(Replicas(), 3);
}

// An answer that comes when the caller has given up leads to no write.
TEST_F(ClusterApiWrites, NothingIsWrittenAfterTheLongestOperation) {
  const std::vector<std::string> machines = Running(3);
  NextCalls("GET " + deployment_, Late(absl::Seconds(95)));
  EXPECT_TRUE(absl::IsUnavailable(Increase(1)));
  NextCalls("GET " + deployment_, Late(absl::Seconds(95)));
  EXPECT_TRUE(absl::IsUnavailable(Remove(Id(machines[0]))));
  NextCalls(patch_machine_, Late(absl::Seconds(95)));
  EXPECT_TRUE(absl::IsUnavailable(Remove(Id(machines[0]))));
  EXPECT_EQ(Replicas(), 3);
}

TEST_F(ClusterApiWrites, AnswersAfterTheEndAreDropped) {
  Running(1);
  auto groups = std::make_unique<ClusterApiGroups>(ClusterApiScope(), &objects(), &time_);
  EXPECT_EQ(Write([&](auto done) { groups->Refresh(std::move(done)); }), absl::OkStatus());
  bool answered = false;
  groups->IncreaseSize(kGroup, {1}, [&](const absl::Status&) { answered = true; });
  groups.reset();
  time_.Advance(absl::Minutes(5));
  EXPECT_FALSE(answered);
  EXPECT_THAT(objects().writes, IsEmpty());
}

// ---- places

TEST_F(ClusterApiWrites, APlaceIsTakenBackIfNoMachineComes) {
  cluster_.behaviours["workers"].most_machines = 1;
  Running(1);
  EXPECT_EQ(Increase(2), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(Decrease(1))) << "the MachineSet may be about to make it";
  Rounds(ClusterApiGroups::kRoundsUntilOpen);
  EXPECT_EQ(Decrease(1), absl::OkStatus());
  EXPECT_EQ(Replicas(), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(2))) << "one Machine is there";
  EXPECT_EQ(Replicas(), 2);
}

TEST_F(ClusterApiWrites, AMachineThatHasComeIsNotGivenBackUnnamed) {
  cluster_.behaviours["workers"].most_machines = 1;
  Running(1);
  EXPECT_EQ(Increase(1), absl::OkStatus());
  Rounds(ClusterApiGroups::kRoundsUntilOpen);
  cluster_.behaviours["workers"].most_machines = 5;
  Touch();
  time_.Advance(absl::Seconds(1));  // after the last list
  EXPECT_THAT(Decrease(1).message(), HasSubstr("a Machine has taken the place"));
  EXPECT_EQ(Replicas(), 2);
}

TEST_F(ClusterApiWrites, ThePlacesOfAGroupStayAboveItsMinimum) {
  cluster_.behaviours["workers"].most_machines = 1;
  Running(3, 3);
  Rounds(ClusterApiGroups::kRoundsUntilOpen);
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(1)));
  EXPECT_EQ(Replicas(), 3);
}

// ---- removal of a named machine

TEST_F(ClusterApiWrites, AnnotatesFirstAndThenLowers) {
  const std::vector<std::string> machines = Running(3);
  EXPECT_EQ(Remove(Id(machines[1])), absl::OkStatus());
  ASSERT_THAT(objects().writes,
              ElementsAre(StartsWith("PATCH " + FakeClusterApi::MachinePath(machines[1])),
                          StartsWith(patch_deployment_)));
  EXPECT_THAT(objects().writes[0], HasSubstr(R"("cluster.x-k8s.io/delete-machine":"fairlead")"));
  EXPECT_THAT(objects().writes[0], HasSubstr(R"("resourceVersion":)"));
  EXPECT_THAT(objects().writes[1], HasSubstr(R"("resourceVersion":)"));
  EXPECT_EQ(RecordOf(), UidOf(machines[1])) << "in the same patch as the size";
  EXPECT_EQ(Replicas(), 2);
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(cluster_.Machines("workers"), ElementsAre(machines[0], machines[2]));
}

TEST_F(ClusterApiWrites, AnUnconfirmedAnnotationLowersNothing) {
  const std::vector<std::string> machines = Running(3);
  for (const absl::Status& error :
       {absl::PermissionDeniedError("403"), absl::UnavailableError("503"),
        absl::ResourceExhaustedError("429"), absl::InvalidArgumentError("422")}) {
    NextCalls(patch_machine_, Fails(error));
    EXPECT_FALSE(Remove(Id(machines[1])).ok());
    EXPECT_EQ(Replicas(), 3) << error;
  }
  NextCalls(patch_machine_, LosesReply());
  EXPECT_TRUE(absl::IsUnavailable(Remove(Id(machines[1]))));
  EXPECT_EQ(Replicas(), 3);
  // An admission plugin that drops it.
  objects().Change(FakeClusterApi::MachinePath(machines[1]),
                   R"({"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":null}}})");
  objects().on_answer = [](const std::string&, Json& answer) {
    answer.Find("metadata")->Set("annotations", Json::Object());
  };
  EXPECT_TRUE(absl::IsInternal(Remove(Id(machines[1]))));
  EXPECT_EQ(Replicas(), 3);
}

TEST_F(ClusterApiWrites, ALoweringThatIsRefusedTakesTheAnnotationOff) {
  const std::vector<std::string> machines = Running(3);
  NextCalls(patch_deployment_, Fails(absl::PermissionDeniedError("403")));
  EXPECT_TRUE(absl::IsPermissionDenied(Remove(Id(machines[1]))));
  EXPECT_EQ(MarkOf(machines[1]), "");
  NextCalls(patch_deployment_, After([this] { Touch(); }), 3);
  EXPECT_TRUE(absl::IsAborted(Remove(Id(machines[1]))));
  EXPECT_EQ(MarkOf(machines[1]), "") << "three conflicts: not done";
  EXPECT_EQ(Replicas(), 3);
  // It cannot be taken off: that is told.
  NextCalls(patch_deployment_, [this](const auto&, const FakeObjects::Reply& reply) {
    NextCalls(patch_machine_, Fails(absl::UnavailableError("503")));
    reply(absl::PermissionDeniedError("403"));
  });
  const absl::Status told = Remove(Id(machines[1]));
  EXPECT_TRUE(absl::IsPermissionDenied(told));
  EXPECT_THAT(told.message(), HasSubstr(machines[1] + " keeps annotation"));
  EXPECT_EQ(MarkOf(machines[1]), "fairlead");
}

TEST_F(ClusterApiWrites, ALoweringOfUnknownOutcomeIsDoneOnce) {
  for (const bool done : {false, true}) {
    for (const bool restart : {false, true}) {
      const std::vector<std::string> machines = Running(4);
      cluster_.behaviours["workers"].deletes = false;
      NextCalls(patch_deployment_,
                done ? LosesReply() : Fails(absl::UnavailableError("connection reset")));
      EXPECT_TRUE(absl::IsUnavailable(Remove(Id(machines[1]))));
      EXPECT_EQ(MarkOf(machines[1]), "fairlead") << "it stays";
      EXPECT_EQ(Replicas(), done ? 3 : 4);
      ClusterApiGroups next(ClusterApiScope(), &objects(), &time_);
      ClusterApiGroups& groups = restart ? next : groups_;
      const auto remove = [&] {
        return Write([&](auto reply) {
          groups.DeleteNodes(kGroup, {{Id(machines[1]), "n"}}, std::move(reply));
        });
      };
      EXPECT_EQ(Write([&](auto reply) { groups.Refresh(std::move(reply)); }), absl::OkStatus());
      EXPECT_EQ(remove(), absl::OkStatus());
      EXPECT_EQ(remove(), absl::OkStatus());
      EXPECT_EQ(Replicas(), 3);
      // Others are not held up by the record.
      EXPECT_EQ(Remove(Id(machines[2])), absl::OkStatus());
      EXPECT_EQ(Replicas(), 2);
      cluster_.behaviours["workers"].deletes = true;
      Touch();
      time_.Advance(absl::Minutes(1));
      EXPECT_THAT(cluster_.Machines("workers"), ElementsAre(machines[0], machines[3]));
      ASSERT_EQ(Refresh(), absl::OkStatus());
      EXPECT_EQ(Remove(Id(machines[0])), absl::OkStatus());
      EXPECT_EQ(RecordOf(), UidOf(machines[0])) << "Machines that are gone are forgotten";
      objects().Erase(deployment_);
      for (const std::string& machine : cluster_.Machines("workers")) {
        objects().Erase(FakeClusterApi::MachinePath(machine));
      }
      time_.Advance(absl::Minutes(1));
    }
  }
}

TEST_F(ClusterApiWrites, ConflictsOfARemovalBeginAnew) {
  const std::vector<std::string> machines = Running(3);
  NextCalls(patch_machine_, After([&] {
              objects().Change(FakeClusterApi::MachinePath(machines[1]), R"({"status":{"x":"y"}})");
            }));
  NextCalls(patch_deployment_, After([this] { Touch(); }));
  EXPECT_EQ(Remove(Id(machines[1])), absl::OkStatus());
  EXPECT_EQ(Replicas(), 2);
  EXPECT_EQ(RecordOf(), UidOf(machines[1]));
}

TEST_F(ClusterApiWrites, NeverBelowTheMinimum) {
  const std::vector<std::string> machines = Running(3, 3);
  EXPECT_THAT(Remove(Id(machines[1])).message(), HasSubstr("is at its minimum of 3"));
  EXPECT_EQ(MarkOf(machines[1]), "");
  // It was lowered by another program after the last list.
  objects().Change(deployment_, R"({"spec":{"replicas":3},"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"2"}}})");
  NextCalls(patch_machine_,
            After([this] { objects().Change(deployment_, R"({"spec":{"replicas":2}})"); }));
  EXPECT_FALSE(Remove(Id(machines[1])).ok());
  EXPECT_EQ(Replicas(), 2);
  EXPECT_EQ(MarkOf(machines[1]), "") << "the attempt that met a conflict leaves nothing";
}

TEST_F(ClusterApiWrites, NothingIsRemovedDuringARollout) {
  const std::vector<std::string> machines = Running(3);
  objects().Change(FakeClusterApi::MachinePath(machines[0]), R"({"metadata":{"ownerReferences":[
      {"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"t","uid":"set-2"}]}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_THAT(Remove(Id(machines[1])).message(), HasSubstr("rolling out"));
  EXPECT_THAT(objects().writes, IsEmpty());
}

TEST_F(ClusterApiWrites, WhatHasChangedSinceTheListIsNotRemoved) {
  const std::vector<std::string> machines = Running(3);
  objects().Change(FakeClusterApi::MachinePath(machines[0]),
                   R"({"metadata":{"labels":{"cluster.x-k8s.io/deployment-name":"other"}}})");
  objects().Change(FakeClusterApi::MachinePath(machines[1]),
                   R"({"spec":{"providerID":"cloud:///x"}})");
  objects().BeginDeletion(FakeClusterApi::MachinePath(machines[2]));
  for (const std::string& machine : machines) {
    EXPECT_TRUE(absl::IsUnavailable(Remove(Id(machine)))) << machine;
  }
  EXPECT_TRUE(absl::IsUnavailable(Remove("cloud:///never"))) << "not listed";
  EXPECT_THAT(objects().writes, IsEmpty());
}

// Replicas are raised again before the MachineSet has seen that they were lowered: it would keep
// the Machine for ever.
TEST_F(ClusterApiWrites, AMachineThatItsSetHasNoReasonToDeleteIsDeletedByName) {
  const std::vector<std::string> machines = Running(3);
  cluster_.behaviours["workers"].deletes = false;
  EXPECT_EQ(Remove(Id(machines[1])), absl::OkStatus());
  Rounds(2 * ClusterApiGroups::kRoundsUntilDeletion);
  EXPECT_THAT(cluster_.Machines("workers"), SizeIs(3)) << "its set has a reason: it is only slow";
  EXPECT_EQ(Increase(1), absl::OkStatus());
  cluster_.behaviours["workers"].deletes = true;
  Rounds(1);
  EXPECT_EQ((*Instances())[1].state, InstanceState::kDeleting);
  EXPECT_THAT(cluster_.Machines("workers"), SizeIs(3));
  Rounds(ClusterApiGroups::kRoundsUntilDeletion);
  time_.Advance(absl::Minutes(1));
  const std::vector<std::string> left = cluster_.Machines("workers");
  ASSERT_THAT(left, SizeIs(3)) << "a new one has come for the increase";
  EXPECT_THAT(left, Each(::testing::Ne(machines[1])));
  EXPECT_EQ(Replicas(), 3);
}

// ---- MachinePools

class ClusterApiPools : public ClusterApiFixture {
 protected:
  static constexpr char kPool[] = "MachinePool/default/pool";
  const std::string path_ =
      absl::StrCat(FakeClusterApi::kRoot, "/namespaces/default/machinepools/pool");

  void PutPool(int replicas, int min_size, const std::string& ids) {
    objects().Put(path_, absl::StrCat(R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":")",
                                      min_size, R"(",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"9"}},
      "spec":{"replicas":)",
                                      replicas, R"(,"providerIDList":[)", ids, "]}}"));
    ASSERT_EQ(Refresh(), absl::OkStatus());
  }
  void PutMachine(const std::string& name) {
    objects().Put(FakeClusterApi::MachinePath(name),
                  absl::StrCat(R"({"metadata":{"labels":{"cluster.x-k8s.io/pool-name":"pool"},
      "ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachinePool",
      "name":"pool","uid":"u"}]},"spec":{"providerID":"azure:///)",
                               name, R"("},"status":{"nodeRef":{"name":"n"}}})"));
    ASSERT_EQ(Refresh(), absl::OkStatus());
  }
  std::string Size() { return objects().TextOf(path_, {"spec", "replicas"}); }
};

TEST_F(ClusterApiPools, WithoutMachinesNoneIsRemovedByName) {
  PutPool(2, 0, R"("azure:///a","azure:///b")");
  const auto instances = Instances(kPool);
  ASSERT_TRUE(instances.ok()) << instances.status();
  EXPECT_THAT(*instances, SizeIs(2));
  const absl::Status refused = Remove("azure:///a", kPool);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(refused.message(), HasSubstr("none can be removed by name"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Remove("azure:///a", kPool)));
  EXPECT_EQ(Size(), "2");
  EXPECT_EQ(Remove("azure:///b", kPool), absl::OkStatus()) << "all are to go";
  EXPECT_EQ(Size(), "0");
  EXPECT_EQ(Remove("azure:///a", kPool), absl::OkStatus());
}

TEST_F(ClusterApiPools, AllAreNotToGoWhileOneMoreIsComing) {
  PutPool(3, 0, R"("azure:///a","azure:///b")");
  for (const char* id : {"azure:///a", "azure:///b"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Remove(id, kPool))) << id;
  }
  EXPECT_EQ(Size(), "3");
  PutPool(2, 1, R"("azure:///a","azure:///b")");
  EXPECT_FALSE(Remove("azure:///a", kPool).ok());
  EXPECT_THAT(Remove("azure:///b", kPool).message(), HasSubstr("its minimum is 1"));
  EXPECT_EQ(Size(), "2");
}

TEST_F(ClusterApiPools, PlacesAreNotTakenBackUnlessAllAre) {
  PutPool(3, 0, R"("azure:///a")");
  Rounds(ClusterApiGroups::kRoundsUntilOpen);
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(2, kPool)));
  EXPECT_EQ(Size(), "3");
  PutPool(2, 0, "");
  Rounds(ClusterApiGroups::kRoundsUntilOpen);
  EXPECT_EQ(Decrease(2, kPool), absl::OkStatus());
  EXPECT_EQ(Size(), "0");
}

TEST_F(ClusterApiPools, AMachineOfAPoolIsRemovedByName) {
  PutPool(2, 0, R"("azure:///a","azure:///b")");
  PutMachine("a");
  EXPECT_THAT(*Instances(kPool), SizeIs(2)) << "a Machine and its id are one instance";
  EXPECT_EQ(Remove("azure:///a", kPool), absl::OkStatus());
  EXPECT_EQ(MarkOf("a"), "fairlead");
  EXPECT_EQ(Size(), "1");
}

TEST_F(ClusterApiPools, WrongLists) {
  for (const char* ids : {"7", "\"\"", "{}"}) {
    PutPool(1, 0, ids);
    EXPECT_THAT(Listed()[0].wrong.message(),
                HasSubstr("MachinePool/default/pool: spec.providerIDList: "));
  }
}

}  // namespace
}  // namespace fairlead::hook
