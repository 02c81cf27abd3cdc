#include "core/claim_reservations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/model/device_conditions.h"

namespace fairlead::core {
namespace {

bool IsDecimal(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Versions of one kind are decimal numbers that grow (scheduler/model/resource_version.h). False if
// they cannot be compared.
bool IsAtLeast(absl::string_view version, absl::string_view other) {
  if (version == other) return !version.empty();
  if (!IsDecimal(version) || !IsDecimal(other)) return false;
  if (version.size() != other.size()) return version.size() > other.size();
  return version > other;
}

bool SameDevices(const std::vector<model::AllocatedDevice>& a,
                 const std::vector<model::AllocatedDevice>& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const model::AllocatedDevice& device) {
           return std::any_of(b.begin(), b.end(), [&](const model::AllocatedDevice& other) {
             return device.request == other.request && device.driver == other.driver &&
                    device.pool == other.pool && device.device == other.device;
           });
         });
}

std::vector<model::ReserveClaim::Consumer> Consumers(
    const std::map<std::string, model::ReserveClaim::Consumer>& pods) {
  std::vector<model::ReserveClaim::Consumer> out;
  out.reserve(pods.size());
  for (const auto& [key, pod] : pods) out.push_back(pod);
  return out;
}

}  // namespace

// ---- events from the watch ----------------------------------------------------------------------

// The claim as the server has it, or will have it.
model::ResourceClaim ClaimReservations::Assumed(const Entry& entry) {
  model::ResourceClaim claim = entry.seen;
  claim.allocated = true;
  claim.devices = entry.allocation.devices;
  claim.node_terms = *entry.allocation.node_terms;
  for (const Pods* pods : {&entry.preparing, &entry.writing, &entry.waiting}) {
    for (const auto& [key, pod] : *pods) {
      if (!entry.seen.IsReservedFor(pod.uid)) claim.reserved_for.push_back(pod.uid);
    }
  }
  return claim;
}

bool ClaimReservations::IsShown(const Entry& entry) {
  return entry.seen.allocated || IsAtLeast(entry.seen.meta.resource_version, entry.written);
}

model::ResourceClaim ClaimReservations::Seen(const model::ResourceClaim& claim) {
  const std::string key = model::Key(claim.meta);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return claim;
  Entry& entry = at->second;
  const bool another = entry.gone || entry.seen.meta.uid != claim.meta.uid;
  entry.seen = claim;
  entry.gone = false;
  touched_.insert(key);
  if (another) {
    FailWaiting(entry, absl::StrCat("ResourceClaim ", key, " was deleted and created again"));
    entry.assumed = false;
    return claim;
  }
  if (entry.assumed && !IsShown(entry)) return Assumed(entry);
  entry.assumed = false;
  return claim;
}

void ClaimReservations::Gone(absl::string_view ns, absl::string_view name) {
  const std::string key = model::Key(ns, name);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  entry.gone = true;
  entry.assumed = false;
  FailWaiting(entry, absl::StrCat("ResourceClaim ", key, " is gone"));
  touched_.insert(key);
}

// ---- decisions ----------------------------------------------------------------------------------

void ClaimReservations::Hold(model::BindPod bind, std::vector<Claim> claims) {
  const std::string pod = model::Key(bind.ns, bind.name);
  const model::ReserveClaim::Consumer consumer{bind.name, bind.uid};
  Held& held = held_[pod];
  held.bind = std::move(bind);
  for (Claim& claim : claims) {
    const std::string key = model::Key(claim.object.meta);
    const auto [at, added] = entries_.try_emplace(key);
    Entry& entry = at->second;
    if (added) entry.seen = std::move(claim.object);
    // If none of our writes is under way, the state uses this allocation from now on.
    if (added || (!entry.assumed && !entry.write.in_flight() && entry.waiting.empty() &&
                  entry.preparing.empty())) {
      entry.allocation = std::move(claim.allocation);
      entry.allocation.node = held.bind.node;
    }
    entry.waiting[pod] = consumer;
    held.claims.insert(key);
    touched_.insert(key);
  }
  if (held.claims.empty()) ready_.insert(pod);
}

bool ClaimReservations::Holds(absl::string_view ns, absl::string_view name) const {
  return held_.contains(model::Key(ns, name));
}

void ClaimReservations::Drop(absl::string_view ns, absl::string_view name, absl::string_view uid) {
  const std::string pod = model::Key(ns, name);
  const auto held = held_.find(pod);
  if (held == held_.end() || (!uid.empty() && held->second.bind.uid != uid)) return;
  for (const std::string& key : held->second.claims) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) continue;
    at->second.waiting.erase(pod);
    at->second.writing.erase(pod);
    at->second.preparing.erase(pod);
    touched_.insert(key);
  }
  held_.erase(held);
  ready_.erase(pod);
}

void ClaimReservations::MarkReserved(const std::string& claim, Entry& entry, const std::string& pod,
                                     const model::ReserveClaim::Consumer& consumer) {
  if (!model::HasBindingConditions(entry.allocation.devices)) return MarkDone(claim, pod);
  entry.preparing[pod] = consumer;
  touched_.insert(claim);
}

