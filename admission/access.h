// Who may submit to which queue: the question to the API server's authorizer, a
// SubjectAccessReview of authorization.k8s.io/v1.
//
// Asked is whether the user of the request may `use` the Queue. The namespace of the pod is part of
// the question: a RoleBinding there permits it for that namespace alone. So the service account of
// a controller (Jobs, ReplicaSets), which makes the pods of all users, may use other queues in each
// namespace, and who may make such an object in a namespace is the business of its own roles.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "admission/cluster.h"
#include "admission/review.h"

namespace fairlead::admission {

// The queues that the request submits to and that the user needs permission for.
//   pods of ours   created; moved to another queue
//   PodGroups      created with a queue; moved to another one; and as other objects
//   other objects  of a namespace; created with the label kai.scheduler/queue, or given it: the
//                  pods that they own go to that queue (docs/grouping.md)
// A queue needs it if the policy says so for all, or if it or a queue above it is annotated
// fairlead.dev/restricted: "true".
std::vector<std::string> QueuesToAuthorize(const Request& request, const Cluster& cluster,
                                           const Policy& policy);
// False: the queue of a new PodGroup that follows its owners is not from a label
// kai.scheduler/queue, so no user was asked about it when the owners were written.
bool IsFromLabel(const Request& request, absl::string_view queue);

inline constexpr char kAccessReviewPath[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
// The question about the user; `attributes`: fields of resourceAttributes, empty ones are left out.
using AccessAttributes = std::vector<std::pair<absl::string_view, absl::string_view>>;
std::string EncodeAccessReview(const UserInfo& user, const AccessAttributes& attributes);
// Whether the user may use the queue.
std::string EncodeAccessReview(const UserInfo& user, absl::string_view ns, absl::string_view queue);
struct AccessAnswer {
  bool allowed = false;
  std::string reason;  // of the authorizer, for people
};
// InvalidArgument if it is none. An authorizer that met an error denies what it could not allow.
absl::StatusOr<AccessAnswer> ReadAccessReview(absl::string_view body);

// The answer to a request whose user may not use the queue.
Response Forbidden(const Request& request, absl::string_view queue, absl::string_view reason);
// The answer to a new PodGroup whose queue IsFromLabel() does not find.
Response NotFromLabel(const Request& request, absl::string_view queue);
// The answer to a request about which the authorizer has not said anything, as the policy has it.
Response NotAuthorized(const Request& request, absl::string_view queue, absl::string_view why,
                       const Policy& policy);

}  // namespace fairlead::admission
