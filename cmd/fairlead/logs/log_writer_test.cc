#include "cmd/fairlead/logs/log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/logs/logger.h"

namespace fairlead::cmd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() { EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0); }
  ~LogWriterTest() override {
    CloseWriteEnd();
    close(pipe_[0]);
  }
  void CloseWriteEnd() {
    if (pipe_[1] >= 0) close(pipe_[1]);
    pipe_[1] = -1;
  }
  std::string ReadAll() {
    CloseWriteEnd();
    std::string all;
    char buffer[65536];
    ssize_t count;
    while ((count = read(pipe_[0], buffer, sizeof(buffer))) > 0) {
      all.append(buffer, static_cast<size_t>(count));
    }
    return all;
  }
  // Fills the pipe, so that the next write to it would block.
  size_t Fill() {
    fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
    size_t filled = 0;
    ssize_t count;
    while ((count = write(pipe_[1], "xxxxxxx\n", 8)) > 0) filled += static_cast<size_t>(count);
    fcntl(pipe_[1], F_SETFL, 0);
    return filled;
  }

  int pipe_[2] = {-1, -1};
  RealClock clock_;
};

TEST_F(LogWriterTest, WritesAllBeforeItEnds) {
  std::string expected;
  {
    LogWriter writer(pipe_[1], &clock_);
    for (int i = 0; i < 1000; ++i) {
      const std::string line = absl::StrCat("line ", i, "\n");
      writer.Write(line);
      expected += line;
    }
  }
  EXPECT_EQ(ReadAll(), expected);
}

// A blocked standard error held the scheduler, and the scheduler held the lease.
TEST_F(LogWriterTest, ABlockedPipeDoesNotBlockAndLossesAreCounted) {
  const size_t filled = Fill();
  LogWriterOptions options;
  options.bytes_max = 10'000;
  options.patience = absl::Seconds(20);
  {
    LogWriter writer(pipe_[1], &clock_, options);
    Logger logger(&clock_, LogLevel::kInfo, [&](absl::string_view line) { writer.Write(line); });
    const std::string text(99, 'a');
    for (int i = 0; i < 1000; ++i) logger.Info(text);
    EXPECT_GT(writer.dropped(), 800);
    EXPECT_LT(writer.dropped(), 1000);
    // It flows again.
    std::string first(filled, ' ');
    for (size_t got = 0; got < filled;) {
      const ssize_t count = read(pipe_[0], first.data() + got, filled - got);
      ASSERT_GT(count, 0);
      got += static_cast<size_t>(count);
    }
    int64_t before;
    do {  // until the queue accepts one
      before = writer.dropped();
      logger.Info("after");
    } while (writer.dropped() != before);
  }
  const std::string all = ReadAll();
  EXPECT_THAT(all, StartsWith("time="));
  EXPECT_THAT(all, HasSubstr("level=warning msg=\"log lines dropped\" count="));
  EXPECT_THAT(all, EndsWith("msg=after\n"));
}

TEST_F(LogWriterTest, DoesNotWaitForeverAtTheEnd) {
  Fill();
  LogWriterOptions options;
  options.patience = absl::Milliseconds(10);
  LogWriter writer(pipe_[1], &clock_, options);
  writer.Write("never\n");
}

}  // namespace
}  // namespace fairlead::cmd
