// What the API server refuses, in upstream's words: clients tell cases apart by code and reason,
// people by the message. Source: k8s.io/apimachinery/pkg/api/errors.
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kube/transport/http.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

struct ApiError {
  int code = 0;  // HTTP status; 0: no error
  std::string reason, message;
  Json details = nullptr;
  [[nodiscard]] bool ok() const { return code == 0; }
};

ApiError NotFoundError(const ResourceRow& row, absl::string_view name);
ApiError AlreadyExistsError(const ResourceRow& row, absl::string_view name);
// `resource`: the plural, or with its sub-resource: "pods/binding".
ApiError ConflictError(absl::string_view resource, absl::string_view name, absl::string_view why);
ApiError VersionConflictError(const ResourceRow& row, absl::string_view name);
struct InvalidField {
  std::string field, reason, message;
};
ApiError InvalidError(const ResourceRow& row, absl::string_view name,
                      const std::vector<InvalidField>& fields);
ApiError ImmutableFieldError(const ResourceRow& row, absl::string_view name,
                             absl::string_view field, const Json& value);
ApiError ForbiddenError(const ResourceRow& row, absl::string_view name, absl::string_view why);
ApiError BadRequestError(absl::string_view why);
ApiError UnsupportedMediaTypeError(bool custom);
ApiError TooManyRequestsError(absl::string_view message, int retry_after_seconds);
ApiError ExpiredError(absl::string_view message);
ApiError NotImplementedError(absl::string_view what);
// A status code alone, in the words of the API server or of a proxy before it.
ApiError GenericError(int code, absl::string_view message);

// "pods", "queues.scheduling.run.ai".
std::string QualifiedResource(const ResourceRow& row);
// "scheduling.run.ai"; empty for v1.
absl::string_view GroupOf(const ResourceRow& row);
bool IsCustom(const ResourceRow& row);

// kind Status.
Json StatusOf(const ApiError& error);
Json SuccessStatus(int code);
// With Retry-After where the details say so.
kube::HttpResponse ErrorResponse(const ApiError& error, bool protobuf);
// For actors, which speak no HTTP.
absl::Status ToStatus(const ApiError& error);

}  // namespace fairlead::sim::world
