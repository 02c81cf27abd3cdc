// What the answers of the API server mean that every write has in common (write_protocol.h lists
// them). For protocols. Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "kube/write/write_protocol.h"

namespace fairlead::kube {

using WriteAnswer = absl::StatusOr<HttpResponse>;

// The three ways to go on.
Decision Done(absl::Status status);
Decision Continue();
Decision Retry(absl::Status status);

HttpRequest ToRequest(EncodedWrite write);
HttpRequest GetRequest(std::string path);

bool IsSuccess(const WriteAnswer& answer);
bool HasCode(const WriteAnswer& answer, int code);
// No answer, or one after which the write may have happened as well as not.
bool IsUnknown(const WriteAnswer& answer);
// "bind pod ns/name: 409 Conflict: ..."
std::string Describe(absl::string_view what, const WriteAnswer& answer);
// What the rules for "any" say; callers have looked for the codes of their own before.
Decision DecideGenerally(absl::string_view what, const WriteAnswer& answer);

}  // namespace fairlead::kube
