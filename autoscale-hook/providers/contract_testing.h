// The tests that every provider passes: the contract of provider.h as a suite. contract_test.cc has
// the tests, contract_fixture_test.cc their fixture. A provider's test supplies a ContractWorld,
// and runs the suite with
//
//   INSTANTIATE_TEST_SUITE_P(Kwok, ProviderContract, ::testing::Values(&MakeKwokWorld));
//
// A world is the provider's back end in virtual time, with faults. What a provider cannot do is a
// trait of its world; the suite then checks that it does not do it.
//
// Ownership: a world owns its back end, its time and its faults; providers die before it.
// Thread-safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/provider.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "base/testing/random.h"

namespace fairlead::hook {

class VirtualTime final : public Scheduler {
 public:
  void After(absl::Duration delay, std::function<void()> callback) override {
    due_.emplace(now_ + delay, std::move(callback));
  }
  void Advance(absl::Duration by) {
    const absl::Duration end = now_ + by;
    while (!due_.empty() && due_.begin()->first <= end) {
      now_ = due_.begin()->first;
      auto callback = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      callback();
    }
    now_ = end;
  }
  [[nodiscard]] absl::Duration now() const { return now_; }

 private:
  absl::Duration now_ = absl::ZeroDuration();
  std::multimap<absl::Duration, std::function<void()>> due_;
};

enum class Fault : uint8_t {
  kNone,
  kDown,       // nothing is done, the outcome is unknown
  kLostReply,  // it is done, the outcome is unknown
  kThrottled,  // 429
  kForbidden,  // 403
};

// Between a provider and its back end: every call goes through Call.
class BackEndCalls {
 public:
  using Work = std::function<absl::Status()>;
  using Reply = std::function<void(const absl::Status&)>;

  // `latency`: of the work, and again of the reply. Zero: all is done before Call returns.
  explicit BackEndCalls(VirtualTime* time, absl::Duration latency = absl::ZeroDuration())
      : time_(time), latency_(latency) {}

  void Call(bool writes, Work work, Reply reply) {
    ++count_;
    if (hold_all_ || (hold_writes_ && writes)) {
      return held_.push_back({writes, std::move(work), std::move(reply)});
    }
    if (latency_ == absl::ZeroDuration()) return Do(writes, work, reply);
    time_->After(latency_, [this, writes, work = std::move(work), reply = std::move(reply)] {
      Do(writes, work, reply);
    });
  }
  // The next `calls` that write.
  void FailWrites(Fault fault, int calls = 1) {
    write_fault_ = fault;
    failing_writes_ = calls;
  }
  // Every call, until it is kNone.
  void FailAll(Fault fault) { fault_ = fault; }
  // Until Release calls wait, undone; or those that write; or those that read are done, and their
  // replies wait.
  void Hold() { hold_all_ = true; }
  void HoldWrites() { hold_writes_ = true; }
  void HoldReadReplies() { hold_read_replies_ = true; }
  void Release() {
    hold_all_ = hold_writes_ = hold_read_replies_ = false;
    for (auto replies = std::exchange(read_replies_, {}); !replies.empty(); replies.pop_front()) {
      replies.front()();
    }
    for (auto held = std::exchange(held_, {}); !held.empty(); held.pop_front()) {
      Do(held.front().writes, held.front().work, held.front().reply);
    }
  }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] size_t held() const { return held_.size(); }

 private:
  struct Held {
    bool writes = false;
    Work work;
    Reply reply;
  };
  void Do(bool writes, const Work& work, const Reply& reply) {
    Fault fault = fault_;
    if (writes && failing_writes_ > 0) {
      --failing_writes_;
      fault = write_fault_;
    }
    const absl::Status status = Outcome(fault, work);
    if (!writes && hold_read_replies_) {
      return read_replies_.push_back([reply, status] { reply(status); });
    }
    if (latency_ == absl::ZeroDuration()) return reply(status);
    time_->After(latency_, [reply, status] { reply(status); });
  }
  static absl::Status Outcome(Fault fault, const Work& work) {
    switch (fault) {
      case Fault::kNone:
        return work();
      case Fault::kLostReply:
        (void)work();
        return absl::UnavailableError("connection reset");
      case Fault::kDown:
        return absl::UnavailableError("no connection");
      case Fault::kThrottled:
        return absl::ResourceExhaustedError("429 too many requests");
      case Fault::kForbidden:
        return absl::PermissionDeniedError("403 forbidden");
    }
    return absl::InternalError("no such fault");
  }

  VirtualTime* time_;
  absl::Duration latency_;
  bool hold_all_ = false, hold_writes_ = false, hold_read_replies_ = false;
  std::deque<Held> held_;
  std::deque<std::function<void()>> read_replies_;
  Fault fault_ = Fault::kNone, write_fault_ = Fault::kNone;
  int failing_writes_ = 0;
  int64_t count_ = 0;
};

// The instance types that a world sells.
inline constexpr char kUsualType[] = "usual.1";  // runs within 2 minutes
inline constexpr char kLateType[] = "late.1";    // runs after 4 minutes
inline constexpr char kNeverType[] = "never.1";  // accepted, but never runs
inline constexpr char kNoneType[] = "none.1";    // out of stock

