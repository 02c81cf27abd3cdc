#include "dashboard/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "document/json.h"

namespace fairlead::dashboard {
namespace {

using ::testing::ElementsAre;

absl::Time Minute(int64_t minute) { return absl::FromUnixSeconds(minute * 60 + 11); }

TimelinePoint Point(int64_t minute, int64_t used, std::vector<TimelinePoint::OfQueue> queues = {}) {
  return {Minute(minute), used, 8000, 3, 1'000'000, std::move(queues)};
}

Json Parsed(const Timeline& timeline) {
  absl::StatusOr<Json> json = Json::Parse(timeline.Json());
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *json : Json();
}

std::vector<std::string> Column(const Json& json, const char* key) {
  std::vector<std::string> values;
  for (const Json& item : json.Find(key)->items()) values.push_back(item.text());
  return values;
}

TEST(TimelineTest, HasAPointPerMinute) {
  Timeline timeline;
  EXPECT_TRUE(timeline.Wants(Minute(5)));
  timeline.Add(Point(5, 1000));
  EXPECT_FALSE(timeline.Wants(Minute(5) + absl::Seconds(40)));
  timeline.Add(Point(5, 7000));  // the same minute
  timeline.Add(Point(4, 7000));  // an earlier one
  timeline.Add(Point(7, 2000));
  const Json json = Parsed(timeline);
  EXPECT_THAT(Column(json, "minutes"), ElementsAre("5", "7"));
  EXPECT_THAT(Column(json, "used"), ElementsAre("1000", "2000"));
  EXPECT_THAT(Column(json, "known"), ElementsAre("8000", "8000"));
  EXPECT_THAT(Column(json, "waiting"), ElementsAre("3", "3"));
  EXPECT_THAT(Column(json, "price"), ElementsAre("1000000", "1000000"));
}

TEST(TimelineTest, KeepsADay) {
  Timeline timeline;
  for (int64_t minute = 0; minute < 2000; ++minute) timeline.Add(Point(minute, minute));
  EXPECT_EQ(timeline.points(), Timeline::kPoints);
  EXPECT_EQ(Column(Parsed(timeline), "minutes").front(), absl::StrCat(2000 - Timeline::kPoints));
  timeline.Add(Point(2000 + static_cast<int64_t>(Timeline::kPoints), 0));
  EXPECT_EQ(timeline.points(), 1u) << "what is older than a day goes, pauses included";
}

TEST(TimelineTest, QueuesHaveMeansOfTheirValues) {
  Timeline timeline;
  for (int64_t minute = 0; minute < 192; ++minute) {
    std::vector<TimelinePoint::OfQueue> queues = {{"idle", 0, 0}};
    if (minute % 2 == 0) queues.push_back({"__proto__", 4000, 10});
    timeline.Add(Point(minute, 0, std::move(queues)));
  }
  const Json json = Parsed(timeline);
  ASSERT_EQ(json.Find("queues")->items().size(), 1u);
  const Json& queue = json.Find("queues")->items()[0];
  EXPECT_EQ(queue.TextAt({"name"}), "__proto__");
  EXPECT_EQ(Column(queue, "used").size(), Timeline::kQueueValues);
  EXPECT_EQ(Column(queue, "used")[0], "2000");
  EXPECT_EQ(Column(queue, "price")[0], "5");
}

TEST(TimelineTest, PlacesOfQueuesThatHaveGoneAreGivenAnew) {
  Timeline timeline;
  std::vector<TimelinePoint::OfQueue> many;
  for (size_t i = 0; i < Timeline::kQueues + 20; ++i) {
    many.push_back({absl::StrCat("queue-", i), 1000, 0});
  }
  timeline.Add(Point(0, 0, many));
  EXPECT_EQ(Parsed(timeline).Find("queues")->items().size(), Timeline::kQueues);
  timeline.Add(Point(1, 0, {{"late", 1000, 0}}));
  EXPECT_EQ(Parsed(timeline).Find("queues")->items().size(), Timeline::kQueues);
  // A day later the first ones have gone.
  timeline.Add(Point(static_cast<int64_t>(Timeline::kPoints), 0, {{"late", 3000, 0}}));
  const Json json = Parsed(timeline);
  ASSERT_EQ(json.Find("queues")->items().size(), 1u);
  EXPECT_EQ(json.Find("queues")->items()[0].TextAt({"name"}), "late");
  EXPECT_THAT(Column(json.Find("queues")->items()[0], "used"), ElementsAre("0", "3000"));
}

TEST(TimelineTest, EventsAreBoundedAndNewestFirst) {
  Timeline timeline;
  for (size_t i = 0; i < Timeline::kEvents + 5; ++i) {
    timeline.Add({Minute(static_cast<int64_t>(i)), "evicted", absl::StrCat("ns/p-", i),
                  std::string(10'000, 'x')});
  }
  EXPECT_EQ(timeline.events().size(), Timeline::kEvents);
  const Json json = Parsed(timeline);
  EXPECT_EQ(json.Find("events")->items()[0].TextAt({"subject"}),
            absl::StrCat("ns/p-", Timeline::kEvents + 4));
  EXPECT_EQ(json.Find("events")->items()[0].TextAt({"text"}).size(), 1024u);
}

TEST(TimelineTest, ARepeatedWriteIsNoSecondEvent) {
  Timeline timeline;
  timeline.Add({Minute(0), "evicted", "ns/p", "why"});
  timeline.Add({Minute(1), "evicted", "ns/p", "why"});
  EXPECT_EQ(timeline.events().size(), 1u);
  timeline.Add({Minute(1), "evicted", "ns/p", "another reason"});
  timeline.Add({Minute(30), "evicted", "ns/p", "why"});
  EXPECT_EQ(timeline.events().size(), 3u);
}

}  // namespace
}  // namespace fairlead::dashboard
