#include "scheduler/state/device_placement.h"

#include <algorithm>
#include <map>

#include "scheduler/state/device_selector.h"

namespace fairlead::state {
namespace {

// Steps for one answer of CountClaims, which is asked for every node when a shape becomes known.
constexpr int64_t kMaxCountWork = 2'000;
// On a node with more devices (partitions, mostly) claims are not counted one by one.
constexpr int64_t kMaxCountedDevices = 32;

class Question {
 public:
  Question(const DeviceAllocator& book, absl::string_view node, CanHave can_have)
      : Question(book, node) {
    for (const NodeDevice& device : devices_) {
      free_.push_back(can_have(device));
      seen_.push_back(true);
    }
    ReadCounters(node);
  }
  // About these devices and views alone, whatever they use of counters: that was decided
  // elsewhere.
  Question(const DeviceAllocator& book, absl::string_view node,
           const std::vector<std::string>& keys)
      : Question(book, node) {
    const auto among = [&](const NodeDevice& device, bool view) {
      return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
        return DeviceOfKey(key) == device.key && (key.size() > device.key.size()) == view;
      });
    };
    for (const NodeDevice& device : devices_) {
      free_.push_back(among(device, false));
      seen_.push_back(among(device, true));
    }
  }

  void AddClaim(const ClaimShape& shape) {
    ChoiceClaim& claim = claims_.emplace_back();
    claim.max_devices = model::kMaxClaimDevices;
    for (const std::vector<ShapeOption>& options : shape.requests) {
      ChoiceRequest& request = claim.requests.emplace_back();
      for (const ShapeOption& option : options) request.options.push_back(MakeOption(option));
    }
    for (const ShapeConstraint& constraint : shape.constraints) {
      claim.constraints.push_back(
          {constraint.members, ValuesOf(constraint.attribute), constraint.distinct});
    }
  }

  void AddDemand(const std::string& demand, int64_t count) {
    claims_.emplace_back().requests.push_back({{MakeOption({demand, false, count})}});
  }

  [[nodiscard]] DeviceChoice Ask(int64_t max_work = kMaxChoiceWork) const {
    return ChooseDevices(devices_.size(), claims_, counters_, max_work);
  }

  // Of the `at`th claim.
  [[nodiscard]] std::vector<std::string> Keys(size_t at,
                                              const std::vector<ChosenRequest>& chosen) const {
    std::vector<std::pair<int, bool>> all;
    for (size_t r = 0; r < chosen.size(); ++r) {
      const bool view = claims_[at].requests[r].options[chosen[r].option].admin;
      for (const int device : chosen[r].devices) all.emplace_back(device, view);
    }
    std::sort(all.begin(), all.end());
    std::vector<std::string> keys;
    keys.reserve(all.size());
    for (const auto& [device, view] : all) {
      keys.push_back(view ? ViewKey(Device(device).key, "") : Device(device).key);
    }
    return keys;
  }

  [[nodiscard]] const NodeDevice& Device(int index) const {
    return devices_[static_cast<size_t>(index)];
  }

 private:
  Question(const DeviceAllocator& book, absl::string_view node)
      : book_(book), devices_(book.DevicesOf(node)), all_known_(book.KnowsAll(node)) {}

  void ReadCounters(absl::string_view node) {
    counters_.left = book_.CountersOf(node);
    if (counters_.left.empty()) return;
    for (size_t i = 0; i < devices_.size(); ++i) {
      counters_.uses.push_back(devices_[i].uses);
      if (free_[i] || book_.HolderOf(devices_[i].key) == nullptr) continue;
      for (const auto& [counter, amount_milli] : devices_[i].uses) {
        int64_t& left = counters_.left[counter];
        left = model::SaturatingAdd(left, -amount_milli);
      }
    }
  }

  ChoiceOption MakeOption(const ShapeOption& asked) {
    ChoiceOption option;
    option.count = asked.count;
    option.admin = asked.admin;
    const std::vector<bool>& free = asked.admin ? seen_ : free_;
    int64_t matching = 0;
    const size_t demand = book_.IndexOf(asked.demand);
    for (size_t i = 0; demand < kMaxDemands && i < devices_.size(); ++i) {
      if (!devices_[i].suits[demand]) continue;
      ++matching;
      if (free[i] && devices_[i].device.unusable.empty() && !devices_[i].barred[demand]) {
        option.devices.push_back(static_cast<int>(i));
      }
    }
    if (asked.all) {
      option.count = matching;
      option.possible = all_known_ && matching > 0;
    }
    return option;
  }

