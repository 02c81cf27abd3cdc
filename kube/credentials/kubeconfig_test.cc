#include "kube/credentials/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class KubeconfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "kubeconfig-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }

  std::string folder_;
};

// A whole kubeconfig of one context with the given fields of cluster and user, flow style.
std::string Config(const std::string& cluster, const std::string& user) {
  return absl::Substitute(
      "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
      "contexts: [{name: main, context: {cluster: c, user: u, namespace: team}}]\n"
      "clusters: [{name: c, cluster: {$0}}]\nusers: [{name: u, user: {$1}}]\n",
      cluster, user);
}

TEST_F(KubeconfigTest, ReadsClusterAndUser) {
  const std::string path =
      Write("config", Config("server: 'https://10.0.0.1:6443/', tls-server-name: kubernetes, "
                             "certificate-authority-data: Q0E=, certificate-authority: ignored.crt",
                             "client-certificate-data: Q0VSVA==, client-key-data: S0VZ, "
                             "token: abc"));
  const auto config = LoadKubeconfig({path});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.url, "https://10.0.0.1:6443");
  EXPECT_EQ(config->server.ca_pem, "CA");
  EXPECT_EQ(config->server.ca_file, "");
  EXPECT_EQ(config->server.tls_server_name, "kubernetes");
  EXPECT_FALSE(config->server.insecure_skip_tls_verify);
  EXPECT_EQ(config->user.certificate_pem, "CERT");
  EXPECT_EQ(config->user.key_pem, "KEY");
  EXPECT_EQ(config->user.token, "abc");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_THAT(config->origin, HasSubstr("main"));
}

TEST_F(KubeconfigTest, PathsAreRelativeToTheirFile) {
  const std::string path =
      Write("sub/config", Config("server: 'https://s', certificate-authority: ca.crt",
                                 "client-certificate: ../c.crt, client-key: /abs/c.key, "
                                 "tokenFile: token"));
  const auto config = LoadKubeconfig({path});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.ca_file, absl::StrCat(folder_, "/sub/ca.crt"));
  EXPECT_EQ(config->user.certificate_file, absl::StrCat(folder_, "/sub/../c.crt"));
  EXPECT_EQ(config->user.key_file, "/abs/c.key");
  EXPECT_EQ(config->user.token_file, absl::StrCat(folder_, "/sub/token"));
}

TEST_F(KubeconfigTest, ReadsExecPlugin) {
  const std::string path =
      Write("config",
            Config("server: 'https://s'",
                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, "
                   "args: [--region, '7'], env: [{name: A, value: '1'}, {name: B, value: ''}], "
                   "installHint: get it, provideClusterInfo: true, interactiveMode: IfAvailable}"));
  const auto config = LoadKubeconfig({path});
  ASSERT_TRUE(config.ok()) << config.status();
  const ExecConfig& exec = config->user.exec.value();
  EXPECT_EQ(exec.command, absl::StrCat(folder_, "/./bin/login"));
  EXPECT_THAT(exec.args, ElementsAre("--region", "7"));
  EXPECT_THAT(exec.env, ElementsAre(Pair("A", "1"), Pair("B", "")));
  EXPECT_EQ(exec.install_hint, "get it");
  EXPECT_TRUE(exec.provide_cluster_info);
}

TEST_F(KubeconfigTest, ABareCommandIsLeftToPath) {
  const std::string path = Write(
      "config", Config("server: 'https://s'",
                       "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}"));
  EXPECT_EQ(LoadKubeconfig({path})->user.exec->command, "aws");
}

TEST_F(KubeconfigTest, ATokenMakesThePluginUnnecessary) {
  const std::string path =
      Write("config", Config("server: 'https://s'",
                             "token: t, exec: {apiVersion: client.authentication.k8s.io/v1, "
                             "command: aws}"));
  EXPECT_FALSE(LoadKubeconfig({path})->user.exec.has_value());
}

