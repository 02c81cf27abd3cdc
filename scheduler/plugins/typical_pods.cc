#include "scheduler/plugins/typical_pods.h"

#include <simdjson.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::plugins {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kMaxCount = 1'000'000'000;
constexpr int64_t kMaxDevices = 1024;
constexpr int64_t kCoveredPercent = 95;

absl::Status ReadNumber(const dom::element& value, int64_t min, int64_t max, int64_t& out) {
  if (value.get(out) == simdjson::SUCCESS && out >= min && out <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("must be a whole number from ", min, " to ", max));
}

absl::Status ReadAmount(const dom::element& value, int64_t units_per_one, int64_t& out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("must be a quantity, as a string");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(out, model::ParseQuantity(ToAbsl(text), units_per_one));
  return out >= 0 ? absl::OkStatus() : absl::InvalidArgumentError("must not be negative");
}

absl::Status ReadProducts(const dom::element& value, model::PodSpec& placement) {
  dom::array array;
  model::SelectorRequirement products{model::kGpuProductLabel, model::SelectorOperator::kIn, {}};
  if (value.get(array) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("must be a list of strings");
  }
  for (const dom::element item : array) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("must be a list of strings");
    }
    products.values.emplace_back(text);
  }
  if (products.values.empty()) return absl::OkStatus();
  placement.has_required_node_affinity = true;
  placement.required_node_terms = {{{std::move(products)}, {}}};
  return absl::OkStatus();
}

absl::Status ReadField(absl::string_view key, const dom::element& value, TypicalPod& pod) {
  if (key == "count") return ReadNumber(value, 1, kMaxCount, pod.weight);
  if (key == "cpu") return ReadAmount(value, 1000, pod.cpu);
  if (key == "memory") return ReadAmount(value, 1, pod.memory);
  if (key == "gpu") return ReadNumber(value, 0, kMaxDevices, pod.devices);
  if (key == "gpuFractionMilli") return ReadNumber(value, 1, 999, pod.milli);
  if (key == "gpuProducts") return ReadProducts(value, pod.placement);
  return absl::InvalidArgumentError("is not a field of a typical pod");
}

absl::StatusOr<TypicalPod> ReadPod(const dom::element& element) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(": must be an object");
  }
  TypicalPod pod;
  pod.devices = 1;
  pod.weight = 1;
  for (const auto& [key, value] : object) {
    const absl::Status status = ReadField(ToAbsl(key), value, pod);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(".", ToAbsl(key), ": ", status.message()));
    }
  }
  return pod;
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("args", what));
}

}  // namespace

std::vector<TypicalPod> Commonest(std::vector<TypicalPod> shapes) {
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const TypicalPod& a, const TypicalPod& b) { return a.weight > b.weight; });
  int64_t all = 0;
  for (const TypicalPod& shape : shapes) all += shape.weight;
  int64_t covered = 0;
  size_t kept = 0;
  bool any_gpus = false;
  // Counts are at most kMaxCount: nothing overflows.
  while (kept < shapes.size() &&
         (!any_gpus || (kept < kMaxTypical && covered * 100 < all * kCoveredPercent))) {
    any_gpus = any_gpus || shapes[kept].devices > 0;
    covered += shapes[kept++].weight;
  }
  shapes.resize(kept);
  for (TypicalPod& shape : shapes) {
    shape.weight = shape.weight * kTypicalWeight / std::max<int64_t>(1, covered);
  }
  shapes.erase(std::remove_if(shapes.begin(), shapes.end(),
                              [](const TypicalPod& shape) { return shape.devices == 0; }),
               shapes.end());
  return shapes;
}

std::vector<TypicalPod> WeighBySize(std::vector<TypicalPod> shapes) {
  constexpr int64_t kPrecision = 64'000;  // keeps differences of one milli-GPU in whole numbers
  absl::int128 sum = 0;
  for (TypicalPod& shape : shapes) {
    const int64_t parts = kPrecision / std::clamp<int64_t>(shape.milli, 1, 1000);
    shape.weight = model::SaturatingMultiply(shape.weight, parts * parts) /
                   std::max<int64_t>(1, shape.devices);
    sum += shape.weight;
  }
  if (sum == 0) return shapes;
  for (TypicalPod& shape : shapes) {
    shape.weight = static_cast<int64_t>(absl::int128(shape.weight) * kTypicalWeight / sum);
  }
  return shapes;
}

absl::StatusOr<std::vector<TypicalPod>> ReadTypicalPods(absl::string_view plugin,
                                                        absl::string_view args_json) {
  std::vector<TypicalPod> pods;
  if (args_json.empty()) return pods;
  dom::parser parser;
  dom::element root;
  dom::object object;
  if (parser.parse(args_json.data(), args_json.size()).get(root) != simdjson::SUCCESS ||
      root.get(object) != simdjson::SUCCESS) {
    return Bad(": must be a JSON object");
  }
  std::set<std::string> seen;
  for (const auto& [key, value] : object) {
    if (!seen.insert(std::string(key)).second) {
      return Bad(absl::StrCat(".", ToAbsl(key), ": is given twice"));
    }
    if (key == "apiVersion") continue;
    if (key == "kind") {
      std::string_view kind;
      const std::string wanted = absl::StrCat(plugin, "Args");
      if (value.get(kind) != simdjson::SUCCESS || kind != wanted) {
        return Bad(absl::StrCat(".kind: must be ", wanted));
      }
      continue;
    }
    if (key != "typicalPods") {
      return Bad(absl::StrCat(".", ToAbsl(key), ": is not an argument of ", plugin));
    }
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return Bad(".typicalPods: must be a list");
    pods.clear();
    for (const dom::element element : array) {
      absl::StatusOr<TypicalPod> pod = ReadPod(element);
      if (!pod.ok()) {
        return Bad(absl::StrCat(".typicalPods[", pods.size(), "]", pod.status().message()));
      }
      pods.push_back(*std::move(pod));
    }
    if (std::none_of(pods.begin(), pods.end(),
                     [](const TypicalPod& pod) { return pod.devices > 0; })) {
      return Bad(".typicalPods: must have a pod with GPUs");
    }
  }
  return pods;
}

std::vector<TypicalPod> LearnTypicalPods(const state::ClusterState& state,
                                         const PodCounts& counts) {
  std::vector<TypicalPod> shapes;
  for (const auto& [id, count] : counts) {
    const state::PodClass& pod_class = state.pod_class(id);
    TypicalPod shape;
    shape.cpu = pod_class.requests[model::kCpu];
    const model::GpuShare& share = pod_class.spec->gpu_share;
    shape.devices = share.IsSet() ? share.devices : pod_class.requests[model::kGpu] / 1000;
    // A share by memory counts as on the smallest GPU of the cluster.
    if (share.IsSet()) {
      shape.milli = std::clamp<int64_t>(
          pod_class.charge[model::kGpu] / std::max<int64_t>(1, share.devices), 1, 1000);
    }
    shape.placement.node_selector = pod_class.spec->node_selector;
    shape.placement.has_required_node_affinity = pod_class.spec->has_required_node_affinity;
    shape.placement.required_node_terms = pod_class.spec->required_node_terms;
    shape.weight = count;
    const auto same = std::find_if(shapes.begin(), shapes.end(),
                                   [&](const TypicalPod& other) { return other.SameShape(shape); });
    if (same != shapes.end()) {
      same->weight += count;
    } else {
      shapes.push_back(std::move(shape));
    }
  }
  return Commonest(std::move(shapes));
}

}  // namespace fairlead::plugins