void ClaimReservations::MarkDone(const std::string& claim, const std::string& pod) {
  const auto held = held_.find(pod);
  if (held == held_.end()) return;
  held->second.claims.erase(claim);
  if (held->second.claims.empty()) ready_.insert(pod);
}

void ClaimReservations::Fail(const std::string& pod, const std::string& reason) {
  const auto held = held_.find(pod);
  if (held == held_.end()) return;
  const model::BindPod bind = held->second.bind;
  Drop(bind.ns, bind.name);
  failed_.push_back({bind.ns, bind.name, bind.uid, reason});
}

void ClaimReservations::FailAll(const Pods& pods, const std::string& reason) {
  for (const auto& [key, pod] : pods) Fail(key, reason);
}

void ClaimReservations::FailWaiting(Entry& entry, const std::string& reason) {
  Pods pods = std::exchange(entry.waiting, {});
  pods.merge(std::exchange(entry.preparing, {}));
  FailAll(pods, reason);
}

// ---- answers ------------------------------------------------------------------------------------

void ClaimReservations::Unassume(Entry& entry) {
  if (!std::exchange(entry.assumed, false) || entry.gone) return;
  changed_.push_back(entry.seen);
}

void ClaimReservations::TakeRefusal(Entry& entry, const absl::Status& status) {
  Pods refused = std::exchange(entry.writing, {});
  if (entry.allocates) {
    refused.merge(entry.waiting);
    entry.waiting.clear();
    if (!entry.write.in_doubt()) Unassume(entry);
  }
  FailAll(refused, std::string(status.message()));
}

void ClaimReservations::Answered(const std::string& claim, bool reserved,
                                 const absl::Status& status, const std::string& version,
                                 absl::Time now) {
  const auto at = entries_.find(claim);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  if (!entry.write.in_flight() || entry.resolving == reserved) return;
  touched_.insert(claim);
  const bool read = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  const fairlead::Outcome outcome = entry.write.Answered(status, now, rules_);
  if (entry.gone) {
    entry.write.Settle();
    FailAll(std::exchange(entry.writing, {}), absl::StrCat("ResourceClaim ", claim, " is gone"));
  } else if (std::exchange(entry.resolving, false)) {
    // What is changed at the same time may be our own first write: it stays in doubt.
    if (status.ok() || absl::IsNotFound(status)) {
      entry.write.Settle();
      Unassume(entry);
    }
  } else if (outcome == fairlead::Outcome::kDone) {
    entry.write.Settle();
    if (entry.assumed) entry.written = version;
    for (const auto& [pod, consumer] : std::exchange(entry.writing, {})) {
      MarkReserved(claim, entry, pod, consumer);
    }
    if (entry.assumed && IsShown(entry)) Unassume(entry);
  } else if (OutcomeOf(status, entry.write.in_doubt() && absl::IsAborted(status)) ==
                 fairlead::Outcome::kUnknown ||
             entry.write.IsPutOff(status)) {
    entry.waiting.merge(entry.writing);
    entry.writing.clear();
  } else {
    TakeRefusal(entry, status);
    // The next pod asks at once: pods have their own pauses.
    if (read || !entry.write.in_doubt()) entry.write.Settle();
  }
}

// ---- output of a step ---------------------------------------------------------------------------

bool ClaimReservations::HasWork(absl::Time now) const {
  return !touched_.empty() || !ready_.empty() || !changed_.empty() || !failed_.empty() ||
         wake_at() <= now;
}

absl::Time ClaimReservations::wake_at() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [claim, at] : timers_) earliest = std::min(earliest, at);
  return earliest;
}

ClaimReservations::Outcome ClaimReservations::Step(absl::Time now) {
  Outcome out;
  out.claims = std::exchange(changed_, {});
  for (const auto& [claim, at] : timers_) {
    if (at <= now) touched_.insert(claim);
  }
  // A failing pod leaves claims, which are checked once more.
  while (!touched_.empty()) {
    for (const std::string& key : std::exchange(touched_, {})) Serve(key, now, out);
  }
  for (const std::string& pod : std::exchange(ready_, {})) {
    const auto held = held_.find(pod);
    out.bindings.push_back(std::move(held->second.bind));
    held_.erase(held);
  }
  out.failed = std::exchange(failed_, {});
  return out;
}

