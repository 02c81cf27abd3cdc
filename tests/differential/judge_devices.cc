#include "tests/differential/judge_devices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/codec/json_codec.h"
#include "scheduler/state/device_placement.h"

namespace fairlead::differential {
namespace {

template <typename T>
absl::StatusOr<T> Decode(const nlohmann::json& object) {
  auto decoded = kube::json::DecodeObject(model::KindOf<T>(), object.dump());
  const std::string name = object["metadata"]["name"];
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", decoded.status().message()));
  }
  T typed = std::get<T>(*std::move(decoded));
  if (typed.invalid.empty()) return typed;
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", typed.invalid));
}

absl::Status Fill(const nlohmann::json& world, state::DeviceAllocator& book) {
  for (const std::string node : world["nodes"]) {
    model::StringMap labels;
    for (const auto& [key, value] : world["labels"][node].items()) {
      labels.Set(key, value.get<std::string>());
    }
    book.inventory().UpsertNode(node, labels);
  }
  for (const nlohmann::json& object : world["resourceSlices"]) {
    FAIRLEAD_ASSIGN_OR_RETURN(const auto slice, Decode<model::ResourceSlice>(object));
    book.inventory().UpsertSlice(slice);
  }
  for (const nlohmann::json& object : world["deviceClasses"]) {
    FAIRLEAD_ASSIGN_OR_RETURN(const auto device_class, Decode<model::DeviceClass>(object));
    book.UpsertClass(device_class);
  }
  for (const nlohmann::json& object : world["resourceClaims"]) {
    FAIRLEAD_ASSIGN_OR_RETURN(const auto claim, Decode<model::ResourceClaim>(object));
    book.UpsertClaim(claim);
  }
  return absl::OkStatus();
}

using Chosen = std::vector<std::vector<size_t>>;  // by claim: of requests with alternatives

// "": there are devices. By numbers first, as NodeResourcesFit compares them.
std::string WhyNot(const state::DeviceAllocator& book, const std::string& node,
                   const model::ResourceList& requests, Chosen& chosen) {
  const auto counts = book.CountDevices(node);
  for (const auto& [name, amount] : requests) {
    const auto has = std::find_if(counts.begin(), counts.end(),
                                  [&, of = name](const auto& entry) { return entry.first == of; });
    const int64_t count = has == counts.end() ? 0 : has->second;
    if (count < amount) return absl::StrCat(count, " of ", amount, " ", name);
  }
  const state::PlacedDevices placed = state::PlaceDevices(
      book, node, requests,
      [&](const state::NodeDevice& device) { return book.HolderOf(device.key) == nullptr; });
  for (const state::PlacedDevices::Claim& claim : placed.claims) {
    const state::ClaimShape& shape = *book.FindShape(claim.shape);
    std::vector<size_t> options;
    for (size_t i = 0; i < claim.options.size(); ++i) {
      if (shape.requests[i].first_available) options.push_back(claim.options[i]);
    }
    if (!options.empty()) chosen.push_back(std::move(options));
  }
  switch (placed.outcome) {
    case state::ChoiceOutcome::kFound:
      return "";
    case state::ChoiceOutcome::kNone:
      return "no choice";
    case state::ChoiceOutcome::kGaveUp:
      return "too many choices";
  }
  return "";
}

// What is wrong about our choice of alternatives, or empty. Where several claims have some, which
// of them is served first differs.
std::string CompareAlternatives(const Chosen& ours, const nlohmann::json& theirs,
                                DeviceComparison& result) {
  Chosen other = theirs.get<Chosen>();
  std::erase_if(other, [](const auto& options) { return options.empty(); });
  if (other.size() != ours.size() || (ours.size() == 1 && ours > other)) {
    return absl::StrCat("fairlead ", nlohmann::json(ours).dump(), ", kube-scheduler ",
                        nlohmann::json(other).dump());
  }
  if (ours.size() == 1) ++(ours == other ? result.same_alternatives : result.better_alternatives);
  return "";
}

}  // namespace

absl::StatusOr<DeviceComparison> CompareDevices(const nlohmann::json& world,
                                                const nlohmann::json& theirs) {
  DeviceComparison result;
  state::DeviceAllocator book([](state::ClaimId, absl::string_view) {});
  FAIRLEAD_RETURN_IF_ERROR(Fill(world, book));
  for (size_t i = 0; i < world["asks"].size(); ++i) {
    model::ResourceList requests;
    for (const nlohmann::json& object : world["asks"][i]) {
      FAIRLEAD_ASSIGN_OR_RETURN(const auto claim, Decode<model::ResourceClaim>(object));
      FAIRLEAD_ASSIGN_OR_RETURN(const auto demands, book.DemandsOf(claim));
      for (const state::RequestDemand& demand : demands) {
        model::Add(requests, demand.demand, demand.count);
      }
    }
    for (const std::string node : world["nodes"]) {
      ++result.pairs;
      const bool answered = theirs.is_array() && i < theirs.size() && theirs[i].is_object() &&
                            theirs[i].contains(node);
      const nlohmann::json their = answered ? theirs[i][node] : nlohmann::json::object();
      const std::string error = their.value("error", "");
      if (absl::StrContains(error, "CEL runtime error") ||
          absl::StrContains(error, "a claim constraint would not be satisfied")) {
        ++result.given_up;
        continue;
      }
      const bool allocated = their.value("allocated", false);
      Chosen chosen;
      const std::string why_not = WhyNot(book, node, requests, chosen);
      if (answered && allocated == why_not.empty()) {
        result.found += allocated;
        if (!allocated) continue;
        const std::string wrong =
            CompareAlternatives(chosen, their.value("chosen", nlohmann::json::array()), result);
        if (!wrong.empty()) {
          result.differences.push_back(
              absl::StrCat("ask ", i, " on ", node, ": alternatives: ", wrong));
        }
        continue;
      }
      result.differences.push_back(
          absl::StrCat("ask ", i, " on ", node, ": fairlead ",
                       why_not.empty() ? "has devices" : why_not, ", kube-scheduler ",
                       !answered   ? "says nothing"
                       : allocated ? "has devices"
                                   : "has none",
                       error.empty() ? "" : absl::StrCat(" (", error, ")")));
    }
  }
  return result;
}

}  // namespace fairlead::differential
