// The meaning of the API server's answers that all writes share (write_protocol.h lists them). For
// protocols. Thread-safety: pure functions.
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

// The three possible decisions.
Decision Done(absl::Status status);
Decision Continue();
Decision Retry(absl::Status status);

HttpRequest ToRequest(EncodedWrite write);
HttpRequest GetRequest(std::string path);

bool IsSuccess(const WriteAnswer& answer);
bool HasCode(const WriteAnswer& answer, int code);
// True if there is no answer, or one after which the write may or may not have happened.
bool IsUnknown(const WriteAnswer& answer);
// "bind pod ns/name: 409 Conflict: ..."
std::string Describe(absl::string_view what, const WriteAnswer& answer);
// Applies the rules for "any"; callers have checked their own codes before.
Decision DecideGenerally(absl::string_view what, const WriteAnswer& answer);
// The same for the creation of an object by its name. A 409 with reason AlreadyExists is that. A
// new object has no version that could be in conflict: any other 409 is about what was read to
// admit it (a ResourceQuota that changed meanwhile), and nothing was made, so it is tried again.
Decision DecideCreation(absl::string_view what, const WriteAnswer& answer);

}  // namespace fairlead::kube
