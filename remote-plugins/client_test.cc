// The client against servers on the loopback interface and on a socket file: every answer that a
// program can give, and every way in which it can fail.
#include "remote-plugins/client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "fairlead/plugin/v1/plugin.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::remote_plugins {
namespace {

namespace api = plugin::v1;
using model::RemoteCall;
using model::RemotePoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Notes what it is asked. Serves no PreBind.
class Server final : public api::Plugin::Service {
 public:
  grpc::Status Permit(grpc::ServerContext* context, const api::PermitRequest* request,
                      api::PermitResponse* response) override {
    Note("permit", request->pod());
    if (request->pod().name() == "hangs") {
      while (!context->IsCancelled()) usleep(1000);
      return grpc::Status::CANCELLED;
    }
    if (request->pod().name() == "refused") response->set_refusal("no licence is left");
    if (request->pod().name() == "fails") return {grpc::StatusCode::INTERNAL, "the disk is full"};
    return grpc::Status::OK;
  }
  grpc::Status PostBind(grpc::ServerContext*, const api::PostBindRequest* request,
                        api::PostBindResponse*) override {
    Note("postBind", request->pod());
    return grpc::Status::OK;
  }
  grpc::Status Unreserve(grpc::ServerContext*, const api::UnreserveRequest* request,
                         api::UnreserveResponse*) override {
    Note("unreserve", request->pod());
    return grpc::Status::OK;
  }
  // Has the copy up to version 1.
  grpc::Status EvaluateNodes(grpc::ServerContext*, const api::EvaluateNodesRequest* request,
                             api::EvaluateNodesResponse* response) override {
    const std::lock_guard lock(mutex_);
    sessions_.insert(request->session());
    asked_ = request->DebugString();
    response->set_need_snapshot(request->base_version() > 1);
    for (const api::PodClass& pods : request->classes()) {
      api::ClassJudgement& said = *response->add_classes();
      said.set_number(pods.number());
      for (const api::Node& node : request->nodes()) said.add_scores(10 * node.number());
      api::Refusal& refusal = *said.add_refusals();
      refusal.set_reason("no licence");
      for (const api::Node& node : request->nodes()) refusal.add_nodes(node.number());
      for (const api::Node& node : request->nodes()) {
        api::NodeJudgement& judgement = *said.add_nodes();
        judgement.set_name(node.name());
        judgement.set_score(-7);
        if (node.unschedulable()) judgement.set_refusal("closed");
      }
    }
    return grpc::Status::OK;
  }
  std::string asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  size_t sessions() {
    const std::lock_guard lock(mutex_);
    return sessions_.size();
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  void Note(absl::string_view what, const api::PodOnNode& pod) {
    const std::lock_guard lock(mutex_);
    std::string labels;
    for (const auto& [key, value] : pod.labels()) absl::StrAppend(&labels, " ", key, "=", value);
    notes_.push_back(absl::StrCat(what, " ", pod.namespace_(), "/", pod.name(), " ", pod.uid(), " ",
                                  pod.node(), " ", pod.queue(), " ", pod.pod_group(), labels));
  }
  std::mutex mutex_;
  std::vector<std::string> notes_;
  std::string asked_;
  std::set<uint64_t> sessions_;
};

class ClientTest : public ::testing::Test {
 protected:
  // Serves at the address, and returns where.
  std::string Serve(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr) << address;
    return address.starts_with("unix:") ? address : absl::StrCat("127.0.0.1:", port);
  }
  void Connect(const std::string& address, absl::Duration timeout = absl::Seconds(20),
               absl::Duration permit_timeout = absl::Seconds(20)) {
    auto made = Client::Make({{.name = "Licences",
                               .address = address,
                               .ca_file = "",
                               .timeout = timeout,
                               .permit_timeout = permit_timeout,
                               .pod_labels = {}}});
    ASSERT_TRUE(made.ok()) << made.status();
    client_ = *std::move(made);
  }
  static RemoteCall Pod(const std::string& name, RemotePoint point = RemotePoint::kPermit) {
    RemoteCall call;
    call.plugin = "Licences";
    call.point = point;
    call.ns = "ns";
    call.name = name;
    call.uid = "u-" + name;
    call.node = "n1";
    call.labels.Set("example.com/licence", "cad");
    call.queue = "team";
    call.pod_group = "gang";
    return call;
  }
  Answer Ask(const RemoteCall& call) {
    Answer answer;
    absl::Notification there;
    client_->Call(call, [&](Answer given) {
      answer = std::move(given);
      there.Notify();
    });
    there.WaitForNotification();
    return answer;
  }

