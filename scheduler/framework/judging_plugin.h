// A plugin whose filter and score are another program's answers about nodes, by class of pods. It
// is told which classes have pods that wait, asks about the nodes that were not judged for these,
// and filters and scores by what it has been answered.
//
// Enabled at filter or at score, it filters nodes that were not judged yet: a pod is placed when
// the answers are there (FilterPlugin::Awaits). Nodes that do not exist yet, or take no pods yet,
// are admitted: the program cannot know them.
//
// Thread-safety: the thread that owns the state.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "scheduler/framework/framework.h"

namespace fairlead::framework {

class JudgingPlugin : public virtual Plugin {
 public:
  // At which of its two points the profile has it. Called once, before it is asked anything.
  virtual void JudgeAt(bool filter, bool score) = 0;
  // After every decision: the classes of its profile with pods that wait, each once.
  virtual void PodsWait(absl::Span<const state::PodClassId> classes) = 0;
  // Before every decision, and after every answer: classes about which it says something else since
  // the last call (ClusterState::AnswersChanged).
  struct Changed {
    state::PodClassId id;
    uint64_t serial;
  };
  virtual std::vector<Changed> TakeChanged(absl::Time now) = 0;
};

}  // namespace fairlead::framework
