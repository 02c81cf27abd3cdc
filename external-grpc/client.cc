#include "external-grpc/client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "external-grpc/cloud_provider.grpc.pb.h"

namespace fairlead::external_grpc {
namespace {

using Stub = api::CloudProvider::Stub;

constexpr int kLongestReconnect_ms = 5000;
constexpr int kKeepalivePeriod_ms = 30'000;

absl::StatusOr<std::string> Contents(const char* field, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", path, " cannot be read"));
  }
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const ClientOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty()) {
    const char* missing = options.cert_file.empty() ? "certFile" : "keyFile";
    return absl::InvalidArgumentError(
        absl::StrCat(missing, ": must be set, because the other one of certFile and keyFile is"));
  }
  if (options.ca_file.empty()) {
    if (options.cert_file.empty()) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError("caFile: must be set, because certFile is");
  }
  const auto ca = Contents("caFile", options.ca_file);
  const auto cert = Contents("certFile", options.cert_file);
  const auto key = Contents("keyFile", options.key_file);
  for (const auto* file : {&ca, &cert, &key}) {
    if (!file->ok()) return file->status();
  }
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = *ca;
  ssl.pem_cert_chain = *cert;
  ssl.pem_private_key = *key;
  return grpc::SslCredentials(ssl);
}

int32_t ToInt32(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

template <typename Request>
Request About(const std::string& group) {
  Request request;
  request.set_id(group);
  return request;
}

// One call, from Send until its answer was posted.
struct OpenCall {
  virtual ~OpenCall() = default;
  virtual void Answer() = 0;
  grpc::ClientContext context;
  grpc::Status status;
};

}  // namespace

// Answers come on one thread of the client's own, as in remote-plugins/client.cc.
struct Client::Impl {
  std::string address;
  absl::Duration timeout;
  Post post;
  std::unique_ptr<Stub> stub;
  grpc::CompletionQueue queue;

  mutable std::mutex mutex;
  std::condition_variable none_open;
  std::set<OpenCall*> open;
  bool ending = false;
  std::thread answers{[this] { TakeAnswers(); }};  // uses all of the above

  template <typename Response, typename Take>
  struct TypedCall final : OpenCall {
    TypedCall(const Impl* impl, const char* name, Take take)
        : impl(impl), name(name), take(std::move(take)) {}
    void Answer() override {
      absl::Status told = impl->ToStatus(name, status);
      impl->post(
          [take = std::move(take), told = std::move(told),
           response = std::make_shared<Response>(std::move(response))] { take(told, *response); });
    }
    const Impl* impl;
    const char* name;
    Take take;
    Response response;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  };

  [[nodiscard]] absl::Status ToStatus(const char* name, const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    std::string what = status.error_message();
    if (code == absl::StatusCode::kDeadlineExceeded) {
      what = absl::StrCat("no answer within ", absl::FormatDuration(timeout));
    } else if (what.empty()) {
      what = absl::StatusCodeToString(code);
    }
    return absl::Status(code, absl::StrCat(name, " at ", address, ": ", what));
  }

  void TakeAnswers() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      auto* const call = static_cast<OpenCall*>(tag);
      call->Answer();
      {
        const std::lock_guard lock(mutex);
        open.erase(call);
        if (open.empty()) none_open.notify_all();
      }
      delete call;
    }
  }

  template <typename Request, typename Response>
  using Prepare = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  // `take` gets the status and, if that is OK, the response.
  template <typename Request, typename Response, typename Take>
  void Send(const char* name, Prepare<Request, Response> prepare, const Request& request,
            Take take) {
    auto sent = std::make_unique<TypedCall<Response, Take>>(this, name, std::move(take));
    sent->context.set_deadline(std::chrono::system_clock::now() +
                               absl::ToChronoNanoseconds(timeout));
    {
      const std::lock_guard lock(mutex);
      if (!ending) {
        auto* const out = sent.release();  // TakeAnswers deletes it
        open.insert(out);
        out->reader = (stub.get()->*prepare)(&out->context, request, &queue);
        out->reader->StartCall();
        out->reader->Finish(&out->response, &out->status, static_cast<OpenCall*>(out));
        return;
      }
    }
    sent->status = {grpc::StatusCode::CANCELLED, "the client ends"};
    sent->Answer();
  }

  // Answers what `value` makes of the response.
  template <typename T, typename Request, typename Response, typename Value>
  void Ask(const char* name, Prepare<Request, Response> prepare, const Request& request,
           Answer<T> answer, Value value) {
    Send(name, prepare, request,
         [this_name = absl::StrCat(name, " at ", address), answer = std::move(answer),
          value = std::move(value)](const absl::Status& status, const Response& response) {
           if (!status.ok()) return answer(status);
           absl::StatusOr<T> said = value(response);
           if (said.ok()) return answer(std::move(said));
           answer(absl::Status(said.status().code(),
                               absl::StrCat(this_name, ": ", said.status().message())));
         });
  }
  template <typename Request, typename Response>
  void Tell(const char* name, Prepare<Request, Response> prepare, const Request& request,
            Done done) {
    Send(name, prepare, request,
         [done = std::move(done)](const absl::Status& status, const Response&) { done(status); });
  }
};

