// Internal to the provider karpenter: its state, a row per name of a NodeRequest.
// karpenter_provider.cc has lists and reports, karpenter_orders.cc creations, karpenter_ends.cc
// deletions.
//
// Nothing is called while a row is being changed: answers, reports and writes are collected and
// done by Flush, at the end of every entry. So a listener and a port may call back at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autoscale-hook/providers/karpenter/claim_lists.h"
#include "autoscale-hook/providers/karpenter/claim_order.h"
#include "autoscale-hook/providers/karpenter/claim_writes.h"
#include "autoscale-hook/providers/karpenter/karpenter_provider.h"

namespace fairlead::hook {

class KarpenterProvider::State final : public ClaimLists::Client,
                                       public std::enable_shared_from_this<State> {
 public:
  State(KarpenterOptions options, Scheduler* scheduler, ClaimApi* api);

  void Start(ProviderListener* listener);
  void ReportAll();
  void Launch(std::vector<LaunchOrder> orders);
  void Terminate(const model::TerminateNode& terminate, Answer answer);
  // From now on nothing is answered, reported or written.
  void Close() { closed_ = true; }

 private:
  // A claim that is to be created. It waits in `writes_`, is in flight, or waits for a list.
  struct Creation {
    uint64_t id = 0;
    std::string uid, body;
    std::vector<Answer> answers;
    bool in_flight = false, expired = false;
    uint64_t decided_by = 0;  // AlreadyExists: the list that shows whose claim it is
    int refusals = 0;         // AlreadyExists, and the list showed no such claim
  };
  struct Ending {
    Answer answer;
    std::string provider_id;
    uint64_t decided_by = 0;  // the first list that may prove the end
    bool writing = false;     // a deletion waits in `writes_`, or is in flight
  };
  struct Told {
    MachineState state = MachineState::kStarting;
    std::string machine_id;
    friend bool operator==(const Told&, const Told&) = default;
  };
  struct Row {
    bool exists = false;             // a claim of ours was created or listed, and not seen to go
    std::string uid;                 // of its NodeRequest
    std::optional<NodeClaim> claim;  // as it was listed last; absent: not listed yet
    uint64_t shown_by = 0;           // the first list that shows it if it exists
    bool seen = false;               // it was created for certain, or listed, in this process
    bool failing = false;            // its launch has failed, and is retried
    bool given_up = false;           // it was deleted for that
    bool deleted_here = false;       // the API server has, or may have, accepted our deletion
    std::optional<Told> told;
    std::string refused_uid;  // of an order: the claim of this name is another request's
    std::optional<Creation> creation;
    std::optional<Ending> ending;
    int in_doubt = 0;  // creations of unknown outcome that may still come
  };
  // What a list shows of one name.
  struct Listed {
    const NodeClaim* ours = nullptr;
    const NodeClaim* foreign = nullptr;
  };
  using Rows = std::map<std::string, Row>;

  // Lists and reports.
  [[nodiscard]] bool IsBusy() const override;
  void OnListed(uint64_t number, std::vector<NodeClaim> claims) override;
  void OnListProblem(const absl::Status& problem) override;
  void TakeListed(const std::string& name, uint64_t number, const Listed& listed);
  void TakeClaim(const std::string& name, Row& row, const NodeClaim* claim);
  void ReportChange(const std::string& name, Row& row);
  void ReportGone(const std::string& name, Row& row);
  // Asks for the event that tells why, and then reports.
  void ReportUntold(const NodeClaim& last, const Row& row);
  void Report(const std::string& name, const Row& row, const Told& told,
              absl::Status why = absl::OkStatus());

  // Orders.
  void LaunchOne(LaunchOrder order);
  void Enqueue(const std::string& name, uint64_t creation);
  bool SendCreation(const std::string& name, uint64_t creation);
  void OnCreated(const std::string& name, const absl::Status& status);
  void OnCreationTimeout(const std::string& name, uint64_t creation);
  void DecideCreation(const std::string& name, Row& row, uint64_t number, const Listed& listed);
  void AnswerCreation(Row& row, const absl::Status& status, const std::string& id = "");
  void DoubtCreation(const std::string& name, Row& row);

  // Ends.
  void AdvanceEnding(const std::string& name, Row& row);
  void GiveUpLater(const std::string& name, Row& row);
  void DecideEnding(const std::string& name, Row& row, uint64_t number);
  bool SendDeletion(const std::string& name, const std::string& claim_uid);
  void OnDeleted(const std::string& name, const std::string& claim_uid, const absl::Status& status);
  void AnswerEnding(Row& row, const absl::Status& status);
  // The claim is of another request than the last order of its name.
  [[nodiscard]] static bool IsRefusedClaim(const Row& row) {
    return !row.refused_uid.empty() && row.uid != row.refused_uid;
  }
  [[nodiscard]] std::string ClaimWithId(const std::string& provider_id) const;

  void EraseIfEmpty(const std::string& name);
  void Reply(Answer answer, ProviderAnswer status);
  void After(absl::Duration delay, std::function<void(State&)> callback);
  void Flush();

  KarpenterOptions options_;
  Scheduler* scheduler_;
  ClaimApi* api_;
  ProviderListener* listener_ = nullptr;
  ClaimLists lists_;
  ClaimWrites writes_;
  Rows rows_;
  uint64_t creations_ = 0;
  bool start_in_doubt_ = true;  // creations of a former process may still come
  std::deque<std::function<void()>> out_;
  bool flushing_ = false, closed_ = false;
};

}  // namespace fairlead::hook
