#include "core/gpu_reservations.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "scheduler/model/resources.h"

namespace fairlead::core {
namespace {

// The watch is rarely later than this.
constexpr absl::Duration kUnseenGrace = absl::Seconds(5);
// An accepted deletion whose effect the watch does not show is repeated after this.
constexpr Backoff kUndeleted = {absl::Minutes(1), absl::Minutes(5)};
constexpr char kVisibleDevices[] = "NVIDIA_VISIBLE_DEVICES";

bool IsOver(const model::Pod& pod) {
  return pod.phase == model::PodPhase::kSucceeded || pod.phase == model::PodPhase::kFailed;
}

// Group ids that the labels name, sorted. LABEL=g for one device, LABEL/g=g for each of several.
std::vector<std::string> NamedGroups(const model::StringMap& labels) {
  std::vector<std::string> groups;
  for (const auto& [key, value] : labels) {
    absl::string_view rest = key;
    if (value.empty() || !absl::ConsumePrefix(&rest, model::kGpuGroupLabel)) continue;
    if (rest.empty() || rest.front() == '/') groups.push_back(value);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

// The config maps, recognised by their prefix, that KAI's webhook adds to a container and that it
// requires.
std::vector<std::string> KaiConfigMaps(const model::Pod& pod) {
  std::vector<std::string> names;
  const absl::string_view prefix = pod.meta.annotations.Get(model::kSharedGpuConfigMapAnnotation);
  if (prefix.empty()) return names;
  for (const std::string& name : pod.spec.config_map_names) {
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, prefix) && absl::StartsWith(rest, "-")) names.push_back(name);
  }
  return names;
}

// Adds the key, or removes it; true if that changes the set.
template <typename Key>
bool SetMember(std::set<Key>& keys, const Key& key, bool is) {
  return is ? keys.insert(key).second : keys.erase(key) > 0;
}

}  // namespace

std::string ReservationName(absl::string_view node, absl::string_view group) {
  return absl::StrCat("gpu-reservation-", StableHash().Add(node).Add(group).Hex().substr(0, 16));
}

std::string GpuReservations::NameOf(const std::string& node, const std::string& group) const {
  return UsedName(options_.derived_names.get(), ReservationName(node, group));
}

std::string GpuReservations::Sharer::DeviceOf(const std::string& group) const {
  const auto at = std::lower_bound(groups.begin(), groups.end(), group);
  if (!Ours() || at == groups.end() || *at != group) return "";
  return devices[static_cast<size_t>(at - groups.begin())];
}

const GpuReservations::Reservation* GpuReservations::Live(const Group& group) {
  const Reservation* best = nullptr;
  for (const auto& [name, pod] : group.pods) {
    if (pod.failed || pod.Leaving()) continue;
    const auto rank = [](const Reservation& r) { return std::pair(r.device.empty(), r.creation); };
    if (best == nullptr || rank(pod) < rank(*best)) best = &pod;
  }
  return best;
}

// ---- events from the watch ----------------------------------------------------------------------

bool GpuReservations::IsEmpty(const GroupKey& key) const {
  if (named_.contains(key.second) || closed_.contains(key) || coming_.contains(key)) return false;
  const auto at = groups_.find(key);
  if (at == groups_.end()) return true;
  const Group& group = at->second;
  return group.pods.empty() && group.waiting.empty() && !group.creation.started() &&
         group.timer == absl::InfiniteFuture();
}

void GpuReservations::Trim() {
  if (touched_.size() < trim_at_) return;
  std::erase_if(touched_, [this](const GroupKey& key) {
    if (!IsEmpty(key)) return false;
    groups_.erase(key);
    return true;
  });
  trim_at_ = std::max(kTrimFrom, 2 * touched_.size());
}

void GpuReservations::PodChanged(const model::Pod& pod) {
  if (!options_.enabled) return;
  Trim();
  if (pod.meta.ns == options_.ns) return ReservationChanged(pod);
  std::vector<std::string> groups;
  if (!IsOver(pod)) groups = NamedGroups(pod.meta.labels);
  // Most pods do not use shared GPUs.
  if (groups.empty() && !pod.spec.gpu_share.IsSet() && sharers_.empty()) return;
  const std::string key = model::Key(pod.meta);
  SharerChanged(key, pod, std::move(groups));
  if (!pod.node_name.empty()) ForgetSent(key);
  if (pod.node_name.empty() && pod.spec.gpu_share.IsSet() && !IsOver(pod)) {
    std::vector<std::string> names = KaiConfigMaps(pod);
    if (!names.empty()) {
      config_maps_[key] = std::move(names);
      return;
    }
  }
  if (!config_maps_.empty()) config_maps_.erase(key);
}

void GpuReservations::PodGone(absl::string_view ns, absl::string_view name, absl::string_view uid) {
  if (!options_.enabled) return;
  const std::string key = model::Key(ns, name);
  if (ns == options_.ns) {
    const auto at = group_of_reservation_.find(std::string(name));
    if (at == group_of_reservation_.end()) return;
    const Reservation& pod = groups_[at->second].pods.at(std::string(name));
    if (uid.empty() || pod.uid == uid) ReservationGone(std::string(name), /*ended=*/true);
    return;
  }
  const auto sharer = sharers_.find(key);
  if (sharer != sharers_.end() && (uid.empty() || sharer->second.uid == uid)) SharerGone(key);
  config_maps_.erase(key);
  ForgetSent(key);
  const auto held = held_.find(key);
  if (held != held_.end() && (uid.empty() || held->second.bind.uid == uid)) Release(held);
}

void GpuReservations::NodeGone(absl::string_view node) {
  std::vector<std::string> lost;
  for (const auto& [key, held] : held_) {
    if (held.bind.node == node) lost.push_back(key);
  }
  for (const std::string& key : lost) Fail(key, absl::StrCat("node ", node, " is gone"));
}

void GpuReservations::ReservationChanged(const model::Pod& pod) {
  const std::string& name = pod.meta.name;
  const std::string group(pod.meta.labels.Get(model::kGpuGroupLabel));
  const bool is_one = !group.empty() && !pod.node_name.empty() &&
                      model::Get(pod.spec.requests, model::kGpuName) > 0;
  const GroupKey key{pod.node_name, group};
  const auto known = group_of_reservation_.find(name);
  if (known != group_of_reservation_.end()) {
    const bool same =
        is_one && known->second == key && groups_[known->second].pods.at(name).uid == pod.meta.uid;
    if (!same) ReservationGone(name, /*ended=*/false);
  }
  if (!is_one) return;
  group_of_reservation_[name] = key;
  Group& entry = groups_[key];
  Reservation& row = entry.pods[name];
  const bool was_live = !row.uid.empty() && !row.failed && !row.Leaving();
  row.uid = pod.meta.uid;
  row.creation = pod.meta.creation;
  row.device = std::string(pod.meta.annotations.Get(model::kGpuIndexAnnotation));
  if (absl::StrContains(row.device, ',')) row.device.clear();  // one GPU is requested
  row.ours = name == NameOf(key.first, key.second);
  row.ending = pod.meta.deletion.has_value();
  row.failed = IsOver(pod);
  if (row.ours) {
    entry.creation.Settle();
    entry.unseen_since = absl::InfiniteFuture();
  }
  if (!row.device.empty() && !row.failed) entry.failures = 0;
  if (was_live && (row.ending || row.failed) && !row.device.empty()) TellLoss(key, name);
  Touch(key);
}

void GpuReservations::ReservationGone(const std::string& name, bool ended) {
  const auto at = group_of_reservation_.find(name);
  const GroupKey key = at->second;
  group_of_reservation_.erase(at);
  Group& group = groups_[key];
  const auto pod = group.pods.find(name);
  const Reservation last = pod->second;
  group.pods.erase(pod);
  if (!last.failed && !last.Leaving()) {
    if (!last.device.empty()) TellLoss(key, name);
    if (ended && last.device.empty()) {
      group.failed = true;
      FailWaiting(group, absl::StrCat("reservation pod ", name, " of the shared GPU ended on node ",
                                      key.first, " before it had its device"));
    }
    // Deleted, or ended and in the way.
    if (ended && speaks_) said_.push_back({0, model::DeletePod{options_.ns, name, last.uid}});
  }
  Touch(key);
}

void GpuReservations::TellLoss(const GroupKey& key, const std::string& pod) {
  const auto named = named_.find(key.second);
  if (!speaks_ || named == named_.end() || Live(groups_[key]) != nullptr) return;
  for (const std::string& sharer_key : named->second) {
    const Sharer& sharer = sharers_.at(sharer_key);
    if (sharer.node != key.first) continue;
    said_.push_back(
        {0, model::EmitEvent{model::Kind::kPod, sharer.ns, sharer.name, sharer.uid, true,
                             "GpuReservationLost",
                             absl::StrCat("Reservation pod ", model::Key(options_.ns, pod),
                                          " of this pod's shared GPU is gone; no pod joins the GPU "
                                          "until it is held again")}});
  }
}

void GpuReservations::SharerChanged(const std::string& key, const model::Pod& pod,
                                    std::vector<std::string> groups) {
  const auto known = sharers_.find(key);
  if (groups.empty()) {
    if (known != sharers_.end()) SharerGone(key);
    return;
  }
  const absl::string_view devices = pod.meta.annotations.Get(model::kVisibleDevicesAnnotation);
  Sharer sharer{pod.meta.ns, pod.meta.name, pod.meta.uid, pod.node_name, std::move(groups), {}};
  if (!devices.empty()) sharer.devices = absl::StrSplit(devices, ',');
  if (known != sharers_.end()) {
    const Sharer& former = known->second;
    if (former.uid == sharer.uid && former.node == sharer.node && former.groups == sharer.groups &&
        former.devices == sharer.devices) {
      return;
    }
    SharerGone(key);
  }
  for (const std::string& group : sharer.groups) {
    named_[group].insert(key);
    if (!sharer.node.empty()) Touch({sharer.node, group});
  }
  sharers_[key] = std::move(sharer);
}

void GpuReservations::SharerGone(const std::string& key) {
  const auto at = sharers_.find(key);
  for (const std::string& group : at->second.groups) {
    const auto named = named_.find(group);
    named->second.erase(key);
    if (named->second.empty()) named_.erase(named);
    if (!at->second.node.empty()) {
      Touch({at->second.node, group});
      continue;
    }
    for (const auto& [group_key, entry] : groups_) {
      if (group_key.second == group) Touch(group_key);  // whatever node it was meant for
    }
  }
  sharers_.erase(at);
}

// ---- decisions ----------------------------------------------------------------------------------

void GpuReservations::Hold(model::BindPod bind, std::vector<std::string> groups,
                           std::string portion) {
  std::sort(groups.begin(), groups.end());
  const std::string key = model::Key(bind.ns, bind.name);
  if (const auto former = held_.find(key); former != held_.end()) Release(former);
  for (const std::string& id : groups) {
    const GroupKey group_key{bind.node, id};
    Group& group = groups_[group_key];
    group.waiting.insert(key);
    group.creation.EndPause();  // the pod has its own pauses
    Touch(group_key);
  }
  held_[key] = Held{std::move(bind), std::move(groups), std::move(portion)};
  ready_.insert(key);
}

bool GpuReservations::Holds(absl::string_view ns, absl::string_view name) const {
  return !held_.empty() && held_.contains(model::Key(ns, name));
}

void GpuReservations::Drop(absl::string_view ns, absl::string_view name) {
  const std::string key = model::Key(ns, name);
  ForgetSent(key);
  const auto held = held_.find(key);
  if (held != held_.end()) Release(held);
}

void GpuReservations::ForgetSent(const std::string& key) {
  const auto sent = sent_.find(key);
  if (sent == sent_.end()) return;
  for (const std::string& id : sent->second.second) Touch({sent->second.first, id});
  sent_.erase(sent);
}

std::map<std::string, GpuReservations::Held>::iterator GpuReservations::Release(
    std::map<std::string, Held>::iterator held) {
  for (const std::string& id : held->second.groups) {
    const GroupKey key{held->second.bind.node, id};
    Group& group = groups_[key];
    group.waiting.erase(held->first);
    if (group.waiting.empty()) group.waiting_since = absl::InfiniteFuture();
    Touch(key);
  }
  return held_.erase(held);
}

void GpuReservations::Fail(const std::string& pod, std::string reason) {
  const auto held = held_.find(pod);
  const model::BindPod& bind = held->second.bind;
  failed_.push_back({bind.ns, bind.name, bind.uid, std::move(reason)});
  for (const std::string& id : held->second.groups) again_.insert({bind.node, id});
  Release(held);
}

void GpuReservations::FailWaiting(Group& group, const std::string& reason) {
  const std::set<std::string> waiting = group.waiting;
  for (const std::string& pod : waiting) Fail(pod, reason);
}

// ---- answers ------------------------------------------------------------------------------------

void GpuReservations::Created(const std::string& node, const std::string& group,
                              const absl::Status& status, absl::Time now) {
  const GroupKey key{node, group};
  const auto at = groups_.find(key);
  if (at == groups_.end()) return;
  Group& entry = at->second;
  const bool exists = absl::IsAlreadyExists(status);
  if (exists && !entry.pods.contains(NameOf(node, group))) entry.unseen_since = now;
  const fairlead::Outcome outcome =
      entry.creation.Answered(exists ? absl::OkStatus() : status, now, creation_rules_);
  if (outcome == fairlead::Outcome::kRefused && !entry.creation.IsPutOff(status)) {
    FailWaiting(entry, absl::StrCat("the reservation pod of the shared GPU was refused: ",
                                    status.message()));
  }
  Touch(key);
}

void GpuReservations::Deleted(const std::string& name, const absl::Status& status, absl::Time now) {
  const auto at = group_of_reservation_.find(name);
  if (at == group_of_reservation_.end()) return;
  groups_[at->second].pods.at(name).deletion.Answered(
      absl::IsNotFound(status) ? absl::OkStatus() : status, now,
      {.backoff = backoff_, .unseen = kUndeleted});
  Touch(at->second);
}

void GpuReservations::ConfigMapApplied(absl::string_view ns, absl::string_view pod,
                                       absl::string_view uid, const std::string& name,
                                       const absl::Status& status, absl::Time now) {
  const std::string key = model::Key(ns, pod);
  const auto held = held_.find(key);
  if (held == held_.end() || held->second.bind.uid != uid) return;
  const auto write = held->second.config_maps.find(name);
  if (write == held->second.config_maps.end()) return;
  if (write->second.Answered(status, now, {.backoff = backoff_}) == fairlead::Outcome::kRefused &&
      !write->second.IsPutOff(status)) {
    Fail(key, absl::StrCat("a config map of the shared GPU was not written: ", status.message()));
    return;
  }
  for (const std::string& id : held->second.groups) Touch({held->second.bind.node, id});
}

// ---- output of a step ---------------------------------------------------------------------------

bool GpuReservations::HasWork(absl::Time now) const {
  return !touched_.empty() || !ready_.empty() || !said_.empty() || !failed_.empty() ||
         wake_at() <= now;
}

absl::Time GpuReservations::wake_at() const {
  return timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first;
}

void GpuReservations::SetTimer(const GroupKey& key, Group& group, absl::Time at) {
  if (group.timer == at) return;
  if (group.timer != absl::InfiniteFuture()) timers_.erase({group.timer, key});
  group.timer = at;
  if (at != absl::InfiniteFuture()) timers_.insert({at, key});
}

GpuReservations::Outcome GpuReservations::Step(absl::Time now, const InUse& in_use) {
  Outcome out;
  speaks_ = true;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const GroupKey key = timers_.begin()->second;
    SetTimer(key, groups_[key], absl::InfiniteFuture());
    Touch(key);
  }
  // A failing pod leaves groups, which are checked once more.
  while (!touched_.empty()) {
    for (const GroupKey& key : std::exchange(touched_, {})) Serve(key, now, in_use, out);
  }
  for (const std::string& pod : std::exchange(ready_, {})) Advance(pod, now, out);
  touched_.merge(again_);
  again_.clear();
  std::move(said_.begin(), said_.end(), std::back_inserter(out.actions));
  said_.clear();
  out.failed = std::exchange(failed_, {});
  return out;
}

