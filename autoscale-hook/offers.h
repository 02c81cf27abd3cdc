// Everything that may be bought: the catalogue crossed with pools, zones and capacity types.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "autoscale-hook/backoff.h"
#include "autoscale-hook/catalog.h"

namespace fairlead::hook {

// In the order in which equals are preferred: pool weight (higher first), type, pool, zone,
// on-demand before spot. A type or capacity type without a price, and a spot price above the
// on-demand one (a stale table: spot is never worth more), is no offer. Invalid pools offer
// nothing. Pools and catalogue outlive the offers. O(types * pools * zones).
std::vector<Offer> MakeOffers(const Catalog& catalog,
                              const std::vector<const model::NodePool*>& pools);

// The labels that a node on offer bears, whatever their values: a sorted list for each kind of
// node, no two equal. Those that come from its name are among them.
std::vector<std::vector<std::string>> LabelsOnOffer(const std::vector<Offer>& offers);

LaunchKey KeyOf(const Offer& offer, const std::string& default_provider);

}  // namespace fairlead::hook
