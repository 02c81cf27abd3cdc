#include "scheduler/model/resources.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "scheduler/model/api_names.h"

namespace fairlead::model {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

bool NameLess(const std::pair<std::string, int64_t>& entry, absl::string_view name) {
  return entry.first < name;
}

std::string FormatMilli(int64_t milli) {
  const char* sign = milli < 0 ? "-" : "";
  const uint64_t magnitude =
      milli < 0 ? 0 - static_cast<uint64_t>(milli) : static_cast<uint64_t>(milli);
  std::string text = absl::StrCat(sign, magnitude / 1000);
  uint64_t rest = magnitude % 1000;
  if (rest == 0) return text;
  std::string digits = absl::StrFormat("%03d", rest);
  digits.erase(digits.find_last_not_of('0') + 1);
  return absl::StrCat(text, ".", digits);
}

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kSuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  // Integer arithmetic in tenths: a value that is not whole shows one digit after the point.
  const char* sign = bytes < 0 ? "-" : "";
  uint64_t magnitude = bytes < 0 ? 0 - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
  size_t suffix = 0;
  uint64_t unit = 1;
  while (suffix + 1 < std::size(kSuffixes) && magnitude / unit >= 1024) {
    unit *= 1024;
    ++suffix;
  }
  const uint64_t whole = magnitude / unit;
  const uint64_t tenths = (magnitude % unit) * 10 / unit;
  if (tenths == 0) return absl::StrCat(sign, whole, kSuffixes[suffix]);
  return absl::StrCat(sign, whole, ".", tenths, kSuffixes[suffix]);
}

}  // namespace

int64_t BaseUnitsPerUnit(absl::string_view name) {
  const bool gpu =
      name == kGpuName || name == kAmdGpuName || absl::StartsWith(name, kGpuModelPrefix);
  return gpu || name == kCpuName ? 1000 : 1;
}

int64_t Get(const ResourceList& list, absl::string_view name) {
  auto it = std::lower_bound(list.begin(), list.end(), name, NameLess);
  return it != list.end() && it->first == name ? it->second : 0;
}

void Set(ResourceList& list, absl::string_view name, int64_t amount) {
  auto it = std::lower_bound(list.begin(), list.end(), name, NameLess);
  if (it != list.end() && it->first == name) {
    it->second = amount;
  } else {
    list.emplace(it, std::string(name), amount);
  }
}

void Add(ResourceList& list, absl::string_view name, int64_t amount) {
  Set(list, name, SaturatingAdd(Get(list, name), amount));
}

void AddAll(ResourceList& list, const ResourceList& other) {
  for (const auto& [name, amount] : other) Add(list, name, amount);
}

void MaxAll(ResourceList& list, const ResourceList& other) {
  for (const auto& [name, amount] : other) Set(list, name, std::max(Get(list, name), amount));
}

std::string FormatAmount(absl::string_view name, int64_t base_units) {
  if (BaseUnitsPerUnit(name) == 1000) return FormatMilli(base_units);
  if (name == kMemoryName || name == kEphemeralStorageName) return FormatBytes(base_units);
  return absl::StrCat(base_units);
}

std::string FormatQuantity(absl::string_view name, int64_t base_units) {
  if (BaseUnitsPerUnit(name) == 1000) {
    if (base_units % 1000 == 0) return absl::StrCat(base_units / 1000);
    return absl::StrCat(base_units, "m");
  }
  return absl::StrCat(base_units);
}

ResourceNames::ResourceNames() {
  for (const char* name : {kCpuName, kMemoryName, kGpuName, kPodsName, kEphemeralStorageName}) {
    InternForEver(name);
  }
}

ResourceIndex ResourceNames::Add(absl::string_view name) {
  ResourceIndex index;
  if (free_.empty()) {
    index = static_cast<ResourceIndex>(names_.size());
    names_.emplace_back();
    for_ever_.push_back(false);
  } else {
    index = free_.back();
    free_.pop_back();
  }
  names_[index] = std::string(name);
  index_.emplace(std::string(name), index);
  ++used_;
  return index;
}

ResourceIndex ResourceNames::InternBelow(size_t bound, absl::string_view name) {
  auto it = index_.find(name);
  if (it != index_.end()) return it->second;
  if (used_ < bound) return Add(name);
  if (!folded_.has_value()) {
    folded_ = Add("(a resource beyond the number that is told apart)");
    for_ever_[*folded_] = true;
  }
  return *folded_;
}

ResourceIndex ResourceNames::InternForEver(absl::string_view name) {
  const ResourceIndex index = Intern(name);
  for_ever_[index] = true;
  return index;
}

void ResourceNames::Release(const std::vector<bool>& used) {
  // The smallest free index is used first.
  for (size_t i = names_.size(); i-- > 0;) {
    if (for_ever_[i] || names_[i].empty() || (i < used.size() && used[i])) continue;
    index_.erase(names_[i]);
    names_[i].clear();
    free_.push_back(static_cast<ResourceIndex>(i));
    --used_;
  }
  std::sort(free_.begin(), free_.end(), std::greater<>());
}

std::optional<ResourceIndex> ResourceNames::Find(absl::string_view name) const {
  auto it = index_.find(name);
  if (it == index_.end()) return std::nullopt;
  return it->second;
}

