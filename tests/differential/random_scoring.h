// What only the scores of kube-scheduler read, for a random cluster: images of nodes and pods, and
// the arguments of plugins.
//
// Thread-safety: the dice's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/differential/dice.h"

namespace fairlead::differential {

using Json = nlohmann::json;

// A name of an image has one size in a world: of several, kube-scheduler takes the first that it
// has seen.
class RandomImages {
 public:
  // The dice must outlive it.
  explicit RandomImages(Dice& dice);

  // status.images.
  Json OfNode();
  // As a container or a volume names it: with a tag, a digest or a registry, or without.
  std::string Reference();
  void AddVolumes(Json& spec);

 private:
  Dice& dice_;
  std::vector<int64_t> sizes_;  // by image; 0: not told
  int64_t rarity_;              // a node has one image in so many
};

// Arguments by plugin, as in a profile's pluginConfig, without those of PodTopologySpread.
Json RandomPluginConfig(Dice& dice);

}  // namespace fairlead::differential
