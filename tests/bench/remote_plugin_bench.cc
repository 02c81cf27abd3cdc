// What a plugin in another program that scores nodes costs, over gRPC on a socket file: pods come
// in batches, and are placed by whole steps with it and without, in turn, the time for its answers
// included.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "core/options.h"
#include "fairlead/plugin/v1/plugin.grpc.pb.h"
#include "remote-plugins/client.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/remote_plugin.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

namespace api = plugin::v1;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

constexpr int64_t kNodes = 1000, kBatches = 8, kBatch = 8000, kJobs = kBatches * kBatch;
constexpr double kGoalPercent = 20;
constexpr char kShelf[] = "example.com/shelf";

// Nodes score by their shelf, a tenth of them alike.
class Shelves final : public api::Plugin::Service {
 public:
  grpc::Status EvaluateNodes(grpc::ServerContext*, const api::EvaluateNodesRequest* request,
                             api::EvaluateNodesResponse* response) override {
    if (request->base_version() == 0) nodes_.clear();
    for (const std::string& name : request->gone()) nodes_.erase(name);
    for (const api::Node& node : request->nodes()) nodes_[node.name()] = node;
    for (const api::PodClass& pods : request->classes()) {
      api::ClassJudgement& said = *response->add_classes();
      said.set_number(pods.number());
      for (const auto& [name, node] : nodes_) {
        const auto shelf = node.labels().find(kShelf);
        const int size = static_cast<int>(node.number()) + 1;
        if (said.scores_size() < size) said.mutable_scores()->Resize(size, 0);
        const int score = shelf == node.labels().end() ? 0 : 10 * (shelf->second[0] - '0');
        said.set_scores(static_cast<int>(node.number()), static_cast<uint32_t>(score));
      }
    }
    return grpc::Status::OK;
  }

 private:
  std::map<std::string, api::Node> nodes_;
};

class Plugin {
 public:
  explicit Plugin(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    Require(server_ != nullptr, absl::StrCat("the plugin cannot listen at ", address));
    config_.name = "Shelves";
    config_.address = address;
    auto client = remote_plugins::Client::Make({config_});
    Require(client.ok(), client.status().ToString());
    client_ = *std::move(client);
  }

  [[nodiscard]] core::Options Options() const {
    core::Options options = LoopCluster::QuietOptions();
    options.plugins = *plugins::WithBuiltIn({plugins::RemotePlugin::For(config_)});
    framework::ProfilePlugin entry{config_.name};
    entry.filter = entry.permit = entry.pre_bind = entry.post_bind = entry.reserve = false;
    options.profiles[0].plugins.push_back(entry);
    return options;
  }

  // Answers the calls of the step.
  int64_t Answer(core::DecisionLoop& loop, const core::StepResult& step) {
    int64_t calls = 0;
    for (const model::Action& action : step.actions) {
      const auto* const call = std::get_if<model::CallPlugin>(&action.what);
      if (call == nullptr) continue;
      ++calls;
      remote_plugins::Answer said;
      absl::Notification there;
      client_->Call(*call->call, [&](remote_plugins::Answer answer) {
        said = std::move(answer);
        there.Notify();
      });
      there.WaitForNotification();
      Require(said.status.ok(), said.status.ToString());
      model::ActionResult result{action.id, said.status};
      result.judgements = said.judgements;
      loop.Apply(std::move(result));
    }
    return calls;
  }

 private:
  Shelves service_;
  model::RemotePluginConfig config_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<remote_plugins::Client> client_;
};

// Seconds until all jobs are bound; `plugin` may be null.
double Bind(Plugin* plugin, int64_t classes, double& cpu_seconds) {
  LoopCluster cluster(plugin == nullptr ? LoopCluster::QuietOptions() : plugin->Options());
  cluster.Add(MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
  for (int64_t n = 0; n < kNodes; ++n) {
    model::Node node = MakeNode(Numbered("node", n), 0, 64, 512);
    node.meta.labels.Set(kShelf, absl::StrCat(n % 10));
    cluster.Add(node);
  }
  cluster.Sync();
  double seconds = 0;
  int64_t bound = 0, calls = 0;
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    for (int64_t j = batch * kBatch; j < (batch + 1) * kBatch; ++j) {
      model::Pod pod = PodBuilder(kNamespace, Numbered("job", j)).Queue("team").Build();
      model::Set(pod.spec.requests, model::kMemoryName,
                 (1 + j % classes) * (model::testing::kGiB / 16));
      cluster.AddJob(std::move(pod), false);
    }
    const Stopwatch watch;
    for (int step = 0; step < 4 && bound < (batch + 1) * kBatch; ++step) {
      const core::StepResult result = cluster.Step();
      bound += Count<model::BindPod>(result);
      if (plugin != nullptr) calls += plugin->Answer(cluster.loop(), result);
    }
    seconds += watch.Seconds();
    cpu_seconds += watch.CpuSeconds();
  }
  Require(bound == kJobs, "not all jobs were bound");
  Require(plugin == nullptr || calls > 0, "the plugin was not asked");
  return seconds;
}

}  // namespace

void RemotePlugin1k(Run& run) {
  Plugin plugin(absl::StrCat("unix:///tmp/fairlead-bench-", getpid(), ".sock"));
  for (const int64_t classes : {int64_t{1}, int64_t{32}}) {
    std::vector<double> rate, cpu, part;
    for (int i = 0; i < run.repetitions; ++i) {
      double cpu_without = 0, cpu_with = 0;
      const double without = Bind(nullptr, classes, cpu_without);
      const double with = Bind(&plugin, classes, cpu_with);
      rate.push_back(kJobs / with);
      cpu.push_back(cpu_with);
      part.push_back(100 * (with / without - 1));
    }
    const std::string name = absl::StrCat("remote_plugin_1k/classes_", classes);
    run.report.Add({name, "placements/s", Better::kHigher, rate, std::nullopt, std::nullopt,
                    Median(cpu), "whole steps with a C++ plugin that scores, over gRPC"});
    run.report.Add({name + "/cost", "%", Better::kLower, part, kGoalPercent, std::nullopt,
                    std::nullopt, "more time than without the plugin"});
  }
}

}  // namespace fairlead::bench
