// Which devices of one node go to which requests of claims: an exact answer, with the names of
// objects left out of it.
//
// A request is satisfied by one of its options (firstAvailable), each of which takes a number of
// the devices that suit it. No device is taken twice, but an option with admin access takes
// it from no other claim. A constraint needs all devices of the options
// that it covers to have one and the same value (matchAttribute), or each one of its own
// (distinctAttribute). Partitions use counters, of which there must be enough for all that are
// taken.
//
// How, unless there are partitions, distinct values or admin access: claim by claim, options are
// tried in their order and, for each constraint, the values in the order of the first device that
// has them. With these fixed, what is left is a matching between requests and devices, which grows
// by augmenting paths (H. W. Kuhn, "The Hungarian method for the assignment problem", 1955); the
// claims before may have to take others of the devices that suit them. So a claim gets the first
// combination of its options with which it and all claims behind it find devices, beside what was
// fixed for those before it; and of the devices the first, unless a later request can only do with
// one of these.
//
// With these, devices are tried one after another (device_backtracking.h).
//
// The combinations can be many: beyond `max_work` steps the answer is unknown (kGaveUp). A step is
// a device or a combination that is looked at.
//
// Thread-safety: pure functions. Complexity: O(max_work). Determinism: indices decide all ties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::state {

struct ChoiceOption {
  bool possible = true;  // false: it cannot be taken, whatever devices there are
  int64_t count = 0;
  std::vector<int> devices = {};  // that suit and can be had, ascending
  bool admin = false;             // takes devices from no claim, and uses no counters
};

struct ChoiceRequest {
  std::vector<ChoiceOption> options;  // best first; one is taken
};

struct ChoiceConstraint {
  std::vector<std::pair<size_t, size_t>> members;  // (request, option) of its claim
  std::vector<int> values;                         // by device; negative: it has none
  bool distinct = false;                           // no value twice; else one for all
};

struct ChoiceClaim {
  std::vector<ChoiceRequest> requests;
  std::vector<ChoiceConstraint> constraints = {};
  int64_t max_devices = INT64_MAX;
};

// What partitions of devices have in common.
struct ChoiceCounters {
  using Use = std::pair<size_t, int64_t>;  // counter, amount above 0
  std::vector<int64_t> left;               // by counter
  std::vector<std::vector<Use>> uses;      // by device, ordered; empty if no device uses any
};

struct ChosenRequest {
  size_t option = 0;
  std::vector<int> devices;  // ascending
  friend bool operator==(const ChosenRequest&, const ChosenRequest&) = default;
};

enum class ChoiceOutcome : uint8_t { kFound, kNone, kGaveUp };

struct DeviceChoice {
  ChoiceOutcome outcome = ChoiceOutcome::kNone;
  std::vector<std::vector<ChosenRequest>> claims;  // as asked for; empty unless kFound
};

// Steps that one question may take.
inline constexpr int64_t kMaxChoiceWork = 50'000;

DeviceChoice ChooseDevices(size_t device_count, const std::vector<ChoiceClaim>& claims,
                           const ChoiceCounters& counters = {}, int64_t max_work = kMaxChoiceWork);

}  // namespace fairlead::state
