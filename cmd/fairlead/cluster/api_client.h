// The API server as a user of kubectl sees it: any kind of object, one call after the other. For
// the command line; the scheduler itself uses kube::ClusterSource and kube::Executor.
//
// Kinds are found by discovery, one request per group and version. Errors name method and object;
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

// The same for ports that tell apart what a 409 and a 410 mean. No connection is Unavailable.
absl::Status StatusOfCall(const absl::StatusOr<kube::HttpResponse>& answer,
                          absl::StatusCode conflict, absl::StatusCode expired);

// What identifies an object.
struct ObjectId {
  std::string api_version, kind, ns, name;
  [[nodiscard]] std::string Text() const;  // "Queue research", "Pod default/web"
};
// The id of a manifest. InvalidArgument if it lacks a part (the namespace may be missing).
absl::StatusOr<ObjectId> IdOf(const Json& manifest);

class ApiClient {
 public:
  explicit ApiClient(kube::HttpTransport* transport) : transport_(transport) {}

  absl::StatusOr<Json> GetPath(const std::string& path);
  absl::StatusOr<Json> Get(const ObjectId& id);
  // All objects of a collection, page by page; the path may have a query.
  absl::StatusOr<std::vector<Json>> List(const std::string& path);
  // Server-side apply with force. Returns the object.
  absl::StatusOr<Json> Apply(const Json& manifest, const std::string& manager = "fairlead-day");
  // A merge patch.
  absl::StatusOr<Json> Patch(const ObjectId& id, const Json& patch);
  // A JSON patch (RFC 6902).
  absl::StatusOr<Json> PatchJson(const ObjectId& id, const Json& operations);
  // Deletes in the background; OK if it is gone already. `grace_seconds` < 0: the object's own.
  absl::Status Delete(const ObjectId& id, int64_t grace_seconds = -1);

  // True if the server has the kind.
  absl::StatusOr<bool> Knows(const std::string& api_version, const std::string& kind);
  // Drops the results of discovery: kinds were added or removed.
  void ForgetKinds() { kinds_.clear(); }

 private:
  struct Resource {
    std::string plural;
    bool namespaced = false;
  };
  absl::StatusOr<Resource> Find(const std::string& api_version, const std::string& kind);
  absl::StatusOr<std::string> PathOf(const ObjectId& id);
  absl::StatusOr<Json> Patch(const ObjectId& id, const Json& patch, const char* content_type);
  absl::StatusOr<Json> Send(kube::HttpRequest request, const std::string& what);

  kube::HttpTransport* transport_;
  std::map<std::string, std::map<std::string, Resource>> kinds_;  // by apiVersion, then kind
};

}  // namespace fairlead::cmd
