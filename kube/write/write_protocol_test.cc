// The requests for each kind of action, and the results of the API server's answers: one row per
// case of write_protocol.h.
#include "kube/write/write_protocol.h"

#include <functional>
#include <ostream>

#include "gmock/gmock.h"
#include "kube/write/executor_testing.h"

namespace fairlead::kube {
namespace {

using ::testing::HasSubstr;

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

Reply PodReply(const char* uid, const char* node) {
  return Reply::Json(200, PodJson("p", uid, "9", node));
}
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
      {"ConflictAndAFailedRead",
       bind,
       {{"POST", kBindPath, ErrorReply(409, "Conflict", "x")}, {"GET", kPodPath, Lost()}},
       absl::StatusCode::kFailedPrecondition,
       {"POST binding", "GET p"}},
      // The core looks again whether it is wanted.
      {"Lost",
       bind,
       {{"POST", kBindPath, Lost()}},
       absl::StatusCode::kUnavailable,
       {"POST binding"}},
      {"TimedOut",
       bind,
       {{"POST", kBindPath, TimedOut()}},
       absl::StatusCode::kUnavailable,
       {"POST binding"}},
      {"InternalError",
       bind,
       {{"POST", kBindPath, ErrorReply(500, "InternalError", "etcd")}},
       absl::StatusCode::kUnavailable,
       {"POST binding"}},
      {"Throttled",
       bind,
       {{"POST", kBindPath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(1))}},
       absl::StatusCode::kAborted,
       {"POST binding"}},
      {"Unauthorized",
       bind,
       {{"POST", kBindPath, ErrorReply(401, "Unauthorized", "x")}},
       absl::StatusCode::kAborted,
       {"POST binding"}},
  };
}

