#include "kube/credentials/credentials.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "kube/credentials/exec_credential.h"

namespace fairlead::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Result = absl::StatusOr<CredentialsPtr>;

std::future<Result> StartLoad(CredentialSource& source, CredentialsPtr rejected = nullptr) {
  auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> future = promise->get_future();
  source.Load(std::move(rejected),
              [promise](Result result) { promise->set_value(std::move(result)); });
  return future;
}

Result Load(CredentialSource& source, CredentialsPtr rejected = nullptr) {
  return StartLoad(source, std::move(rejected)).get();
}

// Answers in the order of a script; a gate may delay it.
class ScriptedLoader final : public CredentialLoader {
 public:
  absl::StatusOr<LoadedCredentials> Load() override {
    ++loads;
    if (entered != nullptr) entered->set_value();
    if (gate != nullptr) gate->get_future().wait();
    if (answers.empty()) return absl::InternalError("the script is over");
    auto answer = answers.front();
    answers.pop_front();
    return answer;
  }
  void Abort() override {
    if (gate != nullptr) gate->set_value();
  }

  std::deque<absl::StatusOr<LoadedCredentials>> answers;
  std::atomic<int> loads = 0;
  std::unique_ptr<std::promise<void>> entered, gate;
};

LoadedCredentials Token(const std::string& token, absl::Time expires = absl::InfiniteFuture(),
                        absl::Duration recheck_after = absl::InfiniteDuration()) {
  LoadedCredentials loaded;
  loaded.credentials.authorization = token;
  loaded.expires = expires;
  loaded.recheck_after = recheck_after;
  return loaded;
}

class CachedCredentialsTest : public ::testing::Test {
 protected:
  CachedCredentialsTest() {
    auto loader = std::make_unique<ScriptedLoader>();
    loader_ = loader.get();
    source_ = std::make_unique<CachedCredentials>(std::move(loader), clock_);
  }
  std::string Current() const {
    const CredentialsPtr current = source_->Current();
    return current == nullptr ? "none" : current->authorization;
  }

  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  ScriptedLoader* loader_;
  std::unique_ptr<CachedCredentials> source_;
};

TEST_F(CachedCredentialsTest, LoadsOnceAndKeeps) {
  loader_->answers = {Token("a")};
  EXPECT_EQ(Current(), "none");
  EXPECT_EQ((*Load(*source_))->authorization, "a");
  clock_.Advance(absl::Hours(1000));
  EXPECT_EQ(Current(), "a");
  EXPECT_EQ((*Load(*source_))->authorization, "a");
  EXPECT_EQ(loader_->loads, 1);
}

TEST_F(CachedCredentialsTest, ExpiryIsAnticipated) {
  loader_->answers = {Token("a", clock_.Now() + absl::Hours(1)),
                      Token("b", clock_.Now() + absl::Hours(1) + absl::Seconds(50))};
  ASSERT_TRUE(Load(*source_).ok());
  clock_.Advance(absl::Hours(1) - absl::Seconds(11));
  EXPECT_EQ(Current(), "a");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Current(), "none");
  EXPECT_EQ((*Load(*source_))->authorization, "b");
  // A minute to live: the margin is a tenth of that.
  clock_.Advance(absl::Seconds(53));
  EXPECT_EQ(Current(), "b");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Current(), "none");
}

TEST_F(CachedCredentialsTest, CredentialsThatComeExpiredAreAFailure) {
  loader_->answers = {Token("a", clock_.Now()), Token("b")};
  EXPECT_TRUE(absl::IsUnauthenticated(Load(*source_).status()));
  EXPECT_FALSE(Load(*source_).ok());
  EXPECT_EQ(loader_->loads, 1);
}

TEST_F(CachedCredentialsTest, AFailureStandsForAWhile) {
  loader_->answers = {absl::UnavailableError("no"), Token("a")};
  EXPECT_TRUE(absl::IsUnavailable(Load(*source_).status()));
  clock_.Advance(CachedCredentials::kRetryInterval - absl::Nanoseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(Load(*source_).status()));
  EXPECT_EQ(loader_->loads, 1);
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ((*Load(*source_))->authorization, "a");
}

