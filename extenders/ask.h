// One ask of the extenders about the nodes of a pod: kube-scheduler's findNodesThatPassExtenders
// and the extenders' part of prioritizeNodes.
//
// The filters are called one after the other, each about the nodes that are left; then, if more
// than one is left, every extender with a prioritizeVerb scores at the same time. The error of a
// filter fails the ask unless the extender is ignorable; one of a score is ignored.
//
// Ownership: its own calls hold the ask, and the ask what it calls. Thread-safety:
// one call at a time is open until the scores, whose answers may come on several threads at once.
// Complexity: O(bytes of the messages + nodes * extenders).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "extenders/api_reader.h"
#include "extenders/ask_state.h"
#include "extenders/endpoint.h"

namespace fairlead::extenders {

class OneAsk : private AskState, public std::enable_shared_from_this<OneAsk> {
 public:
  using AskState::AskState;
  void Start();

 private:
  using Body = absl::StatusOr<std::string>;

  [[nodiscard]] bool NeedsNodes() const;
  void OnPod(absl::StatusOr<std::string> pod);
  void OnNodes(const absl::StatusOr<NodeTextsPtr>& nodes);

  void CallNextFilter();
  void OnFiltered(size_t asked, const Body& body);
  [[nodiscard]] absl::Status TakeVerdicts(const Endpoint& endpoint, const Body& body);

  void CallScores();
  void OnScored(const Endpoint& endpoint, const Body& body);

  void Send(const Endpoint& endpoint, const std::string& verb, std::function<void(Body)> done);
  [[nodiscard]] size_t BytesFor(const Endpoint& endpoint) const;
  [[nodiscard]] std::string ArgsFor(const Endpoint& endpoint) const;

  std::string pod_;     // its text
  NodeTextsPtr nodes_;  // null if no extender needs them

  std::mutex mutex_;  // guards the scores
  size_t open_scores_ = 0;
  absl::Status cancelled_;
};

}  // namespace fairlead::extenders
