// Redaction of a small journal with many kinds of texts. sim/sim_property_test.cc redacts those of
// random worlds.
#include "journal/redaction.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/config_shard.h"
#include "core/decision_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/recorder.h"
#include "journal/redaction_testing.h"
#include "journal/redactor.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::journal {
namespace {

using model::testing::At;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using ::testing::HasSubstr;

constexpr char kAcmeDocument[] = R"({"apiVersion":"config.fairlead.dev/v1alpha1",
  "kind":"FairleadConfiguration","schedulerNames":["acme-scheduler"],"defaultQueue":"acme-lobby",
  "hook":{"enabled":true,"provider":"kwok","gpuLimits":{"NVIDIA-H100-80GB-HBM3":32},
          "costLimitPerHour":"250.00","unneededAfter":"5m"},
  "kwok":{"bootDelay":"30s"},
  "leaderElection":{"resourceNamespace":"acme-system","resourceName":"acme-lease"},
  "metricsBindAddress":"metrics.acme.example:8080"})";

bool IsPublic(absl::string_view text) {
  static const std::set<std::string>& texts = *new std::set<std::string>{
      "kai.scheduler/queue", "kai.scheduler/node-pool",   "kubernetes.io/hostname",
      "pod-group-name",      "fairlead.dev/verdict",      "topology.kubernetes.io/zone",
      "us-east-1a",          "fairlead.dev/node-request", "nvidia.com/gpu"};
  return texts.contains(std::string(text));
}

class RedactionTest : public ::testing::Test {
 protected:
  void Begin(const std::optional<core::Shard>& shard = std::nullopt) {
    Start start{.documents = {kAcmeDocument}, .scheduler_names = {"acme-scheduler"}};
    if (shard.has_value()) {
      start.shard = shard->label_value;
      start.request_prefix = core::RequestPrefixOf(&*shard);
    }
    absl::StatusOr<core::Options> options = Read()(start);
    ASSERT_TRUE(options.ok()) << options.status();
    auto loop = core::DecisionLoop::Make(*options, &hook::Catalog::BuiltIn());
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    recorder_.Started(*options, hook::Catalog::BuiltIn(), /*continues=*/false);
    loop_->SetInputLog(&recorder_);
  }
  static ReadOptions Read() { return Player::FromDocuments(plugins::BuiltIn()); }
  template <typename T>
  void Put(const T& object) {
    loop_->Apply(model::Upsert{object});
  }
  static model::Pod Pod(const std::string& name, int64_t gpus) {
    model::Pod pod = PodBuilder("acme-research", name).Queue("acme-vision").Gpus(gpus).Build();
    pod.scheduler_name = "acme-scheduler";
    pod.meta.labels.Set("acme.example/owner", "jane.doe@acme.example");
    pod.images.names = {"registry.acme.example/secret-model:v3"};
    pod.spec.node_selector.Set("acme.example/rack", "rack-17");
    return pod;
  }
  // One pod is bound; one finds no room, and has had its verdict from a former process.
  void Day() {
    Begin();
    Put(MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited));
    model::Node node = MakeNode("gpu-host-7.acme.example", 2);
    node.meta.labels.Set("acme.example/rack", "rack-17");
    node.meta.labels.Set(model::kZoneLabel, "us-east-1a");
    Put(node);
    Put(Pod("waits-for-long", 8));
    for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
    loop_->BecomeLeader();
    for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
    Put(Pod("train-jane", 1));
    for (int i = 0; i < 6; ++i) Step(i);
  }
  // The writes show up as the API server shows them.
  void Step(int second) {
    const core::StepResult step = loop_->Step(At(10 + second));
    for (const model::Action& action : step.actions) {
      loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
      if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
        model::Pod pod = Pod(bind->name, 1);
        pod.node_name = bind->node;
        Put(pod);
      } else if (const auto* set = std::get_if<model::SetPodUnschedulable>(&action.what)) {
        verdict_ = set->verdict_json;
        model::Pod pod = Pod(set->name, 8);
        pod.meta.annotations.Set(model::kVerdictAnnotation, verdict_);
        pod.scheduled = {"False", set->reason};
        Put(pod);
      }
    }
  }
  absl::StatusOr<RedactionTotals> Redacted() {
    return Redact({Read(), plugins::BuiltIn()->Names()}, files_);
  }

  std::vector<std::string> records_;
  Recorder recorder_{"0.1", [this](std::string record) { records_.push_back(std::move(record)); }};
  std::unique_ptr<core::DecisionLoop> loop_;
  std::string verdict_;
  RecordsInMemory files_{{&records_}};
};

