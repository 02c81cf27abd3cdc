#include "core/volume_plugin.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "scheduler/model/resource_version.h"

namespace fairlead::core {
namespace {

// A write that was put off so often in a row counts as refused.

std::string ClaimText(const std::string& key) {
  return absl::StrCat("PersistentVolumeClaim ", key);
}

std::string VolumeText(const std::string& name) { return absl::StrCat("PersistentVolume ", name); }

bool IsNamedBy(const model::PersistentVolumeClaim& claim, const model::PersistentVolume& volume) {
  return volume.claim.has_value() && volume.claim->ns == claim.meta.ns &&
         volume.claim->name == claim.meta.name;
}

// The objects say what is decided. `volume`: the decided one; null: one is to be provisioned.
bool Shows(const model::PersistentVolumeClaim& claim, const model::PersistentVolume* volume,
           const std::string& node) {
  if (volume == nullptr) return claim.selected_node == node;
  return IsNamedBy(claim, *volume) && volume->claim->uid == claim.meta.uid;
}

std::string TakenAway(const state::VolumeClaimRow& row, const model::PersistentVolume* volume) {
  if (volume != nullptr) {
    return absl::StrCat(VolumeText(volume->meta.name), " no longer names ", ClaimText(row.key),
                        " in its claimRef");
  }
  return absl::StrCat("provisioning failed for ", ClaimText(row.key), ": ",
                      model::kSelectedNodeAnnotation, " is no longer node ", row.decided.node);
}

std::string DecidedOtherwise(const state::VolumeClaimRow& row) {
  return absl::StrCat(ClaimText(row.key), " has been decided otherwise");
}

}  // namespace

// ---- events from the watch ----------------------------------------------------------------------

void VolumePlugin::ClaimChanged(const std::string& key) {
  if (entries_.contains(key)) touched_.insert(key);
}

void VolumePlugin::VolumeChanged(const std::string& name) {
  const auto found = followers_.find(name);
  if (found != followers_.end()) touched_.insert(found->second.begin(), found->second.end());
}

void VolumePlugin::NodeGone(const std::string& name) {
  const state::NodeId id = state_.FindNode(name);
  if (id != state::kNoId && state_.node(id).exists) return;
  std::vector<std::string> pods;
  for (const auto& [pod, held] : held_) {
    if (held.bind.node == name) pods.push_back(pod);
  }
  for (const std::string& pod : pods) Fail(pod, absl::StrCat("node ", name, " is gone"));
}

void VolumePlugin::PodGone(const std::string& ns, const std::string& name, const std::string& uid) {
  const std::string pod = model::Key(ns, name);
  const auto held = held_.find(pod);
  if (held != held_.end() && (uid.empty() || held->second.bind.uid == uid)) Drop(pod);
}

// ---- decisions ----------------------------------------------------------------------------------

bool VolumePlugin::Needs(const state::PodRecord& pod) const {
  // The class is that of the decision.
  if (!state_.pod_class(pod.pod_class).spec->volume_needs->unbound.empty()) return true;
  const std::vector<state::VolumeClaimId>& claims = state_.VolumeClaimsOf(pod.id);
  return std::any_of(claims.begin(), claims.end(), [this](state::VolumeClaimId id) {
    return !state_.volumes().claim(id).object.IsBound();
  });
}

absl::Status VolumePlugin::Reserve(const state::PodRecord& pod, model::BindPod bind) {
  const std::string key = model::Key(bind.ns, bind.name);
  Drop(key);
  std::vector<const state::VolumeClaimRow*> rows;
  for (const state::VolumeClaimId id : state_.VolumeClaimsOf(pod.id)) {
    const state::VolumeClaimRow& row = state_.volumes().claim(id);
    if (!row.exists) {
      return absl::FailedPreconditionError(absl::StrCat(ClaimText(row.key), " is gone"));
    }
    if (!row.object.IsBound() && row.decided.node != bind.node) {
      return absl::FailedPreconditionError(
          absl::StrCat(ClaimText(row.key), " is not decided for node ", bind.node));
    }
    rows.push_back(&row);
  }
  Held& held = held_[key];
  held.bind = std::move(bind);
  arrived_.insert(key);
  for (const state::VolumeClaimRow* row : rows) {
    Entry& entry = entries_[row->key];
    const bool stands = entry.decided == row->decided || row->object.IsBound();
    if (!stands) FailAll(entry, DecidedOtherwise(*row));
    if (entry.pods.empty()) Begin(*row, entry);
    entry.pods.insert(key);
    held.claims.insert(row->key);
    touched_.insert(row->key);
  }
  if (held.claims.empty()) ready_.insert(key);
  return absl::OkStatus();
}

// The first pod that waits for the claim, or the first after others: what they relied on may have
// been decided otherwise since.
void VolumePlugin::Begin(const state::VolumeClaimRow& row, Entry& entry) {
  const state::VolumeRow* volume = state_.volumes().FindVolume(row.decided.volume);
  const std::string volume_uid = volume == nullptr ? "" : volume->object.meta.uid;
  const bool same = entry.decided == row.decided && entry.uid == row.object.meta.uid &&
                    entry.volume_uid == volume_uid;
  entry.shown = false;
  if (same) return;
  if (entry.write.in_flight()) {
    entry.outdated = true;
  } else {
    entry.write.Settle();
  }
  entry.decided = row.decided;
  entry.uid = row.object.meta.uid;
  entry.volume_uid = volume_uid;
  if (!entry.decided.volume.empty()) Follow(row.key, entry.decided.volume, entry);
}

void VolumePlugin::Follow(const std::string& key, const std::string& volume, Entry& entry) {
  if (entry.volumes.insert(volume).second) followers_[volume].insert(key);
}

void VolumePlugin::Forget(Entries::iterator at) {
  for (const std::string& volume : at->second.volumes) {
    const auto followers = followers_.find(volume);
    followers->second.erase(at->first);
    if (followers->second.empty()) followers_.erase(followers);
  }
  entries_.erase(at);
}

void VolumePlugin::SetTimer(const std::string& key, absl::Time at, Entry& entry) {
  timers_.erase({entry.timer, key});
  entry.timer = at;
  if (at != absl::InfiniteFuture()) timers_.insert({at, key});
}

void VolumePlugin::Unreserve(const std::string& ns, const std::string& name) {
  Drop(model::Key(ns, name));
}

void VolumePlugin::Drop(const std::string& pod) {
  const auto held = held_.find(pod);
  if (held == held_.end()) return;
  for (const std::string& claim : held->second.claims) {
    entries_.at(claim).pods.erase(pod);
    touched_.insert(claim);
  }
  deadlines_.erase({held->second.deadline, pod});
  arrived_.erase(pod);
  ready_.erase(pod);
  held_.erase(held);
}

void VolumePlugin::Fail(const std::string& pod, const std::string& reason) {
  const model::BindPod& bind = held_.at(pod).bind;
  failed_.push_back({bind.ns, bind.name, bind.uid, reason});
  Drop(pod);
}

void VolumePlugin::FailAll(const Entry& entry, const std::string& reason) {
  const std::set<std::string> pods = entry.pods;
  for (const std::string& pod : pods) Fail(pod, reason);
}

void VolumePlugin::MarkDone(const std::string& claim, const std::string& pod, Entry& entry) {
  entry.pods.erase(pod);
  Held& held = held_.at(pod);
  held.claims.erase(claim);
  if (held.claims.empty()) ready_.insert(pod);
}

// ---- answers ------------------------------------------------------------------------------------

void VolumePlugin::Answered(const std::string& claim, const absl::Status& status, absl::Time now) {
  const auto at = entries_.find(claim);
  if (at == entries_.end() || !at->second.write.in_flight()) return;
  Entry& entry = at->second;
  touched_.insert(claim);
  WriteAttempts::Rules rules = rules_;
  rules.believes_refusals = !absl::IsFailedPrecondition(status);
  const fairlead::Outcome outcome = entry.write.Answered(status, now, rules);
  if (std::exchange(entry.outdated, false) || entry.shown) {
    entry.write.Settle();  // nothing depends on it: the watch has decided, or the next decision
  } else if (outcome == fairlead::Outcome::kRefused) {
    if (!absl::IsCancelled(status) && entry.write.IsPutOff(status)) return;
    entry.write.Settle();
    if (!absl::IsCancelled(status)) FailAll(entry, std::string(status.message()));
  }
}

// ---- output of a step ---------------------------------------------------------------------------

bool VolumePlugin::HasWork(absl::Time now) const {
  return !touched_.empty() || !ready_.empty() || !failed_.empty() || !arrived_.empty() ||
         wake_at() <= now;
}

absl::Time VolumePlugin::wake_at() const {
  absl::Time at = absl::InfiniteFuture();
  if (!timers_.empty()) at = std::min(at, timers_.begin()->first);
  if (!deadlines_.empty()) at = std::min(at, deadlines_.begin()->first);
  return at;
}

BindingPlugin::Progress VolumePlugin::Advance(absl::Time now) {
  Progress out;
  for (const std::string& pod : std::exchange(arrived_, {})) {
    Held& held = held_.at(pod);
    held.deadline = now + timeout_;
    deadlines_.insert({held.deadline, pod});
  }
  for (const auto& [at, claim] : timers_) {
    if (at > now) break;
    touched_.insert(claim);
  }
  ServeTouched(now, out);
  ExpireHeld(now);
  ServeTouched(now, out);
  const std::set<std::string> ready = ready_;
  for (const std::string& pod : ready) {
    model::BindPod& bind = held_.at(pod).bind;
    if (const std::string why = WhyNotBound(bind); !why.empty()) {
      Fail(pod, why);
      continue;
    }
    out.reserved.push_back(std::move(bind));
    Drop(pod);
  }
  out.failed = std::exchange(failed_, {});
  return out;
}

// Claims that were bound may have changed while the pod waited for another one.
std::string VolumePlugin::WhyNotBound(const model::BindPod& bind) const {
  const state::PodId pod = state_.FindPod(bind.ns, bind.name);
  if (pod == state::kNoId) return "";
  for (const state::VolumeClaimId id : state_.VolumeClaimsOf(pod)) {
    const state::VolumeClaimRow& row = state_.volumes().claim(id);
    if (!row.exists || row.object.lost || !row.object.IsBound()) {
      return absl::StrCat(ClaimText(row.key), " is not bound any more");
    }
    const state::VolumeRow* volume = state_.volumes().FindVolume(row.object.volume_name);
    if (volume == nullptr || !Suits(volume->object, bind.node)) {
      return absl::StrCat(VolumeText(row.object.volume_name), " does not suit node ", bind.node);
    }
  }
  return "";
}

void VolumePlugin::ExpireHeld(absl::Time now) {
  std::vector<std::string> expired;
  for (const auto& [at, pod] : deadlines_) {
    if (at > now) break;
    if (!ready_.contains(pod)) expired.push_back(pod);
  }
  for (const std::string& pod : expired) {
    Fail(pod, absl::StrCat("binding volumes: timed out after ", absl::FormatDuration(timeout_),
                           ": ", ClaimText(*held_.at(pod).claims.begin()), " is not bound"));
  }
}

// A failing pod leaves claims, which are looked at once more.
void VolumePlugin::ServeTouched(absl::Time now, Progress& out) {
  while (!touched_.empty()) {
    for (const std::string& key : std::exchange(touched_, {})) Serve(key, now, out);
  }
}

std::string VolumePlugin::WhyLost(const std::string& key, const Entry& entry,
                                  const state::VolumeClaimRow* row) const {
  if (row == nullptr || !row->exists) return absl::StrCat(ClaimText(key), " is gone");
  if (row->object.meta.uid != entry.uid) {
    return absl::StrCat(ClaimText(key), " was deleted and created again");
  }
  if (row->object.lost) {
    return absl::StrCat(ClaimText(key), " has lost its volume ", row->object.volume_name);
  }
  return "";
}

void VolumePlugin::Serve(const std::string& key, absl::Time now, Progress& out) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  SetTimer(key, absl::InfiniteFuture(), entry);
  const state::VolumeClaimRow* row = state_.volumes().FindClaim(key);
  const std::string lost = WhyLost(key, entry, row);
  if (!lost.empty()) {
    FailAll(entry, lost);
    if (!entry.write.in_flight()) entry.write.Settle();
  } else if (row->object.volume_name.empty()) {
    ServeOpen(*row, entry, now, out);
  } else {
    ServeNamed(*row, entry);
  }
  // A write that was accepted is known until the watch shows it: for the next decision, too.
  const bool needed = entry.write.in_flight() || entry.write.accepted() || !entry.pods.empty();
  if (!needed) Forget(at);
}

