// What the annotations of a pod say about the machine that it runs on: families, type, GPU models,
// spot or on-demand, GPUs and price of a node; and that the pod stays where it is, or wants to know
// what it would cost. docs/autoscaling.md has the table for people.
//
// Every annotation has two names, that of Fairlead (fairlead.dev/instance-max-gpus) and that of
// Elotl's Luna (node.elotl.co/instance-max-gpus). A pod may have both if they say the same.
//
// Wishes are part of what makes pods equal (PodSpec). They are bounded: kMostWishes entries of
// kLongestWish characters in a list, kLongestPattern characters in a regular expression, which may
// not take more than kPatternMemory bytes when it is compiled.
//
// Errors: a value that is wrong, or names that contradict each other, are WishProblems. The wish is
// then as if it were absent; a pod with a problem is not scheduled (Pod::invalid). Nothing crashes,
// whatever the annotations are.
// Thread-safety: plain values; a pattern may match on several threads. Ownership: copies of a
// pattern share what was compiled. Complexity: parsing is O(length) and compiles the expression;
// a pattern that the same thread compiled among its last 32 is not compiled again.
// Sources: facts about Luna (docs.elotl.co/luna, "Pod annotations"); RE2's syntax.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/object_meta.h"

namespace re2 {
class RE2;
}

namespace fairlead::model {

inline constexpr size_t kMostWishes = 32;
inline constexpr size_t kLongestWish = 63;
inline constexpr size_t kLongestPattern = 256;
inline constexpr int64_t kPatternMemory = 256 * 1024;
inline constexpr int64_t kMostWishedGpus = 1'000'000;

// A regular expression over the names of instance types. It matches a name if it matches any part
// of it; ^ and $ bind it to the ends.
class TypePattern {
 public:
  TypePattern() = default;  // absent: matches everything
  // InvalidArgument says what is wrong with the expression.
  static absl::StatusOr<TypePattern> Make(absl::string_view text);

  [[nodiscard]] bool Matches(absl::string_view type_name) const;
  [[nodiscard]] bool IsSet() const { return compiled_ != nullptr; }
  [[nodiscard]] absl::string_view text() const;
  friend bool operator==(const TypePattern& a, const TypePattern& b) {
    return a.compiled_ == b.compiled_ || a.text() == b.text();
  }
  template <typename H>
  friend H AbslHashValue(H h, const TypePattern& p) {
    return H::combine(std::move(h), p.text());
  }

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

struct InstanceWishes {
  // In lower case, sorted, no two equal. `families` empty: any; a type is not of `other_families`.
  std::vector<std::string> families, other_families;
  TypePattern type;
  // In upper case, best first, no two equal (instance_facts.h says what suits them). Empty: any, or
  // no GPU.
  std::vector<std::string> gpu_models;
  // All false: any will do. A reserved machine is on-demand, too.
  bool spot = false, on_demand = false, reserved = false;
  // What a node may cost in an hour, and the GPUs that it may have; absent: anything.
  std::optional<int64_t> max_micro_usd_per_hour;
  std::optional<int64_t> max_gpus;

  [[nodiscard]] bool Any() const { return !(*this == InstanceWishes()); }
  // Nodes that differ in nothing but spot, on-demand or reserved may differ for the pod.
  [[nodiscard]] bool ReadsOffering() const {
    return (spot || on_demand || reserved) && !(spot && on_demand);
  }
  friend bool operator==(const InstanceWishes&, const InstanceWishes&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const InstanceWishes& w) {
    return H::combine(std::move(h), w.families, w.other_families, w.type, w.gpu_models, w.spot,
                      w.on_demand, w.reserved, w.max_micro_usd_per_hour.value_or(-1),
                      w.max_gpus.value_or(-1));
  }
};

// What is wrong with an annotation: its key, and one clause with the value and what is allowed.
struct WishProblem {
  std::string key, what;
};

// Adds to `problems` what is wrong, by key. Also looks at the values of do-not-evict and estimate.
InstanceWishes ParseInstanceWishes(const StringMap& annotations,
                                   std::vector<WishProblem>& problems);

// The pod is not moved, and its node is not emptied, to save money: an annotation of Fairlead,
// Luna, cluster-autoscaler or Karpenter says so. A value of do-not-evict that is neither "true" nor
// "false" says so too: in doubt the pod stays.
bool MustStay(const StringMap& annotations);
// fairlead.dev/estimate is "true".
bool WantsEstimate(const StringMap& annotations);

// Words for verdicts and refusals: the wish of a node that does not suit it first, as
// "instance-gpu-skus"; "" if a node with these labels and so many GPUs suits every wish. The price
// is not looked at: a node does not tell it.
absl::string_view UnmetWish(const InstanceWishes& wishes, const StringMap& node_labels,
                            int64_t gpus);

}  // namespace fairlead::model
