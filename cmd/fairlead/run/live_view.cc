#include "cmd/fairlead/run/live_view.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/inspect/top.h"
#include "dashboard/snapshot_json.h"
#include "kube/codec/node_request_names.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/gpu_devices.h"
#include "scheduler/verdict/text.h"

namespace fairlead::cmd {
namespace {

using Phase = model::NodeRequestPhase;

constexpr absl::Duration kOld = absl::Seconds(10);  // of an answer that came late

// As queues count them: of every vendor, and slices of MIG instances.
int64_t GpusIn(const model::ResourceList& list) {
  return model::SaturatingAdd(model::Get(list, model::kGpuName), state::OtherGpusMilli(list));
}

bool IsComing(const core::NodeRow& node) {
  return node.status == "Ordered" || node.status == "Starting";
}

std::optional<int64_t> Finite(int64_t amount) {
  return amount == model::kUnlimited ? std::nullopt : std::make_optional(amount);
}

// By queue, those below it included.
std::map<std::string, int64_t> PricesOf(const core::View& view, const Top& top) {
  std::map<std::string, int64_t> prices;
  for (const Holder& queue : top.queues) prices[queue.name] = queue.price_micro_usd_per_hour;
  // Children come after their parents.
  for (auto row = view.queues.rbegin(); row != view.queues.rend(); ++row) {
    if (!row->parent.empty() && row->depth > 0) prices[row->parent] += prices[row->name];
  }
  return prices;
}

dashboard::QueueLine LineOf(const core::QueueRow& row, int64_t price) {
  const core::QueueResourceRow gpu = ResourceOf(row, model::kGpuName);
  dashboard::QueueLine line;
  line.name = row.name;
  line.parent = row.parent;
  line.problem = row.problem;
  line.depth = row.depth;
  line.leaf = row.leaf;
  line.quota_gpu_milli = Finite(gpu.quota);
  line.limit_gpu_milli = Finite(gpu.limit);
  line.fair_share_gpu_milli = Finite(gpu.fair_share);
  line.used_gpu_milli = gpu.allocated;
  line.requested_gpu_milli = gpu.requested;
  line.waiting_workloads = row.waiting_workloads;
  line.running_pods = row.running_pods;
  line.micro_usd_per_hour = price;
  return line;
}

dashboard::WaitingLine LineOf(const core::WaitingRow& row) {
  dashboard::WaitingLine line;
  line.workload = row.workload;
  line.queue = row.queue;
  line.is_group = row.is_group;
  line.priority = row.priority;
  line.code = std::string(verdict::CodeName(row.verdict.code));
  line.category = std::string(verdict::CategoryName(verdict::CategoryOf(row.verdict.code)));
  line.sentence = verdict::Sentence(row.verdict);
  line.message = row.message;
  const std::vector<verdict::Unblocker>& own = row.verdict.unblockers;
  for (const verdict::Unblocker& helps :
       own.empty() ? verdict::DefaultUnblockers(row.verdict) : own) {
    line.helps.push_back(helps.what);
  }
  line.position = row.verdict.position;
  line.pods = static_cast<int64_t>(row.pods.size());
  line.since = row.since;
  line.expected_at = row.verdict.expected_at;
  return line;
}

dashboard::NodeLine LineOf(const core::NodeRow& row) {
  dashboard::NodeLine line;
  line.name = row.name;
  line.pool = row.pool;
  line.type = row.instance_type;
  line.zone = row.zone;
  line.status = row.status;
  line.capacity_type = row.capacity_type;
  line.ours = !row.node_request.empty();
  line.coming = IsComing(row);
  line.gpu_milli = GpusIn(row.allocatable);
  line.used_gpu_milli = GpusIn(row.used);
  line.promised_gpu_milli = row.promised_gpu_milli;
  line.pods = row.pods;
  line.micro_usd_per_hour = row.price_micro_usd_per_hour;
  line.unneeded_since = row.unneeded_since;
  return line;
}

dashboard::PurchaseLine LineOf(const model::NodeRequest& request) {
  dashboard::PurchaseLine line;
  line.name = request.meta.name;
  line.pool = request.pool;
  line.type = request.instance_type;
  line.zone = request.zone;
  line.capacity_type = request.CapacityType();
  line.phase = std::string(kube::PhaseName(request.phase));
  line.queue = request.queue;
  line.failure = request.failure;
  line.message = request.message;
  line.workloads = request.reason_workloads;
  if (request.price_known) line.micro_usd_per_hour = request.price_micro_usd_per_hour;
  if (request.meta.creation != absl::InfinitePast()) line.requested_at = request.meta.creation;
  return line;
}

// "g5.xlarge (spot), $0.40 an hour, for research/a and 2 more, queue research"
std::string WhyRequested(const model::NodeRequest& request) {
  std::vector<std::string> named = request.reason_workloads;
  const size_t more = named.size() - std::min(named.size(), dashboard::kReasons);
  named.resize(named.size() - more);
  return absl::StrCat(
      request.instance_type, " (", request.CapacityType(), ")",
      request.price_known
          ? absl::StrCat(", ", DollarsText(request.price_micro_usd_per_hour), " an hour")
          : "",
      named.empty() ? "" : absl::StrCat(", for ", absl::StrJoin(named, ", ")),
      more == 0 ? "" : absl::StrCat(" and ", more, " more"),
      request.queue.empty() ? "" : absl::StrCat(", queue ", request.queue));
}

}  // namespace

dashboard::Snapshot SnapshotOf(const core::View& view,
                               const std::vector<model::NodeRequest>& requests) {
  const Top top = TopOf(view, TopOrder::kName);
  std::map<std::string, int64_t> prices = PricesOf(view, top);
  dashboard::Snapshot snapshot;
  snapshot.at = view.at;
  snapshot.version = kVersion;
  for (const core::QueueRow& row : view.queues) {
    snapshot.queues.push_back(LineOf(row, prices[row.name]));
  }
  for (const core::WaitingRow& row : view.waiting) snapshot.waiting.push_back(LineOf(row));
  for (const core::NodeRow& row : view.nodes) snapshot.nodes.push_back(LineOf(row));
  for (const model::NodeRequest& one : requests) snapshot.purchases.push_back(LineOf(one));
  // The newest ones first; one that the API server has not shown yet is new.
  const auto requested = [](const dashboard::PurchaseLine& line) {
    return line.requested_at.value_or(absl::InfiniteFuture());
  };
  std::stable_sort(snapshot.purchases.begin(), snapshot.purchases.end(),
                   [&](const auto& a, const auto& b) { return requested(a) > requested(b); });
  snapshot.micro_usd_per_hour = view.price_micro_usd_per_hour;
  snapshot.idle_micro_usd_per_hour = top.idle_micro_usd_per_hour;
  return snapshot;
}

dashboard::TimelinePoint PointOf(const core::View& view) {
  dashboard::TimelinePoint point;
  point.at = view.at;
  for (const core::NodeRow& node : view.nodes) {
    if (IsComing(node)) continue;
    point.known_gpu_milli += GpusIn(node.allocatable);
    point.used_gpu_milli += GpusIn(node.used);
  }
  point.waiting_workloads = static_cast<int64_t>(view.waiting.size());
  point.micro_usd_per_hour = view.price_micro_usd_per_hour;
  std::map<std::string, int64_t> prices = PricesOf(view, TopOf(view, TopOrder::kName));
  for (const core::QueueRow& row : view.queues) {
    point.queues.push_back(
        {row.name, ResourceOf(row, model::kGpuName).allocated, prices[row.name]});
  }
  return point;
}

void LiveView::OnTick(const core::DecisionLoop& loop, absl::Time now) {
  // What waits and what queues have is known from a decision on; a standby makes none.
  if (loop.stats().cycles == 0 || !timeline_.Wants(now)) return;
  timeline_.Add(PointOf(loop.MakeView(now)));
}

void LiveView::OnStep(const core::DecisionLoop& /*loop*/, const core::StepResult& result,
                      absl::Time now) {
  for (const model::Action& action : result.actions) Note(action, now);
}

void LiveView::Note(const model::Action& action, absl::Time now) {
  if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    const std::string& why = evict->message.empty() ? evict->reason : evict->message;
    timeline_.Add({now, "evicted", model::Key(evict->ns, evict->name), why});
  } else if (const auto* set = std::get_if<model::SetSuspended>(&action.what)) {
    const model::Suspendable& object = set->object;
    const std::string name = absl::StrCat(object.kind, " ", model::Key(object.ns, object.name));
    if (set->suspended) {
      timeline_.Add({now, "suspended", name, object.reason});
    } else {
      timeline_.Add({now, "released", name, "its pods have ended"});
    }
  } else if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    const model::NodeRequest& request = *create->request;
    phases_[request.meta.name] = Phase::kPending;
    timeline_.Add({now, "requested", request.meta.name, WhyRequested(request)});
  } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    const model::NodeRequest& request = *update->request;
    const auto [told, is_new] = phases_.try_emplace(request.meta.name, Phase::kPending);
    if (std::exchange(told->second, request.phase) == request.phase) return;
    if (request.phase == Phase::kDraining) {
      timeline_.Add({now, "removing", request.meta.name, request.message});
    } else if (request.phase == Phase::kFailed) {
      timeline_.Add(
          {now, "failed", request.meta.name,
           absl::StrCat(request.failure, request.failure.empty() ? "" : ": ", request.message)});
    }
  } else if (const auto* gone = std::get_if<model::DeleteNodeRequest>(&action.what)) {
    phases_.erase(gone->name);
    timeline_.Add({now, "removed", gone->name, "its machine has gone"});
  }
}