void VolumePlugin::ServeNamed(const state::VolumeClaimRow& row, Entry& entry) {
  if (!entry.write.in_flight()) entry.write.Settle();
  const std::string& name = row.object.volume_name;
  Follow(row.key, name, entry);
  const state::VolumeRow* volume = state_.volumes().FindVolume(name);
  if (volume == nullptr) return;  // the watch of volumes is behind that of claims
  const std::set<std::string> pods = entry.pods;
  for (const std::string& pod : pods) {
    const std::string& node = held_.at(pod).bind.node;
    if (!Suits(volume->object, node)) {
      Fail(pod, absl::StrCat(VolumeText(name), " does not suit node ", node));
    } else if (row.object.IsBound()) {
      MarkDone(row.key, pod, entry);
    }
  }
}

const model::PersistentVolume* VolumePlugin::DecidedVolume(const Entry& entry) const {
  const state::VolumeRow* volume = state_.volumes().FindVolume(entry.decided.volume);
  const bool same = volume != nullptr && volume->object.meta.uid == entry.volume_uid;
  return same ? &volume->object : nullptr;
}

bool VolumePlugin::Suits(const model::PersistentVolume& volume, const std::string& node) const {
  if (!volume.has_node_affinity) return true;
  const state::NodeId id = state_.FindNode(node);
  if (id == state::kNoId) return false;
  const model::StringMap& labels = state_.node(id).object.meta.labels;
  return std::any_of(
      volume.node_terms.begin(), volume.node_terms.end(),
      [&](const model::NodeSelectorTerm& term) { return term.MatchesLabels(labels); });
}

