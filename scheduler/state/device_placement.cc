#include "scheduler/state/device_placement.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "scheduler/state/device_selector.h"

namespace fairlead::state {
namespace {

// Steps for one answer of CountClaims, which is asked for every node when a shape becomes known.
constexpr int64_t kMaxCountWork = 2'000;
// On a node with more devices (partitions, mostly) claims are not counted one by one.
constexpr int64_t kMaxCountedDevices = 32;

bool HasAlternatives(const ClaimShape& shape) {
  return std::any_of(shape.requests.begin(), shape.requests.end(),
                     [](const auto& request) { return request.options.size() > 1; });
}

class Question {
 public:
  Question(const DeviceAllocator& book, absl::string_view node)
      : book_(book),
        devices_(book.inventory().DevicesOf(node)),
        all_known_(book.inventory().KnowsAll(node)),
        seen_(devices_.size(), true) {
    FindPools();
  }
  // About these devices and views alone, whatever they use of counters: that was decided
  // elsewhere.
  Question(const DeviceAllocator& book, absl::string_view node,
           const std::vector<std::string>& keys)
      : Question(book, node) {
    given_ = true;
    const auto among = [&](const NodeDevice& device, bool view) {
      return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
        return DeviceOfKey(key) == device.key && (key.size() > device.key.size()) == view;
      });
    };
    for (size_t i = 0; i < devices_.size(); ++i) {
      free_.push_back(among(*devices_[i], false));
      seen_[i] = among(*devices_[i], true);
    }
  }

  // What is added from now on can have these.
  void SetFree(CanHave can_have) {
    free_.clear();
    for (const NodeDevice* device : devices_) free_.push_back(can_have(*device));
    std::erase_if(held_, [&](const NodeDevice* device) { return can_have(*device); });
  }

  void AllowTainted() { tainted_too_ = true; }

  // Of these, partitions are left out for which nothing is left.
  void DropUsedUp() {
    ReadCounters();
    for (size_t i = 0; i < counters_.uses.size(); ++i) {
      if (std::any_of(counters_.uses[i].begin(), counters_.uses[i].end(),
                      [&](const auto& use) { return use.second > counters_.left[use.first]; })) {
        free_[i] = false;
      }
    }
  }

  // What a pod requests by claims: those with shapes, then plain demands. Returns their names.
  PlacedDevices Add(const model::ResourceList& requests);

  void AddClaim(const ClaimShape& shape) {
    ChoiceClaim& claim = claims_.emplace_back();
    claim.max_devices = model::kMaxClaimDevices;
    for (const auto& [first_available, options] : shape.requests) {
      ChoiceRequest& request = claim.requests.emplace_back();
      for (const ShapeOption& option : options) request.options.push_back(MakeOption(option));
      if (!given_ && !all_known_ && HasAll(options)) {
        for (ChoiceOption& option : request.options) option.possible = false;
      }
    }
    for (const ShapeConstraint& constraint : shape.constraints) {
      claim.constraints.push_back(
          {constraint.members, ValuesOf(constraint.attribute), constraint.distinct});
    }
  }

  void AddDemand(const std::string& demand, int64_t count) {
    claims_.emplace_back().requests.push_back({{MakeOption({demand, false, count})}});
  }

