#include "scheduler/plugins/remote_nodes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "scheduler/framework/calling_plugin.h"

namespace fairlead::plugins {

using Kind = state::StateChange::Kind;

// ---- the copy of the nodes

void RemoteNodes::Follow(const state::ClusterState* state) {
  state_ = state;
  sent_.clear();
  ids_.clear();
  dirty_.clear();
  is_dirty_.clear();
  gone_.clear();
  rows_.clear();
  waiting_.clear();
  confirmed_ = 0;
  if (state == nullptr || !enabled()) return;
  for (const auto& [name, id] : state->nodes_by_name()) MarkDirty(id, /*object=*/true);
}

state::ChangeKinds RemoteNodes::Kinds() const {
  if (config_.node_usage) return {Kind::kClassGone, Kind::kNodeObject, Kind::kNodeUsage};
  return {Kind::kClassGone, Kind::kNodeObject};
}

void RemoteNodes::OnChange(const state::StateChange& change) {
  if (change.kind == Kind::kClassGone) {
    if (change.row < rows_.size()) rows_[change.row] = {};
    std::erase_if(waiting_, [&](const Class& of) { return of.id == change.row; });
    return;
  }
  MarkDirty(change.to_node, change.kind == Kind::kNodeObject);
}

bool RemoteNodes::BelongsToCopy(state::NodeId id) const {
  const state::NodeInfo& node = state_->node(id);
  return node.id == id && node.exists && node.kind == state::NodeKind::kReal;
}

void RemoteNodes::MarkDirty(state::NodeId id, bool object) {
  if (id >= sent_.size()) {
    sent_.resize(id + 1);
    is_dirty_.resize(id + 1);
  }
  const bool belongs = BelongsToCopy(id);
  const bool known = !sent_[id].name.empty();
  if (known && (!belongs || state_->node(id).name() != sent_[id].name)) DropNode(id);
  if (!belongs) return;
  object_dirty_ = object_dirty_ || object;
  if (is_dirty_[id]) return;
  is_dirty_[id] = true;
  dirty_.push_back(id);
}

// What was judged was another node.
void RemoteNodes::DropNode(state::NodeId id) {
  gone_.push_back(sent_[id].name);
  ids_.erase(sent_[id].name);
  sent_[id] = {};
  object_dirty_ = true;
  for (Row& row : rows_) {
    if (id < row.by_node.size()) row.by_node[id] = {};
  }
}

std::string RemoteNodes::CheckConsistency() const {
  if (state_ == nullptr || !enabled()) return "";
  for (const auto& [name, id] : state_->nodes_by_name()) {
    if (!BelongsToCopy(id)) continue;
    const bool dirty = id < is_dirty_.size() && is_dirty_[id];
    if (!dirty && (id >= sent_.size() || sent_[id].name != name)) {
      return absl::StrCat("node ", name, " is not in the copy");
    }
  }
  for (state::NodeId id = 0; id < sent_.size(); ++id) {
    if (sent_[id].name.empty()) continue;
    if (!BelongsToCopy(id) || state_->node(id).name() != sent_[id].name) {
      return absl::StrCat("the copy has node ", sent_[id].name);
    }
  }
  return "";
}

// ---- filter and score

const RemoteNodes::Row* RemoteNodes::RowOf(state::PodClassId id, uint64_t serial) const {
  return id < rows_.size() && rows_[id].serial == serial ? &rows_[id] : nullptr;
}

std::string RemoteNodes::Awaits(const state::PodClass& pod_class) const {
  if (passes_) return "";
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&](const Row& each) { return each.serial == pod_class.serial; });
  const bool judged = row != rows_.end() && row->judged_at > 0;
  if (judged && !object_dirty_ && row->judged_at >= objects_at_) return "";
  if (!failure_.empty()) return failure_;
  return judged ? "it has not judged all nodes yet" : "it has not judged the nodes yet";
}

RemoteNodes::Slot RemoteNodes::SlotOf(const framework::Context& context,
                                      const state::NodeInfo& node) const {
  const Row* const row = RowOf(context.pod_class_id, context.pod_class.serial);
  if (row == nullptr || node.id >= row->by_node.size()) return {};
  const Slot& slot = row->by_node[node.id];
  return slot.object_version == node.object_version ? slot : Slot();
}

