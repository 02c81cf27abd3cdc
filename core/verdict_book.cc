#include "core/verdict_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

std::string SoftPart(const verdict::Verdict& v) {
  std::string text = absl::StrCat(v.position, "/", v.pods_running, "/", v.pods_waiting);
  if (v.queue_block.has_value()) absl::StrAppend(&text, " used ", v.queue_block->used);
  for (const verdict::FailedPredicate& predicate : v.failed_predicates) {
    absl::StrAppend(&text, " ", predicate.nodes);
  }
  return text;
}

std::string NominatedName(const state::ClusterState& state, const engine::Waiting& waiting) {
  if (waiting.pods.size() != 1 || waiting.pods.front().node == state::kNoId) return "";
  return state.node(waiting.pods.front().node).name();
}

}  // namespace

std::string VerdictBook::KeyOf(const state::Workload& workload) const {
  return absl::StrCat(workload.is_group ? "g/" : "p/", workload.ns, "/", workload.name);
}

void VerdictBook::WriteGroup(const state::Workload& workload, const engine::Waiting& waiting,
                             std::vector<model::Action>& actions) const {
  model::SetPodGroupSchedulability write;
  write.ns = workload.ns;
  write.name = workload.name;
  write.uid = workload.uid;
  constexpr size_t kWhole = 64 << 10;  // far below what an object may hold
  write.schedulability_json = verdict::ToJson(waiting.verdict, kWhole);
  write.reason = std::string(verdict::ConditionReason(waiting.verdict.code, hook_on_));
  write.message = verdict::Message(waiting.verdict);
  actions.push_back({0, std::move(write)});
}

void VerdictBook::WritePod(const state::PodRecord& pod, const engine::Waiting& waiting,
                           const std::string& nominated,
                           std::vector<model::Action>& actions) const {
  model::SetPodUnschedulable write;
  write.ns = pod.ns;
  write.name = pod.name;
  write.uid = pod.uid;
  write.reason = std::string(verdict::ConditionReason(waiting.verdict.code, hook_on_));
  write.message = verdict::Message(waiting.verdict);
  write.verdict_json = verdict::ToJson(waiting.verdict);
  write.nominated_node = nominated;
  write.observed_generation = pod.generation;
  actions.push_back({0, std::move(write)});
}

void VerdictBook::Update(const std::vector<engine::Waiting>& waiting, absl::Time now,
                         std::vector<model::Action>& actions) {
  ++round_;
  wake_at_ = absl::InfiniteFuture();
  current_.clear();
  current_.reserve(waiting.size());
  for (const engine::Waiting& entry : waiting) {
    const state::Workload& workload = state_.workload(entry.workload);
    auto [it, added] = written_.try_emplace(KeyOf(workload));
    Written& written = it->second;
    const bool as_group = workload.is_group && workload.group != nullptr;
    if (added) {
      // After a restart the API server knows what we said before.
      if (as_group) {
        written.hash = workload.group->schedulability_hash;
      } else if (!entry.pods.empty()) {
        written.hash = state_.pod(entry.pods.front().pod).verdict_hash;
        written.nominated = state_.pod(entry.pods.front().pod).nominated_node;
      }
      written.soft = SoftPart(entry.verdict);
    }
    written.round = round_;
    const std::string hash = verdict::Hash(entry.verdict);
    const std::string soft = SoftPart(entry.verdict);
    const std::string nominated = as_group ? "" : NominatedName(state_, entry);
    const bool code_changed = written.code != entry.verdict.code;
    if (code_changed) {
      written.code = entry.verdict.code;
      written.since = now;
    }
    bool due = hash != written.hash || nominated != written.nominated;
    if (!due && soft != written.soft) {
      due = now >= written.at + refresh_;
      if (!due) wake_at_ = std::min(wake_at_, written.at + refresh_);
    }
    if (due) {
      written.hash = hash;
      written.soft = soft;
      written.nominated = nominated;
      written.at = now;
      // An autoscaler of somebody else reads pods, not groups.
      const bool for_others = !hook_on_ && verdict::CategoryOf(entry.verdict.code) ==
                                               verdict::Category::kCapacity;
      if (as_group) WriteGroup(workload, entry, actions);
      if (!as_group || for_others) {
        for (const engine::Waiting::PodPromise& pod : entry.pods) {
          WritePod(state_.pod(pod.pod), entry, nominated, actions);
        }
      }
      if (emit_events_ && code_changed) {
        model::EmitEvent event;
        event.about = as_group ? model::Kind::kPodGroup : model::Kind::kPod;
        event.ns = workload.ns;
        event.name = as_group || entry.pods.empty() ? workload.name
                                                    : state_.pod(entry.pods.front().pod).name;
        event.uid = as_group || entry.pods.empty() ? workload.uid
                                                   : state_.pod(entry.pods.front().pod).uid;
        event.warning = true;
        event.reason = std::string(verdict::CodeName(entry.verdict.code));
        event.note = verdict::Message(entry.verdict);
        actions.push_back({0, std::move(event)});
      }
    }
    Current current;
    current.verdict = entry.verdict;
    current.since = written.since;
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      current.pods.push_back(model::Key(state_.pod(pod.pod).ns, state_.pod(pod.pod).name));
    }
    current_.emplace_back(entry.workload, std::move(current));
  }
  Clear(actions);
}

// What no longer waits: a pod's verdict was taken off by its binding; a group's is taken off here.
void VerdictBook::Clear(std::vector<model::Action>& actions) {
  std::vector<std::string> gone;
  if (round_ == 1) {
    // Left behind by a former process, whose group has come to run since.
    state_.ForEachWorkload([&](const state::Workload& workload) {
      if (workload.group == nullptr || workload.group->schedulability_hash.empty()) return;
      written_.try_emplace(KeyOf(workload));
    });
  }
  for (const auto& [key, written] : written_) {
    if (written.round != round_) gone.push_back(key);
  }
  std::sort(gone.begin(), gone.end());  // the table's order is not one to act in
  for (const std::string& key : gone) {
    written_.erase(key);
    if (key[0] != 'g') continue;
    const std::string name = key.substr(2);
    const size_t slash = name.find('/');
    const state::WorkloadId id = state_.FindGroup(name.substr(0, slash), name.substr(slash + 1));
    if (id == state::kNoId || state_.workload(id).group == nullptr) continue;
    const state::Workload& workload = state_.workload(id);
    actions.push_back(
        {0, model::SetPodGroupSchedulability{workload.ns, workload.name, workload.uid, "", "", ""}});
  }
}

void VerdictBook::WriteFailed(const std::string& ns, const std::string& name, bool group) {
  auto it = written_.find(absl::StrCat(group ? "g/" : "p/", ns, "/", name));
  if (it != written_.end()) it->second.hash.clear();
}

}  // namespace fairlead::core