  // Equal values have equal numbers.
  [[nodiscard]] std::vector<int> ValuesOf(const std::string& attribute) const {
    std::vector<const model::DeviceAttribute*> known;
    std::vector<int> values;
    for (const NodeDevice& device : devices_) {
      const model::DeviceAttribute* value = FindAttribute(device.driver, device.device, attribute);
      if (value == nullptr) {
        values.push_back(-1);
        continue;
      }
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const auto* other) { return *other == *value; });
      values.push_back(static_cast<int>(same - known.begin()));
      if (same == known.end()) known.push_back(value);
    }
    return values;
  }

  const DeviceAllocator& book_;
  const std::vector<NodeDevice>& devices_;
  bool all_known_;
  std::vector<bool> free_, seen_;  // by device: can be had; by admin access
  ChoiceCounters counters_;
  std::vector<ChoiceClaim> claims_;
};

}  // namespace

PlacedDevices PlaceDevices(const DeviceAllocator& book, absl::string_view node,
                           const model::ResourceList& requests, CanHave can_have) {
  PlacedDevices out;
  Question question(book, node, can_have);
  std::map<std::string, int64_t> plain;
  for (const auto& [name, amount] : requests) {
    if (IsDemand(name) && !IsShape(name)) plain[name] += amount;
  }
  for (const auto& [name, amount] : requests) {
    const ClaimShape* shape = IsShape(name) ? book.FindShape(name) : nullptr;
    if (shape == nullptr) continue;
    const model::ResourceList demands = ShapeDemands(*shape);
    for (int64_t i = 0; i < amount / shape->weight; ++i) {
      question.AddClaim(*shape);
      out.claims.emplace_back(name, PlacedDevices::Keys{});
      for (const auto& [demand, count] : demands) plain[demand] -= count;
    }
  }
  for (const auto& [demand, count] : plain) {
    if (count <= 0) continue;
    question.AddDemand(demand, count);
    out.demands.emplace_back(demand, PlacedDevices::Keys{});
  }
  const DeviceChoice choice = question.Ask();
  out.outcome = choice.outcome;
  for (size_t i = 0; i < choice.claims.size(); ++i) {
    auto& entry = i < out.claims.size() ? out.claims[i] : out.demands[i - out.claims.size()];
    entry.second = question.Keys(i, choice.claims[i]);
  }
  return out;
}

int64_t CountClaims(const DeviceAllocator& book, absl::string_view node, const ClaimShape& shape) {
  const auto most = static_cast<int64_t>(book.DevicesOf(node).size());
  Question question(book, node, [](const NodeDevice&) { return true; });
  if (most > 0 && IsOfAdmins(shape)) {
    question.AddClaim(shape);
    return question.Ask(kMaxCountWork).outcome == ChoiceOutcome::kNone ? 0 : kManyClaims;
  }
  for (int64_t count = 0; count < most; ++count) {
    question.AddClaim(shape);
    const ChoiceOutcome outcome = question.Ask(kMaxCountWork).outcome;
    if (outcome == ChoiceOutcome::kNone) return count;
    if (outcome == ChoiceOutcome::kGaveUp || most > kMaxCountedDevices) return most;
  }
  return most;
}

std::optional<std::vector<DealtRequest>> DealDevices(const DeviceAllocator& book,
                                                     absl::string_view node,
                                                     const model::ResourceClaim& claim,
                                                     const std::vector<std::string>& devices) {
  Question question(book, node, devices);
  question.AddClaim(ShapeOf(claim));
  const DeviceChoice choice = question.Ask();
  if (choice.outcome != ChoiceOutcome::kFound) return std::nullopt;
  std::vector<DealtRequest> dealt;
  size_t total = 0;
  for (const ChosenRequest& request : choice.claims.front()) {
    DealtRequest& to = dealt.emplace_back();
    to.option = request.option;
    for (const int device : request.devices) to.devices.push_back(&question.Device(device));
    total += to.devices.size();
  }
  if (total != devices.size()) return std::nullopt;
  return dealt;
}

}  // namespace fairlead::state
