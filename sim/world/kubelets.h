// The kubelets of all nodes, and what collects the pods of lost ones.
//
// A bound pod is admitted after a moment: it fits beside what that kubelet has admitted, or it is
// refused (phase Failed, reason OutOfcpu and so on), as a real one does. A pod whose claims are not
// allocated on its node and reserved for it is not started until they are, nor one whose volumes
// are not bound, or not usable on its node. An admitted pod runs; after annotation sim/run-seconds
// it succeeds. A pod that is deleted ends within its grace period; a pod whose node has gone is
// collected. A finished pod is removed after a while. A pod is ready as soon as it runs, and not
// while its probe fails (FailProbes()).
//
// Ownership: borrows time and server. Thread-safety: none, one thread. Determinism: delays are
// drawn from the seed in the order of commits.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"
#include "sim/world/facts.h"

namespace fairlead::sim::world {

class Kubelets {
 public:
  Kubelets(EventQueue* time, ApiServer* server, uint64_t seed);

  // Pods that are to end until then do not, as with a hung container runtime.
  void StickUntil(absl::Time until) { stuck_until_ = until; }
  // Pods of the job alone.
  void StickUntil(const std::string& job, absl::Time until) { stuck_jobs_[job] = until; }
  // The readiness probe of every other running pod of the job fails for this long.
  void FailProbes(const std::string& job, absl::Duration time);

  [[nodiscard]] int64_t completed() const { return completed_; }  // pods that ran to their end
  [[nodiscard]] int64_t refused() const { return refused_; }      // pods that did not fit

 private:
  struct Key {
    std::string ns, name, uid;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.uid, a.ns, a.name) < std::tie(b.uid, b.ns, b.name);
    }
  };
  struct Admitted {
    std::string node;
    Amounts amounts;
  };
  void OnPod(const ApiServer::Commit& commit);
  void OnNode(const ApiServer::Commit& commit);
  void Admit(const Key& key);
  void Finish(const Key& key);
  void SetReady(const Key& key, bool ready);
  void End(const Key& key);
  void Collect(const Key& key);
  // The object if it is still that one; null otherwise.
  const Json* Same(const Key& key) const;
  std::string Refusal(const PodFacts& pod) const;
  std::string FreeDevice(const std::string& node) const;

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  absl::Time stuck_until_ = absl::InfinitePast();
  std::map<std::string, absl::Time> stuck_jobs_;
  std::map<std::string, Admitted> admitted_;  // by uid
  std::set<std::string> handled_, ending_;    // uids
  int64_t completed_ = 0, refused_ = 0;
};

}  // namespace fairlead::sim::world
