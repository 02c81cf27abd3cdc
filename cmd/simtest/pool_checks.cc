#include "cmd/simtest/pool_checks.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::Json;
using sim::world::PoolFacts;
using sim::world::PoolTaint;
using sim::world::ResourceType;
using sim::world::TextAt;

namespace {

constexpr char kPoolLabel[] = "fairlead.dev/node-pool";
constexpr char kInterrupted[] = "aws-node-termination-handler/spot-itn";
constexpr absl::Duration kSeen = absl::Seconds(10);
// Times of objects are whole seconds.
constexpr absl::Duration kRounding = absl::Seconds(2);

bool HasTaint(const Json& node, const PoolTaint& wanted) {
  for (const Json& taint : sim::world::ItemsAt(node, {"spec", "taints"})) {
    const PoolTaint has{TextAt(taint, {"key"}), TextAt(taint, {"value"}),
                        TextAt(taint, {"effect"})};
    if (has == wanted) return true;
  }
  return false;
}

bool IsInterrupted(const Json& node) {
  const Json& taints = sim::world::ItemsAt(node, {"spec", "taints"});
  return std::any_of(taints.begin(), taints.end(),
                     [](const Json& taint) { return TextAt(taint, {"key"}) == kInterrupted; });
}

// It has all that the pool gives its nodes.
bool Bears(const Json& node, const PoolFacts& pool) {
  for (const auto& [key, value] : pool.labels) {
    if (TextAt(node, {"metadata", "labels", key}) != value) return false;
  }
  return std::all_of(pool.taints.begin(), pool.taints.end(),
                     [&](const PoolTaint& taint) { return HasTaint(node, taint); });
}

}  // namespace

// ---- what is requested
// ------------------------------------------------------------------------------

void PoolChecks::OnRequest(const Json& request, absl::Time known) {
  const std::string name = TextAt(request, {"metadata", "name"});
  const std::string pool = TextAt(request, {"spec", "pool"});
  requested_[TextAt(request, {"metadata", "uid"})] = {pool, time_->now(), known};
  if (truth_->nodes().contains(name)) return;  // it is written again for a node that is there
  const auto fail = [&](const std::string& text) {
    fail_("pool", absl::StrCat("node request ", name, text));
  };
  if (pool.empty()) {
    if (!truth_->pools().NoneSince(known)) fail(" names no pool, and there are some");
    return;
  }
  const std::vector<const PoolFacts*> versions = truth_->pools().InForceSince(pool, known);
  if (versions.empty()) return fail(absl::StrCat(" is of pool ", pool, ", which is not in force"));
  const std::string type = TextAt(request, {"spec", "instanceType"});
  const std::string zone = TextAt(request, {"spec", "zone"});
  if (std::none_of(versions.begin(), versions.end(),
                   [&](const PoolFacts* facts) { return facts->Permits(type, zone); })) {
    return fail(absl::StrCat(" is of pool ", pool, ", which has no ", type, " in ", zone));
  }
  CheckCap(pool, name, known);
}

void PoolChecks::CheckCap(const std::string& pool, const std::string& request, absl::Time known) {
  int64_t most = 0;
  for (const PoolFacts* facts : truth_->pools().InForceSince(pool, known)) {
    if (!facts->max_nodes.has_value()) return;
    most = std::max(most, *facts->max_nodes);
  }
  std::set<std::string> uids;
  for (const Machine& machine : cloud_->machines()) {
    const auto found = requested_.find(machine.uid);
    const bool lives = machine.ended == absl::InfiniteFuture() && !machine.uninvited;
    if (lives && found != requested_.end() && found->second.pool == pool) uids.insert(machine.uid);
  }
  server_->ForEach(ResourceType::kNodeRequests, [&](const Json& object) {
    const std::string phase = TextAt(object, {"status", "phase"});
    const bool over = phase == "Failed" || phase == "Draining" || phase == "Gone";
    if (TextAt(object, {"spec", "pool"}) != pool || over ||
        object["metadata"].contains("deletionTimestamp")) {
      return;
    }
    uids.insert(TextAt(object, {"metadata", "uid"}));
  });
  if (static_cast<int64_t>(uids.size()) <= most) return;
  fail_("pool", absl::StrCat("node request ", request, " is number ", uids.size(), " of pool ",
                             pool, ", which may have ", most));
}

