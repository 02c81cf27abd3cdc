// The orders of a process: which machine is whose, and what is to be written to the groups. It
// decides from what GroupReader has read; the provider makes the calls.
//
// The port has no tags and no tokens, so a machine belongs to an order by these rules:
//
//  1. After an accepted increase, instances whose ids were not there before go to the orders of
//     the group that wait, in the order of the ids and of the orders. Orders that are to end come
//     last. The id is reported at once; the hook keeps it in NodeRequest.status.providerID.
//  2. An order that comes again in another process is known by its request. If it has a provider
//     id, that is its machine. If it was launched and has no id, its increase was accepted, and
//     nothing is increased: it waits, and also takes an instance that is being created and belongs
//     to no order. If it is pending, its increase is in doubt: it takes an instance that belongs to
//     no order, was in the first list of this process and is still being created, else there is an
//     increase.
//  3. A place that is listed for a machine to come (CloudInstance::placeholder) is held by an order
//     without an id. When the machine is listed with the place as its former id, the order has it;
//     when the place just disappears, the order waits again, for the machine itself.
//  4. An instance of which the port knows that Fairlead has ordered it (CloudInstance::ordered) is
//     taken by an order that waits, and by one that is in doubt, whether it is new or not and
//     whether it runs, starts or has failed, unless another request has recorded its id.
//  5. All other instances belong to others. They are neither reported nor ended.
//
// What these rules cannot exclude:
//  - A process that dies between an increase and its answer may leave a machine of no order, if its
//    instance was not listed as being created when the next process began. Servers that tell no
//    states (AWS) never list one so.
//  - Another process knows no order whose request ends without an id: it answers OK, and the place
//    or the machine stays.
//  - A machine that is being created may be taken by an order of rule 2 until its request claims
//    it. Then it is taken back. The hook claims all in its first step.
//  - If others increase a group at the same time, orders may get their machines, which are equal.
//  - An increase that is carried out after DoubtIsOver is a machine of no order. So is a
//    replacement that the group has started before its target size was lowered.
//
// An increase of unknown outcome: nothing is written to the group until a target size, read after
// Refresh, shows the increase, or until DoubtIsOver. What the target size does not show then was
// not done. After an error that the server itself has made, one read decides.
//
// An instance that was to end is gone when two lists in a row do not have it, another one when
// three lists do not. If a machine is lost, and the group holds an open place that no order waits
// for, the target size is lowered, so that the group makes no replacement that belongs to no order.
//
// Answers and reports go to the outbox. Ownership: borrows the outbox. Thread-safety: none.
// Complexity: Observe is O(n log n) in instances, orders and ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autoscale-hook/providers/groups/group_reader.h"
#include "autoscale-hook/providers/groups/outbox.h"
#include "autoscale-hook/providers/provider.h"

namespace fairlead::hook {

class OrderTracker {
 public:
  struct Write {
    enum class Kind : uint8_t { kIncrease, kDecrease, kDelete };
    Kind kind = Kind::kIncrease;
    std::string group;
    int64_t delta = 0;                // of kIncrease and kDecrease, > 0
    CloudNode node = {};              // of kDelete
    std::vector<std::string> orders;  // by request name; of kDelete: the one it is about, if any
  };

  // `by_set`: an increase is for one atomic set, or for one order of no such set; else for all that
  // are due.
  OrderTracker(Outbox* outbox, bool by_set) : outbox_(outbox), by_set_(by_set) {}

  void Launch(LaunchOrder order);
  void Terminate(const model::TerminateNode& terminate, ProviderDone answer);
  void ReportAll();

  // After a round of reads; `views` stays valid and unchanged until the next call.
  void Observe(const GroupViews& views);
  // The round failed for all groups.
  void ReadFailed(const absl::Status& status);
  // What to write to the group next in this round. Its outcome is told before the next question.
  std::optional<Write> NextWrite(const std::string& group);
  // Returns a number for DoubtIsOver if the outcome is unknown for now, else 0.
  uint64_t Written(const Write& write, const absl::Status& status);
  // What the port is told about an increase.
  [[nodiscard]] Increase IncreaseOf(const Write& write) const;
  void DoubtIsOver(const std::string& group, uint64_t number);
  // Something is expected to change soon.
  [[nodiscard]] bool open() const;