std::string VolumePlugin::WhyNotWritten(const state::VolumeClaimRow& row,
                                        const model::PersistentVolume* volume) const {
  const model::PersistentVolumeClaim& claim = row.object;
  if (claim.meta.deletion.has_value()) {
    return absl::StrCat(ClaimText(row.key), " is being deleted");
  }
  if (volume != nullptr) {
    if (volume->meta.deletion.has_value()) {
      return absl::StrCat(VolumeText(volume->meta.name), " is being deleted");
    }
    const bool free =
        !volume->claim.has_value() || (IsNamedBy(claim, *volume) && volume->claim->uid.empty());
    if (free) return "";
    return absl::StrCat(VolumeText(volume->meta.name), " is for ",
                        ClaimText(model::Key(volume->claim->ns, volume->claim->name)));
  }
  if (!claim.selected_node.empty()) {
    return absl::StrCat(ClaimText(row.key), " is to be provisioned for node ", claim.selected_node);
  }
  const model::StorageClass* storage_class = state_.volumes().FindClass(claim.storage_class);
  const bool provisions = storage_class != nullptr && !storage_class->provisioner.empty() &&
                          storage_class->provisioner != model::kNoProvisioner;
  return provisions ? "" : absl::StrCat("nothing provisions a volume for ", ClaimText(row.key));
}

