#include "cmd/fairlead/logs/log_redaction.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "cmd/fairlead/logs/logger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Redacted(const std::string& log) {
  journal::Redactor redactor({});
  static_cast<void>(RedactedLog(log, redactor));
  redactor.Assign();
  std::string out = RedactedLog(log, redactor);
  EXPECT_EQ(redactor.problem(), "");
  return out;
}

TEST(LogRedactionTest, WhatIsUnknownIsReplaced) {
  for (const char* line :
       {"acme says \"jane\" msg=secret", "acme", "{\"acme\":[\"jane\",{\"secret\":\"acme\"}]}",
        "{\"msg\":\"jane\"", "msg=jane acme=secret", "msg=\"jane has no end",
        "jane=\"acme\\\"secret\"x", "time=jane level=acme event=secret cycle=jane"}) {
    const std::string redacted = Redacted(line);
    for (const char* word : {"acme", "jane", "secret"}) {
      EXPECT_THAT(redacted, Not(HasSubstr(word))) << line;
    }
  }
}

TEST(LogRedactionTest, ALineKeepsItsMessageAndNumbers) {
  for (const LogFormat format : {LogFormat::kLogfmt, LogFormat::kJson}) {
    const std::string line =
        LogLine(absl::UnixEpoch(), LogLevel::kWarning, "action failed",
                {{"action", "bind acme/jane"}, {"cycle", 1234}, {"error", "of \"acme\""}}, format);
    const std::string redacted = Redacted(line);
    EXPECT_THAT(redacted, HasSubstr("action failed"));
    EXPECT_THAT(redacted, HasSubstr("1970-01-01T00:00:00.000Z"));
    EXPECT_THAT(redacted, HasSubstr("warning"));
    EXPECT_THAT(redacted, HasSubstr("1234"));
    EXPECT_THAT(redacted, Not(HasSubstr("acme")));
    EXPECT_THAT(redacted, Not(HasSubstr("jane")));
  }
}

TEST(LogRedactionTest, ALineOfTheAuditLog) {
  const std::string redacted = Redacted(
      R"({"time":"2026-11-29T00:00:00Z","event":"provision","id":7,"instanceType":"g5.xlarge",)"
      R"("priceUsdPerHour":1.006,"queue":"acme","workloads":["acme/jane"]})");
  EXPECT_THAT(redacted, HasSubstr("\"event\":\"provision\""));
  EXPECT_THAT(redacted, HasSubstr("1.006"));
  EXPECT_THAT(redacted, Not(HasSubstr("acme")));
  EXPECT_THAT(redacted, Not(HasSubstr("jane")));
}

// A message that is not on the list would be replaced, and the line of little use.
TEST(LogRedactionTest, EveryMessageOfTheProgramIsKnown) {
  const std::regex call(
      R"re(\blogger_?(?:->|\.)(?:Info|Warning|Error|Debug|Log)\(\s*(?:[^;"]*?,\s*)?"([^"]*)"\s*("[^"]*")?)re");
  int messages = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("cmd/fairlead")) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".cc") || absl::EndsWith(path, "_test.cc")) continue;
    std::ifstream file(path);
    std::stringstream content;
    content << file.rdbuf();
    const std::string source = content.str();
    for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it) {
      std::string rest = (*it)[2].str();
      if (!rest.empty()) rest = rest.substr(1, rest.size() - 2);
      ++messages;
      EXPECT_TRUE(IsLogMessage((*it)[1].str() + rest)) << path << ": " << (*it)[1] << rest;
    }
  }
  EXPECT_GT(messages, 30) << "calls of the logger look otherwise than this test expects";
}

TEST(LogRedactionTest, LastLinesAreWhole) {
  EXPECT_EQ(LastLines("a\nbc\nd\n", 100), "a\nbc\nd\n");
  EXPECT_EQ(LastLines("a\nbc\nd\n", 4), "d\n");
  EXPECT_EQ(LastLines("abcdef", 3), "");
}

}  // namespace
}  // namespace fairlead::cmd
