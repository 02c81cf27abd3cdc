// Of Checks: limits of queues, and what nodes are requested for.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {
namespace {

using sim::world::Amounts;
using sim::world::Json;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;
using sim::world::Workload;

Amounts Sum(const Workload& workload) {
  Amounts sum;
  for (int64_t i = 0; i < workload.needed(); ++i) {
    sum += workload.waiting[static_cast<size_t>(i)]->facts.requests;
  }
  return sum;
}

}  // namespace

// What the queue holds of what `more` asks for, if that is more than its limit; "" if it is not.
std::string Checks::OverLimitText(const std::string& name, const Amounts& more) const {
  const auto found = truth_->queues().find(name);
  if (found == truth_->queues().end() || found->second.facts.odd) return "";
  const sim::world::QueueFacts& queue = found->second.facts;
  const Amounts use = truth_->UseOf(name, /*terminating_too=*/false);
  const auto over = [&](const char* what, int64_t used, int64_t asked, int64_t limit) {
    if (limit == sim::world::kNoLimit || asked <= 0 || used <= limit) return std::string();
    return absl::StrCat(used, " ", what, ", limit ", limit);
  };
  for (const std::string& text :
       {over("milli-GPU", use.gpu, more.gpu, queue.gpu_limit),
        over("milli-CPU", use.cpu, more.cpu, queue.cpu_limit),
        over("bytes of memory", use.memory, more.memory, queue.memory_limit)}) {
    if (!text.empty()) return text;
  }
  return "";
}

// An eviction that makes room below the limit may be on its way when its heir is bound: kOverLimit.
void Checks::CheckLimits() {
  const absl::Time known = KnownSince();
  for (auto it = over_limit_.begin(); it != over_limit_.end();) {
    auto& [name, over] = *it;
    if (suspensions_.EndsPodsOf(name)) over.since = time_->now();
    const std::string text = OverLimitText(name, over.requests);
    if (text.empty() || truth_->PolicyChangedAt(name) >= std::min(known, over.since - kKnown)) {
      it = over_limit_.erase(it);
      continue;
    }
    if (time_->now() - over.since > caps_.over_limit &&
        time_->now() > disturbed_until_ + kRecovery) {
      std::string held;
      for (const auto& [key, other] : truth_->pods()) {
        const std::vector<std::string> chain = truth_->Chain(other.queue);
        if (!other.facts.ours || !other.facts.active() || other.facts.terminating) continue;
        if (std::find(chain.begin(), chain.end(), name) != chain.end()) {
          absl::StrAppend(&held, " ", key);
        }
      }
      Fail("limit", absl::StrCat("since pod ", over.pod, " was bound, ",
                                 absl::FormatDuration(time_->now() - over.since), " ago, queue ",
                                 name, " has ", text, "; its pods:", held));
    }
    ++it;
  }
}

// A request that is written again for a node that is there buys nothing.
void Checks::OnRequest(const Json& request) {
  const std::string name = TextAt(request, {"metadata", "name"});
  if (truth_->nodes().contains(name)) return;
  int64_t on_order = 0;
  server_->ForEach(ResourceType::kNodeRequests, [&](const Json& object) {
    const std::string phase = TextAt(object, {"status", "phase"});
    // Given up, and on its way out.
    if (object["metadata"].contains("deletionTimestamp")) return;
    if (!TextAt(object, {"status", "unneededSince"}).empty()) return;
    if (phase.empty() || phase == "Pending" || phase == "Launched" || phase == "Registered") {
      ++on_order;
    }
  });
  int64_t waiting = 0;
  for (const auto& [when, count] : waiting_then_) waiting = std::max(waiting, count);
  if (on_order > waiting) {
    Fail("cover", absl::StrCat("node request ", name, ": ", on_order, " are on order, and at most ",
                               waiting, " pods waited in the last minute"));
  }
  const auto spec = request.find("spec");
  if (spec == request.end() || !spec->contains("reasonWorkloads")) return;
  const absl::Time known = KnownSince();
  for (const Workload& workload : truth_->Waiting()) {
    const Json& reasons = (*spec)["reasonWorkloads"];
    if (std::find(reasons.begin(), reasons.end(), Json(workload.key)) == reasons.end()) continue;
    if (truth_->PolicyChangedAt(workload.queue) >= known) continue;
    bool old = workload.group == nullptr || workload.group->changed_at < known;
    for (const PodRow* row : workload.waiting) old = old && row->created < known;
    if (!old) continue;
    const std::string code = truth_->PolicyCode(workload);
    if (!code.empty()) {
      Fail("policy", absl::StrCat("node request ", name, " is for ", workload.key, ": ", code));
    }
    if (workload.waiting.front()->facts.plain &&
        !truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false).empty()) {
      doubtful_.push_back({name, workload.key, time_->now()});
    }
  }
}

// Room below a limit may be made by evictions on their way, and others may take it then: judged
// after kOverLimit, unless there was room for a moment.
void Checks::CheckDoubtfulRequests() {
  for (const Workload& workload : doubtful_.empty() ? std::vector<Workload>() : truth_->Waiting()) {
    if (!truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false).empty()) {
      continue;
    }
    std::erase_if(doubtful_,
                  [&](const Doubtful& doubtful) { return doubtful.workload == workload.key; });
  }
  while (!doubtful_.empty() && time_->now() - doubtful_.front().since > caps_.over_limit) {
    const Doubtful doubtful = doubtful_.front();
    doubtful_.pop_front();
    const Json* const request = server_->Find(ResourceType::kNodeRequests, "", doubtful.request);
    if (request == nullptr || TextAt(*request, {"status", "phase"}) == "Gone") continue;
    for (const Workload& workload : truth_->Waiting()) {
      if (workload.key != doubtful.workload) continue;
      if (truth_->PolicyChangedAt(workload.queue) >= std::min(KnownSince(), doubtful.since))
        continue;
      // A kubelet that is stuck keeps what leaves for longer; it is no reason not to order a node.
      const std::string over =
          truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false);
      if (over.empty()) continue;
      Fail("policy",
           absl::StrCat("node request ", doubtful.request, " is for ", workload.key, ", ",
                        absl::FormatDuration(time_->now() - doubtful.since), " ago: ", over));
    }
  }
}

}  // namespace fairlead::simtest
