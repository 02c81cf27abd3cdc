#include "autoscale-hook/providers/kwok_provider.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/write_attempts.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr char kKwokAnnotation[] = "kwok.x-k8s.io/node";

std::string KwokIdOf(const std::string& request_name) {
  return absl::StrCat("kwok://", request_name);
}

}  // namespace

class KwokProvider::State : public std::enable_shared_from_this<KwokProvider::State> {
 public:
  State(KwokOptions options, Scheduler* scheduler, NodeApi* api)
      : options_(std::move(options)), scheduler_(scheduler), api_(api) {}

  void Start(ProviderListener* listener) { listener_ = listener; }

  void ReportAll() {
    for (const auto& [name, machine] : machines_) Report(machine, MachineState::kStarting);
  }

  void Launch(const model::LaunchNode& launch, const Answer& answer) {
    const std::string& name = launch.request->meta.name;
    const std::string id = KwokIdOf(name);
    if (auto it = machines_.find(name); it != machines_.end()) {
      if (it->second.end == nullptr) return answer({absl::OkStatus(), id});
      return answer(absl::UnavailableError(absl::StrCat(name, ": its former node is being ended")));
    }
    const std::string& type = launch.request->instance_type;
    auto refused = refused_.find(type);
    if (refused != refused_.end()) {
      return answer(FailureStatus(refused->second,
                                  absl::StrCat("no ", type, ": ", FailureName(refused->second))));
    }
    if (options_.out_of_stock != nullptr && options_.out_of_stock(type)) {
      return answer(FailureStatus(FailureClass::kStockout, absl::StrCat("out of stock: ", type)));
    }
    Machine& machine = machines_[name];
    machine.generation = ++generation_;
    machine.node = launch.node;
    machine.request_uid = launch.request->meta.uid;
    machine.node.ready = false;
    machine.node.provider_id = id;
    machine.node.meta.labels.Set(model::kNodeRequestLabel, name);
    machine.node.meta.annotations.Set(kKwokAnnotation, "fake");
    auto delay = options_.boot_delay_by_type.find(type);
    Later(delay == options_.boot_delay_by_type.end() ? options_.boot_delay : delay->second, name,
          machine.generation, &State::Create);
    answer({absl::OkStatus(), id});
  }

  void Terminate(const model::TerminateNode& terminate, Answer answer) {
    const std::string& name = terminate.request_name;
    if (!terminate.provider_id.empty() && terminate.provider_id != KwokIdOf(name)) {
      return answer(absl::OkStatus());  // no machine of the request has such an id
    }
    auto it = machines_.find(name);
    if (it != machines_.end() && it->second.creating) {
      const Answer older = std::exchange(it->second.end, std::move(answer));
      if (older != nullptr) older(absl::UnavailableError(absl::StrCat(name, ": asked again")));
      return;
    }
    machines_.erase(name);  // first, so that a due creation does not happen any more
    Delete(terminate.node_name.empty() ? name : terminate.node_name, std::move(answer));
  }

  std::map<std::string, FailureClass> refused_;

 private:
  struct Machine {
    uint64_t generation = 0;  // a name may be launched again while a timer of its former life runs
    model::Node node;
    std::string request_uid;
    int64_t failures = 0;
    bool creating = false;  // CreateNode is under way
    Answer end;             // of a Terminate that waits for that
  };
  using Stage = void (State::*)(const std::string& name, Machine& machine);

  void Later(absl::Duration delay, const std::string& name, uint64_t generation, Stage stage) {
    scheduler_->After(delay, [weak = weak_from_this(), name, generation, stage] {
      auto self = weak.lock();
      if (self != nullptr) self->Continue(name, generation, stage);
    });
  }
  void Continue(const std::string& name, uint64_t generation, Stage stage) {
    auto it = machines_.find(name);
    if (it != machines_.end() && it->second.generation == generation) {
      (this->*stage)(name, it->second);
    }
  }
  void Delete(const std::string& node_name, Answer answer) {
    api_->DeleteNode(node_name, [weak = weak_from_this(),
                                 answer = std::move(answer)](const absl::Status& status) {
      if (weak.expired()) return;
      answer(absl::IsNotFound(status) ? absl::OkStatus() : status);
    });
  }
  // On success the next stage after `ready_delay`, or nothing more; on failure the same stage
  // again.
  NodeApi::Done Then(const std::string& name, const Machine& machine, Stage same, Stage next) {
    return [weak = weak_from_this(), name, generation = machine.generation, same,
            next](const absl::Status& status) {
      auto self = weak.lock();
      if (self == nullptr) return;
      auto it = self->machines_.find(name);
      if (it == self->machines_.end() || it->second.generation != generation) return;
      if (std::exchange(it->second.creating, false) && it->second.end != nullptr) {
        Answer end = std::move(it->second.end);
        self->machines_.erase(it);
        return self->Delete(name, std::move(end));
      }
      if (!status.ok() && !absl::IsAlreadyExists(status)) {
        self->Retry(name, it->second, status, same);
      } else if (next != nullptr) {
        self->Later(self->options_.ready_delay, name, generation, next);
      }
    };
  }
  // A node whose first creation is refused for good will not come: the hook decides what follows.
  // One whose creation was tried before may be there.
  void Retry(const std::string& name, Machine& machine, const absl::Status& status, Stage same) {
    const std::optional<FailureClass> failure = ClassifyFailure(status);
    const bool for_good = failure == FailureClass::kAuth || failure == FailureClass::kConfig;
    if (for_good && same == &State::Create && machine.failures == 0) {
      const Machine refused = std::move(machine);
      machines_.erase(name);
      return Report(refused, MachineState::kGone, status);
    }
    const Backoff backoff = {options_.retry_delay, options_.retry_max};
    Later(backoff.Pause(++machine.failures), name, machine.generation, same);
  }
  void Report(const Machine& machine, MachineState state, absl::Status why = absl::OkStatus()) {
    if (listener_ == nullptr) return;
    listener_->OnMachine({"kwok", machine.node.meta.name, machine.request_uid,
                          machine.node.provider_id, state, std::move(why)});
  }
  void Create(const std::string& name, Machine& machine) {
    const model::Node node = machine.node;
    machine.creating = true;
    api_->CreateNode(node, Then(name, machine, &State::Create, &State::MakeReady));
  }
  void MakeReady(const std::string& name, Machine& machine) {
    machine.node.ready = true;
    const model::Node node = machine.node;
    api_->SetNodeReady(node, Then(name, machine, &State::MakeReady, nullptr));
  }

  KwokOptions options_;
  Scheduler* scheduler_;
  NodeApi* api_;
  ProviderListener* listener_ = nullptr;
  std::map<std::string, Machine> machines_;
  uint64_t generation_ = 0;
};

KwokProvider::KwokProvider(KwokOptions options, Scheduler* scheduler, NodeApi* api)
    : state_(std::make_shared<State>(std::move(options), scheduler, api)) {}
KwokProvider::~KwokProvider() = default;

void KwokProvider::Start(ProviderListener* listener) { state_->Start(listener); }

void KwokProvider::ReportAll() { state_->ReportAll(); }

void KwokProvider::Launch(std::vector<LaunchOrder> orders) {
  for (const LaunchOrder& order : orders) state_->Launch(order.launch, order.answer);
}

void KwokProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  state_->Terminate(terminate, std::move(answer));
}

void KwokProvider::RefuseType(const std::string& instance_type, FailureClass failure) {
  state_->refused_[instance_type] = failure;
}

void KwokProvider::AcceptType(const std::string& instance_type) {
  state_->refused_.erase(instance_type);
}

}  // namespace fairlead::hook
