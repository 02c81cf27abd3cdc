#include "cmd/simtest/volume_checks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::PodFacts;
using sim::world::PodRow;
using sim::world::PodVolume;
using sim::world::ResourceType;
using sim::world::TruthVolumes;
using sim::world::VolumeClaimFacts;
using sim::world::VolumeClaimRow;
using sim::world::VolumeFacts;
using sim::world::VolumeRow;

VolumeChecks::VolumeChecks(const ApiServer* server, const sim::world::Truth* truth, Fail fail)
    : server_(server), truth_(truth), fail_(std::move(fail)) {}

void VolumeChecks::OnWrite(const ApiServer::Commit& commit, absl::Time known) {
  if (commit.before == nullptr || commit.after == nullptr) return;
  if (commit.type == ResourceType::kPersistentVolumeClaims) {
    OnClaim(sim::world::ReadVolumeClaim(*commit.before),
            sim::world::ReadVolumeClaim(*commit.after));
  } else if (commit.type == ResourceType::kPersistentVolumes) {
    OnVolume(sim::world::ReadVolume(*commit.before), sim::world::ReadVolume(*commit.after), known);
  }
}

// Each write has the version as precondition: nothing that others did excuses it.
void VolumeChecks::OnClaim(const VolumeClaimFacts& before, const VolumeClaimFacts& after) {
  if (before.selected_node == after.selected_node) return;
  if (!before.selected_node.empty()) {
    fail_("volumes", absl::StrCat("claim ", after.key(), " had node ", before.selected_node,
                                  " selected, and gets ", after.selected_node));
  }
  if (!before.volume.empty()) {
    fail_("volumes", absl::StrCat("claim ", after.key(), " gets node ", after.selected_node,
                                  " selected, and has volume ", before.volume));
  }
}

void VolumeChecks::OnVolume(const VolumeFacts& before, const VolumeFacts& after, absl::Time known) {
  const std::string key = absl::StrCat(after.claim_ns, "/", after.claim_name);
  if (!before.claim_name.empty() &&
      (absl::StrCat(before.claim_ns, "/", before.claim_name) != key ||
       (!before.claim_uid.empty() && before.claim_uid != after.claim_uid))) {
    fail_("volumes", absl::StrCat("volume ", after.name, " is given to claim ", key,
                                  ", and is of claim ", before.claim_ns, "/", before.claim_name));
  }
  if (!before.claim_name.empty() || after.claim_name.empty()) return;
  const VolumeClaimRow* const claim = truth_->volumes().FindClaim(after.claim_ns, after.claim_name);
  if (claim == nullptr || claim->changed_at >= known) return;
  if (!after.Satisfies(claim->facts.ask)) {
    fail_("volumes", absl::StrCat("volume ", after.name, " is given to claim ", key,
                                  ", which asks for another class, mode or size"));
  }
  for (const auto& [name, other] : truth_->volumes().volumes()) {
    if (name == after.name || !other.facts.IsOf(claim->facts)) continue;
    fail_("volumes", absl::StrCat("claim ", key, " is given volume ", after.name, ", and volume ",
                                  name, " is its too"));
  }
}

std::string VolumeChecks::Wrong(const PodRow& row, const PodVolume& named, absl::Time known) const {
  const PodFacts& pod = row.facts;
  const TruthVolumes& volumes = truth_->volumes();
  const VolumeClaimRow* const claim = volumes.FindClaim(pod.ns, named.claim);
  const VolumeRow* const volume =
      claim == nullptr ? nullptr : volumes.FindVolume(claim->facts.volume);
  if (claim == nullptr || !claim->facts.bound || volume == nullptr) {
    if (volumes.WasBoundSince(pod.ns, named.claim, known)) return "";
    return absl::StrCat("claim ", named.claim, " is not bound");
  }
  const auto node = truth_->nodes().find(pod.node);
  if (node != truth_->nodes().end() && node->second.labels_changed_at < known &&
      volume->changed_at < known && !volume->facts.IsUsableOn(node->second.facts.labels)) {
    return absl::StrCat("volume ", volume->facts.name, " of claim ", named.claim,
                        " cannot be used there");
  }
  const std::string user =
      claim->facts.IsForOnePod() ? truth_->VolumeUser(row, named.claim) : std::string();
  if (!user.empty()) {
    return absl::StrCat("claim ", named.claim, " is for one pod at a time, and of pod ", user);
  }
  return "";
}

void VolumeChecks::OnBinding(const PodRow& row, absl::Time known) {
  const PodFacts& pod = row.facts;
  if (!pod.ours || pod.volumes.empty()) return;
  bool attaches = false;
  for (const PodVolume& volume : pod.volumes) {
    const std::string wrong = Wrong(row, volume, known);
    if (!wrong.empty()) {
      fail_("volumes", absl::StrCat("pod ", pod.key(), " is bound to ", pod.node, ": ", wrong));
    }
    const VolumeClaimRow* const claim = truth_->volumes().FindClaim(pod.ns, volume.claim);
    attaches = attaches || (claim != nullptr && truth_->volumes().IsAttached(claim->facts));
  }
  const std::optional<TruthVolumes::Limit> limit = truth_->volumes().LimitOf(pod.node);
  if (!attaches || !limit.has_value() || limit->changed_at >= known) return;
  const auto attached = static_cast<int64_t>(truth_->AttachedTo(pod.node).size());
  if (attached <= limit->volumes) return;
  fail_("volumes",
        absl::StrCat("pod ", pod.key(), " is bound to ", pod.node, ": ", attached,
                     " volumes are attached there, and at most ", limit->volumes, " may be"));
}

bool VolumeChecks::IsRefused(const PodFacts& pod) const {
  if (pod.volumes.empty() || !server_->RefusesAnyClaim()) return false;
  return std::any_of(pod.volumes.begin(), pod.volumes.end(),
                     [&](const PodVolume& volume) { return server_->RefusesClaim(volume.claim); });
}

std::set<std::string> VolumeChecks::AwaitingSince(absl::Time since) const {
  std::set<std::string> pods;
  if (truth_->volumes().claims().empty()) return pods;
  for (const sim::world::Workload& workload : truth_->Waiting()) {
    if (!truth_->AwaitsVolumes(workload, since)) continue;
    for (const PodRow* row : workload.waiting) pods.insert(row->facts.key());
  }
  return pods;
}

}  // namespace fairlead::simtest
