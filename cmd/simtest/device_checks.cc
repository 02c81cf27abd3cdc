#include "cmd/simtest/device_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/world/claim_controller.h"
#include "sim/world/device_objects.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::ClaimFacts;
using sim::world::PodClaim;
using sim::world::PodFacts;
using sim::world::PodRow;
using sim::world::ResourceType;

DeviceChecks::DeviceChecks(const sim::EventQueue* time, const ApiServer* server,
                           const sim::world::Truth* truth, Fail fail)
    : time_(time), server_(server), truth_(truth), fail_(std::move(fail)) {}

void DeviceChecks::OnClaim(const ApiServer::Commit& commit, absl::Time known) {
  if (commit.before == nullptr || commit.after == nullptr) return;
  const ClaimFacts before = sim::world::ReadClaim(*commit.before);
  const ClaimFacts after = sim::world::ReadClaim(*commit.after);
  if (after.allocated && !before.allocated) CheckAllocation(after, known);
  if (before.allocated && !after.allocated) CheckDeallocation(before);
}

void DeviceChecks::CheckAllocation(const ClaimFacts& claim, absl::Time known) {
  const std::string twice = truth_->devices().HeldTwice(claim);
  if (!twice.empty()) fail_("devices", absl::StrCat("claim ", claim.key(), ": ", twice));
  if (truth_->devices().ChangedAt(claim.node, claim.ask) >= known) return;
  const std::string misfit = truth_->devices().Misfit(claim);
  if (!misfit.empty()) {
    fail_("devices", absl::StrCat("claim ", claim.key(), " is allocated: ", misfit));
  }
}

void DeviceChecks::CheckDeallocation(const ClaimFacts& before) {
  for (const auto& [key, row] : truth_->pods()) {
    if (!before.IsReservedFor(row.facts.uid) || !row.facts.active()) continue;
    fail_("claims", absl::StrCat("claim ", before.key(), " is deallocated, and pod ", key,
                                 " is bound to ", row.facts.node, " with it"));
  }
}

void DeviceChecks::OnBinding(const PodRow& row) {
  const PodFacts& pod = row.facts;
  if (!pod.ours || pod.claims.empty()) return;
  const std::string missing =
      sim::world::MissingClaim(*server_, *server_->Find(ResourceType::kPods, pod.ns, pod.name));
  if (missing.empty()) return;
  fail_("claims", absl::StrCat("pod ", pod.key(), " is bound to ", pod.node, ": ", missing));
}

bool DeviceChecks::IsRefused(const PodFacts& pod) const {
  if (!server_->RefusesAnyClaim()) return false;
  return std::any_of(pod.claims.begin(), pod.claims.end(), [&](const PodClaim& claim) {
    if (claim.extended > 0) {
      return server_->RefusesClaim(absl::StrCat(pod.name, "-extended-resources-"));
    }
    return server_->RefusesClaim(claim.generated ? sim::world::GeneratedClaimPrefix(pod.name)
                                                 : claim.claim);
  });
}

bool DeviceChecks::IsUsed(const ClaimFacts& claim) const {
  return std::any_of(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
    return entry.second.facts.active() && claim.IsReservedFor(entry.second.facts.uid);
  });
}

void DeviceChecks::WhileCalm(absl::Time calm_since) {
  const absl::Time now = time_->now();
  std::map<std::string, absl::Time> unused;
  for (const auto& [key, row] : truth_->devices().claims()) {
    if (!row.facts.allocated || IsUsed(row.facts)) continue;
    const auto former = unused_since_.find(key);
    const bool begins = former == unused_since_.end() || former->second < row.allocated_since;
    const absl::Time since = std::max(begins ? now : former->second, calm_since);
    unused[key] = since;
    if (now - since <= kClaimKept) continue;
    fail_("claims", absl::StrCat("claim ", key, " is allocated on ", row.facts.node, ", and for ",
                                 absl::FormatDuration(now - since),
                                 " no pod that it is reserved for has run"));
  }
  unused_since_ = std::move(unused);
}

}  // namespace fairlead::simtest
