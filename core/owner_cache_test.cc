// Reads of owners: what is kept, when it is read again, and how many reads there are.
#include "core/owner_cache.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::At;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kAnyTime = absl::InfinitePast();

class OwnerCacheTest : public ::testing::Test {
 protected:
  static grouping::ObjectName Job(const std::string& name, const std::string& ns = "ns") {
    return {"batch/v1", "Job", ns, name, absl::StrCat("u-", name)};
  }
  static std::string JobJson(const std::string& name, const std::string& version) {
    return absl::StrCat(R"({"metadata":{"name":")", name, R"(","uid":"u-)", name,
                        R"(","resourceVersion":")", version, R"("}})");
  }
  std::vector<model::ReadObject> ReadsAt(absl::Time now) {
    std::vector<model::Action> actions;
    wake_at_ = cache_.Step(now, actions);
    std::vector<model::ReadObject> reads;
    for (const model::Action& action : actions) {
      reads.push_back(std::get<model::ReadObject>(action.what));
    }
    return reads;
  }
  std::vector<model::ReadObject> Reads(int64_t at) { return ReadsAt(At(at)); }
  std::vector<OwnerCache::User> Answer(const model::ReadObject& read, const std::string& json,
                                       int64_t at) {
    model::ActionResult result{1, absl::OkStatus()};
    result.object = std::make_shared<const std::string>(json);
    return cache_.Answered(read, result, At(at));
  }
  std::vector<OwnerCache::User> Fail(const model::ReadObject& read, absl::Status status,
                                     int64_t at) {
    return cache_.Answered(read, {1, std::move(status)}, At(at));
  }
  absl::StatusOr<const Json*> Find(const std::string& name, absl::Time not_before = kAnyTime) {
    return cache_.Find(OwnerCache::KeyOf(Job(name)), not_before);
  }
  void Want(const std::string& name, int64_t at, const std::string& ns = "ns") {
    cache_.Want(Job(name, ns), {false, absl::StrCat(ns, "/p-", name)}, OwnerCache::Reason::kAwaited,
                At(at));
  }

  OwnerCache cache_{20, {absl::Seconds(1), absl::Seconds(60)}};
  absl::Time wake_at_;
};

TEST_F(OwnerCacheTest, WhatIsReadIsKeptByItsUid) {
  Want("j", 10);
  const auto reads = Reads(10);
  ASSERT_THAT(reads, SizeIs(1));
  EXPECT_EQ(*Find("j"), nullptr);
  EXPECT_THAT(Answer(reads[0], JobJson("j", "5"), 11),
              ElementsAre(OwnerCache::User{false, "ns/p-j"}));
  ASSERT_NE(*Find("j"), nullptr);
  grouping::ObjectName other = Job("j");
  other.uid = "u-other";
  EXPECT_EQ(*cache_.Find(OwnerCache::KeyOf(other), kAnyTime), nullptr) << "of another uid";
  EXPECT_EQ(*Find("j", At(11)), nullptr) << "it is as old as the request";
  EXPECT_NE(*Find("j", At(10)), nullptr);
}

TEST_F(OwnerCacheTest, AnotherObjectOfTheNameMeansThatItIsGone) {
  Want("j", 10);
  Answer(Reads(10)[0], R"({"metadata":{"name":"j","uid":"u-new"}})", 10);
  EXPECT_TRUE(absl::IsNotFound(Find("j").status())) << Find("j").status();
  // Of an object that is named without a uid, whichever is there counts.
  cache_.Want({"v1", "ConfigMap", "ns", "c", ""}, {false, "ns/p"}, OwnerCache::Reason::kAwaited,
              At(10));
  Answer(Reads(10)[0], R"({"metadata":{"name":"c","uid":"u-any"}})", 10);
  EXPECT_TRUE(cache_.Find("v1 ConfigMap ns/c ", kAnyTime).ok());
}

