#include "sim/world/api_error.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/world/api_json.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {
namespace {

std::string Str(absl::string_view text) { return std::string(text); }

ApiError Make(int code, absl::string_view reason, std::string message) {
  ApiError error;
  error.code = code;
  error.reason = Str(reason);
  error.message = std::move(message);
  return error;
}

Json Details(absl::string_view group, absl::string_view kind, absl::string_view name) {
  Json details = Json::object();
  if (!group.empty()) details["group"] = Str(group);
  if (!kind.empty()) details["kind"] = Str(kind);
  if (!name.empty()) details["name"] = Str(name);
  return details;
}

ApiError MakeFor(int code, absl::string_view reason, std::string message, const ResourceRow& row,
                 absl::string_view name) {
  ApiError error = Make(code, reason, std::move(message));
  error.details = Details(GroupOf(row), row.plural, name);
  return error;
}

}  // namespace

absl::string_view GroupOf(const ResourceRow& row) {
  const size_t slash = row.group_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view()
                                          : row.group_version.substr(0, slash);
}

bool IsCustom(const ResourceRow& row) {
  const absl::string_view group = GroupOf(row);
  return group == "scheduling.run.ai" || group == "kai.scheduler" || group == "fairlead.dev";
}

std::string QualifiedResource(const ResourceRow& row) {
  const absl::string_view group = GroupOf(row);
  return group.empty() ? Str(row.plural) : absl::StrCat(row.plural, ".", group);
}

ApiError NotFoundError(const ResourceRow& row, absl::string_view name) {
  return MakeFor(404, "NotFound", absl::StrCat(QualifiedResource(row), " \"", name, "\" not found"),
                 row, name);
}

ApiError AlreadyExistsError(const ResourceRow& row, absl::string_view name) {
  return MakeFor(409, "AlreadyExists",
                 absl::StrCat(QualifiedResource(row), " \"", name, "\" already exists"), row, name);
}

ApiError ConflictError(absl::string_view resource, absl::string_view name, absl::string_view why) {
  ApiError error =
      Make(409, "Conflict",
           absl::StrCat("Operation cannot be fulfilled on ", resource, " \"", name, "\": ", why));
  error.details = Details("", resource, name);
  return error;
}

ApiError VersionConflictError(const ResourceRow& row, absl::string_view name) {
  return ConflictError(QualifiedResource(row), name,
                       "the object has been modified; please apply your changes to the latest "
                       "version and try again");
}

ApiError InvalidError(const ResourceRow& row, absl::string_view name,
                      const std::vector<InvalidField>& fields) {
  std::vector<std::string> texts;
  Json causes = Json::array();
  for (const InvalidField& field : fields) {
    texts.push_back(absl::StrCat(field.field, ": ", field.message));
    causes.push_back(
        {{"field", field.field}, {"message", field.message}, {"reason", field.reason}});
  }
  std::string all = absl::StrJoin(texts, ", ");
  if (texts.size() > 1) all = absl::StrCat("[", all, "]");
  const absl::string_view group = GroupOf(row);
  ApiError error = Make(
      422, "Invalid",
      absl::StrCat(row.kind, group.empty() ? "" : ".", group, " \"", name, "\" is invalid: ", all));
  error.details = Details(group, row.kind, name);
  error.details["causes"] = std::move(causes);
  return error;
}

ApiError ImmutableFieldError(const ResourceRow& row, absl::string_view name,
                             absl::string_view field, const Json& value) {
  return InvalidError(row, name,
                      {{Str(field), "FieldValueInvalid",
                        absl::StrCat("Invalid value: ", Dump(value), ": field is immutable")}});
}

ApiError ForbiddenError(const ResourceRow& row, absl::string_view name, absl::string_view why) {
  return MakeFor(403, "Forbidden",
                 absl::StrCat(QualifiedResource(row), " \"", name, "\" is forbidden: ", why), row,
                 name);
}

ApiError BadRequestError(absl::string_view why) { return Make(400, "BadRequest", Str(why)); }

ApiError UnsupportedMediaTypeError(bool custom) {
  return Make(415, "UnsupportedMediaType",
              absl::StrCat("the body of the request was in an unknown format - accepted media "
                           "types include: application/json-patch+json, "
                           "application/merge-patch+json, ",
                           custom ? "" : "application/strategic-merge-patch+json, ",
                           "application/apply-patch+yaml, application/apply-patch+cbor"));
}

ApiError TooManyRequestsError(absl::string_view message, int retry_after_seconds) {
  ApiError error = Make(429, "TooManyRequests", Str(message));
  error.details = Json::object();
  if (retry_after_seconds > 0) error.details["retryAfterSeconds"] = retry_after_seconds;
  return error;
}

ApiError ExpiredError(absl::string_view message) { return Make(410, "Expired", Str(message)); }

ApiError NotImplementedError(absl::string_view what) {
  return Make(501, "NotImplemented",
              absl::StrCat("the simulated API server does not implement ", what));
}

ApiError GenericError(int code, absl::string_view message) {
  switch (code) {
    case 400:
      return Make(code, "BadRequest", "the server rejected our request for an unknown reason");
    case 401:
      return Make(code, "Unauthorized", "Unauthorized");
    case 403:
      return Make(code, "Forbidden", Str(message));
    case 404:
      return Make(code, "NotFound", "the server could not find the requested resource");
    case 409:
      return Make(code, "Conflict", "the server reported a conflict");
    case 410:
      return ExpiredError("The resourceVersion for the provided watch is too old.");
    case 422:
      return Make(code, "Invalid",
                  "the server rejected our request due to an error in our request");
    case 429:
      return TooManyRequestsError(
          "the server has received too many requests and has asked us to try again later", 1);
    case 500:
      return Make(code, "InternalError", "Internal error occurred: etcdserver: leader changed");
    case 503:
      return Make(code, "ServiceUnavailable",
                  "the server is currently unable to handle the request");
    case 504:
      return Make(code, "Timeout", "Timeout: request did not complete within the allotted timeout");
    default:
      return Make(code, "Unknown", Str(message));
  }
}

Json StatusOf(const ApiError& error) {
  Json status = {{"kind", "Status"},    {"apiVersion", "v1"},       {"metadata", Json::object()},
                 {"status", "Failure"}, {"message", error.message}, {"reason", error.reason},
                 {"code", error.code}};
  if (error.details.is_object() && !error.details.empty()) status["details"] = error.details;
  return status;
}

Json SuccessStatus(int code) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", Json::object()},
          {"status", "Success"},
          {"code", code}};
}

kube::HttpResponse ErrorResponse(const ApiError& error, bool protobuf) {
  kube::HttpResponse response;
  response.status = error.code;
  const Json status = StatusOf(error);
  if (protobuf) {
    response.content_type = kube::kProtobuf;
    response.body = Enveloped("v1", "Status", EncodeMessage(StatusSchema(), status));
  } else {
    response.content_type = kube::kJson;
    response.body = Dump(status);
  }
  response.retry_after = absl::Seconds(IntAt(status, {"details", "retryAfterSeconds"}));
  return response;
}

absl::Status ToStatus(const ApiError& error) {
  switch (error.code) {
    case 0:
      return absl::OkStatus();
    case 404:
      return absl::NotFoundError(error.message);
    case 409:
      return error.reason == "AlreadyExists" ? absl::AlreadyExistsError(error.message)
                                             : absl::AbortedError(error.message);
    case 403:
      return absl::PermissionDeniedError(error.message);
    case 429:
      return absl::ResourceExhaustedError(error.message);
    default:
      return absl::InvalidArgumentError(error.message);
  }
}

}  // namespace fairlead::sim::world
