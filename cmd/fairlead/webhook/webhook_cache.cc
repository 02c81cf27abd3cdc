#include "cmd/fairlead/webhook/webhook_cache.h"

#include <string>
#include <utility>
#include <variant>

#include "admission/names.h"

namespace fairlead::cmd {
namespace {

// Its status alone may have changed, which queue controllers write often.
bool SameSpec(const model::Queue& a, const model::Queue& b) {
  return a.meta.generation != 0 && a.meta.generation == b.meta.generation &&
         a.meta.uid == b.meta.uid && a.meta.annotations == b.meta.annotations;
}

}  // namespace

void WebhookCache::OnEvent(const model::ClusterEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto* upsert = std::get_if<model::Upsert>(&event)) return Apply(upsert->object);
  if (const auto* gone = std::get_if<model::Delete>(&event)) return Forget(*gone);
  const auto* synced = std::get_if<model::Synced>(&event);
  if (synced == nullptr) return;
  if (synced->kind == model::Kind::kQueue) has_queues_ = changed_ = true;
  if (synced->kind == model::Kind::kNamespace) has_namespaces_ = changed_ = true;
}

void WebhookCache::Apply(const model::Object& object) {
  if (const auto* queue = std::get_if<model::Queue>(&object)) {
    std::shared_ptr<const model::Queue>& known = seen_.queues[queue->meta.name];
    if (known != nullptr && SameSpec(*known, *queue)) return;
    known = std::make_shared<const model::Queue>(*queue);
    changed_ = true;
  } else if (const auto* ns = std::get_if<model::Namespace>(&object)) {
    const std::string name = ns->meta.name;
    const std::string chosen(ns->meta.labels.Get(admission::kDefaultQueueLabel));
    const auto known = seen_.default_queues.find(name);
    if (chosen.empty()) {
      changed_ |= seen_.default_queues.erase(name) > 0;
    } else if (known == seen_.default_queues.end() || known->second != chosen) {
      seen_.default_queues[name] = chosen;
      changed_ = true;
    }
  }
}

void WebhookCache::Forget(const model::Delete& event) {
  if (event.kind == model::Kind::kQueue) changed_ |= seen_.queues.erase(event.name) > 0;
  if (event.kind == model::Kind::kNamespace) {
    changed_ |= seen_.default_queues.erase(event.name) > 0;
  }
}

void WebhookCache::OnTick(const core::DecisionLoop& loop, absl::Time /*now*/) {
  const core::DecisionLoop* const former = std::exchange(loop_, &loop);
  if (former == &loop || former == nullptr) return;
  // A new loop is told of everything again.
  const std::lock_guard<std::mutex> lock(mutex_);
  seen_ = {};
  has_queues_ = has_namespaces_ = false;
}

std::shared_ptr<const admission::Cluster> WebhookCache::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (changed_ && has_queues_ && has_namespaces_) {
    given_ = std::make_shared<const admission::Cluster>(seen_);
    changed_ = false;
  }
  return given_;
}

}  // namespace fairlead::cmd