void GpuReservations::Serve(const GroupKey& key, absl::Time now, const InUse& in_use,
                            Outcome& out) {
  const auto at = groups_.try_emplace(key).first;
  Group& group = at->second;
  absl::Time due = absl::InfiniteFuture();
  for (auto& [name, pod] : group.pods) {
    if (pod.ending || (!pod.failed && !pod.deletion.open())) continue;
    if (!pod.Leaving()) {
      group.failed = true;
      FailWaiting(group, absl::StrCat("reservation pod ", name,
                                      " of the shared GPU failed on node ", key.first));
    }
    Delete(name, pod, now, due, out);
  }
  if (!group.pods.empty()) group.may_come_until = absl::InfinitePast();
  if (std::exchange(group.failed, false)) group.rest_until = now + backoff_.Pause(++group.failures);
  const bool named = named_.contains(key.second);
  const bool used = in_use(key.first, key.second);
  if (group.waiting.empty() && !named && !used) {
    Close(key, false, out);
    ServeIdle(group, now, due, out);
    const bool awaited =
        (group.creation.open() && due != absl::InfiniteFuture()) || now < group.may_come_until;
    TellComing(key, group.pods.empty() && awaited, out);
    SetTimer(key, group, due);
    if (group.pods.empty() && due == absl::InfiniteFuture()) groups_.erase(at);
    return;
  }
  // Told before the pods that failed give their parts back.
  TellComing(key, group.waiting.empty() && now < group.may_come_until, out);
  group.idle_since = absl::InfiniteFuture();
  const Reservation* live = Live(group);
  const std::string obstacle = Obstacle(key, live);
  Close(key, !obstacle.empty(), out);
  if (!obstacle.empty()) {
    FailWaiting(group, obstacle);
  } else if (live == nullptr || live->device.empty()) {
    ServeMissing(key, group, used, now, due, out);
  } else {
    group.waiting_since = absl::InfiniteFuture();
    ready_.insert(group.waiting.begin(), group.waiting.end());
    due = std::min(due, NextConfigMap(group, now));
  }
  SetTimer(key, group, due);
}

