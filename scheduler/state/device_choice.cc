#include "scheduler/state/device_choice.h"

#include <algorithm>

#include "scheduler/state/device_backtracking.h"

namespace fairlead::state {
namespace {

constexpr int kFree = -1;  // the owner of a device that no request has

// Requests to which devices are dealt, with the devices that each may have. Copied before every
// step that may have to be taken back.
class Matching {
 public:
  explicit Matching(size_t device_count) : owner_(device_count, kFree) {}

  // Deals `count` of `devices` to one request more. False if they cannot be had, or if the work is
  // used up; it is of no use then.
  bool Add(std::vector<int> devices, int64_t count, int64_t& work) {
    if (count > static_cast<int64_t>(devices.size())) return false;
    const int request = static_cast<int>(suits_.size());
    suits_.push_back(std::move(devices));
    for (int64_t i = 0; i < count; ++i) {
      std::vector<bool> seen(owner_.size(), false);
      if (!TakeFree(request, work) && !TakeAnyWay(request, seen, work)) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<int> DealtTo(size_t request) const {
    std::vector<int> devices;
    for (size_t device = 0; device < owner_.size(); ++device) {
      if (owner_[device] == static_cast<int>(request)) devices.push_back(static_cast<int>(device));
    }
    return devices;
  }

 private:
  bool TakeFree(int request, int64_t& work) {
    for (const int device : suits_[static_cast<size_t>(request)]) {
      if (--work < 0) return false;
      int& owner = owner_[static_cast<size_t>(device)];
      if (owner != kFree) continue;
      owner = request;
      return true;
    }
    return false;
  }

  // From a request that can do with another one. Depth: each device is seen once.
  bool TakeAnyWay(int request, std::vector<bool>& seen, int64_t& work) {
    for (const int device : suits_[static_cast<size_t>(request)]) {
      if (--work < 0) return false;
      const auto at = static_cast<size_t>(device);
      const int owner = owner_[at];
      if (owner == request || seen[at]) continue;
      seen[at] = true;
      if (owner != kFree && !TakeAnyWay(owner, seen, work)) continue;
      owner_[at] = request;
      return true;
    }
    return false;
  }

  std::vector<std::vector<int>> suits_;  // by request
  std::vector<int> owner_;               // by device: a request
};

class Search {
 public:
  Search(size_t device_count, const std::vector<ChoiceClaim>& claims, int64_t max_work)
      : claims_(claims), work_(max_work), options_(claims.size()), result_(device_count) {
    for (size_t i = 0; i < claims.size(); ++i) options_[i].resize(claims[i].requests.size());
  }

  DeviceChoice Run(size_t device_count) {
    DeviceChoice out;
    if (!FromClaim(0, Matching(device_count))) {
      out.outcome = work_ < 0 ? ChoiceOutcome::kGaveUp : ChoiceOutcome::kNone;
      return out;
    }
    out.outcome = ChoiceOutcome::kFound;
    size_t request = 0;
    for (const std::vector<size_t>& chosen : options_) {
      std::vector<ChosenRequest>& claim = out.claims.emplace_back();
      for (const size_t option : chosen) claim.push_back({option, result_.DealtTo(request++)});
    }
    return out;
  }

 private:
  bool FromClaim(size_t claim, const Matching& dealt) {
    if (claim == claims_.size()) {
      result_ = dealt;
      return true;
    }
    return FromRequest(claim, 0, dealt);
  }

  bool FromRequest(size_t claim, size_t request, const Matching& dealt) {
    const std::vector<ChoiceRequest>& requests = claims_[claim].requests;
    if (request == requests.size()) {
      std::vector<int> values;
      return FromConstraint(claim, values, dealt);
    }
    for (size_t option = 0; option < requests[request].options.size(); ++option) {
      if (!requests[request].options[option].possible) continue;
      if (--work_ < 0) return false;
      options_[claim][request] = option;
      if (FromRequest(claim, request + 1, dealt)) return true;
    }
    return false;
  }

  // `values`: of the constraints before; any where a constraint covers no option that is taken.
  bool FromConstraint(size_t claim, std::vector<int>& values, const Matching& dealt) {
    const std::vector<ChoiceConstraint>& constraints = claims_[claim].constraints;
    if (values.size() == constraints.size()) return Deal(claim, values, dealt);
    for (const int value : ValuesOf(claim, constraints[values.size()])) {
      if (--work_ < 0) return false;
      values.push_back(value);
      if (FromConstraint(claim, values, dealt)) return true;
      values.pop_back();
    }
    return false;
  }

  [[nodiscard]] bool Covers(const ChoiceConstraint& constraint, size_t claim,
                            size_t request) const {
    return std::find(constraint.members.begin(), constraint.members.end(),
                     std::make_pair(request, options_[claim][request])) != constraint.members.end();
  }

  [[nodiscard]] const ChoiceOption& Taken(size_t claim, size_t request) const {
    return claims_[claim].requests[request].options[options_[claim][request]];
  }

  // That all requests that it covers could agree on, by the first request's devices.
  [[nodiscard]] std::vector<int> ValuesOf(size_t claim, const ChoiceConstraint& constraint) {
    for (size_t request = 0; request < claims_[claim].requests.size(); ++request) {
      if (!Covers(constraint, claim, request) || Taken(claim, request).count == 0) continue;
      std::vector<int> values;
      for (const int device : Taken(claim, request).devices) {
        --work_;
        const int value = constraint.values[static_cast<size_t>(device)];
        if (value >= 0 && std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(value);
        }
      }
      return values;
    }
    return {0};
  }

  bool Deal(size_t claim, const std::vector<int>& values, const Matching& dealt) {
    const ChoiceClaim& asked = claims_[claim];
    Matching more = dealt;
    int64_t total = 0;
    for (size_t request = 0; request < asked.requests.size(); ++request) {
      const ChoiceOption& option = Taken(claim, request);
      total += option.count;
      std::vector<int> devices = option.devices;
      for (size_t i = 0; i < values.size(); ++i) {
        const ChoiceConstraint& constraint = asked.constraints[i];
        if (!Covers(constraint, claim, request)) continue;
        work_ -= static_cast<int64_t>(devices.size());
        devices.erase(std::remove_if(devices.begin(), devices.end(),
                                     [&](int device) {
                                       return constraint.values[static_cast<size_t>(device)] !=
                                              values[i];
                                     }),
                      devices.end());
      }
      if (total > asked.max_devices || !more.Add(std::move(devices), option.count, work_)) {
        return false;
      }
    }
    return FromClaim(claim + 1, more);
  }

  const std::vector<ChoiceClaim>& claims_;
  int64_t work_;
  std::vector<std::vector<size_t>> options_;  // by claim and request: which is tried
  Matching result_;
};

}  // namespace

DeviceChoice ChooseDevices(size_t device_count, const std::vector<ChoiceClaim>& claims,
                           const ChoiceCounters& counters, int64_t max_work) {
  if (NeedsBacktracking(claims, counters)) {
    return ChooseByBacktracking(device_count, claims, counters, max_work);
  }
  return Search(device_count, claims, max_work).Run(device_count);
}

}  // namespace fairlead::state