std::vector<Row> OtherRows() {
  using What = decltype(model::Action::what);
  const auto evict = [] { return What(Evict()); };
  const auto status = [] { return What(Unschedulable()); };
  const auto create = [] {
    model::CreateNodeRequest action;
    action.request.Own().meta.name = "r1";
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
      {"EvictOfAPodThatIsGoneAtOnce",
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
       absl::StatusCode::kUnavailable,
       {"POST eviction"}},
      {"EvictLostAfterCommit",
       evict,
       {{"POST", kEvictPath, ErrorReply(404, "NotFound", "x")}, {"POST", kEvictPath, Lost(), 1}},
       absl::StatusCode::kUnavailable,
       {"POST eviction"}},
      {"EvictWithAConditionThatIsPutOff",
       evict,
       {{"POST", kEvictPath, kCreated},
        {"PATCH", kStatusPath, kOk},
        {"PATCH", kStatusPath, Lost(), 2}},
       absl::StatusCode::kOk,
       {"POST eviction", "PATCH status", "PATCH status", "PATCH status"}},
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
      {"StatusAnsweredAsIfItWereAWatch",
       status,
       {{"PATCH", kStatusPath, ErrorReply(410, "Expired", "x")}},
       absl::StatusCode::kAborted,
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
      // The answer of a real server to metadata.uid of another pod.
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
      {"StatusInvalidAndThePodUnreadable",
       status,
       {{"PATCH", kStatusPath, ErrorReply(422, "Invalid", "x")}, {"GET", kPodPath, Lost()}},
       absl::StatusCode::kAborted,
       {"PATCH status", "GET p"}},
      {"StatusWrongPatchType",
       status,
       {{"PATCH", kStatusPath, ErrorReply(415, "UnsupportedMediaType", "x")}},
       absl::StatusCode::kInvalidArgument,
       {"PATCH status"}},
      {"StatusLost",
       status,
       {{"PATCH", kStatusPath, Lost()}},
       absl::StatusCode::kUnavailable,
       {"PATCH status"}},
      {"StatusServerDown",
       status,
       {{"PATCH", kStatusPath, ErrorReply(503, "ServiceUnavailable", "x")}},
       absl::StatusCode::kUnavailable,
       {"PATCH status"}},
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
       absl::StatusCode::kUnavailable,
       {"POST noderequests"}},
      {"CreateQuotaConflict",
       create,
       {{"POST", kRequests, ErrorReply(409, "Conflict", "quota")}},
       absl::StatusCode::kUnavailable,
       {"POST noderequests"}},
      {"DeleteGone",
       remove,
       {{"DELETE", kRequest, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kOk,
       {"DELETE r1"}},
      {"DeleteLostAfterCommit",
       remove,
       {{"DELETE", kRequest, ErrorReply(404, "NotFound", "x")}, {"DELETE", kRequest, Lost(), 1}},
       absl::StatusCode::kUnavailable,
       {"DELETE r1"}},
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

// Statuses of custom kinds, which may not exist yet.
std::vector<Row> CustomStatusRows() {
  using What = decltype(model::Action::what);
  const auto request = [] {
    model::UpdateNodeRequestStatus action;
    action.request.Own().meta.name = "r1";
    action.request.Own().meta.uid = "ru";
    action.request.Own().phase = model::NodeRequestPhase::kLaunched;
    return What(action);
  };
  const auto group = [] {
    return What(model::SetPodGroupSchedulability{"ns", "g", "gu", "{}", "R", "m"});
  };
  const auto counts = [] {
    return What(model::SetKaiStatus{model::Kind::kQueue, "", "q", "qu", {}, {}});
  };
  static constexpr char kQueue[] = "/apis/scheduling.run.ai/v2/queues/q";
  static constexpr char kQueueStatus[] = "/apis/scheduling.run.ai/v2/queues/q/status";
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
      {"CountsOfAQueueWithoutStatus",
       counts,
       {{"PATCH", kQueueStatus, kOk},
        {"PATCH", kQueueStatus, refused, 1},
        {"GET", kQueue, named("q", "qu")}},
       absl::StatusCode::kOk,
       {"PATCH status", "GET q", "PATCH status"}},
      {"CountsOfAQueueMadeAgain",
       counts,
       {{"PATCH", kQueueStatus, refused}, {"GET", kQueue, named("q", "other")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH status", "GET q"}},
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

// Of pods that are grouped by their owners.
std::vector<Row> GroupingRows() {
  using What = decltype(model::Action::what);
  const auto group = [](const char* uid) {
    model::WritePodGroup action;
    action.group.Own().meta.ns = "ns";
    action.group.Own().meta.name = "g";
    action.group.Own().meta.uid = uid;
    return What(action);
  };
  const auto create = [group] { return group(""); };
  const auto update = [group] { return group("gu"); };
  const auto name = [] { return What(model::SetPodGroup{"ns", "p", "u1", "g", "workers"}); };
  static constexpr char kGroups[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups";
  static constexpr char kGroup[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g";
  return {
      {"Create", create, {{"POST", kGroups, kCreated}}, absl::StatusCode::kOk, {"POST podgroups"}},
      {"IsThere",
       create,
       {{"POST", kGroups, ErrorReply(409, "AlreadyExists", "x")}},
       absl::StatusCode::kAlreadyExists,
       {"POST podgroups"}},
      {"MayNotCreate",
       create,
       {{"POST", kGroups, ErrorReply(403, "Forbidden", "cannot create podgroups")}},
       absl::StatusCode::kPermissionDenied,
       {"POST podgroups"},
       "cannot create podgroups"},
      {"CreatedAndLost",
       create,
       {{"POST", kGroups, TimedOut()}},
       absl::StatusCode::kUnavailable,
       {"POST podgroups"}},
      {"Update", update, {{"PATCH", kGroup, kOk}}, absl::StatusCode::kOk, {"PATCH g"}},
      {"AnotherVersion",
       update,
       {{"PATCH", kGroup, ErrorReply(409, "Conflict", "modified")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH g"}},
      {"Name", name, {{"PATCH", kPodPath, kOk}}, absl::StatusCode::kOk, {"PATCH p"}},
      {"NameOfAnotherPod",
       name,
       {{"PATCH", kPodPath, ErrorReply(422, "Invalid", "uid")},
        {"GET", kPodPath, PodReply("u2", "")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH p", "GET p"},
       "another object has this name"},
      {"NameOfAPodThatIsGone",
       name,
       {{"PATCH", kPodPath, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"PATCH p"}},
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
       absl::StatusCode::kUnavailable,
       {"GET n1", "PATCH n1"}},
      {"ServerDown", add, {{"GET", kNodePath, Lost()}}, absl::StatusCode::kAborted, {"GET n1"}},
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
      {"ReservationOfUnknownOutcome",
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
       absl::StatusCode::kUnavailable,
       {"DELETE r1"}},
      {"ConfigMapWithoutTheRight",
       apply,
       {{"PATCH", kMap, ErrorReply(403, "Forbidden", "x")}},
       absl::StatusCode::kPermissionDenied,
       {}},
      {"ConfigMapWorks", apply, {{"PATCH", kMap, kOk}}, absl::StatusCode::kOk, {}},
  };
}

std::vector<Row> VolumeRows() {
  using What = decltype(model::Action::what);
  const auto bind = [] { return What(model::BindVolume{"pv", "u1", "7", "ns", "c", "u2"}); };
  const auto select = [] { return What(model::SelectVolumeNode{"ns", "c", "u2", "8", "n1"}); };
  static constexpr char kVolume[] = "/api/v1/persistentvolumes/pv";
  static constexpr char kClaim[] = "/api/v1/namespaces/ns/persistentvolumeclaims/c";
  return {
      {"BindWorks", bind, {{"PATCH", kVolume, kOk}}, absl::StatusCode::kOk, {"PATCH pv"}},
      {"BindOfAnotherVersion",
       bind,
       {{"PATCH", kVolume, ErrorReply(409, "Conflict", "modified")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH pv"},
       "bind volume pv to claim ns/c"},
      {"BindOfAVolumeThatIsGone",
       bind,
       {{"PATCH", kVolume, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"PATCH pv"}},
      {"BindWithoutTheRight",
       bind,
       {{"PATCH", kVolume, ErrorReply(403, "Forbidden", "x")}},
       absl::StatusCode::kPermissionDenied,
       {"PATCH pv"}},
      {"BindOfUnknownOutcome",
       bind,
       {{"PATCH", kVolume, Lost()}},
       absl::StatusCode::kUnavailable,
       {}},
      {"SelectWorks", select, {{"PATCH", kClaim, kOk}}, absl::StatusCode::kOk, {"PATCH c"}},
      {"SelectAtAnotherVersion",
       select,
       {{"PATCH", kClaim, ErrorReply(409, "Conflict", "modified")}},
       absl::StatusCode::kFailedPrecondition,
       {"PATCH c"},
       "select node n1 for volume claim ns/c"},
      {"SelectForAClaimThatIsGone",
       select,
       {{"PATCH", kClaim, ErrorReply(404, "NotFound", "x")}},
       absl::StatusCode::kNotFound,
       {"PATCH c"}},
  };
}

class ProtocolTest : public ExecutorTest, public ::testing::WithParamInterface<Row> {};
std::string RowName(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Bind, ProtocolTest, ::testing::ValuesIn(BindRows()), RowName);
INSTANTIATE_TEST_SUITE_P(Others, ProtocolTest, ::testing::ValuesIn(OtherRows()), RowName);
INSTANTIATE_TEST_SUITE_P(CustomStatus, ProtocolTest, ::testing::ValuesIn(CustomStatusRows()),
                         RowName);
INSTANTIATE_TEST_SUITE_P(GpuShares, ProtocolTest, ::testing::ValuesIn(ShareRows()), RowName);
INSTANTIATE_TEST_SUITE_P(Volumes, ProtocolTest, ::testing::ValuesIn(VolumeRows()), RowName);
INSTANTIATE_TEST_SUITE_P(Grouping, ProtocolTest, ::testing::ValuesIn(GroupingRows()), RowName);
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

}  // namespace
}  // namespace fairlead::kube
