// How each action is carried out as HTTP requests, and what every answer means: one small state
// machine per action, without I/O, time or threads. The executor sends what Next() returns and does
// what OnAnswer() says.
//
// The answers (the status that goes to the core):
//
//   any       2xx OK. 400, 413, 415, 422: InvalidArgument. 403: PermissionDenied. Both permanent.
//             Other refusals (405, 410): Aborted, because they say nothing about the request.
//             401 (the transport has renewed its credentials already) and 429: nothing was done:
//             Aborted. No connection, time-out, 408, 5xx: the outcome is unknown: Unavailable. Of
//             an event both are retried first. After an unknown outcome none of these refusals is
//             certain: Unavailable (the executor sees to it).
//   bind      409: GET the pod. On our node already: OK; anything else: FailedPrecondition.
//             404: NotFound. Unknown outcome: Unavailable; the core may bind it again, because the
//             server's own precondition makes that safe.
//   evict     the eviction, then our reason and message into condition DisruptionTarget: the
//             server sets that condition itself with the eviction, in its own words, and a spared
//             victim must not have it. 404 NotFound, 409 FailedPrecondition (the uid); after an
//             unknown outcome both mean that the eviction worked: OK. 429 with a Status is a
//             PodDisruptionBudget's refusal: ResourceExhausted, with the causes that the server
//             tells; it says nothing about the server's load. So is a 2xx
//             with a Status of failure (a pod of several budgets). Once the eviction is done, the
//             result is OK, and the condition is written behind everything else: what waits for
//             the victim's room does not wait for words about it.
//   patches   404 NotFound, 409 FailedPrecondition. 422 has several meanings: another uid, a
//             status that cannot be patched because there is none, or an invalid patch. So GET
//             the object. Another uid: FailedPrecondition. Else a status of a custom kind is sent
//             in its other shape (codec.h, StatusShape), kStatusShapes times in all, then
//             InvalidArgument. If another client has written an entry of a pod group's status
//             meanwhile, it is patched again with that entry, kStatusConflicts times, then
//             Aborted.
//   create    409 with reason AlreadyExists: AlreadyExists, after an unknown outcome too, as the
//             name is the identity. Any other 409 (a ResourceQuota that changed meanwhile) made
//             nothing: Aborted. The same holds for a reservation pod.
//   delete    404 NotFound, 409 FailedPrecondition (the uid); after an unknown outcome 404: OK.
//   apply     of a config map, server-side and by force: may be repeated at will.
//   claim     the finalizer, if it is to be allocated and has none, then the status
//             (claim_protocol.h). To deallocate: 409 FailedPrecondition, the claim has changed.
//   extended  the claim for a pod's extended resources, and the pod's status that names it
//             (extended_claim_protocol.h).
//   volume    a claim for a volume, a node for a claim: one patch of the version that was seen. 409
//             FailedPrecondition: the object has changed. 422 InvalidArgument.
//   taint     GET the node; another uid: FailedPrecondition; nothing to change: OK without a write;
//             else PATCH with the resourceVersion. 409: from the GET again, kTaintConflicts times,
//             then Aborted. The taints of others stay as they are read.
//   event     event_series.h. A POST: 409 with reason AlreadyExists: OK, it is there. A PATCH of a
//             series: 404 and 409: posted anew. The rest as above.
//
// Thread-safety: none. LaunchNode, TerminateNode, AskExtenders, ReadObject, SetSuspended,
// ListSuspended and bindings that an extender makes have no protocol: they go to a provider.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "kube/write/write_window.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

inline constexpr int kTaintConflicts = 5;
// Fields, whole, and fields again: another client may have created the status in between.
inline constexpr int kStatusShapes = 3;
// How often the status of a pod group may differ from the expected one.
inline constexpr int kStatusConflicts = 5;

// The writer's identity, for events.
struct WriterIdentity {
  std::string reporting_controller = "fairlead";
  std::string host;
};

struct Decision {
  enum class Next {
    kDone,      // `status` is the answer
    kContinue,  // Next() at once: another request of the same attempt
    kFollowUp,  // `status` is the answer; Next() when nothing more urgent is to be written
    // Of an event, or of what follows a write: Next() after a pause, if attempts are left; else
    // `status` is the answer.
    kRetry,
  };
  Next next = Next::kDone;
  absl::Status status;
  absl::Duration retry_after = absl::ZeroDuration();  // the shortest pause
  WriteOutcome outcome = WriteOutcome::kOk;           // for the window
  std::string resource_version = {};                  // as model::ActionResult has it
};

class WriteProtocol {
 public:
  virtual ~WriteProtocol() = default;
  virtual HttpRequest Next(absl::Time now) = 0;
  virtual Decision OnAnswer(const absl::StatusOr<HttpResponse>& answer) = 0;
  // True if a write was sent and its outcome is unknown.
  [[nodiscard]] bool outcome_unknown() const { return unknown_; }
  // True if the write itself is done, and only what follows it is left.
  [[nodiscard]] bool done() const { return done_; }

 protected:
  bool unknown_ = false;
  bool done_ = false;
};

// Null for what goes to a provider, and for EmitEvent (MakeEventProtocol).
std::unique_ptr<WriteProtocol> MakeWriteProtocol(const model::Action& action);

}  // namespace fairlead::kube
