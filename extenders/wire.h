// The messages of the extender protocol as JSON text.
//
// Source: k8s.io/kube-scheduler/extender/v1/types.go, which has no JSON tags: keys are the names of
// Go's fields. Answers are read as Go's decoder reads them: keys in any case ("failedNodes"),
// unknown keys ignored, null as absent, invalid UTF-8 replaced. But an answer has to be one JSON
// value without anything behind it.
//
// Errors: InvalidArgument. Texts of an extender are cut to kTextBytes of valid UTF-8.
// Thread-safety: pure functions. Complexity: O(bytes). Memory beyond the parser's is O(nodes asked
// about), whatever the answer says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fairlead::extenders {

inline constexpr size_t kAnswerBytesMax = size_t{64} << 20;
inline constexpr size_t kTextBytes = 256;
// Scores of one extender (MinExtenderPriority, MaxExtenderPriority), and points per score
// (MaxNodeScore / MaxExtenderPriority).
inline constexpr int64_t kScoreMax = 10, kPointsPerScore = 10;
// The most points that extenders give to a node, so that no sum overflows.
inline constexpr int64_t kPointsMax = 1'000'000'000'000;

// The nodes of one ask. An extender is asked about those that are left.
class AskedNodes {
 public:
  // Of two equal names the first counts.
  explicit AskedNodes(absl::Span<const std::string> names);  // must outlive this
  [[nodiscard]] size_t size() const { return left_.size(); }
  [[nodiscard]] const std::string& name(size_t node) const { return names_[node]; }
  [[nodiscard]] bool IsLeft(size_t node) const { return left_[node]; }
  [[nodiscard]] size_t count_left() const { return count_left_; }
  void Remove(size_t node);
  // No value if no node of that name is left.
  [[nodiscard]] std::optional<size_t> Find(absl::string_view name) const;

 private:
  const absl::Span<const std::string> names_;
  absl::flat_hash_map<absl::string_view, size_t> positions_;
  std::vector<bool> left_;
  size_t count_left_ = 0;
};

// ExtenderArgs. The pod and the nodes are JSON texts.
std::string ArgsWithNames(absl::string_view pod, const AskedNodes& nodes);
std::string ArgsWithNodes(absl::string_view pod, absl::Span<const absl::string_view> nodes);
// ExtenderBindingArgs.
std::string BindingArgs(absl::string_view ns, absl::string_view name, absl::string_view uid,
                        absl::string_view node);

// ExtenderPreemptionArgs. Of each node that is left the victims: uids, or the pods' JSON texts for
// an extender without a node cache, at most as many violations as pods.
struct VictimsOfNode {
  std::vector<absl::string_view> pods;
  int64_t budget_violations = 0;
};
std::string PreemptionArgs(absl::string_view pod, bool node_cache_capable, const AskedNodes& nodes,
                           absl::Span<const VictimsOfNode> victims);

struct NodeVerdict {
  bool admitted = false;
  bool unresolvable = false;
  std::string reason;  // may be empty
};
// ExtenderFilterResult: one verdict for each node, those that are not left included. As upstream,
// the list of nodes decides alone: NodeNames of an extender with a node cache, else Nodes; no node
// is admitted without either. A text of FailedAndUnresolvableNodes wins over one of FailedNodes.
// Error: `Error` is not empty, or a node is listed that is not left.
absl::StatusOr<std::vector<NodeVerdict>> ReadFilterResult(absl::string_view body,
                                                          bool node_cache_capable,
                                                          const AskedNodes& nodes);

// HostPriorityList: the points of each node. Scores are clamped to 0..10. As upstream, hosts that
// are not left are ignored, and a host that is listed twice gets both scores.
absl::StatusOr<std::vector<int64_t>> ReadScores(absl::string_view body, int64_t weight,
                                                const AskedNodes& nodes);
// At most kPointsMax; neither is negative.
int64_t AddPoints(int64_t a, int64_t b);

// ExtenderPreemptionResult: of each node the uids of the pods to be evicted there, sorted; none:
// the extender leaves the node out. As upstream, NodeNameToMetaVictims counts alone. Error: a node
// is listed that is not left.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadPreemptionResult(absl::string_view body,
                                                                           const AskedNodes& nodes);

// ExtenderBindingResult: the text of `Error`.
absl::StatusOr<std::string> ReadBindingResult(absl::string_view body);

// metadata.uid of an object.
absl::StatusOr<std::string> ReadUid(absl::string_view body);
// The items of a list of objects, each as its own text, in order.
absl::Status ReadItems(absl::string_view body,
                       absl::FunctionRef<void(absl::string_view name, std::string text)> item);

}  // namespace fairlead::extenders