bool RemoteNodes::Filter(const framework::Context& context, const state::NodeInfo& node,
                         framework::Status* why) const {
  if (passes_ || !node.TakesBindings()) return true;
  const Slot slot = SlotOf(context, node);
  if (slot.is == Slot::Is::kAdmitted || (slot.is == Slot::Is::kRefused && !filters_)) return true;
  if (why == nullptr) return false;
  why->code = framework::Code::kUnschedulableAndUnresolvable;
  why->reason = slot.is == Slot::Is::kRefused
                    ? rows_[context.pod_class_id].reasons[slot.reason]
                    : absl::StrCat("node(s) that plugin ", config_.name, " has not judged yet");
  return false;
}

int64_t RemoteNodes::Score(const framework::Context& context, const state::NodeInfo& node) const {
  if (passes_ || !scores_) return 0;
  return SlotOf(context, node).score;
}

// ---- questions

const state::PodClass* RemoteNodes::Find(const Class& of) const {
  const state::PodClass& pod_class = state_->pod_class(of.id);
  return pod_class.serial == of.serial ? &pod_class : nullptr;
}

void RemoteNodes::PodsWait(std::vector<state::PodClassId> classes) {
  waiting_.clear();
  std::sort(classes.begin(), classes.end());
  for (const state::PodClassId id : classes) {
    waiting_.push_back({id, state_->pod_class(id).serial});
  }
}

absl::Time RemoteNodes::AskAt(const Class& of) const {
  const Row* const row = RowOf(of.id, of.serial);
  if (row == nullptr || row->judged_at == 0 || row->judged_at < version_) {
    return absl::InfinitePast();
  }
  return row->expires;
}

absl::Time RemoteNodes::wake_at() const {
  if (!enabled() || open_.has_value() || waiting_.empty()) return absl::InfiniteFuture();
  if (object_dirty_ || !gone_.empty()) return not_before_;
  absl::Time at = dirty_.empty() ? absl::InfiniteFuture() : usage_not_before_;
  for (const Class& of : waiting_) at = std::min(at, AskAt(of));
  return std::max(not_before_, at);
}

model::NodeQuestion::SnapshotNode RemoteNodes::Describe(const state::NodeInfo& node) const {
  model::NodeQuestion::SnapshotNode described;
  described.node = node.registered != nullptr ? *node.registered : node.object;
  described.number = NumberOf(node.id);
  if (config_.node_usage) {
    described.requested = node.used.ToList(state_->resource_names());
  }
  return described;
}

model::NodeQuestion::AskedClass RemoteNodes::Describe(const state::PodClass& pod_class) const {
  model::NodeQuestion::AskedClass asked;
  asked.number = pod_class.serial;
  asked.ns = pod_class.spec->ns;
  for (const std::string& label : config_.pod_labels) {
    const std::string* const value = pod_class.spec->labels_for_plugins.Find(label);
    if (value != nullptr) asked.labels.Set(label, *value);
  }
  asked.requests = pod_class.spec->requests;
  return asked;
}

void RemoteNodes::LoseCopy() {
  confirmed_ = 0;
  complete_ = false;
  for (state::NodeId id = 0; id < sent_.size(); ++id) {
    if (sent_[id].name.empty() || is_dirty_[id]) continue;
    is_dirty_[id] = true;
    dirty_.push_back(id);
  }
}