void ClaimReservations::Serve(const std::string& key, absl::Time now, Outcome& out) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  timers_.erase(key);
  if (entry.write.in_flight()) return;
  if (entry.seen.allocated) {
    const std::string why = !SameDevices(entry.seen.devices, entry.allocation.devices)
                                ? "it has been allocated otherwise"
                                : WhyHopeless(entry.seen, now);
    if (!why.empty()) FailWaiting(entry, absl::StrCat("ResourceClaim ", key, ": ", why));
    entry.write.Settle();
    for (auto pod = entry.waiting.begin(); pod != entry.waiting.end();) {
      if (!entry.seen.IsReservedFor(pod->second.uid)) {
        ++pod;
        continue;
      }
      MarkReserved(key, entry, pod->first, pod->second);
      pod = entry.waiting.erase(pod);
    }
  }
  ServePreparing(key, entry, now, out);
  if (entry.gone) entry.write.Settle();
  if (entry.write.Pauses(now)) return WakeAt(key, entry.write.due());
  if (!entry.waiting.empty()) {
    Write(entry, now, out);
  } else if (entry.write.in_doubt()) {
    Resolve(entry, now, out);
  } else if (!entry.assumed && entry.preparing.empty()) {
    entries_.erase(at);
  }
}

void ClaimReservations::WakeAt(const std::string& key, absl::Time at) {
  const auto [timer, added] = timers_.try_emplace(key, at);
  if (!added) timer->second = std::min(timer->second, at);
}

// ---- devices that become ready ------------------------------------------------------------------

absl::Time ClaimReservations::DeadlineOf(const Entry& entry) const {
  // A clock that is ahead of ours gives no more time.
  const absl::Time since =
      std::min(entry.seen.allocated_at.value_or(entry.preparing_since), entry.preparing_since);
  return since + binding_timeout_;
}

std::string ClaimReservations::WhyHopeless(const model::ResourceClaim& claim,
                                           absl::Time now) const {
  if (!model::HasBindingConditions(claim.devices)) return "";
  const model::DeviceReadiness readiness = model::ReadinessOf(claim);
  if (readiness.IsReady() || !readiness.failure.empty()) return readiness.failure;
  const bool late = claim.allocated_at.has_value() && *claim.allocated_at + binding_timeout_ <= now;
  return late ? WhyLate(readiness.awaited) : "";
}

std::string ClaimReservations::WhyLate(absl::string_view awaited) const {
  return absl::StrCat("not ready ", absl::FormatDuration(binding_timeout_),
                      " after its allocation: ", awaited);
}

void ClaimReservations::ServePreparing(const std::string& key, Entry& entry, absl::Time now,
                                       Outcome& out) {
  if (entry.preparing.empty()) {
    entry.preparing_since = absl::InfiniteFuture();
    return;
  }
  entry.preparing_since = std::min(entry.preparing_since, now);
  if (!entry.seen.allocated && !entry.assumed) {
    return FailWaiting(entry, absl::StrCat("ResourceClaim ", key, " is no longer allocated"));
  }
  std::string awaited = "its devices";  // while the watch does not show the allocation
  if (entry.seen.allocated) awaited = model::ReadinessOf(entry.seen).awaited;
  if (awaited.empty()) {
    for (const auto& [pod, consumer] : std::exchange(entry.preparing, {})) MarkDone(key, pod);
    return;
  }
  if (DeadlineOf(entry) <= now) {
    return FailWaiting(entry, absl::StrCat("ResourceClaim ", key, ": ", WhyLate(awaited)));
  }
  WakeAt(key, DeadlineOf(entry));
  TellPreparing(entry, out);
}

void ClaimReservations::TellPreparing(const Entry& entry, Outcome& out) {
  for (const auto& [pod, consumer] : entry.preparing) {
    const auto held = held_.find(pod);
    if (held == held_.end() || std::exchange(held->second.told, true)) continue;
    const model::BindPod& bind = held->second.bind;
    out.preparing.push_back({bind.ns, bind.name, bind.node});
  }
}

void ClaimReservations::Write(Entry& entry, absl::Time now, Outcome& out) const {
  model::ReserveClaim write;
  write.ns = entry.seen.meta.ns;
  write.name = entry.seen.meta.name;
  write.uid = entry.seen.meta.uid;
  const bool is_newer = IsAtLeast(entry.written, entry.seen.meta.resource_version);
  write.resource_version = is_newer ? entry.written : entry.seen.meta.resource_version;
  write.finalizers = entry.seen.finalizers;
  // A successful write counts although the watch is late.
  entry.allocates = !entry.seen.allocated &&
                    !(entry.assumed && !entry.written.empty() && !entry.write.in_doubt());
  write.allocate = entry.allocates;
  write.allocation = entry.allocation;
  write.pods = Consumers(entry.waiting);
  entry.writing = std::exchange(entry.waiting, {});
  entry.write.Sent(now, rules_);
  if (entry.allocates) {
    entry.assumed = true;
    entry.written.clear();
    out.claims.push_back(Assumed(entry));
  }
  out.actions.push_back({0, std::move(write)});
}

// No pod wants the claim any more, and the write may have happened.
void ClaimReservations::Resolve(Entry& entry, absl::Time now, Outcome& out) const {
  entry.resolving = true;
  entry.write.Sent(now, rules_);
  out.actions.push_back(
      {0, model::DeallocateClaim{entry.seen.meta.ns, entry.seen.meta.name, entry.seen.meta.uid,
                                 entry.seen.meta.resource_version}});
}

}  // namespace fairlead::core
