// Asks the API server about a token: whose it is (TokenReview), and whether that user may list
// queues (SubjectAccessReview). Fairlead's own service account needs the ClusterRole
// system:auth-delegator for it.
//
// Thread-safety: from any thread but the transport's; it blocks, for twice kReviewTimeout at most.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

inline constexpr absl::Duration kReviewTimeout = absl::Seconds(5);

// As dashboard::TokenReview has it: OK, Unauthenticated, PermissionDenied; Unavailable if the API
// server does not answer, FailedPrecondition if it does not let Fairlead ask.
absl::Status ReviewToken(kube::HttpTransport& transport, const std::string& token);

}  // namespace fairlead::cmd
