#include "journal/recorder.h"

#include "core/decision_loop.h"
#include "core/options.h"
#include "journal/record.h"

namespace fairlead::journal {

void Recorder::Started(const core::Options& options, const hook::Catalog& catalog, bool continues) {
  sink_(Encode(Start{.shape = RecordShape(),
                     .version = version_,
                     .documents = options.documents,
                     .scheduler_names = options.state.scheduler_names,
                     .usage_ns = options.usage_store.ns,
                     .usage_name = options.usage_store.name,
                     .types = catalog.types(),
                     .continues = continues,
                     .shard = options.shard.has_value()
                                  ? std::optional<std::string>(options.shard->label_value)
                                  : std::nullopt,
                     .request_prefix = options.hook.request_prefix}));
}

void Recorder::Applied(const model::ClusterEvent& event) { sink_(EncodeApplied(event)); }

void Recorder::BecameLeader() { sink_(Encode(Led{})); }

void Recorder::PodsListed(const std::string& node, absl::string_view version,
                          const std::vector<model::Pod>& pods) {
  sink_(Encode(journal::PodsListed{node, std::string(version), pods}));
}

void Recorder::MachineReported(const hook::MachineReport& report) {
  sink_(Encode(Machine{report}));
}

void Recorder::OffersChanged(absl::string_view provider, const hook::Catalog* offers) {
  Offers record{std::string(provider), std::nullopt};
  if (offers != nullptr) record.types = offers->types();
  sink_(Encode(std::move(record)));
}

void Recorder::NodesListed(uint64_t number,
                           const absl::StatusOr<std::vector<hook::ListedNode>>& nodes) {
  journal::NodesListed record{number, nodes.status(), {}};
  if (nodes.ok()) record.nodes = *nodes;
  sink_(Encode(std::move(record)));
}

void Recorder::UsageRestored(absl::string_view text) {
  sink_(Encode(journal::UsageRestored{std::string(text)}));
}

void Recorder::SetStale(const std::vector<model::Kind>& kinds) { sink_(Encode(Stale{kinds})); }

void Recorder::GuestAsked(const model::Pod& pod, absl::string_view reserved_on, absl::Time now) {
  sink_(Encode(Guest{pod, std::string(reserved_on), now}));
}

void Recorder::Stepped(absl::Time now, const core::StepResult& result) {
  journal::Stepped record{now, {}, result.decided};
  record.actions.reserve(result.actions.size());
  for (const model::Action& action : result.actions) record.actions.push_back(HashOf(action));
  sink_(Encode(std::move(record)));
}

}  // namespace fairlead::journal