  Server service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AsksAndTells) {
  Connect(Serve("127.0.0.1:0"));
  Answer answer = Ask(Pod("p"));
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.refusal, "");
  answer = Ask(Pod("refused"));
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.refusal, "no licence is left");
  EXPECT_TRUE(Ask(Pod("p", RemotePoint::kPostBind)).status.ok());
  EXPECT_TRUE(Ask(Pod("p", RemotePoint::kUnreserve)).status.ok());
  const std::string pod = "ns/p u-p n1 team gang example.com/licence=cad";
  EXPECT_THAT(
      service_.notes(),
      UnorderedElementsAre("permit " + pod,
                           "permit ns/refused u-refused n1 team gang example.com/licence=cad",
                           "postBind " + pod, "unreserve " + pod));
}

TEST_F(ClientTest, ASocketFile) {
  Connect(Serve(absl::StrCat("unix://", ::testing::TempDir(), "/plugin-", getpid(), ".sock")));
  EXPECT_TRUE(Ask(Pod("p")).status.ok());
}

TEST_F(ClientTest, FailuresNameThePluginsAddress) {
  const std::string address = Serve("127.0.0.1:0");
  Connect(address);
  Answer answer = Ask(Pod("fails"));
  EXPECT_TRUE(absl::IsInternal(answer.status));
  EXPECT_EQ(answer.status.message(), absl::StrCat("plugin at ", address, ": the disk is full"));
  EXPECT_TRUE(absl::IsUnimplemented(Ask(Pod("p", RemotePoint::kPreBind)).status));
  RemoteCall other = Pod("p");
  other.plugin = "Other";
  EXPECT_TRUE(absl::IsNotFound(Ask(other).status));
  server_->Shutdown();
  answer = Ask(Pod("p"));
  EXPECT_TRUE(absl::IsUnavailable(answer.status)) << answer.status;
  EXPECT_THAT(std::string(answer.status.message()), HasSubstr(address));
}

TEST_F(ClientTest, NoServerIsNoAnswerAtOnce) {
  Connect("127.0.0.1:1");
  EXPECT_TRUE(absl::IsUnavailable(Ask(Pod("p")).status));
}

TEST_F(ClientTest, EachCallHasItsTimeOut) {
  const std::string address = Serve("127.0.0.1:0");
  Connect(address, /*timeout=*/absl::Seconds(20), /*permit_timeout=*/absl::Milliseconds(50));
  const Answer answer = Ask(Pod("hangs"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status));
  EXPECT_EQ(answer.status.message(),
            absl::StrCat("plugin at ", address, ": did not permit within 50ms"));
}

