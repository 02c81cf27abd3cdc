#include "kube/watch/source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kube/transport/backoff.h"
#include "scheduler/model/group_name.h"

namespace fairlead::kube {

bool IsWatched(const model::Object& object) {
  const auto* pod = std::get_if<model::Pod>(&object);
  return pod == nullptr || pod->phase != model::PodPhase::kSucceeded ||
         !model::GroupNameOf(*pod).empty();
}

ClusterSource::ClusterSource(HttpTransport& transport, Timers& timers, const Clock& clock,
                             EventQueue& queue, const SourceOptions& options) {
  const std::vector<model::Kind>& unread = options.unread;
  for (const model::Kind kind : model::kAllKinds) {
    if (std::find(unread.begin(), unread.end(), kind) != unread.end()) continue;
    ReflectorOptions one = options.reflector;
    one.kind = kind;
    one.keeps = IsWatched;
    one.seed = JitterBits(options.seed, static_cast<uint64_t>(kind));
    reflectors_.push_back(
        std::make_unique<Reflector>(transport, timers, clock, queue, features_, std::move(one)));
  }
}

void ClusterSource::Start() {
  for (const auto& reflector : reflectors_) reflector->Start();
}

void ClusterSource::Stop() {
  for (const auto& reflector : reflectors_) reflector->Stop();
}

void ClusterSource::Refresh() {
  for (const auto& reflector : reflectors_) reflector->Refresh();
}

bool ClusterSource::Fresh() const {
  for (const auto& reflector : reflectors_) {
    if (!reflector->GetStats().fresh) return false;
  }
  return true;
}

bool ClusterSource::Synced() const {
  for (const auto& reflector : reflectors_) {
    if (!reflector->GetStats().synced) return false;
  }
  return true;
}

std::vector<ReflectorStats> ClusterSource::GetStats() const {
  std::vector<ReflectorStats> stats;
  stats.reserve(reflectors_.size());
  for (const auto& reflector : reflectors_) stats.push_back(reflector->GetStats());
  return stats;
}

std::vector<ReflectorStats> ClusterSource::Stale(absl::Duration bound) const {
  std::vector<ReflectorStats> stale;
  for (const auto& reflector : reflectors_) {
    ReflectorStats stats = reflector->GetStats();
    if (stats.synced && stats.IsStale(bound)) stale.push_back(std::move(stats));
  }
  return stale;
}

absl::Status ClusterSource::Health(absl::Duration bound) const {
  std::vector<std::string> problems;
  for (const ReflectorStats& stats : GetStats()) {
    const std::string error = stats.last_error.empty() ? "" : absl::StrCat(": ", stats.last_error);
    if (!stats.synced) {
      problems.push_back(absl::StrCat(model::KindTitle(stats.kind), " is not synced", error));
    } else if (stats.IsStale(bound)) {
      problems.push_back(
          absl::StrCat(model::KindTitle(stats.kind), ": last heard of ",
                       absl::FormatDuration(absl::Trunc(stats.since_last_event, absl::Seconds(1))),
                       " ago", error));
    }
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(problems, "; "));
}

}  // namespace fairlead::kube
