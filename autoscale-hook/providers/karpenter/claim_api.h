// The API server, as far as the provider karpenter uses it: NodeClaims (karpenter.sh/v1,
// cluster-scoped). cmd/fairlead implements it over HTTP.
//
// Every call is answered once, possibly before it returns; the adapter has time-outs. An answer may
// come after the provider's destruction. Status codes:
//   AlreadyExists       409 of a creation: a claim of that name exists
//   FailedPrecondition  409 of a deletion: the claim has another uid
//   NotFound            404; of a list: the cluster has no NodeClaims (no Karpenter)
//   PermissionDenied    403; Unauthenticated: 401
//   InvalidArgument     400 and 422, and a body that cannot be decoded
//   ResourceExhausted   429: nothing was done. The adapter does not repeat the call.
//   Aborted             410 of a list: its continuation has expired
//   Unavailable         anything of unknown outcome: time-outs, 5xx, broken connections
//
// Ownership: outlives the provider. Thread-safety: the owner's thread; answers come on it too.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autoscale-hook/providers/karpenter/claim.h"

namespace fairlead::hook {

class ClaimApi {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using TextDone = std::function<void(absl::StatusOr<std::string>)>;
  using PageDone = std::function<void(absl::StatusOr<ClaimPage>)>;
  virtual ~ClaimApi() = default;
  // POST /apis/karpenter.sh/v1/nodeclaims. `name` is that of the body, for logs and errors.
  virtual void Create(const std::string& name, std::string body, Done done) = 0;
  // DELETE .../nodeclaims/{name} with preconditions.uid. OK: its deletion has begun; it exists
  // until Karpenter removes its finalizer.
  virtual void Delete(const std::string& name, const std::string& uid, Done done) = 0;
  // GET .../nodeclaims?labelSelector=fairlead.dev/node-request&limit=500[&continue=...], decoded by
  // DecodeClaimPage. Without resourceVersion: a list shows every write that was answered before it
  // was asked for. `continuation`: ClaimPage::next of the page before; empty: the first page.
  virtual void List(const std::string& continuation, PageDone done) = 0;
  // The note of the last Warning among the events about a claim, which may be gone: GET
  // /api/v1/namespaces/default/events (events about cluster-scoped objects are there). Empty: there
  // is none.
  virtual void LastWarning(const std::string& name, const std::string& uid, TextDone done) = 0;
};

}  // namespace fairlead::hook
