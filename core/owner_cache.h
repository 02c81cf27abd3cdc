// What is known of the objects that own pods, whatever their kind (grouping/owners.h), and the
// reads by which it is known.
//
//   unread ──▶ read ──▶ known: read again after kRefresh while it has users
//                  └──▶ failed: read again after a pause that doubles
//
// An object is kept by its name and its uid, so another object of the name is not taken for it: it
// counts as gone. One that was read again with the same resourceVersion is unchanged, and its users
// are not told. It is kept while it has users: pods that wait for a group, and groups.
//
// Reads are bounded: kReads at once, and so many a second of each Reason that none delays the
// others. Namespaces take turns, so pods whose owners cannot be read, or are too many, delay the
// pods of their namespace alone. An object is read at most once in kRecent.
//
// Thread-safety: the owner's thread. Determinism: in the order of the namespaces' turns, then of
// due times, then of keys. Complexity: O(log objects) per call; Step O(namespaces + reads).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "document/json.h"
#include "grouping/owners.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::core {

// What the answer to a ReadObject, or to a ListSuspended, has; else why it has nothing.
absl::StatusOr<Json> ObjectOf(const model::ActionResult& answer);

// Reads that are due, by namespace, as many as a rate permits.
class PacedReads {
 public:
  // `burst`: as many may go at once after a quiet time.
  PacedReads(int64_t per_second, int64_t burst);
  void Set(const std::string& ns, const std::string& key, absl::Time due);
  void Erase(const std::string& ns, const std::string& key);
  // The key of the next one, which is erased; nothing: none is due, or the rate is used up.
  std::optional<std::string> Take(absl::Time now);
  // When Take may give one; infinite future: there is none.
  [[nodiscard]] absl::Time due() const;

 private:
  // Of the next that the rate permits.
  [[nodiscard]] absl::Time RateDue() const { return spent_ - allowance_; }

  absl::Duration interval_, allowance_;
  absl::Time spent_ = absl::InfinitePast();
  std::map<std::string, std::map<std::string, absl::Time>> due_by_key_;               // by ns
  std::map<std::string, std::set<std::pair<absl::Time, std::string>>> due_in_order_;  // by ns
  std::string last_;  // the namespace that had its turn
};

class OwnerCache {
 public:
  static constexpr size_t kReads = 16;
  static constexpr absl::Duration kRefresh = absl::Seconds(30);
  static constexpr absl::Duration kRecent = absl::Seconds(1);
  // An object that gives a pod no group: it may be incomplete still.
  static constexpr Backoff kIncomplete = {absl::Seconds(5), absl::Seconds(30)};

  // What depends on an object.
  struct User {
    bool is_group = false;  // a group, else a pod
    std::string key;        // "ns/name"
    friend auto operator<=>(const User&, const User&) = default;
  };
  using Keys = std::set<std::string>;
  // Why an object is read, and how many reads of the kind there are a second at most.
  enum class Reason : uint8_t {
    kAwaited,   // a pod waits for it: `reads_per_second`
    kPodGone,   // of a group: half of that
    kRepeated,  // now and then: a tenth
  };

  OwnerCache(int64_t reads_per_second, Backoff backoff);

  static std::string KeyOf(const grouping::ObjectName& name);

  // As grouping::Objects::Find. `not_before`: what was read before counts as not read; failures
  // count always.
  [[nodiscard]] absl::StatusOr<const Json*> Find(const std::string& key,
                                                 absl::Time not_before) const;
  // Why the last read of it failed; OK: it did not, or there was none.
  [[nodiscard]] absl::Status ProblemOf(const grouping::ObjectName& name) const;

  // The object is to be read for this user, not before kRecent after its last read.
  void Want(const grouping::ObjectName& name, const User& user, Reason reason, absl::Time now);
  // The user depends on these objects and no longer on the former ones.
  void Depend(const User& user, Keys& former, Keys objects);
  // They gave a pod no group.
  void ReadSoon(const Keys& objects);
  // They may have changed with the pods of a group.
  void ReadNow(const Keys& objects, absl::Time now);

  // The answer to an action of Step. Returns those to whom the object may say something else now.
  std::vector<User> Answered(const model::ReadObject& read, const model::ActionResult& result,
                             absl::Time now);
  // Appends the reads that are due. Returns when the next one is.
  absl::Time Step(absl::Time now, std::vector<model::Action>& actions);

  [[nodiscard]] size_t size() const { return rows_.size(); }

 private:
  struct Row {
    grouping::ObjectName name;
    std::optional<Json> object;
    absl::Status problem;                       // of the last read
    absl::Time read_at = absl::InfinitePast();  // when the last answered read was sent
    absl::Time sent_at = absl::InfinitePast();
    bool in_flight = false;
    bool again = false;  // wanted while it is in flight
    Reason sent_for = Reason::kRepeated;
    int64_t failures = 0;                             // in a row
    int64_t incomplete = 0;                           // reads in a row that gave a pod no group
    absl::Time incomplete_at = absl::InfinitePast();  // the read_at that was counted last
    absl::Time due = absl::InfiniteFuture();
    Reason reason = Reason::kRepeated;
    std::set<User> users;
  };
  PacedReads& ReadsOf(Reason reason) { return paced_[static_cast<size_t>(reason)]; }
  void Schedule(const std::string& key, Row& row, absl::Time due, Reason reason);
  void Unschedule(const std::string& key, const Row& row);
  void Send(Row& row, absl::Time now, std::vector<model::Action>& actions);
  // A row that is not used any more is dropped, unless an answer is missing.
  void DropIfUnused(const std::string& key);
  // True if what is known has changed.
  bool Take(Row& row, absl::StatusOr<Json> read);

  const Backoff backoff_;
  std::map<std::string, Row> rows_;  // by KeyOf
  std::array<PacedReads, 3> paced_;  // by Reason
  size_t reading_ = 0;
};

}  // namespace fairlead::core