// ---- what comes
// -------------------------------------------------------------------------------------

const PoolChecks::Machine* PoolChecks::MachineOf(const Json& node) const {
  const std::string id = TextAt(node, {"spec", "providerID"});
  for (const Machine& machine : cloud_->machines()) {
    if (id == machine.provider_id()) return &machine;
  }
  return nullptr;
}

void PoolChecks::CheckBorn(const Json& node) {
  const Machine* const machine = MachineOf(node);
  if (machine == nullptr) return;
  const auto found = requested_.find(machine->uid);
  if (found == requested_.end() || found->second.pool.empty()) return;
  const std::string& pool = found->second.pool;
  const std::vector<const PoolFacts*> versions =
      truth_->pools().InForceSince(pool, found->second.known);
  const bool right = TextAt(node, {"metadata", "labels", kPoolLabel}) == pool &&
                     std::any_of(versions.begin(), versions.end(),
                                 [&](const PoolFacts* facts) { return Bears(node, *facts); });
  if (right) return;
  fail_("pool", absl::StrCat("node ", TextAt(node, {"metadata", "name"}), " of pool ", pool,
                             " has not the labels and taints of any of its ", versions.size(),
                             " versions since it was requested"));
}

void PoolChecks::NoteUse(const sim::world::PodFacts& pod) {
  if (pod.node.empty() || pod.terminal || pod.terminating || pod.stays) return;
  // What was bound a moment ago need not be known yet.
  const auto row = truth_->pods().find(pod.key());
  if (row == truth_->pods().end() || row->second.bound_at > time_->now() - kSeen) return;
  last_used_[pod.node] = time_->now();
}

void PoolChecks::OnNode(const ApiServer::Commit& commit, absl::Time known, bool judged,
                        bool timed) {
  if (commit.after == nullptr) {
    last_used_.erase(TextAt(*commit.before, {"metadata", "name"}));
    return;
  }
  if (commit.before == nullptr) return CheckBorn(*commit.after);
  if (!judged || !absl::StartsWith(commit.actor, "fairlead")) return;
  if (sim::world::ReadNode(*commit.before).removing) return;
  if (sim::world::ReadNode(*commit.after).removing) CheckRemoval(*commit.after, known, timed);
}

// ---- what goes
// --------------------------------------------------------------------------------------

std::vector<PoolChecks::Rules> PoolChecks::RulesOf(const std::string& pool,
                                                   absl::Time known) const {
  std::vector<Rules> out;
  for (const PoolFacts* facts : truth_->pools().InForceSince(pool, known)) {
    out.push_back({facts->empties.value_or(empties_), facts->removal.value_or(kUnneededAfter),
                   facts->empties_at_once});
  }
  if (pool.empty() || truth_->pools().LapsedSince(pool, known)) {
    out.push_back({empties_, kUnneededAfter, std::nullopt});
  }
  return out;
}

bool PoolChecks::GoesByRules(const Json& node, const Machine& machine) const {
  const Json* const request = server_->Find(ResourceType::kNodeRequests, "", machine.request);
  if (request == nullptr || TextAt(*request, {"metadata", "uid"}) != machine.uid ||
      (*request)["metadata"].contains("deletionTimestamp") ||
      TextAt(*request, {"status", "phase"}) != "Ready") {
    return false;
  }
  // One that took the place of others in vain goes at once.
  if (!sim::world::ItemsAt(*request, {"spec", "replaces"}).empty()) return false;
  const auto& machines = cloud_->machines();
  const auto of_request =
      std::count_if(machines.begin(), machines.end(),
                    [&](const Machine& other) { return other.uid == machine.uid; });
  return of_request == 1 && !machine.uninvited && !IsInterrupted(node);
}

