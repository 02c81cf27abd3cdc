// The client against servers on the loopback interface and on a socket file: every answer that a
// program can give, and every way in which it can fail.
#include "remote-plugins/client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
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

}  // namespace
}  // namespace fairlead::remote_plugins
