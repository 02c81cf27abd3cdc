#include "cmd/simtest/kai_status_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {
namespace {

using sim::world::Amounts;
using sim::world::ApiServer;
using sim::world::At;
using sim::world::Json;
using sim::world::PodFacts;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;

constexpr char kInvariant[] = "kai-status";
constexpr int64_t kForGood = 100;  // KAI: from this priority on a workload is not preemptible
constexpr char kDefaultClass[] = "train";
constexpr absl::Duration kPaceWindow = absl::Seconds(2);
// Beside the pace: the first one, and what the ways of two writes differ by.
constexpr int64_t kPaceSlack = 3;

// Where the counts of an object stand.
const Json* CountsIn(ResourceType type, const Json& object) {
  if (type == ResourceType::kQueues) return At(object, {"status"});
  return At(object, {"status", "resourcesStatus"});
}

KaiStatusChecks::Counts ReadCounts(ResourceType type, const Json& object) {
  KaiStatusChecks::Counts counts;
  const Json* const at = CountsIn(type, object);
  if (at == nullptr) return counts;
  counts.allocated = sim::world::ReadAmounts(At(*at, {"allocated"}));
  counts.non_preemptible = sim::world::ReadAmounts(At(*at, {"allocatedNonPreemptible"}));
  counts.requested = sim::world::ReadAmounts(At(*at, {"requested"}));
  if (const Json* const children = At(*at, {"childQueues"})) {
    for (const Json& child : *children) counts.children.push_back(child.get<std::string>());
  }
  std::sort(counts.children.begin(), counts.children.end());
  return counts;
}

// A part of a GPU that is none, or one by memory, which only the node makes a part.
bool HasOddShare(const PodFacts& pod) {
  if (!pod.shares_gpu) return false;
  return pod.share <= 0 || pod.share >= 1000 || pod.requests.gpu != 0;
}

void Add(KaiStatusChecks::Counts& sum, const KaiStatusChecks::Counts& more) {
  sum.allocated += more.allocated;
  sum.non_preemptible += more.non_preemptible;
  sum.requested += more.requested;
  sum.unknown |= more.unknown;
  sum.unknown_class |= more.unknown_class;
}

}  // namespace

// Pods that are counted together: those that name one PodGroup, or one that names none.
struct KaiStatusChecks::Group {
  std::string ns;
  const sim::world::GroupRow* object = nullptr;  // null: there is no PodGroup
  std::vector<const PodRow*> pods;               // also those that have ended
};

std::string KaiStatusChecks::Counts::Text() const {
  return absl::StrCat("allocated ", allocated.Text(), "; of it not preemptible ",
                      non_preemptible.Text(), "; requested ", requested.Text(), "; children [",
                      absl::StrJoin(children, " "), "]");
}

KaiStatusChecks::KaiStatusChecks(const sim::EventQueue* time, ApiServer* server,
                                 const sim::world::Truth* truth, bool on, bool rules_change,
                                 Fail fail)
    : time_(time),
      server_(server),
      truth_(truth),
      on_(on),
      rules_change_(rules_change),
      fail_(std::move(fail)) {
  server->Precede([this](const kube::HttpRequest& request) { OnRequest(request); });
}

// The server takes the status of a custom object whatever uid stands in it. Only a test is one.
void KaiStatusChecks::OnRequest(const kube::HttpRequest& request) {
  const bool of_counts = request.method == "PATCH" && absl::EndsWith(request.path, "/status") &&
                         (absl::StrContains(request.path, "/queues/") ||
                          (absl::StrContains(request.path, "/scheduling.run.ai/") &&
                           absl::StrContains(request.body, "resourcesStatus")));
  if (!of_counts) return;
  if (!on_) {
    fail_(kInvariant, absl::StrCat("counts are written without kaiStatus: ", request.path));
  }
  const Json body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  const bool tests_uid =
      body.is_array() && std::any_of(body.begin(), body.end(), [](const Json& step) {
        return TextAt(step, {"op"}) == "test" && TextAt(step, {"path"}) == "/metadata/uid" &&
               !TextAt(step, {"value"}).empty();
      });
  if (tests_uid) return;
  fail_(kInvariant, absl::StrCat("counts are written to ", request.path,
                                 " for whichever object has that name: ", request.body));
}

void KaiStatusChecks::OnWrite(const ApiServer::Commit& commit, bool calm) {
  if (commit.type != ResourceType::kQueues && commit.type != ResourceType::kPodGroups) return;
  if (commit.before == nullptr || commit.after == nullptr) return;
  const Json* const before = CountsIn(commit.type, *commit.before);
  const Json* const after = CountsIn(commit.type, *commit.after);
  const bool same = before == nullptr || after == nullptr ? before == after : *before == *after;
  if (same) return;
  if (calm) {
    CheckPace(std::string(commit.actor));
  } else {
    writes_.clear();
  }
}

void KaiStatusChecks::CheckPace(const std::string& actor) {
  const absl::Time now = time_->now();
  std::deque<absl::Time>& times = writes_[actor];
  times.push_back(now);
  while (times.front() < now - kPaceWindow) times.pop_front();
  if (static_cast<int64_t>(times.size()) <= kPaceWindow / kCountsEvery + kPaceSlack) return;
  fail_(kInvariant,
        absl::StrCat(times.size(), " statuses are written in ", absl::FormatDuration(kPaceWindow)));
}

absl::Duration KaiStatusChecks::WritesLast() const {
  if (!on_) return absl::ZeroDuration();
  const size_t objects =
      server_->Count(ResourceType::kQueues) + server_->Count(ResourceType::kPodGroups);
  return kCounted + static_cast<int64_t>(objects) * kCountsEvery;
}

