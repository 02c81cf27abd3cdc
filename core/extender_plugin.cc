#include "core/extender_plugin.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

// A pod that does not come again has ended.
constexpr absl::Duration kForgetAfter = absl::Minutes(5);

// The node of the binding is admitted, and the scores prefer no other one.
bool Confirms(const model::NodeAnswers& answers, const std::string& node) {
  const model::NodeAnswer* const own = answers.Find(node);
  if (own == nullptr || !own->admitted) return false;
  return std::all_of(answers.list().begin(), answers.list().end(), [own](const auto& answer) {
    return !answer.admitted || answer.score == own->score;
  });
}

}  // namespace

ExtenderPlugin::ExtenderPlugin(const state::ClusterState& state,
                               std::vector<model::ExtenderConfig> extenders,
                               NodesThatFit nodes_that_fit)
    : state_(state),
      extenders_(std::move(extenders)),
      nodes_that_fit_(std::move(nodes_that_fit)),
      health_(extenders_.size()) {}

bool ExtenderPlugin::IsAskedAbout(const model::ExtenderConfig& extender,
                                  const state::PodClass& pod_class) const {
  const bool asks = !extender.filter_verb.empty() || !extender.prioritize_verb.empty();
  return asks && IsInterested(state_, extender, pod_class);
}

std::vector<int32_t> ExtenderPlugin::AskedAbout(const state::PodClass& pod_class) const {
  std::vector<int32_t> asked;
  for (size_t i = 0; i < extenders_.size(); ++i) {
    if (IsAskedAbout(extenders_[i], pod_class)) asked.push_back(static_cast<int32_t>(i));
  }
  return asked;
}

int32_t ExtenderPlugin::BinderOf(const state::PodRecord& pod) const {
  for (size_t i = 0; i < extenders_.size(); ++i) {
    if (extenders_[i].bind_verb.empty()) continue;
    if (IsInterested(state_, extenders_[i], state_.pod_class(pod.pod_class))) {
      return static_cast<int32_t>(i);
    }
  }
  return -1;
}

bool ExtenderPlugin::Needs(const state::PodRecord& pod) const {
  const state::PodClass& pod_class = state_.pod_class(pod.pod_class);
  const bool asked = std::any_of(extenders_.begin(), extenders_.end(), [&](const auto& extender) {
    return IsAskedAbout(extender, pod_class);
  });
  if (!asked) return false;
  // What its class has of answers is fresh.
  const model::NodeAnswer* const answer =
      pod_class.spec->node_answers.Find(state_.node(pod.node).name());
  return answer == nullptr || !answer->admitted;
}

absl::Status ExtenderPlugin::Reserve(const state::PodRecord& pod, model::BindPod bind) {
  const std::string key = model::Key(pod.ns, pod.name);
  Row& row = rows_[key];
  if (row.uid != pod.uid) {
    row = {};
    row.ns = pod.ns;
    row.name = pod.name;
    row.uid = pod.uid;
  }
  row.stage = Stage::kQueued;
  row.bind = std::move(bind);
  row.due = absl::InfiniteFuture();
  queue_.push_back(key);
  return absl::OkStatus();
}

void ExtenderPlugin::RetireAt(absl::Time due, const std::string& key, Row& row) {
  row.due = due;
  due_.Add(due, key);
}

void ExtenderPlugin::Unreserve(const std::string& ns, const std::string& name) {
  const auto found = rows_.find(model::Key(ns, name));
  if (found == rows_.end() || !found->second.bind.has_value()) return;
  // An answer that is still to come is not waited for.
  if (found->second.refusals == 0) {
    rows_.erase(found);
    return;
  }
  found->second.bind.reset();
  found->second.stage = Stage::kIdle;
  RetireAt(now_ + kForgetAfter, found->first, found->second);
}

bool ExtenderPlugin::HasWork(absl::Time now) const {
  return !ready_.empty() || !failed_.empty() || due_.next() <= now ||
         (!queue_.empty() && asks_.size() < kMaxAsks);
}

absl::Time ExtenderPlugin::wake_at() const { return due_.next(); }