Client::Client() : impl_(std::make_unique<Impl>()) {}

Client::~Client() {
  {
    std::unique_lock lock(impl_->mutex);
    impl_->ending = true;
    for (OpenCall* call : impl_->open) call->context.TryCancel();
    impl_->none_open.wait(lock, [this] { return impl_->open.empty(); });
  }
  impl_->queue.Shutdown();
  impl_->answers.join();
}

absl::StatusOr<std::unique_ptr<Client>> Client::Make(const ClientOptions& options, Post post) {
  if (options.address.empty()) return absl::InvalidArgumentError("address: must be set");
  if (options.timeout <= absl::ZeroDuration() || options.timeout > absl::Hours(1)) {
    return absl::InvalidArgumentError("timeout: must be above 0, and at most 1h");
  }
  const auto credentials = CredentialsOf(options);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnect_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalivePeriod_ms);
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  std::unique_ptr<Client> client(new Client());
  client->impl_->address = options.address;
  client->impl_->timeout = options.timeout;
  client->impl_->post = std::move(post);
  client->impl_->stub = api::CloudProvider::NewStub(
      grpc::CreateCustomChannel(options.address, *credentials, arguments));
  return client;
}

size_t Client::open() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open.size();
}

void Client::Refresh(Done done) {
  impl_->Tell("Refresh", &Stub::PrepareAsyncRefresh, api::RefreshRequest(), std::move(done));
}

void Client::Cleanup(Done done) {
  impl_->Tell("Cleanup", &Stub::PrepareAsyncCleanup, api::CleanupRequest(), std::move(done));
}

void Client::Groups(Answer<std::vector<hook::CloudGroup>> answer) {
  impl_->Ask("NodeGroups", &Stub::PrepareAsyncNodeGroups, api::NodeGroupsRequest(),
             std::move(answer),
             [](const api::NodeGroupsResponse& response) { return FromMessage(response); });
}

void Client::GroupForNode(const hook::CloudNode& node, Answer<hook::CloudGroup> answer) {
  api::NodeGroupForNodeRequest request;
  *request.mutable_node() = ToMessage(node);
  impl_->Ask("NodeGroupForNode", &Stub::PrepareAsyncNodeGroupForNode, request, std::move(answer),
             [](const api::NodeGroupForNodeResponse& response) {
               return FromMessage(response.node_group());
             });
}

void Client::GpuLabel(Answer<std::string> answer) {
  impl_->Ask("GPULabel", &Stub::PrepareAsyncGPULabel, api::GPULabelRequest(), std::move(answer),
             [](const api::GPULabelResponse& response) { return response.label(); });
}

void Client::GpuTypes(Answer<std::vector<std::string>> answer) {
  impl_->Ask("GetAvailableGPUTypes", &Stub::PrepareAsyncGetAvailableGPUTypes,
             api::GetAvailableGPUTypesRequest(), std::move(answer),
             [](const api::GetAvailableGPUTypesResponse& response) {
               std::vector<std::string> types;
               for (const auto& [type, unused] : response.gpu_types()) types.push_back(type);
               std::sort(types.begin(), types.end());
               return types;
             });
}