  // After all is added: partitions have what is left by the devices that nothing added can have.
  void ReadCounters() {
    counters_ = {};
    if (pools_.empty()) return;
    std::map<const DevicePool*, size_t> first;  // by pool: where its counters begin
    for (const DevicePool* pool : pools_) {
      first[pool] = counters_.left.size();
      counters_.left.insert(counters_.left.end(), pool->counters_milli.begin(),
                            pool->counters_milli.end());
    }
    for (const NodeDevice* device : held_) {
      for (const auto& [counter, amount_milli] : device->uses) {
        int64_t& left = counters_.left[first[device->of] + counter];
        left = model::SaturatingAdd(left, -amount_milli);
      }
    }
    counters_.uses.resize(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      for (const auto& [counter, amount_milli] : devices_[i]->uses) {
        counters_.uses[i].emplace_back(first[devices_[i]->of] + counter, amount_milli);
      }
    }
  }
  [[nodiscard]] bool HasCounters() const { return !pools_.empty(); }

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
    return *devices_[static_cast<size_t>(index)];
  }

 private:
  static bool HasAll(const std::vector<ShapeOption>& options) {
    return std::any_of(options.begin(), options.end(),
                       [](const ShapeOption& option) { return option.all; });
  }

  void FindPools() {
    for (const NodeDevice* device : devices_) {
      if (!device->uses.empty() && (pools_.empty() || pools_.back() != device->of)) {
        pools_.push_back(device->of);
      }
    }
    for (const DevicePool* pool : pools_) {
      std::copy_if(pool->partitions.begin(), pool->partitions.end(), std::back_inserter(held_),
                   [&](const auto* device) { return book_.HolderOf(device->key) != nullptr; });
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
      if (!devices_[i]->suits[demand]) continue;
      ++matching;
      if (free[i] && devices_[i]->device.MayBeGiven() &&
          (tainted_too_ || !devices_[i]->barred[demand])) {
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
    for (const NodeDevice* device : devices_) {
      const model::DeviceAttribute* value =
          FindAttribute(device->driver, device->device, attribute);
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
  const std::vector<const NodeDevice*>& devices_;
  bool all_known_;
  bool given_ = false;             // what the devices are for was decided elsewhere
  bool tainted_too_ = false;       // devices count whatever their taints are
  std::vector<bool> free_, seen_;  // by device: can be had; by admin access
  // Whose partitions the node can use; they are in the order of their pools.
  std::vector<const DevicePool*> pools_;
  // Partitions of these, on any node, that claims hold and that nothing added can have.
  std::vector<const NodeDevice*> held_;
  ChoiceCounters counters_;
  std::vector<ChoiceClaim> claims_;
};

PlacedDevices Question::Add(const model::ResourceList& requests) {
  PlacedDevices added;
  std::map<std::string, int64_t> plain;
  for (const auto& [name, amount] : requests) {
    if (IsDemand(name) && !IsShape(name)) plain[name] += amount;
  }
  for (const bool with_alternatives : {true, false}) {
    for (const auto& [name, amount] : requests) {
      const ClaimShape* shape = IsShape(name) ? book_.FindShape(name) : nullptr;
      if (shape == nullptr || HasAlternatives(*shape) != with_alternatives) continue;
      const model::ResourceList demands = ShapeDemands(*shape);
      for (int64_t i = 0; i < amount / shape->weight; ++i) {
        AddClaim(*shape);
        added.claims.push_back({name});
        for (const auto& [demand, count] : demands) plain[demand] -= count;
      }
    }
  }
  for (const auto& [demand, count] : plain) {
    if (count <= 0) continue;
    AddDemand(demand, count);
    added.demands.emplace_back(demand, PlacedDevices::Keys{});
  }
  return added;
}

bool Got(const PlacedDevices& placed, const NodeDevice& device) {
  const auto has = [&](const PlacedDevices::Keys& keys) {
    return std::find(keys.begin(), keys.end(), device.key) != keys.end();
  };
  return std::any_of(placed.claims.begin(), placed.claims.end(),
                     [&](const auto& claim) { return has(claim.devices); }) ||
         std::any_of(placed.demands.begin(), placed.demands.end(),
                     [&](const auto& demand) { return has(demand.second); });
}

}  // namespace

PlacedDevices PlaceDevices(const DeviceAllocator& book, absl::string_view node,
                           const model::ResourceList& requests, CanHave can_have,
                           const PromisedBesides* besides) {
  Question question(book, node);
  question.SetFree(can_have);
  if (besides != nullptr) question.DropUsedUp();
  PlacedDevices out = question.Add(requests);
  if (besides != nullptr) {
    question.SetFree(besides->can_have);
    question.Add(besides->demands);
  }
  question.ReadCounters();
  const DeviceChoice choice = question.Ask();
  out.outcome = choice.outcome;
  if (choice.outcome != ChoiceOutcome::kFound) return out;
  const size_t claims = out.claims.size();
  for (size_t i = 0; i < claims; ++i) {
    out.claims[i].devices = question.Keys(i, choice.claims[i]);
    for (const ChosenRequest& request : choice.claims[i]) {
      out.claims[i].options.push_back(request.option);
    }
  }
  for (size_t i = 0; i < out.demands.size(); ++i) {
    out.demands[i].second = question.Keys(claims + i, choice.claims[claims + i]);
  }
  // What the promised pods wait for uses counters still.
  if (besides != nullptr && question.HasCounters()) {
    const auto chosen = [&](const NodeDevice& device) {
      return can_have(device) && Got(out, device);
    };
    out.outcome = PlaceDevices(book, node, requests, chosen).outcome;
  }
  return out;
}

int64_t CountClaims(const DeviceAllocator& book, absl::string_view node, const ClaimShape& shape) {
  const auto most = static_cast<int64_t>(book.inventory().DevicesOf(node).size());
  Question question(book, node);
  question.SetFree([](const NodeDevice&) { return true; });
  question.AllowTainted();
  question.ReadCounters();
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