TEST_F(RedactionTest, DecidesTheSameWithoutNames) {
  Day();
  const auto totals = Redacted();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_GE(totals->actions, 2);
  EXPECT_EQ(testing::WhyBad(records_, files_.redacted().front(), Read(), IsPublic), "");
  std::string bytes;
  for (const std::string& record : files_.redacted().front()) bytes += record;
  for (const char* word :
       {"acme", "jane", "secret", "rack", "train", "waits", "lobby", "registry", "metrics."}) {
    EXPECT_FALSE(absl::StrContains(bytes, word)) << word;
  }
  // What a reader of a report needs.
  for (const char* word : {"kai.scheduler/queue", "us-east-1a", "NVIDIA-H100-80GB-HBM3", "kwok"}) {
    EXPECT_TRUE(absl::StrContains(bytes, word)) << word;
  }
}

// The value of its label is a tenant's word, and the names of its machines follow from it.
TEST_F(RedactionTest, AShardKeepsItsObjectsAndItsMachines) {
  const core::Shard shard{"acme-pool"};
  Begin(shard);
  const auto put = [&](auto object) {
    object.meta.labels.Set(model::kNodePoolLabel, shard.label_value);
    Put(object);
  };
  put(MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited));
  for (const char* name : {"gpu-host-7.acme.example", "gpu-host-8.acme.example"}) {
    model::Node node = MakeNode(name, 2);
    node.meta.labels.Set("acme.example/rack", "rack-17");
    if (std::string(name) == "gpu-host-8.acme.example") {
      put(node);
    } else {
      Put(node);
    }
  }
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  put(Pod("train-jane", 1));
  for (const std::string& name : {absl::StrCat(core::RequestPrefixOf(&shard), "0123456789abcdef"),
                                  std::string("fl-fedcba9876543210")}) {
    hook::MachineReport report;
    report.provider = "kwok";
    report.request_name = name;
    report.request_uid = absl::StrCat("uid-", name);
    report.machine_id = absl::StrCat("kwok://", name);
    report.state = hook::MachineState::kRunning;
    loop_->MachineReported(report);
  }
  int bound = 0, ended = 0;
  for (int i = 0; i < 60; ++i) {
    const core::StepResult step = loop_->Step(At(10 + 5 * i));
    if (loop_->AwaitedNodeList() > 0) {
      loop_->NodesListed(loop_->AwaitedNodeList(), std::vector<hook::ListedNode>());
    }
    for (const model::Action& action : step.actions) {
      bound += std::holds_alternative<model::BindPod>(action.what) ? 1 : 0;
      ended += std::holds_alternative<model::TerminateNode>(action.what) ? 1 : 0;
      loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
    }
  }
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(ended, 1);
  const auto totals = Redacted();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(testing::WhyBad(records_, files_.redacted().front(), Read(), IsPublic), "");
}

// A leader finds a verdict that is true. It does not write it again, and neither does the loop
// for which the verdict has another hash.
TEST_F(RedactionTest, AVerdictOfAFormerProcessStaysTrue) {
  Day();
  ASSERT_NE(verdict_, "");
  records_.clear();
  Begin();
  Put(MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited));
  model::Node node = MakeNode("gpu-host-7.acme.example", 2);
  node.meta.labels.Set("acme.example/rack", "rack-17");
  Put(node);
  model::Pod pod = Pod("waits-for-long", 8);
  pod.meta.annotations.Set(model::kVerdictAnnotation, verdict_);
  pod.scheduled = {"False", "InsufficientCapacity"};
  Put(pod);
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  loop_->BecomeLeader();
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  Step(0);
  Step(1);
  const auto totals = Redacted();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(testing::WhyBad(records_, files_.redacted().front(), Read(), IsPublic), "");
}