void Client::NodePrice(const hook::CloudNode& node, Answer<double> answer) {
  api::PricingNodePriceRequest request;
  *request.mutable_node() = ToMessage(node);
  const absl::Time now = absl::Now();
  SetTime(now, *request.mutable_start());
  SetTime(now + absl::Hours(1), *request.mutable_end());
  *request.mutable_start_before_1_35() = request.start();
  *request.mutable_end_before_1_35() = request.end();
  impl_->Ask("PricingNodePrice", &Stub::PrepareAsyncPricingNodePrice, request, std::move(answer),
             [](const api::PricingNodePriceResponse& response) { return response.price(); });
}

void Client::PodPrice(const std::string& pod_bytes, Answer<double> answer) {
  api::PricingPodPriceRequest request;
  request.set_pod(pod_bytes);
  request.set_pod_before_1_35(pod_bytes);
  const absl::Time now = absl::Now();
  SetTime(now, *request.mutable_start());
  SetTime(now + absl::Hours(1), *request.mutable_end());
  *request.mutable_start_before_1_35() = request.start();
  *request.mutable_end_before_1_35() = request.end();
  impl_->Ask("PricingPodPrice", &Stub::PrepareAsyncPricingPodPrice, request, std::move(answer),
             [](const api::PricingPodPriceResponse& response) { return response.price(); });
}

void Client::TargetSize(const std::string& group, Answer<int64_t> answer) {
  impl_->Ask("NodeGroupTargetSize", &Stub::PrepareAsyncNodeGroupTargetSize,
             About<api::NodeGroupTargetSizeRequest>(group), std::move(answer),
             [](const api::NodeGroupTargetSizeResponse& response) {
               return static_cast<int64_t>(response.target_size());
             });
}

void Client::Nodes(const std::string& group, Answer<std::vector<hook::CloudInstance>> answer) {
  impl_->Ask("NodeGroupNodes", &Stub::PrepareAsyncNodeGroupNodes,
             About<api::NodeGroupNodesRequest>(group), std::move(answer),
             [](const api::NodeGroupNodesResponse& response) { return FromMessage(response); });
}

void Client::TemplateNode(const std::string& group, Answer<model::Node> answer) {
  impl_->Ask("NodeGroupTemplateNodeInfo", &Stub::PrepareAsyncNodeGroupTemplateNodeInfo,
             About<api::NodeGroupTemplateNodeInfoRequest>(group), std::move(answer), NodeIn);
}

void Client::Options(const std::string& group, const GroupOptions& defaults,
                     Answer<GroupOptions> answer) {
  auto request = About<api::NodeGroupAutoscalingOptionsRequest>(group);
  *request.mutable_defaults() = ToMessage(defaults);
  impl_->Ask("NodeGroupGetOptions", &Stub::PrepareAsyncNodeGroupGetOptions, request,
             std::move(answer), [](const api::NodeGroupAutoscalingOptionsResponse& response) {
               return FromMessage(response.options());
             });
}

void Client::IncreaseSize(const std::string& group, const hook::Increase& increase, Done done) {
  auto request = About<api::NodeGroupIncreaseSizeRequest>(group);
  request.set_delta(ToInt32(increase.delta));
  impl_->Tell("NodeGroupIncreaseSize", &Stub::PrepareAsyncNodeGroupIncreaseSize, request,
              std::move(done));
}

void Client::DecreaseTargetSize(const std::string& group, int64_t delta, Done done) {
  auto request = About<api::NodeGroupDecreaseTargetSizeRequest>(group);
  request.set_delta(ToInt32(-delta));
  impl_->Tell("NodeGroupDecreaseTargetSize", &Stub::PrepareAsyncNodeGroupDecreaseTargetSize,
              request, std::move(done));
}

void Client::DeleteNodes(const std::string& group, const std::vector<hook::CloudNode>& nodes,
                         Done done) {
  auto request = About<api::NodeGroupDeleteNodesRequest>(group);
  for (const hook::CloudNode& node : nodes) *request.add_nodes() = ToMessage(node);
  impl_->Tell("NodeGroupDeleteNodes", &Stub::PrepareAsyncNodeGroupDeleteNodes, request,
              std::move(done));
}

}  // namespace fairlead::external_grpc