void ExtenderPlugin::Expire(absl::Time now) {
  for (const std::string& key : due_.TakeDue(now)) {
    const auto found = rows_.find(key);
    if (found == rows_.end() || found->second.due > now) continue;
    Row& row = found->second;
    if (row.stage == Stage::kIdle) {
      rows_.erase(found);
      continue;
    }
    changes_.push_back({row.ns, row.name, row.uid, {}});
    if (row.refusals == 0) {
      rows_.erase(found);
      continue;
    }
    row.stage = Stage::kIdle;
    RetireAt(now + kForgetAfter, key, row);
  }
}

void ExtenderPlugin::Fail(Row& row, const std::string& reason) {
  failed_.push_back({row.ns, row.name, row.uid, reason});
  row.bind.reset();
  row.stage = Stage::kIdle;
}

void ExtenderPlugin::SendNext(absl::Time now, std::vector<model::Action>& actions) {
  while (!queue_.empty() && asks_.size() < kMaxAsks) {
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    const auto found = rows_.find(key);
    if (found == rows_.end() || found->second.stage != Stage::kQueued) continue;
    Row& row = found->second;
    const state::PodId pod = state_.FindPod(row.ns, row.name);
    // The pipeline takes it back when it hears of it.
    if (pod == state::kNoId || state_.pod(pod).uid != row.uid) continue;
    auto [extenders, paused] = health_.Choose(AskedAbout(state_.class_of(pod)), extenders_, now);
    if (!paused.empty()) {
      Fail(row, paused);
      RetireAt(now + kForgetAfter, key, row);
      continue;
    }
    if (extenders.empty()) {
      ready_.push_back(*std::exchange(row.bind, std::nullopt));
      rows_.erase(found);
      continue;
    }
    std::vector<std::string> nodes = nodes_that_fit_(pod);
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), row.bind->node);
    if (at == nodes.end() || *at != row.bind->node) nodes.insert(at, row.bind->node);
    row.stage = Stage::kAsked;
    row.number = next_number_++;
    asks_.emplace(row.number, Ask{key, extenders});
    actions.push_back({0, model::AskExtenders{row.number, row.ns, row.name, row.uid,
                                              std::move(extenders), std::move(nodes)}});
  }
}

BindingPlugin::Progress ExtenderPlugin::Advance(absl::Time now) {
  now_ = now;
  Expire(now);
  Progress progress;
  SendNext(now, progress.actions);
  progress.reserved = std::exchange(ready_, {});
  progress.failed = std::exchange(failed_, {});
  return progress;
}

void ExtenderPlugin::TakeAnswers(const std::string& key, Row& row,
                                 const model::NodeAnswers& answers, absl::Time now) {
  const bool admitted = answers.AdmitsAny();
  row.refusals = admitted ? 0 : row.refusals + 1;
  changes_.push_back({row.ns, row.name, row.uid, answers});
  // It is placed again, and no fault of its own.
  Fail(row, "");
  row.stage = Stage::kAnswered;
  RetireAt(now + (admitted ? kFresh : kAskAgain.Pause(row.refusals)), key, row);
}

void ExtenderPlugin::Answered(uint64_t number, const model::ActionResult& result, absl::Time now) {
  const auto ask = asks_.find(number);
  if (ask == asks_.end()) return;
  const Ask asked = std::move(ask->second);
  asks_.erase(ask);
  health_.Take(asked.extenders, result, now);
  const auto found = rows_.find(asked.key);
  if (found == rows_.end() || found->second.stage != Stage::kAsked ||
      found->second.number != number) {
    return;
  }
  Row& row = found->second;
  if (!result.status.ok()) {
    Fail(row, std::string(result.status.message()));
    RetireAt(now + kForgetAfter, asked.key, row);
  } else if (result.node_answers.IsEmpty() || Confirms(result.node_answers, row.bind->node)) {
    ready_.push_back(*std::exchange(row.bind, std::nullopt));
    rows_.erase(found);
  } else {
    TakeAnswers(asked.key, row, result.node_answers, now);
  }
}

}  // namespace fairlead::core
