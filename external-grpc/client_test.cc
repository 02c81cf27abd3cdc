// The client against servers on the loopback interface: every call, both generations of servers,
// and every way in which a call can fail.
#include "external-grpc/client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "external-grpc/server_testing.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::external_grpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExternalClientTest : public ::testing::Test {
 protected:
  std::string Serve(
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    return absl::StrCat("127.0.0.1:", port);
  }
  void Connect(ClientOptions options) {
    auto made = Client::Make(options, [this](std::function<void()> callback) {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(callback));
      ++posts_;
      last_poster_ = std::this_thread::get_id();
      is_posted_.notify_all();
    });
    ASSERT_TRUE(made.ok()) << made.status();
    client_ = *std::move(made);
  }
  void Connect(const std::string& address, absl::Duration timeout = absl::Seconds(20)) {
    ClientOptions options;
    options.address = address;
    options.timeout = timeout;
    Connect(options);
  }
  // Runs one posted callback on this thread; waits until there is one.
  void RunOne() {
    std::function<void()> callback;
    {
      std::unique_lock lock(mutex_);
      is_posted_.wait(lock, [this] { return !posted_.empty(); });
      callback = std::move(posted_.front());
      posted_.pop_front();
    }
    callback();
  }
  template <typename T, typename Call>
  absl::StatusOr<T> Ask(Call call) {
    std::optional<absl::StatusOr<T>> said;
    call([&](absl::StatusOr<T> answer) { said = std::move(answer); });
    RunOne();
    return *said;
  }
  template <typename Call>
  absl::Status Tell(Call call) {
    absl::Status said = absl::UnknownError("no answer");
    call([&](const absl::Status& answer) { said = answer; });
    RunOne();
    return said;
  }
  absl::Status Refresh() {
    return Tell([&](auto done) { client_->Refresh(done); });
  }
  std::string File(const std::string& name, const std::string& text) {
    std::string path = absl::StrCat(::testing::TempDir(), "/external-", getpid(), "-", name);
    std::ofstream(path) << text;
    return path;
  }

  TestServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable is_posted_;
  std::deque<std::function<void()>> posted_;
  int posts_ = 0;
  std::thread::id last_poster_;
  std::unique_ptr<Client> client_;
};

TEST_F(ExternalClientTest, ReadsGroups) {
  Connect(Serve());
  EXPECT_TRUE(Refresh().ok());
  const auto groups =
      Ask<std::vector<hook::CloudGroup>>([&](auto answer) { client_->Groups(answer); });
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_THAT(*groups, ElementsAre(hook::CloudGroup{"g", -1, 7, "xxx"},
                                   hook::CloudGroup{"h", -1, 7, "xxx"}));
  EXPECT_EQ(*Ask<int64_t>([&](auto answer) { client_->TargetSize("g", answer); }), 42);
  EXPECT_EQ(*Ask<int64_t>([&](auto answer) { client_->TargetSize("h", answer); }), -1);
  EXPECT_EQ(*Ask<std::string>([&](auto answer) { client_->GpuLabel(answer); }), "cloud/gpu");
  using State = hook::InstanceState;
  const auto nodes =
      Ask<std::vector<hook::CloudInstance>>([&](auto answer) { client_->Nodes("g", answer); });
  EXPECT_THAT(
      *nodes,
      ElementsAre(hook::CloudInstance{"i-0"}, hook::CloudInstance{"i-1", State::kRunning},
                  hook::CloudInstance{"i-2", State::kCreating, "E1", "no stock", 1},
                  hook::CloudInstance{"i-3", State::kDeleting}, hook::CloudInstance{"i-4"}));
}