struct ProviderTraits {
  // It watches its back end. If not, it reports only machines that this process ordered: no
  // kRunning, no loss of a machine, and nothing after a restart. Then a machine of a former process
  // is unknown to it: if its order is refused this time, it is wrongly reported as gone.
  bool watches = true;
  // All its nodes have the label fairlead.dev/node-request from their registration on.
  bool labels_nodes = true;
  // It knows a machine before its node registers. If not, what makes the nodes replaces a machine
  // that is lost before, and the provider is not told.
  bool sees_starts = true;
};

class ContractWorld {
 public:
  // `latency`: of the back end (BackEndCalls).
  explicit ContractWorld(absl::Duration latency = absl::Milliseconds(20)) : calls(&time, latency) {}
  virtual ~ContractWorld() = default;
  [[nodiscard]] virtual ProviderTraits traits() const = 0;
  // A new process over the same back end.
  virtual std::unique_ptr<Provider> MakeProvider() = 0;
  // The ids of the machines that were started for requests of this name and exist.
  virtual std::set<std::string> Machines(const std::string& request) = 0;
  // Its machine is ended by a third party, whether it runs or not.
  virtual void Vanish(const std::string& request) = 0;
  // Its machine, which runs, is replaced by another one, of another id if the back end makes ids.
  // Does nothing where that cannot be.
  virtual void Replace(const std::string&) {}
  // A machine that Fairlead has not ordered, and whether it still exists.
  virtual void AddForeigner(const std::string& name) = 0;
  virtual bool HasForeigner(const std::string& name) = 0;

  VirtualTime time;
  BackEndCalls calls;
};

using WorldFactory = std::unique_ptr<ContractWorld> (*)();

// A world, a process with a provider, and what that was asked and said.
class ProviderContract : public ::testing::TestWithParam<WorldFactory>, public ProviderListener {
 protected:
  struct Call {
    std::string request;
    int answers = 0;
    bool lost = false;  // its provider is destroyed
    ProviderAnswer answer = absl::UnknownError("no answer yet");
    [[nodiscard]] bool ok() const { return answers == 1 && answer.status.ok(); }
  };
  struct Wanted {
    std::string name, uid, type = kUsualType;
  };

  void SetUp() override;
  // Ends all faults, and checks that each call was answered once.
  void TearDown() override;

  void OnMachine(const MachineReport& report) override;
  void OnOffers(absl::string_view, std::shared_ptr<const Catalog>) override {}
  void OnProblem(absl::string_view, const absl::Status& problem) override {
    EXPECT_FALSE(problem.ok());
    ++problems_;
  }

  Call* Order(const Wanted& wanted) { return OrderSet({wanted}).front(); }
  // `atomic`: as one set of which a part is of no use (machines/launch_set.h).
  std::vector<Call*> OrderSet(const std::vector<Wanted>& set, bool atomic = false);
  Call* End(const std::string& name, const std::string& id = "");
  // What the hook does: asks, and asks again 30 seconds after an answer of unknown outcome, or
  // after a minute without an answer.
  void OrderUntilOk(const Wanted& wanted);
  void EndUntilOk(const std::string& name, const std::string& id = "");
  // The same, repeated until all of the atomic set is OK.
  void OrderWholeUntilOk(const std::vector<Wanted>& set);
  // What the hook does with a machine that it does not want any more, whatever it knows of it.
  void GiveBack(const std::string& name);
  // Lets time pass in steps of a second, and checks that machines that were ended do not come back.
  void Pass(absl::Duration duration);
  void Restart();
  void Destroy();
  // `steps` random ones, as the hook would take them: a name is ordered again, for another uid,
  // after its end is told. Then all is ended.
  void RunAtRandom(fairlead::testing::Random& random, int steps);

  std::set<std::string> Machines(const std::string& name) { return world_->Machines(name); }
  // The id as answers and reports tell it; empty if none has.
  std::string ToldId(const std::string& name) const;
  // All reports of the name have one of these states, in this order; repetitions are left out.
  std::vector<MachineState> States(const std::string& name) const;
  // Why it failed, as the answer or the report says; OK if neither does.
  absl::Status Failure(const Call& call) const;
  // Its machine runs: after this time that is so if it is of kUsualType.
  static constexpr absl::Duration kRuns = absl::Minutes(2);

  // A name at random: free (no uid), ordered, or being ended.
  struct Life {
    std::string uid;
    bool ending = false;
    std::string id;  // to end; empty: whatever it has
    Call* end = nullptr;
    absl::Duration asked;
  };
  Wanted WantAtRandom(fairlead::testing::Random& random, const std::string& name, Life& life);
  void OrderWholeAtRandom(fairlead::testing::Random& random, std::map<std::string, Life>& lives);
  void EndAgain(const std::string& name, Life& life);
  void FailAtRandom(fairlead::testing::Random& random);

  std::unique_ptr<ContractWorld> world_;
  std::unique_ptr<Provider> provider_;
  std::deque<Call> calls_;
  std::vector<MachineReport> reports_;
  std::map<std::string, std::string> uids_;  // of the last order of each name
  std::set<std::string> ended_;              // names; until they are ordered again
  int problems_ = 0;
};

}  // namespace fairlead::hook