void GpuReservations::Close(const GroupKey& key, bool closed, Outcome& out) {
  if (SetMember(closed_, key, closed)) out.closings.push_back({key.first, key.second, closed});
}

void GpuReservations::TellComing(const GroupKey& key, bool comes, Outcome& out) {
  if (!SetMember(coming_, key, comes)) return;
  out.coming.push_back({options_.ns, NameOf(key.first, key.second), key.first, key.second, comes});
}

void GpuReservations::ServeIdle(Group& group, absl::Time now, absl::Time& due, Outcome& out) {
  if (group.pods.empty()) {
    // A creation in flight is awaited, and its pod deleted then.
    if (!group.creation.MayGo(now)) due = std::min(due, group.creation.due());
    if (now < group.may_come_until) due = std::min(due, group.may_come_until);
    return;
  }
  group.idle_since = std::min(group.idle_since, now);
  const absl::Time end = group.idle_since + options_.idle_grace;
  if (now < end) {
    due = std::min(due, end);
    return;
  }
  for (auto& [name, pod] : group.pods) Delete(name, pod, now, due, out);
}

bool GpuReservations::SharedByOurs(const GroupKey& key) const {
  const auto named = named_.find(key.second);
  return named != named_.end() &&
         std::any_of(named->second.begin(), named->second.end(), [&](const std::string& sharer) {
           return sharers_.at(sharer).Ours() && sharers_.at(sharer).node == key.first;
         });
}