TEST_F(CachedCredentialsTest, AFailedRecheckKeepsTheOld) {
  loader_->answers = {Token("a", absl::InfiniteFuture(), absl::Minutes(1)),
                      absl::UnavailableError("no"),
                      Token("b", absl::InfiniteFuture(), absl::Minutes(1))};
  ASSERT_TRUE(Load(*source_).ok());
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Current(), "none");
  EXPECT_EQ((*Load(*source_))->authorization, "a");
  EXPECT_EQ(Current(), "a");
  EXPECT_EQ(loader_->loads, 2);
  clock_.Advance(CachedCredentials::kRetryInterval);
  EXPECT_EQ((*Load(*source_))->authorization, "b");
}

TEST_F(CachedCredentialsTest, RejectedCredentialsAreLoadedAgainButNotForEveryCall) {
  loader_->answers = {Token("a"), Token("a"), Token("b")};
  const CredentialsPtr first = *Load(*source_);
  // Equal content is the identical object: nothing is newer.
  EXPECT_EQ(*Load(*source_, first), first);
  EXPECT_EQ(loader_->loads, 2);
  EXPECT_EQ(*Load(*source_, first), first);
  EXPECT_EQ(loader_->loads, 2);
  clock_.Advance(CachedCredentials::kRetryInterval);
  EXPECT_EQ((*Load(*source_, first))->authorization, "b");
  // Another call was rejected with the old credentials and gets the current ones.
  EXPECT_EQ((*Load(*source_, first))->authorization, "b");
  EXPECT_EQ(loader_->loads, 3);
}

TEST_F(CachedCredentialsTest, ManyCallersShareOneLoad) {
  loader_->answers = {Token("a"), Token("b")};
  const CredentialsPtr first = *Load(*source_);
  loader_->entered = std::make_unique<std::promise<void>>();
  loader_->gate = std::make_unique<std::promise<void>>();
  std::vector<std::future<Result>> waiting;
  waiting.push_back(StartLoad(*source_, first));
  loader_->entered->get_future().wait();
  // During a load, a rejected caller joins it and does not get the rejected credentials again.
  waiting.push_back(StartLoad(*source_, first));
  loader_->gate->set_value();
  EXPECT_EQ((*waiting[0].get())->authorization, "b");
  EXPECT_EQ((*waiting[1].get())->authorization, "b");
  EXPECT_EQ(loader_->loads, 2);
  loader_->gate.reset();
}

TEST_F(CachedCredentialsTest, DestructionCancelsRequestsThatWait) {
  loader_->entered = std::make_unique<std::promise<void>>();
  loader_->gate = std::make_unique<std::promise<void>>();
  std::future<Result> waiting = StartLoad(*source_);
  loader_->entered->get_future().wait();
  source_.reset();
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
}

// ---- files and plugins -------------------------------------------------------------------------

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "credentials-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name)) << content;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }
  // A plugin in sh.
  ExecConfig Plugin(const std::string& script) const {
    const std::string path = Write("plugin.sh", "#!/bin/sh\n" + script + "\n");
    chmod(path.c_str(), 0700);
    ExecConfig exec;
    exec.api_version = "client.authentication.k8s.io/v1";
    exec.command = path;
    return exec;
  }

  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::string folder_;
};

