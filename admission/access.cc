#include "admission/access.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "admission/names.h"
#include "admission/validate.h"
#include "base/json_writer.h"

namespace fairlead::admission {
namespace {

constexpr char kQueueGroup[] = "scheduling.run.ai";
constexpr int kForbidden = 403;

// Where a pod's or a group's object says that it goes; empty: where others say.
std::string QueueOf(const Request& request, const Json& object, const Policy& policy) {
  if (request.resource == "podgroups") return object.TextAt({"spec", "queue"});
  std::string named = NamedQueue(object);
  if (!named.empty() || !NamedGroup(object).empty()) return named;
  return policy.default_queue;
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

bool IsSubmission(const Request& request, const Policy& policy) {
  if (!request.sub_resource.empty() || !request.object.is_object()) return false;
  if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) {
    return false;
  }
  if (!request.object.TextAt({"metadata", "deletionTimestamp"}).empty()) return false;
  if (request.resource == "podgroups") return request.group == kQueueGroup;
  return request.resource == "pods" && request.group.empty() && IsOurs(request.object, policy);
}

std::string Who(const Request& request, absl::string_view queue, absl::string_view what) {
  return absl::StrCat("user \"", request.user.name, "\" ", what, " the verb \"use\" on queues.",
                      kQueueGroup, " \"", queue, "\" in namespace \"", request.ns, "\"");
}

}  // namespace

std::string QueueToAuthorize(const Request& request, const Cluster& cluster, const Policy& policy) {
  if (!IsSubmission(request, policy)) return "";
  std::string queue = QueueOf(request, request.object, policy);
  if (queue.empty()) return "";
  if (request.operation == Operation::kUpdate && request.old_object.is_object() &&
      QueueOf(request, request.old_object, policy) == queue) {
    return "";
  }
  return policy.queue_authorization || IsRestricted(queue, cluster) ? queue : "";
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
  Response response;
  response.allowed = false;
  response.code = kForbidden;
  response.reason = "Forbidden";
  response.message = Who(request, queue, "lacks");
  if (!reason.empty()) absl::StrAppend(&response.message, ": ", reason);
  return response;
}

Response NotAuthorized(const Request& request, absl::string_view queue, absl::string_view why,
                       const Policy& policy) {
  Response response;
  const std::string text =
      absl::StrCat("whether ", Who(request, queue, "has"), " could not be found out: ", why);
  if (!policy.authorization_fails_closed) {
    response.warnings.push_back(absl::StrCat("admitted unchecked; ", text));
    return response;
  }
  response.allowed = false;
  response.code = 500;
  response.reason = "InternalError";
  response.message = text;
  return response;
}

}  // namespace fairlead::admission
