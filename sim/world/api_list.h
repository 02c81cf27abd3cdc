// Lists, in pages where asked for: all pages of one list are of one version, and their tokens
// expire with it.
//
// Ownership: keeps the rest of lists under way. Thread-safety: none, one thread. Complexity:
// O(objects) a list, O(page) a page.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "sim/event_queue.h"
#include "sim/world/api_request.h"
#include "sim/world/api_selector.h"
#include "sim/world/api_store.h"

namespace fairlead::sim::world {

class Lister {
 public:
  Lister(const EventQueue* time, const ApiStore* store) : time_(time), store_(store) {}
  kube::HttpResponse List(const ApiRequest& request);

 private:
  struct Snapshot {
    std::vector<ObjectPtr> objects;  // in order
    uint64_t compactions = 0;        // when it was made
    absl::Time made;
  };
  ApiError Collect(const ApiRequest& request, std::vector<ObjectPtr>& out) const;

  const EventQueue* time_;
  const ApiStore* store_;
  std::map<uint64_t, Snapshot> snapshots_;  // by number, which the token names
  uint64_t last_snapshot_ = 0;
};

// One object, or a list of them, in the encoding of the request.
kube::HttpResponse ObjectResponse(int status, const ApiRequest& request, const ApiObject& object);

}  // namespace fairlead::sim::world
