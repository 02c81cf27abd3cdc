#include "core/extended_claims.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

// For how long a claim may be missing from the watch after it was made: it may be deleted again
// before it was ever seen.
constexpr absl::Duration kShownWithin = absl::Minutes(1);

}  // namespace

std::string ExtendedClaims::ClaimKey(const Held& held) {
  return held.write.claim.empty() ? "" : model::Key(held.write.ns, held.write.claim);
}

void ExtendedClaims::Hold(model::BindPod bind, model::SetExtendedClaim write) {
  const std::string pod = model::Key(bind.ns, bind.name);
  held_.insert_or_assign(pod,
                         Held{std::move(bind), std::move(write), {}, absl::InfiniteFuture(), ""});
}

void ExtendedClaims::Drop(absl::string_view ns, absl::string_view name, absl::string_view uid) {
  const auto held = held_.find(model::Key(ns, name));
  if (held == held_.end() || (!uid.empty() && held->second.bind.uid != uid)) return;
  held_.erase(held);
}

void ExtendedClaims::Answered(const InFlightExtendedClaim& sent, const absl::Status& status,
                              absl::Time now) {
  const auto at = held_.find(sent.pod);
  if (at == held_.end() || at->second.bind.uid != sent.uid) return;
  Held& held = at->second;
  // The answer may be to a binding before this one.
  if (held.write.claim != sent.claim || !held.attempts.in_flight()) return;
  const fairlead::Outcome outcome = held.attempts.Answered(status, now, rules_);
  if (outcome == fairlead::Outcome::kDone) held.written_at = now;
  if (outcome == fairlead::Outcome::kRefused && !held.attempts.IsPutOff(status))
    held.failure = std::string(status.message());
}

bool ExtendedClaims::IsDue(const Held& held, absl::Time now, IsShown is_shown) {
  if (!held.failure.empty()) return true;
  if (IsWritten(held)) {
    return held.write.claim.empty() || is_shown(ClaimKey(held)) ||
           now >= held.written_at + kShownWithin;
  }
  return !held.attempts.in_flight() && held.attempts.MayGo(now);
}

bool ExtendedClaims::HasWork(absl::Time now, IsShown is_shown) const {
  return std::any_of(held_.begin(), held_.end(),
                     [&](const auto& entry) { return IsDue(entry.second, now, is_shown); });
}

absl::Time ExtendedClaims::wake_at() const {
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& [pod, held] : held_) {
    earliest =
        std::min(earliest, IsWritten(held) ? held.written_at + kShownWithin : held.attempts.due());
  }
  return earliest;
}

BindingPlugin::Progress ExtendedClaims::Step(absl::Time now, IsShown is_shown) {
  BindingPlugin::Progress progress;
  for (auto at = held_.begin(); at != held_.end();) {
    Held& held = at->second;
    if (!IsDue(held, now, is_shown)) {
      ++at;
      continue;
    }
    const bool bare = held.write.claim.empty();
    if (held.failure.empty() && IsWritten(held) && !bare && !is_shown(ClaimKey(held))) {
      held.failure = absl::StrCat("ResourceClaim ", ClaimKey(held),
                                  " was made, but the API server does not show it");
    }
    if (!held.failure.empty()) {
      const model::BindPod& bind = held.bind;
      progress.failed.push_back({bind.ns, bind.name, bind.uid, std::move(held.failure)});
    } else if (IsWritten(held)) {
      progress.reserved.push_back(std::move(held.bind));
    } else {
      held.attempts.Sent(now, rules_);
      progress.actions.push_back({0, held.write});
      ++at;
      continue;
    }
    at = held_.erase(at);
  }
  return progress;
}

}  // namespace fairlead::core
