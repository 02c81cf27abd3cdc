#include "kube/executor.h"

#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/runtime_test_util.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reply = FakeTransport::Reply;
using Id = FakeTransport::Id;

constexpr char kPodPath[] = "/api/v1/namespaces/ns/pods/p";
constexpr char kBindPath[] = "/api/v1/namespaces/ns/pods/p/binding";
constexpr char kStatusPath[] = "/api/v1/namespaces/ns/pods/p/status";
constexpr char kEvictPath[] = "/api/v1/namespaces/ns/pods/p/eviction";
constexpr char kNodePath[] = "/api/v1/nodes/n1";

model::BindPod Bind(const std::string& name = "p") {
  return model::BindPod{"ns", name, "u1", "n1", {}};
}
model::SetPodUnschedulable Unschedulable(const std::string& name = "p",
                                         const std::string& message = "m") {
  model::SetPodUnschedulable action;
  action.ns = "ns";
  action.name = name;
  action.uid = "u1";
  action.reason = "QueueLimitReached";
  action.message = message;
  return action;
}
model::EvictPod Evict() { return model::EvictPod{"ns", "p", "u1", "Preempted", "by a better one"}; }
model::EmitEvent Event(const std::string& name = "p") {
  model::EmitEvent event;
  event.ns = "ns";
  event.name = name;
  event.uid = "u1";
  event.reason = "Scheduled";
  event.note = "on n1";
  return event;
}
model::SetNodeTaint Taint(bool present) {
  model::SetNodeTaint action;
  action.node = "n1";
  action.uid = "nu";
  action.taint = {"fairlead.dev/to-be-removed", "v", model::TaintEffect::kNoSchedule};
  action.present = present;
  return action;
}
std::string NodeJson(const std::string& version, const std::string& taints,
                     const std::string& uid = "nu") {
  return absl::StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":")", uid,
                      R"(","resourceVersion":")", version, R"("},"spec":{"taints":[)", taints,
                      R"(]},"status":{}})");
}

class ExecutorTest : public ::testing::Test {
 protected:
  void Create(Executor::Gate gate = nullptr, Executor::Provider provider = nullptr) {
    executor_ = std::make_unique<Executor>(api_, api_, clock_, queue_, options_,
                                           std::move(provider), std::move(gate));
  }
  uint64_t Submit(decltype(model::Action::what) what) {
    if (executor_ == nullptr) Create();
    model::Action action;
    action.id = ++last_id_;
    action.what = std::move(what);
    executor_->Submit(std::move(action));
    return last_id_;
  }
  // Runs everything, timers included, until nothing is left to be done.
  void Settle() {
    api_.Pump();
    for (int i = 0; i < 1000 && !executor_->Idle(); ++i) {
      if (api_.UntilNextTimer() == absl::InfiniteDuration()) break;
      api_.Advance(api_.UntilNextTimer());
    }
  }
  // The one answer that there must be.
  absl::Status Answer() {
    Settle();
    const auto events = DrainNow(queue_);
    EXPECT_EQ(events.size(), 1u);
    if (events.size() != 1) return absl::InternalError("no single answer");
    return std::get<model::ActionResult>(events[0]).status;
  }
  // "POST .../binding" of all requests so far, without the common beginning.
  std::vector<std::string> Requests() const {
    std::vector<std::string> lines;
    for (const auto& exchange : api_.exchanges()) {
      absl::string_view path = exchange.request.path;
      path.remove_prefix(std::min(path.size(), path.rfind('/') + 1));
      lines.push_back(absl::StrCat(exchange.request.method, " ", path));
    }
    return lines;
  }
  void PodIs(const std::string& uid, const std::string& node) {
    api_.On("GET", kPodPath, Reply::Json(200, PodJson("p", uid, "9", node)));
  }

  FakeClock clock_{absl::UnixEpoch() + absl::Hours(1)};
  FakeTransport api_{clock_};
  EventQueue queue_;
  ExecutorOptions options_;
  std::unique_ptr<Executor> executor_;
  uint64_t last_id_ = 0;
};

// ---- one row a case of write_protocol.h
// ------------------------------------------------------------

struct Step {
  const char* method;
  const char* path;
  Reply reply;
  int times = FakeTransport::kAlways;
};
struct Row {
  const char* name;
  std::function<decltype(model::Action::what)()> action;
  std::vector<Step> script;  // the later ones answer first
  absl::StatusCode expected;
  std::vector<std::string> requests;  // empty: not compared
  const char* message = "";
  friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};

const Reply kOk = Reply::Json(200, "{}");
const Reply kCreated = Reply::Json(201, "{}");
Reply PodReply(const char* uid, const char* node) {
  return Reply::Json(200, PodJson("p", uid, "9", node));
}
Reply Lost() { return Reply::Failure(absl::UnavailableError("connection reset")); }
Reply TimedOut() { return Reply::Failure(absl::DeadlineExceededError("no answer within 15s")); }

