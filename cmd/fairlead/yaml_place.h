// Line and column of a field in a YAML text, found again after its content was refused: readers
// work on JSON and know paths only. Apart from the rest because yaml-cpp is dear to compile.
// Thread-safety: pure function.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace fairlead::cmd {

struct TextPlace {
  int line = 1, column = 1;
};

// `path` as "hook.gpuLimits.H100.x" or "profiles[0].plugins"; keys may contain dots. The place of
// the field's key, or of the list item; of the deepest part that is there if the rest is missing.
std::optional<TextPlace> FindYamlPlace(absl::string_view yaml, size_t document,
                                       absl::string_view path);

}  // namespace fairlead::cmd
