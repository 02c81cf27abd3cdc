#include "sim/world/truth_pools.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

constexpr size_t kCronFields = 5;

std::vector<std::string> Texts(const Json& from, JsonPath path) {
  std::vector<std::string> out;
  for (const Json& item : ItemsAt(from, path)) out.push_back(Text(&item));
  return out;
}

// "20s": whole seconds are all that these worlds write; nothing for what is no duration.
std::optional<absl::Duration> Seconds(const std::string& text) {
  int64_t seconds = 0;
  if (text.size() < 2 || text.back() != 's') return std::nullopt;
  const std::string digits = text.substr(0, text.size() - 1);
  const bool plain = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if (!plain || !absl::SimpleAtoi(digits, &seconds)) return std::nullopt;
  return absl::Seconds(seconds);
}

void ReadDisruption(const Json& pool, PoolFacts& out) {
  const JsonPath policy = {"spec", "disruption", "consolidationPolicy"};
  if (At(pool, policy) != nullptr) out.empties = TextAt(pool, policy) != "WhenEmpty";
  const JsonPath after = {"spec", "disruption", "consolidateAfter"};
  if (At(pool, after) != nullptr) {
    const std::string text = TextAt(pool, after);
    out.removal = text == "Never" ? absl::InfiniteDuration() : Seconds(text);
    if (!out.removal.has_value()) out.fault = absl::StrCat("consolidateAfter ", text);
  }
  for (const Json& budget : ItemsAt(pool, {"spec", "disruption", "budgets"})) {
    const std::string schedule = TextAt(budget, {"schedule"});
    if (At(budget, {"schedule"}) != nullptr) {
      const std::vector<std::string> fields = absl::StrSplit(schedule, ' ', absl::SkipEmpty());
      if (fields.size() != kCronFields) out.fault = absl::StrCat("schedule ", schedule);
      continue;  // when it holds is not judged
    }
    const std::vector<std::string> reasons = Texts(budget, {"reasons"});
    const bool of_empty =
        reasons.empty() || std::find(reasons.begin(), reasons.end(), "Empty") != reasons.end();
    std::string nodes = TextAt(budget, {"nodes"});
    if (nodes == "0%") nodes = "0";
    int64_t number = 0;
    if (!of_empty || !absl::SimpleAtoi(nodes, &number)) continue;
    out.empties_at_once = std::min(number, out.empties_at_once.value_or(number));
  }
}

}  // namespace

bool PoolFacts::Permits(const std::string& type, const std::string& zone) const {
  const auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
  };
  return in(types, type) && in(zones, zone);
}

PoolFacts ReadPool(const Json& pool) {
  PoolFacts out;
  const std::string provider = TextAt(pool, {"spec", "provider"});
  if (!provider.empty() && provider != "kwok") out.fault = absl::StrCat("provider ", provider);
  out.types = Texts(pool, {"spec", "instanceTypes"});
  out.zones = Texts(pool, {"spec", "zones"});
  if (const Json* const labels = At(pool, {"spec", "labels"})) {
    for (auto it = labels->begin(); it != labels->end(); ++it) out.labels[it.key()] = Text(&*it);
  }
  for (const char* own : {"kubernetes.io/hostname", "fairlead.dev/node-request"}) {
    if (out.labels.contains(own)) out.fault = absl::StrCat("label ", own);
  }
  const auto zone = out.labels.find("topology.kubernetes.io/zone");
  if (zone != out.labels.end() && !out.zones.empty() &&
      (out.zones.size() > 1 || out.zones.front() != zone->second)) {
    out.fault = absl::StrCat("label ", zone->first);
  }
  for (const Json& taint : ItemsAt(pool, {"spec", "taints"})) {
    out.taints.push_back(
        {TextAt(taint, {"key"}), TextAt(taint, {"value"}), TextAt(taint, {"effect"})});
  }
  out.has_startup_taints = HasItems(pool, {"spec", "startupTaints"});
  const int64_t most = IntAt(pool, {"spec", "maxNodes"}, -1);
  if (most >= 0) out.max_nodes = most;
  ReadDisruption(pool, out);
  if (At(pool, {"spec", "gpuSharing"}) != nullptr &&
      !HasItems(pool, {"spec", "gpuSharing", "migDevices"})) {
    out.fault = "gpuSharing without devices";
  }
  return out;
}

void TruthPools::OnCommit(const ApiServer::Commit& commit) {
  if (commit.type != ResourceType::kNodePools) return;
  const absl::Time now = time_->now();
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  std::vector<PoolVersion>& versions = versions_[TextAt(object, {"metadata", "name"})];
  if (commit.before == nullptr) {
    if (count_++ == 0) none_until_ = now;
  } else if (commit.after != nullptr && (*commit.before)["spec"] == object["spec"]) {
    return;  // its status
  } else {
    versions.back().until = now;
  }
  if (commit.after != nullptr) {
    versions.push_back({TextAt(object, {"metadata", "uid"}), ReadPool(object), now});
  } else if (--count_ == 0) {
    none_until_ = absl::InfiniteFuture();
  }
}

bool TruthPools::NoneSince(absl::Time since) const {
  return versions_.empty() || none_until_ >= since;
}

std::vector<const PoolFacts*> TruthPools::InForceSince(const std::string& name,
                                                       absl::Time since) const {
  std::vector<const PoolFacts*> out;
  const auto found = versions_.find(name);
  if (found == versions_.end()) return out;
  const std::vector<PoolVersion>& versions = found->second;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!versions[i].facts.fault.empty()) continue;
    bool kept = versions[i].until >= since;
    for (size_t next = i + 1; next < versions.size(); ++next) {
      const bool wrong = !versions[next].facts.fault.empty();
      kept =
          kept || (versions[next].uid == versions[i].uid && wrong && versions[next].until >= since);
    }
    if (kept) out.push_back(&versions[i].facts);
  }
  return out;
}

bool TruthPools::LapsedSince(const std::string& name, absl::Time since) const {
  const auto found = versions_.find(name);
  if (found == versions_.end() || found->second.back().until <= time_->now()) return true;
  const std::vector<PoolVersion>& versions = found->second;
  absl::Time right_since = absl::InfiniteFuture();  // without a gap until now
  for (size_t i = versions.size(); i > 0; --i) {
    const PoolVersion& version = versions[i - 1];
    const bool follows = i == versions.size() || version.until == versions[i].from;
    if (!follows || !version.facts.fault.empty()) break;
    right_since = version.from;
  }
  return right_since >= since;
}

bool TruthPools::Sells(const std::string& type, absl::Time since) const {
  if (versions_.empty()) return true;
  return std::any_of(versions_.begin(), versions_.end(), [&](const auto& entry) {
    const PoolVersion& last = entry.second.back();
    const PoolFacts& facts = last.facts;
    return last.until == absl::InfiniteFuture() && last.from < since && facts.fault.empty() &&
           facts.zones.empty() && facts.Permits(type, "") && facts.taints.empty() &&
           !facts.has_startup_taints && !facts.max_nodes.has_value();
  });
}

std::map<std::string, const PoolVersion*> TruthPools::Now() const {
  std::map<std::string, const PoolVersion*> out;
  for (const auto& [name, versions] : versions_) {
    if (versions.back().until == absl::InfiniteFuture()) out[name] = &versions.back();
  }
  return out;
}

}  // namespace fairlead::sim::world
