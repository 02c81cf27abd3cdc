#include "cmd/fairlead/logs/logger.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace fairlead::cmd {
namespace {

TEST(LoggerTest, WritesLogfmt) {
  FakeClock clock(absl::FromUnixMillis(1'700'000'000'123));
  std::string out;
  Logger logger(&clock, LogLevel::kInfo,
                [&out](absl::string_view line) { absl::StrAppend(&out, line); });
  logger.Debug("unseen");
  logger.Info("decision", {{"bound", 3}, {"queue", "a b"}, {"empty", ""}, {"eq", "x=y"}});
  logger.Error("line\nbreak \"q\"");
  EXPECT_EQ(
      out,
      "time=2023-11-14T22:13:20.123Z level=info msg=decision bound=3 queue=\"a b\" empty=\"\" "
      "eq=\"x=y\"\n"
      "time=2023-11-14T22:13:20.123Z level=error msg=\"line\\nbreak \\\"q\\\"\"\n");
}

TEST(LoggerTest, WritesJson) {
  FakeClock clock(absl::FromUnixMillis(1'700'000'000'123));
  std::string out;
  Logger logger(
      &clock, LogLevel::kInfo, [&out](absl::string_view line) { absl::StrAppend(&out, line); },
      LogFormat::kJson);
  logger.Info("a \"b\"", {{"bound", 3}, {"node", "7"}, {"bytes", "\xff\n"}});
  EXPECT_EQ(out,
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\","
            "\"msg\":\"a \\\"b\\\"\",\"bound\":3,\"node\":\"7\","
            "\"bytes\":\"\uFFFD\\n\"}\n");
}

TEST(LoggerTest, Formats) {
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_EQ(*ParseLogFormat("logfmt"), LogFormat::kLogfmt);
  EXPECT_EQ(ParseLogFormat("xml").status().message(), "log format \"xml\": must be logfmt or json");
}

TEST(LoggerTest, SomeHavePairsInAllLines) {
  FakeClock clock(absl::FromUnixSeconds(0));
  std::string line;
  const Logger logger(&clock, LogLevel::kInfo,
                      [&line](absl::string_view text) { line = std::string(text); });
  Logger shard = logger.With({{"shard", "gpu-a"}});
  shard.Info("synced", {{"count", 3}});
  EXPECT_TRUE(absl::EndsWith(line, " msg=synced count=3 shard=gpu-a\n")) << line;
  shard.Debug("synced");
  EXPECT_TRUE(absl::EndsWith(line, " count=3 shard=gpu-a\n")) << line;
}

TEST(LoggerTest, Levels) {
  EXPECT_EQ(*ParseLogLevel("warn"), LogLevel::kWarning);
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_FALSE(ParseLogLevel("loud").ok());
}

}  // namespace
}  // namespace fairlead::cmd
