#include "journal/player.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/config_shard.h"
#include "core/configuration.h"

namespace fairlead::journal {

absl::Status Player::Play(absl::string_view record) {
  if (difference_.has_value()) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const Record read, Decode(record));
  ++totals_.records;
  if (const auto* derived = std::get_if<Derived>(&read)) {
    derived_->Add(*derived);
    return absl::OkStatus();
  }
  if (const auto* stepped = std::get_if<Stepped>(&read);
      stepped != nullptr && driver_.has_started()) {
    Step(*stepped);
    return absl::OkStatus();
  }
  FAIRLEAD_RETURN_IF_ERROR(driver_.Tell(read));
  if (const auto* start = std::get_if<Start>(&read)) version_ = start->version;
  return absl::OkStatus();
}

Player::ReadOptions Player::FromDocuments(framework::RegistryPtr plugins) {
  return [plugins = std::move(plugins)](const Start& start) -> absl::StatusOr<core::Options> {
    absl::StatusOr<core::Configuration> read = core::ReadConfiguration(start.documents, plugins);
    if (!read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the recorded configuration: ", read.status().message()));
    }
    core::Options& options = read->options;
    options.state.scheduler_names = start.scheduler_names;
    std::optional<core::Shard> shard;
    if (start.shard.has_value()) shard = core::Shard{*start.shard};
    core::SetShard(shard, start.usage_name, options);
    // A redaction has renamed what a shard's prefix is derived from.
    options.hook.request_prefix = start.request_prefix;
    options.usage_store.ns = start.usage_ns;
    options.usage_store.name = start.usage_name;
    return std::move(options);
  };
}

void Player::Step(const Stepped& recorded) {
  core::StepResult result = driver_.Step(recorded.now);
  ++totals_.steps;
  totals_.first = std::min(totals_.first, recorded.now);
  totals_.last = std::max(totals_.last, recorded.now);
  if (recorded.decided) ++totals_.decisions;
  const size_t both = std::min(recorded.actions.size(), result.actions.size());
  size_t same = 0;
  while (same < both && HashOf(result.actions[same]) == recorded.actions[same]) ++same;
  totals_.actions += static_cast<int64_t>(same);
  if (same == recorded.actions.size() && same == result.actions.size()) return;
  difference_ = Difference{totals_.steps,         recorded.now, recorded.actions.size(),
                           result.actions.size(), same,         std::nullopt};
  if (same < result.actions.size()) difference_->here = std::move(result.actions[same]);
}

}  // namespace fairlead::journal
