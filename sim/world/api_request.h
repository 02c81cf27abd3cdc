// What a request asks for, by its path, query and Accept. Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/transport/http.h"
#include "sim/world/api_error.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

struct ApiRequest {
  const ResourceRow* row = nullptr;
  std::string ns;           // empty: all, or cluster-wide
  std::string name;         // empty: the collection
  std::string subresource;  // "status", "binding"
  std::map<std::string, std::string> query;
  bool protobuf = false;  // the answer's encoding

  // Empty if it is not there.
  [[nodiscard]] std::string Query(const std::string& key) const;
  [[nodiscard]] bool QueryIsTrue(const std::string& key) const;
};

// "batch/v1" of GET /apis/batch/v1, by which clients learn how its kinds are called in paths.
// Nothing: the request is another one.
std::optional<std::string> DiscoveredGroup(const kube::HttpRequest& request);
// The group of which a GET asks for the versions.
std::optional<std::string> AskedGroup(const kube::HttpRequest& request);

// Nothing if the path names no type of ours.
std::optional<ApiRequest> ParseRequest(const kube::HttpRequest& request);

// The body as JSON: a protobuf Binding, or a protobuf object of the type, is decoded. Empty: an
// empty object.
ApiError ReadBody(const kube::HttpRequest& request, const ApiRequest& target, Json& out);

}  // namespace fairlead::sim::world
