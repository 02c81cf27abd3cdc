#include "extenders/client.h"

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "extenders/api_reader.h"
#include "extenders/ask.h"
#include "extenders/endpoint.h"
#include "extenders/preemption_ask.h"
#include "extenders/wire.h"

namespace fairlead::extenders {
namespace {

absl::Status NoSuchExtender(int32_t position) {
  return absl::InvalidArgumentError(absl::StrCat("there is no extender ", position));
}

}  // namespace

// What the calls hold: everything but the transports, which must not end in their own callbacks.
class Client::State : public std::enable_shared_from_this<State> {
 public:
  State(std::vector<Endpoint> endpoints, kube::HttpTransport* api, const Clock* clock)
      : endpoints_(std::make_shared<const std::vector<Endpoint>>(std::move(endpoints))),
        reader_(std::make_shared<ApiReader>(api, clock)) {}

  [[nodiscard]] bool Has(int32_t position) const {
    return position >= 0 && static_cast<size_t>(position) < endpoints_->size();
  }
  [[nodiscard]] const Endpoint& At(int32_t position) const {
    return (*endpoints_)[static_cast<size_t>(position)];
  }

  void Ask(model::AskExtenders action, std::function<void(Answer)> done) {
    Waiting ask = {std::move(action), std::move(done)};
    bool closed = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed = closed_;
      if (!closed && running_ >= kAsksMax) return waiting_.push_back(std::move(ask));
      if (!closed) ++running_;
    }
    if (closed) return ask.done({.status = Closed(), .answers = {}});
    Run(std::move(ask));
  }

  void Close() {
    std::deque<Waiting> waiting;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      waiting.swap(waiting_);
    }
    reader_->Close();
    for (const Endpoint& endpoint : *endpoints_) endpoint.Close();
    for (const Waiting& ask : waiting) ask.done({.status = Closed(), .answers = {}});
  }

 private:
  struct Waiting {
    model::AskExtenders action;
    std::function<void(Answer)> done;
  };

  void Run(Waiting ask) {
    const auto done = [self = shared_from_this(), done = std::move(ask.done)](Answer answer) {
      self->RunNext();
      done(std::move(answer));
    };
    if (ask.action.victims.empty()) {
      std::make_shared<OneAsk>(endpoints_, reader_, std::move(ask.action), done)->Start();
    } else {
      std::make_shared<PreemptionAsk>(endpoints_, reader_, std::move(ask.action), done)->Start();
    }
  }

  // After the end of an ask. An ask ends within Run only if the client is closed; then no other
  // waits, so that this does not nest.
  void RunNext() {
    Waiting next;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiting_.empty()) {
        --running_;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Run(std::move(next));
  }

  const std::shared_ptr<const std::vector<Endpoint>> endpoints_;
  const std::shared_ptr<ApiReader> reader_;
  std::mutex mutex_;  // guards the rest
  bool closed_ = false;
  int running_ = 0;
  std::deque<Waiting> waiting_;
};

Client::Client(std::vector<Extender> extenders, kube::HttpTransport* api, const Clock* clock) {
  std::vector<Endpoint> endpoints;
  endpoints.reserve(extenders.size());
  for (Extender& extender : extenders) {
    endpoints.emplace_back(std::move(extender.config), extender.transport.get());
    transports_.push_back(std::move(extender.transport));
  }
  state_ = std::make_shared<State>(std::move(endpoints), api, clock);
}

Client::~Client() { state_->Close(); }

void Client::Ask(model::AskExtenders action, std::function<void(Answer)> done) {
  for (const int32_t position : action.extenders) {
    if (!state_->Has(position)) {
      return done({.status = NoSuchExtender(position), .answers = {}});
    }
  }
  state_->Ask(std::move(action), std::move(done));
}

void Client::Bind(const model::BindPod& action, std::function<void(absl::Status)> done) {
  if (!state_->Has(action.extender)) return done(NoSuchExtender(action.extender));
  const Endpoint& endpoint = state_->At(action.extender);
  if (endpoint.config().bind_verb.empty()) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("extender ", endpoint.config().url_prefix, " has no bindVerb")));
  }
  endpoint.Bind(BindingArgs(action.ns, action.name, action.uid, action.node),
                [state = state_, &endpoint, done = std::move(done)](const absl::Status& status) {
                  done(endpoint.Describe(endpoint.config().bind_verb, status));
                });
}

}  // namespace fairlead::extenders