bool RemoteNodes::AddNodes(model::NodeQuestion& question) {
  const std::vector<std::string> gone = std::exchange(gone_, {});
  std::sort(dirty_.begin(), dirty_.end());
  const size_t count = std::min(dirty_.size(), kMaxNodes);
  for (size_t i = 0; i < count; ++i) {
    const state::NodeId id = dirty_[i];
    is_dirty_[id] = false;
    if (!BelongsToCopy(id)) continue;
    Sent& sent = sent_[id];
    if (sent.name.empty()) {
      sent.name = state_->node(id).name();
      ids_[sent.name] = id;
    }
    const state::NodeInfo& node = state_->node(id);
    if (sent.object_version != node.object_version) objects_at_ = version_;
    sent.object_version = node.object_version;
    sent.changed_at = version_;
    question.nodes.push_back(Describe(node));
  }
  if (confirmed_ > 0) {
    // Under the name of some there may be another node by now. If it is not in this question, it
    // comes in a later one.
    std::copy_if(gone.begin(), gone.end(), std::back_inserter(question.gone),
                 [&](const std::string& name) { return !ids_.contains(name); });
  }
  dirty_.erase(dirty_.begin(), dirty_.begin() + static_cast<std::ptrdiff_t>(count));
  if (dirty_.empty()) {
    complete_ = true;
    object_dirty_ = false;
  }
  return complete_ && !object_dirty_;
}

std::shared_ptr<const model::NodeQuestion> RemoteNodes::TakeQuestion(absl::Time now) {
  if (wake_at() > now) return nullptr;
  auto question = std::make_shared<model::NodeQuestion>();
  Question open;
  const uint64_t former = version_;
  if (version_ == 0 || !dirty_.empty() || !gone_.empty()) ++version_;
  question->base_version = confirmed_;
  open.base_version = confirmed_;
  question->version = open.version = version_;
  const bool complete = AddNodes(*question);
  for (const Class& of : waiting_) {
    if (!complete || question->classes.size() == kMaxClasses) break;
    if (AskAt(of) > now) continue;
    const Row* const row = RowOf(of.id, of.serial);
    const bool all = confirmed_ == 0 || row == nullptr || row->judged_at != former ||
                     row->expires <= now || version_ == former;
    question->classes.push_back(Describe(state_->pod_class(of.id)));
    question->classes.back().all_nodes = all;
    open.classes.push_back({of, all});
  }
  usage_not_before_ = now + kUsagePause;
  open_ = std::move(open);
  return question;
}

// ---- answers

void RemoteNodes::Answered(const framework::CallingPlugin::Answer& answer, absl::Time now) {
  if (!open_.has_value()) return;
  const Question question = std::move(*open_);
  open_.reset();
  if (answer.status.ok() && answer.judgements != nullptr) {
    if (answer.judgements->needs_snapshot) {
      if (question.base_version == 0) {
        return Failed(question, absl::InternalError("it asks for all nodes, and has got them"),
                      now);
      }
      return LoseCopy();
    }
    confirmed_ = question.version;
    failures_ = 0;
    not_before_ = absl::InfinitePast();
    SetPasses(false);
    Apply(question, *answer.judgements, now);
    failure_.clear();
    return;
  }
  if (answer.status.ok() || absl::IsUnimplemented(answer.status)) {
    LoseCopy();
    failures_ = 0;
    not_before_ = now + kUnservedPause;
    return SetPasses(true);
  }
  Failed(question, answer.status, now);
}

void RemoteNodes::Failed(const Question& question, const absl::Status& status, absl::Time now) {
  LoseCopy();
  not_before_ = now + kAskAgain.Pause(++failures_);
  failure_ = std::string(status.message());
  if (config_.ignorable) return SetPasses(true);
  for (const Question::Asked& asked : question.classes) changed_.push_back(asked.of);
}

void RemoteNodes::SetPasses(bool passes) {
  if (passes_ == passes) return;
  passes_ = passes;
  for (state::PodClassId id = 0; id < rows_.size(); ++id) {
    if (rows_[id].serial != 0) changed_.push_back({id, rows_[id].serial});
  }
  for (const Class& of : waiting_) changed_.push_back(of);
}

// Only while the program answers: a new answer is some milliseconds away.
std::vector<RemoteNodes::Class> RemoteNodes::TakeChanged(absl::Time now) {
  if (now >= next_expiry_ && failures_ == 0) {
    next_expiry_ = absl::InfiniteFuture();
    for (state::PodClassId id = 0; id < rows_.size(); ++id) {
      Row& row = rows_[id];
      if (row.expires <= now) {
        changed_.push_back({id, row.serial});
        row = {};
      }
      next_expiry_ = std::min(next_expiry_, row.expires);
    }
  }
  return std::exchange(changed_, {});
}

