// The choice of devices: against a search through everything, and where it has to give up.
#include "scheduler/state/device_choice.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "base/testing/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::state {
namespace {

using fairlead::testing::Random;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ChoiceRequest Exactly(int64_t count, std::vector<int> devices) {
  return {{{true, count, std::move(devices)}}};
}

TEST(DeviceChoice, WithoutDevicesThereIsNoChoice) {
  EXPECT_EQ(ChooseDevices(0, {}).outcome, ChoiceOutcome::kFound) << "nothing is asked for";
  EXPECT_EQ(ChooseDevices(0, {{{Exactly(1, {})}}}).outcome, ChoiceOutcome::kNone);
  EXPECT_EQ(ChooseDevices(2, {{{Exactly(2, {0})}}}).outcome, ChoiceOutcome::kNone);
  EXPECT_EQ(ChooseDevices(1, {{{Exactly(1, {0})}}, {{Exactly(1, {0})}}}).outcome,
            ChoiceOutcome::kNone);
  ChoiceRequest impossible = Exactly(1, {0});
  impossible.options[0].possible = false;
  EXPECT_EQ(ChooseDevices(1, {{{impossible}}}).outcome, ChoiceOutcome::kNone);
  ChoiceClaim many{{Exactly(2, {0, 1}), Exactly(1, {2})}};
  many.max_devices = 2;
  EXPECT_EQ(ChooseDevices(3, {many}).outcome, ChoiceOutcome::kNone);
  EXPECT_THAT(ChooseDevices(3, {many}).claims, IsEmpty());
}

TEST(DeviceChoice, TakesTheFirstUnlessALaterRequestCanOnlyDoWithThese) {
  EXPECT_THAT(ChooseDevices(3, {{{Exactly(2, {0, 1, 2})}}}).claims,
              ElementsAre(ElementsAre(ChosenRequest{0, {0, 1}})));
  EXPECT_THAT(ChooseDevices(3, {{{Exactly(1, {0, 1, 2})}}, {{Exactly(1, {0})}}}).claims,
              ElementsAre(ElementsAre(ChosenRequest{0, {1}}), ElementsAre(ChosenRequest{0, {0}})));
}

TEST(DeviceChoice, AConstraintTakesTheFirstValueThatSuffices) {
  ChoiceClaim claim{{Exactly(2, {0, 1, 2, 3, 4})}};
  claim.constraints.push_back({{{0, 0}}, {-1, 0, 1, 1, 0}});
  EXPECT_THAT(ChooseDevices(5, {claim}).claims, ElementsAre(ElementsAre(ChosenRequest{0, {1, 4}})));
  claim.requests[0].options[0].devices = {0, 1, 2, 3};
  EXPECT_THAT(ChooseDevices(5, {claim}).claims, ElementsAre(ElementsAre(ChosenRequest{0, {2, 3}})));
  claim.requests[0].options[0].devices = {0, 1, 2};
  EXPECT_EQ(ChooseDevices(5, {claim}).outcome, ChoiceOutcome::kNone);
}

TEST(DeviceChoice, AConstraintOfAnOptionThatIsNotTakenSaysNothing) {
  ChoiceClaim claim;
  claim.requests.push_back({{{true, 2, {0, 1}}, {true, 1, {0, 1}}}});
  claim.constraints.push_back({{{0, 0}}, {-1, -1}});
  EXPECT_THAT(ChooseDevices(2, {claim}).claims, ElementsAre(ElementsAre(ChosenRequest{1, {0}})));
}

TEST(DeviceChoice, GivesUpWhereThereIsTooMuchToLookAt) {
  // Twelve requests for one device, with two ways each to ask for it.
  ChoiceClaim claim;
  for (int i = 0; i < 12; ++i) claim.requests.push_back({{{true, 1, {0}}, {true, 1, {0}}}});
  EXPECT_EQ(ChooseDevices(1, {claim}, {}, 1000).outcome, ChoiceOutcome::kGaveUp);
  EXPECT_EQ(ChooseDevices(1, {claim}, {}, 1'000'000).outcome, ChoiceOutcome::kNone);
}

// Goes through every way to give every request one of its options and a set of its devices.
class Oracle {
 public:
  Oracle(const std::vector<ChoiceClaim>& claims, const ChoiceCounters& counters)
      : claims_(claims), counters_(counters) {}

