#include "tests/integration/sold_types.h"

#include "absl/strings/str_cat.h"

namespace fairlead::integration {

std::string KarpenterTypes(const std::vector<SoldType>& types) {
  std::string text;
  for (const SoldType& type : types) {
    absl::StrAppend(&text, text.empty() ? "[" : ",", R"({"name":")", type.name,
                    R"(","architecture":"amd64","operatingSystems":["linux"],"resources":{"cpu":")",
                    type.cpu, R"(","memory":")", type.memory_gib,
                    R"(Gi","ephemeral-storage":"100Gi","pods":"110")",
                    type.gpus > 0 ? absl::StrCat(R"(,"nvidia.com/gpu":")", type.gpus, "\"") : "",
                    R"(},"offerings":[{"Price":)", type.milli_usd_per_hour / 1000.0,
                    R"(,"Available":true,"Requirements":[
          {"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]},
          {"key":"topology.kubernetes.io/zone","operator":"In","values":[")",
                    kSoldZone, R"("]}]}]})");
  }
  return text + "]";
}

std::string CatalogueText(const std::vector<SoldType>& types) {
  std::string text = absl::StrCat("defaults: {zones: [", kSoldZone,
                                  "], reserved: {cpu: 100m, memory: 10Mi}}\ntypes:\n");
  for (const SoldType& type : types) {
    absl::StrAppend(
        &text, "- name: ", type.name, "\n  cpu: ", type.cpu, "\n  memory: ", type.memory_gib,
        "Gi\n", type.gpus > 0 ? absl::StrCat("  gpu: {model: H100, count: ", type.gpus, "}\n") : "",
        "  price: {on_demand: ", type.milli_usd_per_hour / 1000.0, "}\n");
  }
  return text;
}

}  // namespace fairlead::integration