TEST_F(OwnerCacheTest, AnUnchangedObjectIsReadAgainNowAndThenAndNoneIsTold) {
  Want("j", 10);
  Answer(Reads(10)[0], JobJson("j", "5"), 10);
  EXPECT_THAT(Reads(39), IsEmpty());
  EXPECT_EQ(wake_at_, At(40));
  EXPECT_THAT(Answer(Reads(40)[0], JobJson("j", "5"), 40), IsEmpty());
  EXPECT_THAT(Answer(Reads(70)[0], JobJson("j", "6"), 70), SizeIs(1));
}

TEST_F(OwnerCacheTest, ANewUserIsToldAlthoughTheObjectIsTheSame) {
  Want("j", 10);
  Answer(Reads(10)[0], JobJson("j", "5"), 10);
  cache_.Want(Job("j"), {false, "ns/q"}, OwnerCache::Reason::kAwaited, At(20));
  EXPECT_THAT(Answer(Reads(20)[0], JobJson("j", "5"), 20), SizeIs(2));
}

TEST_F(OwnerCacheTest, AnObjectIsReadOnceInASecondHoweverManyPodsCome) {
  size_t reads = 0;
  for (int64_t ms = 0; ms < 3'000; ms += 10) {
    const absl::Time now = At(10) + absl::Milliseconds(ms);
    cache_.Want(Job("j"), {false, absl::StrCat("ns/p", ms)}, OwnerCache::Reason::kAwaited, now);
    for (const model::ReadObject& read : ReadsAt(now)) {
      ++reads;
      model::ActionResult result{1, absl::OkStatus()};
      result.object = std::make_shared<const std::string>(JobJson("j", "5"));
      cache_.Answered(read, result, now);
    }
  }
  EXPECT_EQ(reads, 3U);
}

TEST_F(OwnerCacheTest, AWishDuringAReadIsServedByAnotherOne) {
  Want("j", 10);
  const auto first = Reads(10);
  cache_.Want(Job("j"), {false, "ns/late"}, OwnerCache::Reason::kAwaited, At(12));
  Answer(first[0], JobJson("j", "5"), 13);
  EXPECT_THAT(Reads(13), SizeIs(1));
}

TEST_F(OwnerCacheTest, FailuresAreRepeatedWithGrowingPausesAndWishesDoNotShortenThem) {
  Want("j", 10);
  size_t reads = 0;
  for (int64_t at = 10; at < 70; ++at) {
    Want("j", at);
    for (const model::ReadObject& read : Reads(at)) {
      ++reads;
      Fail(read, absl::PermissionDeniedError("no"), at);
    }
  }
  EXPECT_EQ(reads, 6U) << "at 10, 11, 13, 17, 25, 41";
  EXPECT_TRUE(absl::IsPermissionDenied(Find("j").status()));
}

TEST_F(OwnerCacheTest, AFailureOfUnknownKindLeavesWhatWasRead) {
  Want("j", 10);
  Answer(Reads(10)[0], JobJson("j", "5"), 10);
  Fail(Reads(40)[0], absl::UnavailableError("slow"), 41);
  EXPECT_NE(*Find("j"), nullptr);
  EXPECT_EQ(*Find("j", At(30)), nullptr) << "it is not what it was asked for";
  EXPECT_TRUE(absl::IsUnavailable(cache_.ProblemOf(Job("j"))));
  Fail(Reads(50)[0], absl::NotFoundError("gone"), 50);
  EXPECT_TRUE(absl::IsNotFound(Find("j").status()));
}

TEST_F(OwnerCacheTest, WhatHasNoUsersIsForgotten) {
  Want("j", 10);
  OwnerCache::Keys used = {OwnerCache::KeyOf(Job("j"))};
  const auto read = Reads(10);
  cache_.Depend({false, "ns/p-j"}, used, {});
  EXPECT_EQ(cache_.size(), 1U) << "the answer is missing";
  EXPECT_THAT(Answer(read[0], JobJson("j", "5"), 10), IsEmpty());
  EXPECT_EQ(cache_.size(), 0U);
  for (int64_t at = 10; at < 100; ++at) EXPECT_THAT(Reads(at), IsEmpty());
}

