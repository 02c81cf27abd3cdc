// Reads the groups of a CloudGroups: one round is Refresh, the list of groups, and of every group
// its template, price, target size and instances, in this order. The groups are read side by side.
//
// The template is read once, and again when the group's sizes or its debug text change; the price
// in every round, unless there are none; the label of GPUs once. A value that cannot be is
// told as a problem, with group and field, and the last good one stays.
//
// Ownership: borrows its parts; they outlive it. Thread-safety: none. Complexity: a round is
// O(groups) calls, O(n log n) in the instances.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/providers/groups/call_guard.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/group_offer.h"
#include "autoscale-hook/providers/groups/outbox.h"

namespace fairlead::hook {

struct GroupView {
  CloudGroup group;
  int64_t target = 0;
  InstanceMap instances;
  // Of the last round: OK if target size and instances are of that round.
  absl::Status status = absl::UnavailableError("not read yet");

  std::optional<model::Node> node;  // the template
  bool template_due = true;
  std::optional<int64_t> price;  // as the port tells it
  bool priceless = false;        // the port has no prices
};
using GroupViews = std::map<std::string, GroupView>;

// The type of that name in the configured catalogue; null: there is none.
using KnownType = std::function<const InstanceType*(absl::string_view name)>;

class GroupReader {
 public:
  GroupReader(CloudGroups* groups, const CallGuard* guard, Outbox* outbox, KnownType known_type)
      : groups_(groups), guard_(guard), outbox_(outbox), known_type_(std::move(known_type)) {}

  // One round. `done` hears of errors that concern all groups: then nothing else has changed.
  void Read(std::function<void(const absl::Status&)> done);
  // Those of the last list.
  [[nodiscard]] const GroupViews& views() const { return views_; }
  // What the groups sell, if it is not what this function returned last; else null.
  std::shared_ptr<const Catalog> TakeOffers();
  [[nodiscard]] const std::shared_ptr<const Catalog>& offers() const { return offers_; }

 private:
  void ReadGroups();
  void TakeGroups(const std::vector<CloudGroup>& groups);
  void ReadGpuLabel();
  void ReadEachGroup();
  void ReadTemplate(const std::string& id);
  void ReadPrice(const std::string& id);
  void ReadTarget(const std::string& id);
  void ReadNodes(const std::string& id, int64_t target);
  void Finish(const std::string& id, const absl::Status& status);
  void FinishOne();
  void RefuseShared();
  void Problem(const std::string& id, absl::string_view field, const absl::Status& status);

  CloudGroups* groups_;
  const CallGuard* guard_;
  Outbox* outbox_;
  KnownType known_type_;
  GroupViews views_;
  std::optional<std::string> gpu_label_;
  std::shared_ptr<const Catalog> offers_;

  // Of the round.
  std::function<void(const absl::Status&)> done_;
  size_t open_ = 0;
  struct Candidate {
    int64_t target = 0;
    InstanceMap instances;
  };
  std::map<std::string, Candidate> candidates_;  // by group; they count if no two share an instance
};

}  // namespace fairlead::hook