// Asked once, answered once; shared with the task, which may outlive the question.
template <typename T>
struct LiveView::Question {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<T> answer;
  absl::Time answered_at;
  absl::Duration cost;  // of the owner's thread

  // The answer that `take` gives on the owner's thread; nothing if that takes too long. Then the
  // next Ask waits for the same answer, unless that has come and nobody has fetched it for long.
  static std::shared_ptr<Question> Ask(
      std::shared_ptr<Question>& open, Application& application, absl::Duration max_wait,
      std::function<T(const core::DecisionLoop&, absl::Time)> take) {
    if (open != nullptr && open->IsOld()) open = nullptr;
    if (open == nullptr) {
      open = std::make_shared<Question>();
      application.Look(
          [asked = open, take = std::move(take)](const core::DecisionLoop& loop, absl::Time now) {
            const absl::Time began = absl::Now();
            T answer = take(loop, now);
            const std::lock_guard<std::mutex> lock(asked->mutex);
            asked->answer = std::move(answer);
            asked->answered_at = absl::Now();
            asked->cost = asked->answered_at - began;
            asked->answered.notify_all();
          });
    }
    std::unique_lock<std::mutex> lock(open->mutex);
    open->answered.wait_for(lock, absl::ToChronoNanoseconds(max_wait),
                            [&] { return open->answer.has_value(); });
    if (!open->answer.has_value()) return nullptr;
    lock.unlock();
    return std::exchange(open, nullptr);
  }
  bool IsOld() {
    const std::lock_guard<std::mutex> lock(mutex);
    return answer.has_value() && absl::Now() - answered_at > kOld;
  }
};

