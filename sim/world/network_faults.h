// The fate of a request on its way, drawn from a seed, and the answers of proxies and of flow
// control, which answer instead of the API server.
//
// Thread-safety: none, one thread. Determinism: splitmix64; the same draws in the same order.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "sim/world/network.h"

namespace fairlead::sim::world {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // 0 .. bound-1; 0 for a bound of 0.
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : Next() % bound; }
  bool Coin() { return (Next() & 1) != 0; }
  absl::Duration Between(absl::Duration low, absl::Duration high);

 private:
  uint64_t state_;
};

enum class Fate : uint8_t {
  kServed,
  kLostRequest,
  kLostAnswer,
  kThrottled,
  kServerError,
  kTimeoutUnserved,
  kTimeoutServed,
  kFalseConflict,
};
// At most one of them per request. If the chances sum up to more than 1000, the later ones never
// come.
Fate DrawFate(const NetworkFaults& faults, bool is_write, Draws& draws);
constexpr bool ReachesServer(Fate fate) {
  return fate == Fate::kServed || fate == Fate::kLostAnswer || fate == Fate::kTimeoutServed;
}

// A write by its verb and resource: "create-pods/binding", "patch-noderequests/status",
// "delete-noderequests", "create-events"; "" for a read.
std::string WriteKindOf(const kube::HttpRequest& request);
// A write of the Lease.
bool IsLeaseKind(const std::string& kind);

// What is answered to a request of that fate; `coin` chooses between 500 and 503.
kube::HttpResponse FaultResponse(Fate fate, bool coin);
// What Network::Refuse makes of a request.
kube::HttpResponse RefusalResponse(int status, const kube::HttpRequest& request);

}  // namespace fairlead::sim::world
