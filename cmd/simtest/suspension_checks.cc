#include "cmd/simtest/suspension_checks.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::Json;
using sim::world::ResourceType;
using sim::world::TextAt;

namespace {

constexpr char kSuspension[] = "suspension";

bool IsSuspended(const Json& job) {
  return job.contains("spec") && job["spec"].value("suspend", Json()) == Json(true);
}

bool HasMark(const Json& job) {
  return TextAt(job, {"metadata", "labels", model::kSuspendedLabel}) == "true";
}

std::string NameOf(const Json& job) {
  return absl::StrCat("Job ", TextAt(job, {"metadata", "namespace"}), "/",
                      TextAt(job, {"metadata", "name"}));
}

}  // namespace

bool SuspensionChecks::Suspends(const ApiServer::Commit& commit) {
  return commit.type == ResourceType::kJobs && commit.before != nullptr &&
         commit.after != nullptr && !IsSuspended(*commit.before) && IsSuspended(*commit.after);
}

void SuspensionChecks::CheckSuspension(const Json& job) {
  const std::string ns = TextAt(job, {"metadata", "namespace"});
  const std::string name = TextAt(job, {"metadata", "name"});
  const std::string why = TextAt(job, {"metadata", "annotations", model::kSuspendedForAnnotation});
  if (!HasMark(job) || why.empty() ||
      TextAt(job, {"metadata", "annotations", model::kSuspendedByAnnotation}).empty()) {
    fail_(kSuspension, absl::StrCat(NameOf(job), " is suspended without a mark"));
  }
  const Json* budget = server_->Find(ResourceType::kPodDisruptionBudgets, ns, name);
  absl::Time created = time_->now();
  if (budget != nullptr) {
    absl::ParseTime(absl::RFC3339_full, TextAt(*budget, {"metadata", "creationTimestamp"}),
                    &created, nullptr);
  }
  if (time_->now() - created > kBudgetKnown) {
    fail_(kSuspension, absl::StrCat(NameOf(job), " is suspended, and has a PodDisruptionBudget"));
  }
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (pod.ns != ns || pod.job != name || pod.node.empty() || pod.terminal) continue;
    if (!pod.terminating) going_(pod, why);
  }
}

void SuspensionChecks::OnWrite(const ApiServer::Commit& commit) {
  if (commit.type != ResourceType::kJobs) return;
  if (commit.before == nullptr || commit.after == nullptr) {
    fail_(kSuspension, "a Job is made or deleted");
    return;
  }
  if (Suspends(commit)) return CheckSuspension(*commit.after);
  if (!HasMark(*commit.before)) {
    fail_(kSuspension, absl::StrCat(NameOf(*commit.after), " is written, and had no mark"));
  }
  if (IsSuspended(*commit.after) || HasMark(*commit.after)) {
    fail_(kSuspension, absl::StrCat(NameOf(*commit.after), " is written, and not released"));
  }
}

bool SuspensionChecks::EndsPodsOf(const std::string& queue) const {
  if (since_.empty()) return false;
  return std::any_of(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
    const sim::world::PodRow& row = entry.second;
    if (row.facts.node.empty() || row.facts.job.empty()) return false;
    const Json* job = server_->Find(ResourceType::kJobs, row.facts.ns, row.facts.job);
    if (job == nullptr || !HasMark(*job)) return false;
    const std::vector<std::string> chain = truth_->Chain(row.queue);
    return std::find(chain.begin(), chain.end(), queue) != chain.end();
  });
}

void SuspensionChecks::EverySecond(absl::Time calm_since) {
  const absl::Time now = time_->now();
  std::set<std::string> marked;
  server_->ForEach(ResourceType::kJobs, [&](const Json& job) {
    if (!HasMark(job)) return;
    const std::string uid = TextAt(job, {"metadata", "uid"});
    marked.insert(uid);
    const absl::Time since = since_.try_emplace(uid, now).first->second;
    if (now - std::max(since, calm_since) <= kSuspended) return;
    fail_(kSuspension,
          absl::StrCat(NameOf(job), " is suspended since ", absl::FormatDuration(now - since)));
  });
  std::erase_if(since_, [&](const auto& entry) { return !marked.contains(entry.first); });
}

}  // namespace fairlead::simtest
