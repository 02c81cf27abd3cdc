#include "kube/codec/field_problems.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"

namespace fairlead::kube {
namespace {

constexpr size_t kMaxShown = 3;
constexpr size_t kMaxKept = 64;  // bounds the cost of an object that is wrong throughout
constexpr size_t kMaxTextBytes = 240;
constexpr size_t kMaxValueBytes = 64;

}  // namespace

std::string FieldPath::ToString() const {
  std::string prefix = parent == nullptr ? std::string() : parent->ToString();
  switch (form) {
    case Form::kRoot:
      return std::string(name);
    case Form::kField:
      if (!prefix.empty()) prefix += '.';
      return absl::StrCat(prefix, name);
    case Form::kIndex:
      return absl::StrCat(prefix, "[", index, "]");
    case Form::kKey:
      return absl::StrCat(prefix, "[", TruncateUtf8(name, kMaxValueBytes), "]");
  }
  return prefix;
}

void Problems::Add(const FieldPath& path, absl::string_view what) {
  if (entries_.size() >= kMaxKept) return;
  std::string at = path.ToString();
  std::string text = TruncateUtf8(absl::StrCat(at, ": ", what), kMaxTextBytes);
  entries_.push_back({std::move(at), std::move(text)});
}

std::vector<Problems::Entry> Problems::Sorted() const {
  std::vector<Entry> sorted = entries_;
  const auto by_text = [](const Entry& a, const Entry& b) {
    return std::tie(a.text, a.path) < std::tie(b.text, b.path);
  };
  std::sort(sorted.begin(), sorted.end(), by_text);
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
  return sorted;
}

std::string Problems::Text() const {
  std::vector<Entry> sorted = Sorted();
  const size_t more = sorted.size() <= kMaxShown ? 0 : sorted.size() - kMaxShown;
  sorted.resize(sorted.size() - more);
  const std::string shown =
      absl::StrJoin(sorted, "; ", [](std::string* out, const Entry& entry) { *out += entry.text; });
  return more == 0 ? shown : absl::StrCat(shown, "; and ", more, " more");
}

std::string Quoted(absl::string_view value) {
  if (value.size() <= kMaxValueBytes) return absl::StrCat("\"", ToValidUtf8(value), "\"");
  return absl::StrCat("\"", TruncateUtf8(value, kMaxValueBytes), "...\"");
}

}  // namespace fairlead::kube
