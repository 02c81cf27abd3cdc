#include "admission/access.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "admission/names.h"
#include "admission/validate.h"
#include "base/json_writer.h"
#include "scheduler/model/api_names.h"

namespace fairlead::admission {
namespace {

constexpr char kQueueGroup[] = "scheduling.run.ai";
constexpr int kForbidden = 403;
constexpr char kForbiddenReason[] = "Forbidden";

std::string QueueLabel(const Json& object) {
  return object.TextAt({"metadata", "labels", model::kQueueLabel});
}

// Where the object says that its pods go; none: where others say.
std::set<std::string> QueuesOf(const Request& request, const Json& object, const Policy& policy) {
  std::set<std::string> queues;
  if (!IsOf(request, model::Kind::kPod)) {
    queues.insert(QueueLabel(object));
    if (IsOf(request, model::Kind::kPodGroup)) queues.insert(object.TextAt({"spec", "queue"}));
  } else if (IsOurs(object, policy)) {
    const std::string named = NamedQueue(object);
    const bool by_default = named.empty() && NamedGroup(object).empty();
    queues.insert(by_default ? policy.default_queue : named);
  }
  queues.erase("");
  return queues;
}

// A queue that is not there is not restricted. Ends on cycles.
bool IsRestricted(const std::string& queue, const Cluster& cluster) {
  std::string at = queue;
  for (size_t steps = 0; steps <= cluster.queues.size(); ++steps) {
    const auto found = cluster.queues.find(at);
    if (found == cluster.queues.end()) return false;
    if (found->second->meta.annotations.Get(kRestrictedAnnotation) == "true") return true;
    at = found->second->parent;
  }
  return false;
}

std::string Who(const Request& request, absl::string_view queue, absl::string_view what) {
  return absl::StrCat("user \"", request.user.name, "\" ", what, " the verb \"use\" on queues.",
                      kQueueGroup, " \"", queue, "\" in namespace \"", request.ns, "\"");
}

}  // namespace

std::vector<std::string> QueuesToAuthorize(const Request& request, const Cluster& cluster,
                                           const Policy& policy) {
  // Objects of no namespace are written by administrators.
  if (request.ns.empty() || !IsWrite(request)) return {};
  std::set<std::string> before;
  if (request.operation == Operation::kUpdate && request.old_object.is_object()) {
    before = QueuesOf(request, request.old_object, policy);
  }
  std::vector<std::string> queues;
  for (const std::string& queue : QueuesOf(request, request.object, policy)) {
    if (before.contains(queue)) continue;
    if (policy.queue_authorization || IsRestricted(queue, cluster)) queues.push_back(queue);
  }
  return queues;
}

bool IsFromLabel(const Request& request, absl::string_view queue) {
  const Json& group = request.object;
  const bool follows =
      IsOf(request, model::Kind::kPodGroup) && request.operation == Operation::kCreate &&
      group.TextAt({"metadata", "annotations", model::kFollowsOwnerAnnotation}) == "true";
  return !follows || QueueLabel(group) == queue;
}

std::string EncodeAccessReview(const UserInfo& user, const AccessAttributes& attributes) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "authorization.k8s.io/v1");
  json.Field("kind", "SubjectAccessReview").Key("spec").BeginObject();
  json.Field("user", user.name).FieldUnlessEmpty("uid", user.uid).Key("groups").BeginArray();
  for (const std::string& group : user.groups) json.String(group);
  json.EndArray().Key("extra").BeginObject();
  for (const auto& [key, values] : user.extra) {
    json.Key(key).BeginArray();
    for (const std::string& value : values) json.String(value);
    json.EndArray();
  }
  json.EndObject().Key("resourceAttributes").BeginObject();
  for (const auto& [field, value] : attributes) json.FieldUnlessEmpty(field, value);
  return json.EndObject().EndObject().EndObject().Take();
}

std::string EncodeAccessReview(const UserInfo& user, absl::string_view ns,
                               absl::string_view queue) {
  return EncodeAccessReview(user, {{"namespace", ns},
                                   {"verb", "use"},
                                   {"group", kQueueGroup},
                                   {"resource", "queues"},
                                   {"name", queue}});
}

absl::StatusOr<AccessAnswer> ReadAccessReview(absl::string_view body) {
  absl::StatusOr<Json> review = Json::Parse(body);
  if (!review.ok()) return review.status();
  const Json* const allowed = review->At({"status", "allowed"});
  if (allowed == nullptr || allowed->type() != Json::Type::kBool) {
    return absl::InvalidArgumentError("SubjectAccessReview: status.allowed: must be a boolean");
  }
  AccessAnswer answer = {allowed->text() == "true", review->TextAt({"status", "reason"})};
  // Part of the roles could not be read; what could be read does not allow it.
  if (answer.reason.empty()) answer.reason = review->TextAt({"status", "evaluationError"});
  return answer;
}

Response Forbidden(const Request& request, absl::string_view queue, absl::string_view reason) {
  std::string message = Who(request, queue, "lacks");
  if (!reason.empty()) absl::StrAppend(&message, ": ", reason);
  return Refuse(kForbidden, kForbiddenReason, std::move(message));
}

Response NotFromLabel(const Request& request, absl::string_view queue) {
  return Refuse(kForbidden, kForbiddenReason,
                absl::StrCat("PodGroup ", request.object.TextAt({"metadata", "name"}),
                             ": spec.queue: the use of queue \"", queue,
                             "\" is restricted, so the owners of its pods must name it by label ",
                             model::kQueueLabel));
}

Response NotAuthorized(const Request& request, absl::string_view queue, absl::string_view why,
                       const Policy& policy) {
  std::string text =
      absl::StrCat("whether ", Who(request, queue, "has"), " could not be found out: ", why);
  if (policy.authorization_fails_closed) return Refuse(500, "InternalError", std::move(text));
  Response response;
  response.warnings.push_back(absl::StrCat("admitted unchecked; ", text));
  return response;
}

}  // namespace fairlead::admission
