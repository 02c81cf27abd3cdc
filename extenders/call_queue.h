// The calls to one extender of one kind: at most `calls_max` in flight, with bodies of
// `bytes_max` together, though always one. Further calls wait in order.
//
// A body is written when its call is sent, so that calls that wait hold no body, and the time-out
// begins then.
//
// Ownership: the transport is not used after Close. The queue itself is held by its calls.
// Thread-safety: any thread. Callbacks run on the transport's I/O thread; after Close, and within
// it, in the thread that calls. Complexity: O(bytes of the body) per call.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/transport/http.h"

namespace fairlead::extenders {

// What everything that is asked of a closed client answers.
inline absl::Status Closed() {
  return absl::CancelledError("the client of the extender is closed");
}

class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  struct Limits {
    int calls_max;
    size_t bytes_max;
  };
  struct Call {
    std::string path;
    absl::Duration timeout;
    size_t bytes = 0;                   // of the body, nearly
    std::function<std::string()> body;  // any thread
    kube::HttpTransport::Done done;     // once
  };

  CallQueue(kube::HttpTransport* transport, kube::TrafficClass traffic, Limits limits)
      : traffic_(traffic), limits_(limits), transport_(transport) {}

  // POSTs JSON.
  void Post(Call call);
  // Ends calls that wait, and later ones, with Cancelled. Calls in flight end with the transport's
  // answer.
  void Close();

 private:
  void Launch();
  bool PopNext(Call& call);
  void Send(Call call);

  const kube::TrafficClass traffic_;
  const Limits limits_;
  std::mutex mutex_;                // guards the rest
  kube::HttpTransport* transport_;  // null: closed
  std::deque<Call> waiting_;
  int calls_ = 0;  // in flight, and the size of their bodies
  size_t bytes_ = 0;
};

}  // namespace fairlead::extenders
