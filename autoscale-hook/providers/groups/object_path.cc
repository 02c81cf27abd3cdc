#include "autoscale-hook/providers/groups/object_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::hook {

std::string EscapePathPart(absl::string_view part) {
  // Dots alone would be taken for folders.
  if (part == "." || part == "..") return part == "." ? "%2E" : "%2E%2E";
  std::string escaped;
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      escaped.push_back(c);
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", byte);
    }
  }
  return escaped;
}

std::string ApiRoot(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == absl::string_view::npos) return absl::StrCat("/api/", EscapePathPart(api_version));
  return absl::StrCat("/apis/", EscapePathPart(api_version.substr(0, slash)), "/",
                      EscapePathPart(api_version.substr(slash + 1)));
}

std::string CollectionPathOf(absl::string_view root, absl::string_view ns,
                             absl::string_view plural) {
  return absl::StrCat(root, ns.empty() ? "" : absl::StrCat("/namespaces/", EscapePathPart(ns)), "/",
                      EscapePathPart(plural));
}

}  // namespace fairlead::hook
