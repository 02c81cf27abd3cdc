// The inner half of the reflector's state machine: how it handles answers, events and silence.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/watch/reflector_impl.h"

namespace fairlead::kube {
namespace {

using model::Kind;

// The number of fruitless watches in a row after which the version to resume from is no longer
// trusted. A plain end counts 1, silence and a broken stream 2.
constexpr int kFruitlessLimit = 3;
constexpr size_t kMaxErrorBodyBytes = 64 * 1024;

bool IsBuiltIn(Kind kind) { return model::TraitsOf(kind).presence == model::Presence::kBuiltIn; }

bool IsExpired(int code, const ApiStatus& error) {
  return code == 410 || error.code == 410 || error.reason == "Expired" || error.reason == "Gone";
}

std::string Describe(int code, const ApiStatus& error) {
  return absl::StrCat(code, error.reason.empty() ? "" : " ", error.reason, ": ", error.message);
}

}  // namespace

void Reflector::Impl::NoteError(std::string text) {
  ++errors_;
  last_error_ = std::move(text);
}

void Reflector::Impl::NeedSnapshot() {
  need_snapshot_ = true;
  fruitless_ = 0;
}

void Reflector::Impl::CountFruitless(int weight) {
  fruitless_ += weight;
  if (fruitless_ >= kFruitlessLimit) NeedSnapshot();
}

void Reflector::Impl::MarkSynced(Events& out) {
  const bool told = !model::IsOptional(options_.kind) || missing_told_ == missing_;
  if (synced_ && told) return;
  synced_ = true;
  missing_told_ = missing_;
  out.push_back(model::Synced{options_.kind, missing_});
}

void Reflector::Impl::MarkFresh() {
  if (std::exchange(fresh_, true)) return;
  queue_.Wake();  // there may be no event that wakes it
}

void Reflector::Impl::OnHeaders(int status, absl::string_view content_type) {
  stream_status_ = status;
  stream_content_type_ = std::string(content_type);
  last_activity_ = clock_.Steady();
  if (status == 200) decoder_.emplace(options_.kind, content_type);
}

void Reflector::Impl::OnData(absl::string_view bytes) {
  if (!decoder_.has_value()) {
    if (error_body_.size() < kMaxErrorBodyBytes) {
      error_body_.append(bytes.data(),
                         std::min(bytes.size(), kMaxErrorBodyBytes - error_body_.size()));
    }
    return;
  }
  std::vector<WatchEvent> events;
  const absl::Status status = decoder_->Feed(bytes, events);
  const uint64_t generation = generation_;
  TakeEvents(std::move(events));
  if (!status.ok() && generation == generation_) {
    OnStreamBroken(absl::StrCat("watch stream: ", status.message()), 2, absl::ZeroDuration());
  }
}

void Reflector::Impl::TakeEvents(std::vector<WatchEvent> events) {
  if (events.empty()) return;
  last_activity_ = last_event_ = clock_.Steady();
  Events out;
  for (WatchEvent& event : events) {
    ++events_;
    if (event.type == WatchEventType::kError) {
      OnErrorEvent(event.error);
      break;  // the stream is abandoned
    }
    if (phase_ == ReflectorPhase::kWatchList) {
      if (event.type == WatchEventType::kBookmark) {
        if (!event.initial_events_end) continue;
        if (!CommitSnapshot(event.resource_version, out)) break;
        unfinished_watch_lists_ = 0;
        phase_ = ReflectorPhase::kWatch;
      } else if (event.object.has_value()) {
        if (event.type == WatchEventType::kDeleted) {
          store_.Unstage(MetaOf(*event.object));
        } else {
          store_.Stage(std::move(*event.object));
        }
      }
      continue;
    }
    const bool bookmark = event.type == WatchEventType::kBookmark;
    store_.Apply(std::move(event), out);
    if (bookmark) TellProgress(out);
    delivered_ = true;
    fruitless_ = 0;
    backoff_.Reset();
  }
  queue_.PushAll(std::move(out));
}

bool Reflector::Impl::CommitSnapshot(absl::string_view resource_version, Events& out) {
  const bool allow_older = stale_snapshots_ >= kStaleSnapshotLimit;
  const std::string known_version = store_.resource_version();
  if (!store_.Commit(resource_version, allow_older, out)) {
    ++stale_snapshots_;
    NoteError(absl::StrCat("the server's snapshot at version ", resource_version,
                           " is older than version ", known_version, ", which it has sent before"));
    Wait(absl::ZeroDuration());
    return false;
  }
  ++snapshots_;
  stale_snapshots_ = 0;
  fruitless_ = 0;
  list_restarts_ = 0;
  missing_answers_ = 0;
  missing_ = false;
  need_snapshot_ = false;
  delivered_ = true;
  last_event_ = last_open_ = clock_.Steady();
  backoff_.Reset();
  MarkSynced(out);
  MarkFresh();
  TellProgress(out);
  return true;
}

void Reflector::Impl::TellProgress(Events& out) {
  if (!model::TraitsOf(options_.kind).tells_progress) return;
  out.push_back(model::Progress{options_.kind, store_.resource_version()});
}

void Reflector::Impl::OnErrorEvent(const ApiStatus& error) {
  NoteError(absl::StrCat("ERROR event: ", Describe(error.code, error)));
  if (IsExpired(error.code, error)) {
    NeedSnapshot();
  } else if (phase_ == ReflectorPhase::kWatch) {
    CountFruitless(1);
  }
  Wait(error.retry_after);
}

void Reflector::Impl::OnStreamDone(const absl::Status& status, absl::Duration retry_after) {
  request_.reset();  // it is over: nothing to cancel
  if (stream_status_ == 0) {
    NoteError(absl::StrCat("watch: ", status.ok() ? "ended without an answer" : status.ToString()));
    return Wait(retry_after);
  }
  if (stream_status_ != 200) {
    return OnHttpError(stream_status_, DecodeStatus(stream_content_type_, error_body_),
                       retry_after);
  }
  if (status.ok() && phase_ == ReflectorPhase::kWatch) {
    last_event_ = clock_.Steady();  // everything up to now has arrived
    if (!delivered_) CountFruitless(1);
    return Wait(retry_after);
  }
  OnStreamBroken(status.ok() ? "watch ended before its initial events did"
                             : absl::StrCat("watch: ", status.ToString()),
                 1, retry_after);
}

void Reflector::Impl::OnStreamBroken(absl::string_view what, int weight,
                                     absl::Duration retry_after) {
  NoteError(std::string(what));
  if (phase_ == ReflectorPhase::kWatchList) {
    ++unfinished_watch_lists_;
  } else if (!delivered_ || weight > 1) {
    CountFruitless(weight);
  }
  Wait(retry_after);
}

void Reflector::Impl::OnWatchdog() {
  timer_.reset();
  const absl::Duration silent = clock_.Steady() - last_activity_;
  if (stream_status_ == 0) {
    NoteError(absl::StrCat("watch: no answer for ", absl::FormatDuration(silent)));
    return Wait(absl::ZeroDuration());
  }
  if (silent < options_.silence_limit) return ArmWatchdog(options_.silence_limit - silent);
  // The connection may have been dead since its last word.
  last_open_ = last_activity_;
  stream_status_ = 0;
  OnStreamBroken(absl::StrCat("watch: silent for ", absl::FormatDuration(silent)), 2,
                 absl::ZeroDuration());
}

void Reflector::Impl::OnPage(absl::StatusOr<HttpResponse> response) {
  request_.reset();
  if (!response.ok()) {
    NoteError(absl::StrCat("list: ", response.status().ToString()));
    return Wait(absl::ZeroDuration());
  }
  if (response->status != 200) {
    return OnHttpError(response->status, DecodeStatus(response->content_type, response->body),
                       response->retry_after);
  }
  absl::StatusOr<ListPage> page = DecodeList(options_.kind, response->content_type, response->body);
  if (!page.ok()) {
    NoteError(absl::StrCat("list: ", page.status().message()));
    continue_token_.clear();
    return Wait(absl::ZeroDuration());
  }
  for (Object& object : page->items) store_.Stage(std::move(object));
  continue_token_ = std::move(page->continue_token);
  backoff_.Reset();
  if (!continue_token_.empty()) return RequestPage();
  Events out;
  if (CommitSnapshot(page->resource_version, out)) OpenWatch();
  queue_.PushAll(std::move(out));
}

void Reflector::Impl::OnHttpError(int code, const ApiStatus& error, absl::Duration retry_after) {
  const absl::Duration pause = std::max(retry_after, error.retry_after);
  const bool watch_list = phase_ == ReflectorPhase::kWatchList;
  if (watch_list && (code == 400 || code == 422 ||
                     (code == 403 && absl::StrContains(error.message, "sendInitialEvents")))) {
    features_.watch_list.store(false, std::memory_order_relaxed);
    return RequestPage();
  }
  if (code == 404 && !IsBuiltIn(options_.kind)) return OnMissing(code, error);
  const bool forbidden = code == 403 && model::IsOptional(options_.kind);
  // Installed with RBAC rules that do not name the kind: it is optional.
  if (forbidden && snapshots_ == 0) return OnMissing(code, error);
  if (forbidden && ++missing_answers_ >= kMissingConfirmations) MarkFresh();
  NoteError(absl::StrCat(ReflectorPhaseName(phase_), ": ", Describe(code, error)));
  if (IsExpired(code, error)) {
    if (phase_ == ReflectorPhase::kList) ++list_restarts_;
    continue_token_.clear();
    NeedSnapshot();
  } else if (phase_ == ReflectorPhase::kWatch && code < 500 && code != 429 && code != 401) {
    CountFruitless(1);
  }
  Wait(pause);
}

void Reflector::Impl::OnMissing(int code, const ApiStatus& error) {
  NoteError(absl::StrCat(code == 404 ? "the server does not know this kind (CRD not installed?): "
                                     : "it may not be read: ",
                         Describe(code, error)));
  ++missing_answers_;
  continue_token_.clear();
  NeedSnapshot();
  Events out;
  if (!synced_ || missing_answers_ >= kMissingConfirmations) {
    missing_ = true;
    last_event_ = clock_.Steady();
    store_.DeleteAll(out);
    MarkSynced(out);
  }
  queue_.PushAll(std::move(out));
  if (!missing_) return Wait(absl::ZeroDuration());
  MarkFresh();
  WaitFor(JitteredBetween(options_.missing_retry / 2, options_.missing_retry, options_.seed,
                          static_cast<uint64_t>(errors_)),
          ReflectorPhase::kMissing);
}

}  // namespace fairlead::kube
