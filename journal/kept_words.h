// The allow-list of a redaction: texts that stay as they are, because they mean something to the
// program and nothing about its user. Everything else is renamed.
//
// Kept are names of Kubernetes and of Fairlead (keys, kinds, codes, reasons, plugins, fields of
// configuration: kept_lists.h), and public names of hardware (public_hardware.h). Amounts and times
// are kept where a key says that they are some.
//
// Ownership: values. Thread-safety: none. Complexity: O(text).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace fairlead::journal {

class KeptWords {
 public:
  // `more`: names of plugins that the program has besides Fairlead's.
  explicit KeptWords(const std::vector<std::string>& more);

  // The whole text, or a part of it between slashes.
  [[nodiscard]] bool Has(absl::string_view text) const;
  // A text about hardware is kept wherever it occurs from now on, if it is public
  // (public_hardware.h).
  void AddHardware(absl::string_view text);
  // The same; the names of families with it.
  void AddInstanceType(absl::string_view name);
  // Whether a model that a pod asks for is a part of one that is known.
  [[nodiscard]] bool IsHardware(absl::string_view text) const;
  // In order; also those that are not kept.
  [[nodiscard]] const std::set<std::string>& instance_types() const { return types_; }
  // A label whose values are compared as numbers.
  void AddNumberKey(absl::string_view key) { number_keys_.insert(std::string(key)); }

  // Values under the key are amounts, times or yes and no.
  [[nodiscard]] bool IsAmountKey(absl::string_view key) const;
  // Labels of nodes that say what a machine is.
  [[nodiscard]] static bool IsHardwareKey(absl::string_view key);
  // A field of a configuration file, or of an object by which pods are grouped.
  [[nodiscard]] static bool IsConfigurationField(absl::string_view name);
  [[nodiscard]] static bool IsGroupingField(absl::string_view name);
  // A field of an object of the API.
  [[nodiscard]] static bool IsApiField(absl::string_view name);
  // "2", "0.5", "10Gi", "2h30m", "50%", "true", "2026-11-29T00:00:00Z".
  [[nodiscard]] static bool IsAmount(absl::string_view text);

 private:
  absl::flat_hash_set<std::string> words_, hardware_, number_keys_;
  std::set<std::string> types_;
};

// Words that stay in every text: digits, the program's own prefixes of names, and protocols.
std::vector<std::string> FixedWords();

}  // namespace fairlead::journal