TEST_F(KubeconfigTest, FirstFileWinsEntryByEntry) {
  const std::string first =
      Write("a", "current-context: x\nusers: [{name: u, user: {token: first}}]\n");
  const std::string second = Write("b",
                                   "current-context: y\nusers: [{name: u, user: {token: second}}]\n"
                                   "clusters: [{name: c, cluster: {server: 'https://two'}}]\n"
                                   "contexts: [{name: x, context: {cluster: c, user: u}},"
                                   " {name: y, context: {cluster: c}}]\n");
  const std::string empty = Write("e", "");
  const std::string missing = absl::StrCat(folder_, "/none");
  const auto config = LoadKubeconfig({missing, empty, first, second});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->user.token, "first");
  EXPECT_EQ(config->server.url, "https://two");
  EXPECT_EQ(config->default_namespace, "default");
  // Another context by name, and one without a user.
  EXPECT_EQ(LoadKubeconfig({first, second}, "y")->user.token, "");
}

TEST_F(KubeconfigTest, MissingFilesAreAnErrorIfThereIsNoOther) {
  const auto config = LoadKubeconfig({absl::StrCat(folder_, "/none")});
  EXPECT_TRUE(absl::IsNotFound(config.status())) << config.status();
  EXPECT_THAT(config.status().message(), HasSubstr("/none"));
  EXPECT_FALSE(LoadKubeconfig({}).ok());
}

TEST_F(KubeconfigTest, RefusesWithFileEntryAndField) {
  struct Case {
    const char* cluster;
    const char* user;
    const char* entry;
    const char* field;
  };
  const std::string exec = "exec: {apiVersion: client.authentication.k8s.io/";
  const std::string always = exec + "v1, command: a, interactiveMode: Always}";
  const std::string alpha = exec + "v1alpha1, command: a}";
  const std::string no_command = exec + "v1}";
  const std::string bad_env = exec + "v1, command: a, env: [{name: 'hunter2=', value: hunter2}]}";
  const Case cases[] = {
      {"", "", "cluster \"c\"", "server"},
      {"server: 'ftp://s'", "", "cluster \"c\"", "server"},
      {"server: 'https://admin:hunter2@s'", "", "cluster \"c\"", "server"},
      {"server: 'https://'", "", "cluster \"c\"", "server"},
      {"server: [a]", "", "cluster \"c\"", "server"},
      {"server: 'https://s', proxy-url: 'http://u:hunter2@p'", "", "cluster \"c\"", "proxy-url"},
      {"server: 'https://s', certificate-authority-data: '!hunter2!'", "", "cluster \"c\"",
       "certificate-authority-data"},
      {"server: 'https://s', insecure-skip-tls-verify: maybe", "", "cluster \"c\"",
       "insecure-skip-tls-verify"},
      {"server: 'https://s', insecure-skip-tls-verify: true, certificate-authority: ca", "",
       "cluster \"c\"", "insecure-skip-tls-verify"},
      {"server: 'https://s'", "client-key-data: '!hunter2!'", "user \"u\"", "client-key-data"},
      {"server: 'https://s'", "client-certificate-data: QQ==", "user \"u\"", "client-key"},
      {"server: 'https://s'", "client-key: k", "user \"u\"", "client-certificate"},
      {"server: 'https://s'", "token: {hunter2: hunter2}", "user \"u\"", "token"},
      {"server: 'https://s'", "token: hunter2, username: x", "user \"u\"", "username"},
      {"server: 'https://s'", "password: hunter2", "user \"u\"", "password"},
      {"server: 'https://s'", "auth-provider: {name: gcp}", "user \"u\"", "auth-provider"},
      {"server: 'https://s'", "token: hunter2, as: root", "user \"u\"", "as"},
      {"server: 'https://s'", "as-groups: [system]", "user \"u\"", "as-groups"},
      {"server: 'https://s'", "exec: 7", "user \"u\"", "exec"},
      {"server: 'https://s'", always.c_str(), "user \"u\"", "interactiveMode"},
      {"server: 'https://s'", alpha.c_str(), "user \"u\"", "apiVersion"},
      {"server: 'https://s'", no_command.c_str(), "user \"u\"", "command"},
      {"server: 'https://s'", bad_env.c_str(), "user \"u\"", "env"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.cluster, " / ", c.user));
    const std::string path = Write("config", Config(c.cluster, c.user));
    const auto config = LoadKubeconfig({path});
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << config.status();
    const std::string message(config.status().message());
    EXPECT_THAT(message, HasSubstr(path));
    EXPECT_THAT(message, HasSubstr(c.entry));
    EXPECT_THAT(message, HasSubstr(absl::StrCat("field ", c.field, ":")));
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
}

