#include "remote-plugins/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fairlead/plugin/v1/plugin.grpc.pb.h"

namespace fairlead::remote_plugins {
namespace {

namespace api = plugin::v1;
using Stub = api::Plugin::Stub;

constexpr int kMaxReconnect_ms = 5000;
constexpr int kKeepalive_ms = 30'000;

struct Target {
  model::RemotePluginConfig config;
  std::unique_ptr<Stub> stub;
};

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(
    const std::string& ca_file) {
  if (ca_file.empty()) return grpc::InsecureChannelCredentials();
  std::ifstream file(ca_file, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::InvalidArgumentError(absl::StrCat("caFile: ", ca_file, " cannot be read"));
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text.str();
  return grpc::SslCredentials(options);
}

api::PodOnNode ToMessage(const model::RemoteCall& call) {
  api::PodOnNode pod;
  pod.set_namespace_(call.ns);
  pod.set_name(call.name);
  pod.set_uid(call.uid);
  pod.set_node(call.node);
  for (const auto& [key, value] : call.labels) (*pod.mutable_labels())[key] = value;
  pod.set_queue(call.queue);
  pod.set_pod_group(call.pod_group);
  return pod;
}

absl::Status ToStatus(const grpc::Status& status, const Target& target, absl::Duration timeout,
                      bool permit) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string what = status.error_message();
  if (code == absl::StatusCode::kDeadlineExceeded) {
    what = absl::StrCat(permit ? "did not permit" : "did not answer", " within ",
                        absl::FormatDuration(timeout));
  } else if (what.empty()) {
    what = absl::StatusCodeToString(code);
  }
  return absl::Status(code, absl::StrCat("plugin at ", target.config.address, ": ", what));
}

template <typename Response>
std::string RefusalIn(const Response& response) {
  if constexpr (requires { response.refusal(); }) return response.refusal();
  return "";
}

}  // namespace

struct Client::Impl {
  std::map<std::string, Target> targets;  // by name; not changed after Make

  mutable std::mutex mutex;
  std::condition_variable none_open;
  std::set<grpc::ClientContext*> open;
  bool ending = false;

  // False: the client ends.
  bool Begin(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex);
    if (!ending) open.insert(context);
    return !ending;
  }
  // The last thing that a call does to the client.
  void End(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex);
    open.erase(context);
    if (open.empty()) none_open.notify_all();
  }

  template <typename Request, typename Response, typename Method>
  void Send(const Target& target, const model::RemoteCall& call, Method method, Caller::Done done) {
    struct Open {
      grpc::ClientContext context;
      Request request;
      Response response;
    };
    const bool permit = call.point == model::RemotePoint::kPermit;
    const absl::Duration timeout = permit ? target.config.permit_timeout : target.config.timeout;
    auto sent = std::make_shared<Open>();
    *sent->request.mutable_pod() = ToMessage(call);
    sent->context.set_deadline(std::chrono::system_clock::now() +
                               absl::ToChronoNanoseconds(timeout));
    if (!Begin(&sent->context)) {
      done({absl::CancelledError("the client ends"), ""});
      return;
    }
    (target.stub->async()->*method)(
        &sent->context, &sent->request, &sent->response,
        [this, sent, &target, timeout, permit, done = std::move(done)](const grpc::Status& status) {
          done({ToStatus(status, target, timeout, permit), RefusalIn(sent->response)});
          End(&sent->context);
        });
  }
};

Client::Client() : impl_(std::make_unique<Impl>()) {}

Client::~Client() {
  std::unique_lock lock(impl_->mutex);
  impl_->ending = true;
  for (grpc::ClientContext* context : impl_->open) context->TryCancel();
  impl_->none_open.wait(lock, [this] { return impl_->open.empty(); });
}

absl::StatusOr<std::unique_ptr<Client>> Client::Make(
    const std::vector<model::RemotePluginConfig>& plugins) {
  std::unique_ptr<Client> client(new Client());
  for (size_t i = 0; i < plugins.size(); ++i) {
    const model::RemotePluginConfig& config = plugins[i];
    const auto credentials = CredentialsFor(config.ca_file);
    if (!credentials.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("remotePlugins[", i, "]: ", credentials.status().message()));
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnect_ms);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive_ms);
    client->impl_->targets[config.name] = {config, api::Plugin::NewStub(grpc::CreateCustomChannel(
                                                       config.address, *credentials, arguments))};
  }
  return client;
}

void Client::Call(const model::RemoteCall& call, Done done) {
  const auto target = impl_->targets.find(call.plugin);
  if (target == impl_->targets.end()) {
    done({absl::NotFoundError(absl::StrCat("there is no remote plugin ", call.plugin)), ""});
    return;
  }
  const auto send =
      [&]<typename Request, typename Response>(void (Stub::async::*method)(
          grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>)) {
        impl_->Send<Request, Response>(target->second, call, method, std::move(done));
      };
  switch (call.point) {
    case model::RemotePoint::kPermit:
      return send.operator()<api::PermitRequest, api::PermitResponse>(&Stub::async::Permit);
    case model::RemotePoint::kPreBind:
      return send.operator()<api::PreBindRequest, api::PreBindResponse>(&Stub::async::PreBind);
    case model::RemotePoint::kPostBind:
      return send.operator()<api::PostBindRequest, api::PostBindResponse>(&Stub::async::PostBind);
    case model::RemotePoint::kUnreserve:
      return send.operator()<api::UnreserveRequest, api::UnreserveResponse>(
          &Stub::async::Unreserve);
  }
}

size_t Client::open() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open.size();
}

}  // namespace fairlead::remote_plugins
