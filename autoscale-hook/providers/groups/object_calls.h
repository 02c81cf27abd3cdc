// What the providers cluster-api and scale-subresource have in common: groups that are read and
// written through ObjectApi.
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
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

// To the tracker, ResourceExhausted is a cloud without machines; a throttled call is repeated.
inline absl::Status OfObjectCall(const absl::Status& status, absl::string_view call) {
  const absl::StatusCode code =
      absl::IsResourceExhausted(status) ? absl::StatusCode::kUnavailable : status.code();
  return {code, absl::StrCat(call, ": ", status.message())};
}

inline absl::Status RefusedForGroup(const std::string& group, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("group ", group, ": ", why));
}

// The answer to a patch does not have the annotation that was written.
inline absl::Status AnnotationNotShown(absl::string_view path, absl::string_view annotation) {
  return absl::InternalError(
      absl::StrCat("patch ", path, ": the answer does not show annotation ", annotation));
}

}  // namespace fairlead::hook
