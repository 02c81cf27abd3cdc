// AdmissionReview of admission.k8s.io/v1, as the API server sends it to a webhook and takes its
// answer (kubernetes.io/docs/reference/config-api/apiserver-admission.v1).
//
// Errors: InvalidArgument if the text is no such review; then there is no uid to answer with.
// Thread-safety: pure functions. Complexity: linear.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"

namespace fairlead::admission {

// authentication.k8s.io/v1 UserInfo.
struct UserInfo {
  std::string name, uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;
};

enum class Operation : uint8_t { kCreate, kUpdate, kDelete, kOther };

// Of `userInfo`, and of `status.user` of a TokenReview.
UserInfo ReadUser(const Json& user);

struct Request {
  std::string uid;
  // Of the object as it is sent, which the webhook's rules name.
  std::string group, version, resource, kind;
  std::string sub_resource;  // "status"; empty: the object itself
  std::string ns, name;      // no name if the server generates it
  Operation operation = Operation::kOther;
  UserInfo user;
  Json object, old_object;  // null: there is none
};

absl::StatusOr<Request> ReadReview(absl::string_view body);

// An object is created or changed: not a sub-resource, and not an object that is being deleted.
bool IsWrite(const Request& request);

struct Response {
  bool allowed = true;
  int code = 0;                       // HTTP status of a refusal
  std::string reason;                 // "Invalid", "Forbidden"
  std::string message;                // of a refusal
  std::vector<std::string> warnings;  // that the user's client shows; also if it is allowed
  Json patch;                         // JSON patch (RFC 6902); null: nothing is changed
};

Response Refuse(int code, absl::string_view reason, std::string message);

// Warnings are cut to what the API server passes on: 256 bytes each, 16 of them.
std::string WriteReview(absl::string_view uid, const Response& response);

}  // namespace fairlead::admission
