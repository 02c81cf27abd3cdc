#include "journal/usage_names.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "journal/value_codec.h"

namespace fairlead::journal {

std::string RenamedUsage(absl::string_view text, const std::function<void(std::string&)>& rename) {
  constexpr absl::string_view kMagic = "fairlead-usage/1:";
  if (!absl::ConsumePrefix(&text, kMagic)) return "";
  std::string bytes;
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || !absl::Base64Unescape(text.substr(colon + 1), &bytes)) {
    return "";
  }
  Reader reader(bytes);
  std::string renamed;
  Writer writer(&renamed);
  writer.Signed(reader.Signed());  // the last sample
  for (int list = 0; list < 2; ++list) {
    const size_t names = reader.Count();
    writer.Unsigned(names);
    for (size_t i = 0; i < names && !reader.failed(); ++i) {
      std::string name(reader.Text());
      rename(name);
      writer.Text(name);
    }
  }
  if (reader.failed()) return "";
  absl::StrAppend(&renamed, reader.rest());
  return absl::StrCat(kMagic, StableHash().Add(renamed).Hex(), ":", absl::Base64Escape(renamed));
}

}  // namespace fairlead::journal
