#include "sim/world/watch_cache.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "sim/world/api_json.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {
namespace {

constexpr absl::Duration kBookmarkPeriod = absl::Minutes(1);
constexpr int64_t kDefaultTimeoutSeconds = 1800;

std::string WithLength(const std::string& frame) {
  std::string out;
  out.reserve(frame.size() + 4);
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(frame.size() >> shift & 0xFF));
  }
  return out + frame;
}

// `body` is an enveloped object.
std::string MessageFrame(absl::string_view type, absl::string_view body) {
  std::string extension;
  AppendBytesField(1, body, extension);
  std::string event;
  AppendBytesField(1, type, event);
  AppendBytesField(2, extension, event);
  return WithLength(event);
}

std::string TextFrame(absl::string_view type, absl::string_view body) {
  JsonWriter json;
  json.BeginObject().Field("type", type).Key("object").Raw(body).EndObject();
  return json.Take() + "\n";
}

std::string ObjectFrame(bool protobuf, absl::string_view type, const ApiObject& object) {
  if (!protobuf) return TextFrame(type, object.Text());
  return MessageFrame(type,
                      Enveloped(object.row().group_version, object.row().kind, object.Message()));
}

std::string ErrorFrame(bool protobuf, const ApiError& error) {
  const Json status = StatusOf(error);
  if (!protobuf) return TextFrame("ERROR", Dump(status));
  return MessageFrame("ERROR", Enveloped("v1", "Status", EncodeMessage(StatusSchema(), status)));
}

ApiError CheckOptions(const ApiRequest& request) {
  if (!request.Query("labelSelector").empty()) {
    return NotImplementedError("labelSelector of watches");
  }
  const std::string match = request.Query("resourceVersionMatch");
  const std::string name = std::string(request.row->plural);
  if (request.query.contains("sendInitialEvents")) {
    if (match != "NotOlderThan") {
      ApiError error = GenericError(422, "");
      error.message = absl::StrCat(
          "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
          "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
      return error;
    }
  } else if (!match.empty()) {
    ApiError error = GenericError(422, "");
    error.message =
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    return error;
  }
  const std::string version = request.Query("resourceVersion");
  uint64_t number = 0;
  if (!version.empty() && !absl::SimpleAtoi(version, &number)) {
    return BadRequestError(absl::StrCat("resourceVersion: Invalid value: \"", version, "\""));
  }
  return {};
}

}  // namespace

WatchCache::WatchCache(EventQueue* time, ApiStore* store) : time_(time), store_(store) {
  store_->Listen([this](const Change& change, absl::string_view) { OnChange(change); });
}

void WatchCache::Tell(const Watch& watch, const Change& change) {
  const bool before = change.before != nullptr && watch.selector.Matches(change.before->json());
  const bool after = change.after != nullptr && watch.selector.Matches(change.after->json());
  if (after) {
    watch.sink.data(ObjectFrame(watch.protobuf, before ? "MODIFIED" : "ADDED", *change.after));
  } else if (before) {
    watch.sink.data(ObjectFrame(watch.protobuf, "DELETED", *change.Gone()));
  }
}

namespace {

bool InPrefix(const Change& change, const std::string& prefix) {
  if (prefix.empty()) return true;
  const ApiObject& object = change.after != nullptr ? *change.after : *change.before;
  return absl::StartsWith(ObjectKey(object.row(), object.json()), prefix);
}

}  // namespace

void WatchCache::OnChange(const Change& change) {
  for (const auto& [id, watch] : watches_) {
    if (watch.row->type == change.type && InPrefix(change, watch.prefix)) Tell(watch, change);
  }
}

void WatchCache::SendInitial(const Watch& watch) {
  for (const auto& [key, object] : store_->All(watch.row->type)) {
    if (!absl::StartsWith(key, watch.prefix) || !watch.selector.Matches(object->json())) continue;
    watch.sink.data(ObjectFrame(watch.protobuf, "ADDED", *object));
  }
}

void WatchCache::Bookmark(const Watch& watch, bool initial_events_end) {
  Json meta = {{"resourceVersion", absl::StrCat(store_->version())},
               {"creationTimestamp", nullptr}};
  if (initial_events_end) meta["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  const Json object = {{"kind", std::string(watch.row->kind)},
                       {"apiVersion", std::string(watch.row->group_version)},
                       {"metadata", std::move(meta)}};
  const ApiObject bookmark(*watch.row, object, store_->version());
  watch.sink.data(ObjectFrame(watch.protobuf, "BOOKMARK", bookmark));
}

void WatchCache::ArmBookmark(Id id) {
  time_->After(kBookmarkPeriod, [this, id, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    Bookmark(found->second, /*initial_events_end=*/false);
    ArmBookmark(id);
  });
}

void WatchCache::End(Id id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  const Sink sink = std::move(found->second.sink);
  watches_.erase(found);
  sink.end();
}

void WatchCache::EndAll() {
  while (!watches_.empty()) End(watches_.begin()->first);
}

WatchCache::Id WatchCache::Open(const ApiRequest& request, Sink sink) {
  Watch watch;
  watch.row = request.row;
  watch.protobuf = request.protobuf;
  watch.bookmarks = request.QueryIsTrue("allowWatchBookmarks");
  if (!request.ns.empty()) watch.prefix = absl::StrCat(request.ns, "/");
  ApiError error = CheckOptions(request);
  if (error.ok()) {
    error = FieldSelector::Parse(*request.row, request.Query("fieldSelector"), watch.selector);
  }
  const Id id = ++last_id_;
  if (!error.ok()) {
    kube::HttpResponse refusal = ErrorResponse(error, request.protobuf);
    sink.headers(refusal.status, refusal.content_type);
    sink.data(std::move(refusal.body));
    sink.end();
    return id;
  }
  sink.headers(200, watch.protobuf ? absl::StrCat(kube::kProtobuf, ";stream=watch") : kube::kJson);
  uint64_t from = 0;
  (void)absl::SimpleAtoi(request.Query("resourceVersion"), &from);
  const bool initial = request.QueryIsTrue("sendInitialEvents");
  if (from != 0 && !initial && from < store_->OldestStart(request.row->type)) {
    sink.data(ErrorFrame(watch.protobuf,
                         ExpiredError(absl::StrCat("too old resource version: ", from, " (",
                                                   store_->OldestStart(request.row->type), ")"))));
    sink.end();
    return id;
  }
  watch.sink = std::move(sink);
  const Watch& opened = watches_.emplace(id, std::move(watch)).first->second;
  const bool silent = request.query.contains("sendInitialEvents") && !initial;
  if (initial || (from == 0 && !silent)) {
    SendInitial(opened);
    if (initial && opened.bookmarks) Bookmark(opened, /*initial_events_end=*/true);
  } else if (from != 0) {
    for (const Change& change : store_->History(request.row->type)) {
      if (change.version > from && InPrefix(change, opened.prefix)) Tell(opened, change);
    }
  }
  int64_t timeout = 0;
  (void)absl::SimpleAtoi(request.Query("timeoutSeconds"), &timeout);
  if (timeout <= 0) timeout = kDefaultTimeoutSeconds;
  time_->After(absl::Seconds(timeout), [this, id, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) End(id);
  });
  if (opened.bookmarks) ArmBookmark(id);
  return id;
}

}  // namespace fairlead::sim::world
