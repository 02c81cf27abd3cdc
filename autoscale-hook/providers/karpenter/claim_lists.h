// Lists all NodeClaims of Fairlead, again and again: soon while something is awaited, seldom
// otherwise, and never faster than a millisecond per claim. A list that fails is begun again, after
// pauses that grow, and shows nothing.
//
// Lists have numbers, in the order in which they begin, and one is under way at a time. A list that
// begins after a write was answered shows it (claim_api.h), so `next` says which list decides.
//
// Ownership: a member of its owner, which Start names; does not own ports and client. Callbacks
// that arrive after the owner's destruction are ignored. Thread-safety: the owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/karpenter/claim_api.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

class ClaimLists {
 public:
  struct Options {
    absl::Duration poll = absl::Seconds(1), idle_poll = absl::Seconds(15);
    Backoff backoff = {absl::Seconds(1), absl::Minutes(1)};
  };
  class Client {
   public:
    virtual ~Client() = default;
    // True if something is awaited that a list may show.
    [[nodiscard]] virtual bool IsBusy() const = 0;
    // All pages of one list.
    virtual void OnListed(uint64_t number, std::vector<NodeClaim> claims) = 0;
    // Once per new text.
    virtual void OnListProblem(const absl::Status& problem) = 0;
  };
  // More claims, or pages, of one list are an error.
  static constexpr size_t kMostClaims = 200'000;
  static constexpr size_t kMostPages = 10'000;

  ClaimLists(Options options, Scheduler* scheduler, ClaimApi* api, Client* client)
      : options_(options), scheduler_(scheduler), api_(api), client_(client) {}

  void Start(std::weak_ptr<void> owner);
  // The client has become busy. Lists nothing before it returns.
  void Hurry();
  // The number of the list that begins next.
  [[nodiscard]] uint64_t next() const { return begun_ + 1; }

 private:
  void Arm(absl::Duration delay);
  void Begin();
  void ListPage(const std::string& continuation);
  void OnPage(absl::StatusOr<ClaimPage> page);
  void Fail(const absl::Status& status);
  void Tell(const absl::Status& problem, std::string& told);
  [[nodiscard]] absl::Duration Delay(bool busy) const;

  Options options_;
  Scheduler* scheduler_;
  ClaimApi* api_;
  Client* client_;
  std::weak_ptr<void> owner_;
  uint64_t begun_ = 0;
  bool running_ = false;
  std::vector<NodeClaim> claims_;  // of the pages so far
  size_t pages_ = 0;
  size_t last_count_ = 0;  // claims of the last complete list
  int64_t failures_ = 0;   // in a row
  std::string told_failure_, told_fault_;
  uint64_t timer_ = 0;                               // the one that counts
  absl::Duration armed_ = absl::InfiniteDuration();  // its delay
};

}  // namespace fairlead::hook
