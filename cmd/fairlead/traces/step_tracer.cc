#include "cmd/fairlead/traces/step_tracer.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/logs/action_words.h"
#include "kube/transport/backoff.h"

namespace fairlead::cmd {
namespace {

using tracing::Attribute;

// How often what waits is counted, which is not free in a large cluster.
constexpr absl::Duration kCountEach = absl::Seconds(1);
constexpr size_t kErrorBytes = 256;

template <typename T, typename... Those>
constexpr bool kIsOneOf = (std::is_same_v<T, Those> || ...);

template <typename T>
constexpr bool kIsAboutPod =
    kIsOneOf<T, model::BindPod, model::EvictPod, model::SetPodUnschedulable, model::NominateNode,
             model::SetPodGroup, model::DeletePod, model::AskExtenders, model::SetExtendedClaim>;

// What a span is about: its attributes, and what spans about the same thing have in common.
struct Subject {
  std::vector<Attribute> attributes;
  std::string key;  // empty: nothing that other spans are about
};

void AddPod(Subject& to, const std::string& ns, const std::string& name, const std::string& uid) {
  to.key = absl::StrCat("pod ", uid);
  to.attributes.push_back({"k8s.namespace.name", ns});
  to.attributes.push_back({"k8s.pod.name", name});
  to.attributes.push_back({"k8s.pod.uid", uid});
}

void AddNodeRequest(Subject& to, const std::string& name) {
  to.key = absl::StrCat("NodeRequest ", name);
  to.attributes.push_back({"fairlead.node_request", name});
}

// Names of OpenTelemetry's conventions where it has them.
Subject SubjectOf(const model::Action& action) {
  Subject subject;
  subject.attributes.push_back({"fairlead.action", Describe(action)});
  std::visit(
      [&subject]<typename T>(const T& what) {
        if constexpr (kIsAboutPod<T>) AddPod(subject, what.ns, what.name, what.uid);
        if constexpr (std::is_same_v<T, model::CallPlugin>) {
          if (what.call->question == nullptr) {
            AddPod(subject, what.call->ns, what.call->name, what.call->uid);
          }
        }
        if constexpr (kIsOneOf<T, model::BindPod, model::NominateNode, model::SetNodeTaint>) {
          subject.attributes.push_back({"k8s.node.name", what.node});
        }
        if constexpr (std::is_same_v<T, model::EvictPod>) {
          subject.attributes.push_back({"fairlead.reason", what.reason});
        }
        if constexpr (kIsOneOf<T, model::CreateNodeRequest, model::UpdateNodeRequestStatus,
                               model::LaunchNode>) {
          AddNodeRequest(subject, what.request->meta.name);
        } else if constexpr (std::is_same_v<T, model::TerminateNode>) {
          AddNodeRequest(subject, what.request_name);
        } else if constexpr (std::is_same_v<T, model::DeleteNodeRequest>) {
          AddNodeRequest(subject, what.name);
        }
      },
      action.what);
  return subject;
}

bool IsTraced(const model::Action& action) {
  return !std::holds_alternative<model::EmitEvent>(action.what);
}

template <typename T>
int64_t NumberOf(const std::vector<model::Action>& actions) {
  return std::count_if(actions.begin(), actions.end(), [](const model::Action& action) {
    return std::holds_alternative<T>(action.what);
  });
}

int64_t WaitingWorkloads(const core::DecisionLoop& loop) {
  int64_t workloads = 0;
  for (const auto& [code, waiting] : loop.Count().waiting) workloads += waiting.workloads;
  return workloads;
}

}  // namespace

StepTracer::StepTracer(const Clock* clock, StepTracerOptions options, Sink sink)
    : clock_(clock), options_(options), sink_(std::move(sink)) {}

tracing::TraceId StepTracer::NextTrace() {
  // No trace may have the id 0.
  return {std::max<uint64_t>(options_.prefix, 1), kube::JitterBits(options_.seed, traces_++)};
}

uint64_t StepTracer::NextSpan() {
  uint64_t id = 0;
  while (id == 0) id = kube::JitterBits(~options_.seed, spans_++);
  return id;
}

StepTracer::Progress StepTracer::Since(const core::DecisionLoop::Stats& stats) {
  // A loop of another configuration counts from the start.
  const auto since = [](uint64_t now, uint64_t& before) {
    const uint64_t former = std::exchange(before, now);
    return static_cast<int64_t>(now >= former ? now - former : now);
  };
  return {since(stats.cycles, cycles_), since(stats.hook_steps, hook_steps_)};
}

void StepTracer::AddCounts(const core::DecisionLoop& loop, const core::StepResult& result,
                           const StepTimes& times, tracing::Span& root) {
  const std::vector<model::Action>& actions = result.actions;
  root.attributes = {
      {"fairlead.decision", static_cast<int64_t>(loop.stats().cycles)},
      {"fairlead.bindings", NumberOf<model::BindPod>(actions)},
      {"fairlead.evictions", NumberOf<model::EvictPod>(actions)},
      {"fairlead.node_requests", NumberOf<model::CreateNodeRequest>(actions)},
      {"fairlead.requests", std::count_if(actions.begin(), actions.end(), IsTraced)}};
  if (times.handed_on < count_at_) return;
  count_at_ = times.handed_on + kCountEach;
  root.attributes.push_back({"fairlead.waiting_workloads", WaitingWorkloads(loop)});
}

void StepTracer::OnHandedOn(const core::DecisionLoop& loop, const core::StepResult& result,
                            const StepTimes& times) {
  const Progress progress = Since(loop.stats());
  if (std::none_of(result.actions.begin(), result.actions.end(), IsTraced)) return;
  const tracing::TraceId trace = NextTrace();
  if (!tracing::IsSampled(trace, options_.sampling_rate_per_million)) return;
  // The wall clock may jump, but not within a trace.
  const absl::Time wall = clock_->Now();
  const absl::Duration steady = clock_->Steady();
  uint64_t parent = 0;
  const auto part = [&](absl::string_view name, absl::Duration from, absl::Duration to) {
    return tracing::Span{.trace = trace,
                         .id = NextSpan(),
                         .parent = parent,
                         .name = name,
                         .start = wall - (steady - from),
                         .end = wall - (steady - to)};
  };
  tracing::Span root = part("step", times.began, times.handed_on);
  parent = root.id;
  AddCounts(loop, result, times, root);
  sink_(std::move(root));
  tracing::Span decide = part("decide", times.began, times.decided);
  decide.attributes = {{"fairlead.cycles", progress.cycles},
                       {"fairlead.autoscaler_steps", progress.hook_steps}};
  sink_(std::move(decide));
  sink_(part("submit", times.decided, times.handed_on));
  for (const model::Action& action : result.actions) {
    if (!IsTraced(action)) continue;
    if (open_.size() >= kOpenMax) {
      ++dropped_;
    } else {
      Begin(action, part(ActionName(action), times.decided, times.decided), times.decided);
    }
  }
}

void StepTracer::Begin(const model::Action& action, tracing::Span span, absl::Duration since) {
  span.kind = tracing::SpanKind::kClient;
  Subject subject = SubjectOf(action);
  span.attributes = std::move(subject.attributes);
  if (!subject.key.empty()) {
    const auto before = last_.Exchange(subject.key, {span.trace, span.id});
    if (before.has_value()) span.links.push_back(*before);
  }
  open_[action.id] = {std::move(span), since};
}

void StepTracer::OnAnswer(const model::ActionResult& result) {
  auto found = open_.extract(result.action_id);
  if (!found.empty()) Finish(std::move(found.mapped()), result.status);
}

void StepTracer::OnGivenUp() {
  for (auto& [action, open] : std::exchange(open_, {})) {
    Finish(std::move(open), absl::UnknownError("the answer was not waited for"));
  }
}

void StepTracer::Finish(Open open, const absl::Status& status) {
  tracing::Span& span = open.span;
  span.end = span.start + (clock_->Steady() - open.since);
  span.attributes.push_back({"fairlead.code", absl::StatusCodeToString(status.code())});
  if (!status.ok()) {
    span.status = tracing::StatusCode::kError;
    span.status_message = std::string(status.message().substr(0, kErrorBytes));
  }
  sink_(std::move(span));
}

}  // namespace fairlead::cmd
