#include "autoscale-hook/planner/offers.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace fairlead::hook {
namespace {

bool Allows(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

bool AllowsReservation(const model::NodePool& pool, const std::string& name) {
  const auto& list = pool.reservations;
  return !list.has_value() || std::find(list->begin(), list->end(), name) != list->end();
}

absl::string_view NameOf(const Reservation* reservation) {
  return reservation == nullptr ? absl::string_view() : reservation->name;
}

void AddOffers(const InstanceType& type, const model::NodePool& pool, std::vector<Offer>& offers) {
  for (const std::string& zone : type.zones) {
    if (!Allows(pool.zones, zone)) continue;
    if (type.on_demand_micro_usd.has_value()) {
      offers.push_back({&type, &pool, zone, false, *type.on_demand_micro_usd});
    }
    for (const Reservation& reservation : type.reservations) {
      const bool here = reservation.zone.empty() || reservation.zone == zone;
      if (here && AllowsReservation(pool, reservation.name)) {
        offers.push_back(
            {&type, &pool, zone, false, reservation.price_micro_usd_per_hour, &reservation});
      }
    }
    const bool spot_is_sane =
        type.spot_micro_usd.has_value() && (!type.on_demand_micro_usd.has_value() ||
                                            *type.spot_micro_usd <= *type.on_demand_micro_usd);
    if (pool.allow_spot && spot_is_sane) {
      offers.push_back({&type, &pool, zone, true, *type.spot_micro_usd});
    }
  }
}

}  // namespace

std::vector<Offer> MakeOffers(const Catalogs& catalogs,
                              const std::vector<const model::NodePool*>& pools) {
  std::vector<Offer> offers;
  for (const model::NodePool* pool : pools) {
    if (!pool->invalid.empty() || pool->meta.deletion.has_value()) continue;
    for (const InstanceType& type : catalogs.Of(pool->provider).types()) {
      if (Allows(pool->instance_types, type.name)) AddOffers(type, *pool, offers);
    }
  }
  std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    if (a.pool->weight != b.pool->weight) return a.pool->weight > b.pool->weight;
    if (a.type->name != b.type->name) return a.type->name < b.type->name;
    if (a.pool->meta.name != b.pool->meta.name) return a.pool->meta.name < b.pool->meta.name;
    if (a.zone != b.zone) return a.zone < b.zone;
    if (a.spot != b.spot) return !a.spot;
    return NameOf(a.reservation) < NameOf(b.reservation);
  });
  return offers;
}

std::vector<std::vector<std::string>> LabelsOnOffer(const std::vector<Offer>& offers) {
  std::set<std::vector<std::string>> kinds;
  std::set<std::tuple<const InstanceType*, const model::NodePool*, bool, const Reservation*>> seen;
  for (const Offer& offer : offers) {
    // The label sets depend on nothing else.
    if (!seen.insert({offer.type, offer.pool, offer.zone.empty(), offer.reservation}).second) {
      continue;
    }
    std::vector<std::string> labels;
    for (const auto& [key, value] : UsableNode(offer, "name").meta.labels) labels.push_back(key);
    std::sort(labels.begin(), labels.end());
    kinds.insert(std::move(labels));
  }
  return {kinds.begin(), kinds.end()};
}

LaunchKey KeyOf(const Offer& offer, const std::string& default_provider) {
  return {offer.pool->provider.empty() ? default_provider : offer.pool->provider,
          offer.pool->meta.name,
          offer.type->name,
          offer.zone,
          offer.spot,
          std::string(NameOf(offer.reservation))};
}

}  // namespace fairlead::hook
