// Other names for names, in the same order: decisions depend on the order of names, and names are
// put together ("namespace/name", "job-0"), so whole texts are not what is renamed.
//
// A text is words (letters and digits) and what is between them, which stays. Each word gets
// another one, the same everywhere, and the order of any two words is that of the words for them.
// Some words stay as they are (`fixed`). So for texts a and b, Of(a + "/" + b) is Of(a) + "/" +
// Of(b), and two texts are in the order of what is made of them: '-', '.', '/' and ' ' come before
// letters and digits in ASCII. (Two texts of which one has '_' or ':' where the other goes on with
// a digit may change places. A redaction that decides otherwise for it is refused.)
//
// Ownership: values. Thread-safety: none. Complexity: Collect and Of are O(text); Assign is
// O(words x log words).
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace fairlead::journal {

// A part of a text: a word, or what is between two.
struct TextPart {
  absl::string_view text;
  bool is_word = false;
};
std::vector<TextPart> PartsOf(absl::string_view text);

class Renaming {
 public:
  // No fixed word is another one with digits 0 behind it: no name would fit in between.
  explicit Renaming(const std::vector<std::string>& fixed);

  void Collect(absl::string_view text);
  // Once, after the last Collect().
  void Assign();
  // False: a word of the text was never collected, and `out` is of no use.
  bool Of(absl::string_view text, std::string& out) const;
  // The word is that one from now on, whatever the order. False, and nothing has changed, if that
  // one stands for another word, or is fixed.
  bool Override(absl::string_view word, absl::string_view other);
  [[nodiscard]] size_t size() const { return renamed_.size(); }

 private:
  [[nodiscard]] bool IsFixed(const TextPart& part, absl::string_view before) const;

  absl::flat_hash_set<std::string> fixed_;
  std::set<std::string> bounds_;  // the same, in order
  absl::flat_hash_set<std::string> collected_;
  absl::flat_hash_map<std::string, std::string> renamed_;
  absl::flat_hash_set<std::string> used_;  // by renamed words
};

// The shortest text of digits and small letters such that it comes, with anything behind it, after
// `low` and before `high`; no `high`: there is no end. Empty: there is none. For tests.
std::string BetweenWords(absl::string_view low, absl::string_view high);

}  // namespace fairlead::journal
