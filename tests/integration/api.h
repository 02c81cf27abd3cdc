// The API server for the tests: JSON by path, through the project's own transport.
//
// Errors: the server's status code with its message; a missing answer is 0. Thread-safety: as
// kube::CurlTransport; History is filled by its thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "document/json.h"
#include "kube/codec/codec.h"
#include "kube/credentials/client_config.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::integration {

struct Answer {
  int status = 0;
  Json body;         // of an error: the server's Status
  std::string text;  // as it came
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

// The objects of one collection, and every later change of them.
class History {
 public:
  struct Event {
    std::string type;  // ADDED, MODIFIED, DELETED, ERROR
    Json object;
  };
  [[nodiscard]] std::vector<Event> events() const;
  // The number of different objects (by uid) so far, including those before the start.
  [[nodiscard]] size_t objects() const;
  [[nodiscard]] bool Any(const std::function<bool(const Json&)>& condition) const;

 private:
  friend class Api;
  class Observer;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  bool begun_ = false;
};

class Api {
 public:
  explicit Api(const kube::ClientConfig& config);

  Answer Call(std::string method, std::string path, std::string body = "",
              std::string content_type = kube::kJson);
  Answer Get(std::string path) { return Call("GET", std::move(path)); }
  // POST; the test fails if the server rejects it. Returns the object.
  Json Create(std::string collection, const std::string& body);
  // A merge patch; the test fails if the server rejects it.
  Json Merge(std::string path, const std::string& body);
  // Deletes at once, without a kubelet; OK if it is gone.
  void Delete(std::string path);
  std::vector<Json> List(const std::string& collection);
  // The sum over the series of a metric with labels that have all of these texts.
  double Metric(absl::string_view name, const std::vector<std::string>& labels);

  std::shared_ptr<History> Watch(const std::string& collection);

  kube::CurlTransport& transport() { return *transport_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

 private:
  RealClock clock_;
  std::unique_ptr<kube::CurlTransport> transport_;
};

}  // namespace fairlead::integration