void VolumePlugin::ServeOpen(const state::VolumeClaimRow& row, Entry& entry, absl::Time now,
                             Progress& out) {
  const bool to_bind = !entry.decided.volume.empty();
  const model::PersistentVolume* volume = DecidedVolume(entry);
  if (to_bind && volume == nullptr) {
    if (!entry.write.in_flight()) entry.write.Settle();
    return FailAll(entry, absl::StrCat(VolumeText(entry.decided.volume), " is gone"));
  }
  if (to_bind && !Suits(*volume, entry.decided.node)) {
    FailAll(entry, absl::StrCat(VolumeText(entry.decided.volume), " does not suit node ",
                                entry.decided.node));
  }
  WriteAttempts& write = entry.write;
  if (Shows(row.object, volume, entry.decided.node)) {
    entry.shown = true;
    if (!write.in_flight()) write.Settle();
    return;  // until the controller has bound the claim
  }
  if (entry.shown) FailAll(entry, TakenAway(row, volume));
  if (write.in_flight()) return;
  const std::string& version =
      to_bind ? volume->meta.resource_version : row.object.meta.resource_version;
  const bool moved =
      model::CompareVersions(version, entry.sent_version) == model::VersionOrder::kNewer;
  if (write.accepted()) {
    if (!moved) return;
    write.Settle();
    FailAll(entry, TakenAway(row, volume));
  }
  if (entry.pods.empty()) return;
  if (write.in_doubt() && moved) write.Settle(write.due());
  if (const std::string why = WhyNotWritten(row, volume); !why.empty()) return FailAll(entry, why);
  if (row.decided != entry.decided) return FailAll(entry, DecidedOtherwise(row));
  if (write.MayGo(now)) {
    Write(row, volume, entry, now, out);
  } else {
    SetTimer(row.key, write.due(), entry);
  }
}

void VolumePlugin::Write(const state::VolumeClaimRow& row, const model::PersistentVolume* volume,
                         Entry& entry, absl::Time now, Progress& out) const {
  const model::ObjectMeta& claim = row.object.meta;
  if (volume == nullptr) {
    entry.sent_version = claim.resource_version;
    out.actions.push_back({0, model::SelectVolumeNode{claim.ns, claim.name, claim.uid,
                                                      claim.resource_version, entry.decided.node}});
  } else {
    entry.sent_version = volume->meta.resource_version;
    out.actions.push_back(
        {0, model::BindVolume{volume->meta.name, volume->meta.uid, volume->meta.resource_version,
                              claim.ns, claim.name, claim.uid, volume->claim.has_value()}});
  }
  entry.write.Sent(now, rules_);
}

}  // namespace fairlead::core
