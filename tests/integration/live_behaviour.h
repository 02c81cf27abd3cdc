// Plays a behaviour (tests/behaviours) on a real API server, by Fairlead's real process or by the
// real kube-scheduler. The test takes the parts of the kubelet and, for the claims of pods, of the
// volume controller, which is the real one.
//
// Ownership: of the scheduler's process and of all objects, which the destructor deletes
// (namespaces stay: nothing here would finish their deletion). Thread-safety: one thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/behaviours/behaviour.h"
#include "tests/behaviours/expectations.h"
#include "tests/integration/api.h"
#include "tests/integration/child_process.h"
#include "tests/integration/plane.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {

class LiveBehaviour {
 public:
  LiveBehaviour(Api& api, Plane& plane, behaviours::Behaviour behaviour,
                behaviours::Scheduler scheduler);
  ~LiveBehaviour();
  LiveBehaviour(const LiveBehaviour&) = delete;
  LiveBehaviour& operator=(const LiveBehaviour&) = delete;

  // Plays the steps up to the first that fails. A step succeeds if its expectations are met before
  // `patience` ends, and still hold when a pod that was made after that has been decided on.
  ::testing::AssertionResult Play(absl::Duration patience = kPatience);
  // The scheduler's output so far.
  [[nodiscard]] std::string Log() const;

 private:
  ::testing::AssertionResult PlayStep(const behaviours::Step& step, absl::Duration patience);
  ::testing::AssertionResult Create(const behaviours::ObjectRef& ref);
  ::testing::AssertionResult Patch(const behaviours::ObjectRef& ref, const Json& patch);
  ::testing::AssertionResult DecidesOnALaterPod();
  void Start();
  void Delete(const behaviours::ObjectRef& ref);
  // Bound pods run and are ready, evicted pods end. Then what the API server has.
  behaviours::Seen WorkAndSee();
  void BeKubeletOf(const Json& pod);
  [[nodiscard]] std::optional<behaviours::Wait> WaitOf(const Json& pod);
  [[nodiscard]] std::optional<behaviours::Wait> VerdictOf(const Json& pod, const Json* condition);

  Api& api_;
  Plane& plane_;
  behaviours::Behaviour behaviour_;
  behaviours::Scheduler scheduler_;
  std::unique_ptr<ChildProcess> process_, controllers_;
  std::vector<behaviours::ObjectRef> made_;
  std::set<std::string> evicted_;  // in this step: "namespace/name"
  int later_pods_ = 0;
};

}  // namespace fairlead::integration
