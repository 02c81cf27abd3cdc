// Watches: what clients are sent, of the changes of one type, from a version on.
//
//   resourceVersion   "" or "0": all objects as ADDED, then changes. Another: the changes after it,
//                     or an ERROR of code 410 if they are not all kept.
//   sendInitialEvents all objects as ADDED, then a bookmark with k8s.io/initial-events-end.
//   selectors         what comes into the selector is ADDED, what leaves it DELETED.
//   bookmarks         every minute, if they were asked for.
//   timeoutSeconds    the end of the stream; half an hour if it is missing.
//
// Frames are one line each, or 4 bytes of length and a WatchEvent in protobuf. What is encoded is
// shared between watches (api_object.h).
//
// Ownership: borrows the store and time. Thread-safety: none, one thread. Sinks may not call back.
// Complexity: O(watches of the type) a change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/transport/http.h"
#include "sim/event_queue.h"
#include "sim/world/api_request.h"
#include "sim/world/api_selector.h"
#include "sim/world/api_server.h"
#include "sim/world/api_store.h"

namespace fairlead::sim::world {

class WatchCache {
 public:
  using Id = ApiServer::WatchId;
  using Sink = ApiServer::WatchSink;

  WatchCache(EventQueue* time, ApiStore* store);

  Id Open(const ApiRequest& request, Sink sink);
  void Close(Id id) { watches_.erase(id); }
  void EndAll();

 private:
  struct Watch {
    const ResourceRow* row = nullptr;
    std::string prefix;  // of keys: "ns/", or empty
    FieldSelector selector;
    bool protobuf = false, bookmarks = false;
    Sink sink;
  };

  void OnChange(const Change& change);
  static void Tell(const Watch& watch, const Change& change);
  void SendInitial(const Watch& watch);
  void Bookmark(const Watch& watch, bool initial_events_end);
  void ArmBookmark(Id id);
  void End(Id id);

  EventQueue* time_;
  ApiStore* store_;
  Id last_id_ = 0;
  std::map<Id, Watch> watches_;
  // Events of the queue that outlive this are ignored.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace fairlead::sim::world
