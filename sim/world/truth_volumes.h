// What is true of volumes: claims, what they are bound to, and where that can be used. Counted from
// the API server's objects alone, independently of the product.
//
// Ownership: borrows time. Thread-safety: none, one thread. Complexity: a commit O(log n); a
// question O(volumes).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/volume_facts.h"

namespace fairlead::sim::world {

struct VolumeClaimRow {
  VolumeClaimFacts facts;
  absl::Time changed_at;  // anything of `facts`
};

struct VolumeRow {
  VolumeFacts facts;
  absl::Time changed_at;  // what says where it can be used
};

class TruthVolumes {
 public:
  explicit TruthVolumes(const EventQueue* time) : time_(time) {}

  void OnCommit(const ApiServer::Commit& commit);

  [[nodiscard]] const std::map<std::string, VolumeClaimRow>& claims() const { return claims_; }
  [[nodiscard]] const std::map<std::string, VolumeRow>& volumes() const { return volumes_; }
  // Null if there is none.
  [[nodiscard]] const VolumeClaimRow* FindClaim(const std::string& ns,
                                                const std::string& name) const;
  [[nodiscard]] const VolumeRow* FindVolume(const std::string& name) const;
  [[nodiscard]] const StorageClassFacts* FindClass(const std::string& name) const;
  // The volume that names the claim; null if there is none.
  [[nodiscard]] const VolumeFacts* VolumeOf(const VolumeClaimFacts& claim) const;

  // A claim of that name was bound, and its volume was there, since then.
  [[nodiscard]] bool WasBoundSince(const std::string& ns, const std::string& name,
                                   absl::Time since) const;
  // Not bound, and it has been said what it is going to be bound to, or where.
  [[nodiscard]] bool IsOnItsWay(const VolumeClaimFacts& claim) const;
  // As IsOnItsWay(), and nothing of it is decided.
  [[nodiscard]] bool IsFresh(const VolumeClaimFacts& claim) const;
  // For how many claims like this one the node has a volume, or may get one.
  [[nodiscard]] int64_t PlacesOf(const VolumeClaimFacts& claim, const std::string& node,
                                 const Labels& labels) const;
  // The driver attaches volumes of the claim to nodes, and may be limited there.
  [[nodiscard]] bool IsAttached(const VolumeClaimFacts& claim) const;
  // How many volumes the driver may attach to the node, and since when; absent: any number.
  struct Limit {
    int64_t volumes = 0;
    absl::Time changed_at;
  };
  [[nodiscard]] std::optional<Limit> LimitOf(const std::string& node) const;

 private:
  void OnClaim(const ApiServer::Commit& commit);
  void OnVolume(const ApiServer::Commit& commit);
  void OnCsiNode(const ApiServer::Commit& commit);

  const EventQueue* time_;
  std::map<std::string, VolumeClaimRow> claims_;     // by "ns/name"
  std::map<std::string, absl::Time> bound_until_;    // by "ns/name", of those that were
  std::map<std::string, VolumeRow> volumes_;         // by name
  std::map<std::string, absl::Time> volumes_ended_;  // by name
  std::map<std::string, StorageClassFacts> classes_;
  std::map<std::string, Limit> limits_;  // by node
};

}  // namespace fairlead::sim::world
