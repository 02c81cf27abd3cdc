#include "scheduler/state/device_backtracking.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fairlead::state {
namespace {

bool UsesCounters(const ChoiceCounters& counters, int device) {
  return !counters.uses.empty() && !counters.uses[static_cast<size_t>(device)].empty();
}

class Backtracking {
 public:
  Backtracking(size_t device_count, const std::vector<ChoiceClaim>& claims,
               const ChoiceCounters& counters, int64_t max_work)
      : claims_(claims),
        counters_(counters),
        work_(max_work),
        left_(counters.left),
        holders_(device_count, kNoPlace),
        kinds_(device_count) {
    for (size_t c = 0; c < claims.size(); ++c) {
      for (size_t r = 0; r < claims[c].requests.size(); ++r) places_.push_back({c, r});
      members_.emplace_back(claims[c].constraints.size());
    }
    options_.resize(places_.size());
    taken_.resize(places_.size());
    FindKinds(device_count);
  }

  DeviceChoice Run() {
    DeviceChoice out;
    if (!FromOption(0)) {
      out.outcome = work_ < 0 ? ChoiceOutcome::kGaveUp : ChoiceOutcome::kNone;
      return out;
    }
    out.outcome = ChoiceOutcome::kFound;
    out.claims.resize(claims_.size());
    for (size_t place = 0; place < places_.size(); ++place) {
      out.claims[places_[place].claim].push_back({options_[place], taken_[place]});
    }
    return out;
  }

 private:
  static constexpr int kNoPlace = -1;
  struct Place {
    size_t claim, request;
  };

  // Devices of one kind are in the same options, have the same values and use the same counters.
  void FindKinds(size_t device_count) {
    std::map<std::vector<int64_t>, int> known;
    std::vector<std::vector<int64_t>> traits(device_count);
    for (size_t device = 0; device < counters_.uses.size(); ++device) {
      for (const auto& [counter, amount] : counters_.uses[device]) {
        traits[device].push_back(static_cast<int64_t>(counter));
        traits[device].push_back(amount);
      }
      traits[device].push_back(-1);
    }
    for (const ChoiceClaim& claim : claims_) {
      for (const ChoiceConstraint& constraint : claim.constraints) {
        for (size_t i = 0; i < device_count; ++i) traits[i].push_back(constraint.values[i]);
      }
      for (const ChoiceRequest& request : claim.requests) {
        for (const ChoiceOption& option : request.options) {
          for (std::vector<int64_t>& of : traits) of.push_back(0);
          for (const int device : option.devices) traits[static_cast<size_t>(device)].back() = 1;
        }
      }
    }
    for (size_t device = 0; device < device_count; ++device) {
      const int next = static_cast<int>(known.size());
      kinds_[device] = known.try_emplace(std::move(traits[device]), next).first->second;
    }
  }

  [[nodiscard]] const ChoiceOption& OptionAt(size_t place) const {
    const Place& at = places_[place];
    return claims_[at.claim].requests[at.request].options[options_[place]];
  }

  bool FromOption(size_t place) {
    if (place == places_.size()) return IsFewEnough() && FromDevice(0, 0);
    const Place& at = places_[place];
    const std::vector<ChoiceOption>& options = claims_[at.claim].requests[at.request].options;
    for (size_t option = 0; option < options.size(); ++option) {
      const ChoiceOption& tried = options[option];
      if (!tried.possible || tried.count > static_cast<int64_t>(tried.devices.size())) continue;
      if (--work_ < 0) return false;
      options_[place] = option;
      if (FromOption(place + 1)) return true;
    }
    return false;
  }

  [[nodiscard]] bool IsFewEnough() const {
    std::vector<int64_t> totals(claims_.size());
    for (size_t place = 0; place < places_.size(); ++place) {
      int64_t& total = totals[places_[place].claim];
      total += OptionAt(place).count;
      if (total > claims_[places_[place].claim].max_devices) return false;
    }
    return true;
  }

  // The next device of a place is at `from` of its option's devices, or behind.
  bool FromDevice(size_t place, size_t from) {
    if (place == places_.size()) return true;
    const ChoiceOption& option = OptionAt(place);
    std::vector<int>& taken = taken_[place];
    if (static_cast<int64_t>(taken.size()) == option.count) return FromDevice(place + 1, 0);
    std::vector<int> failed;  // kinds
    const size_t missing = static_cast<size_t>(option.count) - taken.size();
    for (size_t i = from; i + missing <= option.devices.size(); ++i) {
      const int device = option.devices[i];
      const int kind = kinds_[static_cast<size_t>(device)];
      if (--work_ < 0) return false;
      if (std::find(failed.begin(), failed.end(), kind) != failed.end()) continue;
      if (!Take(place, device)) continue;
      if (FromDevice(place, i + 1)) return true;
      PutBack(place, device);
      failed.push_back(kind);
    }
    return false;
  }