// Handles a group with waiting or sharing pods and no reservation pod.
void GpuReservations::ServeMissing(const GroupKey& key, Group& group, bool used, absl::Time now,
                                   absl::Time& due, Outcome& out) {
  if (group.waiting.empty()) {
    if (!used || !SharedByOurs(key)) return;
  } else {
    group.waiting_since = std::min(group.waiting_since, now);
    const absl::Time end = group.waiting_since + options_.index_timeout;
    if (now >= end) {
      FailWaiting(group, absl::StrCat("the reservation pod of the shared GPU on node ", key.first,
                                      " did not get its device within ",
                                      absl::FormatDuration(options_.index_timeout)));
      if (group.creation.open()) group.may_come_until = now + kDoubtLasts;
      group.creation.Settle();
      for (auto& [name, pod] : group.pods) Delete(name, pod, now, due, out);
      return;
    }
    due = std::min(due, end);
  }
  const std::string name = NameOf(key.first, key.second);
  // A terminating pod still occupies the name.
  if (Live(group) != nullptr || group.pods.contains(name)) return;
  if (group.unseen_since + kUnseenGrace <= now) {
    out.actions.push_back({0, model::DeletePod{options_.ns, name, ""}});
    group.unseen_since = absl::InfiniteFuture();
    group.creation.Settle(now + backoff_.initial);
  }
  due = std::min(due, group.unseen_since + kUnseenGrace);
  absl::Time earliest = group.creation.due();
  if (group.waiting.empty()) earliest = std::max(earliest, group.rest_until);
  if (now < earliest) {
    due = std::min(due, earliest);
    return;
  }
  group.creation.Sent(now, creation_rules_);
  due = std::min(due, group.creation.due());
  out.actions.push_back({0, model::CreateGpuReservation{options_.ns, name, key.first, key.second,
                                                        options_.image, options_.service_account,
                                                        options_.runtime_class, options_.command}});
}

