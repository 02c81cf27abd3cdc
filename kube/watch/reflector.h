// Keeps the core's picture of one kind of objects in step with the API server: a snapshot, then a
// watch, for ever, whatever the server and the network do in between.
//
//   snapshot   preferably a WatchList (initial events of a watch up to the bookmark annotated
//              k8s.io/initial-events-end; the same stream then goes on as the watch), else a paged
//              LIST. A server that refuses WatchList (400, 422, 403 naming sendInitialEvents) is
//              remembered in ServerFeatures; one that never sends the end bookmark is remembered by
//              the reflector.
//   watch      with bookmarks, from the newest version seen. A clean end is normal; after any end
//   the
//              watch resumes from there, after a jittered delay.
//   410        as a status or as an ERROR event: a new snapshot, compared with what is known (see
//              reflector_store.h). The old picture stays until the new one is complete.
//   410 within a paged LIST: from the first page again; the third attempt asks for everything at
//   once.
//   404        of a custom kind or one of resource.k8s.io: its CRD is not installed, the server is
//              older; and 403 of an optional kind (model::IsOptional): rules from before it was
//              read. Counts as empty and synced, and is asked again now and then. What was known is
//              deleted only after kMissingConfirmations such answers.
//   silence    no answer to a watch within `header_limit`, or neither event nor bookmark for
//              `silence_limit`: the connection is dead, resume.
//   fruitless  watches one after the other that were accepted but delivered nothing (silence, a
//   version
//              from before a restore of the server, frames that do not decode): a new snapshot.
//   older snapshot than what is known: refused, the store never goes backwards; after
//              kStaleSnapshotLimit refusals in a row it is taken for a server restored from backup.
//   others     (no connection, 401, 403, 429, 5xx): again, with growing jittered delays and
//   Retry-After.
//
// Refresh asks for a new snapshot from now on, for a process that has to know what was written
// until now; `fresh` says when it is complete. The server answers snapshots consistently.
//
// Every event goes to the EventQueue; Synced goes there once, after the first snapshot, and of an
// optional kind again whenever it turns out to be missing or not to be any more.
//
// Thread-safety: Start, Stop, Refresh and GetStats from any thread; the rest runs in the
// transport's callbacks. After Stop returns nothing more is pushed. Transport, timers, clock, queue
// and features must outlive the reflector; callbacks that come later than its destruction are
// ignored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "scheduler/model/kind.h"

namespace fairlead::kube {

// What one process has learnt about its server; shared by all reflectors.
struct ServerFeatures {
  std::atomic<bool> watch_list{true};
};

struct ReflectorOptions {
  model::Kind kind = model::Kind::kPod;
  std::string field_selector;  // as a user would write it; empty: all objects
  uint64_t seed = 0;           // of all jitter
  int page_size = 500;
  // A watch asks the server to end it after a time within these, so that not all end at once.
  absl::Duration min_watch = absl::Minutes(5);
  absl::Duration max_watch = absl::Minutes(10);
  absl::Duration header_limit = absl::Seconds(30);
  // kBookmarkPeriodMax and a little: whatever the transport finds out, pods do not wait for longer
  // behind a dead connection. To resume a quiet watch costs one request.
  absl::Duration silence_limit = absl::Seconds(80);
  absl::Duration missing_retry = absl::Minutes(1);
  absl::Duration backoff_initial = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
  absl::Duration list_timeout = absl::Minutes(2);  // of one page
};

// The API server sends a bookmark a minute, give or take a quarter. So a watch that is open and has
// been silent for less is in step with the server.
inline constexpr absl::Duration kBookmarkPeriodMax = absl::Seconds(75);

enum class ReflectorPhase { kIdle, kWatchList, kList, kWatch, kWaiting, kMissing, kStopped };
const char* ReflectorPhaseName(ReflectorPhase phase);

struct ReflectorStats {
  model::Kind kind = model::Kind::kPod;
  ReflectorPhase phase = ReflectorPhase::kIdle;
  bool synced = false;
  bool missing = false;  // the server does not know the kind
  size_t objects = 0;
  std::string resource_version;
  int64_t snapshots = 0;  // completed; the first included
  int64_t watches = 0;    // streams opened
  int64_t events = 0;     // of watches, bookmarks included
  int64_t errors = 0;
  std::string last_error;
  // Since the last good word: an event, a bookmark, a snapshot, a clean end of a watch, the answer
  // that the kind is not installed. Infinite before the first.
  absl::Duration since_last_event = absl::InfiniteDuration();
  // Since a watch was last open. Zero while one is, or while the kind is not installed.
  absl::Duration down_for = absl::InfiniteDuration();
  // A snapshot that was begun after the last Refresh (or Start) is complete, and its events are in
  // the queue.
  bool fresh = false;

  // The picture of this kind may be out of date by more than `bound`.
  [[nodiscard]] bool IsStale(absl::Duration bound) const {
    return down_for > bound || since_last_event > bound + kBookmarkPeriodMax;
  }
};

class Reflector {
 public:
  static constexpr int kMissingConfirmations = 3;
  static constexpr int kStaleSnapshotLimit = 5;

  Reflector(HttpTransport& transport, Timers& timers, const Clock& clock, EventQueue& queue,
            ServerFeatures& features, ReflectorOptions options);
  ~Reflector();  // stops
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Start();
  void Stop();
  // A new snapshot, whatever is under way. The queue's consumer is woken when it is complete.
  void Refresh();
  [[nodiscard]] ReflectorStats GetStats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::kube
