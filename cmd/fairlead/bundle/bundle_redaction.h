// Replaces the names in all parts of a bundle, the same ones everywhere.
// Thread-safety: none. Complexity: that of journal/redaction.h.
#pragma once

#include <string>
#include <vector>

#include "cmd/fairlead/bundle/bundle_reader.h"
#include "journal/loop_driver.h"

namespace fairlead::cmd {

struct BundleJournal {
  std::string path, what;
  std::vector<std::string> records;
  std::string problem = {};  // not empty: why it is not there, without names
  std::string detail = {};   // the same with names
};

// A journal that cannot be redacted is left out, with its problem; so are all parts if nothing can
// be. `kept`: names of plugins.
void RedactBundle(const journal::ReadOptions& read, const std::vector<std::string>& kept,
                  std::vector<BundlePart>& parts, std::vector<BundleJournal>& journals);

}  // namespace fairlead::cmd
