// A rule that an object breaks, and where. Thread-safety: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "document/json.h"

namespace fairlead::admission {

struct Problem {
  std::string path;  // as kube::FieldPath spells it
  std::string text;  // "path: what"
};

// What an object is found to be.
struct Findings {
  std::vector<Problem> problems;      // it is refused
  std::vector<std::string> warnings;  // it is not what its author may think

  void Add(absl::string_view path, absl::string_view what);
  void Warn(absl::string_view path, absl::string_view what);
};

// The value at a path as kube::FieldPath spells it; null if there is none.
const Json* ValueAt(const Json& object, absl::string_view path);

// Those of `now` that are not of the old object already, with the same text and the same value in
// the object: nobody is to be kept from changing other fields.
std::vector<Problem> NewProblems(const std::vector<Problem>& now, const Json& object,
                                 const std::vector<Problem>& before, const Json& old_object);

}  // namespace fairlead::admission