TEST_F(ClientTest, TheEndCancelsWhatIsOpen) {
  Connect(Serve("127.0.0.1:0"));
  absl::Notification answered;
  absl::Status status;
  client_->Call(Pod("hangs"), [&](const Answer& answer) {
    status = answer.status;
    answered.Notify();
  });
  EXPECT_EQ(client_->open(), 1u);
  client_.reset();
  ASSERT_TRUE(answered.HasBeenNotified()) << "the end waits for the answer";
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(ClientMakeTest, ACertificateThatCannotBeRead) {
  const auto made =
      Client::Make({{.name = "a", .address = "h:1", .ca_file = "", .pod_labels = {}},
                    {.name = "b", .address = "h:2", .ca_file = "/no/such/file", .pod_labels = {}}});
  EXPECT_EQ(made.status().message(), "remotePlugins[1]: caFile: /no/such/file cannot be read");
}

RemoteCall AboutNodes(uint64_t base_version) {
  model::NodeQuestion question;
  question.base_version = base_version;
  question.version = base_version + 1;
  model::Node node;
  node.meta.name = "n1";
  node.meta.labels.Set("rack", "r7");
  node.taints.push_back({"k", "v", model::TaintEffect::kNoExecute});
  node.allocatable = {{"cpu", 64'000}, {"nvidia.com/gpu", 8'000}};
  question.nodes.push_back({node, {{"nvidia.com/gpu", 1'500}}, 4});
  node = {};
  node.meta.name = "n2";
  node.unschedulable = true;
  question.nodes.push_back({node, {}, 9});
  question.gone = {"n3"};
  model::NodeQuestion::AskedClass asked;
  asked.number = 42;
  asked.ns = "team";
  asked.labels.Set("example.com/licence", "cad");
  asked.requests = {{"cpu", 500}, {"nvidia.com/gpu", 1'000}};
  asked.all_nodes = true;
  question.classes.push_back(asked);
  RemoteCall call;
  call.plugin = "Licences";
  call.point = RemotePoint::kEvaluateNodes;
  call.question = std::make_shared<const model::NodeQuestion>(question);
  return call;
}

TEST_F(ClientTest, NodesAreAskedAboutByClass) {
  Connect(Serve("127.0.0.1:0"));
  const Answer answer = Ask(AboutNodes(1));
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  ASSERT_NE(answer.judgements, nullptr);
  EXPECT_FALSE(answer.judgements->needs_snapshot);
  ASSERT_EQ(answer.judgements->classes.size(), 1u);
  EXPECT_EQ(answer.judgements->classes[0].number, 42u);
  const auto& nodes = answer.judgements->classes[0].nodes;
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].node, "n1");
  EXPECT_EQ(nodes[0].refusal, "");
  EXPECT_EQ(nodes[0].score, -7);
  EXPECT_EQ(nodes[1].refusal, "closed");
  EXPECT_THAT(answer.judgements->classes[0].scores, ElementsAre(40, 90));
  const auto& refusals = answer.judgements->classes[0].refusals;
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].reason, "no licence");
  EXPECT_THAT(refusals[0].nodes, ElementsAre(4, 9));
  for (const char* part :
       {"base_version: 1", "version: 2", "name: \"n1\"", "value: \"r7\"", "effect: \"NoExecute\"",
        "value: 64000", "value: 8\n", "value: 2\n", "gone: \"n3\"", "number: 42",
        "namespace: \"team\"", "value: \"cad\"", "value: 500", "value: 1\n", "all_nodes: true"}) {
    EXPECT_THAT(service_.asked(), HasSubstr(part));
  }
}

TEST_F(ClientTest, APluginWithoutTheCopySaysSo) {
  Connect(Serve("127.0.0.1:0"));
  const Answer answer = Ask(AboutNodes(2));
  ASSERT_NE(answer.judgements, nullptr);
  EXPECT_TRUE(answer.judgements->needs_snapshot);
}

TEST_F(ClientTest, EachClientIsASessionOfItsOwn) {
  const std::string address = Serve("127.0.0.1:0");
  for (int i = 0; i < 2; ++i) {
    Connect(address);
    Ask(AboutNodes(0));
    Ask(AboutNodes(1));
  }
  EXPECT_EQ(service_.sessions(), 2u);
}

TEST_F(ClientTest, OneThatFailsHasNoJudgements) {
  Connect("127.0.0.1:1", absl::Seconds(2));
  const Answer answer = Ask(AboutNodes(0));
  EXPECT_FALSE(answer.status.ok());
  EXPECT_EQ(answer.judgements, nullptr);
}

}  // namespace
}  // namespace fairlead::remote_plugins