TEST_F(FilesTest, TokenFilesAreFollowedThroughTheKubeletsSymbolicLink) {
  Write("v1", "one\n");
  Write("v2", "two\n");
  std::filesystem::create_symlink("v1", Path("token"));
  ClientConfig config;
  config.user.token_file = Path("token");
  const auto source = NewCredentialSource(config, clock_);
  EXPECT_EQ((*Load(*source))->authorization, "Bearer one");

  std::filesystem::create_symlink("v2", Path("next"));
  std::filesystem::rename(Path("next"), Path("token"));
  clock_.Advance(FileCredentialLoader::kRereadInterval - absl::Nanoseconds(1));
  EXPECT_EQ(source->Current()->authorization, "Bearer one");
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(source->Current(), nullptr);
  EXPECT_EQ((*Load(*source))->authorization, "Bearer two");

  // Unreadable for a while: the last token stays in use.
  std::filesystem::remove(Path("token"));
  clock_.Advance(FileCredentialLoader::kRereadInterval);
  EXPECT_EQ((*Load(*source))->authorization, "Bearer two");
}

TEST_F(FilesTest, CertificateAndBundleFilesRotate) {
  ClientConfig config;
  config.server.ca_file = Write("ca", "CA1");
  config.user.certificate_file = Write("crt", "C1");
  config.user.key_file = Write("key", "K1");
  const auto source = NewCredentialSource(config, clock_);
  const CredentialsPtr first = *Load(*source);
  EXPECT_EQ(first->ca_pem, "CA1");
  EXPECT_EQ(first->certificate_pem, "C1");
  EXPECT_EQ(first->key_pem, "K1");
  EXPECT_EQ(first->authorization, "");
  Write("crt", "C2");
  clock_.Advance(FileCredentialLoader::kRereadInterval);
  EXPECT_EQ((*Load(*source))->certificate_pem, "C2");
}

TEST_F(FilesTest, InlineValuesNeedNoLoad) {
  ClientConfig config;
  config.user.username = "Aladdin";
  config.user.password = "open sesame";  // RFC 7617, section 2
  EXPECT_EQ(NewCredentialSource(config, clock_)->Current()->authorization,
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  config.user.username.clear();
  config.user.token = "t";
  config.user.certificate_pem = "C";
  config.user.key_pem = "K";
  const CredentialsPtr current = NewCredentialSource(config, clock_)->Current();
  EXPECT_EQ(current->authorization, "Bearer t");
  EXPECT_EQ(current->certificate_pem, "C");
}

TEST_F(FilesTest, BadTokensAreNamedButNotQuoted) {
  for (const std::string& content : {std::string("hunter2\r\nX-Evil: 1"), std::string("hunter2 x"),
                                     std::string("hunter2\0", 8), std::string("hunter2\xff")}) {
    ClientConfig config;
    config.user.token_file = Write("token", content);
    const absl::Status status = Load(*NewCredentialSource(config, clock_)).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(config.user.token_file), Not(HasSubstr("hunter2"))));
  }
  for (const char* content : {"", " \n"}) {
    ClientConfig config;
    config.user.token_file = Write("token", content);
    EXPECT_THAT(std::string(Load(*NewCredentialSource(config, clock_)).status().message()),
                HasSubstr("is empty"));
  }
  ClientConfig config;
  config.user.token_file = Path("none");
  EXPECT_THAT(std::string(Load(*NewCredentialSource(config, clock_)).status().message()),
              HasSubstr(Path("none")));
  config.user.token = "fallback";
  EXPECT_EQ((*Load(*NewCredentialSource(config, clock_)))->authorization, "Bearer fallback");
}

constexpr char kGood[] =
    R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
    R"("status":{"token":"secret","expirationTimestamp":"2023-11-14T23:13:20Z"}}')";

TEST_F(FilesTest, PluginGivesATokenUntilItExpires) {
  ClientConfig config;
  config.user.exec = Plugin(absl::StrCat("echo run >> ", Path("runs"), "; ", kGood));
  const auto source = NewCredentialSource(config, clock_);
  EXPECT_EQ((*Load(*source))->authorization, "Bearer secret");
  // It expires an hour after the clock's start.
  clock_.Advance(absl::Minutes(59));
  EXPECT_NE(source->Current(), nullptr);
  EXPECT_EQ(Read("runs"), "run\n");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(source->Current(), nullptr);
  EXPECT_FALSE(Load(*source).ok());  // the script gives the same expired one
  EXPECT_EQ(Read("runs"), "run\nrun\n");
}

