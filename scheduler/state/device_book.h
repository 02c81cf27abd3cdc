// Devices of dynamic resource allocation: which nodes have which, which claims hold them, and what
// a claim that holds none yet asks for.
//
// A *demand* is what one request of a claim asks for: a device class with the selectors of the
// request. It has a name, under which nodes count the devices that satisfy it and pods that bring a
// claim along request them, as any other resource: so that fit, victims and undo are those of
// resources. Demands may overlap in devices; that is settled by the exact devices, which a claim
// takes when the pod that carries it is placed: by pool and name, the first that are free.
//
// Only devices of one node are counted (ResourceSlice.spec.nodeName), of the newest generation of
// their pool, and only those that nothing speaks against (model::Device::unusable). Slices of a
// pool that are still missing are not waited for: what is asked for by number does not need them.
// Thread-safety: the state's. Complexity: a change costs the devices of the nodes that it names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"
#include "scheduler/state/device_selector.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// GPUs as queues count them, by the name of the device class or the driver.
bool IsGpuDeviceClass(absl::string_view name);
// How texts about objects end that nobody has made.
inline constexpr char kDoesNotExist[] = " does not exist";
// Names of demands begin with this; no resource of a container can.
inline constexpr char kDemandPrefix[] = "deviceclass:";
bool IsDemand(absl::string_view resource_name);
// Whether a demand is for GPUs.
bool IsGpuDemand(absl::string_view resource_name);

struct NodeDevice {
  std::string driver, pool;
  model::Device device;
  std::string key;  // "driver/pool/device": unique in the cluster
};

struct RequestDemand {
  std::string request, demand;
  int64_t count = 0;
};

struct ClaimRow {
  bool exists = false;  // false: pods name it, the API server has not shown it
  model::ResourceClaim object;
  std::vector<PodId> consumers;      // live pods that name it; the first carries it
  std::vector<std::string> devices;  // keys: what it holds, by the API or by a decision
  std::vector<std::string> last;     // what a decision gave it last: it gets the same again
};

class DeviceBook {
 public:
  // ---- objects; the names of the nodes whose devices changed
  std::vector<std::string> UpsertSlice(const model::ResourceSlice& slice);
  std::vector<std::string> RemoveSlice(absl::string_view name);
  void UpsertClass(const model::DeviceClass& device_class);
  void RemoveClass(absl::string_view name);
  // Takes over what the API says the claim holds. False if nothing changed that decisions read.
  bool UpsertClaim(const model::ResourceClaim& claim);
  void RemoveClaim(absl::string_view key);

  // ---- demands
  // What the requests of a claim ask for; an error says why nobody can tell. Makes demands known.
  absl::StatusOr<std::vector<RequestDemand>> DemandsOf(const model::ResourceClaim& claim);
  // Grows with every demand that becomes known.
  [[nodiscard]] size_t demand_count() const { return demands_.size(); }
  [[nodiscard]] bool Satisfies(const NodeDevice& device, const std::string& demand) const;
  // {demand, devices of the node that satisfy it}, by name.
  [[nodiscard]] std::vector<std::pair<std::string, int64_t>> CountDevices(
      absl::string_view node) const;
  [[nodiscard]] int64_t CountGpus(absl::string_view node) const;

  // ---- devices and claims
  // By driver, pool and name.
  [[nodiscard]] const std::vector<NodeDevice>& DevicesOf(absl::string_view node) const;
  // The node that has a device, "" if none says so.
  [[nodiscard]] std::string NodeOf(const std::string& device_key) const;
  // The claim that holds it, null if none.
  [[nodiscard]] const std::string* HolderOf(const std::string& device_key) const;
  [[nodiscard]] const ClaimRow* Find(absl::string_view key) const;
  ClaimRow& Row(const std::string& key) { return claims_[key]; }
  [[nodiscard]] const std::map<std::string, ClaimRow, std::less<>>& claims() const {
    return claims_;
  }
  void DropIfUnused(const std::string& key);
  // What the claim holds, by the API or by a decision, as it has to be written; no devices if it
  // holds none.
  [[nodiscard]] model::ClaimAllocation AllocationOf(absl::string_view key) const;

  // Gives an unallocated claim devices of a node: all that it asks for, or none. False if they are
  // not there.
  bool Take(const std::string& key, absl::string_view node);
  // Takes back what a decision gave it; what the API gave it stays.
  void Release(const std::string& key);

  // What a decision gave it becomes exactly this.
  void Restore(const std::string& key, const std::vector<std::string>& devices);

  // Text of the first difference between rows and what is derived from them, or "".
  [[nodiscard]] std::string Check() const;
  [[nodiscard]] std::string Dump() const;

 private:
  struct Demand {
    std::string device_class;
    std::vector<std::string> texts;
    std::vector<DeviceSelector> selectors;  // of the request, and of the class as it is now
    bool usable = false;
  };
  using PoolKey = std::pair<std::string, std::string>;  // driver, pool
  struct Pool {
    std::set<std::string> slices;  // names
    int64_t generation = 0;        // the newest
  };

  void RefreshDemand(Demand& demand);
  // The nodes of all slices of a pool, whose devices it gives anew.
  std::set<std::string> RefreshPool(const PoolKey& key);
  void RebuildNode(const std::string& node);
  void Hold(const std::string& key, ClaimRow& row, std::vector<std::string> devices);
  void Free(const std::string& key, ClaimRow& row);

  std::map<std::string, model::ResourceSlice, std::less<>> slices_;
  std::map<PoolKey, Pool> pools_;
  std::map<std::string, std::set<std::string>, std::less<>> slices_of_node_;  // names
  std::map<std::string, model::DeviceClass, std::less<>> classes_;
  std::map<std::string, ClaimRow, std::less<>> claims_;
  std::map<std::string, Demand, std::less<>> demands_;
  std::map<std::string, std::vector<NodeDevice>, std::less<>> inventory_;  // by node
  absl::flat_hash_map<std::string, std::string> node_of_, holder_of_;      // by device key
};

}  // namespace fairlead::state
