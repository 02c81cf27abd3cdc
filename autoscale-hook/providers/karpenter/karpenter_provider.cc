#include "autoscale-hook/providers/karpenter/karpenter_provider.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/karpenter/karpenter_state.h"

namespace fairlead::hook {

KarpenterProvider::State::State(KarpenterOptions options, Scheduler* scheduler, ClaimApi* api)
    : options_(std::move(options)),
      scheduler_(scheduler),
      api_(api),
      lists_(options_.lists, scheduler, api, this),
      writes_(options_.writes_at_once, options_.write_backoff, scheduler, [this] { Flush(); }) {}

void KarpenterProvider::State::Start(ProviderListener* listener) {
  listener_ = listener;
  writes_.Start(weak_from_this());
  lists_.Start(weak_from_this());
  After(kDoubtLasts, [](State& state) { state.start_in_doubt_ = false; });
}

void KarpenterProvider::State::ReportAll() {
  for (const auto& [name, row] : rows_) {
    if (row.told.has_value()) Report(name, row, *row.told);
  }
  Flush();
}

void KarpenterProvider::State::After(absl::Duration delay, std::function<void(State&)> callback) {
  scheduler_->After(delay, [weak = weak_from_this(), callback = std::move(callback)] {
    const std::shared_ptr<State> state = weak.lock();
    if (state == nullptr) return;
    callback(*state);
    state->Flush();
  });
}

void KarpenterProvider::State::Reply(Answer answer, ProviderAnswer status) {
  out_.push_back([answer = std::move(answer), status = std::move(status)] { answer(status); });
}

void KarpenterProvider::State::Flush() {
  if (flushing_) return;
  const std::shared_ptr<State> alive = shared_from_this();  // a callback may end the provider
  flushing_ = true;
  do {
    while (!out_.empty() && !closed_) {
      const std::function<void()> call = std::move(out_.front());
      out_.pop_front();
      call();
    }
    if (!closed_) writes_.Pump();
  } while (!out_.empty() && !closed_);
  flushing_ = false;
}

void KarpenterProvider::State::EraseIfEmpty(const std::string& name) {
  auto it = rows_.find(name);
  if (it == rows_.end()) return;
  const Row& row = it->second;
  if (row.exists || row.creation.has_value() || row.ending.has_value() || row.in_doubt > 0) return;
  if (row.refused_uid.empty()) rows_.erase(it);
}

// ---- lists

bool KarpenterProvider::State::IsBusy() const {
  for (const auto& [name, row] : rows_) {
    if (row.creation.has_value() || row.ending.has_value()) return true;
    if (!row.exists) continue;
    if (!row.claim.has_value() || row.claim->deleting || !row.claim->initialized.IsTrue()) {
      return true;
    }
  }
  return false;
}

void KarpenterProvider::State::OnListProblem(const absl::Status& problem) {
  out_.push_back([this, problem] { listener_->OnProblem("karpenter", problem); });
  Flush();
}

void KarpenterProvider::State::OnListed(uint64_t number, std::vector<NodeClaim> claims) {
  std::map<std::string, Listed> names;
  for (const auto& [name, row] : rows_) names[name];
  std::set<std::string> unreadable;
  for (const NodeClaim& claim : claims) {
    const bool ours = claim.request == claim.name && !claim.request_uid.empty();
    if (!claim.readable) {
      unreadable.insert(claim.name);
    } else if (ours) {
      names[claim.name].ours = &claim;
    } else if (auto it = names.find(claim.name); it != names.end()) {
      it->second.foreign = &claim;
    }
  }
  for (const auto& [name, listed] : names) {
    if (!unreadable.contains(name)) TakeListed(name, number, listed);
  }
  Flush();
}

void KarpenterProvider::State::TakeListed(const std::string& name, uint64_t number,
                                          const Listed& listed) {
  Row& row = rows_[name];
  if (number < row.shown_by) return;  // it began before the claim was created
  TakeClaim(name, row, listed.ours);
  if (row.creation.has_value()) DecideCreation(name, row, number, listed);
  if (row.ending.has_value() && !row.creation.has_value()) DecideEnding(name, row, number);
  ReportChange(name, row);
  if (listed.ours == nullptr && listed.foreign == nullptr) row.refused_uid.clear();
  EraseIfEmpty(name);
}

void KarpenterProvider::State::TakeClaim(const std::string& name, Row& row,
                                         const NodeClaim* claim) {
  if (row.exists) {
    const bool same = claim != nullptr && (row.claim.has_value() ? row.claim->uid == claim->uid
                                                                 : row.uid == claim->request_uid);
    if (!same) ReportGone(name, row);
  }
  if (claim == nullptr) return;
  NodeClaim now = *claim;
  if (row.claim.has_value()) KeepLaunchFailure(*row.claim, now);
  row.claim = std::move(now);
  row.seen = true;
  row.uid = claim->request_uid;
  row.exists = true;
  if (!row.failing && !row.claim->launched.IsTrue() && TellsWhy(*row.claim)) {
    GiveUpLater(name, row);
  }
}

// ---- reports

void KarpenterProvider::State::Report(const std::string& name, const Row& row, const Told& told,
                                      absl::Status why) {
  if (listener_ == nullptr) return;
  MachineReport report = {"karpenter", name, row.uid, told.machine_id, told.state, std::move(why)};
  out_.push_back([this, report = std::move(report)] { listener_->OnMachine(report); });
}

void KarpenterProvider::State::ReportChange(const std::string& name, Row& row) {
  if (!row.exists) return;
  Told now;
  if (row.claim.has_value()) {
    now.machine_id = row.claim->provider_id;
    const bool runs = row.claim->launched.IsTrue() && !now.machine_id.empty();
    if (runs) now.state = MachineState::kRunning;
    if (row.claim->deleting) {
      if (row.deleted_here || row.ending.has_value()) return;
      now.state = MachineState::kEnding;
    }
  }
  if (row.told == now) return;
  row.told = now;
  Report(name, row, now);
}

void KarpenterProvider::State::ReportGone(const std::string& name, Row& row) {
  absl::Status why;
  NodeClaim last;
  last.name = name;
  if (row.claim.has_value()) last = *row.claim;
  if ((!row.deleted_here || row.given_up) && !row.ending.has_value()) {
    why = !last.registered.IsTrue()
              ? WhyNeverRegistered(last)
              : absl::InternalError(absl::StrCat("NodeClaim ", name, " (node ", last.node_name,
                                                 ") was deleted by another"));
  }
  const bool known = row.claim.has_value();
  const bool untold = known && !why.ok() && !last.registered.IsTrue() && !TellsWhy(last);
  row.exists = row.deleted_here = row.failing = row.given_up = false;
  row.claim.reset();
  row.told.reset();
  if (untold) return ReportUntold(last, row);
  Report(name, row, {MachineState::kGone, last.provider_id}, std::move(why));
}

void KarpenterProvider::State::ReportUntold(const NodeClaim& last, const Row& row) {
  Row gone;
  gone.uid = row.uid;
  api_->LastWarning(last.name, last.uid,
                    [weak = weak_from_this(), last,
                     gone = std::move(gone)](const absl::StatusOr<std::string>& warning) {
                      const std::shared_ptr<State> state = weak.lock();
                      if (state == nullptr || state->closed_) return;
                      // The request may have got another claim meanwhile.
                      if (const auto now = state->rows_.find(last.name);
                          now != state->rows_.end() && now->second.exists) {
                        return;
                      }
                      state->Report(last.name, gone, {MachineState::kGone, last.provider_id},
                                    WhyNeverRegistered(last, warning.value_or("")));
                      state->Flush();
                    });
}

// ---- the provider

KarpenterProvider::KarpenterProvider(KarpenterOptions options, Scheduler* scheduler, ClaimApi* api)
    : state_(std::make_shared<State>(std::move(options), scheduler, api)) {}
KarpenterProvider::~KarpenterProvider() { state_->Close(); }

void KarpenterProvider::Start(ProviderListener* listener) { state_->Start(listener); }

void KarpenterProvider::ReportAll() { state_->ReportAll(); }

void KarpenterProvider::Launch(std::vector<LaunchOrder> orders) {
  state_->Launch(std::move(orders));
}

void KarpenterProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  state_->Terminate(terminate, std::move(answer));
}

}  // namespace fairlead::hook
