#include "admission/problem.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::admission {
namespace {

// The next part of a path, taken off its front: "spec" of "spec.levels[0]", "0" of "[0].name".
struct PathPart {
  absl::string_view name;
  bool bracketed = false;
};

PathPart TakePart(absl::string_view& path) {
  if (path.front() == '[') {
    const size_t end = std::min(path.find(']'), path.size());
    const PathPart part = {path.substr(1, end - 1), true};
    path.remove_prefix(std::min(end + 1, path.size()));
    return part;
  }
  if (path.front() == '.') path.remove_prefix(1);
  const size_t end = std::min(path.find_first_of(".["), path.size());
  const PathPart part = {path.substr(0, end), false};
  path.remove_prefix(end);
  return part;
}

std::string TextAtPath(const Json& object, absl::string_view path) {
  const Json* const value = ValueAt(object, path);
  return value == nullptr ? "" : value->Compact();
}

}  // namespace

void Findings::Add(absl::string_view path, absl::string_view what) {
  problems.push_back({std::string(path), absl::StrCat(path, ": ", what)});
}

void Findings::Warn(absl::string_view path, absl::string_view what) {
  warnings.push_back(absl::StrCat(path, ": ", what));
}

const Json* ValueAt(const Json& object, absl::string_view path) {
  const Json* at = &object;
  while (at != nullptr && !path.empty()) {
    const PathPart part = TakePart(path);
    size_t index = 0;
    if (part.bracketed && at->is_array()) {
      const bool there = absl::SimpleAtoi(part.name, &index) && index < at->items().size();
      at = there ? &at->items()[index] : nullptr;
    } else {
      at = at->Find(part.name);
    }
  }
  return at;
}

std::vector<Problem> NewProblems(const std::vector<Problem>& now, const Json& object,
                                 const std::vector<Problem>& before, const Json& old_object) {
  std::vector<Problem> fresh;
  for (const Problem& problem : now) {
    const bool old = std::any_of(before.begin(), before.end(), [&](const Problem& former) {
      return former.path == problem.path && former.text == problem.text;
    });
    const bool same =
        old && TextAtPath(object, problem.path) == TextAtPath(old_object, problem.path);
    if (!same) fresh.push_back(problem);
  }
  return fresh;
}

}  // namespace fairlead::admission
