#include "autoscale-hook/providers/groups/outbox.h"

#include <utility>

#include "absl/strings/match.h"

namespace fairlead::hook {

void Outbox::Answer(ProviderDone done, ProviderAnswer answer) {
  entries_.emplace_back([done = std::move(done), answer = std::move(answer)](ProviderListener*) {
    if (done) done(answer);
  });
}

void Outbox::Report(MachineReport report) {
  entries_.emplace_back(
      [report = std::move(report)](ProviderListener* listener) { listener->OnMachine(report); });
}

void Outbox::Offer(std::shared_ptr<const Catalog> offers) {
  entries_.emplace_back([this, offers = std::move(offers)](ProviderListener* listener) {
    listener->OnOffers(words_.provider, offers);
  });
}

void Outbox::Problem(const std::string& key, const absl::Status& problem) {
  std::string& told = told_[key];
  if (told == problem.message()) return;
  told = std::string(problem.message());
  entries_.emplace_back([this, problem](ProviderListener* listener) {
    listener->OnProblem(words_.provider, problem);
  });
}

void Outbox::SolvedAll(const std::string& prefix) {
  auto it = told_.lower_bound(prefix);
  while (it != told_.end() && absl::StartsWith(it->first, prefix)) it = told_.erase(it);
}

void Outbox::Flush(ProviderListener* listener) {
  if (flushing_ || listener == nullptr) return;
  flushing_ = true;
  while (!entries_.empty()) {
    const auto entry = std::move(entries_.front());
    entries_.pop_front();
    entry(listener);
  }
  flushing_ = false;
}

}  // namespace fairlead::hook
