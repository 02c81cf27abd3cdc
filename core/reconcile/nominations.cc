#include "core/reconcile/nominations.h"

namespace fairlead::core {

const std::string* Nominations::Find(const std::string& uid) const {
  if (rows_.empty()) return nullptr;
  const auto row = rows_.find(uid);
  return row == rows_.end() || row->second.overwriting ? nullptr : &row->second.node;
}

bool Nominations::IsHeld(const std::string& uid, const Row& row) const {
  const state::PodRecord& pod = state_.pod(row.pod);
  return pod.id == row.pod && pod.uid == uid && pod.status == state::PodStatus::kBinding &&
         state_.node(pod.node).name() == row.node;
}

void Nominations::Nominate(state::PodId id, absl::Time now) {
  const state::PodRecord& pod = state_.pod(id);
  Row& row = rows_[pod.uid];
  const std::string& node = state_.node(pod.node).name();
  if (row.node == node && !row.overwriting && row.attempts.open()) return;
  row.pod = id;
  row.node = node;
  row.overwriting = false;
  row.attempts.Settle();
  if (pod.details->nominated_node != node) return Send(pod.uid, row, now);
  // A verdict has named it before: only its end is ours.
  row.attempts.Sent(now, rules_);
  row.attempts.Answered(Outcome::kDone, now, rules_);
}

void Nominations::Send(const std::string& uid, Row& row, absl::Time now) {
  const state::PodRecord& pod = state_.pod(row.pod);
  row.attempts.Sent(now, rules_);
  in_flight_.emplace(send_({0, model::NominateNode{pod.ns, pod.name, uid, row.node}}), uid);
}

bool Nominations::Answered(uint64_t action_id, const absl::Status& status, absl::Time now) {
  const auto found = in_flight_.find(action_id);
  if (found == in_flight_.end()) return false;
  const std::string uid = std::move(found->second);
  in_flight_.erase(found);
  const auto row = rows_.find(uid);
  if (row == rows_.end()) return true;
  const Outcome outcome = row->second.attempts.Answered(status, now, rules_);
  if (outcome == Outcome::kDone) return true;
  if (IsHeld(uid, row->second)) {
    repeats_.Add(row->second.attempts.due(), uid);
  } else if (outcome == Outcome::kRefused) {
    rows_.erase(row);  // the object has no such name
  }
  return true;
}

void Nominations::Step(absl::Time now) {
  for (const std::string& uid : repeats_.TakeDue(now)) {
    const auto row = rows_.find(uid);
    if (row == rows_.end() || !row->second.attempts.failed()) continue;
    if (IsHeld(uid, row->second) && row->second.attempts.MayGo(now)) Send(uid, row->second, now);
  }
}

void Nominations::Overwriting(const std::string& uid) {
  if (rows_.empty()) return;
  const auto row = rows_.find(uid);
  if (row != rows_.end()) row->second.overwriting = true;
}

void Nominations::Overwritten(const std::string& uid, bool done) {
  if (rows_.empty()) return;
  const auto row = rows_.find(uid);
  if (row == rows_.end() || !row->second.overwriting) return;
  if (done) {
    rows_.erase(row);
  } else {
    row->second.overwriting = false;
  }
}

void Nominations::PodSeen(state::PodId id) {
  const state::PodRecord& pod = state_.pod(id);
  const bool on_node =
      pod.status == state::PodStatus::kBound || pod.status == state::PodStatus::kRunning;
  if (on_node) rows_.erase(pod.uid);
}

void Nominations::PodGoing(state::PodId id) { rows_.erase(state_.pod(id).uid); }

}  // namespace fairlead::core