 private:
  enum class Stage : uint8_t {
    kNew,       // nothing was written
    kSent,      // an increase is under way, or in doubt
    kAccepted,  // waits for its instance
    kAssigned
  };
  struct Order {
    std::string name, uid, group;
    std::string whole;    // id of its atomic set; empty: a part of a set is of use
    uint64_t number = 0;  // of arrival
    Stage stage = Stage::kNew;
    bool launched_before = false;  // by a former process: rule 2
    bool has_place = false;        // an increase was accepted for it
    bool told_ok = false;          // a Launch was answered so
    bool ending = false;           // it was told to end, and may be told again
    bool observed = false;         // by a round of reads: rule 2 was tried
    std::string instance;          // of kAssigned
    bool placeholder = false;      // that instance is one
    bool creating = false;
    bool ran = false;  // it was listed as running
    int missing = 0;   // lists in a row without it
    int without_place = 0;
    absl::Status error;  // why its machine cannot be created
    uint64_t tried = 0;  // the round of the last deletion for this error
    std::optional<MachineState> told;
    std::vector<ProviderDone> launches, ends;  // to be answered
  };
  // A Terminate with an id.
  struct End {
    std::string request, node_name, group;  // group: empty until a list has the id
    std::vector<ProviderDone> answers;
    bool accepted = false;
    int missing = 0;
    uint64_t lists_since = 0;  // since it was accepted, that still have it
    uint64_t tried = 0;        // a round
  };
  struct Doubt {
    uint64_t number = 0;
    int64_t before = 0, delta = 0;
    std::vector<std::string> orders;
    absl::Status status;
    bool one_read_decides = false;
  };
  struct Group {
    bool seen = false;
    std::set<std::string> first, known;  // ids
    std::set<std::string> removed;       // deletions that were accepted, while they are listed
    std::map<std::string, std::string> order_of;  // id -> name of the order
    int64_t target = 0;                           // as read, and with what was written since
    int64_t lost = 0;                             // open places to be taken back
    std::optional<Doubt> doubt;
    bool stopped = false;    // for this round: its server does not answer
    uint64_t decreased = 0;  // the round of the last decrease
  };

  // order_tracker.cc: calls, and the fate of single orders.
  void Assign(Order& order, const std::string& instance, bool placeholder);
  void Unassign(Order& order);
  void TakeBackGuess(Group& group, const std::string& instance, const std::string& request);
  void Report(Order& order, MachineState state, const absl::Status& why = absl::OkStatus());
  void AnswerLaunches(Order& order, const ProviderAnswer& answer);
  void AnswerEnds(Order& order, const ProviderAnswer& answer);
  void AnswerEndWithMachine(Order& order);
  void AnswerEnd(End& end, const absl::Status& status);
  void Accept(Order& order);
  void Refuse(const std::string& name, const absl::Status& status);
  void Drop(const std::string& name);
  std::vector<Order*> OrdersOf(const std::string& group, Stage stage);
  [[nodiscard]] bool HasMachine(const Order& order) const;

  // order_lists.cc: what lists of instances mean.
  void ObserveGroup(const std::string& id, const GroupView& view);
  void SettleDoubt(Group& group);
  void FollowRenamed(const std::string& id, const GroupView& view);
  void FollowInstances(const std::string& id, const GroupView& view);
  void FollowInstance(Order& order, const CloudInstance& instance);
  void Miss(const std::string& name, const GroupView& view);
  void AssignNew(const std::string& id, const GroupView& view);
  void SettleEndsOfOrders(const std::string& id, const GroupView& view);
  void NotRead(const std::string& id, const absl::Status& status);
  void ObserveEnds(const GroupViews& views);
  bool ObserveEnd(const std::string& id, End& end, const GroupViews& views);
  int64_t SparePlaces(const std::string& id, const GroupView& view);
  [[nodiscard]] int64_t OpenPlaces(const std::string& id, const GroupView& view) const;

  // order_writes.cc
  std::optional<Write> NextDelete(const std::string& id, const GroupView& view);
  std::optional<Write> NextEnd(const std::string& id, const GroupView& view);
  std::optional<Write> NextDecrease(const std::string& id, const GroupView& view);
  std::optional<Write> NextIncrease(const std::string& id, const GroupView& view);
  void RefuseBeyond(const std::string& id, const GroupView& view, std::vector<Order*>& orders);
  static void KeepOneSet(std::vector<Order*>& orders);
  void Deleted(const Write& write, const absl::Status& status);
  void Decreased(const Write& write, const absl::Status& status);
  uint64_t Increased(const Write& write, const absl::Status& status);

  Outbox* outbox_;
  const bool by_set_;
  std::map<std::string, Order> orders_;  // by request name
  std::map<std::string, End> ends_;      // by machine id
  std::map<std::string, Group> groups_;
  std::set<std::string> claimed_;  // ids that requests have recorded: not taken by rule 2
  const GroupViews* views_ = nullptr;
  uint64_t round_ = 0, last_number_ = 0, last_doubt_ = 0;
};

}  // namespace fairlead::hook
