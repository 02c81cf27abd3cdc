#include "scheduler/engine/refused_classes.h"

namespace fairlead::engine {

void RefusedClasses::Add(state::PodClassId pod_class, bool by_objects, bool by_node) {
  known_[pod_class] = {changes_.end(), by_objects, by_node};
}

bool RefusedClasses::SuitsNone(state::PodClassId pod_class) const {
  const auto found = known_.find(pod_class);
  return found != known_.end() && found->second.by_objects &&
         found->second.seen >= changes_.object_end();
}

bool RefusedClasses::Contains(state::PodClassId pod_class, Ask ask) {
  const auto found = known_.find(pod_class);
  if (found == known_.end()) return false;
  Known& known = found->second;
  const uint64_t end = known.by_objects ? changes_.object_end() : changes_.end();
  bool lost = known.seen < end && known.seen < changes_.start();
  state::NodeId asked = state::kNoId;
  for (uint64_t i = known.seen; !lost && i < end; ++i) {
    const state::NodeId node = changes_.At(i);
    if (node == asked) continue;
    asked = node;
    const Answer answer = ask(node);
    known.by_objects &= !answer.suits;
    // Of one that suits, other nodes may have something to say.
    lost = answer.takes || (answer.suits && !known.by_node);
  }
  if (lost) {
    known_.erase(found);
    return false;
  }
  known.seen = changes_.end();
  return true;
}

void RefusedClasses::ForEachCurrent(absl::FunctionRef<void(state::PodClassId)> use) const {
  for (const auto& [pod_class, known] : known_) {
    if (known.seen >= (known.by_objects ? changes_.object_end() : changes_.end())) use(pod_class);
  }
}

}  // namespace fairlead::engine
