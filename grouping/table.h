// The table of kinds: how the pods that an object owns are grouped (docs/grouping.md).
//
// A row names a kind of any version. Rows of users come before the built-in ones, rows of a kind
// before those of every kind ("*"), and of several the first with a condition that holds.
//
// Thread-safety: immutable after reading. Complexity: Find is O(rows).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "grouping/values.h"

namespace fairlead::grouping {

// Names a level of a topology; nothing: no constraint.
struct TopologyRow {
  Texts topology, required, preferred;
};

// Children of a sub-group that are alike: PARENT-INFIX0, PARENT-INFIX1, ...
struct PartsRow {
  Number count;                      // of the parts; not used with `size`
  std::optional<Number> size, of;    // pods per part, the last has the rest; of that many pods. An
                                     // absent size: there are no parts
  std::optional<Number> min_member;  // of each; with `size` its pods
  std::string infix;
  // The pod label with the number of the part, or with the pod's index, if there is a size.
  std::string label;
  int64_t first_index = 0;  // of the pods
  // If all pods but the first fill whole parts, the first joins part 0 (LeaderWorkerSet's rule).
  bool first_joins = false;
  std::optional<TopologyRow> topology;
};

struct SubGroupRow {
  std::optional<Condition> when;
  Path for_each;  // empty: one sub-group
  Texts name;
  std::optional<Number> min_member;
  bool skip_empty = false;  // no sub-group if the minimum is 0
  // A pod belongs to it if it has these labels, or if its name is in this list of references.
  std::vector<std::pair<std::string, Text>> labels;
  Path pod_names;
  Path encloses;  // names of sub-groups that become its children
  std::optional<PartsRow> parts;
  std::optional<TopologyRow> topology;
};

// Which pods are one group.
enum class Per : uint8_t {
  kOwner,      // all pods of the object
  kPod,        // each pod by itself
  kLabel,      // pods with one value of a label
  kPodName,    // pods with one name up to the last dash
  kNextOwner,  // what the next owner towards the pod says; without one: the pod itself
};

// An object beside the owners, in the pod's namespace, that says how pods are grouped.
struct RelatedRow {
  std::string api_version, kind;
  Text name;
};

// How the pods of an object are held back: its controller ends them and makes no others while the
// boolean at `path` is true.
struct SuspendRow {
  Path path;                      // empty: neither it nor what it owns can be suspended
  std::optional<Condition> when;  // if it does not hold, likewise
};

struct KindRow {
  std::string group, kind;  // "*": any
  std::optional<Condition> when;
  Per per = Per::kOwner;
  std::string label, infix;  // kLabel: the name is pg-OWNER-UID-INFIX<value>
  bool bare = false;         // kLabel: the name is the value
  bool read = true;          // false: neither it nor its owners are read
  std::optional<RelatedRow> from;
  std::optional<Number> most;  // pods that there are at a time; of 1 no group is made
  Number min_member = Constant(1);
  std::optional<Number> min_sub_group;
  Texts priority_class, queue;          // before the common rules
  std::string default_priority_class;   // after them
  std::optional<TopologyRow> topology;  // before the annotations
  std::vector<Path> required;           // that must be there
  std::vector<SubGroupRow> sub_groups;
  bool others_join = false;  // pods of no sub-group belong to the group itself, else are refused
  std::optional<SuspendRow> suspend;
};

class KindTable {
 public:
  // The built-in rows.
  static const KindTable& BuiltIn();
  // `rows`: the list `kinds`. Errors name `file` and the field. The built-in rows follow.
  static absl::StatusOr<KindTable> Read(const Json& rows, absl::string_view file,
                                        const std::string& field);
  // The row of an object; null: none. InvalidArgument if a condition cannot be read.
  [[nodiscard]] absl::StatusOr<const KindRow*> Find(absl::string_view api_version,
                                                    absl::string_view kind,
                                                    const Scope& scope) const;
  // False: the objects of this kind need not be read.
  [[nodiscard]] bool IsRead(absl::string_view api_version, absl::string_view kind) const;
  [[nodiscard]] const std::vector<KindRow>& rows() const { return rows_; }

 private:
  std::vector<KindRow> rows_;
};

// "batch" of "batch/v1"; "" of "v1".
absl::string_view GroupOfVersion(absl::string_view api_version);

}  // namespace fairlead::grouping
