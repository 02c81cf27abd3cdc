// What is true of devices: which node has which, which claims hold them, and what a claim that
// waits could have. Counted from the API server's objects alone, independently of the product.
//
// Ownership: borrows time. Thread-safety: none, one thread. Complexity: a commit O(log n); a
// question O(claims x devices of a node).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/device_facts.h"

namespace fairlead::sim::world {

struct ClaimRow {
  ClaimFacts facts;
  absl::Time made;
  absl::Time allocated_since = absl::InfiniteFuture();
};

class TruthDevices {
 public:
  explicit TruthDevices(const EventQueue* time) : time_(time) {}

  void OnCommit(const ApiServer::Commit& commit);

  [[nodiscard]] const std::map<std::string, ClaimRow>& claims() const { return claims_; }
  // Null if there is none.
  [[nodiscard]] const ClaimFacts* Find(const std::string& ns, const std::string& name) const;

  // A device of the claim that another claim holds too, in words; "" if there is none.
  [[nodiscard]] std::string HeldTwice(const ClaimFacts& claim) const;
  // Why the claim's devices are not what it asks for, in words; "" if they are.
  [[nodiscard]] std::string Misfit(const ClaimFacts& claim) const;
  // When what Misfit() depends on changed: the slices of the node, and the class.
  [[nodiscard]] absl::Time ChangedAt(const std::string& node, const DeviceAsk& ask) const;
  // Devices of the node that no claim holds, and that suit; less those that claims hold and that
  // the node has no more (docs/dra.md).
  [[nodiscard]] int64_t FreeOn(const std::string& node, const DeviceAsk& ask) const;

 private:
  void OnClaim(const ApiServer::Commit& commit);
  void OnSlice(const ApiServer::Commit& commit);
  void OnClass(const ApiServer::Commit& commit);
  [[nodiscard]] bool Suits(const DeviceAsk& ask, const std::string& driver,
                           const DeviceFacts& device) const;

  const EventQueue* time_;
  std::map<std::string, ClaimRow> claims_;    // by "ns/name"
  std::map<std::string, SliceFacts> slices_;  // by name
  std::map<std::string, std::vector<std::string>> class_selectors_;
  std::map<std::string, absl::Time> nodes_changed_at_, classes_changed_at_;
};

}  // namespace fairlead::sim::world
