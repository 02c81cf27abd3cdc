// How kinds are called in paths of the API server, whatever they are: asked for once per
// apiVersion, and again for a kind that is not known, which may have been installed since.
//
// Ownership: `api` outlives it; no answer comes after the end of `api`'s answers. Thread-safety:
// the owner's thread. Complexity: O(log kinds), or one or two requests. Errors: NotFound "the API
// server does not serve ..."; else as hook::ObjectApi.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "document/json.h"

namespace fairlead::cmd {

struct ServedKind {
  std::string api_version, kind, plural;
  bool is_namespaced = true;
  // Of its objects; an empty namespace: all.
  [[nodiscard]] std::string Collection(absl::string_view ns) const;
  [[nodiscard]] std::string Path(absl::string_view ns, absl::string_view name) const;
};

class KindPaths {
 public:
  using Done = std::function<void(const absl::StatusOr<ServedKind>&)>;
  explicit KindPaths(hook::ObjectApi* api) : api_(api) {}

  void Find(const std::string& api_version, const std::string& kind, const Done& done);
  // In the version that the server prefers.
  void FindPreferred(const std::string& group, const std::string& kind, const Done& done);

 private:
  hook::ObjectApi* api_;
  std::map<std::string, std::map<std::string, ServedKind>> known_;  // by apiVersion and kind
};

}  // namespace fairlead::cmd
