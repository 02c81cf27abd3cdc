#include "tests/behaviours/volume_binder.h"

#include "absl/time/time.h"

namespace fairlead::behaviours {
VolumeBinder::VolumeBinder(sim::EventQueue* queue, sim::ApiServer* server)
    : queue_(queue), server_(server) {
  server->Listen([this](sim::ChangeType type, const sim::Object& object) {
    const auto* const volume = std::get_if<model::PersistentVolume>(&object);
    if (volume == nullptr || type == sim::ChangeType::kDeleted || !volume->claim) return;
    queue_->After(absl::ZeroDuration(), [this, name = volume->meta.name] { Bind(name); });
  });
}

void VolumeBinder::Bind(const std::string& name) {
  const auto* const volume = server_->Find<model::PersistentVolume>(name);
  if (volume == nullptr || !volume->claim.has_value()) return;
  const std::string key = model::Key(volume->claim->ns, volume->claim->name);
  const auto* const claim = server_->Find<model::PersistentVolumeClaim>(key);
  const bool is_other =
      claim == nullptr || (!volume->claim->uid.empty() && volume->claim->uid != claim->meta.uid);
  if (is_other || claim->IsBound()) return;
  server_->Modify<model::PersistentVolumeClaim>(key, [&](model::PersistentVolumeClaim& stored) {
    stored.volume_name = name;
    stored.bind_completed = true;
  });
}

}  // namespace fairlead::behaviours
