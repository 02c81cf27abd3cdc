// The record of a simulated period: what happened, and which workloads waited with which code from
// when to when.
//
// Ownership: values. Thread-safety: none, one thread. Complexity: O(rows of the view) per
// observation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/view.h"
#include "scheduler/model/action.h"
#include "sim/api_server.h"

namespace fairlead::sim {

struct TimelineEvent {
  absl::Time time;
  // "note", "restarted", "node_requested", "node_registered", "node_ready", "node_removed",
  // "node_failed", "pod_bound", "pod_evicted", "pod_finished", "verdict"
  std::string event;
  std::string object = {};  // "namespace/name" of the pod, name of the node or the request
  std::string text = {};    // for people
  std::string code = {};    // of a verdict
  std::string queue = {}, node = {}, instance_type = {};
  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

// One period of waiting with one code.
struct WaitEpisode {
  std::string pod, queue, code;
  absl::Time since;
  absl::Time until = absl::InfiniteFuture();  // it still waits
  friend bool operator==(const WaitEpisode&, const WaitEpisode&) = default;
};

class Recorder {
 public:
  void OnNote(absl::Time now, const std::string& text, const std::string& event = "note");
  // An action was committed (or refused).
  void OnCommit(absl::Time now, const model::Action& action, const absl::Status& status);
  void OnChange(absl::Time now, ChangeType type, const Object& object);
  void OnView(const core::View& view);

  [[nodiscard]] const std::vector<TimelineEvent>& timeline() const { return timeline_; }
  // Ended episodes first, in the order of their end, then the others, by pod.
  [[nodiscard]] std::vector<WaitEpisode> Episodes() const;
  [[nodiscard]] int64_t evictions() const { return evictions_; }
  // By instance type.
  [[nodiscard]] const std::map<std::string, int64_t>& nodes_bought() const { return nodes_bought_; }

 private:
  void Add(TimelineEvent event) { timeline_.push_back(std::move(event)); }
  void OnNode(absl::Time now, ChangeType type, const model::Node& node);
  void OnPod(absl::Time now, ChangeType type, const model::Pod& pod);

  std::vector<TimelineEvent> timeline_;
  std::vector<WaitEpisode> ended_;
  std::map<std::string, WaitEpisode> open_;           // by pod
  std::map<std::string, bool> node_ready_;            // by name
  std::map<std::string, model::PodPhase> pod_phase_;  // by uid
  std::map<std::string, int64_t> nodes_bought_;
  int64_t evictions_ = 0;
};

}  // namespace fairlead::sim