std::string GpuReservations::Obstacle(const GroupKey& key, const Reservation* live) const {
  const auto named = named_.find(key.second);
  if (named == named_.end()) return "";
  for (const std::string& sharer_key : named->second) {
    const Sharer& sharer = sharers_.at(sharer_key);
    if (sharer.node != key.first) continue;
    if (live == nullptr && !sharer.Ours()) {
      return absl::StrCat("pod ", sharer_key, " shares the GPU, but namespace ", options_.ns,
                          " has no reservation pod of it");
    }
    const std::string device = sharer.DeviceOf(key.second);
    if (live != nullptr && !live->device.empty() && !device.empty() && device != live->device) {
      return absl::StrCat("pod ", sharer_key, " has device ", device,
                          ", but the reservation pod of its GPU was given ", live->device);
    }
  }
  return "";
}

void GpuReservations::Delete(const std::string& name, Reservation& pod, absl::Time now,
                             absl::Time& due, Outcome& out) {
  if (pod.ending) return;
  if (!pod.deletion.MayGo(now)) {
    due = std::min(due, pod.deletion.due());
    return;
  }
  pod.deletion.Sent(now, {.backoff = backoff_, .unseen = kUndeleted});
  out.actions.push_back({0, model::DeletePod{options_.ns, name, pod.uid}});
}

