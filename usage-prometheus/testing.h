// Shared by the tests of this module: parses queries and builds answers. Header only; never part of
// the product.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace fairlead::prometheus::testing {

inline std::string Unescape(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      int byte = 0;
      for (const char c : text.substr(i + 1, 2))
        byte = byte * 16 + (c <= '9' ? c - '0' : c - 'A' + 10);
      out.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// The value of a query parameter; empty if there is none.
inline std::string ParamOf(absl::string_view path, absl::string_view name) {
  const size_t begin = path.find('?');
  if (begin == absl::string_view::npos) return "";
  for (const absl::string_view pair : absl::StrSplit(path.substr(begin + 1), '&')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (parts.first == name) return Unescape(parts.second);
  }
  return "";
}

// As Prometheus writes it: label queue_name and value.
inline std::string Vector(const std::vector<std::pair<std::string, std::string>>& samples) {
  std::string result;
  for (const auto& [queue, value] : samples) {
    absl::StrAppend(&result, result.empty() ? "" : ",", R"({"metric":{)",
                    queue.empty() ? "" : absl::StrCat(R"("queue_name":")", queue, "\""),
                    R"(},"value":[1767268800,")", value, R"("]})");
  }
  return absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", result,
                      "]}}");
}

inline bool AsksForCapacity(absl::string_view path) {
  return ParamOf(path, "query").find("capacity") != std::string::npos;
}

}  // namespace fairlead::prometheus::testing
