#include "core/reconcile/evictions.h"

#include <algorithm>
#include <utility>

namespace fairlead::core {
uint64_t Evictions::Add(std::vector<Victim> set, bool held) {
  if (set.empty()) return kNoSet;
  queued_ += set.size();
  const uint64_t id = next_set_++;
  Set& added = sets_[id];
  added.held = held;
  added.purpose = std::make_shared<Purpose>();
  added.purpose->for_workload = set.front().for_workload;
  added.purpose->cause = set.front().cause;
  for (Victim& victim : set) {
    (victim.may_be_refused ? added.first : added.rest).push_back(std::move(victim));
  }
  return id;
}

void Evictions::Release(uint64_t set) {
  const auto found = sets_.find(set);
  if (found != sets_.end()) found->second.held = false;
}

std::vector<model::EvictPod> Evictions::Drop(uint64_t set) {
  std::vector<model::EvictPod> spared;
  const auto found = sets_.find(set);
  if (found == sets_.end()) return spared;
  Spare(found->second, spared);
  if (found->second.unanswered == 0) sets_.erase(found);
  return spared;
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

void Evictions::Forget(absl::string_view uid) {
  const auto found = rows_.find(uid);
  if (found != rows_.end() && !found->second.attempts.in_flight()) rows_.erase(found);
}

bool Evictions::MayGo(absl::Time now) {
  if (options_.max_in_flight != model::kUnlimited &&
      static_cast<int64_t>(in_flight_) >= options_.max_in_flight) {
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
    Row& row = rows_[line.front().evict.uid];
    const bool over = row.attempts.due() + options_.backoff_max < now;
    if (over && !row.attempts.open()) row.attempts.Settle();
    row.set = is_first ? id : kNoSet;
    row.purpose = set.purpose;
    row.evict = line.front().evict;
    row.event = std::move(line.front().event);
    if (is_first) ++set.unanswered;
    Send(row, now);
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
    if (set.held) {
      ++it;
      continue;
    }
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

void Evictions::Send(Row& row, absl::Time now) {
  if (!row.attempts.in_flight()) ++in_flight_;
  row.attempts.Sent(now, rules_);
}

std::vector<Evictions::Doubt> Evictions::TakeDoubts(absl::Time now) {
  std::vector<Doubt> due;
  for (const std::string& uid : doubts_.TakeDue(now)) {
    const auto found = rows_.find(uid);
    if (found == rows_.end()) continue;
    const Row& row = found->second;
    if (row.attempts.in_doubt() && row.attempts.MayGo(now)) due.push_back({row.evict, row.purpose});
  }
  return due;
}

void Evictions::SentAgain(absl::string_view uid, absl::Time now) {
  const auto found = rows_.find(uid);
  if (found != rows_.end()) Send(found->second, now);
}

void Evictions::Trim(absl::Time now) {
  if (rows_.size() < trim_at_) return;
  absl::erase_if(rows_, [&](const auto& entry) {
    const WriteAttempts& attempts = entry.second.attempts;
    return !attempts.open() && attempts.due() + options_.backoff_max < now;
  });
  trim_at_ = std::max<size_t>(1024, 2 * rows_.size());
}

Evictions::Answer Evictions::Answered(absl::string_view uid, const absl::Status& status,
                                      absl::Time now) {
  Answer answer;
  const auto found = rows_.find(uid);
  if (found == rows_.end() || !found->second.attempts.in_flight()) return answer;
  Row& row = found->second;
  // The watch is about to show that it is gone; or the 404 was a mistake.
  const Outcome alone =
      absl::IsNotFound(status) ? Outcome::kUnknown : OutcomeOf(status, /*in_doubt=*/false);
  answer.outcome = row.attempts.Answered(alone, now, rules_);
  --in_flight_;
  // The rest of its set waits no longer, also in doubt: the pod may be going.
  const auto set = sets_.find(std::exchange(row.set, kNoSet));
  if (set != sets_.end()) --set->second.unanswered;
  if (answer.outcome == Outcome::kUnknown) {
    answer.evict = row.evict;
    doubts_.Add(row.attempts.due(), row.evict.uid);
    return answer;
  }
  answer.evict = std::exchange(row.evict, {});
  answer.event = std::exchange(row.event, {});
  row.purpose = nullptr;
  if (answer.outcome == Outcome::kDone) {
    rows_.erase(found);
    return answer;
  }
  answer.until = row.attempts.due();
  if (set != sets_.end()) Spare(set->second, answer.spared);
  Trim(now);
  return answer;
}

}  // namespace fairlead::core
