// What the providers cluster-api, scale-subresource and provisioning-request have in common: groups
// that are read and written through ObjectApi. The first two read an object first and write it with
// its resourceVersion as a precondition; both check the size against its bounds between the two.
//
// Errors have the codes of CloudGroups; their messages name the group or the call.
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "autoscale-hook/providers/scheduler_port.h"

namespace fairlead::hook {

// The callbacks of an object that may end before they are called: they do nothing then. Each is
// called once at most. The last member of its object, so that it ends first.
class OwnedCallbacks {
 public:
  OwnedCallbacks() = default;
  ~OwnedCallbacks() { *alive_ = false; }
  OwnedCallbacks(const OwnedCallbacks&) = delete;
  OwnedCallbacks& operator=(const OwnedCallbacks&) = delete;

  template <typename T, typename F>
  std::function<void(T)> Once(F then) const {
    return [alive = alive_, open = std::make_shared<bool>(true), then](T value) {
      if (!*alive || !std::exchange(*open, false)) return;
      then(std::move(value));
    };
  }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// One call of the port that writes, in several requests.
struct GroupOperation {
  static constexpr absl::Duration kLongest = absl::Seconds(90);
  static constexpr int kAttempts = 3;

  std::string group;
  int64_t delta = 0;
  std::string instance;  // of a removal
  CloudGroups::Done done;
  int attempts = 0;
  bool over = false;      // it was answered
  bool expired = false;   // it must not write any more
  bool in_doubt = false;  // whether the size was lowered

  // After a conflict, in which nothing was done. Counts the attempt.
  bool TriesAgain(const absl::Status& status) {
    return absl::IsAborted(status) && ++attempts < kAttempts;
  }
};

// Operation: a GroupOperation.
template <typename Operation>
std::shared_ptr<Operation> BeginOperation(Scheduler* scheduler, const std::string& group,
                                          CloudGroups::Done done) {
  const auto op = std::make_shared<Operation>();
  op->group = group;
  op->done = std::move(done);
  scheduler->After(GroupOperation::kLongest, [op] { op->expired = true; });
  return op;
}

// One after another, until one fails.
inline void RemoveEach(
    const std::vector<CloudNode>& nodes,
    const std::function<void(const CloudNode& node, CloudGroups::Done done)>& remove,
    const CloudGroups::Done& done) {
  if (nodes.empty()) return done(absl::OkStatus());
  const std::vector<CloudNode> rest(nodes.begin() + 1, nodes.end());
  remove(nodes.front(), [rest, remove, done](const absl::Status& status) {
    if (!status.ok() || rest.empty()) return done(status);
    RemoveEach(rest, remove, done);
  });
}

// ---- statuses

// Returns the status with `subject` and a colon before its message.
absl::Status WithSubject(absl::string_view subject, const absl::Status& status);
// Returns the error of a call that is part of an operation; `call` names the call.
// ResourceExhausted becomes Unavailable: to the tracker, ResourceExhausted is a cloud without
// machines, but a throttled call is repeated.
absl::Status OfObjectCall(const absl::Status& status, absl::string_view call);
// Returns OfObjectCall for the read of a listed machine. NotFound becomes Unavailable: the machine
// is gone, and the next list shows that.
absl::Status OfMachineRead(const absl::Status& status, absl::string_view call);

absl::Status RefusedForGroup(const std::string& group, absl::string_view why);
// Returns Unavailable: the operation has expired and writes nothing more.
absl::Status GivenUp(const GroupOperation& op);
// The answer to a patch does not have the annotation that was written.
absl::Status AnnotationNotShown(absl::string_view path, absl::string_view annotation);

// Return OK if the size may be raised by op.delta, lowered by op.delta, and lowered by the removal
// of a machine. `replicas` and the bound come from the read whose resourceVersion is the
// precondition of the write: so the bound holds when the write is done.
absl::Status CheckIncrease(const GroupOperation& op, int64_t replicas, int64_t max_size);
absl::Status CheckDecrease(const GroupOperation& op, int64_t replicas, int64_t min_size);
absl::Status CheckRemoval(const GroupOperation& op, int64_t replicas, int64_t min_size);

// ---- writes

// Returns the body of a patch that sets one annotation, or takes the annotation off if there is no
// value. `resource_version`: the precondition; empty: none.
std::string AnnotationPatch(absl::string_view resource_version, absl::string_view annotation,
                            std::optional<absl::string_view> value);

struct SizeChange {
  std::string path;              // of the object, or of its Scale
  std::string resource_version;  // the precondition
  int64_t replicas = 0;          // the new spec.replicas
  std::string annotations = {};  // a JSON object, written by the same patch; empty: none
};
// Writes a size. Aborted: the object has another resourceVersion, and nothing was done. Answers
// GivenUp, and calls nothing, if the operation has expired.
void WriteSize(ObjectApi* api, const OwnedCallbacks& callbacks, const GroupOperation& op,
               const SizeChange& change, CloudGroups::Done done);

}  // namespace fairlead::hook