std::map<std::string, KaiStatusChecks::Group> KaiStatusChecks::Workloads() const {
  std::map<std::string, Group> groups;
  for (const auto& [key, row] : truth_->groups()) {
    Group& group = groups["group " + key];
    group.ns = row.facts.ns;
    group.object = &row;
  }
  for (const auto& [key, row] : truth_->pods()) {
    if (!row.facts.ours) continue;
    const std::string named = absl::StrCat("group ", row.facts.ns, "/", row.facts.group);
    Group& group = groups[row.facts.group.empty() ? "pod " + key : named];
    group.ns = row.facts.ns;
    group.pods.push_back(&row);
  }
  return groups;
}

std::set<std::string> KaiStatusChecks::QueuesOf(const Group& group) {
  if (group.object != nullptr && !group.object->facts.queue.empty()) {
    return {group.object->facts.queue};
  }
  std::set<std::string> queues;
  for (const PodRow* row : group.pods) queues.insert(row->facts.queue_label);
  return queues;
}

bool KaiStatusChecks::IsForGood(const Group& group, bool& unknown) const {
  unknown |= rules_change_;
  std::string name = group.object != nullptr ? group.object->facts.priority_class : "";
  if (name.empty() && !group.pods.empty()) name = group.pods.front()->facts.priority_class;
  const bool alike = std::all_of(group.pods.begin(), group.pods.end(), [&](const PodRow* row) {
    return row->facts.priority_class == group.pods.front()->facts.priority_class;
  });
  // Without its PodGroup what runs stays as preemptible as it was.
  const bool left =
      group.object == nullptr && !group.pods.empty() && !group.pods.front()->facts.group.empty();
  if (!alike || left) unknown = true;
  const Json* const found =
      server_->Find(ResourceType::kPriorityClasses, "", name.empty() ? kDefaultClass : name);
  if (found == nullptr) {
    unknown |= !name.empty();
    return false;
  }
  const bool for_good = found->value("value", int64_t{0}) >= kForGood;
  if (name.empty() && for_good) unknown = true;  // by whose kind it is, another class decides
  return for_good;
}

KaiStatusChecks::Counts KaiStatusChecks::CountOf(const Group& group) const {
  Counts counts;
  for (const PodRow* row : group.pods) {
    const PodFacts& pod = row->facts;
    if (pod.terminal) continue;
    if (pod.odd_amounts || HasOddShare(pod)) counts.unknown = true;
    Amounts amounts = pod.requests;
    amounts.gpu += pod.share;
    counts.requested += amounts;
    if (pod.node.empty()) continue;
    if (!truth_->nodes().contains(pod.node)) counts.unknown = true;
    counts.allocated += amounts;
  }
  if (IsForGood(group, counts.unknown_class)) counts.non_preemptible = counts.allocated;
  return counts;
}

std::vector<std::string> KaiStatusChecks::Above(const std::string& queue) const {
  std::vector<std::string> above;
  for (std::string at = queue; truth_->queues().contains(at);) {
    if (std::find(above.begin(), above.end(), at) != above.end()) break;
    above.push_back(at);
    at = truth_->queues().at(at).facts.parent;
  }
  return above;
}

void KaiStatusChecks::Judge(const std::string& object, const std::string& uid,
                            const Counts& counted, const Counts& written, bool calm) {
  if (counted.unknown) return;
  const absl::Time now = time_->now();
  Counts shown = written;
  if (counted.unknown_class) shown.non_preemptible = counted.non_preemptible;
  const std::string is = counted.Text();
  Known& known = next_known_[object];
  const auto former = known_.find(object);
  const std::string what = absl::StrCat(uid, " ", is);
  if (former != known_.end() && former->second.what == what) {
    known = former->second;
  } else {
    known = {what, now, now};
  }
  const bool given_up = known.since <= given_up_until_;
  if (!calm || given_up || shown.Text() == is) known.right_at = now;
  if (now - known.right_at <= WritesLast()) return;
  fail_(kInvariant,
        absl::StrCat(object, " has said for ", absl::FormatDuration(now - known.right_at), ": ",
                     shown.Text(), ". True is: ", is));
}

void KaiStatusChecks::Look(bool calm) {
  if (!on_) return;
  std::map<std::string, Counts> queues;
  for (const auto& [name, row] : truth_->queues()) {
    queues[name];
    const std::string& parent = row.facts.parent;
    if (truth_->queues().contains(parent)) queues[parent].children.push_back(name);
  }
  for (const auto& [key, group] : Workloads()) {
    Counts counts = CountOf(group);
    if (group.object != nullptr) {
      JudgeObject(ResourceType::kPodGroups, group.ns, group.object->facts.name, counts, calm);
    }
    const std::set<std::string> named = QueuesOf(group);
    counts.unknown |= named.size() > 1;
    for (const std::string& queue : named) {
      for (const std::string& name : Above(queue)) Add(queues[name], counts);
    }
  }
  for (const auto& [name, counts] : queues) {
    JudgeObject(ResourceType::kQueues, "", name, counts, calm);
  }
  known_ = std::exchange(next_known_, {});
}

void KaiStatusChecks::JudgeObject(ResourceType type, const std::string& ns, const std::string& name,
                                  const Counts& counted, bool calm) {
  const Json& object = *server_->Find(type, ns, name);
  const std::string called = type == ResourceType::kQueues ? absl::StrCat("queue ", name)
                                                           : absl::StrCat("group ", ns, "/", name);
  Judge(called, TextAt(object, {"metadata", "uid"}), counted, ReadCounts(type, object), calm);
}

}  // namespace fairlead::simtest
