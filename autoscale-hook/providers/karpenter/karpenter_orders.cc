// Creations of NodeClaims: part of KarpenterProvider::State.
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/karpenter/karpenter_state.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

// A claim that a creation finds and no list shows was deleted meanwhile, or lacks our label.
constexpr int kMostRefusals = 3;

bool IsUnknownCreation(const absl::Status& status) {
  return IsUnknownOutcome(status) || absl::IsDeadlineExceeded(status);
}

absl::Status AboutClaim(const std::string& name, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("NodeClaim ", name, ": ", status.message())};
}

absl::Status NotOurClaim(const std::string& name, const std::string& uid, const NodeClaim* other) {
  if (other == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("NodeClaim ", name,
                     " exists without the label fairlead.dev/node-request: it is not "
                     "Fairlead's; NodeRequest uid ",
                     uid));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "NodeClaim ", name, " is of NodeRequest uid ",
      other->request_uid.empty() ? "(none)" : other->request_uid, ", not of uid ", uid));
}

}  // namespace

void KarpenterProvider::State::Launch(std::vector<LaunchOrder> orders) {
  for (LaunchOrder& order : orders) LaunchOne(std::move(order));
  Flush();
}

void KarpenterProvider::State::LaunchOne(LaunchOrder order) {
  absl::StatusOr<NewNodeClaim> claim = ClaimOfOrder(order.launch, options_.node_class);
  if (!claim.ok()) return Reply(std::move(order.answer), claim.status());
  const std::string& name = claim->name;
  const std::string& uid = order.launch.request->meta.uid;
  Row& row = rows_[name];
  if (row.ending.has_value()) {
    return Reply(std::move(order.answer), absl::UnavailableError(absl::StrCat(
                                              "NodeClaim ", name, ": a machine is being ended")));
  }
  if (row.creation.has_value()) {
    if (row.creation->uid == uid) return row.creation->answers.push_back(std::move(order.answer));
    return Reply(std::move(order.answer),
                 absl::UnavailableError(
                     absl::StrCat("NodeClaim ", name, ": is being created for another order")));
  }
  if (row.exists && row.uid == uid) {
    const std::string id = row.claim.has_value() ? row.claim->provider_id : "";
    return Reply(std::move(order.answer), {absl::OkStatus(), id});
  }
  row.creation = Creation{};
  Creation& creation = *row.creation;
  creation.id = ++creations_;
  creation.uid = uid;
  creation.body = EncodeNodeClaim(*claim);
  creation.answers.push_back(std::move(order.answer));
  After(options_.creation_timeout,
        [name, id = creation.id](State& state) { state.OnCreationTimeout(name, id); });
  Enqueue(name, creation.id);
  lists_.Hurry();
}

void KarpenterProvider::State::Enqueue(const std::string& name, uint64_t creation) {
  writes_.Add([this, name, creation] { return SendCreation(name, creation); });
}

bool KarpenterProvider::State::SendCreation(const std::string& name, uint64_t creation) {
  auto it = rows_.find(name);
  if (it == rows_.end() || !it->second.creation.has_value()) return false;
  Creation& waiting = *it->second.creation;
  if (waiting.id != creation) return false;
  waiting.in_flight = true;
  const std::string body = waiting.body;
  api_->Create(name, body, [weak = weak_from_this(), name](const absl::Status& status) {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) return;
    state->OnCreated(name, status);
    state->writes_.Answered(status);
    state->Flush();
  });
  return true;
}

void KarpenterProvider::State::OnCreated(const std::string& name, const absl::Status& status) {
  auto it = rows_.find(name);
  if (it == rows_.end() || !it->second.creation.has_value()) return;
  Row& row = it->second;
  Creation& creation = *row.creation;
  creation.in_flight = false;
  if (status.ok()) {
    if (row.exists) ReportGone(name, row);  // the claim that the name had before
    row.exists = true;
    row.uid = creation.uid;
    row.shown_by = lists_.next();
    row.refused_uid.clear();
    AnswerCreation(row, status);
    ReportChange(name, row);
  } else if (absl::IsAlreadyExists(status)) {
    creation.decided_by = lists_.next();
    lists_.Hurry();
  } else if (absl::IsResourceExhausted(status) && !creation.expired) {
    Enqueue(name, creation.id);
  } else if (absl::IsResourceExhausted(status)) {
    AnswerCreation(row, AboutClaim(name, absl::UnavailableError(status.message())));
  } else {
    if (IsUnknownCreation(status)) DoubtCreation(name, row);
    AnswerCreation(row, AboutClaim(name, absl::IsDeadlineExceeded(status)
                                             ? absl::UnavailableError(status.message())
                                             : status));
  }
  AdvanceEnding(name, row);
  EraseIfEmpty(name);
}

// The claim may still come. No end is confirmed meanwhile.
void KarpenterProvider::State::DoubtCreation(const std::string& name, Row& row) {
  ++row.in_doubt;
  After(kDoubtLasts, [name](State& state) {
    auto it = state.rows_.find(name);
    if (it == state.rows_.end()) return;
    --it->second.in_doubt;
    state.EraseIfEmpty(name);
  });
}

void KarpenterProvider::State::OnCreationTimeout(const std::string& name, uint64_t creation) {
  auto it = rows_.find(name);
  if (it == rows_.end() || !it->second.creation.has_value()) return;
  Row& row = it->second;
  if (row.creation->id != creation) return;
  if (row.creation->in_flight) {
    row.creation->expired = true;
    return;
  }
  AnswerCreation(row, absl::UnavailableError(absl::StrCat(
                          "NodeClaim ", name, ": not created yet: the API server is slow")));
  AdvanceEnding(name, row);
  EraseIfEmpty(name);
}

// The name was in use.
void KarpenterProvider::State::DecideCreation(const std::string& name, Row& row, uint64_t number,
                                              const Listed& listed) {
  Creation& creation = *row.creation;
  if (creation.decided_by == 0 || number < creation.decided_by) return;
  const NodeClaim* const found = listed.ours != nullptr ? listed.ours : listed.foreign;
  if (listed.ours != nullptr && listed.ours->request_uid == creation.uid) {
    return AnswerCreation(row, absl::OkStatus(), listed.ours->provider_id);
  }
  if (found == nullptr && ++creation.refusals < kMostRefusals) {
    creation.decided_by = 0;
    return Enqueue(name, creation.id);
  }
  if (found != nullptr) row.refused_uid = creation.uid;
  const absl::Status refused = NotOurClaim(name, creation.uid, found);
  AnswerCreation(row, refused);
}

void KarpenterProvider::State::AnswerCreation(Row& row, const absl::Status& status,
                                              const std::string& id) {
  for (Answer& answer : row.creation->answers) Reply(std::move(answer), {status, id});
  row.creation.reset();
}

}  // namespace fairlead::hook
