// Amounts of resources, in base units: milli-CPU, bytes, milli-GPU, and whole units for the rest.
//
// There are two forms. ResourceList has names, as API objects and output have. Resources is a dense
// vector indexed through a ResourceNames table; decisions compute with it. Neither uses floating
// point.
//
// Thread-safety: values are plain; a ResourceNames belongs to one thread (the owner of
// ClusterState).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace fairlead::model {

inline constexpr char kCpuName[] = "cpu";
inline constexpr char kMemoryName[] = "memory";
inline constexpr char kGpuName[] = "nvidia.com/gpu";
inline constexpr char kAmdGpuName[] = "amd.com/gpu";
inline constexpr char kPodsName[] = "pods";
inline constexpr char kEphemeralStorageName[] = "ephemeral-storage";

// No bound: a queue's limit or quota of -1.
inline constexpr int64_t kUnlimited = -1;

// Base units in one unit of the resource's Quantity: 1000 for cpu and GPUs, otherwise 1.
int64_t BaseUnitsPerUnit(absl::string_view resource_name);

// (name, amount in base units), sorted by name, no duplicates.
using ResourceList = std::vector<std::pair<std::string, int64_t>>;
int64_t Get(const ResourceList& list, absl::string_view name);
// Set keeps the order. Add saturates at the ends of int64.
void Set(ResourceList& list, absl::string_view name, int64_t amount);
void Add(ResourceList& list, absl::string_view name, int64_t amount);
void AddAll(ResourceList& list, const ResourceList& other);
void MaxAll(ResourceList& list, const ResourceList& other);

// The amount as text for people: "1500m" CPU is "1.5", bytes get a binary suffix ("80Gi"), GPUs are
// in devices ("0.5").
std::string FormatAmount(absl::string_view resource_name, int64_t base_units);
// The amount as an exact Kubernetes Quantity: "1500m", "85899345920", "500m".
std::string FormatQuantity(absl::string_view resource_name, int64_t base_units);

using ResourceIndex = uint16_t;
// The indexes that every table has.
inline constexpr ResourceIndex kCpu = 0;
inline constexpr ResourceIndex kMemory = 1;
inline constexpr ResourceIndex kGpu = 2;  // nvidia.com/gpu, in milli-GPU
inline constexpr ResourceIndex kPods = 3;
inline constexpr ResourceIndex kEphemeralStorage = 4;
inline constexpr ResourceIndex kWellKnownResources = 5;

// Maps names to indexes and back. The table is bounded because tenants choose names. A name beyond
// the bound gets one common index that no node offers, so a pod with such a name waits.
class ResourceNames {
 public:
  // Bounds of the names that pods bring, and of all names. Names of nodes, queues and device
  // demands count against the second bound alone.
  static constexpr size_t kMaxRequested = 1024;
  static constexpr size_t kMax = 4096;

  ResourceNames();
  ResourceIndex Intern(absl::string_view name) { return InternBelow(kMax, name); }
  // For a name that a pod asks for.
  ResourceIndex InternRequested(absl::string_view name) { return InternBelow(kMaxRequested, name); }
  // As Intern(); Release() never frees the name.
  ResourceIndex InternForEver(absl::string_view name);
  [[nodiscard]] std::optional<ResourceIndex> Find(absl::string_view name) const;
  [[nodiscard]] const std::string& Name(ResourceIndex index) const { return names_[index]; }
  [[nodiscard]] size_t size() const { return names_.size(); }

  // The index of all names beyond the bound, if there was one.
  [[nodiscard]] std::optional<ResourceIndex> folded() const { return folded_; }
  // InternRequested() folds new names.
  [[nodiscard]] bool Full() const { return used_ >= kMaxRequested; }
  // Frees the names with `used` false, except those that are always present. No amount other than
  // zero may be left at these indexes: they are used again.
  void Release(const std::vector<bool>& used);

 private:
  ResourceIndex InternBelow(size_t bound, absl::string_view name);
  ResourceIndex Add(absl::string_view name);

  absl::flat_hash_map<std::string, ResourceIndex> index_;
  std::vector<std::string> names_;
  std::vector<bool> for_ever_;
  std::vector<ResourceIndex> free_;
  std::optional<ResourceIndex> folded_;
  size_t used_ = 0;  // names that are in the table
};

// Dense amounts; an index past the end reads as zero.
class Resources {
 public:
  Resources() = default;
  // Interns names that the table does not know yet.
  static Resources From(const ResourceList& list, ResourceNames& names);
  // As From, for what a pod requests: amounts below zero count as zero.
  static Resources FromRequests(const ResourceList& list, ResourceNames& names);

  [[nodiscard]] int64_t operator[](ResourceIndex i) const {
    return i < values_.size() ? values_[i] : 0;
  }
  void Set(ResourceIndex i, int64_t amount);
  [[nodiscard]] size_t size() const { return values_.size(); }

  // Saturates at the ends of int64: accounting never wraps. Use a ResourceSum for a total from
  // which terms are subtracted again.
  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
  friend Resources operator+(Resources a, const Resources& b) { return a += b; }
  friend Resources operator-(Resources a, const Resources& b) { return a -= b; }
  // amount * count, saturating.
  [[nodiscard]] Resources Times(int64_t count) const;

  // True if every non-zero amount here is at most the amount there. Amounts of zero are not
  // compared, so an over-committed resource does not refuse a pod that requests none of it.
  [[nodiscard]] bool FitsIn(const Resources& available) const;
  [[nodiscard]] bool IsZero() const;
  // True for equal amounts; trailing zeros do not count.
  friend bool operator==(const Resources& a, const Resources& b);

  // Non-zero amounts by name, sorted.
  [[nodiscard]] ResourceList ToList(const ResourceNames& names) const;

  template <typename H>
  friend H AbslHashValue(H h, const Resources& r) {
    for (size_t i = r.values_.size(); i > 0; --i) {
      const int64_t amount = r.values_[i - 1];
      if (amount != 0) h = H::combine(std::move(h), i, amount);
    }
    return h;
  }

 private:
  friend class ResourceSum;
  absl::InlinedVector<int64_t, kWellKnownResources> values_;
};

// A total of amounts. It is exact for all terms: a term that was added can be subtracted again,
// even if the total has left 64 bits. Readers see it saturated at the ends of int64. Complexity: as
// Resources; a total beyond 64 bits costs one allocation.
class ResourceSum {
 public:
  ResourceSum& operator+=(const Resources& amount);
  ResourceSum& operator-=(const Resources& amount);
  void Add(ResourceIndex i, int64_t amount);

  operator const Resources&() const { return shown_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Resources& value() const { return shown_; }
  [[nodiscard]] int64_t operator[](ResourceIndex i) const { return shown_[i]; }
  [[nodiscard]] bool IsZero() const { return exact_.empty() && shown_.IsZero(); }
  [[nodiscard]] ResourceList ToList(const ResourceNames& names) const {
    return shown_.ToList(names);
  }
  friend bool operator==(const ResourceSum& a, const ResourceSum& b);

 private:
  __extension__ typedef __int128 Wide;
  void LeaveShort();
  void AddExactly(const Resources& amount, size_t from, int sign);

  Resources shown_;
  std::vector<Wide> exact_;  // empty while all amounts fit in 64 bits
};

inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}
inline int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<int64_t>::max()
                            : std::numeric_limits<int64_t>::min();
}

}  // namespace fairlead::model