std::vector<Row> BindRows() {
  const auto bind = [] { return decltype(model::Action::what)(Bind()); };
  return {
      {"Created", bind, {{"POST", kBindPath, kCreated}}, absl::StatusCode::kOk, {"POST binding"}},
      {"ConflictOurs",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "already assigned to node")},
        {"GET", kPodPath, PodReply("u1", "n1")}},
       absl::StatusCode::kOk,
       {"POST binding", "GET p"}},
      {"ConflictTheirs",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "already assigned to node")},
        {"GET", kPodPath, PodReply("u1", "n2")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"},
       "n2"},
      {"ConflictOtherPodOnOurNode",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "uid")},
        {"GET", kPodPath, PodReply("u2", "n1")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"},
       "u2"},
      {"ConflictUnbound",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "pod p is being deleted")},
        {"GET", kPodPath, PodReply("u1", "")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"},
       "is being deleted"},
      {"ConflictThenGone",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "x")},
        {"GET", kPodPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"POST binding", "GET p"}},
      {"Gone",
       bind,
       {{"POST", kBindPath, ErrorReply(404, "NotFound", "pods p not found")}},
       absl::StatusCode::kNotFound,
       {"POST binding"},
       "bind pod ns/p to node n1: 404 NotFound: pods p not found"},
      {"Invalid",
       bind,
       {{"POST", kBindPath, ErrorReply(422, "Invalid", "target.name: Invalid value")}},
       absl::StatusCode::kInvalidArgument,
       {"POST binding"},
       "target.name"},
      {"BadRequest",
       bind,
       {{"POST", kBindPath, ErrorReply(400, "BadRequest", "x")}},
       absl::StatusCode::kInvalidArgument,
       {"POST binding"}},
      {"Forbidden",
       bind,
       {{"POST", kBindPath, ErrorReply(403, "Forbidden", "x")}},
       absl::StatusCode::kPermissionDenied,
       {"POST binding"}},
      {"LostAfterCommit",
       bind,
       {{"POST", kBindPath, Lost()}, {"GET", kPodPath, PodReply("u1", "n1")}},
       absl::StatusCode::kOk,
       {"POST binding", "GET p"}},
      {"TimedOutAndBoundElsewhere",
       bind,
       {{"POST", kBindPath, TimedOut()}, {"GET", kPodPath, PodReply("u1", "n3")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"}},
      {"LostAndRecreated",
       bind,
       {{"POST", kBindPath, Lost()}, {"GET", kPodPath, PodReply("u2", "")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"}},
      {"LostBeforeCommit",
       bind,
       {{"POST", kBindPath, kCreated},
        {"POST", kBindPath, Lost(), 1},
        {"GET", kPodPath, PodReply("u1", "")}},
       absl::StatusCode::kOk,
       {"POST binding", "GET p", "POST binding"}},
      {"InternalErrorThenConflictOurs",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "already assigned")},
        {"POST", kBindPath, ErrorReply(500, "InternalError", "etcd"), 1},
        {"GET", kPodPath, PodReply("u1", "n1")},
        {"GET", kPodPath, PodReply("u1", ""), 1}},
       absl::StatusCode::kOk,
       {"POST binding", "GET p", "POST binding", "GET p"}},
      {"NobodyKnows",
       bind,
       {{"POST", kBindPath, Lost()}, {"GET", kPodPath, Lost()}},
       absl::StatusCode::kUnavailable,
       {"POST binding", "GET p", "GET p", "GET p", "GET p", "GET p", "GET p", "GET p", "GET p",
        "GET p"}},
      {"ThrottledToTheEnd",
       bind,
       {{"POST", kBindPath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(1))}},
       absl::StatusCode::kAborted,
       std::vector<std::string>(10, "POST binding")},
      {"UnauthorizedOnce",
       bind,
       {{"POST", kBindPath, kCreated},
        {"POST", kBindPath, ErrorReply(401, "Unauthorized", "x"), 1}},
       absl::StatusCode::kOk,
       {"POST binding", "POST binding"}},
  };
}

