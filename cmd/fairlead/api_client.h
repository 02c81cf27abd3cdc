// The API server as a person with kubectl uses it: any kind of object, one call after the other.
// For the command line; the scheduler itself goes through kube::ClusterSource and kube::Executor.
//
// Kinds are found through discovery, asked once a group and version. Errors name method and object;
// their codes: NotFound 404, AlreadyExists / Aborted 409, PermissionDenied 403, Unauthenticated
// 401, InvalidArgument 400 and 422, ResourceExhausted 429, Unavailable the rest and no connection.
//
// Ownership: the transport outlives it. Thread-safety: one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

// OK for 2xx; otherwise the server's own message.
absl::Status StatusOfAnswer(const absl::StatusOr<kube::HttpResponse>& answer);

// What identifies an object.
struct ObjectId {
  std::string api_version, kind, ns, name;
  [[nodiscard]] std::string Text() const;  // "Queue research", "Pod default/web"
};
// Of a manifest. InvalidArgument if it lacks one of them (the namespace may be missing).
absl::StatusOr<ObjectId> IdOf(const Json& manifest);

class ApiClient {
 public:
  explicit ApiClient(kube::HttpTransport* transport) : transport_(transport) {}

  absl::StatusOr<Json> GetPath(const std::string& path);
  absl::StatusOr<Json> Get(const ObjectId& id);
  // Server-side apply with force, as field manager "fairlead-day". Answers the object.
  absl::StatusOr<Json> Apply(const Json& manifest);
  // A merge patch.
  absl::StatusOr<Json> Patch(const ObjectId& id, const Json& patch);
  // In the background; OK if it is gone already. `grace_seconds` < 0: the object's own.
  absl::Status Delete(const ObjectId& id, int64_t grace_seconds = -1);

  // Whether the server knows the kind at all.
  absl::StatusOr<bool> Knows(const std::string& api_version, const std::string& kind);
  // Forgets what discovery said: kinds were added or taken away.
  void ForgetKinds() { kinds_.clear(); }

 private:
  struct Resource {
    std::string plural;
    bool namespaced = false;
  };
  absl::StatusOr<Resource> Find(const std::string& api_version, const std::string& kind);
  absl::StatusOr<std::string> PathOf(const ObjectId& id);
  absl::StatusOr<Json> Send(kube::HttpRequest request, const std::string& what);

  kube::HttpTransport* transport_;
  std::map<std::string, std::map<std::string, Resource>> kinds_;  // by apiVersion, then kind
};

}  // namespace fairlead::cmd
