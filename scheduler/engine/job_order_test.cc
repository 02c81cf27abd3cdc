// Short jobs first (state::JobOrder): which are served, and which are evicted.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;

state::JobOrder Weight(int64_t weight) { return {.duration_weight = weight}; }

// "" says nothing.
PodBuilder Lasting(PodBuilder pod, absl::string_view duration) {
  return pod.Annotation(model::kExpectedDurationAnnotation, duration);
}

// One node with one GPU, which `queue` may have.
void OneGpu(Cluster& c) {
  c.Queue("q", 1);
  c.Node("n", 1);
}

struct OrderCase {
  const char* what;
  int64_t weight;
  const char* older;    // how long the job says it runs that came at 0 s
  const char* younger;  // and the one that came at 60 s
  const char* first;
};

TEST(JobOrderTest, WhichJobIsServedFirst) {
  const OrderCase cases[] = {
      {"off: first come, first served", 0, "10h", "1m", "older>n"},
      {"the shorter one", 1, "10h", "1m", "younger>n"},
      {"no job overtakes one that came weight times the difference before", 1, "61s", "2s",
       "older>n"},
      {"with more weight it does", 2, "61s", "2s", "younger>n"},
      {"equally long: first come, first served", 100, "1h", "1h", "older>n"},
      {"a job without a stated duration is expected to run for 24 h", 100, "", "23h", "younger>n"},
      {"and is before one that states more", 100, "25h", "", "younger>n"},
      {"what is no duration says nothing", 100, "soon", "23h", "younger>n"},
      {"nor does a negative one", 100, "-1m", "23h", "younger>n"},
      {"nor does none at all", 100, "0s", "23h", "younger>n"},
      {"nor does an endless one", 100, "inf", "23h", "younger>n"},
      {"beyond 30 days the length does not count", 1000, "9000h", "800h", "older>n"},
  };
  for (const OrderCase& c : cases) {
    SCOPED_TRACE(c.what);
    Cluster cluster({}, Weight(c.weight));
    OneGpu(cluster);
    cluster.Pod(Lasting(Job("older", "q", 1, 0), c.older));
    cluster.Pod(Lasting(Job("younger", "q", 1, 60), c.younger));
    cluster.Run();
    EXPECT_THAT(cluster.Bound(), ElementsAre(c.first));
  }
}

TEST(JobOrderTest, ADeadlineEndsAPodWhateverItStates) {
  struct Case {
    const char* what;
    const char* older;  // states
    int64_t older_deadline_s;
    const char* younger;
    int64_t younger_deadline_s;
    const char* first;
  };
  for (const Case& c : {Case{"alone", "", 36'000, "", 60, "younger>n"},
                        Case{"the shorter one counts", "1m", 36'000, "10h", 3600, "older>n"},
                        Case{"the shorter one counts", "10h", 60, "1h", 36'000, "older>n"},
                        Case{"there is none", "1h", 0, "10h", -5, "older>n"}}) {
    SCOPED_TRACE(c.what);
    Cluster cluster({}, Weight(100));
    OneGpu(cluster);
    cluster.Pod(Lasting(Job("older", "q", 1, 0), c.older).ActiveDeadline(c.older_deadline_s));
    cluster.Pod(
        Lasting(Job("younger", "q", 1, 60), c.younger).ActiveDeadline(c.younger_deadline_s));
    cluster.Run();
    EXPECT_THAT(cluster.Bound(), ElementsAre(c.first));
  }
}

TEST(JobOrderTest, PriorityComesBeforeLength) {
  Cluster c({}, Weight(100));
  OneGpu(c);
  c.Pod(Lasting(Job("short", "q", 1, 0), "1m").Priority("low", 10));
  c.Pod(Lasting(Job("long", "q", 1, 60), "10h").Priority("high", 20));
  c.Run();
  EXPECT_THAT(c.Bound(), ElementsAre("long>n"));
}

TEST(JobOrderTest, TheFirstPodSpeaksForTheGang) {
  Cluster c({}, Weight(100));
  c.Queue("q", 2);
  c.Node("n", 2);
  c.Group(PreemptibleGroup("long", "q", 2, 0));
  c.Group(PreemptibleGroup("short", "q", 2, 60));
  for (const char* pod : {"0", "1"}) {
    c.Pod(Lasting(Member(absl::StrCat("long-", pod), "long"), "10h"));
    c.Pod(Lasting(Member(absl::StrCat("short-", pod), "short"), *pod == '0' ? "1m" : "20h"));
  }
  c.Run();
  EXPECT_THAT(c.Bound(), ElementsAre("short-0>n", "short-1>n"));
}

TEST(JobOrderTest, AWordThatChangesCountsAtOnce) {
  Cluster c({}, Weight(100));
  c.Queue("q", 1);
  const PodBuilder a = Job("a", "q", 1, 0);
  c.Pod(Lasting(a, "1m"));
  c.Pod(Lasting(Job("b", "q", 1, 60), "1h"));
  c.Run();
  c.Pod(Lasting(a, "2h"));
  c.Run();
  c.Node("n", 1);
  c.Run();
  EXPECT_THAT(c.Bound(), ElementsAre("b>n"));
}

// Among those of one queue: the reverse of the queue order would take the long job, which has
// run for a day.
TEST(JobOrderTest, TheJobThatStartedLastGivesWayFirst) {
  for (const bool by_length : {false, true}) {
    Cluster c({}, Weight(by_length ? 100 : 0));
    c.Queue("rich", 0);
    c.Queue("poor", 1);
    c.Node("n", 2);
    const auto started = [](PodBuilder pod, absl::string_view at) {
      return pod.Annotation(model::kLastStartAnnotation, at).On("n");
    };
    // The age says the opposite: `old` came first, and was started again later.
    c.Pod(started(Lasting(Job("old", "rich", 1, 0), "1m"), "2026-03-02T00:00:00Z"));
    c.Pod(started(Lasting(Job("long", "rich", 1, 60), "10h"), "2026-03-01T00:00:00Z"));
    c.Pod(Lasting(Job("asks", "poor", 1, 120), "1h"));
    c.Run();
    EXPECT_THAT(c.Evicted(), ElementsAre(by_length ? "reclaim:old" : "reclaim:long"));
  }
}

}  // namespace
}  // namespace fairlead::engine
