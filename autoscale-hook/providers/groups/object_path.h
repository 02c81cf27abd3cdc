// Paths of objects of an API server. Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::hook {

// Percent-encodes all but letters, digits and "-._~", so that no name leaves its place in a path.
std::string EscapePathPart(absl::string_view part);
// "/api/v1" or "/apis/GROUP/VERSION" of an apiVersion.
std::string ApiRoot(absl::string_view api_version);
// An empty namespace: all, or a kind without namespaces.
std::string CollectionPathOf(absl::string_view root, absl::string_view ns,
                             absl::string_view plural);

}  // namespace fairlead::hook