  // The first options, in the order of requests, for which there are devices.
  std::optional<std::vector<size_t>> FirstOptions() {
    std::vector<size_t> options;
    if (!TryOptions(options)) return std::nullopt;
    return options;
  }

 private:
  [[nodiscard]] std::vector<std::pair<size_t, size_t>> Places() const {
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t c = 0; c < claims_.size(); ++c) {
      for (size_t r = 0; r < claims_[c].requests.size(); ++r) places.emplace_back(c, r);
    }
    return places;
  }
  bool TryOptions(std::vector<size_t>& options) {
    const auto places = Places();
    if (options.size() == places.size()) {
      sets_.clear();
      return TrySets(options);
    }
    const auto [c, r] = places[options.size()];
    for (size_t option = 0; option < claims_[c].requests[r].options.size(); ++option) {
      if (!claims_[c].requests[r].options[option].possible) continue;
      options.push_back(option);
      if (TryOptions(options)) return true;
      options.pop_back();
    }
    return false;
  }
  [[nodiscard]] const ChoiceOption& OptionAt(const std::pair<size_t, size_t>& place,
                                             size_t option) const {
    return claims_[place.first].requests[place.second].options[option];
  }
  bool TrySets(const std::vector<size_t>& options) {
    const auto places = Places();
    if (sets_.size() == places.size()) return Agree(options);
    const auto [c, r] = places[sets_.size()];
    const ChoiceOption& option = claims_[c].requests[r].options[options[sets_.size()]];
    const size_t all = option.devices.size();
    for (size_t mask = 0; mask < (size_t{1} << all); ++mask) {
      std::vector<int> set;
      for (size_t i = 0; i < all; ++i) {
        if ((mask >> i & 1) != 0) set.push_back(option.devices[i]);
      }
      // By admin access a device is taken from no other claim.
      const auto is_taken = [&](int device) {
        for (size_t i = 0; i < sets_.size(); ++i) {
          const bool apart =
              places[i].first != c && (option.admin || OptionAt(places[i], options[i]).admin);
          const bool has = std::find(sets_[i].begin(), sets_[i].end(), device) != sets_[i].end();
          if (has && !apart) return true;
        }
        return false;
      };
      if (static_cast<int64_t>(set.size()) != option.count ||
          std::any_of(set.begin(), set.end(), is_taken)) {
        continue;
      }
      sets_.push_back(set);
      const bool found = TrySets(options);
      sets_.pop_back();
      if (found) return true;
    }
    return false;
  }
  [[nodiscard]] bool Agree(const std::vector<size_t>& options) const {
    const auto places = Places();
    std::vector<int64_t> left = counters_.left;
    for (size_t i = 0; i < places.size() && !counters_.uses.empty(); ++i) {
      if (OptionAt(places[i], options[i]).admin) continue;
      for (const int device : sets_[i]) {
        for (const auto& [counter, amount] : counters_.uses[static_cast<size_t>(device)]) {
          if ((left[counter] -= amount) < 0) return false;
        }
      }
    }
    for (size_t c = 0; c < claims_.size(); ++c) {
      int64_t total = 0;
      for (size_t i = 0; i < places.size(); ++i) {
        if (places[i].first == c) total += static_cast<int64_t>(sets_[i].size());
      }
      if (total > claims_[c].max_devices) return false;
      for (const ChoiceConstraint& constraint : claims_[c].constraints) {
        std::vector<int> values;
        for (size_t i = 0; i < places.size(); ++i) {
          const std::pair<size_t, size_t> member(places[i].second, options[i]);
          if (places[i].first != c ||
              std::find(constraint.members.begin(), constraint.members.end(), member) ==
                  constraint.members.end()) {
            continue;
          }
          for (int device : sets_[i]) {
            values.push_back(constraint.values[static_cast<size_t>(device)]);
          }
        }
        for (size_t i = 0; i < values.size(); ++i) {
          const auto same = std::count(values.begin(), values.end(), values[i]);
          const auto want = constraint.distinct ? 1 : static_cast<int64_t>(values.size());
          if (values[i] < 0 || same != want) return false;
        }
      }
    }
    return true;
  }

