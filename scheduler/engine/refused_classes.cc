#include "scheduler/engine/refused_classes.h"

namespace fairlead::engine {

void RefusedClasses::Add(state::PodClassId pod_class, bool by_objects, bool by_node) {
  known_[pod_class] = {changes_.end(), by_objects, by_node};
}

bool RefusedClasses::ContainsUnasked(state::PodClassId pod_class) {
  const auto found = known_.find(pod_class);
  if (found == known_.end() || found->second.seen < EndFor(found->second)) return false;
  found->second.seen = changes_.end();
  return true;
}

bool RefusedClasses::SuitsNone(state::PodClassId pod_class) const {
  const auto found = known_.find(pod_class);
  return found != known_.end() && found->second.by_objects &&
         found->second.seen >= EndFor(found->second);
}

bool RefusedClasses::Contains(state::PodClassId pod_class, Ask ask) {
  const auto found = known_.find(pod_class);
  if (found == known_.end()) return false;
  Known& known = found->second;
  const uint64_t end = EndFor(known);
  const bool still =
      known.seen >= end || (known.seen >= changes_.start() &&
                            changes_.ForEachNode(known.seen, end, [&](state::NodeId node) {
                              const Answer answer = ask(node);
                              known.by_objects &= !answer.suits;
                              // Of one that suits, other nodes may have something to say.
                              return !answer.takes && (!answer.suits || known.by_node);
                            }));
  if (!still) {
    known_.erase(found);
    return false;
  }
  known.seen = changes_.end();
  return true;
}

void RefusedClasses::ForEachCurrent(absl::FunctionRef<void(state::PodClassId)> use) const {
  for (const auto& [pod_class, known] : known_) {
    if (known.seen >= EndFor(known)) use(pod_class);
  }
}

}  // namespace fairlead::engine
