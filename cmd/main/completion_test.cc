#include "cmd/main/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cmd/main/command_line.h"

namespace fairlead::cmd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Exit code and both streams of a command line of sh.
std::pair<int, std::string> Shell(const std::string& line) {
  FILE* pipe = popen(absl::StrCat("(", line, ") 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> part{};
  while (const size_t size = fread(part.data(), 1, part.size(), pipe))
    out.append(part.data(), size);
  return {pclose(pipe), out};
}

// The program's own script, in a file.
std::string ScriptFile(const std::string& shell) {
  std::vector<std::string> words = {"fairlead", "completion", shell};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Main(static_cast<int>(argv.size()), argv.data(), {}), 0);
  std::string path = absl::StrCat(::testing::TempDir(), "fairlead_completion.", shell);
  std::ofstream(path) << ::testing::internal::GetCapturedStdout();
  return path;
}

// What bash offers for the last word.
std::vector<std::string> Complete(const std::vector<std::string>& words) {
  const auto [code, out] = Shell(absl::StrCat(
      "bash -c 'source ", ScriptFile("bash"), "; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); ",
      "_fairlead; printf \"%s\\n\" \"${COMPREPLY[@]}\"' fairlead '", absl::StrJoin(words, "' '"),
      "'"));
  EXPECT_EQ(code, 0) << out;
  return absl::StrSplit(out, '\n', absl::SkipEmpty());
}

TEST(CompletionTest, BashCompletesCommandsFlagsAndValues) {
  EXPECT_THAT(Complete({"fairlead", "que"}), ElementsAre("queues"));
  EXPECT_THAT(Complete({"fairlead", ""}),
              IsSupersetOf({"run", "explain", "what-if", "drain-plan", "completion", "--version"}));
  EXPECT_THAT(Complete({"fairlead", "catalog", "im"}), ElementsAre("import"));
  EXPECT_THAT(Complete({"fairlead", "catalog", "import", "--gp"}), ElementsAre("--gpus-only"));
  EXPECT_THAT(Complete({"fairlead", "queues", "--"}), Not(Contains("--leader-elect")));
  EXPECT_THAT(Complete({"fairlead", "queues", "-o", "y"}), ElementsAre("yaml"));
  EXPECT_THAT(Complete({"fairlead", "simulate", "-o", ""}), ElementsAre("table", "json"));
  EXPECT_THAT(Complete({"fairlead", "nodes", "--output", "=", "j"}), ElementsAre("json"));
  EXPECT_THAT(Complete({"fairlead", "nodes", "--output", "="}),
              ElementsAre("table", "wide", "json", "yaml"));
  EXPECT_THAT(Complete({"fairlead", "queues", "--context", ""}), IsEmpty());
  EXPECT_THAT(Complete({"fairlead", "completion", ""}), IsSupersetOf({"bash", "zsh", "fish"}));
  EXPECT_THAT(Complete({"kubectl-fairlead", "drain"}), ElementsAre("drain-plan"));
}

TEST(CompletionTest, BashCompletesPathsAlsoWithSpaces) {
  const std::string folder = ::testing::TempDir() + "fairlead completion";
  ASSERT_EQ(
      Shell(absl::StrCat("mkdir -p '", folder, "/sub' && touch '", folder, "/file.yaml'")).first,
      0);
  EXPECT_THAT(Complete({"fairlead", "what-if", "-f", folder + "/"}),
              IsSupersetOf({folder + "/file.yaml", folder + "/sub"}));
  EXPECT_THAT(Complete({"fairlead", "simulate", folder + "/"}), ElementsAre(folder + "/sub"));
}

// zsh and fish are asked only where they are installed.
TEST(CompletionTest, EveryShellCanReadItsScript) {
  const auto [code, out] = Shell("bash -n " + ScriptFile("bash"));
  EXPECT_EQ(code, 0) << out;
  for (const char* shell : {"zsh", "fish"}) {
    const std::string file = ScriptFile(shell);
    if (Shell(absl::StrCat("command -v ", shell)).first != 0) continue;
    const auto [result, errors] = Shell(absl::StrCat(shell, " -n ", file));
    EXPECT_EQ(result, 0) << shell << ": " << errors;
  }
}

TEST(CompletionTest, AnotherShellIsAnError) {
  const auto script = CompletionScript("tcsh", {});
  EXPECT_TRUE(absl::IsInvalidArgument(script.status()));
  EXPECT_THAT(std::string(script.status().message()), HasSubstr("bash, zsh or fish"));
}

// A description may have any character.
TEST(CompletionTest, DescriptionsAreQuoted) {
  CommandDescription program{"fairlead", "", {}, "", {}};
  program.commands.push_back({"odd", "it's $(a) `b` \\ : \"c\"", {}, "", {}});
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string file = absl::StrCat(::testing::TempDir(), "fairlead_odd.", shell);
    std::ofstream(file) << *CompletionScript(shell, program);
    if (Shell(absl::StrCat("command -v ", shell)).first != 0) continue;
    const auto [code, errors] = Shell(absl::StrCat(shell, " -n ", file));
    EXPECT_EQ(code, 0) << errors;
  }
  EXPECT_THAT(*CompletionScript("zsh", program), HasSubstr("it'\\''s $(a)"));
  EXPECT_THAT(*CompletionScript("fish", program), HasSubstr("it\\'s $(a)"));
}

}  // namespace
}  // namespace fairlead::cmd
