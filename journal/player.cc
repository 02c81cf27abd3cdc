#include "journal/player.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/configuration.h"

namespace fairlead::journal {
namespace {

absl::StatusOr<std::vector<hook::ListedNode>> ListOf(const NodesListed& record) {
  if (!record.status.ok()) return record.status;
  return record.nodes;
}

std::shared_ptr<const hook::Catalog> CatalogOf(const Offers& record) {
  if (!record.types.has_value()) return nullptr;
  return std::make_shared<const hook::Catalog>(hook::Catalog::FromTypes(*record.types));
}

}  // namespace

absl::Status Player::Play(absl::string_view record) {
  if (difference_.has_value()) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const Record read, Decode(record));
  ++totals_.records;
  if (const auto* start = std::get_if<Start>(&read)) return Begin(*start);
  if (loop_ == nullptr) return absl::InvalidArgumentError("the first record does not start a loop");
  if (const auto* applied = std::get_if<Applied>(&read)) {
    loop_->Apply(applied->event);
  } else if (std::holds_alternative<Led>(read)) {
    loop_->BecomeLeader();
  } else if (const auto* pods = std::get_if<PodsListed>(&read)) {
    loop_->PodsListed(pods->node, pods->version, pods->pods);
  } else if (const auto* machine = std::get_if<Machine>(&read)) {
    loop_->MachineReported(machine->report);
  } else if (const auto* offers = std::get_if<Offers>(&read)) {
    loop_->OffersChanged(offers->provider, CatalogOf(*offers));
  } else if (const auto* nodes = std::get_if<NodesListed>(&read)) {
    loop_->NodesListed(nodes->number, ListOf(*nodes));
  } else if (const auto* usage = std::get_if<UsageRestored>(&read)) {
    loop_->RestoreUsage(usage->text).IgnoreError();  // as it was then, and told then
  } else if (const auto* stale = std::get_if<Stale>(&read)) {
    loop_->SetStale(stale->kinds);
  } else if (const auto* guest = std::get_if<Guest>(&read)) {
    loop_->AskGuest(guest->pod, guest->reserved_on, guest->now);
  } else {
    Step(std::get<Stepped>(read));
  }
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
    options.usage_store.ns = start.usage_ns;
    options.usage_store.name = start.usage_name;
    return std::move(options);
  };
}

absl::Status Player::Begin(const Start& start) {
  if (start.shape != RecordShape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it was recorded by fairlead ", start.version,
        ", whose records this program cannot read; replay it with the program that recorded it"));
  }
  if (start.continues && loop_ == nullptr) {
    return absl::InvalidArgumentError("the first record continues a loop that is not there");
  }
  version_ = start.version;
  FAIRLEAD_ASSIGN_OR_RETURN(const core::Options options, read_options_(start));
  catalogs_.push_back(hook::Catalog::FromTypes(start.types));
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<core::DecisionLoop> next,
                            core::DecisionLoop::Make(options, &catalogs_.back()));
  if (start.continues) next->Continue(*loop_);
  loop_ = std::move(next);
  return absl::OkStatus();
}

void Player::Step(const Stepped& recorded) {
  core::StepResult result = loop_->Step(recorded.now);
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
