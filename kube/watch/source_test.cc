// What ClusterSource asks of the server, and what it lets through.
#include "kube/watch/source.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/fake_transport.h"
#include "kube/watch/runtime_test_util.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Id = FakeTransport::Id;

class SourceTest : public ::testing::Test {
 protected:
  SourceTest() : source_(api_, api_, clock_, queue_) {
    source_.Start();
    api_.Pump();
    for (const FakeTransport::Exchange& exchange : api_.exchanges()) {
      if (!absl::StartsWith(exchange.request.path, "/api/v1/pods?")) continue;
      path_ = exchange.request.path;
      pods_ = exchange.id;
    }
    api_.Headers(pods_, 200);
    api_.Pump();
  }
  ~SourceTest() override { source_.Stop(); }

  static std::string Ended(const std::string& name, const std::string& version,
                           const std::string& phase, const std::string& group = "") {
    std::string pod =
        absl::StrReplaceAll(PodJson(name, "u" + name, version, "n1"),
                            {{"\"phase\":\"Pending\"", "\"phase\":\"" + phase + "\""}});
    if (group.empty()) return pod;
    return absl::StrReplaceAll(
        pod, {{"\"metadata\":{",
               "\"metadata\":{\"annotations\":{\"pod-group-name\":\"" + group + "\"},"}});
  }
  void Send(const std::string& line) {
    api_.Data(pods_, line);
    api_.Pump();
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport api_{clock_};
  EventQueue queue_;
  std::string path_;
  Id pods_ = 0;
  ClusterSource source_;
};

TEST_F(SourceTest, PodsThatSucceededComeIfTheyNameAPodGroup) {
  EXPECT_THAT(path_, HasSubstr("fieldSelector=status.phase%21%3DFailed&"));
  EXPECT_THAT(path_, Not(HasSubstr("Succeeded")));
  Send(WatchLine("ADDED", Ended("a", "1", "Running")));
  Send(WatchLine("ADDED", Ended("b", "2", "Running", "g")));
  Send(WatchLine("ADDED", Ended("c", "3", "Succeeded")));
  Send(WatchLine("ADDED", Ended("d", "4", "Succeeded", "g")));
  Send(BookmarkLine("5", true));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@1", "+ns/b ub@2", "+ns/d ud@4", "synced"));
  Send(WatchLine("MODIFIED", Ended("a", "6", "Succeeded")));
  Send(WatchLine("MODIFIED", Ended("b", "7", "Succeeded", "g")));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/a ua", "+ns/b ub@7"));
  Send(WatchLine("MODIFIED", Ended("a", "8", "Succeeded")));
  Send(WatchLine("DELETED", Ended("a", "9", "Succeeded")));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "it is gone already";
  Send(WatchLine("MODIFIED", Ended("c", "10", "Succeeded", "g")));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/c uc@10")) << "grouped late";
  Send(WatchLine("MODIFIED", Ended("b", "4", "Running")));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "older than what is known";
  Send(WatchLine("MODIFIED", Ended("b", "11", "Succeeded")));
  Send(WatchLine("DELETED", Ended("d", "12", "Succeeded", "g")));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/b ub", "-ns/d ud"));
  EXPECT_EQ(source_.GetStats().back().objects, 1u);
}

TEST(ClusterSourceTest, WatchesEveryKindAndSyncsWithoutTheCustomOnes) {
  FakeClock clock(absl::UnixEpoch());
  FakeTransport api(clock);
  EventQueue queue;
  ClusterSource source(api, api, clock, queue);
  source.Start();
  api.Pump();
  ASSERT_EQ(api.exchanges().size(), std::size(model::kAllKinds));
  for (const auto& exchange : api.exchanges()) {
    const bool pods = absl::StartsWith(exchange.request.path, "/api/v1/pods");
    EXPECT_EQ(pods,
              absl::StrContains(exchange.request.path, "fieldSelector=status.phase%21%3DFailed&"));
  }
  EXPECT_TRUE(absl::IsUnavailable(source.Health(absl::Minutes(5))));
  for (size_t i = 0; i < std::size(model::kAllKinds); ++i) {
    const FakeTransport::Exchange& exchange = api.exchanges()[i];
    if (absl::StartsWith(exchange.request.path, "/apis/scheduling.k8s.io/") ||
        absl::StartsWith(exchange.request.path, "/api/v1/")) {
      api.Headers(exchange.id, 200);
      api.Data(exchange.id, BookmarkLine("5", true));
    } else if (absl::StartsWith(exchange.request.path, "/apis/policy/")) {
      // RBAC rules from before budgets were read.
      api.Headers(exchange.id, 403);
      api.Data(exchange.id, StatusJson(403, "Forbidden", "cannot list poddisruptionbudgets"));
      api.End(exchange.id);
    } else {
      api.Headers(exchange.id, 404);
      api.Data(exchange.id, StatusJson(404, "NotFound", "no such resource"));
      api.End(exchange.id);
    }
  }
  api.Pump();
  EXPECT_TRUE(source.Synced());
  EXPECT_TRUE(source.Health(absl::Minutes(5)).ok()) << source.Health(absl::Minutes(5));
  EXPECT_EQ(Told(queue).size(), std::size(model::kAllKinds));
  source.Stop();
  EXPECT_EQ(api.timer_count(), 0u);
}

TEST(ClusterSourceTest, UnreadKindsAreNotRequested) {
  FakeClock clock(absl::UnixEpoch());
  FakeTransport api(clock);
  EventQueue queue;
  SourceOptions options;
  options.unread = {model::Kind::kNodeResourceTopology};
  ClusterSource source(api, api, clock, queue, options);
  source.Start();
  api.Pump();
  EXPECT_EQ(api.exchanges().size(), std::size(model::kAllKinds) - 1);
  for (const auto& exchange : api.exchanges()) {
    EXPECT_THAT(exchange.request.path, Not(HasSubstr("noderesourcetopologies")));
  }
  EXPECT_EQ(source.GetStats().size(), std::size(model::kAllKinds) - 1);
  source.Stop();
}

// A watch without a connection would wait in silence.
TEST(SourceLimitsTest, ATransportHasRoomForTheWatchesOfAllKindsAndOfProviders) {
  constexpr size_t kOfProviders = 16;
  EXPECT_GE(static_cast<size_t>(CurlTransportOptions().watch_connections_max),
            std::size(model::kAllKinds) + kOfProviders);
}

}  // namespace
}  // namespace fairlead::kube
