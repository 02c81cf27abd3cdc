// What NodePools permitted, and when: every version of each of them, and whether it is right. Read
// from the API server's objects by code that shares nothing with the product's decoders.
//
// A version is wrong if docs/autoscaling.md says so of it: a provider that is not configured, a
// duration or a schedule that is none, GPUs that are divided without saying how, labels that each
// node has of its own. The product may keep the last right version of an object as long as the
// object is wrong.
//
// Ownership: borrows time. Thread-safety: none, one thread. Complexity: a commit O(1), a question
// O(versions of the pool).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

struct PoolTaint {
  std::string key, value, effect;
  friend bool operator==(const PoolTaint&, const PoolTaint&) = default;
};

struct PoolFacts {
  std::string fault;                      // empty: it is right
  std::vector<std::string> types, zones;  // empty: all
  std::map<std::string, std::string> labels;
  std::vector<PoolTaint> taints;
  std::optional<int64_t> max_nodes;        // none: no bound
  std::optional<bool> empties;             // whether nodes with pods may go; none: as configured
  std::optional<absl::Duration> removal;   // infinite: never; none: as configured
  std::optional<int64_t> empties_at_once;  // nodes that may go because they are empty; none: any
  bool has_startup_taints = false;
  [[nodiscard]] bool Permits(const std::string& type, const std::string& zone) const;
};

PoolFacts ReadPool(const Json& pool);

struct PoolVersion {
  std::string uid;
  PoolFacts facts;
  absl::Time from, until = absl::InfiniteFuture();
};

class TruthPools {
 public:
  explicit TruthPools(const EventQueue* time) : time_(time) {}

  void OnCommit(const ApiServer::Commit& commit);

  // There was a NodePool at some time.
  [[nodiscard]] bool Any() const { return !versions_.empty(); }
  // At some time since then there was none: the whole catalogue was on offer.
  [[nodiscard]] bool NoneSince(absl::Time since) const;
  // Versions that may have been in force at some time since then. Of an object that has been wrong
  // since then all that were right count: which of them a process saw last is not known.
  [[nodiscard]] std::vector<const PoolFacts*> InForceSince(const std::string& name,
                                                           absl::Time since) const;
  // At some time since then no version may have been in force: there was no such pool, or it was
  // wrong, and a process that began then knew no other.
  [[nodiscard]] bool LapsedSince(const std::string& name, absl::Time since) const;
  // Nodes of the type that take every pod are on offer, and have been since then: there has been no
  // NodePool, or there is one that is right and has not changed, without taints and without a
  // bound.
  [[nodiscard]] bool Sells(const std::string& type, absl::Time since) const;
  // Versions that are there now, by name.
  [[nodiscard]] std::map<std::string, const PoolVersion*> Now() const;

 private:
  const EventQueue* time_;
  std::map<std::string, std::vector<PoolVersion>> versions_;  // by name, in order
  int64_t count_ = 0;                                         // of pools
  absl::Time none_until_ = absl::InfiniteFuture();            // there was none, the last time
};

}  // namespace fairlead::sim::world