TEST_F(FilesTest, PluginSeesItsEnvironmentAndNothingElse) {
  setenv("FAIRLEAD_TEST_PRIVATE", "hunter2", 1);
  setenv("AWS_REGION", "here", 1);
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as in a library
  ExecConfig exec = Plugin(absl::StrCat("env > ", Path("env"), "; echo \"$1|$#\" > ", Path("args"),
                                        "; ls /proc/self/fd > ", Path("fds"), "; cat > ",
                                        Path("stdin"), "; ", kGood));
  exec.args = {"two words", "$HOME"};
  exec.env = {{"OWN", "value"}, {"AWS_REGION", "there"}};
  ExecCredentialLoader loader(exec, ServerConfig());
  EXPECT_TRUE(loader.Load().ok());
  close(leak);
  const std::string env = Read("env");
  EXPECT_THAT(env, AllOf(HasSubstr("OWN=value\n"), HasSubstr("AWS_REGION=there\n"),
                         HasSubstr("PATH="), Not(HasSubstr("here\nAWS")), Not(HasSubstr("hunter2")),
                         Not(HasSubstr("AWS_REGION=here"))));
  EXPECT_THAT(env, HasSubstr("KUBERNETES_EXEC_INFO={\"apiVersion\":"
                             "\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
                             "\"spec\":{\"interactive\":false}}\n"));
  EXPECT_EQ(Read("args"), "two words|2\n");
  EXPECT_EQ(Read("stdin"), "");
  // Its own three, and the one that ls opens to read the folder.
  EXPECT_EQ(Read("fds"), "0\n1\n2\n3\n");
  unsetenv("FAIRLEAD_TEST_PRIVATE");
  unsetenv("AWS_REGION");
}

TEST_F(FilesTest, FailingPluginsAreNamedAndNotQuoted) {
  const struct {
    std::string script;
    const char* message;
  } cases[] = {
      {"echo hunter2; exit 3", "exit code 3"},
      {"kill -9 $$", "signal 9"},
      {"echo hunter2", "no JSON object"},
      {"echo '[\"hunter2\"]'", "no JSON object"},
      {"true", "no JSON object"},
      {"echo '{\"kind\":\"hunter2\"}'", "field kind"},
      {"head -c 2000000 /dev/zero", "larger than 1 MiB"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.script);
    const ExecConfig exec = Plugin(c.script);
    const auto loaded = ExecCredentialLoader(exec, ServerConfig()).Load();
    EXPECT_TRUE(absl::IsUnauthenticated(loaded.status())) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()),
                AllOf(HasSubstr(exec.command), HasSubstr(c.message), Not(HasSubstr("hunter2"))));
  }
}

TEST_F(FilesTest, AMissingPluginGivesItsHint) {
  ExecConfig exec;
  exec.command = Path("none");
  exec.install_hint = "Install it from the shop.";
  const auto loaded = ExecCredentialLoader(exec, ServerConfig()).Load();
  EXPECT_TRUE(absl::IsUnauthenticated(loaded.status()));
  EXPECT_THAT(std::string(loaded.status().message()),
              AllOf(HasSubstr(exec.command), HasSubstr(exec.install_hint)));
}

// The plugin and its child write to a pipe of ours; once both are dead, it is at its end.
TEST_F(FilesTest, ASlowPluginIsKilledWithItsChildren) {
  ASSERT_EQ(mkfifo(Path("alive").c_str(), 0600), 0);
  const ExecConfig exec =
      Plugin(absl::StrCat("exec 7>", Path("alive"), "; sleep 1000 & sleep 1000; ", kGood));
  std::future<absl::StatusOr<LoadedCredentials>> loaded = std::async(std::launch::async, [&exec] {
    return ExecCredentialLoader(exec, ServerConfig(), absl::Milliseconds(300)).Load();
  });
  const int fd = open(Path("alive").c_str(), O_RDONLY);  // waits for the plugin to open its side
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 0);
  close(fd);
  const absl::Status status = loaded.get().status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 300ms"));
}

