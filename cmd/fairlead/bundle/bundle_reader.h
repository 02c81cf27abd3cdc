// Reads what a report of a fault needs from a cluster, with the rights that its user has. What
// cannot be read is told with the verb and the resource that are missing.
//
// Of objects only the fields on a list are taken (bundle_fields.h): no environment, no arguments,
// no volumes but claims. Secrets are never asked for. GET requests only.
//
// Thread-safety: one thread. Ownership: the transport outlives it. Complexity: O(objects).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

// One file to be.
struct BundlePart {
  enum class Form : uint8_t { kList, kObject, kConfiguration, kMetrics, kLog, kPlain };
  std::string path, what;
  Form form = Form::kPlain;
  Json json = {};
  std::string text = {};     // kMetrics, kLog and kPlain; that of kPlain has no names in it
  std::string problem = {};  // not empty: why it is not there, without names
  std::string detail = {};   // the same in the server's words
};

struct BundleScope {
  std::string ns = "fairlead";            // of the program
  std::string lease = "fairlead";         // in it
  std::set<std::string> scheduler_names;  // of the pods that are ours
};

class BundleReader {
 public:
  BundleReader(kube::HttpTransport* transport, BundleScope scope)
      : transport_(transport), scope_(std::move(scope)) {}

  // Called while it reads.
  void OnProgress(std::function<void(int64_t done, int64_t total)> call) {
    call_ = std::move(call);
  }
  // In the order of their importance.
  std::vector<BundlePart> ReadAll();

 private:
  absl::StatusOr<Json> Get(const std::string& path);
  // All pages of a list; its items, reduced to `shape`.
  absl::StatusOr<Json> List(const std::string& path, const Json& shape);
  void AddList(std::string file, std::string what, const std::string& path, absl::string_view right,
               const Json& shape);
  void AddObject(std::string file, std::string what, const std::string& path,
                 absl::string_view right, const Json& shape);
  void AddDefinitions();
  void AddConfiguration();
  void AddHealth();
  void AddPage(size_t daemon, const std::string& pod_path, absl::string_view page);
  void AddMissing(std::string what, std::string problem, std::string detail = "");

  kube::HttpTransport* transport_;
  const BundleScope scope_;
  std::function<void(int64_t done, int64_t total)> call_;
  std::vector<BundlePart> parts_;
};

// The fields of `json` that `shape` names: an object by its keys, each item of an array by the one
// item there, and anything else as it is. Exported for tests.
Json Reduced(const Json& json, const Json& shape);
// A configuration file without passwords and keys; empty if it is none.
absl::StatusOr<Json> PublicConfiguration(absl::string_view yaml);
// The same of one document as JSON, as a journal has it.
absl::StatusOr<std::string> PublicDocument(const std::string& document);

}  // namespace fairlead::cmd
