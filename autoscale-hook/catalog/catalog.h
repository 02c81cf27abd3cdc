// What can be provisioned: instance types with their resources, zones and prices, from a YAML file
// (README.md here has the format; autoscale-hook/catalog/default.yaml is the built-in one).
//
// Ownership: values. Thread-safety: immutable after Load. Errors: InvalidArgument with line and
// column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/node.h"
#include "scheduler/model/node_devices.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// No machine has more: sums over plans and ledgers stay far from the end of int64.
inline constexpr int64_t kMostGpusOfAMachine = 1'000'000;

// No reservation has more machines.
inline constexpr int64_t kMostReserved = 100'000;

// Machines of a type that are paid for whether they are used or not.
struct Reservation {
  std::string name;  // a label value; unique in a catalogue
  std::string zone;  // empty: in any zone of the type
  int64_t count = 0;
  // What caps and bills count for one; 0 is legal if the file says it.
  int64_t price_micro_usd_per_hour = 0;
  model::StringMap labels;  // further labels on the node: the cloud's own name of it
};

struct InstanceType {
  std::string name;  // "p5.48xlarge"
  std::string architecture = "amd64";
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t max_pods = 110;
  std::string gpu_model;  // value of label nvidia.com/gpu.product; empty: no GPU
  int64_t gpu_count = 0;
  int64_t gpu_memory_mib = 0;  // of one GPU
  std::vector<std::string> zones;
  // Micro-dollars per hour; absent: not offered that way. A price of zero is legal.
  std::optional<int64_t> on_demand_micro_usd, spot_micro_usd;
  std::vector<Reservation> reservations;  // by name
  model::StringMap labels;                // further labels on the node
  std::vector<model::Taint> taints;       // of its nodes, beside those of the pool
  model::ResourceList extra;              // further extended resources
  // What DRA drivers publish for its nodes; null: that is not known. If there are GPUs among them,
  // they are its `gpu_count` GPUs, and no device plugin gives these.
  std::shared_ptr<const model::NodeDevices> devices;
  // Reserved for the system and DaemonSets: not allocatable to pods.
  int64_t reserved_cpu_milli = 0;
  int64_t reserved_memory_bytes = 0;

  // Null if absent.
  [[nodiscard]] const Reservation* FindReservation(absl::string_view name) const;
  // What a machine of the kind costs now; none: that is unknown.
  [[nodiscard]] std::optional<int64_t> PriceOf(bool spot, absl::string_view reservation) const;
};

class Catalog {
 public:
  // Parses a catalogue file. Types sorted by name; duplicates and invalid values are errors.
  static absl::StatusOr<Catalog> Parse(absl::string_view yaml, absl::string_view file_name);
  // The built-in catalogue.
  static const Catalog& BuiltIn();
  // For tests and simulations: the given types, with unique names.
  static Catalog FromTypes(std::vector<InstanceType> types);

  [[nodiscard]] const std::vector<InstanceType>& types() const { return types_; }
  [[nodiscard]] const InstanceType* Find(absl::string_view name) const;  // null if absent
  [[nodiscard]] bool has_reservations() const { return has_reservations_; }
  // When and where the prices were read; empty if the file does not say.
  [[nodiscard]] const std::string& as_of() const { return as_of_; }
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  std::string as_of_, source_;
  std::vector<InstanceType> types_;
  bool has_reservations_ = false;
};

// An offering: a type in a zone at a price, from a pool. Of a reservation there are only so many,
// in all its offers together.
struct Offer {
  const InstanceType* type = nullptr;
  const model::NodePool* pool = nullptr;
  std::string zone;
  bool spot = false;
  int64_t price_micro_usd_per_hour = 0;
  const Reservation* reservation = nullptr;  // of the type; null: it is not reserved

  // The price that a choice compares. A reserved machine is paid for anyway: it counts with a
  // thousandth of the type's on-demand price, so it is taken before what costs money, and of
  // several reserved ones the smallest that does.
  [[nodiscard]] int64_t PriceOfChoice() const;
};

// The devices that the type and the NodePool (null: none) declare; null: none.
std::shared_ptr<const model::NodeDevices> DeclaredDevices(const InstanceType& type,
                                                          const model::NodePool* pool);
// The node when it registers: labels, taints of the pool, startup taints, allocatable.
model::Node TemplateNode(const Offer& offer, absl::string_view name);
// The node when it is usable: without startup taints. Plans place pods on it, and the cluster state
// has it as the ordered node.
model::Node UsableNode(const Offer& offer, absl::string_view name);

}  // namespace fairlead::hook
