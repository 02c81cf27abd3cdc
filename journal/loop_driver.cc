#include "journal/loop_driver.h"

#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

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

void DerivedTable::Add(const Derived& record) {
  for (const auto& [derived, used] : record.names) names_[derived] = used;
  for (const auto& [derived, used] : record.seeds) seeds_[derived] = used;
}

std::string DerivedTable::Name(const std::string& derived) {
  const auto found = names_.find(derived);
  return found == names_.end() ? derived : found->second;
}

uint64_t DerivedTable::Seed(uint64_t derived) {
  const auto found = seeds_.find(derived);
  return found == seeds_.end() ? derived : found->second;
}

absl::Status LoopDriver::Tell(const Record& record) {
  if (const auto* start = std::get_if<Start>(&record)) return Begin(*start);
  if (loop_ == nullptr) return absl::InvalidArgumentError("the first record does not start a loop");
  if (const auto* applied = std::get_if<Applied>(&record)) {
    loop_->Apply(applied->event);
  } else if (std::holds_alternative<Led>(record)) {
    loop_->BecomeLeader();
  } else if (const auto* pods = std::get_if<PodsListed>(&record)) {
    loop_->PodsListed(pods->node, pods->version, pods->pods);
  } else if (const auto* machine = std::get_if<Machine>(&record)) {
    loop_->MachineReported(machine->report);
  } else if (const auto* offers = std::get_if<Offers>(&record)) {
    loop_->OffersChanged(offers->provider, CatalogOf(*offers));
  } else if (const auto* nodes = std::get_if<NodesListed>(&record)) {
    loop_->NodesListed(nodes->number, ListOf(*nodes));
  } else if (const auto* usage = std::get_if<UsageRestored>(&record)) {
    loop_->RestoreUsage(usage->text).IgnoreError();  // as it was then, and told then
  } else if (const auto* stale = std::get_if<Stale>(&record)) {
    loop_->SetStale(stale->kinds);
  } else if (const auto* guest = std::get_if<Guest>(&record)) {
    loop_->AskGuest(guest->pod, guest->reserved_on, guest->now);
  }
  return absl::OkStatus();
}

absl::Status LoopDriver::Begin(const Start& start) {
  if (start.shape != RecordShape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it was recorded by fairlead ", start.version,
        ", whose records this program cannot read; replay it with the program that recorded it"));
  }
  if (start.continues && loop_ == nullptr) {
    return absl::InvalidArgumentError("the first record continues a loop that is not there");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(core::Options options, read_options_(start));
  options.hook.derived_names = names_;
  options.engine.derived_names = names_;
  options.gpu_sharing.derived_names = names_;
  catalogs_.push_back(hook::Catalog::FromTypes(start.types));
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<core::DecisionLoop> next,
                            core::DecisionLoop::Make(options, &catalogs_.back()));
  if (start.continues) next->Continue(*loop_);
  loop_ = std::move(next);
  return absl::OkStatus();
}

}  // namespace fairlead::journal
