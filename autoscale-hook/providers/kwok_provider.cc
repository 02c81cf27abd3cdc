#include "autoscale-hook/providers/kwok_provider.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/write_attempts.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr char kKwokAnnotation[] = "kwok.x-k8s.io/node";

}  // namespace

class KwokProvider::State : public std::enable_shared_from_this<KwokProvider::State> {
 public:
  State(KwokOptions options, Scheduler* scheduler, NodeApi* api)
      : options_(std::move(options)), scheduler_(scheduler), api_(api) {}

  void Launch(const model::LaunchNode& launch, const Answer& answer) {
    const std::string& name = launch.request->meta.name;
    if (machines_.contains(name)) return answer(absl::OkStatus());
    const std::string& type = launch.request->instance_type;
    auto refused = refused_.find(type);
    if (refused != refused_.end()) {
      return answer(FailureStatus(refused->second,
                                  absl::StrCat("no ", type, ": ", FailureName(refused->second))));
    }
    Machine& machine = machines_[name];
    machine.generation = ++generation_;
    machine.node = launch.node;
    machine.answer = answer;
    machine.node.ready = false;
    machine.node.provider_id = absl::StrCat("kwok://", name);
    machine.node.meta.labels.Set(model::kNodeRequestLabel, name);
    machine.node.meta.annotations.Set(kKwokAnnotation, "fake");
    auto delay = options_.boot_delay_by_type.find(type);
    Later(delay == options_.boot_delay_by_type.end() ? options_.boot_delay : delay->second, name,
          machine.generation, &State::Create);
    answer(ProviderAnswer(absl::OkStatus(), absl::StrCat("kwok://", name)));
  }

  void Terminate(const std::string& name, const std::string& node_name, Answer answer) {
    // Erased first, so that a due creation does not happen any more.
    machines_.erase(name);
    api_->DeleteNode(node_name.empty() ? name : node_name,
                     [answer = std::move(answer)](const absl::Status& status) {
                       answer(absl::IsNotFound(status) ? absl::OkStatus() : status);
                     });
  }

  std::map<std::string, FailureClass> refused_;

 private:
  struct Machine {
    uint64_t generation = 0;  // a name may be launched again while a timer of its former life runs
    model::Node node;
    Answer answer;  // of its launch, for later failures
    int64_t failures = 0;
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
  // On success the next stage after `delay`, or nothing more; on failure the same stage again.
  NodeApi::Done Then(const std::string& name, const Machine& machine, Stage same, Stage next) {
    return [weak = weak_from_this(), name, generation = machine.generation, same,
            next](const absl::Status& status) {
      auto self = weak.lock();
      if (self == nullptr) return;
      auto it = self->machines_.find(name);
      if (it == self->machines_.end()) {
        // Terminated during the creation: the node must not be left behind.
        if (next != nullptr) self->api_->DeleteNode(name, [](const absl::Status&) {});
        return;
      }
      if (!status.ok() && !absl::IsAlreadyExists(status)) {
        self->Retry(name, it->second, status, same);
      } else if (next != nullptr) {
        self->Later(self->options_.ready_delay, name, generation, next);
      }
    };
  }
  void Retry(const std::string& name, Machine& machine, const absl::Status& status, Stage same) {
    const std::optional<FailureClass> failure = ClassifyFailure(status);
    if (failure == FailureClass::kAuth || failure == FailureClass::kConfig) {
      const Answer answer = machine.answer;  // it may end the machine
      return answer(status);
    }
    const Backoff backoff = {options_.retry_delay, options_.retry_max};
    Later(backoff.Pause(++machine.failures), name, machine.generation, same);
  }
  void Create(const std::string& name, Machine& machine) {
    const model::Node node = machine.node;
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
  std::map<std::string, Machine> machines_;
  uint64_t generation_ = 0;
};

KwokProvider::KwokProvider(KwokOptions options, Scheduler* scheduler, NodeApi* api)
    : state_(std::make_shared<State>(std::move(options), scheduler, api)) {}
KwokProvider::~KwokProvider() = default;

void KwokProvider::Launch(const model::LaunchNode& launch, Answer answer) {
  state_->Launch(launch, answer);
}

void KwokProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  state_->Terminate(terminate.request_name, terminate.node_name, std::move(answer));
}

void KwokProvider::RefuseType(const std::string& instance_type, FailureClass failure) {
  state_->refused_[instance_type] = failure;
}

void KwokProvider::AcceptType(const std::string& instance_type) {
  state_->refused_.erase(instance_type);
}

}  // namespace fairlead::hook
