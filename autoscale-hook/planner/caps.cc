#include "autoscale-hook/planner/caps.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

int64_t Left(int64_t limit, int64_t used) {
  if (limit < 0) return kNoBound;
  return std::max<int64_t>(0, limit - used);
}

// The highest price of the catalogue, assumed for a node of unknown price.
int64_t DearestPrice(const Catalog& catalog) {
  int64_t dearest = 0;
  for (const InstanceType& type : catalog.types()) {
    dearest =
        std::max({dearest, type.on_demand_micro_usd.value_or(0), type.spot_micro_usd.value_or(0)});
    for (const Reservation& reservation : type.reservations) {
      dearest = std::max(dearest, reservation.price_micro_usd_per_hour);
    }
  }
  return dearest;
}

int64_t Used(const std::map<std::string, int64_t>& used, const std::string& key) {
  auto it = used.find(key);
  return it == used.end() ? 0 : it->second;
}

}  // namespace

std::optional<int64_t> OrderedGpus(const model::NodeRequest& request) {
  constexpr int64_t kMost = 1'000'000;  // beyond it the label is a mistake
  int64_t count = 0;
  if (!absl::SimpleAtoi(request.meta.labels.Get(kRequestGpusLabel), &count)) return std::nullopt;
  return count < 0 || count >= kMost ? std::nullopt : std::optional(count);
}

int64_t GpusOf(const model::NodeRequest& request, const Catalog& catalog) {
  if (const std::optional<int64_t> ordered = OrderedGpus(request)) return *ordered;
  const InstanceType* type = catalog.Find(request.instance_type);
  return type == nullptr ? 0 : type->gpu_count;
}

void CapUsage::Add(const model::NodeRequest& request, const Catalog& catalog, int64_t node_gpus) {
  const int64_t count = std::max(GpusOf(request, catalog), node_gpus);
  std::string gpu_model(request.meta.labels.Get(kRequestGpuModelLabel));
  if (!OrderedGpus(request).has_value()) {
    const InstanceType* type = catalog.Find(request.instance_type);
    gpu_model = type == nullptr ? "" : type->gpu_model;
  }
  gpus = model::SaturatingAdd(gpus, count);
  if (count > 0) {
    int64_t& of_model = gpus_by_model[gpu_model];
    of_model = model::SaturatingAdd(of_model, count);
  }
  int64_t price = request.price_micro_usd_per_hour;
  if (!request.price_known) {
    const InstanceType* type = catalog.Find(request.instance_type);
    const auto known =
        type == nullptr ? std::nullopt : type->PriceOf(request.spot, request.reservation);
    if (!known.has_value()) {
      ++unpriced;
      assumed_micro_usd_per_hour = DearestPrice(catalog);
    }
    price = known.value_or(assumed_micro_usd_per_hour);
  }
  micro_usd_per_hour = model::SaturatingAdd(micro_usd_per_hour, price);
  ++nodes;
  ++nodes_by_pool[request.pool];
  if (!request.reservation.empty()) ++nodes_by_reservation[request.reservation];
}

bool CountsAgainstCaps(const model::NodeRequest& request, bool registered) {
  if (registered) return true;
  if (request.phase == model::NodeRequestPhase::kGone) return false;
  if (request.phase != model::NodeRequestPhase::kFailed) return true;
  const std::optional<FailureClass> failure = ParseFailure(request.failure);
  return !failure.has_value() || !IsRefusal(*failure) || request.launched_at.has_value();
}

CapsLeft CapsLeft::Of(const CapLimits& limits, const CapUsage& usage,
                      const std::vector<const model::NodePool*>& pools) {
  CapsLeft left;
  left.nodes = Left(limits.nodes, usage.nodes);
  left.gpus = Left(limits.gpus, usage.gpus);
  left.micro_usd_per_hour = Left(limits.micro_usd_per_hour, usage.micro_usd_per_hour);
  for (const auto& [gpu_model, limit] : limits.gpus_by_model) {
    if (limit >= 0) {
      left.gpus_by_model[gpu_model] = Left(limit, Used(usage.gpus_by_model, gpu_model));
    }
  }
  for (const model::NodePool* pool : pools) {
    if (pool->max_nodes >= 0) {
      left.nodes_by_pool[pool->meta.name] =
          Left(pool->max_nodes, Used(usage.nodes_by_pool, pool->meta.name));
    }
  }
  return left;
}

void CapsLeft::AddReservations(const std::vector<Offer>& offers, const CapUsage& usage) {
  for (const Offer& offer : offers) {
    if (offer.reservation == nullptr) continue;
    const std::string& name = offer.reservation->name;
    nodes_by_reservation[name] =
        Left(offer.reservation->count, Used(usage.nodes_by_reservation, name));
  }
}

CapsLeft CapsLeft::WithoutCaps() const {
  CapsLeft left;
  left.nodes_by_reservation = nodes_by_reservation;
  return left;
}

}  // namespace fairlead::hook
