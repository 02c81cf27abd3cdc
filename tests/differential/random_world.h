// Random clusters over everything that the filters and scores of kube-scheduler read, as the JSON
// that the API server would answer. Few names, values and sizes, so that things meet: a selector
// that nothing matches tells nothing.
//
// About half of the pods ask for a lot, and most nodes refuse them: those are for the filters. The
// others have few hard constraints, so that there are several nodes to score. A third of the worlds
// is also about preemption.
//
// Objects are as the API server has them after its defaults. Deterministic for a seed.
// Thread-safety: one generator per thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/dice.h"
#include "tests/differential/random_owners.h"
#include "tests/differential/random_scoring.h"
#include "tests/differential/random_storage.h"
#include "tests/differential/random_terms.h"

namespace fairlead::differential {

// In the order in which both sides ask them.
const std::vector<std::string>& ComparedPlugins();

class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed)
      : dice_(seed), terms_(dice_), images_(dice_), owners_(dice_, kNamespaces) {}
  RandomWorld(const RandomWorld&) = delete;
  RandomWorld& operator=(const RandomWorld&) = delete;

  // {"plugins", "pluginConfig", "namespaces", "nodes", "pods" (all bound), "ask" (all waiting)},
  // and what RandomStorage, RandomOwners and AddPreemption() add: the input of
  // `fairlead-control-plane scheduler-oracle`. Once.
  Json Make(int nodes, int asked);

 private:
  int64_t Between(int64_t low, int64_t high) { return dice_.Between(low, high); }
  bool OneIn(int64_t n) { return dice_.OneIn(n); }
  std::string Pick(const std::vector<std::string>& values) { return dice_.Pick(values); }

  Json Node(int number);
  Json BoundPod(int number, const std::string& node);
  Json WaitingPod(int number, RandomStorage& storage);
  Json DemandingPod(int number);
  Json ModestPod(int number);
  void AddPreferences(Json& spec);
  void LeaveToVolumes(Json& spec);

  Json Pod(const std::string& name);
  Json PodLabels();
  Json Requests();
  Json ModestRequests();
  Json Container(const std::string& name);
  void AddContainers(Json& spec);
  void AddPodRequests(Json& spec);
  void AddResize(Json& pod);
  void AddPorts(Json& container);
  Json Tolerations();

  Dice dice_;
  RandomTerms terms_;
  RandomImages images_;
  RandomOwners owners_;
};

}  // namespace fairlead::differential