  [[nodiscard]] bool Covers(const ChoiceConstraint& constraint, size_t place) const {
    const auto member = std::make_pair(places_[place].request, options_[place]);
    return std::find(constraint.members.begin(), constraint.members.end(), member) !=
           constraint.members.end();
  }

  [[nodiscard]] bool IsFree(size_t place, int device) const {
    if (!OptionAt(place).admin && holders_[static_cast<size_t>(device)] != kNoPlace) return false;
    for (size_t other = 0; other <= place; ++other) {
      if (places_[other].claim != places_[place].claim) continue;
      const std::vector<int>& taken = taken_[other];
      if (std::find(taken.begin(), taken.end(), device) != taken.end()) return false;
    }
    return true;
  }

  [[nodiscard]] bool Agrees(size_t place, int device) const {
    const size_t claim = places_[place].claim;
    const std::vector<ChoiceConstraint>& constraints = claims_[claim].constraints;
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (!Covers(constraints[i], place)) continue;
      const int value = constraints[i].values[static_cast<size_t>(device)];
      const std::vector<int>& values = members_[claim][i];
      if (value < 0) return false;
      const bool known = std::find(values.begin(), values.end(), value) != values.end();
      if (constraints[i].distinct ? known : !known && !values.empty()) return false;
    }
    return true;
  }

  bool Take(size_t place, int device) {
    if (!IsFree(place, device) || !Agrees(place, device)) return false;
    if (!OptionAt(place).admin) {
      if (UsesCounters(counters_, device)) {
        const auto& uses = counters_.uses[static_cast<size_t>(device)];
        if (std::any_of(uses.begin(), uses.end(),
                        [&](const auto& use) { return left_[use.first] < use.second; })) {
          return false;
        }
        for (const auto& [counter, amount] : uses) left_[counter] -= amount;
      }
      holders_[static_cast<size_t>(device)] = static_cast<int>(place);
    }
    EachValue(place, device, [](std::vector<int>& values, int value) { values.push_back(value); });
    taken_[place].push_back(device);
    return true;
  }

  void PutBack(size_t place, int device) {
    taken_[place].pop_back();
    EachValue(place, device, [](std::vector<int>& values, int) { values.pop_back(); });
    if (OptionAt(place).admin) return;
    holders_[static_cast<size_t>(device)] = kNoPlace;
    if (!UsesCounters(counters_, device)) return;
    for (const auto& [counter, amount] : counters_.uses[static_cast<size_t>(device)]) {
      left_[counter] += amount;
    }
  }

  template <typename Change>
  void EachValue(size_t place, int device, Change change) {
    const size_t claim = places_[place].claim;
    const std::vector<ChoiceConstraint>& constraints = claims_[claim].constraints;
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (!Covers(constraints[i], place)) continue;
      change(members_[claim][i], constraints[i].values[static_cast<size_t>(device)]);
    }
  }

  const std::vector<ChoiceClaim>& claims_;
  const ChoiceCounters& counters_;
  int64_t work_;
  std::vector<int64_t> left_;                           // by counter
  std::vector<Place> places_;                           // the requests of all claims
  std::vector<size_t> options_;                         // by place: which is tried
  std::vector<std::vector<int>> taken_;                 // by place: devices
  std::vector<int> holders_;                            // by device: the place that has it
  std::vector<int> kinds_;                              // by device
  std::vector<std::vector<std::vector<int>>> members_;  // by claim and constraint: values so far
};

}  // namespace

bool NeedsBacktracking(const std::vector<ChoiceClaim>& claims, const ChoiceCounters& counters) {
  const auto option_needs = [&](const ChoiceOption& option) {
    return option.admin || std::any_of(option.devices.begin(), option.devices.end(),
                                       [&](int device) { return UsesCounters(counters, device); });
  };
  return std::any_of(claims.begin(), claims.end(), [&](const ChoiceClaim& claim) {
    return std::any_of(claim.constraints.begin(), claim.constraints.end(),
                       [](const auto& constraint) { return constraint.distinct; }) ||
           std::any_of(claim.requests.begin(), claim.requests.end(), [&](const auto& request) {
             return std::any_of(request.options.begin(), request.options.end(), option_needs);
           });
  });
}

DeviceChoice ChooseByBacktracking(size_t device_count, const std::vector<ChoiceClaim>& claims,
                                  const ChoiceCounters& counters, int64_t max_work) {
  return Backtracking(device_count, claims, counters, max_work).Run();
}

}  // namespace fairlead::state
