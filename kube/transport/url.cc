#include "kube/transport/url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fairlead::kube {

std::string QueryEscape(absl::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

void AddQuery(std::string& path, absl::string_view key, absl::string_view value) {
  absl::StrAppend(&path, path.find('?') == std::string::npos ? "?" : "&", key, "=",
                  QueryEscape(value));
}

}  // namespace fairlead::kube
