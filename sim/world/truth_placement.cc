// Of Truth: where pods may run beside amounts, and parts of GPUs.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {
namespace {

bool IsThere(const PodRow& row) { return row.facts.active() && !row.facts.terminating; }

}  // namespace

std::string Truth::DomainOf(const std::string& node, const std::string& key) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return "";
  const auto label = found->second.facts.labels.find(key);
  return label == found->second.facts.labels.end() ? "" : label->second;
}

int64_t Truth::CountIn(const std::string& ns, const std::string& app, const std::string& key,
                       const std::string& domain,
                       const std::function<bool(const PodRow&)>& counts) const {
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const PodRow& row = entry.second;
    return row.facts.ns == ns && row.facts.app == app && !row.facts.node.empty() && counts(row) &&
           DomainOf(row.facts.node, key) == domain;
  });
}

std::string Truth::ApartFrom(const PodRow& pod, const std::string& node, absl::Time known) const {
  const auto meet = [&](const PodRow& one, const PodRow& other) -> std::string {
    const Placement* const placement = one.facts.placement.get();
    if (placement == nullptr || one.facts.ns != other.facts.ns) return "";
    for (const PodTerm& term : placement->apart) {
      if (term.app.empty() || term.app != other.facts.app) continue;
      const std::string domain = DomainOf(node, term.topology_key);
      if (domain.empty()) continue;
      const std::string& there = &one == &pod ? other.facts.node : one.facts.node;
      if (DomainOf(there, term.topology_key) != domain) continue;
      return absl::StrCat("pod ", one.facts.key(), " may not share ", term.topology_key, "=",
                          domain, " with pod ", other.facts.key());
    }
    return "";
  };
  for (const auto& [key, other] : pods_) {
    if (&other == &pod || !IsThere(other)) continue;
    if (!other.BoundByFairlead() && other.bound_at >= known) continue;
    std::string text = meet(pod, other);
    if (text.empty()) text = meet(other, pod);
    if (!text.empty()) return text;
  }
  return "";
}

bool Truth::IsNear(const PodRow& pod, const PodTerm& term, const std::string& node,
                   absl::Time since) const {
  const std::string domain = DomainOf(node, term.topology_key);
  if (domain.empty()) return false;
  const auto counts = [&](const PodRow& row) {
    return &row != &pod && (!row.facts.terminal || row.ended_at >= since);
  };
  if (CountIn(pod.facts.ns, term.app, term.topology_key, domain, counts) > 0) return true;
  return std::any_of(departed_.begin(), departed_.end(), [&](const Departed& row) {
    return row.at >= since && row.ns == pod.facts.ns && row.app == term.app;
  });
}

int64_t Truth::CountBeside(const PodRow& pod, const SpreadRule& rule) const {
  const std::string domain = DomainOf(pod.facts.node, rule.topology_key);
  return domain.empty() ? 0 : CountIn(pod.facts.ns, rule.app, rule.topology_key, domain, IsThere);
}

int64_t Truth::LeastCount(const PodRow& pod, const SpreadRule& rule, absl::Time since) const {
  const std::string& ns = pod.facts.ns;
  std::set<std::string> domains;
  for (const auto& [name, row] : nodes_) {
    if (row.facts.of_other_shard) continue;
    const std::string domain = DomainOf(name, rule.topology_key);
    if (!domain.empty() && NodeMatches(*pod.facts.placement, row.facts.labels)) {
      domains.insert(domain);
    }
  }
  int64_t least = INT64_MAX;
  for (const std::string& domain : domains) {
    int64_t count = CountIn(ns, rule.app, rule.topology_key, domain, [&](const PodRow& row) {
      return IsThere(row) || row.ended_at >= since;
    });
    for (const Departed& row : departed_) {
      count += row.at >= since && row.ns == ns && row.app == rule.app &&
                       DomainOf(row.node, rule.topology_key) == domain
                   ? 1
                   : 0;
    }
    least = std::min(least, count);
  }
  return least;
}

bool Truth::MayRunOn(const PodRow& pod, const NodeRow& node) const {
  const Placement* const placement = pod.facts.placement.get();
  if (!ApartFrom(pod, node.facts.name, absl::InfiniteFuture()).empty()) return false;
  if (placement == nullptr) return true;
  if (placement->unknown || !placement->spread.empty()) return false;
  if (!NodeMatches(*placement, node.facts.labels)) return false;
  return std::all_of(placement->near.begin(), placement->near.end(), [&](const PodTerm& term) {
    const std::string domain = DomainOf(node.facts.name, term.topology_key);
    return !domain.empty() &&
           CountIn(pod.facts.ns, term.app, term.topology_key, domain, IsThere) > 0;
  });
}

std::string Truth::OverShared(const PodRow& pod) const {
  for (const std::string& group : pod.facts.gpu_groups) {
    int64_t sum = 0;
    std::string held;
    for (const auto& [key, row] : pods_) {
      const std::vector<std::string>& groups = row.facts.gpu_groups;
      if (row.facts.node != pod.facts.node || !row.facts.active()) continue;
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) continue;
      sum += row.started_share;
      absl::StrAppend(&held, " ", key, ": ", row.started_share);
    }
    if (sum <= 1000) continue;
    return absl::StrCat("GPU group ", group, " of ", pod.facts.node, " holds ", sum,
                        " thousandths of a GPU:", held);
  }
  return "";
}

}  // namespace fairlead::sim::world
