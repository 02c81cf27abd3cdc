#include "autoscale-hook/providers/groups/groups_provider.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/order_tracker.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

class GroupsProvider::State : public std::enable_shared_from_this<GroupsProvider::State> {
 public:
  State(GroupsOptions options, Scheduler* scheduler, CloudGroups* groups)
      : options_(std::move(options)),
        scheduler_(scheduler),
        groups_(groups),
        outbox_(options_.words),
        guard_(scheduler, options_.patience, [this] { Flush(); }),
        reader_(groups, &guard_, &outbox_, options_.known_type),
        tracker_(&outbox_, options_.one_increase_per_set) {}

  void Start(ProviderListener* listener) {
    guard_.SetOwner(weak_from_this());
    listener_ = listener;
    Wake();
  }

  void End() { outbox_.Clear(); }

  void ReportAll() {
    if (reader_.offers() != nullptr) outbox_.Offer(reader_.offers());
    tracker_.ReportAll();
    Flush();
  }

  void Launch(std::vector<LaunchOrder> orders) {
    for (LaunchOrder& order : orders) tracker_.Launch(std::move(order));
    Wake();
    Flush();
  }

  void Terminate(const model::TerminateNode& terminate, Answer answer) {
    tracker_.Terminate(terminate, std::move(answer));
    Wake();
    Flush();
  }

 private:
  void Flush() {
    const auto self = shared_from_this();  // a listener may end the provider
    outbox_.Flush(listener_);
  }

  // A round at once, unless a failed one makes a pause: then what is asked waits for its end.
  void Wake() {
    if (in_round_) {
      again_ = true;
    } else if (failures_ == 0) {
      Schedule(absl::ZeroDuration());
    }
  }
  // Not directly: what is asked in one step of the owner is carried out in one round.
  void Schedule(absl::Duration delay) {
    scheduler_->After(delay, [weak = weak_from_this(), number = ++timer_] {
      const auto self = weak.lock();
      if (self != nullptr && self->timer_ == number) self->Round();
    });
  }

  void Round() {
    in_round_ = true;
    again_ = false;
    reader_.Read([this](const absl::Status& status) { status.ok() ? TakeRead() : Fail(status); });
  }

  void Fail(const absl::Status& status) {
    outbox_.Problem("server", status);
    tracker_.ReadFailed(status);
    in_round_ = false;
    ++failures_;
    Schedule(Backoff{options_.poll_open, options_.longest_pause}.Pause(failures_));
  }

  void TakeRead() {
    outbox_.Solved("server");
    failures_ = 0;
    if (auto offers = reader_.TakeOffers()) outbox_.Offer(std::move(offers));
    tracker_.Observe(reader_.views());
    std::vector<std::string> ids;
    for (const auto& [id, view] : reader_.views()) ids.push_back(id);
    writing_ = ids.size() + 1;
    for (const std::string& id : ids) WriteGroup(id);
    FinishGroup();
  }

  // Writes of one group follow one another; the groups are written side by side.
  void WriteGroup(const std::string& id) {
    std::optional<OrderTracker::Write> write = tracker_.NextWrite(id);
    if (!write.has_value()) return FinishGroup();
    using Kind = OrderTracker::Write::Kind;
    wrote_ = true;
    const auto then = [this, write](const absl::Status& status) {
      const uint64_t doubt = tracker_.Written(*write, status);
      if (doubt != 0) EndDoubtLater(write->group, doubt);
      WriteGroup(write->group);
    };
    switch (write->kind) {
      case Kind::kIncrease:
        return groups_->IncreaseSize(id, tracker_.IncreaseOf(*write),
                                     guard_.Once<absl::Status>("NodeGroupIncreaseSize", then));
      case Kind::kDecrease:
        return groups_->DecreaseTargetSize(
            id, write->delta, guard_.Once<absl::Status>("NodeGroupDecreaseTargetSize", then));
      case Kind::kDelete:
        return groups_->DeleteNodes(id, {write->node},
                                    guard_.Once<absl::Status>("NodeGroupDeleteNodes", then));
    }
  }

  void FinishGroup() {
    if (--writing_ > 0) return;
    in_round_ = false;
    const bool soon = std::exchange(wrote_, false) || tracker_.open();
    Schedule(again_ ? absl::ZeroDuration() : soon ? options_.poll_open : options_.poll);
  }

  void EndDoubtLater(const std::string& group, uint64_t number) {
    scheduler_->After(options_.doubt, [weak = weak_from_this(), group, number] {
      if (const auto self = weak.lock()) self->tracker_.DoubtIsOver(group, number);
    });
  }

  GroupsOptions options_;
  Scheduler* scheduler_;
  CloudGroups* groups_;
  ProviderListener* listener_ = nullptr;
  Outbox outbox_;
  CallGuard guard_;
  GroupReader reader_;
  OrderTracker tracker_;

  bool in_round_ = false, again_ = false, wrote_ = false;
  int64_t failures_ = 0;  // rounds in a row
  size_t writing_ = 0;    // groups
  uint64_t timer_ = 0;    // of the next round; others are outdated
};

GroupsProvider::GroupsProvider(GroupsOptions options, Scheduler* scheduler, CloudGroups* groups)
    : name_(options.words.provider),
      state_(std::make_shared<State>(std::move(options), scheduler, groups)) {}
GroupsProvider::~GroupsProvider() { state_->End(); }

void GroupsProvider::Start(ProviderListener* listener) { state_->Start(listener); }
void GroupsProvider::ReportAll() { state_->ReportAll(); }
void GroupsProvider::Launch(std::vector<LaunchOrder> orders) { state_->Launch(std::move(orders)); }
void GroupsProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  state_->Terminate(terminate, std::move(answer));
}

}  // namespace fairlead::hook
