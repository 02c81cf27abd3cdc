#include "kube/codec/field_problems.h"

#include <algorithm>

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
  if (texts_.size() >= kMaxKept) return;
  texts_.push_back(TruncateUtf8(absl::StrCat(path.ToString(), ": ", what), kMaxTextBytes));
}

std::string Problems::Text() const {
  std::vector<std::string> sorted = texts_;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.size() <= kMaxShown) return absl::StrJoin(sorted, "; ");
  const size_t more = sorted.size() - kMaxShown;
  sorted.resize(kMaxShown);
  return absl::StrCat(absl::StrJoin(sorted, "; "), "; and ", more, " more");
}

std::string Quoted(absl::string_view value) {
  if (value.size() <= kMaxValueBytes) return absl::StrCat("\"", ToValidUtf8(value), "\"");
  return absl::StrCat("\"", TruncateUtf8(value, kMaxValueBytes), "...\"");
}

}  // namespace fairlead::kube
