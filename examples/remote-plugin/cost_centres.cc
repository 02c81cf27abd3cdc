// A plugin of Fairlead in C++: pods of a cost centre are bound while that is open, and where that
// has its nodes.
//
// usage: cost_centres ADDRESS FILE
//
// FILE has a line for each cost centre: "cad open" or "sim closed". It is read again for every
// question, and while pods wait. A node with the label example.com/cost-centre takes no pods of
// another centre. Nodes with a smaller example.com/cents-per-hour come first.
//
// The same plugin in Python is cost_centres.py.
// docs/remote-plugins.md says how to run it.
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fairlead/plugin/v1/plugin.grpc.pb.h"

namespace {

namespace api = fairlead::plugin::v1;

constexpr char kLabel[] = "example.com/cost-centre";
constexpr char kPrice[] = "example.com/cents-per-hour";
constexpr std::chrono::milliseconds kLookAgain{100};

// Nothing: there is no such cost centre.
std::optional<bool> IsOpen(const std::string& path, const std::string& centre) {
  std::ifstream lines(path);
  std::string name;
  std::string state;
  while (lines >> name >> state) {
    if (name == centre) return state == "open";
  }
  return std::nullopt;
}

using Labels = google::protobuf::Map<std::string, std::string>;
std::string Get(const Labels& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

// Tells the node by its number: a message for each node would cost more than everything else here.
// `refusal` is the one of `said`.
void Judge(const api::PodClass& pods, const api::Node& node, api::ClassJudgement& said,
           api::Refusal& refusal) {
  const std::string centre = Get(node.labels(), kLabel);
  if (!centre.empty() && centre != Get(pods.labels(), kLabel)) {
    refusal.add_nodes(node.number());
    return;
  }
  const std::string price = Get(node.labels(), kPrice);
  int cents = 0;
  const auto [end, error] = std::from_chars(price.data(), price.data() + price.size(), cents);
  if (price.empty() || error != std::errc() || end != price.data() + price.size()) return;
  const int number = static_cast<int>(node.number());
  if (said.scores_size() <= number) said.mutable_scores()->Resize(number + 1, 0);
  said.set_scores(number, static_cast<uint32_t>(std::clamp(100 - cents, 0, 100)));
}

// The nodes as one process of Fairlead has told them.
struct Copy {
  uint64_t version = 0;
  std::map<std::string, api::Node> nodes;
};

// A question that waits for its cost centre: no thread waits with it.
class OpenPermit final : public grpc::ServerUnaryReactor {
 public:
  OpenPermit(std::string path, const api::PermitRequest& request, api::PermitResponse* response)
      : path_(std::move(path)), response_(response) {
    const auto& labels = request.pod().labels();
    if (const auto found = labels.find(kLabel); found != labels.end()) centre_ = found->second;
    Look();
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    alarm_.Cancel();
  }
  void OnDone() override { delete this; }

 private:
  void Look() {
    const std::optional<bool> open = IsOpen(path_, centre_);
    if (!open.has_value()) response_->set_refusal("cost centre \"" + centre_ + "\" is not known");
    if (!open.has_value() || *open) return Finish(grpc::Status::OK);
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_) {
        alarm_.Set(std::chrono::system_clock::now() + kLookAgain, [this](bool rang) {
          if (rang) {
            Look();
          } else {
            Finish(grpc::Status::CANCELLED);
          }
        });
        return;
      }
    }
    Finish(grpc::Status::CANCELLED);
  }

  const std::string path_;
  std::string centre_;
  api::PermitResponse* const response_;
  grpc::Alarm alarm_;
  std::mutex mutex_;  // guards
  bool cancelled_ = false;
};

class CostCentres final
    : public api::Plugin::WithCallbackMethod_Permit<
          api::Plugin::WithCallbackMethod_PostBind<api::Plugin::WithCallbackMethod_Unreserve<
              api::Plugin::WithCallbackMethod_EvaluateNodes<api::Plugin::Service>>>> {
 public:
  explicit CostCentres(std::string path) : path_(std::move(path)) {}

  grpc::ServerUnaryReactor* Permit(grpc::CallbackServerContext*, const api::PermitRequest* request,
                                   api::PermitResponse* response) override {
    return new OpenPermit(path_, *request, response);
  }
  grpc::ServerUnaryReactor* PostBind(grpc::CallbackServerContext* context,
                                     const api::PostBindRequest* request,
                                     api::PostBindResponse*) override {
    return Say("bound ", request->pod(), context);
  }
  grpc::ServerUnaryReactor* Unreserve(grpc::CallbackServerContext* context,
                                      const api::UnreserveRequest* request,
                                      api::UnreserveResponse*) override {
    return Say("not bound ", request->pod(), context);
  }

  grpc::ServerUnaryReactor* EvaluateNodes(grpc::CallbackServerContext* context,
                                          const api::EvaluateNodesRequest* request,
                                          api::EvaluateNodesResponse* response) override {
    Evaluate(*request, *response);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  void Evaluate(const api::EvaluateNodesRequest& request, api::EvaluateNodesResponse& response) {
    const std::lock_guard lock(copies_mutex_);
    Copy& copy = copies_[request.session()];
    if (request.base_version() == 0) {
      copy = {};
    } else if (request.base_version() != copy.version) {
      response.set_need_snapshot(true);
      return;
    }
    for (const std::string& name : request.gone()) copy.nodes.erase(name);
    for (const api::Node& node : request.nodes()) copy.nodes[node.name()] = node;
    copy.version = request.version();
    for (const api::PodClass& pods : request.classes()) {
      api::ClassJudgement& said = *response.add_classes();
      said.set_number(pods.number());
      api::Refusal& refusal = *said.add_refusals();
      refusal.set_reason("node(s) of another cost centre");
      if (pods.all_nodes()) {
        for (const auto& [name, node] : copy.nodes) Judge(pods, node, said, refusal);
      } else {
        for (const api::Node& node : request.nodes()) Judge(pods, node, said, refusal);
      }
    }
  }

  grpc::ServerUnaryReactor* Say(const std::string& what, const api::PodOnNode& pod,
                                grpc::CallbackServerContext* context) {
    {
      const std::lock_guard lock(mutex_);
      std::cout << what << pod.namespace_() << "/" << pod.name() << " on " << pod.node()
                << std::endl;
    }
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::string path_;
  std::mutex mutex_;  // of standard output
  std::mutex copies_mutex_;
  std::map<uint64_t, Copy> copies_;  // by session
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cost_centres ADDRESS FILE\n";
    return 2;
  }
  CostCentres plugin(argv[2]);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "cannot listen at " << argv[1] << "\n";
    return 1;
  }
  std::cout << "serves at " << argv[1] << std::endl;
  server->Wait();
}
