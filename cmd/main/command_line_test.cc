#include "cmd/main/command_line.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Refuses every node, and has no args.
class Closed final : public framework::FilterPlugin {
 public:
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args) {
    if (!args.empty()) return absl::InvalidArgumentError("args: there are none");
    return std::make_unique<Closed>();
  }
  [[nodiscard]] absl::string_view Name() const override { return "Closed"; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  bool Filter(const framework::Context&, const state::NodeInfo&,
              framework::Status*) const override {
    return false;
  }
};

struct Result {
  int code;
  std::string out, errors;
};

Result Call(std::vector<std::string> words, const std::vector<framework::NamedPlugin>& own = {}) {
  words.insert(words.begin(), "fairlead");
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = Main(static_cast<int>(argv.size()), argv.data(), own);
  Result result{code, ::testing::internal::GetCapturedStdout(), {}};
  result.errors = ::testing::internal::GetCapturedStderr();
  return result;
}

std::string ConfigurationWith(const std::string& plugin) {
  std::string path = ::testing::TempDir() + "fairlead_main_" + plugin + ".yaml";
  std::ofstream(path) << "apiVersion: kubescheduler.config.k8s.io/v1\n"
                         "kind: KubeSchedulerConfiguration\n"
                         "profiles:\n"
                         "- schedulerName: fairlead\n"
                         "  plugins: {filter: {enabled: [{name: "
                      << plugin << "}]}}\n";
  return path;
}

TEST(MainTest, ATakenNameEndsTheProgramBeforeItsCommand) {
  const Result result = Call({"version"}, {{"NodeName", Closed::Make}});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.errors, HasSubstr("fairlead: plugin NodeName: kube-scheduler has a plugin"));
  EXPECT_EQ(Call({"version"}, {{"Closed", Closed::Make}}).code, 0);
}

// Each command that reads a configuration finds a mistake in it before it contacts a cluster: what
// it says of two files tells whether it knows the plugin.
TEST(MainTest, EveryCommandKnowsThePluginsOfItsProgram) {
  const std::string known = ConfigurationWith("Closed"), unknown = ConfigurationWith("Other");
  const std::vector<std::vector<std::string>> commands = {{"run"},
                                                          {"explain", "pod/x"},
                                                          {"queues"},
                                                          {"nodes"},
                                                          {"drain-plan", "n"},
                                                          {"what-if", "--delete", "Queue/q"},
                                                          {"simulate", "/nonesuch"}};
  for (std::vector<std::string> words : commands) {
    SCOPED_TRACE(words[0]);
    words.insert(words.end(), {"--config", unknown});
    if (words[0] != "simulate") words.insert(words.end(), {"--kubeconfig", "/nonesuch"});
    Result result = Call(words, {{"Closed", Closed::Make}});
    EXPECT_NE(result.code, 0);
    EXPECT_THAT(result.errors, AllOf(HasSubstr("\"Other\" is not a plugin of Fairlead; known: "),
                                     HasSubstr("Closed, DefaultBinder")));
    *std::find(words.begin(), words.end(), unknown) = known;
    result = Call(words, {{"Closed", Closed::Make}});
    EXPECT_NE(result.code, 0);
    EXPECT_THAT(result.errors, HasSubstr("/nonesuch"));
    EXPECT_THAT(Call(words).errors, HasSubstr("\"Closed\" is not a plugin of Fairlead"));
  }
}

// The kubeconfig does not exist either: what is wrong with the change is found before it is read.
TEST(MainTest, AWrongChangeIsFoundBeforeAClusterIsContacted) {
  const auto errors_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), "what-if");
    words.insert(words.end(), {"--kubeconfig", "/nokubeconfig"});
    const Result result = Call(words);
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.errors, ::testing::Not(HasSubstr("/nokubeconfig")));
    return result.errors;
  };
  EXPECT_THAT(errors_of({}), HasSubstr("nothing is changed"));
  EXPECT_THAT(errors_of({"-f", "/nonesuch.yaml"}), HasSubstr("/nonesuch.yaml: No such file"));
  EXPECT_THAT(errors_of({"--delete", "Qeue/a"}), HasSubstr("--delete Qeue/a"));
  EXPECT_THAT(errors_of({"--with-catalog", "/nonesuch.yaml"}), HasSubstr("/nonesuch.yaml"));
  EXPECT_THAT(errors_of({"--delete", "Queue/a", "--for", "1"}), HasSubstr("--for 1: must be"));
  EXPECT_THAT(Call({"drain-plan"}).errors, HasSubstr("nodes is required"));
}

}  // namespace
}  // namespace fairlead::cmd
