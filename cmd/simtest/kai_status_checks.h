// The invariant about what Fairlead writes in the place of KAI's controllers (`kaiStatus`);
// checks.h lists it with the others. What is written is compared with a recount of the API server's
// objects by the rules of docs/moving.md, which shares no code with core/kai_counts.h:
//
//   requested                what its pods ask for that have not ended
//   allocated                of these, what those have that are on a node
//   allocatedNonPreemptible  that, if the PriorityClass of the workload is 100 or more
//   childQueues              names of the queues that have it as parent
//
// A PodGroup counts its pods; a queue the workloads that are filed in it, and all below it. CPU,
// memory and GPUs are judged. Not judged is what holds a pod whose amounts make no sense, whose
// part of a GPU is none, or whose node is gone; and what is not preemptible of pods that name a
// class that is not there, or different ones.
//
// Ownership: borrows. Thread-safety: none, one thread. Complexity: a look O(pods * depth).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

// Between two writes of counts, of all objects together (core/reconcile/kai_statuses.h).
inline constexpr absl::Duration kCountsEvery = absl::Milliseconds(200);
// How long the counts that are true may be others than those that are written, beside the pace: the
// watch, a recount every second, and the shapes that a first write tries.
inline constexpr absl::Duration kCounted = absl::Seconds(10);

class KaiStatusChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  // `on`: whether the configuration says that the counts are written. `rules_change`: that pods may
  // be preempted by other rules than KAI's for a while.
  KaiStatusChecks(const sim::EventQueue* time, sim::world::ApiServer* server,
                  const sim::world::Truth* truth, bool on, bool rules_change, Fail fail);

  // Fairlead has written an object. `calm`: no fault lasts, or did a moment ago.
  void OnWrite(const sim::world::ApiServer::Commit& commit, bool calm);
  // Until then writes may be answered as if they were invalid, or their object gone: they are given
  // up, until other counts are true.
  void GiveUp(absl::Time until) { given_up_until_ = std::max(given_up_until_, until); }
  // Every few seconds. `calm`: as above.
  void Look(bool calm);
  // For how long what has changed may have to be written.
  [[nodiscard]] absl::Duration WritesLast() const;

  // Of one object.
  struct Counts {
    sim::world::Amounts allocated, non_preemptible, requested;
    std::vector<std::string> children;  // by name
    // Nothing, or the non-preemptible part, is known of it.
    bool unknown = false, unknown_class = false;
    [[nodiscard]] std::string Text() const;
  };

 private:
  struct Group;
  void OnRequest(const kube::HttpRequest& request);
  void CheckPace(const std::string& actor);
  [[nodiscard]] std::map<std::string, Group> Workloads() const;
  [[nodiscard]] Counts CountOf(const Group& group) const;
  // Whether its class says that the workload is not preemptible.
  [[nodiscard]] bool IsForGood(const Group& group, bool& unknown) const;
  // The queues in which the workload may be: without a PodGroup that names one its first pod
  // decides, and which pod that is, is not judged here.
  [[nodiscard]] static std::set<std::string> QueuesOf(const Group& group);
  // The queue and those above it, as far as there are objects.
  [[nodiscard]] std::vector<std::string> Above(const std::string& queue) const;
  void Judge(const std::string& object, const std::string& uid, const Counts& counted,
             const Counts& written, bool calm);
  void JudgeObject(sim::world::ResourceType type, const std::string& ns, const std::string& name,
                   const Counts& counted, bool calm);

  const sim::EventQueue* time_;
  sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  bool on_, rules_change_;
  Fail fail_;
  absl::Time given_up_until_ = absl::InfinitePast();
  struct Known {
    std::string what;            // uid, and what is true
    absl::Time since, right_at;  // it has been true; it was written, or is not judged
  };
  std::map<std::string, Known> known_, next_known_;       // at the last look, at this one
  std::map<std::string, std::deque<absl::Time>> writes_;  // by actor: the last ones
};

}  // namespace fairlead::simtest
