// What a row of the table of kinds (table.h) reads: texts, whole numbers and conditions, from an
// object, from an entry of one of its lists or maps, and from the pod. The forms are a closed set
// (docs/grouping.md).
//
// A number counts pods, or sub-groups: from 0 to kMostPods. A path that leads nowhere, or to null,
// is absent. Errors: InvalidArgument "FIELD: what is wrong", FIELD within the object or "pod ...".
// Thread-safety: plain values, immutable after reading. Complexity: O(size of what is read).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "scheduler/model/pod.h"

namespace fairlead::grouping {

// More is taken for a mistake, or for an attack: a minimum that no cluster meets holds its queue.
inline constexpr int64_t kMostPods = 100000;

// InvalidArgument "FIELD: what".
absl::Status Wrong(absl::string_view field, absl::string_view what);

// In quotes, and cut: tenants write what messages quote.
std::string Shown(absl::string_view text);

// Where values are looked up.
struct Scope {
  const Json& object;  // the owner, or an entry of one of its lists or maps
  const model::Pod& pod;
  std::string at = {};          // of the entry within the owner: "spec.workerGroupSpecs[0]"
  std::string key = {};         // of an entry of a map
  const Json* owner = nullptr;  // of an entry; null: `object` is the owner
};

// Names of fields: "spec.runPolicy.suspend". A name has no dot: keys of labels and annotations have
// forms of their own.
class Path {
 public:
  Path() = default;
  // InvalidArgument if a name is empty.
  static absl::StatusOr<Path> Parse(absl::string_view text);
  // Null: absent. InvalidArgument if something on the way is no object.
  [[nodiscard]] absl::StatusOr<const Json*> Find(const Scope& scope) const;
  [[nodiscard]] std::string Field(const Scope& scope) const;
  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> names_;
};

// Calls for each entry of the list or the map, in the order of the object; absent is empty.
absl::Status ForEach(const Path& path, const Scope& scope,
                     const std::function<absl::Status(const Scope&)>& call);

struct Text {
  enum class From : uint8_t {
    kConstant,
    kPath,
    kLabel,       // of the object, or of the part of it at `path`: a template
    kAnnotation,  // likewise
    kOwnerAnnotation,
    kPodLabel,
    kPodAnnotation,
    kKey  // of the entry
  };
  From from = From::kConstant;
  std::string name;  // the constant, or the key
  Path path;
  // Empty: absent.
  [[nodiscard]] absl::StatusOr<std::string> Get(const Scope& scope) const;
  [[nodiscard]] absl::StatusOr<bool> Exists(const Scope& scope) const;
  [[nodiscard]] std::string Field(const Scope& scope) const;
};

// The first that is not empty.
struct Texts {
  std::vector<Text> list;
  [[nodiscard]] absl::StatusOr<std::string> Get(const Scope& scope) const;
};

struct Condition {
  enum class Form : uint8_t { kEquals, kExists, kNot, kAll, kAny };
  Form form = Form::kAll;
  Text text;
  std::string value;          // kEquals
  std::vector<Condition> of;  // kNot: one
  [[nodiscard]] absl::StatusOr<bool> Holds(const Scope& scope) const;
};

struct Number {
  enum class Form : uint8_t {
    kConstant,
    kText,   // of `text`, or `otherwise` if it is absent; more than `of` is refused
    kCount,  // entries at `path`
    kSum,    // of `of`; so are the next five
    kProduct,
    kDifference,  // the first less the others, at least 0
    kLeast,
    kGreatest,
    kFirst,          // the first that is present
    kFirstPositive,  // the first that is present and not 0; else 0
    kSumOver,        // of[0] of each entry at `path`, `condition` permitting
    kIf              // of[0] if `condition` holds, else of[1]
  };
  Form form = Form::kConstant;
  int64_t constant = 0;
  Text text;
  std::optional<int64_t> otherwise;
  Path path;
  std::vector<Number> of;
  std::vector<Condition> condition;  // one or none
  // Nothing: absent.
  [[nodiscard]] absl::StatusOr<std::optional<int64_t>> Find(const Scope& scope) const;
  // InvalidArgument if it is absent.
  [[nodiscard]] absl::StatusOr<int64_t> Get(const Scope& scope) const;
  // The fields that it may read, for messages; empty: none.
  [[nodiscard]] std::string Field(const Scope& scope) const;
};

// Constants, for defaults.
Number Constant(int64_t value);

}  // namespace fairlead::grouping
