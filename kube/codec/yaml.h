// Behind YamlToJson of codec.h: the documents with their places in the file.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"

namespace fairlead::kube {

struct YamlDocument {
  std::string json;  // "null" for an empty document
  int line = 1, column = 1;
};

absl::StatusOr<std::vector<YamlDocument>> YamlDocuments(absl::string_view yaml);

}  // namespace fairlead::kube