TEST_F(ExternalClientTest, Writes) {
  Connect(Serve());
  EXPECT_TRUE(Tell([&](auto done) { client_->IncreaseSize("g", {3}, done); }).ok());
  EXPECT_TRUE(Tell([&](auto done) { client_->DecreaseTargetSize("g", 2, done); }).ok());
  const hook::CloudNode node = {"aws:///z/i-1", "n1", {{"a", "b"}}, {{"c", "d"}}};
  EXPECT_TRUE(
      Tell([&](auto done) { client_->DeleteNodes("g", {node, {"i-2", "n2"}}, done); }).ok());
  EXPECT_TRUE(Tell([&](auto done) { client_->Cleanup(done); }).ok());
  EXPECT_THAT(
      service_.notes(),
      ElementsAre("increase delta: 3 id: \"g\"", "decrease delta: -2 id: \"g\"",
                  "delete nodes { provider_id: \"aws:///z/i-1\" name: \"n1\" labels { key: \"a\" "
                  "value: \"b\" } annotations { key: \"c\" value: \"d\" } } nodes { provider_id: "
                  "\"i-2\" name: \"n2\" } id: \"g\"",
                  "Cleanup"));
}

TEST_F(ExternalClientTest, TemplatesOfNewAndOldServers) {
  Connect(Serve());
  for (const char* group : {"new", "old", "both"}) {
    const auto node = Ask<model::Node>([&](auto answer) { client_->TemplateNode(group, answer); });
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_EQ(node->meta.name, "template");
    EXPECT_EQ(node->meta.labels.Get("tier"), "fast");
    EXPECT_EQ(node->allocatable, (model::ResourceList{{"cpu", 3920}, {"nvidia.com/gpu", 2000}}));
    EXPECT_THAT(node->taints, ElementsAre(model::Taint{"k", "", model::TaintEffect::kNoExecute}));
  }
  for (const char* group : {"none", "broken"}) {
    const auto node = Ask<model::Node>([&](auto answer) { client_->TemplateNode(group, answer); });
    EXPECT_TRUE(absl::IsInvalidArgument(node.status()));
    EXPECT_THAT(node.status().message(), HasSubstr("NodeGroupTemplateNodeInfo at 127.0.0.1:"));
  }
}

TEST_F(ExternalClientTest, PricesHaveTheTimesOfNewAndOldServers) {
  Connect(Serve());
  const hook::CloudNode node = {"", "template", {{"a", "b"}}};
  EXPECT_EQ(*Ask<double>([&](auto answer) { client_->NodePrice(node, answer); }), 2.5);
  EXPECT_EQ(*Ask<double>([&](auto answer) { client_->PodPrice("pod", answer); }), 0.5);
  EXPECT_THAT(service_.notes(),
              ElementsAre("name: \"template\" labels { key: \"a\" value: \"b\" }"));
}

TEST_F(ExternalClientTest, OptionsOfNewAndOldServers) {
  Connect(Serve());
  GroupOptions options;
  options.scale_down_utilization_threshold = 0.5;
  options.scale_down_unneeded = absl::Minutes(10) + absl::Milliseconds(5);
  options.scale_down_unready = absl::Minutes(20);
  options.max_node_provision = absl::Minutes(15);
  options.max_node_startup = absl::Minutes(16);
  options.zero_or_max_node_scaling = true;
  for (const char* group : {"new", "old"}) {
    const auto said =
        Ask<GroupOptions>([&](auto answer) { client_->Options(group, options, answer); });
    EXPECT_TRUE(said.ok() && *said == options) << group;
  }
}

TEST_F(ExternalClientTest, TheGroupOfANode) {
  Connect(Serve());
  const auto group = [&](const char* name) {
    return Ask<hook::CloudGroup>([&](auto answer) { client_->GroupForNode({"", name}, answer); })
        ->id;
  };
  EXPECT_EQ(group("n1"), "g");
  EXPECT_EQ(group("n2"), "");
}

TEST_F(ExternalClientTest, ErrorsHaveCallAndAddress) {
  const std::string address = Serve();
  Connect(address);
  service_.refusal = {grpc::StatusCode::PERMISSION_DENIED, "no rights"};
  EXPECT_EQ(Refresh(),
            absl::PermissionDeniedError(absl::StrCat("Refresh at ", address, ": no rights")));
  service_.refusal = {grpc::StatusCode::UNKNOWN, ""};
  EXPECT_EQ(Refresh().code(), absl::StatusCode::kUnknown);
  EXPECT_TRUE(absl::IsUnimplemented(
      Ask<std::vector<std::string>>([&](auto answer) { client_->GpuTypes(answer); }).status()));
  server_->Shutdown();
  const absl::Status status = Refresh();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("Refresh at ", address)));
}

