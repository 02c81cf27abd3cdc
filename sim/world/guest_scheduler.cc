#include "sim/world/guest_scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/world/facts.h"
#include "sim/world/foreign_scheduler.h"

namespace fairlead::sim::world {
namespace {

constexpr absl::Duration kAsksWhileHeld = absl::Milliseconds(300);
constexpr absl::Duration kFirstPause = absl::Seconds(1), kLongestPause = absl::Seconds(10);

}  // namespace

GuestScheduler::GuestScheduler(EventQueue* time, ApiServer* server, uint64_t seed, Ask ask)
    : time_(time), server_(server), random_(seed), ask_(std::move(ask)) {
  server->Listen([this](const ApiServer::Commit& commit) { Seen(commit); });
}

void GuestScheduler::NodeSeen(const ApiServer::Commit& commit) {
  const NodeFacts node = ReadNode(commit.after != nullptr ? *commit.after : *commit.before);
  const bool good = commit.after != nullptr && node.ready && !node.tainted && !node.unschedulable;
  if (good) {
    bad_since_.erase(node.name);
  } else {
    bad_since_.emplace(node.name, time_->now());
  }
}

void GuestScheduler::Seen(const ApiServer::Commit& commit) {
  if (commit.type == ResourceType::kNodes) NodeSeen(commit);
  if (commit.type != ResourceType::kPods) return;
  const Json* const object = commit.after != nullptr ? commit.after : commit.before;
  const PodFacts pod = ReadPod(*object);
  if (!pod.guest()) return;
  if (commit.after == nullptr || !pod.node.empty() || pod.terminating) {
    pods_.erase(pod.uid);
    return;
  }
  Row& row = pods_[pod.uid];
  row.ns = pod.ns;
  row.name = pod.name;
  if (commit.actor == kGuestScheduler) return;
  AskLater(pod.uid, absl::Milliseconds(random_.Between(2, 200)));
}

bool GuestScheduler::Waits(const std::string& uid) const {
  const auto row = pods_.find(uid);
  if (row == pods_.end()) return false;
  const Json* const object = server_->Find(ResourceType::kPods, row->second.ns, row->second.name);
  if (object == nullptr) return false;
  const PodFacts pod = ReadPod(*object);
  return pod.uid == uid && pod.node.empty() && !pod.terminating;
}

void GuestScheduler::AskLater(const std::string& uid, absl::Duration delay) {
  const uint64_t question = ++questions_;
  pods_[uid].question = question;
  time_->After(delay, [this, uid, question] { AskNow(uid, question); });
}

void GuestScheduler::AskNow(const std::string& uid, uint64_t question) {
  const auto row = pods_.find(uid);
  if (row == pods_.end() || row->second.question != question || !Waits(uid)) return;
  const int64_t times = row->second.asked++;
  ask_({row->second.ns, row->second.name, uid, ""},
       [this, uid, question](const Say& say) { Answered(uid, question, say.node); });
  // Whatever comes of it.
  const absl::Duration pause =
      std::min(kLongestPause, kFirstPause * (int64_t{1} << std::min<int64_t>(times, 4)));
  time_->After(pause, [this, uid, question] {
    const auto known = pods_.find(uid);
    if (known == pods_.end() || known->second.question != question) return;
    AskLater(uid, absl::ZeroDuration());
  });
}

void GuestScheduler::Answered(const std::string& uid, uint64_t question, const std::string& node) {
  const auto row = pods_.find(uid);
  if (row == pods_.end() || row->second.question != question) return;
  row->second.granted = !node.empty();
  if (node.empty()) return;
  const auto bad = bad_since_.find(node);
  if (bad != bad_since_.end() && on_bad_node_ != nullptr) {
    on_bad_node_(absl::StrCat("pod ", row->second.ns, "/", row->second.name, " is granted node ",
                              node, ", where nothing may start"),
                 bad->second);
  }
  if (IsUnreliable() && random_.Below(4) == 0) return;
  const int64_t lag_ms = IsUnreliable() ? random_.Between(5, 30'000) : random_.Between(5, 300);
  time_->After(absl::Milliseconds(lag_ms), [this, uid, node] {
    if (reserves_) {
      Reserve(uid, node);
    } else {
      Bind(uid, node);
    }
  });
}

void GuestScheduler::Reserve(const std::string& uid, const std::string& node) {
  if (!Accepts(uid, node)) return;
  const Row& row = pods_.at(uid);
  ask_({row.ns, row.name, uid, node}, [this, uid, node](const Say& say) {
    if (say.node != node) return;
    if (!say.held) return Bind(uid, node);
    time_->After(kAsksWhileHeld, [this, uid, node] { Reserve(uid, node); });
  });
}

bool GuestScheduler::HasRoom(const NodeFacts& node, const Row& row) const {
  Amounts used = ReadPod(*server_->Find(ResourceType::kPods, row.ns, row.name)).requests;
  int64_t pods = 1;
  server_->ForEach(ResourceType::kPods, [&](const Json& object) {
    const PodLife life = ReadPodLife(object);
    if (life.node != node.name || !life.active()) return;
    used += ReadPod(object).requests;
    ++pods;
  });
  return used.FitsIn(node.allocatable) && pods <= node.pods;
}

bool GuestScheduler::Accepts(const std::string& uid, const std::string& node) const {
  if (!Waits(uid)) return false;
  const Json* const object = server_->Find(ResourceType::kNodes, "", node);
  if (object == nullptr) return false;
  const NodeFacts facts = ReadNode(*object);
  return facts.ready && !facts.tainted && !facts.unschedulable && HasRoom(facts, pods_.at(uid));
}

void GuestScheduler::Bind(const std::string& uid, const std::string& node) {
  if (!Accepts(uid, node)) return;
  const Row row = pods_.at(uid);
  BindAs(server_, kGuestScheduler, row.ns, row.name, uid, node);
}

}  // namespace fairlead::sim::world
