// The order of writes: lanes by urgency, and one line per object.
//
// Actions about one object keep their order: only the first of an object's line may be under way.
// An object is in the lane of the most urgent action of its line, so that a binding behind a status
// patch of its pod does not wait among the status patches. An older replaceable action
// (SetPodUnschedulable, NominateNode) that has not been started is removed from the line by a newer
// SetPodUnschedulable or by the binding of its pod.
//
// Thread-safety: none. Complexity: O(1) each, by the length of an object's line, which is short.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "kube/transport/backoff.h"
#include "kube/write/write_protocol.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

// In order of urgency.
enum class WriteLane { kBind, kEvict, kNode, kStatus, kEvent };
inline constexpr int kWriteLanes = 5;
const char* WriteLaneName(WriteLane lane);

WriteLane LaneOf(const model::Action& action);
// The object that the action writes to. An event is an object of its own, separate from its
// subject.
std::string WrittenObject(const model::Action& action);

struct WriteJob {
  uint64_t action_id = 0;
  WriteLane lane = WriteLane::kBind;
  bool replaceable = false;
  bool replaces = false;  // an older replaceable one
  // The owner takes a refusal as a reason to decide anew.
  bool decides_anew = false;
  std::unique_ptr<WriteProtocol> protocol;
  JitteredBackoff backoff{{absl::ZeroDuration(), absl::ZeroDuration()}, 0};
  int attempts = 0;
  bool on_wire = false;
  bool answered = false;                 // only what follows the write is left
  absl::Duration submitted_at, sent_at;  // steady
};

class WriteQueue {
 public:
  // Returns the id of the replaced action, if there is one.
  std::optional<uint64_t> Add(std::string object, WriteJob job);

  // Makes the next job of a lane active. Null if no object is ready there. The pointer is valid
  // until the job is finished or dropped.
  WriteJob* Start(WriteLane lane);
  [[nodiscard]] bool HasReady() const;
  [[nodiscard]] bool HasReady(WriteLane lane);
  // Null if the action is not active.
  WriteJob* FindActive(uint64_t action_id);
  // Makes an active job wait for its next Start, before the others of its lane.
  void Requeue(uint64_t action_id);
  // The same behind the others of another lane, which is its own from now on.
  void RequeueIn(WriteLane lane, uint64_t action_id);
  // Removes an active job; the next of its object becomes ready.
  WriteJob Finish(uint64_t action_id);
  // Removes a job that waits for its first Start; none if it does not.
  std::optional<WriteJob> Withdraw(const std::string& object, uint64_t action_id);
  // Removes every job, or every job that is not on the wire, in order of action ids.
  std::vector<WriteJob> Drop(bool on_wire_too);

  // The jobs whose own lane this is, active or not.
  [[nodiscard]] size_t size(WriteLane lane) const { return sizes_[static_cast<size_t>(lane)]; }
  [[nodiscard]] bool empty() const { return objects_.empty(); }

 private:
  struct Line {
    std::deque<std::unique_ptr<WriteJob>> jobs;
    bool active = false;
    WriteLane lane = WriteLane::kEvent;  // where it is ready
    uint64_t ticket = 0;                 // ticket of its one valid entry in the lanes
  };
  using Entry = std::pair<std::string, uint64_t>;  // object, ticket; stale entries are skipped

  static WriteLane MostUrgent(const Line& line);
  void MakeReady(const std::string& object, Line& line, bool first);
  void Requeue(uint64_t action_id, bool first);
  void SkipStale(std::deque<Entry>& lane);
  size_t& SizeOf(const WriteJob& job) { return sizes_[static_cast<size_t>(job.lane)]; }

  absl::flat_hash_map<std::string, Line> objects_;
  absl::flat_hash_map<uint64_t, std::string> active_;  // action -> object
  std::array<std::deque<Entry>, kWriteLanes> lanes_;
  std::array<size_t, kWriteLanes> sizes_{};
  size_t ready_ = 0;
  uint64_t tickets_ = 0;
};

}  // namespace fairlead::kube