TEST_F(KubeconfigTest, EmptyRefusedFieldsAreNone) {
  const std::string path =
      Write("config", Config("server: 'https://s', proxy-url: ''",
                             "token: t, as: '', as-groups: [], auth-provider: null, exec: null"));
  EXPECT_TRUE(LoadKubeconfig({path}).ok()) << LoadKubeconfig({path}).status();
}

TEST_F(KubeconfigTest, BrokenFilesAreRefused) {
  const struct {
    const char* content;
    const char* message;
  } cases[] = {
      {"{", ":1:"},
      {"users:\n- name: u\n  user:\n    token: *hunter2\n", ":4:"},
      {"a: b: hunter2", ":1:"},
      {"[1, 2]", "not a map"},
      {"just a string", "not a map"},
      {"kind: Pod", "field kind"},
      {"current-context: [x]", "field current-context"},
      {"kind: Config", "field current-context"},
      {"current-context: x", "no context \"x\""},
      {"current-context: x\ncontexts: {}", "field contexts"},
      {"current-context: x\ncontexts: [{nam: x}]", "has no name"},
      {"current-context: x\ncontexts: [{name: x}]", "field context"},
      {"current-context: x\ncontexts: [{name: x, context: {}}]", "field cluster"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", "no cluster \"c\""},
      {"current-context: x\ncontexts: [{name: x, context: {}}, {name: x, context: {}}]", "twice"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
       "clusters: [{name: c, cluster: {server: s}}]",
       "no user \"u\""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.content);
    const std::string path = Write("config", c.content);
    const auto config = LoadKubeconfig({path});
    ASSERT_FALSE(config.ok());
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(config.status().message()), Not(HasSubstr("hunter2")));
  }
}

// Every prefix of a good file either loads or is an error; none crashes or throws.
TEST_F(KubeconfigTest, TruncatedFilesNeverThrow) {
  const std::string whole = Config("server: 'https://s', certificate-authority-data: Q0E=",
                                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: "
                                   "a, args: [b], env: [{name: c}]}");
  int loaded = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    const auto config = LoadKubeconfig({Write("config", whole.substr(0, length))});
    if (config.ok()) ++loaded;
  }
  EXPECT_GE(loaded, 1);
  EXPECT_LE(loaded, 3);
}

Environment FakeEnvironment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](absl::string_view name) -> std::optional<std::string> {
    const auto it = variables.find(std::string(name));
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

TEST_F(KubeconfigTest, InClusterTakesTheServiceAccount) {
  const std::string account = "var/run/secrets/kubernetes.io/serviceaccount/";
  const auto environment =
      FakeEnvironment({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterConfig(environment, folder_).status()));
  Write(account + "ca.crt", "CA");
  Write(account + "token", "t");
  Write(account + "namespace", "kube-system\n");
  const auto config = InClusterConfig(environment, folder_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server.url, "https://[fd00::1]:443");
  EXPECT_EQ(config->server.ca_file, absl::StrCat(folder_, "/", account, "ca.crt"));
  EXPECT_EQ(config->user.token_file, absl::StrCat(folder_, "/", account, "token"));
  EXPECT_EQ(config->default_namespace, "kube-system");
  EXPECT_TRUE(absl::IsFailedPrecondition(InClusterConfig(FakeEnvironment({}), folder_).status()));
}

TEST_F(KubeconfigTest, SourcesInOrder) {
  const std::string a = Write("a", Config("server: 'https://explicit'", ""));
  const std::string b = Write("b", Config("server: 'https://list'", ""));
  Write(".kube/config", Config("server: 'https://home'", ""));
  const auto both = FakeEnvironment({{"KUBECONFIG", ":" + b + ":"}, {"HOME", folder_}});
  EXPECT_EQ(LoadClientConfig(a, "", both)->server.url, "https://explicit");
  EXPECT_EQ(LoadClientConfig("", "", both)->server.url, "https://list");
  EXPECT_EQ(LoadClientConfig("", "", FakeEnvironment({{"HOME", folder_}}))->server.url,
            "https://home");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(LoadClientConfig("", "", FakeEnvironment({}), folder_).status()));
}

}  // namespace
}  // namespace fairlead::kube