void PoolChecks::CheckRemoval(const Json& node, absl::Time known, bool timed) {
  const Machine* const machine = MachineOf(node);
  const auto found = machine == nullptr ? requested_.end() : requested_.find(machine->uid);
  if (found == requested_.end() || !GoesByRules(node, *machine)) return;
  const std::string name = TextAt(node, {"metadata", "name"});
  const std::vector<Rules> rules = RulesOf(found->second.pool, known);
  if (std::any_of(rules.begin(), rules.end(), [](const Rules& each) { return each.empties; })) {
    const bool never = std::all_of(rules.begin(), rules.end(), [](const Rules& each) {
      return each.wait == absl::InfiniteDuration();
    });
    if (never) fail_("disruption", absl::StrCat("node ", name, " is to go, and is never to"));
    return;
  }
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (pod.node != name || !pod.active() || pod.terminating || pod.stays) continue;
    if (row.bound_at >= known) continue;
    fail_("disruption",
          absl::StrCat("node ", name, " is to go with pod ", key, ", and only empty nodes may"));
  }
  absl::Duration least = absl::InfiniteDuration();
  for (const Rules& each : rules) least = std::min(least, each.wait);
  const auto used = last_used_.find(name);
  const absl::Time since = used == last_used_.end() ? found->second.at : used->second;
  const bool never = least == absl::InfiniteDuration();
  if (never || (timed && time_->now() - since + kRounding < least)) {
    fail_("disruption",
          absl::StrCat("node ", name, " is to go ", absl::FormatDuration(time_->now() - since),
                       " after its last pod, and is to be kept for ", absl::FormatDuration(least)));
  }
  CheckPace(found->second.pool, name, rules);
}

void PoolChecks::CheckPace(const std::string& pool, const std::string& node,
                           const std::vector<Rules>& rules) {
  int64_t most = 0;
  for (const Rules& each : rules) {
    if (!each.at_once.has_value()) return;
    most = std::max(most, *each.at_once);
  }
  int64_t leaving = 0;
  for (const auto& [name, row] : truth_->nodes()) {
    const Json* const object = server_->Find(ResourceType::kNodes, "", name);
    const Machine* const machine =
        row.facts.removing && object != nullptr ? MachineOf(*object) : nullptr;
    const auto found = machine == nullptr ? requested_.end() : requested_.find(machine->uid);
    if (found == requested_.end() || found->second.pool != pool) continue;
    if (name == node || GoesByRules(*object, *machine)) ++leaving;
  }
  if (leaving <= most) return;
  fail_("disruption", absl::StrCat("node ", node, " is to go as one of ", leaving, " of pool ",
                                   pool, ", which lets ", most, " go at once"));
}

// ---- what is told
// -----------------------------------------------------------------------------------

void PoolChecks::WhileCalm(absl::Time calm_since) {
  for (const auto& [name, version] : truth_->pools().Now()) {
    if (time_->now() - std::max(calm_since, version->from) < kPoolTold) continue;
    const Json* const object = server_->Find(ResourceType::kNodePools, "", name);
    if (object == nullptr) continue;
    const std::string& fault = version->facts.fault;
    // Without a hook no provider is configured, and any may be named.
    if (!hook_ && absl::StartsWith(fault, "provider")) continue;
    const char* const wanted = fault.empty() ? "True" : "False";
    std::string told = "nothing";
    for (const Json& condition : sim::world::ItemsAt(*object, {"status", "conditions"})) {
      if (TextAt(condition, {"type"}) == "Ready") told = TextAt(condition, {"status"});
    }
    if (told == wanted) continue;
    fail_("pool", absl::StrCat("NodePool ", name, " (", fault.empty() ? "right" : fault,
                               ") is told Ready=", told));
  }
}

}  // namespace fairlead::simtest
