#include "core/usage_store.h"

#include <utility>

namespace fairlead::core {
namespace {

constexpr WriteAttempts::Rules kRules = {.backoff = {absl::Seconds(5), absl::Minutes(5)},
                                         .unseen = {absl::ZeroDuration(), absl::ZeroDuration()}};

}  // namespace

void UsageStore::Update(const engine::Engine& engine, absl::Time now,
                        std::vector<model::Action>& actions) {
  if (!open_ || options_.name.empty() || now < next_ || !write_.MayGo(now)) return;
  const uint64_t version = engine.usage_version();
  if (version == written_version_) return;
  absl::StatusOr<std::string> text = engine.EncodeUsage(options_.max_bytes);
  next_ = now + options_.interval;
  problem_ = text.ok() ? "" : std::string(text.status().message());
  if (!text.ok()) return;
  sent_version_ = version;
  write_.Sent(now, kRules);
  actions.push_back({0, model::StoreUsage{options_.ns, options_.name, *std::move(text)}});
}

void UsageStore::Answered(const absl::Status& status, absl::Time now) {
  if (write_.Answered(status, now, kRules) == Outcome::kDone) {
    written_version_ = sent_version_;
  } else {
    next_ = absl::InfinitePast();
  }
}

absl::Time UsageStore::wake_at() const {
  return write_.failures() > 0 ? write_.due() : absl::InfiniteFuture();
}

}  // namespace fairlead::core
