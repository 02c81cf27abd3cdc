// Asks scheduler extenders (HTTP programs that extend a scheduler) about nodes, and lets them bind
// pods.
//
// Source: k8s.io/kube-scheduler/extender/v1 (the messages), kube-scheduler's schedule_one.go and
// extender.go (what they mean). Differences:
// - Scores of an extender are clamped to 0..10, the range that upstream documents.
// - Each returned node must be one that the extender was asked about. Upstream checks NodeNames
//   but not Nodes.
// - An answer must be one JSON value without anything behind it, and of 64 MiB at most. A string
//   with half a surrogate pair makes it unreadable.
// - Redirects are not followed.
//
// An ask reads the pod from the API server and, for extenders without a node cache, the nodes: one
// list serves all asks that need one within a second (api_reader.h). Then extenders filter one
// after the other, and those with a prioritizeVerb score at the same time. If an extender that is
// not ignorable fails, the ask fails.
//
// Memory: at most kAsksMax asks run, further ones wait in order. An extender has a bounded number
// of calls in flight, with bodies of a bounded size (endpoint.h); the time-out of a call begins
// when it is sent. The last list of nodes stays in memory.
//
// Ownership: the client owns the transports of the extenders. `api` and `clock` must outlive the
// client; callbacks of `api` may come later than the client's end. The client must not be destroyed
// in a callback or during another call.
// Thread-safety: any thread. There is no thread of its own: callbacks run on the I/O threads of the
// transports, must not block, and may call the client.
// Complexity: O(bytes of the messages + nodes * extenders) per ask.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "scheduler/model/action.h"
#include "scheduler/model/extender_config.h"
#include "scheduler/model/node_answers.h"

namespace fairlead::extenders {

struct Extender {
  model::ExtenderConfig config;
  std::unique_ptr<kube::HttpTransport> transport;  // to the origin of url_prefix (connection.h)
};

struct Answer {
  // OK: `answers` are about all nodes of the action. Otherwise:
  //   FailedPrecondition   another pod has that name now
  //   NotFound             there is no such pod
  //   InvalidArgument      the action names an extender that does not exist
  //   Cancelled            the client is gone, or a transport was shut down
  //   Unavailable          anything else: pod, nodes or an extender (`failed`) gave no valid answer
  absl::Status status;
  model::NodeAnswers answers;
  int32_t failed = -1;  // the extender that failed, by position; -1: none
};

class Client {
 public:
  // Asks that run at a time.
  static constexpr int kAsksMax = 128;

  // The position of an extender is its index.
  Client(std::vector<Extender> extenders, kube::HttpTransport* api, const Clock* clock);
  // Asks that are open end with Cancelled, and bindings with Unavailable: during the destructor, or
  // when `api` makes its callbacks.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // With `victims` the question is whether pods may be evicted (preemption_ask.h).
  // Calls `done` once: on an I/O thread, or before it returns if the action is invalid.
  void Ask(model::AskExtenders action, std::function<void(Answer)> done);

  // Lets extender `action.extender` bind the pod. `ignorable` is for the caller: it does not change
  // the status. Calls `done` as above, with a status as base/write_attempts.h reads it:
  //   OK                              the extender says that it has bound the pod
  //   InvalidArgument                 refused: its error text, status 3xx or 4xx, or nothing was
  //                                   sent
  //   Unavailable, DeadlineExceeded   unknown: no answer, status 5xx, or an unreadable one
  // The extender may get the request twice (curl_transport.h). It names the uid of the pod, which
  // is the precondition of the binding that the extender makes.
  void Bind(const model::BindPod& action, std::function<void(absl::Status)> done);

 private:
  class State;
  std::shared_ptr<State> state_;
  std::vector<std::unique_ptr<kube::HttpTransport>> transports_;
};

}  // namespace fairlead::extenders