// Two pods share one claim; a selector reads an attribute of the devices.
TEST_F(RedactionTest, ClaimsAndDevicesLoseTheirNames) {
  Begin();
  Put(MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited));
  constexpr char kDriver[] = "chips.acme.example";
  Put(MakeNode("gpu-host-7.acme.example", 0));
  Put(model::testing::MakeDeviceClass(
      "acme-chips", {R"(device.driver == "chips.acme.example")",
                     R"(device.attributes["chips.acme.example"].lot == "jane-lot")"}));
  model::ResourceSlice slice = model::testing::MakeSlice("gpu-host-7.acme.example", 0, kDriver);
  slice.devices.push_back({"rack-chip",
                           {{"lot", model::DeviceAttribute{std::string("secret-lot")}}},
                           {{"memory", 1 << 30}}});
  slice.devices.push_back({"train-chip",
                           {{"lot", model::DeviceAttribute{std::string("jane-lot")}}},
                           {{"memory", 1 << 30}}});
  Put(slice);
  model::ResourceClaim claim = model::testing::MakeClaim("waits-claim", 1, "acme-chips");
  claim.meta.ns = "acme-research";
  claim.meta.uid = "acme-claim-uid";
  claim.config.push_back({{}, R"({"driver":"chips.acme.example","parameters":{"key":"secret"}})"});
  Put(claim);
  for (const char* name : {"train-jane", "train-joe"}) {
    model::Pod pod = Pod(name, 0);
    pod.spec.node_selector = {};
    pod.spec.resource_claims = {"waits-claim"};
    Put(pod);
  }
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  loop_->BecomeLeader();
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  const core::StepResult step = loop_->Step(At(10));
  std::string device;
  for (const model::Action& action : step.actions) {
    const auto* write = std::get_if<model::ReserveClaim>(&action.what);
    if (write != nullptr) device = write->allocation.devices.at(0).device;
  }
  ASSERT_EQ(device, "train-chip");
  const auto totals = Redacted();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(testing::WhyBad(records_, files_.redacted().front(), Read(), IsPublic), "");
  std::string bytes;
  for (const std::string& record : files_.redacted().front()) bytes += record;
  for (const char* word : {"acme", "jane", "secret", "rack", "train", "waits", "chip", "lot"}) {
    EXPECT_FALSE(absl::StrContains(bytes, word)) << word;
  }
}

// Types, zones and models that an administrator named are names as others.
TEST_F(RedactionTest, HardwareOfAnOwnCatalogueIsRenamed) {
  Begin();
  Put(MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited));
  model::Node node = MakeNode("gpu-host-7.acme.example", 2);
  node.meta.labels.Set("acme.example/rack", "rack-17");
  node.meta.labels.Set(model::kZoneLabel, "acme-basement");
  node.meta.labels.Set(model::kInstanceTypeLabel, "acme-box.large");
  node.meta.labels.Set("nvidia.com/gpu.product", "ACME-CHIP-80GB");
  Put(node);
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  loop_->BecomeLeader();
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  Put(Pod("train-jane", 1));
  Step(0);
  ASSERT_TRUE(Redacted().ok());
  std::string bytes;
  for (const std::string& record : files_.redacted().front()) bytes += record;
  for (const char* word : {"acme", "ACME", "basement", "box", "CHIP"}) {
    EXPECT_FALSE(absl::StrContains(bytes, word)) << word;
  }
}

TEST_F(RedactionTest, RefusesAJournalThatDoesNotReplay) {
  Day();
  for (std::string& record : records_) {
    Record read = *Decode(record);
    auto* stepped = std::get_if<Stepped>(&read);
    if (stepped == nullptr || stepped->actions.empty()) continue;
    ++stepped->actions[0];
    record = Encode(read);
  }
  const auto totals = Redacted();
  EXPECT_TRUE(absl::IsFailedPrecondition(totals.status()));
  EXPECT_THAT(std::string(totals.status().message()), HasSubstr("does not replay here"));
  EXPECT_TRUE(files_.redacted().front().empty());
}

TEST_F(RedactionTest, RefusesARedactedJournal) {
  Day();
  ASSERT_TRUE(Redacted().ok());
  const std::vector<std::string> redacted = files_.redacted().front();
  RecordsInMemory again({&redacted});
  const auto totals = Redact({Read(), {}}, again);
  EXPECT_THAT(std::string(totals.status().message()), HasSubstr("redacted already"));
}

TEST_F(RedactionTest, DamagedRecordsAreErrors) {
  Day();
  records_.push_back("\x7f nonsense");
  EXPECT_FALSE(Redacted().ok());
}

// ---- single texts

Record PutOf(model::Object object) { return Applied{model::Upsert{std::move(object)}}; }

// Collects, then redacts.
template <typename T>
T RedactedObject(const T& object) {
  Redactor redactor({});
  Record first = PutOf(object), second = PutOf(object);
  redactor.Collect(first);
  redactor.Assign();
  redactor.Redact(second);
  EXPECT_EQ(redactor.LeakIn(second), "");
  EXPECT_EQ(redactor.problem(), "");
  return std::get<T>(std::get<model::Upsert>(std::get<Applied>(second).event).object);
}

