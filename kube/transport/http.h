// HTTP to the API server, as a port. Reflectors, the executor and leases use this interface. The
// libcurl transport (curl_transport.h) and the scripted transport of the tests (fake_transport.h)
// implement it.
//
// Thread-safety: every method may be called from any thread. Callbacks run on the transport's own
// I/O thread, one at a time: they copy, decode and hand over, and never block.
//
// Errors: a Status means that no HTTP answer came (Unavailable: connection, DeadlineExceeded:
// time-out, Unauthenticated: no credentials available, Cancelled). Any answer, 4xx and 5xx
// included, is an HttpResponse.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::kube {

// Each class has its own connections: the API server grants 100 streams per connection, and watches
// must not wait behind a burst of bindings.
enum class TrafficClass { kRead, kWatch, kWrite };

inline constexpr char kProtobuf[] = "application/vnd.kubernetes.protobuf";
inline constexpr char kJson[] = "application/json";
inline constexpr char kMergePatch[] = "application/merge-patch+json";
inline constexpr char kJsonPatch[] = "application/json-patch+json";
inline constexpr char kStrategicMergePatch[] = "application/strategic-merge-patch+json";
inline constexpr char kApplyPatch[] = "application/apply-patch+yaml";

struct HttpRequest {
  std::string method = "GET";
  std::string path;          // "/api/v1/pods?limit=500", already escaped
  std::string content_type;  // of the body
  std::string accept = kJson;
  std::string body;
  TrafficClass traffic = TrafficClass::kRead;
  absl::Duration timeout = absl::Seconds(30);  // of the whole call; infinite for watches
};

struct HttpResponse {
  int status = 0;
  std::string content_type;
  // Retry-After, if the server sent it; zero otherwise.
  absl::Duration retry_after = absl::ZeroDuration();
  std::string body;
};

class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  // Once, before any data. For a status other than 200 the data is the error body.
  virtual void OnHeaders(int status, absl::string_view content_type) = 0;
  virtual void OnData(absl::string_view bytes) = 0;
  // Once, last: OK for a clean end of stream.
  virtual void OnDone(const absl::Status& status, absl::Duration retry_after) = 0;
};

class HttpTransport {
 public:
  using Id = uint64_t;
  using Done = std::function<void(absl::StatusOr<HttpResponse>)>;
  virtual ~HttpTransport() = default;

  // `done` is called exactly once, never from within Send.
  virtual Id Send(HttpRequest request, Done done) = 0;
  // The observer is kept alive until after its OnDone.
  virtual Id Stream(HttpRequest request, std::shared_ptr<StreamObserver> observer) = 0;
  // The callback still comes, with Cancelled (or with the answer, if that was on its way). Unknown
  // ids are ignored.
  virtual void Cancel(Id id) = 0;

  // Sends and waits; for start-up and the command line, never from a callback.
  absl::StatusOr<HttpResponse> Call(HttpRequest request);

 protected:
  // Lets Call wait on a transport without its own thread: runs due callbacks, advances its time if
  // none is due, and returns true. False: a thread exists; wait for it.
  virtual bool RunWhileWaiting() { return false; }
};

// A delay for the kube module (backoff, lease renewal), as a port so that tests need no real time.
// The callback runs on the transport's I/O thread.
class Timers {
 public:
  using Id = uint64_t;
  virtual ~Timers() = default;
  virtual Id After(absl::Duration delay, std::function<void()> callback) = 0;
  virtual void CancelTimer(Id id) = 0;
};

}  // namespace fairlead::kube
