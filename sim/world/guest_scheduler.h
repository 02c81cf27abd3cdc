// A scheduler whose pods are the program's to decide about (`guests.schedulerNames`): it asks where
// a pod of schedulerName guest-scheduler may go, and binds it there a moment later, as
// kube-scheduler does with an extender. It asks again when the pod changes and after a pause that
// grows to 10 s. While it is unreliable it forgets answers, and binds long after them. With
// ReserveFirst it does as kube-scheduler with Fairlead's plugin: it reserves the node, and asks
// until it may bind the pod.
//
// Ownership: borrows time and server. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"
#include "sim/world/facts.h"

namespace fairlead::sim::world {

class GuestScheduler {
 public:
  struct Question {
    std::string ns, name, uid;
    std::string reserved_on;  // the node that it has reserved; or empty
  };
  struct Say {
    std::string node;   // that the pod is granted; empty: none
    bool held = false;  // it is not to be bound there yet
  };
  // Calls `done` with the answer; never, if the question gets lost.
  using Ask = std::function<void(const Question& question, std::function<void(const Say&)> done)>;

  GuestScheduler(EventQueue* time, ApiServer* server, uint64_t seed, Ask ask);
  // Until then.
  void BeUnreliable(absl::Time until) { unreliable_until_ = until; }
  void ReserveFirst() { reserves_ = true; }
  // Called with each answer that names a node where nothing may start, and since when.
  void OnBadNode(std::function<void(const std::string& what, absl::Time since)> listener) {
    on_bad_node_ = std::move(listener);
  }
  // The last answer about the pod was a node.
  [[nodiscard]] bool IsGranted(const std::string& uid) const {
    const auto row = pods_.find(uid);
    return row != pods_.end() && row->second.granted;
  }

 private:
  struct Row {
    std::string ns, name;
    int64_t asked = 0;      // times
    uint64_t question = 0;  // the last: answers to former ones are ignored
    bool granted = false;
  };

  void Seen(const ApiServer::Commit& commit);
  void NodeSeen(const ApiServer::Commit& commit);
  void AskLater(const std::string& uid, absl::Duration delay);
  void AskNow(const std::string& uid, uint64_t question);
  void Answered(const std::string& uid, uint64_t question, const std::string& node);
  // Its filters let the pod go to the node.
  [[nodiscard]] bool Accepts(const std::string& uid, const std::string& node) const;
  // Binds the pod once it may.
  void Reserve(const std::string& uid, const std::string& node);
  void Bind(const std::string& uid, const std::string& node);
  // Its filter.
  [[nodiscard]] bool HasRoom(const NodeFacts& node, const Row& row) const;
  // The pod still waits for a node.
  [[nodiscard]] bool Waits(const std::string& uid) const;
  [[nodiscard]] bool IsUnreliable() const { return time_->now() < unreliable_until_; }

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  Ask ask_;
  bool reserves_ = false;
  absl::Time unreliable_until_ = absl::InfinitePast();
  uint64_t questions_ = 0;
  std::map<std::string, Row> pods_;              // by uid; without a node
  std::map<std::string, absl::Time> bad_since_;  // nodes that are gone, or take no pods
  std::function<void(const std::string&, absl::Time)> on_bad_node_;
};

}  // namespace fairlead::sim::world
