#include "kube/watch/reflector_store.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/resource_version.h"

namespace fairlead::kube {

using model::ClusterEvent;

model::Delete ReflectorStore::DeleteOf(absl::string_view key, const Known& known) const {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return {kind_, "", std::string(key), known.uid};
  return {kind_, std::string(key.substr(0, slash)), std::string(key.substr(slash + 1)), known.uid};
}

void ReflectorStore::AdvanceTo(absl::string_view version) {
  if (version.empty()) return;
  if (version_.empty() ||
      model::CompareVersions(version, version_) != model::VersionOrder::kOlder) {
    version_ = std::string(version);
  }
}

void ReflectorStore::Upsert(Object object, std::vector<ClusterEvent>& out) {
  const model::ObjectMeta& meta = MetaOf(object);
  const std::string key = model::Key(meta);
  Known& known = known_[key];
  if (!known.uid.empty() && known.uid != meta.uid) out.push_back(DeleteOf(key, known));
  known.uid = meta.uid;
  known.version = meta.resource_version;
  known.seen_in = snapshot_;
  out.push_back(model::Upsert{std::move(object)});
}

void ReflectorStore::Apply(WatchEvent event, std::vector<ClusterEvent>& out) {
  switch (event.type) {
    case WatchEventType::kError:
      return;
    case WatchEventType::kBookmark:
      AdvanceTo(event.resource_version);
      return;
    case WatchEventType::kAdded:
    case WatchEventType::kModified:
    case WatchEventType::kDeleted:
      break;
  }
  if (!event.object.has_value()) return;
  const model::ObjectMeta& meta = MetaOf(*event.object);
  const std::string version =
      event.resource_version.empty() ? meta.resource_version : event.resource_version;
  const auto found = known_.find(model::Key(meta));
  if (event.type == WatchEventType::kDeleted) {
    // With another uid, it is the deletion of a predecessor that has been replaced already.
    if (found != known_.end() && found->second.uid == meta.uid) {
      out.push_back(DeleteOf(found->first, found->second));
      known_.erase(found);
    }
  } else {
    bool newer = true;
    if (found != known_.end()) {
      // Two objects of one name are also compared: the version orders them, too.
      const model::VersionOrder order =
          model::CompareVersions(meta.resource_version, found->second.version);
      newer = order == model::VersionOrder::kNewer || order == model::VersionOrder::kUnknown;
    }
    if (newer && Counts(*event.object)) {
      Upsert(std::move(*event.object), out);
    } else if (newer && found != known_.end()) {
      out.push_back(DeleteOf(found->first, found->second));
      known_.erase(found);
    }
  }
  AdvanceTo(version);
}

void ReflectorStore::BeginSnapshot() {
  Discard();
  ++snapshot_;
}

void ReflectorStore::Discard() {
  staged_.clear();
  staged_index_.clear();
}

void ReflectorStore::Stage(Object object) {
  const model::ObjectMeta& meta = MetaOf(object);
  if (!Counts(object)) return Unstage(meta);
  std::string key = model::Key(meta);
  const auto known = known_.find(key);
  if (known != known_.end()) {
    known->second.seen_in = snapshot_;
    if (known->second.uid == meta.uid &&
        model::CompareVersions(known->second.version, meta.resource_version) ==
            model::VersionOrder::kEqual) {
      Unstage(meta);
      known->second.seen_in = snapshot_;
      return;
    }
  }
  const auto [entry, inserted] = staged_index_.try_emplace(std::move(key), staged_.size());
  if (inserted) {
    staged_.push_back(std::move(object));
  } else {
    staged_[entry->second] = std::move(object);
  }
}

void ReflectorStore::Unstage(const model::ObjectMeta& meta) {
  const std::string key = model::Key(meta);
  const auto staged = staged_index_.find(key);
  if (staged != staged_index_.end()) staged_[staged->second].reset();
  const auto known = known_.find(key);
  if (known != known_.end()) known->second.seen_in = 0;
}

bool ReflectorStore::Commit(absl::string_view resource_version, bool allow_older,
                            std::vector<ClusterEvent>& out) {
  if (!allow_older &&
      model::CompareVersions(resource_version, version_) == model::VersionOrder::kOlder) {
    Discard();
    return false;
  }
  DeleteUnseen(out);
  for (std::optional<Object>& object : staged_) {
    if (object.has_value()) Upsert(std::move(*object), out);
  }
  version_ = std::string(resource_version);
  Discard();
  staged_.shrink_to_fit();
  return true;
}

void ReflectorStore::DeleteUnseen(std::vector<ClusterEvent>& out) {
  // Sorted: the order of the map differs from process to process.
  std::vector<std::string> gone;
  for (const auto& [key, known] : known_) {
    if (known.seen_in != snapshot_) gone.push_back(key);
  }
  std::sort(gone.begin(), gone.end());
  for (const std::string& key : gone) {
    const auto found = known_.find(key);
    out.push_back(DeleteOf(key, found->second));
    known_.erase(found);
  }
}

void ReflectorStore::DeleteAll(std::vector<ClusterEvent>& out) {
  BeginSnapshot();
  DeleteUnseen(out);
}

}  // namespace fairlead::kube