std::vector<Row> OtherRows() {
  using What = decltype(model::Action::what);
  const auto evict = [] { return What(Evict()); };
  const auto status = [] { return What(Unschedulable()); };
  const auto create = [] {
    model::CreateNodeRequest action;
    action.request.meta.name = "r1";
    return What(action);
  };
  const auto remove = [] { return What(model::DeleteNodeRequest{"r1", "u1"}); };
  const auto event = [] { return What(Event()); };
  static constexpr char kRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests";
  static constexpr char kRequest[] = "/apis/fairlead.dev/v1alpha1/noderequests/r1";
  static constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/*";
  const char* no_budget = "Cannot evict pod as it would violate the pod's disruption budget.";
  Reply flow_control = Reply::Json(429, "Too many requests, please try again later.");
  flow_control.response.content_type = "text/plain";
  const Reply several_budgets = Reply::Json(
      201, R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":)"
           R"("This pod has more than one PodDisruptionBudget, which is not supported."})");
  return {
      {"EvictWorks",
       evict,
       {{"POST", kEvictPath, kCreated}, {"PATCH", kStatusPath, kOk}},
       absl::StatusCode::kOk,
       {"POST eviction", "PATCH status"}},
      {"EvictWithoutRightToTheCondition",
       evict,
       {{"POST", kEvictPath, kCreated}, {"PATCH", kStatusPath, ErrorReply(403, "Forbidden", "x")}},
       absl::StatusCode::kOk,
       {"POST eviction", "PATCH status"}},
      {"EvictOfWhoIsGoneAtOnce",
       evict,
       {{"POST", kEvictPath, kCreated}, {"PATCH", kStatusPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kOk,
       {"POST eviction", "PATCH status"}},
      {"EvictGone",
       evict,
       {{"POST", kEvictPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"POST eviction"}},
      {"EvictOtherUid",
       evict,
       {{"POST", kEvictPath, ErrorReply(409, "Conflict", "uid")}},
       absl::StatusCode::kFailedPrecondition,
       {"POST eviction"}},
      {"EvictAgainstBudget",
       evict,
       {{"POST", kEvictPath, ErrorReply(429, "TooManyRequests", no_budget)}},
       absl::StatusCode::kResourceExhausted,
       {"POST eviction"},
       no_budget},
      {"EvictAgainstSeveralBudgetsIsRefusedInASuccess",
       evict,
       {{"POST", kEvictPath, several_budgets}},
       absl::StatusCode::kResourceExhausted,
       {"POST eviction"},
       "This pod has more than one PodDisruptionBudget"},
      {"EvictFlowControl",
       evict,
       {{"POST", kEvictPath, flow_control}},
       absl::StatusCode::kAborted,
       {}},
      {"EvictLostAfterCommit",
       evict,
       {{"POST", kEvictPath, ErrorReply(404, "NotFound", "x")}, {"POST", kEvictPath, Lost(), 1}},
       absl::StatusCode::kOk,
       {"POST eviction", "POST eviction"}},
      {"StatusWorks",
       status,
       {{"PATCH", kStatusPath, kOk}},
       absl::StatusCode::kOk,
       {"PATCH status"}},
      {"StatusGone",
       status,
       {{"PATCH", kStatusPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"PATCH status"}},
      {"StatusOtherUid",
       status,
       {{"PATCH", kStatusPath, ErrorReply(409, "Conflict", "uid")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH status"}},
      {"StatusInvalid",
       status,
       {{"PATCH", kStatusPath, ErrorReply(422, "Invalid", "x")},
        {"GET", kPodPath, PodReply("u1", "")}},
       absl::StatusCode::kInvalidArgument,
       {"PATCH status", "GET p"},
       "x"},
      // What a real server says to metadata.uid of a pod that is not this one.
      {"StatusOfAPodThatWasMadeAgain",
       status,
       {{"PATCH", kStatusPath, ErrorReply(422, "Invalid", "metadata.uid: field is immutable")},
        {"GET", kPodPath, PodReply("u2", "")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH status", "GET p"}},
      {"StatusInvalidAndThenGone",
       status,
       {{"PATCH", kStatusPath, ErrorReply(422, "Invalid", "x")},
        {"GET", kPodPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"PATCH status", "GET p"}},
      {"StatusInvalidAndNobodyToAsk",
       status,
       {{"PATCH", kStatusPath, ErrorReply(422, "Invalid", "x")}, {"GET", kPodPath, Lost()}},
       absl::StatusCode::kAborted,
       {"PATCH status", "GET p", "GET p", "GET p", "GET p", "GET p", "GET p"}},
      {"StatusWrongPatchType",
       status,
       {{"PATCH", kStatusPath, ErrorReply(415, "UnsupportedMediaType", "x")}},
       absl::StatusCode::kInvalidArgument,
       {"PATCH status"}},
      {"StatusLost",
       status,
       {{"PATCH", kStatusPath, kOk}, {"PATCH", kStatusPath, Lost(), 2}},
       absl::StatusCode::kOk,
       {"PATCH status", "PATCH status", "PATCH status"}},
      {"StatusServerDown",
       status,
       {{"PATCH", kStatusPath, ErrorReply(503, "ServiceUnavailable", "x")}},
       absl::StatusCode::kUnavailable,
       std::vector<std::string>(6, "PATCH status")},
      {"CreateWorks", create, {{"POST", kRequests, kCreated}}, absl::StatusCode::kOk, {}},
      {"CreateTwice",
       create,
       {{"POST", kRequests, ErrorReply(409, "AlreadyExists", "x")}},
       absl::StatusCode::kAlreadyExists,
       {"POST noderequests"}},
      {"CreateLostAfterCommit",
       create,
       {{"POST", kRequests, ErrorReply(409, "AlreadyExists", "x")},
        {"POST", kRequests, TimedOut(), 1}},
       absl::StatusCode::kAlreadyExists,
       {"POST noderequests", "POST noderequests"}},
      {"DeleteGone",
       remove,
       {{"DELETE", kRequest, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"DELETE r1"}},
      {"DeleteLostAfterCommit",
       remove,
       {{"DELETE", kRequest, ErrorReply(404, "NotFound", "x")}, {"DELETE", kRequest, Lost(), 1}},
       absl::StatusCode::kOk,
       {"DELETE r1", "DELETE r1"}},
      {"DeleteOtherUid",
       remove,
       {{"DELETE", kRequest, ErrorReply(409, "Conflict", "uid")}},
       absl::StatusCode::kFailedPrecondition,
       {"DELETE r1"}},
      {"EventWorks", event, {{"POST", kEvents, kCreated}}, absl::StatusCode::kOk, {"POST events"}},
      {"EventThere",
       event,
       {{"POST", kEvents, ErrorReply(409, "AlreadyExists", "x")}},
       absl::StatusCode::kOk,
       {"POST events"}},
      {"EventGivenUp",
       event,
       {{"POST", kEvents, ErrorReply(500, "InternalError", "x")}},
       absl::StatusCode::kUnavailable,
       {"POST events", "POST events"}},
  };
}

// Statuses of custom kinds, which may not be there yet.
std::vector<Row> CustomStatusRows() {
  using What = decltype(model::Action::what);
  const auto request = [] {
    model::UpdateNodeRequestStatus action;
    action.request.meta.name = "r1";
    action.request.meta.uid = "ru";
    action.request.phase = model::NodeRequestPhase::kLaunched;
    return What(action);
  };
  const auto group = [] {
    return What(model::SetPodGroupSchedulability{"ns", "g", "gu", "{}", "R", "m"});
  };
  static constexpr char kRequest[] = "/apis/fairlead.dev/v1alpha1/noderequests/r1";
  static constexpr char kRequestStatus[] = "/apis/fairlead.dev/v1alpha1/noderequests/r1/status";
  static constexpr char kGroup[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g";
  static constexpr char kGroupStatus[] =
      "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g/status";
  const Reply refused = ErrorReply(422, "Invalid", "the server rejected our request");
  const auto named = [](const char* name, const char* uid) {
    return Reply::Json(200, absl::StrCat(R"({"metadata":{"name":")", name, R"(","uid":")", uid,
                                         R"("},"spec":{"provider":"p","instanceType":"t"}})"));
  };
  return {
      {"Works", request, {{"PATCH", kRequestStatus, kOk}}, absl::StatusCode::kOk, {"PATCH status"}},
      {"NoStatusYet",
       request,
       {{"PATCH", kRequestStatus, kOk},
        {"PATCH", kRequestStatus, refused, 1},
        {"GET", kRequest, named("r1", "ru")}},
       absl::StatusCode::kOk,
       {"PATCH status", "GET r1", "PATCH status"}},
      {"NoStatusAtFirst",
       group,
       {{"PATCH", kGroupStatus, kOk},
        {"PATCH", kGroupStatus, refused, 2},
        {"GET", kGroup, named("g", "gu")}},
       absl::StatusCode::kOk,
       {"PATCH status", "GET g", "PATCH status", "GET g", "PATCH status"}},
      {"WrongInItself",
       request,
       {{"PATCH", kRequestStatus, ErrorReply(422, "Invalid", "status.phase: Unsupported value")},
        {"GET", kRequest, named("r1", "ru")}},
       absl::StatusCode::kInvalidArgument,
       {"PATCH status", "GET r1", "PATCH status", "GET r1", "PATCH status", "GET r1"},
       "Unsupported value"},
      {"MadeAgain",
       request,
       {{"PATCH", kRequestStatus, refused}, {"GET", kRequest, named("r1", "other")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH status", "GET r1"}},
      {"GroupMadeAgain",
       group,
       {{"PATCH", kGroupStatus, refused}, {"GET", kGroup, named("g", "other")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH status", "GET g"}},
  };
}

std::vector<Row> TaintRows() {
  using What = decltype(model::Action::what);
  const auto add = [] { return What(Taint(true)); };
  const auto remove = [] { return What(Taint(false)); };
  const std::string ours =
      R"({"key":"fairlead.dev/to-be-removed","value":"v","effect":"NoSchedule"})";
  const Reply bare = Reply::Json(200, NodeJson("7", ""));
  const Reply tainted = Reply::Json(200, NodeJson("7", ours));
  std::vector<std::string> conflicts;
  for (int i = 0; i < kTaintConflicts; ++i) {
    conflicts.push_back("GET n1");
    conflicts.push_back("PATCH n1");
  }
  return {
      {"Add",
       add,
       {{"GET", kNodePath, bare}, {"PATCH", kNodePath, kOk}},
       absl::StatusCode::kOk,
       {"GET n1", "PATCH n1"}},
      {"AddThere", add, {{"GET", kNodePath, tainted}}, absl::StatusCode::kOk, {"GET n1"}},
      {"Remove",
       remove,
       {{"GET", kNodePath, tainted}, {"PATCH", kNodePath, kOk}},
       absl::StatusCode::kOk,
       {"GET n1", "PATCH n1"}},
      {"RemoveAbsent", remove, {{"GET", kNodePath, bare}}, absl::StatusCode::kOk, {"GET n1"}},
      {"NodeGone",
       add,
       {{"GET", kNodePath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"GET n1"}},
      {"NodeRecreated",
       add,
       {{"GET", kNodePath, Reply::Json(200, NodeJson("7", "", "other"))}},
       absl::StatusCode::kFailedPrecondition,
       {"GET n1"}},
      {"ConflictOnce",
       add,
       {{"GET", kNodePath, bare},
        {"PATCH", kNodePath, kOk},
        {"PATCH", kNodePath, ErrorReply(409, "Conflict", "modified"), 1}},
       absl::StatusCode::kOk,
       {"GET n1", "PATCH n1", "GET n1", "PATCH n1"}},
      {"ConflictForEver",
       add,
       {{"GET", kNodePath, bare}, {"PATCH", kNodePath, ErrorReply(409, "Conflict", "modified")}},
       absl::StatusCode::kAborted,
       conflicts},
      {"LostAfterCommit",
       add,
       {{"GET", kNodePath, tainted}, {"GET", kNodePath, bare, 1}, {"PATCH", kNodePath, Lost()}},
       absl::StatusCode::kOk,
       {"GET n1", "PATCH n1", "GET n1"}},
      {"ServerDown",
       add,
       {{"GET", kNodePath, Lost()}},
       absl::StatusCode::kAborted,
       std::vector<std::string>(8, "GET n1")},
  };
}

std::vector<Row> ShareRows() {
  using What = decltype(model::Action::what);
  const auto reserve = [] {
    return What(model::CreateGpuReservation{"res", "r1", "n1", "g", "i", "", "", {}});
  };
  const auto remove = [] { return What(model::DeletePod{"res", "r1", "u1"}); };
  const auto apply = [] { return What(model::ApplyConfigMap{"ns", "m", {{"k", "v"}}, "p", "u1"}); };
  static constexpr char kReservations[] = "/api/v1/namespaces/res/pods";
  static constexpr char kReservation[] = "/api/v1/namespaces/res/pods/r1";
  static constexpr char kMap[] = "/api/v1/namespaces/ns/configmaps/m";
  return {
      {"ReservationIsThere",
       reserve,
       {{"POST", kReservations, ErrorReply(409, "AlreadyExists", "x")}},
       absl::StatusCode::kAlreadyExists,
       {"POST pods"}},
      {"ReservationOverQuota",
       reserve,
       {{"POST", kReservations, ErrorReply(403, "Forbidden", "exceeded quota: gpus")}},
       absl::StatusCode::kPermissionDenied,
       {"POST pods"},
       "exceeded quota: gpus"},
      {"ReservationThatNobodyKnowsOf",
       reserve,
       {{"POST", kReservations, Lost()}},
       absl::StatusCode::kUnavailable,
       {}},
      {"ReservationWorks",
       reserve,
       {{"POST", kReservations, kCreated}},
       absl::StatusCode::kOk,
       {"POST pods"}},
      {"PodOfAnotherUid",
       remove,
       {{"DELETE", kReservation, ErrorReply(409, "Conflict", "uid")}},
       absl::StatusCode::kFailedPrecondition,
       {"DELETE r1"}},
      {"PodThatIsGone",
       remove,
       {{"DELETE", kReservation, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"DELETE r1"}},
      {"PodThatWentWithALostAnswer",
       remove,
       {{"DELETE", kReservation, ErrorReply(404, "NotFound", "x")},
        {"DELETE", kReservation, Lost(), 1}},
       absl::StatusCode::kOk,
       {"DELETE r1", "DELETE r1"}},
      {"ConfigMapWithoutTheRight",
       apply,
       {{"PATCH", kMap, ErrorReply(403, "Forbidden", "x")}},
       absl::StatusCode::kPermissionDenied,
       {}},
      {"ConfigMapWorks", apply, {{"PATCH", kMap, kOk}}, absl::StatusCode::kOk, {}},
  };
}

class ProtocolTest : public ExecutorTest, public ::testing::WithParamInterface<Row> {};
std::string RowName(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Bind, ProtocolTest, ::testing::ValuesIn(BindRows()), RowName);
INSTANTIATE_TEST_SUITE_P(Others, ProtocolTest, ::testing::ValuesIn(OtherRows()), RowName);
INSTANTIATE_TEST_SUITE_P(CustomStatus, ProtocolTest, ::testing::ValuesIn(CustomStatusRows()),
                         RowName);
INSTANTIATE_TEST_SUITE_P(GpuShares, ProtocolTest, ::testing::ValuesIn(ShareRows()), RowName);
INSTANTIATE_TEST_SUITE_P(NodeTaint, ProtocolTest, ::testing::ValuesIn(TaintRows()), RowName);

TEST_P(ProtocolTest, AnswersAsItsTableSays) {
  for (const Step& step : GetParam().script) {
    api_.On(step.method, step.path, step.reply, step.times);
  }
  Submit(GetParam().action());
  const absl::Status status = Answer();
  EXPECT_EQ(status.code(), GetParam().expected) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  if (!GetParam().requests.empty()) {
    EXPECT_EQ(Requests(), GetParam().requests);
  }
  EXPECT_EQ(executor_->GetStats().in_flight, 0);
  EXPECT_TRUE(executor_->Idle());
}

TEST_F(ExecutorTest, AConditionThatAnotherSchedulerWroteMeanwhileStays) {
  const std::string path = "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g";
  const auto group = [](const char* theirs) {
    return Reply::Json(200, absl::StrCat(R"({"metadata":{"name":"g","uid":"gu"},"spec":{},)"
                                         R"("status":{"schedulingConditions":[)",
                                         theirs, "]}}"));
  };
  const Reply refused = ErrorReply(422, "Invalid", "the server rejected our request");
  api_.On("PATCH", path + "/status", kOk);
  api_.On("PATCH", path + "/status", refused, 2);
  api_.On("GET", path, group(R"({"nodePool":"a","x":2})"));
  api_.On("GET", path, group(R"({"nodePool":"a","x":1})"), 1);
  Submit(model::SetPodGroupSchedulability{"ns", "g", "gu", "{}", "R", "m"});
  EXPECT_TRUE(Answer().ok());
  EXPECT_EQ(Requests(), (std::vector<std::string>{"PATCH status", "GET g", "PATCH status", "GET g",
                                                  "PATCH status"}));
  const std::string& body = api_.Sent("PATCH", path + "/status").at(2)->request.body;
  EXPECT_THAT(body, HasSubstr(R"("value":[{"nodePool":"a","x":2}]})"));
  EXPECT_THAT(body, HasSubstr(R"("value":[{"nodePool":"a","x":2},{"type":)"));
}

TEST_F(ExecutorTest, TheTaintsOfOthersStay) {
  const std::string theirs = R"({"key":"nvidia.com/gpu","value":"x","effect":"NoExecute"})";
  // Same key, another effect: another taint.
  const std::string near =
      R"({"key":"fairlead.dev/to-be-removed","value":"v","effect":"NoExecute"})";
  api_.On("GET", kNodePath, Reply::Json(200, NodeJson("41", theirs + "," + near)));
  api_.On("PATCH", kNodePath, kOk);
  Submit(Taint(true));
  EXPECT_TRUE(Answer().ok());
  const std::string& body = api_.Sent("PATCH", kNodePath).at(0)->request.body;
  EXPECT_THAT(body, HasSubstr("\"resourceVersion\":\"41\""));
  EXPECT_THAT(body, HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(body, HasSubstr("NoExecute"));
  EXPECT_THAT(body, HasSubstr("\"NoSchedule\""));
}

TEST_F(ExecutorTest, RetryAfterPausesAllWrites) {
  api_.On("POST", kBindPath, kCreated);
  api_.On("POST", kBindPath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(20)), 1);
  api_.On("POST", "/api/v1/namespaces/ns/pods/other/binding", kCreated);
  Submit(Bind());
  api_.Pump();
  Submit(Bind("other"));
  EXPECT_EQ(executor_->GetStats().window, 32) << "halved";
  api_.Advance(absl::Seconds(19));
  EXPECT_EQ(api_.exchanges().size(), 1u);
  EXPECT_THAT(Told(queue_), IsEmpty());
  Settle();
  EXPECT_EQ(Told(queue_).size(), 2u);
  for (size_t i = 1; i < api_.exchanges().size(); ++i) {
    EXPECT_EQ(api_.exchanges()[i].sent_at, absl::Seconds(20));
  }
  EXPECT_EQ(executor_->GetStats().retries, 1);
}

TEST_F(ExecutorTest, ABudgetsNoDoesNotSlowOthersDown) {
  api_.On("POST", kEvictPath, ErrorReply(429, "TooManyRequests", "budget", absl::Seconds(10)));
  Submit(Evict());
  api_.Pump();
  EXPECT_EQ(executor_->GetStats().window, 64);
  api_.On("POST", "/api/v1/namespaces/ns/pods/other/binding", kCreated);
  Submit(Bind("other"));
  api_.Pump();
  EXPECT_THAT(Told(queue_), ElementsAre("1 RESOURCE_EXHAUSTED", "2 OK"));
}

TEST_F(ExecutorTest, RetriesBackOff) {
  api_.On("PATCH", kStatusPath, Lost());
  Submit(Unschedulable());
  Settle();
  absl::Duration step = options_.backoff_initial;
  for (size_t i = 1; i < api_.exchanges().size(); ++i) {
    const absl::Duration gap = api_.exchanges()[i].sent_at - api_.exchanges()[i - 1].sent_at;
    EXPECT_GE(gap, step / 2);
    EXPECT_LT(gap, step);
    step *= 2;
  }
}

// ---- order
// -----------------------------------------------------------------------------------------

TEST_F(ExecutorTest, OneObjectOneWriteAtATimeInOrder) {
  Submit(Unschedulable("p", "first"));  // on the wire at once
  Submit(Bind());
  Submit(Evict());
  Submit(Unschedulable("p", "second"));
  api_.Pump();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status"));
  api_.Respond(api_.exchanges().back().id, Reply::Json(500, "").response);
  api_.Pump();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status")) << "a retry lets nobody overtake";
  api_.On("PATCH", kStatusPath, kOk);
  api_.On("POST", kBindPath, kCreated);
  api_.On("POST", kEvictPath, kCreated);
  Settle();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status", "PATCH status", "POST binding",
                                      "POST eviction", "PATCH status", "PATCH status"));
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "2 OK", "3 OK", "4 OK"));
}

TEST_F(ExecutorTest, ANewerStatusReplacesAQueuedOne) {
  Submit(Unschedulable("p", "first"));
  Submit(Unschedulable("p", "second"));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "the first is on the wire";
  Submit(Unschedulable("p", "third"));
  EXPECT_THAT(Told(queue_), ElementsAre("2 OK"));
  api_.On("PATCH", kStatusPath, kOk);
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "3 OK"));
  EXPECT_EQ(api_.exchanges().size(), 2u);
  EXPECT_THAT(api_.exchanges()[1].request.body, HasSubstr("third"));
  EXPECT_EQ(executor_->GetStats().replaced, 1);
}

TEST_F(ExecutorTest, BindingsGoFirstAndTakeTheirPodsStatusAlong) {
  options_.window.start = options_.window.min = options_.window.max = 1;
  Submit(Event("busy"));  // takes the one place
  Submit(Event("e"));
  Submit(Unschedulable("s"));
  Submit(Unschedulable("x"));  // before the binding of the same pod
  model::CreateNodeRequest create;
  create.request.meta.name = "r1";
  Submit(create);
  Submit(Evict());
  Submit(Bind("b"));
  Submit(Bind("x"));
  api_.When([](const HttpRequest&) { return true; }, [](const HttpRequest&) { return kOk; });
  Settle();
  std::vector<std::string> paths;
  for (const auto& exchange : api_.exchanges()) paths.push_back(exchange.request.path);
  EXPECT_THAT(
      paths, ElementsAre(HasSubstr("/events"), HasSubstr("/b/binding"), HasSubstr("/x/status"),
                         HasSubstr("/x/binding"), HasSubstr("/p/eviction"), HasSubstr("/p/status"),
                         HasSubstr("/noderequests"), HasSubstr("/s/status"), HasSubstr("/events")));
}

TEST_F(ExecutorTest, LowerLanesLeaveRoomForBindings) {
  for (int i = 0; i < 100; ++i) Submit(Event(absl::StrCat("e", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 32);
  for (int i = 0; i < 100; ++i) Submit(Unschedulable(absl::StrCat("s", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 48);
  for (int i = 0; i < 100; ++i) Submit(Bind(absl::StrCat("b", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 64);
  EXPECT_EQ(executor_->GetStats().queued[0], 100u);
}

TEST_F(ExecutorTest, EventsAreShedAndEverythingElseIsNot) {
  options_.max_queued_events = 5;
  for (int i = 0; i < 8; ++i) Submit(Event());
  EXPECT_THAT(Told(queue_),
              ElementsAre("6 RESOURCE_EXHAUSTED", "7 RESOURCE_EXHAUSTED", "8 RESOURCE_EXHAUSTED"));
  EXPECT_EQ(executor_->GetStats().shed, 3);
  for (int i = 0; i < 8; ++i) Submit(Bind(absl::StrCat("b", i)));
  EXPECT_THAT(Told(queue_), IsEmpty());
}

// ---- fencing, provider, shutting down
// --------------------------------------------------------------

TEST_F(ExecutorTest, NothingIsWrittenWithoutLeadership) {
  bool leader = true;
  Create([&] { return leader; });
  Submit(Bind());        // 1: on the wire
  Submit(Evict());       // 2: queued behind it
  Submit(Bind("lost"));  // 3: waits for a retry with an unknown outcome
  api_.Fail(api_.exchanges().back().id, absl::UnavailableError("reset"));
  api_.Pump();
  leader = false;
  executor_->Poke();
  EXPECT_THAT(Told(queue_), ElementsAre("2 ABORTED", "3 UNAVAILABLE"));
  Submit(Bind("new"));
  EXPECT_THAT(Told(queue_), ElementsAre("4 ABORTED"));
  // The answer on the wire would need a look at the pod and perhaps another write.
  api_.Respond(api_.exchanges().front().id, Reply::Json(500, "").response);
  api_.Pump();
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE"));
  api_.Advance(absl::Minutes(5));
  EXPECT_EQ(api_.exchanges().size(), 2u);
  EXPECT_TRUE(executor_->Idle());
  leader = true;
  api_.On("POST", kBindPath, kCreated);
  Submit(Bind());
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("5 OK"));
}

TEST_F(ExecutorTest, ATimerAfterTheLossAnswersInsteadOfWriting) {
  bool leader = true;
  Create([&] { return leader; });
  api_.On("PATCH", kStatusPath, ErrorReply(429, "TooManyRequests", "x"));
  Submit(Unschedulable());
  api_.Pump();
  leader = false;
  api_.Advance(absl::Minutes(1));
  EXPECT_THAT(Told(queue_), ElementsAre("1 ABORTED"));
  EXPECT_EQ(api_.exchanges().size(), 1u);
}

TEST_F(ExecutorTest, NodesComeFromTheProvider) {
  model::LaunchNode launch;
  launch.request.meta.name = "r1";
  Submit(launch);
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNIMPLEMENTED"));
  std::vector<uint64_t> asked;
  bool leader = true;
  Create([&] { return leader; }, [&](const model::Action& action) { asked.push_back(action.id); });
  Submit(launch);
  Submit(model::TerminateNode{"r1", "kwok", "n1", "id"});
  EXPECT_THAT(asked, ElementsAre(2, 3));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "the provider answers";
  leader = false;
  Submit(launch);
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_THAT(Told(queue_), ElementsAre("4 ABORTED"));
  EXPECT_THAT(api_.exchanges(), IsEmpty());
}

TEST_F(ExecutorTest, DrainLetsWorkEndAndTakesNoMore) {
  Submit(Bind());
  Submit(Unschedulable());
  executor_->BeginDrain();
  Submit(Bind("late"));
  EXPECT_THAT(Told(queue_), ElementsAre("3 ABORTED"));
  api_.On("POST", kBindPath, kCreated);
  api_.On("PATCH", kStatusPath, kOk);
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "2 OK"));
  EXPECT_TRUE(executor_->Drain(absl::ZeroDuration()));
}

TEST_F(ExecutorTest, DrainAnswersWhatIsLeft) {
  Submit(Bind());
  Submit(Unschedulable());
  EXPECT_FALSE(executor_->Drain(absl::ZeroDuration()));
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE", "2 ABORTED"));
  api_.Respond(api_.exchanges().front().id, kCreated.response);
  api_.Pump();
  EXPECT_THAT(Told(queue_), IsEmpty()) << "one answer an action";
}

TEST_F(ExecutorTest, DestroyedWithAnswersOnTheirWay) {
  Submit(Bind());
  executor_.reset();
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE"));
  api_.On("POST", kBindPath, kCreated);
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Told(queue_), IsEmpty());
}

TEST_F(ExecutorTest, CountsWhatItDoes) {
  api_.On("POST", kBindPath, ErrorReply(409, "Conflict", "x"));
  PodIs("u1", "n1");
  Submit(Bind());
  Settle();
  const ExecutorStats stats = executor_->GetStats();
  EXPECT_EQ(stats.requests_by_verb.at("POST"), 1);
  EXPECT_EQ(stats.requests_by_verb.at("GET"), 1);
  EXPECT_EQ(stats.answered[0], 1);
  EXPECT_EQ(stats.failed[0], 0);
  EXPECT_EQ(stats.request_latency.total(), 2);
  EXPECT_EQ(stats.action_latency.total(), 1);
  LatencyHistogram histogram;
  histogram.Add(absl::Microseconds(999));
  histogram.Add(absl::Milliseconds(1));
  histogram.Add(absl::Milliseconds(3));
  histogram.Add(absl::Hours(1));
  EXPECT_EQ(histogram.counts[0], 1);
  EXPECT_EQ(histogram.counts[1], 1);
  EXPECT_EQ(histogram.counts[2], 1);
  EXPECT_EQ(histogram.counts[LatencyHistogram::kBuckets - 1], 1);
}

// Random actions against a server that fails at random: whatever happens, every action is answered
// exactly once, no two writes to one object are open together, and each object's first requests
// come in the order of submission.
TEST_F(ExecutorTest, EveryActionIsAnsweredOnceWhateverHappens) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    FakeClock clock(absl::UnixEpoch());
    FakeTransport api(clock);
    EventQueue queue;
    uint64_t draws = 0;
    const auto draw = [&](uint64_t n) { return JitterBits(seed, draws++) % n; };
    bool leader = true;
    ExecutorOptions options;
    options.max_queued_events = 8;
    Executor executor(api, api, clock, queue, options, nullptr, [&] { return leader; });
    api.When([](const HttpRequest&) { return true; },
             [&](const HttpRequest& request) -> Reply {
               switch (draw(9)) {
                 case 0:
                   return Lost();
                 case 1:
                   return ErrorReply(429, "TooManyRequests", "x", absl::Seconds(draw(3)));
                 case 2:
                   return ErrorReply(500, "InternalError", "x");
                 case 3:
                   return ErrorReply(409, "Conflict", "x");
                 case 4:
                   return Reply::Hold();  // times out
                 case 5:
                   return ErrorReply(404, "NotFound", "x");
                 default:
                   if (request.method == "GET" && absl::StrContains(request.path, "/nodes/")) {
                     return Reply::Json(200, NodeJson("7", ""));
                   }
                   return request.method == "GET"
                              ? Reply::Json(200, PodJson("p", "u1", "9", draw(2) ? "n1" : ""))
                              : kOk;
               }
             });
    std::map<uint64_t, int> answers;
    const auto collect = [&] {
      for (const auto& event : DrainNow(queue)) {
        ++answers[std::get<model::ActionResult>(event).action_id];
      }
    };
    uint64_t id = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string name = absl::StrCat("p", draw(5));
      model::Action action;
      action.id = ++id;
      switch (draw(5)) {
        case 0:
          action.what = Bind(name);
          break;
        case 1:
          action.what = Unschedulable(name);
          break;
        case 2:
          action.what = Event(name);
          break;
        case 3:
          action.what = Taint(draw(2) == 0);
          break;
        default: {
          model::EvictPod evict = Evict();
          evict.name = name;
          action.what = evict;
        }
      }
      executor.Submit(std::move(action));
      if (draw(20) == 0) leader = !leader;
      if (draw(2) == 0) api.Advance(absl::Milliseconds(draw(3000)));
      std::map<std::string, int> open_by_object;
      for (const auto& exchange : api.exchanges()) {
        if (exchange.done || absl::StrContains(exchange.request.path, "/events")) continue;
        std::vector<std::string> parts = absl::StrSplit(exchange.request.path, '/');
        const bool pod = parts.size() > 6;
        EXPECT_EQ(++open_by_object[pod ? parts[6] : parts.back()], 1) << exchange.request.path;
      }
      collect();
    }
    api.Advance(absl::Hours(1));
    collect();
    EXPECT_TRUE(executor.Idle());
    EXPECT_EQ(answers.size(), id);
    for (const auto& [action, count] : answers) EXPECT_EQ(count, 1) << action;
    EXPECT_EQ(executor.GetStats().in_flight, 0);
  }
}

}  // namespace
}  // namespace fairlead::kube
