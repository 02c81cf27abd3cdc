#include "core/reconcile/evictions.h"

#include <algorithm>
#include <utility>

namespace fairlead::core {
namespace {

constexpr size_t kRefusalsBeforeTrim = 1024;

}  // namespace

void Evictions::Add(std::vector<Victim> set) {
  if (set.empty()) return;
  queued_ += set.size();
  Set& added = sets_[next_set_++];
  added.purpose = std::make_shared<Purpose>();
  added.purpose->for_workload = set.front().for_workload;
  added.purpose->cause = set.front().cause;
  for (Victim& victim : set) {
    (victim.may_be_refused ? added.first : added.rest).push_back(std::move(victim));
  }
}

void Evictions::Settle() {
  for (auto& [id, set] : sets_) set.fresh = false;
}

std::vector<Evictions::Pruned> Evictions::Prune(
    const std::function<bool(const Purpose&, const model::EvictPod&)>& serves) {
  std::vector<Pruned> pruned;
  for (auto it = sets_.begin(); it != sets_.end();) {
    Set& set = it->second;
    if (set.fresh) {
      ++it;
      continue;
    }
    Pruned of_set{{}, set.purpose};
    for (std::deque<Victim>* line : {&set.first, &set.rest}) {
      const auto stays = [&](const Victim& v) { return serves(*set.purpose, v.evict); };
      if (std::all_of(line->begin(), line->end(), stays)) continue;
      for (Victim& victim : std::exchange(*line, {})) {
        if (stays(victim)) {
          line->push_back(std::move(victim));
        } else {
          of_set.victims.push_back(std::move(victim.evict));
        }
      }
    }
    queued_ -= of_set.victims.size();
    const bool over = set.unanswered == 0 && set.first.empty() && set.rest.empty();
    it = over ? sets_.erase(it) : std::next(it);
    if (!of_set.victims.empty()) pruned.push_back(std::move(of_set));
  }
  return pruned;
}

void Evictions::Spare(Set& set, std::vector<model::EvictPod>& spared) {
  for (std::deque<Victim>* line : {&set.first, &set.rest}) {
    queued_ -= line->size();
    for (Victim& victim : *line) spared.push_back(std::move(victim.evict));
    line->clear();
  }
}

const Evictions::Purpose* Evictions::PurposeOf(absl::string_view uid) const {
  const auto found = purposes_.find(uid);
  return found == purposes_.end() ? nullptr : found->second.get();
}

void Evictions::Forget(absl::string_view uid) {
  const auto found = purposes_.find(uid);
  if (found != purposes_.end()) purposes_.erase(found);
}

bool Evictions::MayGo(absl::Time now) {
  if (options_.max_in_flight != model::kUnlimited &&
      static_cast<int64_t>(in_flight_.size()) >= options_.max_in_flight) {
    return false;  // an answer wakes us
  }
  if (options_.per_second <= 0) return true;
  const int64_t burst =
      std::max<int64_t>(1, options_.burst > 0 ? options_.burst : options_.per_second);
  const absl::Duration each = absl::Seconds(1) / options_.per_second;
  const absl::Time from = filled_until_ - (burst - 1) * each;
  if (from <= now) return true;
  wake_at_ = from;
  return false;
}

void Evictions::TakePlace(absl::Time now) {
  if (options_.per_second <= 0) return;
  filled_until_ = std::max(filled_until_, now) + absl::Seconds(1) / options_.per_second;
}

bool Evictions::SendGang(uint64_t id, Set& set, std::deque<Victim>& line, absl::Time now,
                         const std::function<bool(const Victim&)>& wanted,
                         std::vector<model::EvictPod>& out) {
  const bool is_first = &line == &set.first;
  const uint64_t gang = line.front().gang;
  bool begun = false;
  while (!line.empty() && line.front().gang == gang) {
    if (!wanted(line.front())) {
      line.pop_front();
      --queued_;
      continue;
    }
    if (!begun && !MayGo(now)) return false;
    begun = true;
    TakePlace(now);
    in_flight_[line.front().evict.uid] = is_first ? id : kNoSet;
    purposes_[line.front().evict.uid] = set.purpose;
    if (is_first) ++set.unanswered;
    out.push_back(std::move(line.front().evict));
    line.pop_front();
    --queued_;
  }
  return true;
}

std::vector<model::EvictPod> Evictions::TakeDue(absl::Time now,
                                                const std::function<bool(const Victim&)>& wanted) {
  std::vector<model::EvictPod> out;
  wake_at_ = absl::InfiniteFuture();
  for (auto it = sets_.begin(); it != sets_.end();) {
    Set& set = it->second;
    while (!set.first.empty()) {
      if (!SendGang(it->first, set, set.first, now, wanted, out)) return out;
    }
    while (set.unanswered == 0 && !set.rest.empty()) {
      if (!SendGang(it->first, set, set.rest, now, wanted, out)) return out;
    }
    it = set.unanswered == 0 ? sets_.erase(it) : std::next(it);
  }
  return out;
}

uint64_t Evictions::Release(absl::string_view uid) {
  const auto found = in_flight_.find(uid);
  if (found == in_flight_.end()) return kNoSet;
  const uint64_t set = found->second;
  in_flight_.erase(found);
  return set;
}

void Evictions::Unknown(absl::string_view uid) {
  // Victims that wait for the answer wait no longer: the pod may be going.
  const auto set = sets_.find(Release(uid));
  if (set != sets_.end()) --set->second.unanswered;
}

void Evictions::Accepted(absl::string_view uid) {
  Unknown(uid);
  Forget(uid);
}

std::vector<model::EvictPod> Evictions::Refused(absl::string_view uid, absl::Time now,
                                                absl::Time& until) {
  if (refusals_.size() >= kRefusalsBeforeTrim) {
    absl::erase_if(refusals_, [&](const auto& entry) {
      return entry.second.until + options_.backoff_max < now;
    });
  }
  Refusal& refusal = refusals_.try_emplace(std::string(uid), Refusal{now}).first->second;
  if (refusal.until + options_.backoff_max < now) refusal.in_a_row = 0;
  const Backoff backoff = {options_.backoff_initial, options_.backoff_max};
  until = refusal.until = now + backoff.Pause(++refusal.in_a_row);

  Forget(uid);
  std::vector<model::EvictPod> spared;
  const auto found = sets_.find(Release(uid));
  if (found == sets_.end()) return spared;
  --found->second.unanswered;
  Spare(found->second, spared);
  return spared;
}

}  // namespace fairlead::core
