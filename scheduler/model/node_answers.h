// What programs outside of Fairlead (scheduler extenders) answered about nodes, for one pod: the
// nodes that they were asked about, and which of them they admit.
//
// Ownership: copies have one list in common. Thread-safety: as std::string.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/shared.h"

namespace fairlead::model {

struct NodeAnswer {
  std::string node;
  bool admitted = false;
  bool unresolvable = false;  // refused, and evicting pods from the node would not change that
  std::string reason = {};    // refused: why
  int64_t score = 0;          // admitted: what it adds to the score of the node, in points
  friend bool operator==(const NodeAnswer&, const NodeAnswer&) = default;
};

class NodeAnswers {
 public:
  NodeAnswers() = default;  // nothing was asked
  // Of each node the first answer counts.
  explicit NodeAnswers(std::vector<NodeAnswer> answers) {
    std::stable_sort(answers.begin(), answers.end(), Before);
    answers.erase(std::unique(answers.begin(), answers.end(),
                              [](const auto& a, const auto& b) { return a.node == b.node; }),
                  answers.end());
    if (!answers.empty()) list_ = Shared<std::vector<NodeAnswer>>(std::move(answers));
  }

  [[nodiscard]] bool IsEmpty() const { return list_ == nullptr; }
  // By name of the node.
  [[nodiscard]] const std::vector<NodeAnswer>& list() const {
    static const std::vector<NodeAnswer>& none = *new std::vector<NodeAnswer>();
    return list_ == nullptr ? none : *list_;
  }
  // Null: the node was not asked about. O(log nodes).
  [[nodiscard]] const NodeAnswer* Find(absl::string_view node) const {
    const auto found =
        std::lower_bound(list().begin(), list().end(), node,
                         [](const NodeAnswer& a, absl::string_view name) { return a.node < name; });
    return found == list().end() || found->node != node ? nullptr : &*found;
  }
  [[nodiscard]] bool AdmitsAny() const {
    return std::any_of(list().begin(), list().end(), [](const auto& a) { return a.admitted; });
  }

  friend bool operator==(const NodeAnswers& a, const NodeAnswers& b) {
    return a.list_.IsSameAs(b.list_) || a.list() == b.list();
  }
  template <typename H>
  friend H AbslHashValue(H h, const NodeAnswers& a) {
    if (a.IsEmpty()) return H::combine(std::move(h), 0);
    const NodeAnswer& first = a.list().front();
    return H::combine(std::move(h), a.list().size(), first.node, first.admitted, first.score);
  }

 private:
  static bool Before(const NodeAnswer& a, const NodeAnswer& b) { return a.node < b.node; }

  Shared<std::vector<NodeAnswer>> list_;
};

// What refused nodes say, equal reasons counted, most nodes first and the first few only: "3 nodes:
// no free port; 1 node: maintenance". Empty if none is refused.
std::string RefusalsOf(const NodeAnswers& answers);

}  // namespace fairlead::model
