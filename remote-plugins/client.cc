#include "remote-plugins/client.h"

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fairlead/plugin/v1/plugin.grpc.pb.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::remote_plugins {
namespace {

namespace api = plugin::v1;
using Stub = api::Plugin::Stub;

constexpr int kMaxReconnect_ms = 5000;
constexpr int kKeepalive_ms = 30'000;
constexpr int kMaxAnswer_bytes = 64 << 20;

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

void Fill(const model::RemoteCall& call, api::PodOnNode& pod) {
  pod.set_namespace_(call.ns);
  pod.set_name(call.name);
  pod.set_uid(call.uid);
  pod.set_node(call.node);
  for (const auto& [key, value] : call.labels) (*pod.mutable_labels())[key] = value;
  pod.set_queue(call.queue);
  pod.set_pod_group(call.pod_group);
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

template <typename Amounts>
void AddAmounts(const model::ResourceList& list, Amounts& amounts) {
  // Of GPUs the model counts thousandths; a part of one is one more.
  for (const auto& [name, amount] : list) {
    amounts[name] = name == model::kGpuName ? (amount + 999) / 1000 : amount;
  }
}

void Fill(const model::NodeQuestion::SnapshotNode& node, api::Node& out) {
  out.set_name(node.node.meta.name);
  for (const auto& [key, value] : node.node.meta.labels) (*out.mutable_labels())[key] = value;
  for (const model::Taint& taint : node.node.taints) {
    api::Taint& added = *out.add_taints();
    added.set_key(taint.key);
    added.set_value(taint.value);
    added.set_effect(std::string(TaintEffectName(taint.effect)));
  }
  out.set_unschedulable(node.node.unschedulable);
  AddAmounts(node.node.allocatable, *out.mutable_allocatable());
  AddAmounts(node.requested, *out.mutable_requested());
  out.set_number(node.number);
}

void Fill(const model::NodeQuestion& question, uint64_t session,
          api::EvaluateNodesRequest& request) {
  request.set_session(session);
  request.set_base_version(question.base_version);
  request.set_version(question.version);
  for (const auto& node : question.nodes) Fill(node, *request.add_nodes());
  for (const std::string& name : question.gone) request.add_gone(name);
  for (const model::NodeQuestion::AskedClass& asked : question.classes) {
    api::PodClass& added = *request.add_classes();
    added.set_number(asked.number);
    added.set_namespace_(asked.ns);
    for (const auto& [key, value] : asked.labels) (*added.mutable_labels())[key] = value;
    AddAmounts(asked.requests, *added.mutable_requests());
    added.set_all_nodes(asked.all_nodes);
  }
}

std::shared_ptr<const model::NodeJudgements> JudgementsIn(
    const api::EvaluateNodesResponse& response) {
  auto judgements = std::make_shared<model::NodeJudgements>();
  judgements->needs_snapshot = response.need_snapshot();
  for (const api::ClassJudgement& said : response.classes()) {
    model::NodeJudgements::OfClass& of_class = judgements->classes.emplace_back();
    of_class.number = said.number();
    of_class.nodes.reserve(static_cast<size_t>(said.nodes_size()));
    for (const api::NodeJudgement& node : said.nodes()) {
      of_class.nodes.push_back({node.name(), node.refusal(), node.score()});
    }
    of_class.scores.assign(said.scores().begin(), said.scores().end());
    of_class.refusals.reserve(static_cast<size_t>(said.refusals_size()));
    for (const api::Refusal& refusal : said.refusals()) {
      of_class.refusals.push_back(
          {refusal.reason(), {refusal.nodes().begin(), refusal.nodes().end()}});
    }
  }
  return judgements;
}

template <typename Response>
Answer AnswerIn(absl::Status status, const Response& response) {
  Answer answer{std::move(status)};
  if constexpr (requires { response.refusal(); }) answer.refusal = response.refusal();
  if constexpr (requires { response.need_snapshot(); }) {
    if (answer.status.ok()) answer.judgements = JudgementsIn(response);
  }
  return answer;
}

// One call, from Send until its answer was given.
struct OpenCall {
  virtual ~OpenCall() = default;
  virtual void Answer() = 0;
  grpc::ClientContext context;
  grpc::Status status;
};

template <typename Response>
struct TypedCall final : OpenCall {
  void Answer() override { done(AnswerIn(ToStatus(status, *target, timeout, permit), *response)); }
  const Target* target = nullptr;
  absl::Duration timeout;
  bool permit = false;
  Caller::Done done;
  // An answer about nodes may have a message for each: they are made and dropped together.
  google::protobuf::Arena arena;
  Response* const response = google::protobuf::Arena::CreateMessage<Response>(&arena);
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
};

}  // namespace

// Answers come on one thread of the client's own. (gRPC's callback interface shares threads of the
// process, and 1.51 frees their queue twice if the last channel goes while another one is made.)
struct Client::Impl {
  std::map<std::string, Target> targets;  // by name; not changed after Make
  // No other process has it: a plugin tells the copies of nodes apart by it.
  const uint64_t session = std::random_device()() | uint64_t{std::random_device()()} << 32;
  grpc::CompletionQueue queue;

  mutable std::mutex mutex;
  std::condition_variable none_open;
  std::set<OpenCall*> open;
  bool ending = false;
  std::thread answers{[this] { TakeAnswers(); }};  // uses all of the above

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

  template <typename Request, typename Response>
  void Send(const Target& target, const model::RemoteCall& call, Prepare<Request, Response> prepare,
            Caller::Done done) {
    google::protobuf::Arena arena;
    auto& request = *google::protobuf::Arena::CreateMessage<Request>(&arena);
    if constexpr (requires { request.mutable_pod(); }) {
      Fill(call, *request.mutable_pod());
    } else {
      Fill(*call.question, session, request);
    }
    auto sent = std::make_unique<TypedCall<Response>>();
    sent->target = &target;
    sent->permit = call.point == model::RemotePoint::kPermit;
    sent->timeout = sent->permit ? target.config.permit_timeout : target.config.timeout;
    sent->done = std::move(done);
    sent->context.set_deadline(std::chrono::system_clock::now() +
                               absl::ToChronoNanoseconds(sent->timeout));
    {
      const std::lock_guard lock(mutex);
      if (!ending) {
        TypedCall<Response>* const out = sent.release();  // TakeAnswers deletes it
        open.insert(out);
        out->reader = (target.stub.get()->*prepare)(&out->context, request, &queue);
        out->reader->StartCall();
        out->reader->Finish(out->response, &out->status, static_cast<OpenCall*>(out));
        return;
      }
    }
    sent->done({absl::CancelledError("the client ends")});
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
    arguments.SetMaxReceiveMessageSize(kMaxAnswer_bytes);
    client->impl_->targets[config.name] = {config, api::Plugin::NewStub(grpc::CreateCustomChannel(
                                                       config.address, *credentials, arguments))};
  }
  return client;
}

void Client::Call(const model::RemoteCall& call, Done done) {
  const auto target = impl_->targets.find(call.plugin);
  if (target == impl_->targets.end()) {
    done({absl::NotFoundError(absl::StrCat("there is no remote plugin ", call.plugin))});
    return;
  }
  const auto send = [&](auto prepare) {
    impl_->Send(target->second, call, prepare, std::move(done));
  };
  switch (call.point) {
    case model::RemotePoint::kPermit:
      return send(&Stub::PrepareAsyncPermit);
    case model::RemotePoint::kPreBind:
      return send(&Stub::PrepareAsyncPreBind);
    case model::RemotePoint::kPostBind:
      return send(&Stub::PrepareAsyncPostBind);
    case model::RemotePoint::kUnreserve:
      return send(&Stub::PrepareAsyncUnreserve);
    case model::RemotePoint::kEvaluateNodes:
      return send(&Stub::PrepareAsyncEvaluateNodes);
  }
}

size_t Client::open() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open.size();
}

}  // namespace fairlead::remote_plugins
