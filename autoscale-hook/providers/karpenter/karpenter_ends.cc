// Deletions of NodeClaims: part of KarpenterProvider::State.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/karpenter/karpenter_state.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {

void KarpenterProvider::State::Terminate(const model::TerminateNode& terminate, Answer answer) {
  const std::string& name = terminate.request_name;
  Row& row = rows_[name];
  if (!row.ending.has_value() || row.ending->provider_id != terminate.provider_id) {
    // The machine of the older question is another one: what was found out is not about this.
    if (row.ending.has_value()) AnswerEnding(row, absl::UnavailableError("asked for another id"));
    row.ending = Ending{};
    row.ending->provider_id = terminate.provider_id;
    row.ending->decided_by = lists_.next();
  } else {
    Reply(std::move(row.ending->answer),
          absl::UnavailableError(absl::StrCat("NodeClaim ", name, ": asked again")));
  }
  row.ending->answer = std::move(answer);
  if (row.creation.has_value() && !row.creation->in_flight && row.creation->decided_by == 0) {
    AnswerCreation(
        row, absl::AbortedError(absl::StrCat("NodeClaim ", name, ": ended before it was created")));
  }
  AdvanceEnding(name, row);
  lists_.Hurry();
  Flush();
}

// Deletes the claim that was listed last, if that is the machine to end. Calls for one request are
// carried out in order: a creation comes first.
void KarpenterProvider::State::AdvanceEnding(const std::string& name, Row& row) {
  if (!row.ending.has_value() || row.creation.has_value() || row.ending->writing) return;
  if (!row.claim.has_value() || row.claim->deleting) return;
  const std::string& id = row.ending->provider_id;
  if (id.empty() ? IsRefusedClaim(row) : id != row.claim->provider_id) return;
  row.ending->writing = true;
  writes_.Add([this, name, uid = row.claim->uid] { return SendDeletion(name, uid); });
}

void KarpenterProvider::State::GiveUpLater(const std::string& name, Row& row) {
  row.failing = true;
  After(options_.launch_patience, [name, uid = row.claim->uid](State& state) {
    const auto it = state.rows_.find(name);
    if (it == state.rows_.end() || it->second.ending.has_value()) return;
    Row& now = it->second;
    if (!now.claim.has_value() || now.claim->uid != uid || now.claim->launched.IsTrue()) return;
    now.given_up = true;
    state.writes_.Add([&state, name, uid] { return state.SendDeletion(name, uid); });
  });
}

bool KarpenterProvider::State::SendDeletion(const std::string& name, const std::string& claim_uid) {
  auto it = rows_.find(name);
  if (it == rows_.end()) return false;
  Row& row = it->second;
  const bool wanted = row.ending.has_value() || row.given_up;
  if (!wanted || !row.claim.has_value() || row.claim->uid != claim_uid || row.claim->deleting) {
    if (row.ending.has_value()) row.ending->writing = false;
    return false;
  }
  api_->Delete(name, claim_uid,
               [weak = weak_from_this(), name, claim_uid](const absl::Status& status) {
                 const std::shared_ptr<State> state = weak.lock();
                 if (state == nullptr) return;
                 state->OnDeleted(name, claim_uid, status);
                 state->writes_.Answered(status);
                 state->Flush();
               });
  return true;
}

void KarpenterProvider::State::OnDeleted(const std::string& name, const std::string& claim_uid,
                                         const absl::Status& status) {
  auto it = rows_.find(name);
  if (it == rows_.end()) return;
  Row& row = it->second;
  const bool unknown = IsUnknownOutcome(status) || absl::IsDeadlineExceeded(status);
  if ((status.ok() || unknown) && row.claim.has_value() && row.claim->uid == claim_uid) {
    row.deleted_here = true;
    row.claim->deleting = status.ok();
  }
  if (!row.ending.has_value()) return;
  row.ending->writing = false;
  row.ending->decided_by = lists_.next();
  // Of the others a list says what to do; ClaimWrites pauses after a failure.
  const bool refused = !status.ok() && !unknown && !absl::IsNotFound(status) &&
                       !absl::IsFailedPrecondition(status) && !absl::IsResourceExhausted(status);
  if (refused) {
    AnswerEnding(row, {status.code(), absl::StrCat("NodeClaim ", name, ": ", status.message())});
  }
  EraseIfEmpty(name);
}

void KarpenterProvider::State::DecideEnding(const std::string& name, Row& row, uint64_t number) {
  if (row.ending->writing || number < row.ending->decided_by) return;
  const std::string& id = row.ending->provider_id;
  if (!row.claim.has_value()) {
    const bool may_come = (start_in_doubt_ && !row.seen) || row.in_doubt > 0;
    if (!may_come) AnswerEnding(row, absl::OkStatus());
    return;
  }
  if (id.empty() && IsRefusedClaim(row)) {
    return AnswerEnding(row, absl::OkStatus());  // the order got no claim
  }
  if (!id.empty() && row.claim->provider_id != id) {
    const std::string other = ClaimWithId(id);
    return AnswerEnding(
        row, other.empty() ? absl::OkStatus()
                           : absl::FailedPreconditionError(absl::StrCat(
                                 "machine ", id, " is of NodeClaim ", other, ", not of ", name)));
  }
  AdvanceEnding(name, row);
}

std::string KarpenterProvider::State::ClaimWithId(const std::string& provider_id) const {
  auto it = std::find_if(rows_.begin(), rows_.end(), [&provider_id](const Rows::value_type& row) {
    return row.second.claim.has_value() && row.second.claim->provider_id == provider_id;
  });
  return it == rows_.end() ? "" : it->first;
}

void KarpenterProvider::State::AnswerEnding(Row& row, const absl::Status& status) {
  Reply(std::move(row.ending->answer), status);
  row.ending.reset();
}

}  // namespace fairlead::hook