// Advances a held binding: devices, config maps, then it is released.
void GpuReservations::Advance(const std::string& pod, absl::Time now, Outcome& out) {
  const auto at = held_.find(pod);
  if (at == held_.end()) return;
  Held& held = at->second;
  std::vector<std::string> devices;
  for (const std::string& id : held.groups) {
    const Reservation* live = Live(groups_[{held.bind.node, id}]);
    if (live == nullptr || live->device.empty()) return;
    devices.push_back(live->device);
  }
  const std::string visible = absl::StrJoin(devices, ",");
  if (const auto names = config_maps_.find(pod); names != config_maps_.end()) {
    for (const std::string& name : names->second) held.config_maps[name];
  }
  if (!WriteConfigMaps(held, visible, now, out)) return;
  model::BindPod bind = std::move(held.bind);
  held.bind.node = bind.node;
  for (const std::string& id : held.groups) {
    bind.labels.Set(held.groups.size() == 1 ? std::string(model::kGpuGroupLabel)
                                            : absl::StrCat(model::kGpuGroupLabel, "/", id),
                    id);
  }
  bind.annotations.Set(model::kReceivedResourceTypeAnnotation, "Fraction");
  bind.annotations.Set(model::kVisibleDevicesAnnotation, visible);
  bind.annotations.Set(model::kGpuPortionAnnotation, held.portion);
  sent_[pod] = {bind.node, held.groups};
  out.bindings.push_back(std::move(bind));
  Release(at);
}

// KAI's keys. The webhook chooses from which of the two maps a container reads the devices, so both
// have them.
bool GpuReservations::WriteConfigMaps(Held& held, const std::string& devices, absl::Time now,
                                      Outcome& out) const {
  if (held.told != devices) {
    for (const auto& [name, write] : held.config_maps) {
      if (write.in_flight()) return false;  // its answer would be taken for the next one's
    }
    for (auto& [name, write] : held.config_maps) write.Settle();
    held.told = devices;
  }
  bool done = true;
  for (auto& [name, write] : held.config_maps) {
    if (write.accepted()) continue;
    done = false;
    if (!write.MayGo(now)) continue;
    model::ApplyConfigMap apply{
        held.bind.ns, name, {{kVisibleDevices, devices}}, held.bind.name, held.bind.uid};
    if (!absl::EndsWith(name, "-evar")) {
      apply.data.Set("GPU_PORTION", held.portion);
      apply.data.Set("RUNAI_NUM_OF_GPUS", held.portion);
    }
    write.Sent(now, {.backoff = backoff_});
    out.actions.push_back({0, std::move(apply)});
  }
  return done;
}

absl::Time GpuReservations::NextConfigMap(const Group& group, absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const std::string& pod : group.waiting) {
    for (const auto& [name, write] : held_.at(pod).config_maps) {
      if (write.due() > now) next = std::min(next, write.due());
    }
  }
  return next;
}

}  // namespace fairlead::core
