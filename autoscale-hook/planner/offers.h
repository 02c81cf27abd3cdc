// Everything that may be provisioned: the catalogue of each pool's provider, crossed with zones and
// capacity types.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "autoscale-hook/catalog/catalogs.h"
#include "autoscale-hook/provisioning/launch_backoff.h"

namespace fairlead::hook {

// In the order of preference among equals: pool weight (higher first), type, pool, zone, on-demand
// before reserved before spot. A type or capacity type without a price is not offered; nor is spot
// above the on-demand price (a stale table: spot is never worth more). Invalid pools offer nothing.
// Pools and catalogues outlive the offers. O(types * pools * zones).
std::vector<Offer> MakeOffers(const Catalogs& catalogs,
                              const std::vector<const model::NodePool*>& pools);

// The keys of the labels that offered nodes have: a sorted list per kind of node, no two equal.
// They include labels that come from the node's name.
std::vector<std::vector<std::string>> LabelsOnOffer(const std::vector<Offer>& offers);

LaunchKey KeyOf(const Offer& offer, const std::string& default_provider);

}  // namespace fairlead::hook
