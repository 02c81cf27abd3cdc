// The most that the hook may hold: GPUs, GPUs of a model, dollars per hour, nodes of a pool.
// Everything that costs money, or may cost money, counts: ordered, booting, running, draining until
// the end is confirmed, and failed nodes that may exist (invariant I6).
//
// Thread-safety: plain values. No bound is kNoBound here (model::kUnlimited at the edge).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autoscale-hook/catalog/catalog.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

inline constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// Label of NodeRequests, by Fairlead: number of GPUs, so that a request still counts when its type
// has left the catalogue.
inline constexpr char kRequestGpusLabel[] = "fairlead.dev/gpus";
// Label of NodeRequests, by Fairlead: the GPU model, for the same purpose as fairlead.dev/gpus.
inline constexpr char kRequestGpuModelLabel[] = "fairlead.dev/gpu-model";

// The GPUs that the request was made for, by its label; none if it has no such label.
std::optional<int64_t> OrderedGpus(const model::NodeRequest& request);

// The same, or without such a label what its instance type has; 0 if the catalogue has no such
// type.
int64_t GpusOf(const model::NodeRequest& request, const Catalog& catalog);

struct CapLimits {
  int64_t gpus = model::kUnlimited;
  std::map<std::string, int64_t> gpus_by_model;
  int64_t micro_usd_per_hour = model::kUnlimited;
  int64_t nodes = model::kUnlimited;
};

struct CapUsage {
  int64_t nodes = 0, gpus = 0, micro_usd_per_hour = 0;
  // Nodes of unknown price, and the price that each counts with: the most expensive type.
  int64_t unpriced = 0, assumed_micro_usd_per_hour = 0;
  std::map<std::string, int64_t> gpus_by_model;
  std::map<std::string, int64_t> nodes_by_pool;
  std::map<std::string, int64_t> nodes_by_reservation;

  // `node_gpus`: what its node has, in devices; 0 if none has registered. The larger number counts:
  // devices may still be missing on a node, and nothing else may tell how many it has.
  void Add(const model::NodeRequest& request, const Catalog& catalog, int64_t node_gpus = 0);
};

// A failed request counts unless the provider refused it for certain; a removed request does not.
bool CountsAgainstCaps(const model::NodeRequest& request, bool registered);

// What may still be provisioned. Never negative: a cap below the current holdings leaves nothing.
struct CapsLeft {
  int64_t nodes = kNoBound, gpus = kNoBound, micro_usd_per_hour = kNoBound;
  std::map<std::string, int64_t> gpus_by_model;  // absent: no bound
  std::map<std::string, int64_t> nodes_by_pool;  // absent: no bound
  // Not a cap but a fact: there are no more. Absent: none.
  std::map<std::string, int64_t> nodes_by_reservation;

  static CapsLeft Of(const CapLimits& limits, const CapUsage& usage,
                     const std::vector<const model::NodePool*>& pools);
  // What of the reservations of these offers is not in use.
  void AddReservations(const std::vector<Offer>& offers, const CapUsage& usage);
  // Without any cap; of reservations as many as there are.
  [[nodiscard]] CapsLeft WithoutCaps() const;
  friend bool operator==(const CapsLeft&, const CapsLeft&) = default;
};

}  // namespace fairlead::hook
