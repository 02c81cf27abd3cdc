#include "core/shard.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "core/pod_grouper.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_name.h"

namespace fairlead::core {
namespace {

using model::Kind;

constexpr size_t kLongestLabelValue = 63;

// Kinds that their own label puts into a shard.
bool IsLabelled(Kind kind) {
  switch (kind) {
    case Kind::kNode:
    case Kind::kQueue:
    case Kind::kPodGroup:
    case Kind::kNativePodGroup:
    case Kind::kNodePool:
    case Kind::kNodeRequest:
    case Kind::kCapacityBuffer:
    case Kind::kProvisioningRequest:
      return true;
    default:
      return false;
  }
}

// Of a labelled object that pods follow; empty: none do.
std::string LeaderName(Kind kind, const std::string& key) {
  switch (kind) {
    case Kind::kNode:
      return absl::StrCat("node ", key);
    case Kind::kPodGroup:
      return absl::StrCat("group ", key);
    case Kind::kNativePodGroup:
      return absl::StrCat("native ", key);
    default:
      return "";
  }
}

bool IsName(absl::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           absl::ascii_islower(static_cast<unsigned char>(c)) || c == '-';
  });
}

std::string ShortHash(absl::string_view text) {
  return StableHash().Add(std::string(text)).Hex().substr(0, 8);
}

}  // namespace

bool Shard::Has(const model::ObjectMeta& meta) const {
  return meta.labels.Get(model::kNodePoolLabel) == label_value;
}

std::string RequestPrefixOf(const Shard* shard) {
  if (shard == nullptr || shard->label_value.empty()) return "fl-";
  return absl::StrCat("fl-", ShortHash(shard->label_value), "-");
}

std::string LeaseNameOf(const std::string& name, const Shard& shard) {
  const std::string& value = shard.label_value;
  if (value.empty()) return name;
  // The names of leases have a narrower alphabet than the values of labels.
  const bool fits = IsName(value) && value.front() != '-' && value.back() != '-';
  return absl::StrCat(name, "-", fits ? value : ShortHash(value));
}

