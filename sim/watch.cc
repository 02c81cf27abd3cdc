#include "sim/watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fairlead::sim {

Watch::Watch(EventQueue* queue, ApiServer* server, Faults* faults, absl::Duration delay)
    : queue_(queue), server_(server), faults_(faults), delay_(delay) {
  server->Listen([this](ChangeType type, const Object& object) { OnChange(type, object); });
}

void Watch::Start(Sink sink) {
  Stop();
  sink_ = std::move(sink);
  for (model::Kind kind : model::kAllKinds) {
    Stream& stream = streams_[kind];
    List(kind);
    Deliver(stream, model::Synced{kind});
  }
}

void Watch::Stop() {
  ++epoch_;
  in_flight_ = 0;
  streams_.clear();
  sink_ = nullptr;
}

void Watch::Break(model::Kind kind, absl::Duration outage) {
  auto it = streams_.find(kind);
  if (it == streams_.end() || it->second.broken) return;
  it->second.broken = true;
  ++in_flight_;
  queue_->After(outage, [this, kind, epoch = epoch_] {
    if (epoch != epoch_) return;
    --in_flight_;
    streams_[kind].broken = false;
    List(kind);
  });
}

void Watch::Answer(model::ActionResult result, absl::Duration delay) {
  if (sink_ == nullptr) return;
  Post(queue_->now() + delay, std::move(result));
}

void Watch::OnChange(ChangeType type, const Object& object) {
  if (sink_ == nullptr) return;
  const model::Kind kind = KindOf(object);
  Stream& stream = streams_[kind];
  if (!stream.broken && faults_->Hit(FaultPoint::kWatchBreak)) {
    Break(kind, absl::Seconds(faults_->random().Between(1, 30)));
  }
  if (!stream.broken && type == ChangeType::kDeleted) {
    Delete(stream, kind, model::Key(MetaOf(object)));
  } else if (!stream.broken) {
    Upsert(stream, object);
  }
  // Like a bookmark: the stream of pods reports its progress, in its own order and delay, whether
  // or not the one of nodes is well.
  Stream& pods = streams_[model::Kind::kPod];
  if (kind == model::Kind::kNode && !pods.broken) {
    Deliver(pods, model::Progress{model::Kind::kPod, MetaOf(object).resource_version});
  }
}

void Watch::List(model::Kind kind) {
  Stream& stream = streams_[kind];
  std::map<std::string, const Stream::Sent*> vanished;
  for (const auto& [key, sent] : stream.sent) vanished.emplace(key, &sent);
  std::vector<Object> changed;
  server_->ForEach(kind, [&](const Object& object) {
    const model::ObjectMeta& meta = MetaOf(object);
    auto it = stream.sent.find(model::Key(meta));
    const bool same_object = it != stream.sent.end() && it->second.uid == meta.uid;
    if (same_object) vanished.erase(it->first);
    if (same_object && it->second.resource_version == meta.resource_version) return;
    changed.push_back(object);
  });
  std::vector<std::string> gone;
  for (const auto& [key, sent] : vanished) gone.push_back(key);
  for (const std::string& key : gone) Delete(stream, kind, key);
  for (const Object& object : changed) Upsert(stream, object);
  if (kind == model::Kind::kPod) Deliver(stream, model::Progress{kind, server_->version()});
}

void Watch::Upsert(Stream& stream, const Object& object) {
  const model::ObjectMeta& meta = MetaOf(object);
  stream.sent[model::Key(meta)] = {meta.ns, meta.name, meta.uid, meta.resource_version};
  Deliver(stream, model::Upsert{object});
  if (faults_->Hit(FaultPoint::kDuplicateEvent)) Deliver(stream, model::Upsert{object});
}

void Watch::Delete(Stream& stream, model::Kind kind, const std::string& key) {
  auto it = stream.sent.find(key);
  if (it == stream.sent.end()) return;  // it was created and deleted while the watch was broken
  const Stream::Sent sent = it->second;
  stream.sent.erase(it);
  Deliver(stream, model::Delete{kind, sent.ns, sent.name, sent.uid});
  if (faults_->Hit(FaultPoint::kDuplicateEvent)) {
    Deliver(stream, model::Delete{kind, sent.ns, sent.name, sent.uid});
  }
}

void Watch::Deliver(Stream& stream, model::ClusterEvent event) {
  absl::Duration delay = delay_;
  if (faults_->Hit(FaultPoint::kSlowWatch)) {
    delay += absl::Seconds(faults_->random().Between(1, 10));
  }
  stream.last_delivery = std::max(stream.last_delivery, queue_->now() + delay);
  Post(stream.last_delivery, std::move(event));
}

void Watch::Post(absl::Time when, model::ClusterEvent event) {
  ++in_flight_;
  queue_->At(when, [this, epoch = epoch_, event = std::move(event)] {
    if (epoch != epoch_) return;
    --in_flight_;
    sink_(event);
  });
}

}  // namespace fairlead::sim