TEST(RedactorTest, AmountsStayWhereAKeySaysSo) {
  model::Pod pod = PodBuilder("ns", "4711").Build();
  pod.meta.annotations.Set("gpu-memory", "2048");
  pod.meta.labels.Set("employee", "2048");
  pod.meta.resource_version = "123456";
  pod = RedactedObject(pod);
  EXPECT_EQ(pod.meta.annotations.Get("gpu-memory"), "2048");
  EXPECT_EQ(pod.meta.resource_version, "123456");
  EXPECT_NE(pod.meta.name, "4711");
  for (const auto& [key, value] : pod.meta.labels) {
    EXPECT_NE(key, "employee");
    EXPECT_NE(value, "2048");
  }
}

TEST(RedactorTest, NumbersThatASelectorComparesStay) {
  model::Pod pod = PodBuilder("ns", "p").Build();
  pod.spec.has_required_node_affinity = true;
  pod.spec.required_node_terms = {
      {{{"acme.example/slots", model::SelectorOperator::kGt, {"12"}}}, {}}};
  const model::Pod redacted = RedactedObject(pod);
  const auto& requirement = redacted.spec.required_node_terms[0].match_expressions[0];
  EXPECT_EQ(requirement.values, std::vector<std::string>{"12"});
  EXPECT_THAT(requirement.key, ::testing::Not(HasSubstr("slots")));
}

TEST(RedactorTest, ASelectorOfDevicesSelectsTheRenamed) {
  model::DeviceClass device_class;
  device_class.meta.name = "acme-gpus";
  device_class.selectors = {
      R"(device.driver == "gpu.acme.example" && device.capacity["gpu.acme.example"].memory.compareTo(quantity("40Gi")) >= 0)"};
  const std::string selector = RedactedObject(device_class).selectors[0];
  EXPECT_THAT(selector, HasSubstr("device.driver == \""));
  EXPECT_THAT(selector, HasSubstr("compareTo(quantity(\"40Gi\")) >= 0"));
  EXPECT_THAT(selector, ::testing::Not(HasSubstr("acme")));
}

TEST(RedactorTest, APatternOfTypesBecomesTheListOfThem) {
  Redactor redactor({});
  Record start = Start{.types = hook::Catalog::BuiltIn().types()};
  model::Pod pod = PodBuilder("ns", "p").Build();
  pod.spec.wishes.Own().type = model::TypePattern::Make("^p5[.]").value();
  pod.spec.wishes.Own().gpu_models = {"H100", "ACME-CHIP"};
  Record first = PutOf(pod), second = PutOf(pod);
  redactor.Collect(start);
  redactor.Collect(first);
  redactor.Assign();
  redactor.Redact(second);
  const auto& object = std::get<model::Upsert>(std::get<Applied>(second).event).object;
  const model::InstanceWishes& wishes = *std::get<model::Pod>(object).spec.wishes;
  EXPECT_TRUE(wishes.type.Matches("p5.48xlarge"));
  EXPECT_FALSE(wishes.type.Matches("g5.xlarge"));
  EXPECT_FALSE(wishes.type.Matches("xp5.48xlarge"));
  EXPECT_THAT(wishes.gpu_models, ::testing::Contains("H100"));
  EXPECT_THAT(wishes.gpu_models, ::testing::Not(::testing::Contains("ACME-CHIP")));
}

TEST(RedactorTest, OfAnOwnerOnlyWhatGroupsPodsIsLeft) {
  Redactor redactor({});
  model::ActionResult result;
  result.object = std::make_shared<const std::string>(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"acme-job","labels":{"team":"x-team"}},)"
      R"("spec":{"parallelism":4,"template":{"spec":{"containers":[{"env":[{"value":"PASSWORD"}]}]}}}})");
  Record first = Applied{result}, second = Applied{result};
  redactor.Collect(first);
  redactor.Assign();
  redactor.Redact(second);
  const std::string object = *std::get<model::ActionResult>(std::get<Applied>(second).event).object;
  EXPECT_THAT(object, HasSubstr(R"("parallelism":4)"));
  EXPECT_THAT(object, HasSubstr(R"("kind":"Job")"));
  for (const char* gone : {"acme", "team", "containers", "env", "PASSWORD"}) {
    EXPECT_THAT(object, ::testing::Not(HasSubstr(gone)));
  }
}

// The search for leaks finds a text that an overload has forgotten.
TEST(RedactorTest, ATextThatWasNotReplacedIsFound) {
  Redactor redactor({});
  Record record = PutOf(PodBuilder("ns", "acme-pod").Build());
  redactor.Collect(record);
  redactor.Assign();
  record = PutOf(PodBuilder("ns", "acme-pod").Build());
  EXPECT_NE(redactor.LeakIn(record), "");
  redactor.Redact(record);
  EXPECT_EQ(redactor.LeakIn(record), "");
}

}  // namespace
}  // namespace fairlead::journal
