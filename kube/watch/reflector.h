// Keeps the core's model of one kind of objects in step with the API server: a snapshot, then a
// watch, for ever, despite failures of the server and the network.
//
//   snapshot   preferably a WatchList (initial events of a watch up to the bookmark annotated
//              k8s.io/initial-events-end; the stream then continues as the watch), else a paged
//              LIST. A server that refuses WatchList (400, 422, 403 naming sendInitialEvents) is
//              remembered in ServerFeatures; one that never sends the end bookmark is remembered
//              by the reflector.
//   watch      with bookmarks, from the newest version seen. A clean end is normal; after any
//              end the watch resumes from there, after a jittered delay.
//   410        as a status or as an ERROR event: a new snapshot, compared with the known objects
//              (see reflector_store.h). The old objects stay until the new snapshot is complete.
//   410 within a paged LIST
//              restarts from the first page; the third attempt requests everything at once.
//   404        of a custom kind or one of resource.k8s.io (its CRD is not installed, or the
//              server is older), and 403 of an optional kind (model::IsOptional; old RBAC rules)
//              that has never been read. The kind counts as empty and synced, and is requested
//              again now and then. Known objects are deleted only after kMissingConfirmations such
//              answers.
//   403        of an optional kind that has been read: its objects still exist and count, the kind
//              becomes stale. After kMissingConfirmations such answers `fresh` no longer waits for
//              it, because nothing more can be learnt.
//   silence    no answer to a watch within `header_limit`, or neither event nor bookmark for
//              `silence_limit`: the connection is dead, resume.
//   fruitless  consecutive watches that were accepted but delivered nothing (silence, a version
//              from before a restore of the server, frames that do not decode): a new snapshot.
//   older snapshot than the known state
//              is refused, the store never goes backwards; after kStaleSnapshotLimit refusals in
//              a row the server counts as restored from backup.
//   others     (no connection, 401, 403, 429, 5xx) are retried with growing jittered delays and
//              Retry-After.
//
// Refresh requests a new snapshot, for a process that has to know everything written so far;
// `fresh` says when it is complete. The server answers snapshots consistently.
//
// Every event goes to the EventQueue. Synced goes there once, after the first snapshot; for an
// optional kind, again whenever it becomes missing or available.
//
// Thread-safety: Start, Stop, Refresh and GetStats from any thread; the rest runs in the
// transport's callbacks. Nothing is pushed after Stop returns. Transport, timers, clock, queue and
// features must outlive the reflector; callbacks after its destruction are ignored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/kind.h"

namespace fairlead::kube {

// What the process has learnt about its server; all reflectors share it.
struct ServerFeatures {
  std::atomic<bool> watch_list{true};
};

struct ReflectorOptions {
  model::Kind kind = model::Kind::kPod;
  // Objects for which it is false count as absent, as if the selector left them out. Null: none.
  // A pure function.
  bool (*keeps)(const model::Object& object) = nullptr;
  uint64_t seed = 0;  // of all jitter
  int page_size = 500;
  // The server ends a watch after a time within these bounds, so that not all watches end at once.
  absl::Duration min_watch = absl::Minutes(5);
  absl::Duration max_watch = absl::Minutes(10);
  absl::Duration header_limit = absl::Seconds(30);
  // Slightly above kBookmarkPeriodMax: it bounds how long pods wait behind a dead connection that
  // the transport does not detect. To resume a quiet watch costs one request.
  absl::Duration silence_limit = absl::Seconds(80);
  absl::Duration missing_retry = absl::Minutes(1);
  absl::Duration backoff_initial = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
  absl::Duration list_timeout = absl::Minutes(2);  // of one page
};

// The API server sends a bookmark per minute, give or take a quarter. So an open watch that has
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
  // Time since the last proof of a working connection: an event, a bookmark, a snapshot, a clean
  // end of a watch, the answer that the kind is not installed. Infinite before the first.
  absl::Duration since_last_event = absl::InfiniteDuration();
  // Time since a watch was last open; if it fell silent, since its last word. Zero while a watch is
  // open, or while the kind is not installed.
  absl::Duration down_for = absl::InfiniteDuration();
  // True if a snapshot that began after the last Refresh (or Start) is complete and its events are
  // in the queue.
  bool fresh = false;

  // True if the known state of this kind may be out of date by more than `bound`.
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
  // Starts a new snapshot and abandons what is under way. Wakes the queue's consumer when it is
  // complete.
  void Refresh();
  [[nodiscard]] ReflectorStats GetStats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::kube
