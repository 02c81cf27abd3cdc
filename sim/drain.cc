#include "sim/drain.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/instance_wishes.h"
#include "sim/successors.h"

namespace fairlead::sim {

Drain::Drain(EventQueue* queue, ApiServer* server, std::vector<std::string> nodes)
    : queue_(queue), server_(server), writes_(server), nodes_(std::move(nodes)) {
  queue_->At(queue_->now(), [this] { Go(); });
}

void Drain::Go() {
  std::vector<model::EvictPod> asked;
  for (const auto& [key, pod] : server_->All<model::Pod>()) {
    if (std::find(nodes_.begin(), nodes_.end(), pod.node_name) == nodes_.end()) continue;
    if (IsTerminal(pod) || pod.meta.deletion.has_value() || BelongsToNode(pod) ||
        model::MustStay(pod.meta.annotations)) {
      continue;
    }
    outcomes_[key].node = pod.node_name;
    asked.push_back({pod.meta.ns, pod.meta.name, pod.meta.uid, "Drain", "the node is drained"});
  }
  bool refused = false;
  for (const model::EvictPod& evict : asked) {
    const absl::Status status = writes_.Commit(evict);
    Outcome& outcome = outcomes_[model::Key(evict.ns, evict.name)];
    outcome.evicted = status.ok();
    outcome.refusal = std::string(status.message());
    refused = refused || !status.ok();
  }
  if (refused) queue_->After(kRetry, [this] { Go(); });
}

}  // namespace fairlead::sim