  const std::vector<ChoiceClaim>& claims_;
  const ChoiceCounters& counters_;
  std::vector<std::vector<int>> sets_;  // by place
};

ChoiceCounters RandomCounters(Random& random, int device_count) {
  ChoiceCounters counters;
  counters.uses.resize(static_cast<size_t>(device_count));
  const auto count = static_cast<size_t>(random.Between(1, 2));
  for (size_t c = 0; c < count; ++c) {
    counters.left.push_back(random.Between(-1, 6));
    for (std::vector<ChoiceCounters::Use>& uses : counters.uses) {
      if (!random.OneIn(3)) uses.emplace_back(c, random.Between(1, 3));
    }
  }
  return counters;
}

std::vector<ChoiceClaim> RandomClaims(Random& random, int device_count, bool hard) {
  std::vector<ChoiceClaim> claims(static_cast<size_t>(random.Between(1, 3)));
  for (ChoiceClaim& claim : claims) {
    if (random.OneIn(6)) claim.max_devices = random.Between(1, 3);
    claim.requests.resize(static_cast<size_t>(random.Between(1, 2)));
    for (ChoiceRequest& request : claim.requests) {
      request.options.resize(static_cast<size_t>(random.OneIn(3) ? random.Between(2, 3) : 1));
      for (ChoiceOption& option : request.options) {
        for (int d = 0; d < device_count; ++d) {
          if (!random.OneIn(3)) option.devices.push_back(d);
        }
        option.count =
            random.OneIn(5) ? static_cast<int64_t>(option.devices.size()) : random.Between(1, 2);
        option.possible = !random.OneIn(12);
        option.admin = hard && random.OneIn(5);
      }
    }
    for (int64_t n = random.Between(0, 2); n > 0; --n) {
      ChoiceConstraint& constraint = claim.constraints.emplace_back();
      constraint.distinct = hard && random.OneIn(2);
      for (int d = 0; d < device_count; ++d) {
        constraint.values.push_back(static_cast<int>(random.Between(random.OneIn(4) ? -1 : 0, 1)));
      }
      for (size_t r = 0; r < claim.requests.size(); ++r) {
        for (size_t o = 0; o < claim.requests[r].options.size(); ++o) {
          if (!random.OneIn(3)) constraint.members.emplace_back(r, o);
        }
      }
    }
  }
  return claims;
}

// "" if the choice is one: what the outcome promises, checked without the search.
std::string WrongWith(const std::vector<ChoiceClaim>& claims, const ChoiceCounters& counters,
                      const DeviceChoice& choice) {
  if (choice.claims.size() != claims.size()) return "claims are missing";
  std::vector<int> taken;
  std::vector<int64_t> left = counters.left;
  for (size_t c = 0; c < claims.size(); ++c) {
    int64_t total = 0;
    std::set<int> own;
    for (size_t r = 0; r < claims[c].requests.size(); ++r) {
      const ChosenRequest& chosen = choice.claims[c].at(r);
      const ChoiceOption& option = claims[c].requests[r].options.at(chosen.option);
      if (static_cast<int64_t>(chosen.devices.size()) != option.count) return "another number";
      total += option.count;
      for (int device : chosen.devices) {
        if (std::find(option.devices.begin(), option.devices.end(), device) ==
            option.devices.end()) {
          return "a device that does not suit";
        }
        if (!own.insert(device).second) return "a device twice in a claim";
        if (option.admin) continue;
        taken.push_back(device);
        if (counters.uses.empty()) continue;
        for (const auto& [counter, amount] : counters.uses[static_cast<size_t>(device)]) {
          if ((left[counter] -= amount) < 0) return "more than a counter has";
        }
      }
    }
    if (total > claims[c].max_devices) return "too many devices";
    for (const ChoiceConstraint& constraint : claims[c].constraints) {
      std::multiset<int> values;
      for (const auto& [r, option] : constraint.members) {
        if (choice.claims[c][r].option != option) continue;
        for (int device : choice.claims[c][r].devices) {
          values.insert(constraint.values[static_cast<size_t>(device)]);
        }
      }
      const std::set<int> different(values.begin(), values.end());
      if (!values.empty() &&
          (*values.begin() < 0 || different.size() != (constraint.distinct ? values.size() : 1))) {
        return "a constraint is broken";
      }
    }
  }
  std::sort(taken.begin(), taken.end());
  if (std::adjacent_find(taken.begin(), taken.end()) != taken.end()) return "a device twice";
  return "";
}

