#include "cmd/simtest/process_checks.h"

#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/write/write_queue.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"

namespace fairlead::simtest {
namespace {

using sim::world::ApiServer;
using sim::world::ResourceType;
using sim::world::TextAt;

// Writes about one object that may wait at once: its status, its taints, its eviction and what
// follows it; and for what is not an object of the API server.
constexpr int64_t kWritesPerObject = 4, kOtherWrites = 20;
// Most objects have one kind of write, pods have a binding, an eviction and a condition.
constexpr int64_t kKindsPerObject = 2;
constexpr int64_t kEvents = 1000;  // ExecutorOptions::max_queued_events

}  // namespace

ProcessChecks::ProcessChecks(const sim::EventQueue* time, ApiServer* server,
                             const SettingsFiles* files, Fail fail)
    : time_(time), server_(server), files_(files), fail_(std::move(fail)) {
  server->Listen([this](const ApiServer::Commit& commit) { OnCommit(commit); });
}

void ProcessChecks::OnCommit(const ApiServer::Commit& commit) {
  const std::string actor(commit.actor);
  if (commit.type == ResourceType::kLeases) {
    const std::string holder =
        commit.after == nullptr ? "" : TextAt(*commit.after, {"spec", "holderIdentity"});
    if (holder.empty() && holder_ == actor) released_.insert(actor);
    holder_ = holder;
    return;
  }
  if (commit.type == ResourceType::kEvents) return;
  if (commit.before == nullptr) ++live_;
  if (commit.after == nullptr) {
    --live_;
    removed_.push_back(time_->now());
  }
  if (!released_.contains(actor)) return;
  const sim::world::Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  fail_("writers",
        absl::StrCat(actor, " has given its lease back, and wrote ", TextAt(object, {"kind"}), " ",
                     TextAt(object, {"metadata", "name"})));
}

int64_t ProcessChecks::Objects() {
  while (!removed_.empty() && removed_.front() < time_->now() - kQueueMemory) removed_.pop_front();
  return live_ + static_cast<int64_t>(removed_.size());
}

void ProcessChecks::Stopping(size_t replica, const std::string& identity, bool undisturbed) {
  stops_[replica] = {identity, time_->now(), undisturbed};
}

void ProcessChecks::CheckStop(size_t index, const Replica& replica) {
  Stop& stop = stops_[index];
  if (stop.identity.empty()) return;
  if (replica.frozen()) stop.since = time_->now();
  if (replica.alive() && replica.identity() == stop.identity) {
    const absl::Duration lasts = time_->now() - stop.since;
    if (lasts <= kStopWithin) return;
    fail_("stop", absl::StrCat(stop.identity, " was told to stop, and runs after ",
                               absl::FormatDuration(lasts)));
  } else if (stop.undisturbed && holder_ == stop.identity) {
    fail_("stop", absl::StrCat(stop.identity, " has stopped, and has not given its lease back"));
  }
  stop = {};
}

void ProcessChecks::CheckFiles(const Replica& replica) {
  const absl::Time now = time_->now();
  const absl::Time since = std::max({files_written_at_, replica.began(), replica.frozen_until()});
  if (replica.reloader() == nullptr || replica.ending() || replica.frozen()) return;
  if (now - since <= kReadWithin) return;
  const cmd::ReloadStats stats = replica.reloader()->GetStats();
  if (stats.stale != files_->usable()) return;
  fail_("reload",
        absl::StrCat(replica.identity(), stats.stale ? " has not taken" : " has taken",
                     " configuration ", files_->configuration(), " and catalogue ",
                     files_->catalogue(), ", written ", absl::FormatDuration(now - since), " ago"));
}

void ProcessChecks::CheckQueues(const Replica& replica) {
  if (replica.application() == nullptr) return;
  const cmd::AppStats stats = replica.application()->GetStats();
  const int64_t objects = Objects();
  const auto queued = static_cast<int64_t>(stats.queue.queued);
  int64_t writes = 0;
  for (size_t lane = 0; lane < stats.writes.queued.size(); ++lane) {
    if (lane == static_cast<size_t>(kube::WriteLane::kEvent)) continue;
    writes += static_cast<int64_t>(stats.writes.queued[lane]);
  }
  CheckLoop(replica, objects);
  // An answer to each write is queued, too.
  const int64_t most_writes = kWritesPerObject * objects + kOtherWrites;
  if (queued > 2 * objects + most_writes + kEvents) {
    fail_("queues", absl::StrCat(replica.identity(), " has ", queued, " events in its queue; ",
                                 objects, " objects are there, or were lately"));
  }
  if (writes > most_writes) {
    fail_("queues", absl::StrCat(replica.identity(), " has ", writes, " writes in its queue; ",
                                 objects, " objects are there, or were lately"));
  }
}

// Each object has at most one write of a kind there (core::QueueSizes).
void ProcessChecks::CheckLoop(const Replica& replica, int64_t objects) {
  if (replica.loop() == nullptr) return;
  const core::QueueSizes sizes = replica.loop()->queue_sizes();
  const std::pair<const char*, size_t> rows[] = {{"in flight", sizes.in_flight},
                                                 {"to be repeated", sizes.retries},
                                                 {"verdicts that wait", sizes.verdicts_waiting},
                                                 {"evictions that wait", sizes.evictions_waiting},
                                                 {"bindings that are held", sizes.bindings_held},
                                                 {"events to be sent", sizes.events_waiting},
                                                 {"shared GPUs to be served", sizes.shares_waiting},
                                                 {"conditions known", sizes.conditions_known}};
  for (const auto& [what, count] : rows) {
    const int64_t most = kKindsPerObject * objects + kOtherWrites;
    if (static_cast<int64_t>(count) <= most) continue;
    fail_("queues", absl::StrCat(replica.identity(), ": ", what, ": ", count, "; ", objects,
                                 " objects are there, or were lately"));
  }
}

void ProcessChecks::EverySecond(size_t index, const Replica& replica) {
  CheckStop(index, replica);
  CheckFiles(replica);
  CheckQueues(replica);
}

void ProcessChecks::WhileCalm(const Replica& replica, absl::Duration quiet_for) {
  if (replica.application() == nullptr || quiet_for < kQuiet) {
    busy_since_.erase(replica.identity());
    return;
  }
  const cmd::AppStats stats = replica.application()->GetStats();
  const auto writes = static_cast<int64_t>(
      std::accumulate(stats.writes.queued.begin(), stats.writes.queued.end(), size_t{0}));
  if (writes > kOtherWrites) {
    fail_("queues", absl::StrCat(replica.identity(), " has ", writes, " writes in its queue after ",
                                 absl::FormatDuration(quiet_for), " without a change"));
  }
  // A standby writes nothing.
  if (replica.loop() == nullptr || replica.identity() != holder_) return;
  const core::QueueSizes sizes = replica.loop()->queue_sizes();
  const size_t waits = sizes.in_flight + sizes.retries + sizes.verdicts_waiting +
                       sizes.evictions_waiting + sizes.bindings_held;
  // What the program does by time alone (scaling down) ends, too.
  if (waits == 0) {
    busy_since_.erase(replica.identity());
    return;
  }
  const absl::Time since = busy_since_.try_emplace(replica.identity(), time_->now()).first->second;
  if (time_->now() - since <= kQuiet) return;
  fail_("queues",
        absl::StrCat(replica.identity(), " does not come to an end: in flight ", sizes.in_flight,
                     ", to be repeated ", sizes.retries, ", verdicts ", sizes.verdicts_waiting,
                     ", evictions ", sizes.evictions_waiting, ", bindings ", sizes.bindings_held,
                     " after ", absl::FormatDuration(quiet_for), " without a change"));
}

}  // namespace fairlead::simtest