TEST_F(FilesTest, APluginThatLeavesAChildBehindIsNotWaitedFor) {
  const ExecConfig exec = Plugin(absl::StrCat("sleep 1000 & echo $! > ", Path("pid"), "; ", kGood));
  EXPECT_TRUE(ExecCredentialLoader(exec, ServerConfig()).Load().ok());
  kill(std::atoi(Read("pid").c_str()), SIGKILL);
}

TEST_F(FilesTest, DestructionEndsARunningPlugin) {
  ASSERT_EQ(mkfifo(Path("alive").c_str(), 0600), 0);
  ClientConfig config;
  config.user.exec = Plugin(absl::StrCat("exec 7>", Path("alive"), "; sleep 1000"));
  auto source = NewCredentialSource(config, clock_);
  std::future<Result> waiting = StartLoad(*source);
  const int fd = open(Path("alive").c_str(), O_RDONLY);
  source.reset();
  EXPECT_TRUE(absl::IsCancelled(waiting.get().status()));
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 0);
  close(fd);
}

TEST_F(FilesTest, PluginAndBundleFileTogether) {
  ClientConfig config;
  config.server.ca_file = Write("ca", "CA");
  config.user.exec = Plugin(kGood);
  const CredentialsPtr loaded = *Load(*NewCredentialSource(config, clock_));
  EXPECT_EQ(loaded->ca_pem, "CA");
  EXPECT_EQ(loaded->authorization, "Bearer secret");
}

TEST(ParseExecCredentialTest, TakesTokensAndCertificates) {
  const auto parse = [](const std::string& status) {
    return ParseExecCredential(
        absl::StrCat(R"({"apiVersion":"x/v1","kind":"ExecCredential","status":)", status, "}"),
        "x/v1");
  };
  auto loaded = parse(R"({"token":"t"})");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->credentials.authorization, "Bearer t");
  EXPECT_EQ(loaded->expires, absl::InfiniteFuture());
  loaded = parse(R"({"clientCertificateData":"C\nX","clientKeyData":"K",)"
                 R"("expirationTimestamp":"2026-01-02T03:04:05+01:00"})");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->credentials.certificate_pem, "C\nX");
  EXPECT_EQ(loaded->credentials.authorization, "");
  EXPECT_EQ(absl::FormatTime(loaded->expires, absl::UTCTimeZone()), "2026-01-02T02:04:05+00:00");

  for (const char* bad :
       {"{}", "7", "null", R"({"token":7})", R"({"clientCertificateData":"hunter2"})",
        R"({"clientKeyData":"hunter2"})", R"({"token":"hunter2\nx"})",
        R"({"token":"t","expirationTimestamp":"hunter2"})"}) {
    SCOPED_TRACE(bad);
    const absl::Status status = parse(bad).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter2")));
  }
  EXPECT_THAT(
      std::string(ParseExecCredential(
                      R"({"apiVersion":"x/v2","kind":"ExecCredential","status":{}})", "x/v1")
                      .status()
                      .message()),
      HasSubstr("field apiVersion is not x/v1"));
}

TEST(ExecInfoTest, GivesTheClusterOnRequest) {
  ExecConfig exec;
  exec.api_version = "v";
  exec.provide_cluster_info = true;
  ServerConfig server;
  server.url = "https://s";
  server.ca_pem = "CA";
  server.tls_server_name = "quote\"back\\slash\n";
  server.insecure_skip_tls_verify = true;
  EXPECT_EQ(ExecInfo(exec, server),
            R"({"apiVersion":"v","kind":"ExecCredential","spec":{"interactive":false,)"
            R"("cluster":{"server":"https://s","tls-server-name":"quote\"back\\slash\n",)"
            R"("insecure-skip-tls-verify":true,"certificate-authority-data":"Q0E="}}})");
}

}  // namespace
}  // namespace fairlead::kube
