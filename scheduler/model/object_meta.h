// The metadata of every Kubernetes object, as far as we read it. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::model {

// Labels or annotations, sorted by key. The vector is small and has one iteration order.
class StringMap {
 public:
  using Entry = std::pair<std::string, std::string>;
  StringMap() = default;
  StringMap(std::initializer_list<Entry> entries);

  // Null if absent. Valid until the map changes.
  [[nodiscard]] const std::string* Find(absl::string_view key) const;
  [[nodiscard]] absl::string_view Get(absl::string_view key) const;  // "" if absent
  [[nodiscard]] bool Has(absl::string_view key) const { return Find(key) != nullptr; }
  void Set(absl::string_view key, absl::string_view value);
  void Erase(absl::string_view key);

  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void ShrinkToFit() { entries_.shrink_to_fit(); }
  friend bool operator==(const StringMap& a, const StringMap& b) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StringMap& m) {
    return H::combine(std::move(h), m.entries_);
  }

 private:
  std::vector<Entry> entries_;
};

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;
  std::string uid;
  std::string resource_version;  // opaque
  int64_t generation = 0;
  absl::Time creation = absl::InfinitePast();
  std::optional<absl::Time> deletion;  // set: the object is terminating
  StringMap labels;
  StringMap annotations;  // only those of IsRelevantAnnotation()
  std::vector<OwnerReference> owners;
};

// True for annotations that our code reads. Decoders drop the others: at 100,000 pods the rest
// (last-applied-configuration above all) is most of the memory.
bool IsRelevantAnnotation(absl::string_view key);

// The value of "hash" in a verdict's JSON (annotation fairlead.dev/verdict), "" if there is none.
std::string VerdictHashOf(absl::string_view verdict_json);

// "namespace/name", or "name" for cluster-scoped objects.
std::string Key(absl::string_view ns, absl::string_view name);
inline std::string Key(const ObjectMeta& meta) { return Key(meta.ns, meta.name); }

}  // namespace fairlead::model