Resources Resources::From(const ResourceList& list, ResourceNames& names) {
  Resources result;
  for (const auto& [name, amount] : list) {
    if (amount != 0) result.Set(names.Intern(name), amount);
  }
  return result;
}

Resources Resources::FromRequests(const ResourceList& list, ResourceNames& names) {
  Resources result;
  for (const auto& [name, amount] : list) {
    if (amount <= 0) continue;
    const ResourceIndex index = names.InternRequested(name);
    result.Set(index, SaturatingAdd(result[index], amount));
  }
  return result;
}

void Resources::Set(ResourceIndex i, int64_t amount) {
  if (i >= values_.size()) {
    if (amount == 0) return;
    values_.resize(i + 1, 0);
  }
  values_[i] = amount;
}

Resources& Resources::operator+=(const Resources& other) {
  if (values_.size() < other.values_.size()) values_.resize(other.values_.size(), 0);
  for (size_t i = 0; i < other.values_.size(); ++i) {
    values_[i] = SaturatingAdd(values_[i], other.values_[i]);
  }
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  if (values_.size() < other.values_.size()) values_.resize(other.values_.size(), 0);
  for (size_t i = 0; i < other.values_.size(); ++i) {
    const int64_t minus = other.values_[i] == kMin ? kMax : -other.values_[i];
    values_[i] = SaturatingAdd(values_[i], minus);
  }
  return *this;
}

Resources Resources::Times(int64_t count) const {
  Resources result = *this;
  for (int64_t& value : result.values_) value = SaturatingMultiply(value, count);
  return result;
}

bool Resources::FitsIn(const Resources& available) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i] > 0 && values_[i] > available[static_cast<ResourceIndex>(i)]) return false;
  }
  return true;
}

bool Resources::IsZero() const {
  return std::all_of(values_.begin(), values_.end(), [](int64_t v) { return v == 0; });
}

bool operator==(const Resources& a, const Resources& b) {
  const size_t size = std::max(a.values_.size(), b.values_.size());
  for (size_t i = 0; i < size; ++i) {
    if (a[static_cast<ResourceIndex>(i)] != b[static_cast<ResourceIndex>(i)]) return false;
  }
  return true;
}

ResourceList Resources::ToList(const ResourceNames& names) const {
  ResourceList list;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i] != 0) {
      ::fairlead::model::Set(list, names.Name(static_cast<ResourceIndex>(i)), values_[i]);
    }
  }
  return list;
}

ResourceSum& ResourceSum::operator+=(const Resources& amount) {
  if (!exact_.empty()) {
    AddExactly(amount, 0, 1);
    return *this;
  }
  auto& values = shown_.values_;
  if (values.size() < amount.values_.size()) values.resize(amount.values_.size(), 0);
  for (size_t i = 0; i < amount.values_.size(); ++i) {
    int64_t sum;
    if (__builtin_add_overflow(values[i], amount.values_[i], &sum)) {
      LeaveShort();
      AddExactly(amount, i, 1);
      return *this;
    }
    values[i] = sum;
  }
  return *this;
}

ResourceSum& ResourceSum::operator-=(const Resources& amount) {
  if (!exact_.empty()) {
    AddExactly(amount, 0, -1);
    return *this;
  }
  auto& values = shown_.values_;
  if (values.size() < amount.values_.size()) values.resize(amount.values_.size(), 0);
  for (size_t i = 0; i < amount.values_.size(); ++i) {
    int64_t rest;
    if (__builtin_sub_overflow(values[i], amount.values_[i], &rest)) {
      LeaveShort();
      AddExactly(amount, i, -1);
      return *this;
    }
    values[i] = rest;
  }
  return *this;
}

void ResourceSum::Add(ResourceIndex i, int64_t amount) {
  int64_t sum;
  if (amount == 0) return;
  if (exact_.empty() && !__builtin_add_overflow(shown_[i], amount, &sum)) {
    shown_.Set(i, sum);
    return;
  }
  Resources one;
  one.Set(i, amount);
  *this += one;
}

void ResourceSum::LeaveShort() { exact_.assign(shown_.values_.begin(), shown_.values_.end()); }

// Adds the amounts from index `from` on; returns to 64 bits as soon as all amounts fit.
void ResourceSum::AddExactly(const Resources& amount, size_t from, int sign) {
  auto& values = shown_.values_;
  const size_t size = std::max(values.size(), amount.values_.size());
  values.resize(size, 0);
  exact_.resize(size, 0);
  for (size_t i = from; i < amount.values_.size(); ++i) {
    exact_[i] += sign * static_cast<Wide>(amount.values_[i]);
  }
  bool fits = true;
  for (size_t i = 0; i < size; ++i) {
    values[i] = static_cast<int64_t>(std::clamp<Wide>(exact_[i], kMin, kMax));
    fits = fits && exact_[i] == values[i];
  }
  if (fits) exact_.clear();
}

bool operator==(const ResourceSum& a, const ResourceSum& b) {
  if (!(a.shown_ == b.shown_)) return false;
  const size_t size = std::max(a.exact_.size(), b.exact_.size());
  for (size_t i = 0; i < size; ++i) {
    const auto at = [i](const ResourceSum& sum) {
      return i < sum.exact_.size() ? sum.exact_[i]
                                   : ResourceSum::Wide{sum.shown_[static_cast<ResourceIndex>(i)]};
    };
    if (at(a) != at(b)) return false;
  }
  return true;
}

}  // namespace fairlead::model
