// A cloud that sells machines, and lies when it is told to.
//
// It is the world's account of machines: what runs and is paid for, whatever objects say. A replica
// reaches it through a CloudProvider, which is given to the Application in the place of its own; a
// call travels for a while, and its answer and reports too, and none survives the process.
//
// Lies, each until a time: nodes smaller or larger than promised, late (ten times the boot time),
// never, twice (a second machine for the same request), back after its end, names of its own, calls
// that are refused (403), out of stock, out of stock for each second machine that is asked for, or
// never answered, large nodes, or all nodes, with a taint that nothing announced; starts and ends
// of machines that are not reported.
//
// Ownership: borrows time and server. Thread-safety: none, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/provider.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

enum class Lie : uint8_t {
  kSmaller,
  kLarger,
  kLate,
  kNever,
  kTwice,
  kAfterEnd,
  kOwnNames,
  kForbidden,
  kNoStock,
  kUnanswered,
  kUnreported,
  kTainted,
  kAllTainted,
  kPartStock,
};
inline constexpr size_t kLies = 14;
// "smaller", "own-names", ...; kLies entries.
const char* LieName(Lie lie);

class Cloud {
 public:
  struct Machine {
    std::string id, request, uid, type, node;  // uid: of the NodeRequest
    int64_t price_micro_usd_per_hour = 0, gpus = 0;
    absl::Time started, ended = absl::InfiniteFuture();
    absl::Time ready = absl::InfiniteFuture();
    bool ran_a_pod = false;
    // A second one of a request, or one that came back after its end: no purchase of ours.
    bool uninvited = false;
    [[nodiscard]] std::string provider_id() const { return "sim://" + id; }
  };

  Cloud(EventQueue* time, ApiServer* server, uint64_t seed);

  void LieUntil(Lie lie, absl::Time until) { lies_[static_cast<size_t>(lie)] = until; }
  // From now on, but for what it always lies about (InfiniteFuture).
  void BeHonest();
  // It always sells what no pod can use.
  [[nodiscard]] bool NeverHelps() const {
    return lies_[static_cast<size_t>(Lie::kAllTainted)] == absl::InfiniteFuture();
  }
  // A machine that an older version bought: its type is in no catalogue any more, and its request
  // has no price. Its node is ready.
  void Inherit(const std::string& name, int64_t gpus, int64_t price_micro_usd_per_hour);
  // From now on each node that registers gets a static pod, as kube-proxy is one.
  void RunStaticPods() { static_pods_ = true; }
  // One machine goes without a word, if there is any.
  void LoseOne();
  // One of those that have a node is announced to end (a taint, as a cloud's agent sets it), and
  // ends after the notice.
  void TakeBack(int64_t pick, absl::Duration notice);
  // Until then the nodes' agents write an annotation every few seconds.
  void BeatUntil(absl::Time until);

  void Launch(const model::LaunchNode& launch, const std::function<void(absl::Status)>& answer);
  // `sent`: when the call set out.
  void Terminate(const model::TerminateNode& terminate, absl::Time sent,
                 const std::function<void(absl::Status)>& answer);

  // Called when a machine has started or ended, until it answers false.
  void OnChange(std::function<bool(const Machine& machine)> listener) {
    on_change_.push_back(std::move(listener));
  }
  [[nodiscard]] const std::vector<Machine>& machines() const { return machines_; }
  // What is paid for now, uninvited machines aside.
  [[nodiscard]] int64_t live_gpus() const;
  [[nodiscard]] int64_t live_price() const;
  [[nodiscard]] int64_t live_count() const;
  // Called for each machine that a Terminate ends, before it does.
  void OnTerminate(std::function<void(const Machine& machine, absl::Time sent)> listener) {
    on_terminate_ = std::move(listener);
  }
  // Called for each call of a replica: "launch", and the uid of the request; or "terminate", and
  // the provider's id of the machine, empty for all of the request.
  using CallListener = std::function<void(const std::string& call, const std::string& request,
                                          const std::string& id)>;
  void OnCall(CallListener listener) { on_call_ = std::move(listener); }

 private:
  [[nodiscard]] bool Lying(Lie lie) const;
  void Start(const model::LaunchNode& launch);
  void Register(size_t machine, const model::Node& promised);
  void End(size_t machine);
  void Tell(size_t machine);
  void Change(const std::string& node, const char* actor, const std::function<void(Json&)>& change);
  void Beat();

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::array<absl::Time, kLies> lies_;
  std::vector<Machine> machines_;
  std::function<void(const Machine&, absl::Time)> on_terminate_;
  std::vector<std::function<bool(const Machine&)>> on_change_;
  CallListener on_call_;
  bool static_pods_ = false;
  int64_t asked_in_part_ = 0;  // machines, while the stock is for a part of them
  absl::Time beat_until_ = absl::InfinitePast();
  int64_t beats_ = 0;
};

// What one replica has of the cloud.
class CloudProvider final : public hook::Provider {
 public:
  CloudProvider(EventQueue* time, Cloud* cloud, std::string name, uint64_t seed)
      : time_(time),
        cloud_(cloud),
        name_(std::move(name)),
        random_(seed),
        alive_(std::make_shared<bool>(true)) {}
  // Called when a call ("launch", "terminate") arrives, and with `done` when the cloud has done it.
  // False: the caller has died: the call is lost, or its answer. Not called for a dead caller.
  using Witness = std::function<bool(const std::string& call, bool done)>;
  void OnCall(Witness witness) { witness_ = std::move(witness); }
  [[nodiscard]] absl::string_view name() const override { return name_; }
  void Start(hook::ProviderListener* listener) override;
  void ReportAll() override;
  void Launch(std::vector<hook::LaunchOrder> orders) override;
  void Terminate(const model::TerminateNode& terminate, Answer answer) override;

 private:
  void Report(const Cloud::Machine& machine);
  void Travel(const char* call, std::function<void()> what);
  std::function<void(absl::Status)> Back(Answer answer);

  EventQueue* time_;
  Cloud* cloud_;
  std::string name_;
  Random random_;
  Witness witness_;
  hook::ProviderListener* listener_ = nullptr;
  absl::Time last_report_ = absl::InfinitePast();  // arrives then
  std::shared_ptr<bool> alive_;                    // answers to a process that died are dropped
};

}  // namespace fairlead::sim::world
