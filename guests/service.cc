#include "guests/service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fairlead/guests/v1/guests.grpc.pb.h"

namespace fairlead::guests {
namespace {

namespace proto = fairlead::guests::v1;

constexpr auto kLooksForAnEnd = std::chrono::milliseconds(200);

model::Pod PodOf(const proto::Pod& asked) {
  model::Pod pod;
  pod.meta.ns = asked.namespace_();
  pod.meta.name = asked.name();
  pod.meta.uid = asked.uid();
  pod.scheduler_name = asked.scheduler_name();
  for (const auto& [key, value] : asked.labels()) pod.meta.labels.Set(key, value);
  for (const auto& [key, value] : asked.annotations()) pod.meta.annotations.Set(key, value);
  return pod;
}

proto::DecideResponse::State StateOf(core::GuestAnswer::Kind kind) {
  using Kind = core::GuestAnswer::Kind;
  switch (kind) {
    case Kind::kNotOurs:
      return proto::DecideResponse::NOT_OURS;
    case Kind::kUndecided:
      return proto::DecideResponse::UNDECIDED;
    case Kind::kWaits:
      return proto::DecideResponse::WAITS;
    case Kind::kGranted:
      return proto::DecideResponse::GRANTED;
    case Kind::kHeld:
      return proto::DecideResponse::HELD;
  }
  return proto::DecideResponse::STATE_UNSPECIFIED;
}

grpc::Status Unavailable(const absl::Status& why) {
  return {grpc::StatusCode::UNAVAILABLE, std::string(why.message())};
}

proto::Grant MessageOf(const core::GuestGrant& grant) {
  proto::Grant message;
  message.set_namespace_(grant.ns);
  message.set_name(grant.name);
  message.set_uid(grant.uid);
  message.set_node(grant.node);
  return message;
}

}  // namespace

class Service::Impl final : public proto::Guests::Service {
 public:
  Impl(guests::Service::Decide decide, Granted granted)
      : decide_(std::move(decide)), granted_(std::move(granted)) {}

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    // Two servers on one port would share the questions.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, " for guests"));
  }

  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
      for (Watch& watch : watches_) watch.over = true;
    }
    changed_.notify_all();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  void Publish(const std::vector<core::GuestGrant>& grants) {
    if (grants.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Watch& watch : watches_) Add(watch, grants);
    changed_.notify_all();
  }

  void EndWatches() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Watch& watch : watches_) watch.over = true;
    changed_.notify_all();
  }

  [[nodiscard]] int port() const { return port_; }

  // ---- proto::Guests

  grpc::Status Decide(grpc::ServerContext* /*context*/, const proto::DecideRequest* request,
                      proto::DecideResponse* response) override {
    const InUse ask(asks_, kMaxAsks);
    if (!ask.ok()) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many questions at a time"};
    if (request->pod().name().empty() || request->pod().uid().empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "the pod has no name, or no uid"};
    }
    const absl::Duration wait =
        std::min(kLongestWait, absl::Milliseconds(int64_t{request->wait_ms()}));
    const absl::StatusOr<core::GuestAnswer> answer =
        decide_(PodOf(request->pod()), request->reserved_on(), wait);
    if (!answer.ok()) return Unavailable(answer.status());
    response->set_state(StateOf(answer->kind));
    response->set_node(answer->node);
    response->set_reason(answer->reason);
    return grpc::Status::OK;
  }

  grpc::Status WatchGrants(grpc::ServerContext* context, const proto::WatchGrantsRequest*,
                           grpc::ServerWriter<proto::Grant>* writer) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (watches_.size() >= kMaxWatches) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watches"};
    }
    const auto watch = watches_.emplace(watches_.end());
    watch->over = stopped_;
    lock.unlock();
    // Registered first: what is granted meanwhile is not missed.
    const absl::StatusOr<std::vector<core::GuestGrant>> granted = granted_();
    lock.lock();
    if (granted.ok()) {
      Add(*watch, *granted);
      Serve(*context, *watch, *writer, lock);
    }
    watches_.erase(watch);
    lock.unlock();
    if (!granted.ok()) return Unavailable(granted.status());
    return {grpc::StatusCode::UNAVAILABLE, "this watch is over; begin another one"};
  }

 private:
  struct Watch {
    std::deque<core::GuestGrant> unsent;
    bool over = false;
  };
  // Counts a user while it lives; not ok beyond the most.
  class InUse {
   public:
    InUse(std::atomic<size_t>& count, size_t most) : count_(count), ok_(++count <= most) {}
    ~InUse() { --count_; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    [[nodiscard]] bool ok() const { return ok_; }

   private:
    std::atomic<size_t>& count_;
    const bool ok_;
  };

  static void Add(Watch& watch, const std::vector<core::GuestGrant>& grants) {
    watch.unsent.insert(watch.unsent.end(), grants.begin(), grants.end());
    if (watch.unsent.size() > kMaxUnsent) watch.over = true;
  }

  // Sends what is granted until the watch is over, or its client has gone.
  void Serve(grpc::ServerContext& context, Watch& watch, grpc::ServerWriter<proto::Grant>& writer,
             std::unique_lock<std::mutex>& lock) {
    while (!watch.over && !context.IsCancelled()) {
      if (watch.unsent.empty()) {
        changed_.wait_for(lock, kLooksForAnEnd);
        continue;
      }
      const proto::Grant message = MessageOf(watch.unsent.front());
      watch.unsent.pop_front();
      lock.unlock();
      const bool sent = writer.Write(message);
      lock.lock();
      if (!sent) return;
    }
  }

  const guests::Service::Decide decide_;
  const Granted granted_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::atomic<size_t> asks_{0};
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::list<Watch> watches_;
  bool stopped_ = false;
};

Service::Service(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Service::~Service() { impl_->Stop(); }

absl::StatusOr<std::unique_ptr<Service>> Service::Start(const std::string& address, Decide decide,
                                                        Granted granted) {
  auto impl = std::make_unique<Impl>(std::move(decide), std::move(granted));
  if (absl::Status listening = impl->Listen(address); !listening.ok()) return listening;
  return std::unique_ptr<Service>(new Service(std::move(impl)));
}

void Service::Publish(const std::vector<core::GuestGrant>& grants) { impl_->Publish(grants); }
void Service::EndWatches() { impl_->EndWatches(); }
int Service::port() const { return impl_->port(); }

}  // namespace fairlead::guests
