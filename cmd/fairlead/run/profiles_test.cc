#include "cmd/fairlead/run/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http_server_testing.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

class ProfilesTest : public ::testing::Test {
 protected:
  Profiler ProfilerThatSays() {
    return {[this](absl::Duration duration) -> absl::StatusOr<std::string> {
              asked_ = duration;
              return "cpu\n";
            },
            [this]() -> absl::StatusOr<std::string> {
              if (!samples_) return absl::FailedPreconditionError("nothing is sampled");
              return "heap\n";
            }};
  }
  absl::Duration asked_;
  bool samples_ = true;
};

TEST_F(ProfilesTest, AreServedOnALoopbackAddress) {
  const auto served = ServeProfiles("127.0.0.1:0", ProfilerThatSays());
  ASSERT_TRUE(served.ok()) << served.status();
  const auto get = [&](const std::string& path) {
    return server::testing::Get((*served)->port(), path);
  };
  EXPECT_EQ(get("/debug/pprof/profile").body, "cpu\n");
  EXPECT_EQ(asked_, absl::Seconds(10));
  EXPECT_EQ(get("/debug/pprof/profile?seconds=60").status, 200);
  EXPECT_EQ(asked_, absl::Seconds(60));
  EXPECT_EQ(get("/debug/pprof/heap").body, "heap\n");
  samples_ = false;
  EXPECT_EQ(get("/debug/pprof/heap").status, 503);
  EXPECT_EQ(get("/debug/pprof/heap").body, "nothing is sampled\n");
  EXPECT_EQ(get("/metrics").status, 404);
  asked_ = absl::ZeroDuration();
  for (const char* wrong :
       {"seconds=0", "seconds=61", "seconds=x", "seconds=", "second=3", "seconds=1&seconds=2"}) {
    const auto answer = get(absl::StrCat("/debug/pprof/profile?", wrong));
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_THAT(answer.body, HasSubstr("from 1 to 60")) << wrong;
  }
  EXPECT_EQ(asked_, absl::ZeroDuration());
}

TEST_F(ProfilesTest, NowhereElse) {
  const auto error = [](const std::string& address, const Profiler& profiler) {
    return std::string(ServeProfiles(address, profiler).status().message());
  };
  EXPECT_THAT(error(":6060", ProfilerThatSays()),
              HasSubstr("--profile-bind-address: :6060 is not a loopback address"));
  EXPECT_THAT(error("10.0.0.1:6060", ProfilerThatSays()), HasSubstr("is not a loopback address"));
  EXPECT_THAT(error("nonsense", ProfilerThatSays()), HasSubstr("--profile-bind-address: "));
  EXPECT_THAT(error("127.0.0.1:0", {}), HasSubstr("was built without a profiler"));
}

}  // namespace
}  // namespace fairlead::cmd
