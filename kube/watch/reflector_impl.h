// The state machine behind Reflector; private to reflector*.cc. See reflector.h for its behaviour.
//
// Everything runs under one mutex, in callbacks. `generation_` numbers the current request or wait:
// a callback of an earlier one is ignored, so an abandoned request needs no wait. Requests to
// cancel are collected and cancelled after the lock is released.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/codec/codec.h"
#include "kube/transport/backoff.h"
#include "kube/watch/reflector.h"
#include "kube/watch/reflector_store.h"

namespace fairlead::kube {

class Reflector::Impl : public std::enable_shared_from_this<Reflector::Impl> {
 public:
  Impl(HttpTransport& transport, Timers& timers, const Clock& clock, EventQueue& queue,
       ServerFeatures& features, ReflectorOptions options);

  void Start();
  void Stop();
  void Refresh();
  ReflectorStats GetStats() const;

 private:
  class Observer;
  using Events = std::vector<model::ClusterEvent>;

  // Runs `step` under the lock if `generation` is current, then cancels the requests that it
  // collected.
  void Enter(uint64_t generation, const std::function<void()>& step);

  // Requests. Each begins a new generation.
  void Begin();
  void OpenWatchList();
  void OpenWatch();
  void OpenStream(std::string path, ReflectorPhase phase);
  void RequestPage();
  void Wait(absl::Duration at_least);
  void WaitFor(absl::Duration delay, ReflectorPhase phase);
  void Abandon();  // abandons the current request or wait
  void ArmWatchdog(absl::Duration delay);

  // Answers.
  void OnHeaders(int status, absl::string_view content_type);
  void OnData(absl::string_view bytes);
  void OnStreamDone(const absl::Status& status, absl::Duration retry_after);
  void OnPage(absl::StatusOr<HttpResponse> response);
  void OnWatchdog();

  void TakeEvents(std::vector<WatchEvent> events);
  void OnErrorEvent(const ApiStatus& error);
  void OnHttpError(int code, const ApiStatus& error, absl::Duration retry_after);
  void OnMissing(int code, const ApiStatus& error);
  void OnStreamBroken(absl::string_view what, int weight, absl::Duration retry_after);
  // False if the snapshot was refused; then a wait has begun.
  bool CommitSnapshot(absl::string_view resource_version, Events& out);
  void NeedSnapshot();
  void CountFruitless(int weight);
  void MarkSynced(Events& out);
  // Everything written before the last Refresh is known, or will be when `out` is pushed.
  void MarkFresh();
  [[nodiscard]] bool InStep() const;
  void TellProgress(Events& out);
  void NoteError(std::string text);
  [[nodiscard]] std::string BasePath() const;
  [[nodiscard]] bool UsesWatchList() const;

  HttpTransport& transport_;
  Timers& timers_;
  const Clock& clock_;
  EventQueue& queue_;
  ServerFeatures& features_;
  const ReflectorOptions options_;

  mutable std::mutex mutex_;
  uint64_t generation_ = 0;
  ReflectorPhase phase_ = ReflectorPhase::kIdle;
  ReflectorStore store_;
  JitteredBackoff backoff_;
  std::optional<HttpTransport::Id> request_;
  std::optional<Timers::Id> timer_;
  std::vector<HttpTransport::Id> to_cancel_;

  bool need_snapshot_ = true;
  bool synced_ = false;
  bool missing_ = false;
  bool missing_told_ = false;
  bool fresh_ = false;
  int missing_answers_ = 0;
  int stale_snapshots_ = 0;
  int fruitless_ = 0;
  int unfinished_watch_lists_ = 0;
  // Of the present LIST.
  std::string continue_token_;
  int list_restarts_ = 0;
  // Of the present stream.
  int stream_status_ = 0;
  std::string stream_content_type_;
  std::string error_body_;
  std::optional<WatchDecoder> decoder_;
  bool delivered_ = false;
  absl::Duration last_activity_ = absl::ZeroDuration();  // steady

  int64_t snapshots_ = 0, watches_ = 0, events_ = 0, errors_ = 0;
  std::string last_error_;
  absl::Duration last_event_ = -absl::InfiniteDuration();  // steady
  absl::Duration last_open_ = -absl::InfiniteDuration();   // steady; while InStep, now
};

}  // namespace fairlead::kube
