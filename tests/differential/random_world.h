// Random clusters over everything that the filters of kube-scheduler read, as the JSON that the API
// server would answer. Few names, values and sizes, so that things meet: a selector that nothing
// matches tells nothing.
//
// Objects are as the API server has them after its defaults. Deterministic for a seed.
// Thread-safety: one generator per thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace fairlead::differential {

using Json = nlohmann::json;

// In the order in which both sides ask them.
const std::vector<std::string>& ComparedPlugins();

class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : engine_(seed) {}

  // {"plugins", "namespaces", "nodes", "pods" (all bound), "ask" (all waiting)}: the input of
  // `fairlead-control-plane scheduler-oracle`.
  Json Make(int nodes, int asked);

 private:
  int64_t Between(int64_t low, int64_t high);
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  std::string Pick(const std::vector<std::string>& values);

  Json Node(int number);
  Json BoundPod(int number, const std::string& node);
  Json WaitingPod(int number);

  Json Pod(const std::string& name);
  Json PodLabels();
  Json Requests(bool of_pod);
  Json Container(const std::string& name);
  void AddContainers(Json& spec);
  void AddPorts(Json& container);
  Json Tolerations();
  Json NodeRequirement();
  Json NodeTerm();
  Json NodeAffinity();
  Json LabelSelector();
  Json PodTerm();
  Json NamespaceSelector();
  Json PodTerms(bool anti);
  Json SpreadConstraint();

  std::mt19937_64 engine_;
};

}  // namespace fairlead::differential
