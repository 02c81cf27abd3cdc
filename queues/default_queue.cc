#include "queues/default_queue.h"

#include <string>

namespace fairlead::queues {

model::Queue BuiltinDefaultQueue(absl::string_view name, bool others) {
  model::Queue queue;
  queue.meta.name = std::string(name);
  queue.display_name = "built-in default queue";
  const model::QueueResource bounds = {others ? 0 : model::kUnlimited, model::kUnlimited,
                                       1'000'000};
  queue.gpu = queue.cpu = queue.memory = bounds;
  return queue;
}

bool KeepDefaultQueue(QueueTree& tree, absl::string_view name, bool object_exists) {
  if (name.empty() || object_exists) return false;
  bool others = false;
  for (QueueId q = 0; q < tree.size(); ++q) others |= tree.Exists(q) && tree.Name(q) != name;
  const uint64_t before = tree.version();
  tree.Upsert(BuiltinDefaultQueue(name, others));
  return tree.version() != before;
}

}  // namespace fairlead::queues