struct LiveView::Present {
  core::View view;
  std::vector<model::NodeRequest> requests;
  bool synced = false;
};

namespace {

absl::Status Silent() {
  return absl::UnavailableError(
      "the deciding thread has not answered in time; it starts, or is busy with a decision");
}

}  // namespace

absl::StatusOr<dashboard::SourceText> LiveView::Snapshot(Application& application) {
  const auto asked = Question<Present>::Ask(
      present_, application, owner_wait_, [](const core::DecisionLoop& loop, absl::Time now) {
        return Present{loop.MakeView(now), loop.NodeRequests(), loop.synced()};
      });
  if (asked == nullptr) return Silent();
  const Present& present = *asked->answer;
  dashboard::Snapshot snapshot = SnapshotOf(present.view, present.requests);
  const AppStats stats = application.GetStats();
  snapshot.leads = stats.leader;
  if (!stats.leader) snapshot.leader = stats.lease.holder;
  snapshot.synced = present.synced;
  return dashboard::SourceText{dashboard::SnapshotJson(snapshot), asked->cost};
}

absl::StatusOr<dashboard::SourceText> LiveView::Timeline(Application& application) {
  const auto asked = Question<dashboard::Timeline>::Ask(
      past_, application, owner_wait_,
      [this](const core::DecisionLoop&, absl::Time) { return timeline_; });
  if (asked == nullptr) return Silent();
  return dashboard::SourceText{asked->answer->Json(), asked->cost};
}

}  // namespace fairlead::cmd