TEST_F(ExternalClientTest, EachCallHasItsDeadline) {
  service_.hangs = true;
  const std::string address = Serve();
  Connect(address, absl::Milliseconds(200));
  EXPECT_EQ(Refresh(), absl::DeadlineExceededError(
                           absl::StrCat("Refresh at ", address, ": no answer within 200ms")));
}

TEST_F(ExternalClientTest, AnAnswerThatIsTooLarge) {
  service_.debug_bytes = kMostAnswerBytes;
  Connect(Serve());
  const auto groups =
      Ask<std::vector<hook::CloudGroup>>([&](auto answer) { client_->Groups(answer); });
  EXPECT_TRUE(absl::IsResourceExhausted(groups.status())) << groups.status();
  service_.debug_bytes = kMostAnswerBytes / 2 - 100;
  EXPECT_TRUE(
      Ask<std::vector<hook::CloudGroup>>([&](auto answer) { client_->Groups(answer); }).ok());
}

TEST_F(ExternalClientTest, TheEndCancelsWhatIsOpenAndPostsItsAnswer) {
  service_.hangs = true;
  Connect(Serve());
  absl::Status status;
  client_->Refresh([&](const absl::Status& answer) { status = answer; });
  EXPECT_EQ(client_->open(), 1u);
  service_.asked_to_hang.WaitForNotification();
  client_.reset();
  ASSERT_EQ(posts_, 1) << "the end waits for it";
  EXPECT_NE(last_poster_, std::this_thread::get_id());
  EXPECT_TRUE(status.ok()) << "the owner's thread has not run it";
  RunOne();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(ExternalClientTest, Tls) {
  const kube::TestAuthority authority("good");
  const kube::TestAuthority other("other");
  const kube::TlsIdentity own = authority.Issue("server", "DNS:cloud.example.com");
  const kube::TlsIdentity mine = authority.Issue("fairlead", "DNS:fairlead");
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = authority.certificate_pem();
  ssl.pem_key_cert_pairs.push_back({own.key_pem, own.certificate_pem});
  ClientOptions options;
  options.address = Serve(grpc::SslServerCredentials(ssl));
  options.ca_file = File("ca.pem", authority.certificate_pem());
  options.cert_file = File("cert.pem", mine.certificate_pem);
  options.key_file = File("key.pem", mine.key_pem);
  options.server_name = "cloud.example.com";
  options.timeout = absl::Seconds(20);
  Connect(options);
  EXPECT_TRUE(Refresh().ok());

  ClientOptions wrong = options;
  wrong.server_name = "";  // the certificate is not one of 127.0.0.1
  Connect(wrong);
  EXPECT_TRUE(absl::IsUnavailable(Refresh()));
  wrong = options;
  wrong.ca_file = File("other.pem", other.certificate_pem());
  Connect(wrong);
  EXPECT_TRUE(absl::IsUnavailable(Refresh()));
  wrong = options;
  wrong.cert_file = wrong.key_file = "";
  Connect(wrong);
  EXPECT_TRUE(absl::IsUnavailable(Refresh()));
}

TEST(ExternalClientMakeTest, WrongOptions) {
  const auto error = [](const ClientOptions& options) {
    return std::string(Client::Make(options, nullptr).status().message());
  };
  ClientOptions options;
  EXPECT_EQ(error(options), "address: must be set");
  options.address = "h:1";
  options.timeout = absl::ZeroDuration();
  EXPECT_EQ(error(options), "timeout: must be above 0, and at most 1h");
  options.timeout = absl::Seconds(1);
  options.cert_file = "/no/cert";
  EXPECT_THAT(error(options), HasSubstr("keyFile: must be set"));
  options.key_file = "/no/key";
  EXPECT_EQ(error(options), "caFile: must be set, because certFile is");
  options.ca_file = "/no/ca";
  EXPECT_EQ(error(options), "caFile: /no/ca cannot be read");
}

}  // namespace
}  // namespace fairlead::external_grpc
