// Objects of an API server, as far as the providers cluster-api, scale-subresource and
// provisioning-request use them.
// cmd/fairlead/app/object_api.h implements it over HTTP.
//
// Every call is answered once, possibly before it returns; the adapter has time-outs. An answer may
// come after the end of the caller. Status codes:
//   Aborted             409: the object has another resourceVersion or uid; nothing was done
//   AlreadyExists       409 to Create: there is an object of that name; nothing was done
//   NotFound            404
//   PermissionDenied    403; Unauthenticated: 401
//   InvalidArgument     400 and 422, and a body that cannot be decoded
//   ResourceExhausted   429: nothing was done. The adapter does not repeat the call.
//   Unavailable         anything of unknown outcome: time-outs, 5xx, broken connections
//
// Paths begin with "/" and are escaped. Ownership: outlives its callers. Thread-safety: the owner's
// thread; answers come on it too.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "document/json.h"

namespace fairlead::hook {

class ObjectApi {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using JsonDone = std::function<void(absl::StatusOr<Json>)>;
  virtual ~ObjectApi() = default;
  // GET of one object.
  virtual void Get(const std::string& path, JsonDone done) = 0;
  // GET of a collection without resourceVersion (it shows every write that was answered before),
  // page by page. The answer is an array of the items. An empty selector: all.
  virtual void List(const std::string& path, const std::string& label_selector, JsonDone done) = 0;
  // PATCH with a JSON merge patch; the answer is the object afterwards. A
  // metadata.resourceVersion in the body is a precondition.
  virtual void Patch(const std::string& path, std::string body, JsonDone done) = 0;
  // POST to a collection; the answer is the object.
  virtual void Create(const std::string& path, std::string body, JsonDone done) = 0;
  // DELETE with preconditions.uid, and preconditions.resourceVersion unless that is empty. OK: its
  // deletion has begun.
  virtual void Delete(const std::string& path, const std::string& uid,
                      const std::string& resource_version, Done done) = 0;
};

}  // namespace fairlead::hook