void RemoteNodes::Apply(const Question& question, const model::NodeJudgements& judgements,
                        absl::Time now) {
  absl::flat_hash_map<uint64_t, const model::NodeJudgements::OfClass*> by_class;
  for (const auto& of_class : judgements.classes) {
    by_class.try_emplace(of_class.number, &of_class);
  }
  for (const Question::Asked& asked : question.classes) {
    if (Find(asked.of) == nullptr) continue;
    if (asked.of.id >= rows_.size()) rows_.resize(asked.of.id + 1);
    Row& row = rows_[asked.of.id];
    if (row.serial != asked.of.serial) {
      row = {};
      row.serial = asked.of.serial;
    }
    const std::vector<Slot> former = row.by_node;
    const bool awaited = row.judged_at == 0 || row.judged_at < objects_at_ || !failure_.empty();
    const auto said = by_class.find(asked.of.serial);
    Judge(question, asked, said == by_class.end() ? nullptr : said->second, row);
    // What was judged before may have grown too old meanwhile: then all nodes are asked about.
    if (asked.all_nodes || row.judged_at > 0) row.judged_at = question.version;
    // An answer about some of the nodes makes the others no younger.
    if (asked.all_nodes) row.expires = now + config_.max_age;
    next_expiry_ = std::min(next_expiry_, row.expires);
    if (awaited || row.by_node != former) changed_.push_back(asked.of);
  }
}

void RemoteNodes::Judge(const Question& question, const Question::Asked& asked,
                        const model::NodeJudgements::OfClass* said, Row& row) {
  row.by_node.resize(sent_.size());
  if (asked.all_nodes) row.reasons.clear();
  // Nodes about which the answer has still to be read.
  std::vector<bool> open(sent_.size(), false);
  for (state::NodeId id = 0; id < sent_.size(); ++id) {
    const Sent& sent = sent_[id];
    if (sent.name.empty() || !(asked.all_nodes || sent.changed_at == question.version)) continue;
    open[id] = true;
    Slot& slot = row.by_node[id];
    slot = {};
    slot.is = Slot::Is::kAdmitted;
    slot.object_version = sent.object_version;
    if (said != nullptr && NumberOf(id) < said->scores.size()) {
      slot.score = static_cast<uint8_t>(
          std::min<uint64_t>(said->scores[NumberOf(id)], uint64_t{framework::kMaxNodeScore}));
    }
  }
  if (said == nullptr) return;
  for (const model::NodeJudgement& judgement : said->nodes) {
    const auto found = ids_.find(judgement.node);
    if (found == ids_.end() || !open[found->second]) continue;
    open[found->second] = false;
    Slot& slot = row.by_node[found->second];
    slot.score =
        static_cast<uint8_t>(std::clamp<int64_t>(judgement.score, 0, framework::kMaxNodeScore));
    if (judgement.refusal.empty()) continue;
    slot.is = Slot::Is::kRefused;
    slot.reason = ReasonIn(row, judgement.refusal);
  }
  for (const model::NodeRefusal& refusal : said->refusals) {
    std::optional<uint16_t> reason;
    for (const uint32_t number : refusal.nodes) {
      if (number == 0 || number > open.size() || !open[number - 1]) continue;
      open[number - 1] = false;
      if (refusal.reason.empty()) continue;
      if (!reason.has_value()) reason = ReasonIn(row, refusal.reason);
      Slot& slot = row.by_node[number - 1];
      slot.is = Slot::Is::kRefused;
      slot.reason = *reason;
    }
  }
}

uint16_t RemoteNodes::ReasonIn(Row& row, absl::string_view refusal) const {
  const std::string reason = TruncateUtf8(refusal, kMaxReasonBytes);
  auto known = std::find(row.reasons.begin(), row.reasons.end(), reason);
  if (known == row.reasons.end() && row.reasons.size() >= kMaxReasons) {
    known = std::prev(row.reasons.end());
    *known = absl::StrCat("node(s) that plugin ", config_.name, " refuses");
  } else if (known == row.reasons.end()) {
    known = row.reasons.insert(known, reason);
  }
  return static_cast<uint16_t>(known - row.reasons.begin());
}

}  // namespace fairlead::plugins
