// What a provider says about a machine without being asked: it has an id now, it runs, it is gone,
// it will never come. Reports of one machine come in the order in which they became true; one may
// be repeated, and one that is out of date is followed by a true one.
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace fairlead::hook {

enum class MachineState : uint8_t {
  kStarting,  // accepted; its node may come
  kRunning,   // it runs; its node is there or about to register
  kEnding,    // it was told to end, by Fairlead or by others
  kGone       // it does not exist, and cannot come into being any more
};

constexpr const char* MachineStateName(MachineState state) {
  constexpr const char* kNames[] = {"starting", "running", "ending", "gone"};
  return kNames[static_cast<size_t>(state)];
}

struct MachineReport {
  std::string provider;                   // Provider::name
  std::string request_name, request_uid;  // of the NodeRequest that it was ordered for
  std::string machine_id;                 // Node.spec.providerID; empty: not known yet
  MachineState state = MachineState::kStarting;
  // Of kGone: why it never came, in a code of provisioning/failure.h. OK: it was told to end, or
  // the provider does not say why.
  absl::Status why;
};

}  // namespace fairlead::hook