// `hard`: with distinct values, admin access and counters.
void CheckAgainstOracle(uint64_t seed, bool hard) {
  Random random(seed);
  SCOPED_TRACE(random.Describe());
  int found = 0, used = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const int device_count = static_cast<int>(random.Between(1, 6));
    const std::vector<ChoiceClaim> claims = RandomClaims(random, device_count, hard);
    const ChoiceCounters counters =
        hard && !random.OneIn(4) ? RandomCounters(random, device_count) : ChoiceCounters();
    const auto devices = static_cast<size_t>(device_count);
    const DeviceChoice choice = ChooseDevices(devices, claims, counters);
    const std::optional<std::vector<size_t>> want = Oracle(claims, counters).FirstOptions();
    ASSERT_EQ(choice.outcome, want.has_value() ? ChoiceOutcome::kFound : ChoiceOutcome::kNone);
    // Whatever the bound, it is never wrong about it.
    const DeviceChoice hasty = ChooseDevices(devices, claims, counters, random.Between(0, 40));
    if (hasty.outcome != ChoiceOutcome::kGaveUp) {
      ASSERT_EQ(hasty.outcome, choice.outcome);
    }
    if (!want.has_value()) continue;
    ++found;
    used += !counters.uses.empty();
    ASSERT_EQ(WrongWith(claims, counters, choice), "");
    // Values that were fixed for one claim come before the options of the next.
    for (size_t r = 0; r < choice.claims[0].size(); ++r) {
      ASSERT_EQ(choice.claims[0][r].option, want->at(r));
    }
  }
  // Both answers occur often enough to be tested.
  EXPECT_GT(found, kRounds / 10);
  EXPECT_LT(found, kRounds - kRounds / 10);
  EXPECT_EQ(used > kRounds / 20, hard);
}

TEST(DeviceChoice, IsFoundIfAndOnlyIfThereIsOne) { CheckAgainstOracle(20261121, false); }

TEST(DeviceChoice, IsFoundIfAndOnlyIfThereIsOneOfPartitions) { CheckAgainstOracle(20261126, true); }

TEST(DeviceChoice, DevicesThatNothingTellsApartAreTriedOnce) {
  // 56 partitions of 8 devices, of which each has room for one: nine are too many.
  ChoiceCounters counters;
  ChoiceOption option = {true, 9, {}};
  for (int device = 0; device < 56; ++device) {
    option.devices.push_back(device);
    counters.uses.push_back({{static_cast<size_t>(device / 7), 1}});
  }
  counters.left.assign(8, 1);
  EXPECT_EQ(ChooseDevices(56, {{{{{option}}}}}, counters).outcome, ChoiceOutcome::kNone);
  option.count = 8;
  EXPECT_EQ(ChooseDevices(56, {{{{{option}}}}}, counters).outcome, ChoiceOutcome::kFound);
}

TEST(DeviceChoice, AdminAccessTakesNothing) {
  const ChoiceOption admin = {true, 2, {0, 1}, true};
  EXPECT_THAT(
      ChooseDevices(2, {{{{{admin}}}}, {{Exactly(2, {0, 1})}}}).claims,
      ElementsAre(ElementsAre(ChosenRequest{0, {0, 1}}), ElementsAre(ChosenRequest{0, {0, 1}})));
  // But one claim has a device once.
  EXPECT_EQ(ChooseDevices(2, {{{{{admin}}, Exactly(1, {0, 1})}}}).outcome, ChoiceOutcome::kNone);
}

}  // namespace
}  // namespace fairlead::state