std::string LabelValueFault(absl::string_view label_value) {
  if (label_value.empty()) return "";
  if (label_value.size() > kLongestLabelValue) {
    return absl::StrCat("has ", label_value.size(),
                        " characters; the value of a label has at most ", kLongestLabelValue);
  }
  const auto alphanumeric = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  const bool inner = std::all_of(label_value.begin(), label_value.end(), [&](char c) {
    return alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  if (inner && alphanumeric(label_value.front()) && alphanumeric(label_value.back())) return "";
  return "is not the value of a label: letters, digits, '-', '_' and '.', a letter or a digit at "
         "both ends";
}

ShardFilter::ShardFilter(Shard shard, std::vector<std::string> scheduler_names,
                         std::string reservation_namespace, bool grouping, MayBeBound may_be_bound)
    : shard_(std::move(shard)),
      scheduler_names_(std::move(scheduler_names)),
      reservation_namespace_(std::move(reservation_namespace)),
      grouping_(grouping),
      may_be_bound_(std::move(may_be_bound)) {}

void ShardFilter::Apply(const model::ClusterEvent& event, Pass pass) {
  if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
    ApplyUpsert(event, upsert->object, pass);
  } else if (const auto* removed = std::get_if<model::Delete>(&event)) {
    ApplyDelete(event, *removed, pass);
  } else {
    pass(event);
  }
}

void ShardFilter::ApplyUpsert(const model::ClusterEvent& event, const model::Object& object,
                              Pass pass) {
  if (const auto* pod = std::get_if<model::Pod>(&object)) {
    ApplyPod(&event, *pod, pass);
  } else if (IsLabelled(model::KindOf(object))) {
    ApplyLabelled(event, object, pass);
  } else {
    pass(event);
  }
}

void ShardFilter::ApplyLabelled(const model::ClusterEvent& event, const model::Object& object,
                                Pass pass) {
  const Kind kind = model::KindOf(object);
  const model::ObjectMeta& meta = model::MetaOf(object);
  const std::string key = model::Key(meta);
  const std::string leader = LeaderName(kind, key);
  const bool has = shard_.Has(meta);
  bool moved = false;
  if (!leader.empty()) {
    const auto known = leaders_.find(leader);
    moved = known == leaders_.end() || known->second.has != has;
    leaders_[leader] = {.has = has};
  }
  if (!has) {
    // Its pods leave before it does.
    if (moved) LookAgain(leader, pass);
    const auto passed = passed_.find({kind, key});
    if (passed == passed_.end()) return;
    const model::Delete gone{kind, meta.ns, meta.name, passed->second};
    passed_.erase(passed);
    return pass(gone);
  }
  passed_[{kind, key}] = meta.uid;
  const auto* pool = std::get_if<model::NodePool>(&object);
  if (pool == nullptr || shard_.label_value.empty()) {
    pass(event);
  } else {
    // What is provisioned from it belongs to the shard.
    model::NodePool labelled = *pool;
    labelled.labels.Set(model::kNodePoolLabel, shard_.label_value);
    pass(model::Upsert{std::move(labelled)});
  }
  if (moved) LookAgain(leader, pass);
}

void ShardFilter::ApplyDelete(const model::ClusterEvent& event, const model::Delete& removed,
                              Pass pass) {
  const std::string key = model::Key(removed.ns, removed.name);
  if (removed.kind == Kind::kPod) {
    const auto row = pods_.find(key);
    if (row != pods_.end() && (removed.uid.empty() || row->second.uid == removed.uid)) {
      ForgetPod(row);
    }
    return pass(event);
  }
  if (!IsLabelled(removed.kind)) return pass(event);
  const auto passed = passed_.find({removed.kind, key});
  const bool current =
      passed == passed_.end() || removed.uid.empty() || passed->second == removed.uid;
  if (passed != passed_.end() && current) passed_.erase(passed);
  const std::string leader = LeaderName(removed.kind, key);
  if (const auto known = leaders_.find(leader); current && known != leaders_.end()) {
    known->second.gone = true;
    ForgetIdle(leader);
  }
  pass(event);
}

// GPU reservation pods of other shards are left out: an idle one would be deleted. Pods of our
// schedulers are there, because what they share with pods of this shard is counted.
void ShardFilter::ApplyPod(const model::ClusterEvent* event, const model::Pod& pod, Pass pass) {
  const std::string key = model::Key(pod.meta);
  const auto known = pods_.find(key);
  if (!IsSharded(pod)) {
    if (known != pods_.end()) ForgetPod(known);
    if (event != nullptr) return pass(*event);
    return pass(model::Upsert{pod});
  }
  PodRow& row = known != pods_.end() ? known->second : pods_[key];
  const bool same = row.uid == pod.meta.uid && !row.uid.empty();
  const bool had = row.has;
  row.uid = pod.meta.uid;
  Follow(key, row, LeaderOf(pod));
  row.has = Has(pod, row.leader);
  const bool stays = same && had && !row.has && may_be_bound_(pod);
  if (stays) {
    row.has = true;
    staying_.insert(key);
  } else {
    staying_.erase(key);
  }
  if (row.leader.empty() && !stays) {
    row.pod.reset();
  } else {
    row.pod = pod;
  }
  const bool dropped = IsReservation(pod);
  if (same && had != row.has) pass(model::Delete{Kind::kPod, pod.meta.ns, pod.meta.name, row.uid});
  if (row.has && event != nullptr) return pass(*event);
  if (row.has) return pass(model::Upsert{pod});
  if (dropped) return pass(model::Progress{Kind::kPod, pod.meta.resource_version});
  model::Pod other = pod;
  other.scheduler_name = kOtherShard;
  pass(model::Upsert{std::move(other)});
}

void ShardFilter::LetGo(Pass pass) {
  const std::set<std::string> keys = staying_;  // they may leave it
  for (const std::string& key : keys) {
    const model::Pod pod = *pods_.at(key).pod;
    if (!may_be_bound_(pod)) ApplyPod(nullptr, pod, pass);
  }
}

bool ShardFilter::IsReservation(const model::Pod& pod) const {
  return pod.meta.ns == reservation_namespace_;
}

bool ShardFilter::IsSharded(const model::Pod& pod) const {
  if (IsReservation(pod)) return !pod.node_name.empty();
  return std::find(scheduler_names_.begin(), scheduler_names_.end(), pod.scheduler_name) !=
         scheduler_names_.end();
}

std::string ShardFilter::LeaderOf(const model::Pod& pod) const {
  if (IsReservation(pod)) return LeaderName(Kind::kNode, model::Key("", pod.node_name));
  const absl::string_view group = model::GroupNameOf(pod);
  if (group.empty()) return "";
  const bool kais = !pod.meta.annotations.Get(model::kPodGroupAnnotation).empty();
  return LeaderName(kais ? Kind::kPodGroup : Kind::kNativePodGroup, model::Key(pod.meta.ns, group));
}

bool ShardFilter::Has(const model::Pod& pod, const std::string& leader) const {
  const auto known = leaders_.find(leader);
  if (known != leaders_.end()) return known->second.has;
  if (IsReservation(pod)) return false;
  return (grouping_ && PodGrouper::MayWait(pod)) || shard_.Has(pod.meta);
}

void ShardFilter::Follow(const std::string& key, PodRow& row, std::string leader) {
  if (row.leader == leader) return;
  if (!row.leader.empty()) {
    const auto left = followers_.find(row.leader);
    left->second.erase(key);
    if (left->second.empty()) followers_.erase(left);
    ForgetIdle(row.leader);
  }
  if (!leader.empty()) followers_[leader].insert(key);
  row.leader = std::move(leader);
}

void ShardFilter::ForgetIdle(const std::string& leader) {
  const auto known = leaders_.find(leader);
  if (known == leaders_.end() || !known->second.gone || followers_.contains(leader)) return;
  leaders_.erase(known);
}

void ShardFilter::LookAgain(const std::string& leader, Pass pass) {
  const auto found = followers_.find(leader);
  if (found == followers_.end()) return;
  const std::set<std::string> keys = found->second;  // they may leave it
  for (const std::string& key : keys) {
    const PodRow& row = pods_.at(key);
    if (Has(*row.pod, row.leader) == row.has) continue;
    const model::Pod pod = *row.pod;
    ApplyPod(nullptr, pod, pass);
  }
}

void ShardFilter::ForgetPod(std::map<std::string, PodRow>::iterator row) {
  Follow(row->first, row->second, "");
  staying_.erase(row->first);
  pods_.erase(row);
}

}  // namespace fairlead::core
