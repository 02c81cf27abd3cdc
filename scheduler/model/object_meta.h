// The metadata of every Kubernetes object, as far as we read it. Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/shared.h"

namespace fairlead::model {

// Equal texts of one pool share their memory. Labels of nodes are mostly the same few texts.
// Ownership: a text lives as long as it is held. Complexity: O(1) amortised; texts that nothing
// outside the pool holds are dropped now and then.
class TextPool {
 public:
  using Text = Shared<std::string>;
  Text Intern(absl::string_view text);
  Text Intern(const Text& text);
  [[nodiscard]] size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(absl::string_view text) const {
      return absl::Hash<absl::string_view>()(text);
    }
    size_t operator()(const Text& text) const { return (*this)(absl::string_view(*text)); }
  };
  struct Equal {
    using is_transparent = void;
    static absl::string_view View(absl::string_view text) { return text; }
    static absl::string_view View(const Text& text) { return *text; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return View(a) == View(b);
    }
  };
  void Trim();

  absl::flat_hash_set<Text, Hash, Equal> texts_;
  size_t trim_at_ = 1024;
};

// Labels or annotations, sorted by key. Copies share their memory until one of them is changed.
// Complexity: a copy is O(1), Find() is O(log n), Set() and Erase() are O(n).
class StringMap {
  using Text = TextPool::Text;
  using Texts = std::vector<std::pair<Text, Text>>;

 public:
  using Entry = std::pair<std::string, std::string>;
  // What an iterator shows. Valid until the map changes.
  struct View {
    const std::string& first;
    const std::string& second;
  };
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = View;
    using difference_type = ptrdiff_t;
    using pointer = const View*;
    using reference = View;
    explicit Iterator(Texts::const_iterator at) : at_(at) {}
    View operator*() const { return {*at_->first, *at_->second}; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Texts::const_iterator at_;
  };

  StringMap() = default;
  StringMap(std::initializer_list<Entry> entries);

  // Null if absent. Valid until the map changes.
  [[nodiscard]] const std::string* Find(absl::string_view key) const;
  [[nodiscard]] absl::string_view Get(absl::string_view key) const;  // "" if absent
  [[nodiscard]] bool Has(absl::string_view key) const { return Find(key) != nullptr; }
  // With a pool the key is one of the pool; values are mostly of one object.
  void Set(absl::string_view key, absl::string_view value, TextPool* pool = nullptr);
  void Erase(absl::string_view key);
  // No other map shares its memory.
  [[nodiscard]] bool IsAlone() const { return !texts_ || texts_.IsAlone(); }
  // The maps that share its memory, itself included.
  [[nodiscard]] uint32_t holders() const { return texts_ ? texts_.holders() : 1; }
  [[nodiscard]] bool SharesMemoryWith(const StringMap& other) const {
    return texts_.IsSameAs(other.texts_);
  }
  // Takes its texts from the pool from now on. O(n).
  void Intern(TextPool& pool);

  [[nodiscard]] Iterator begin() const { return Iterator(texts().begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(texts().end()); }
  [[nodiscard]] size_t size() const { return texts().size(); }
  [[nodiscard]] bool empty() const { return texts().empty(); }
  friend bool operator==(const StringMap& a, const StringMap& b);
  template <typename H>
  friend H AbslHashValue(H h, const StringMap& m) {
    for (const auto& [key, value] : m.texts()) h = H::combine(std::move(h), *key, *value);
    return H::combine(std::move(h), m.size());
  }

 private:
  [[nodiscard]] const Texts& texts() const { return texts_ ? *texts_ : None(); }
  static const Texts& None();

  Shared<Texts> texts_;
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