TEST_F(OwnerCacheTest, AnObjectThatGivesNoGroupIsReadAgainSoonAndThenLater) {
  Want("j", 10);
  std::vector<int64_t> times;
  for (int64_t at = 10; at < 90; ++at) {
    for (const model::ReadObject& read : Reads(at)) {
      times.push_back(at);
      Answer(read, JobJson("j", "5"), at);
    }
    cache_.ReadSoon({OwnerCache::KeyOf(Job("j"))});
  }
  EXPECT_THAT(times, ElementsAre(10, 15, 25, 45, 75));
}

TEST_F(OwnerCacheTest, AFewAreReadAtATime) {
  for (int i = 0; i < 40; ++i) Want(absl::StrCat("j", i), 10);
  const auto reads = Reads(10);
  ASSERT_THAT(reads, SizeIs(OwnerCache::kReads));
  EXPECT_THAT(Reads(20), IsEmpty());
  Fail(reads[0], absl::NotFoundError("gone"), 20);
  EXPECT_THAT(Reads(20), SizeIs(1));
}

TEST_F(OwnerCacheTest, NoMoreAreReadThanTheRatePermits) {
  for (int i = 0; i < 400; ++i) Want(absl::StrCat("j", i), 10);
  size_t reads = 0;
  for (int64_t ms = 0; ms < 5'000; ms += 10) {
    const absl::Time now = At(10) + absl::Milliseconds(ms);
    for (auto sent = ReadsAt(now); !sent.empty(); sent = ReadsAt(now)) {
      for (const model::ReadObject& read : sent) {
        ++reads;
        model::ActionResult result{1, absl::OkStatus()};
        result.object = std::make_shared<const std::string>(JobJson(read.name, "5"));
        cache_.Answered(read, result, now);
      }
    }
  }
  EXPECT_GE(reads, 110U);
  EXPECT_LE(reads, 120U) << "20 at once, then 20 a second";
}

TEST_F(OwnerCacheTest, RepetitionsAreATenthAndDoNotHoldUpPods) {
  for (int i = 0; i < 40; ++i) {
    cache_.Want(Job(absl::StrCat("g", i)), {true, absl::StrCat("ns/g", i)},
                OwnerCache::Reason::kRepeated, At(10));
  }
  size_t reads = 0;
  for (int64_t at = 10; at < 20; ++at) {
    for (const model::ReadObject& read : Reads(at)) {
      ++reads;
      Answer(read, JobJson(read.name, "5"), at);
    }
  }
  EXPECT_LE(reads, 20U) << "2 a second";
  Want("j", 20);
  const auto sent = Reads(20);
  EXPECT_TRUE(
      std::any_of(sent.begin(), sent.end(), [](const auto& read) { return read.name == "j"; }));
}

TEST_F(OwnerCacheTest, PodsThatGoDoNotHoldUpPodsThatWait) {
  OwnerCache::Keys gone;
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("g", i);
    cache_.Want(Job(name), {true, absl::StrCat("ns/", name)}, OwnerCache::Reason::kRepeated, At(0));
    gone.insert(OwnerCache::KeyOf(Job(name)));
  }
  for (int64_t at = 0; at < 60; ++at) {
    for (const model::ReadObject& read : Reads(at)) Answer(read, JobJson(read.name, "5"), at);
  }
  cache_.ReadNow(gone, At(60));
  Want("j", 60);
  const auto sent = Reads(60);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent[0].name, "j");
  EXPECT_LE(sent.size(), 4U);
}

TEST_F(OwnerCacheTest, ANamespaceWithManyOwnersDelaysItsOwnPods) {
  for (int i = 0; i < 500; ++i) Want(absl::StrCat("j", i), 10, "a-crowd");
  Want("mine", 11, "b");
  const auto reads = Reads(11);
  ASSERT_THAT(reads, SizeIs(OwnerCache::kReads));
  EXPECT_EQ(reads[1].name, "mine") << "namespaces take turns";
}

}  // namespace
}  // namespace fairlead::core::testing
