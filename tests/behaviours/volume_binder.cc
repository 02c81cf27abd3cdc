#include "tests/behaviours/volume_binder.h"

#include <string>
#include <variant>

#include "absl/time/time.h"

namespace fairlead::behaviours {
VolumeBinder::VolumeBinder(sim::EventQueue* queue, sim::ApiServer* server)
    : queue_(queue), server_(server) {
  server->Listen([this](sim::ChangeType type, const sim::Object& object) {
    const bool is_claim = std::holds_alternative<model::PersistentVolumeClaim>(object);
    const bool is_volume = std::holds_alternative<model::PersistentVolume>(object);
    if ((!is_claim && !is_volume) || type == sim::ChangeType::kDeleted) return;
    queue_->After(absl::ZeroDuration(), [this] { BindAll(); });
  });
}

void VolumeBinder::BindAll() {
  for (const auto& [name, volume] : server_->All<model::PersistentVolume>()) {
    if (!volume.claim.has_value()) continue;
    const std::string key = model::Key(volume.claim->ns, volume.claim->name);
    const auto* const claim = server_->Find<model::PersistentVolumeClaim>(key);
    if (claim == nullptr || claim->IsBound()) continue;
    const bool is_for_another =
        (!volume.claim->uid.empty() && volume.claim->uid != claim->meta.uid) ||
        (!claim->volume_name.empty() && claim->volume_name != name);
    if (is_for_another) continue;
    server_->Modify<model::PersistentVolumeClaim>(
        key, [volume_name = name](model::PersistentVolumeClaim& stored) {
          stored.volume_name = volume_name;
          stored.bind_completed = true;
        });
  }
}

}  // namespace fairlead::behaviours
