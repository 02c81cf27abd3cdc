// The profiles of a process that schedules.
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/http_server_testing.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

class ProfilesTest : public IntegrationTest {
 protected:
  // The port after `text` in the log.
  static int PortOf(const ChildProcess& process, const std::string& text) {
    const std::string log = process.Log();
    const size_t at = log.find(absl::StrCat(text, " port="));
    int port = 0;
    if (at == std::string::npos) return 0;
    const size_t from = at + text.size() + 6;
    (void)absl::SimpleAtoi(log.substr(from, log.find('\n', from) - from), &port);
    return port;
  }
};

// Of gperftools' format: words of 64 bits; five of a header, the second of which says how many
// follow; then samples: how often, how deep, and the stack.
size_t SamplesIn(const std::string& profile) {
  std::vector<uint64_t> words(profile.size() / sizeof(uint64_t));
  std::memcpy(words.data(), profile.data(), words.size() * sizeof(uint64_t));
  if (words.size() < 5 || words[0] != 0 || words[1] != 3) return 0;
  size_t samples = 0;
  for (size_t at = 5; at + 1 < words.size() && words[at] != 0; at += 2 + words[at + 1]) {
    samples += words[at];
  }
  return samples;
}

TEST_F(ProfilesTest, SayWhereTimeAndMemoryGo) {
  MakeQueue("team", -1, -1);
  for (int i = 0; i < 4; ++i) MakeNode(absl::StrCat("n-", i), 100);
  ::setenv("TCMALLOC_SAMPLE_PARAMETER", "65536", 1);
  ChildProcess& process = Start({.flags = {"--profile-bind-address=127.0.0.1:0"}});
  ::unsetenv("TCMALLOC_SAMPLE_PARAMETER");
  const int port = PortOf(process, "msg=\"serving profiles\"");
  ASSERT_GT(port, 0);
  // It works for as long as it is looked at.
  std::string profile;
  for (int round = 0; round < 10 && SamplesIn(profile) == 0; ++round) {
    std::future<std::string> fetched = std::async(std::launch::async, [port] {
      return server::testing::Get(port, "/debug/pprof/profile?seconds=1").body;
    });
    for (int i = 0; i < 40; ++i) MakePod({.name = absl::StrCat("p-", round, "-", i)});
    profile = fetched.get();
  }
  EXPECT_GT(SamplesIn(profile), 0u) << profile.size() << " bytes";
  const std::string heap = server::testing::Get(port, "/debug/pprof/heap").body;
  EXPECT_EQ(heap.rfind("heap profile: ", 0), 0u) << heap.substr(0, 200);
  EXPECT_NE(heap.find("@ heap_v2/65536"), std::string::npos) << heap.substr(0, 200);
}

}  // namespace
}  // namespace fairlead::integration
