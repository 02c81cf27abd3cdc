// The files of the page, compiled in (cmake/EmbedFiles.cmake makes assets.cc of dashboard/assets).
// Thread-safety: constants.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace fairlead::dashboard {

struct Asset {
  absl::string_view name;  // "app.js"
  absl::string_view content;
  absl::string_view sha256;  // of the content, in hexadecimal
};

extern const Asset kAssets[];
extern const size_t kAssetCount;

}  // namespace fairlead::dashboard
