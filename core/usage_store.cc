#include "core/usage_store.h"

#include <utility>

namespace fairlead::core {

void UsageStore::Update(const engine::Engine& engine, absl::Time now,
                        std::vector<model::Action>& actions) {
  if (!open_ || options_.name.empty() || now < next_) return;
  const uint64_t version = engine.usage_version();
  if (version == written_version_) return;
  absl::StatusOr<std::string> text = engine.EncodeUsage(options_.max_bytes);
  next_ = now + options_.interval;
  problem_ = text.ok() ? "" : std::string(text.status().message());
  if (!text.ok()) return;
  written_version_ = version;
  actions.push_back({0, model::StoreUsage{options_.ns, options_.name, *std::move(text)}});
}

}  // namespace fairlead::core
