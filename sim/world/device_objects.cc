#include "sim/world/device_objects.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::sim::world {
namespace {

// Beyond the numbers that devices have.
constexpr int64_t kFirstLotOfPods = 10'000;
constexpr char kOwnClaim[] = "device", kSharedClaim[] = "shared";

std::string Attribute(const char* name, const char* compare, const std::string& value) {
  return absl::StrCat("device.attributes[\"", kDeviceDriver, "\"].", name, " ", compare, " ",
                      value);
}

Json Selector(const std::string& expression) {
  return Json::array({{{"cel", {{"expression", expression}}}}});
}

// The number at the end of "job-17".
int64_t NumberOf(const std::string& pod) {
  int64_t number = 0;
  for (size_t i = pod.find_last_of('-') + 1; i < pod.size(); ++i) {
    if (pod[i] < '0' || pod[i] > '9') return 0;
    number = number * 10 + (pod[i] - '0');
  }
  return number;
}

Json DeviceClaimSpec(const Operation& fields, const std::string& pod) {
  std::vector<std::string> terms;
  const std::string model = fields.Text("device_model"), lot = fields.Text("device_lot");
  if (!model.empty()) terms.push_back(Attribute("model", "==", absl::StrCat("\"", model, "\"")));
  if (lot == "each") {
    terms.push_back(Attribute("lot", "!=", absl::StrCat(kFirstLotOfPods + NumberOf(pod))));
  } else if (!lot.empty()) {
    terms.push_back(Attribute("lot", "!=", lot));
  }
  const std::string device_class = fields.Text("device_class");
  Json exactly = {{"deviceClassName", device_class.empty() ? "sim-any" : device_class},
                  {"allocationMode", "ExactCount"},
                  {"count", fields.Number("devices", 1)}};
  if (!terms.empty()) exactly["selectors"] = Selector(absl::StrJoin(terms, " && "));
  return {{"devices", {{"requests", Json::array({{{"name", "r"}, {"exactly", exactly}}})}}}};
}

}  // namespace

Json MakeDeviceClass(const Operation& fields) {
  std::string expression = absl::StrCat("device.driver == \"", kDeviceDriver, "\"");
  for (const auto& [key, compare] : {std::pair("model", "=="), std::pair("but", "!=")}) {
    const std::string model = fields.Text(key);
    if (model.empty()) continue;
    absl::StrAppend(&expression, " && ",
                    Attribute("model", compare, absl::StrCat("\"", model, "\"")));
  }
  Json made = {{"apiVersion", "resource.k8s.io/v1"},
               {"kind", "DeviceClass"},
               {"metadata", {{"name", fields.Text("name")}}},
               {"spec", {{"selectors", Selector(expression)}}}};
  if (!fields.Text("gives").empty()) made["spec"]["extendedResourceName"] = fields.Text("gives");
  return made;
}

Json MakeSlice(const std::string& node, const std::string& node_uid, int64_t generation,
               int64_t count, const std::vector<std::string>& models) {
  Json devices = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const std::string model = models.empty() ? "a" : models[static_cast<size_t>(i) % models.size()];
    devices.push_back({{"name", absl::StrCat("dev", i)},
                       {"attributes", {{"model", {{"string", model}}}, {"lot", {{"int", i}}}}}});
  }
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"name", absl::StrCat(node, "-", kDeviceDriver)},
            {"ownerReferences", Json::array({{{"apiVersion", "v1"},
                                              {"kind", "Node"},
                                              {"name", node},
                                              {"uid", node_uid},
                                              {"controller", true}}})}}},
          {"spec",
           {{"driver", kDeviceDriver},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", 1}}},
            {"devices", devices}}}};
}

void AddClaims(Json& pod, const Operation& fields, const std::string& name) {
  const std::string kind = fields.Text("claim");
  if (kind.empty()) return;
  Json claims = Json::array();
  if (kind != "shared") {
    claims.push_back(
        {{"name", kOwnClaim},
         {"resourceClaimTemplateName", absl::StrCat(fields.Text("name"), "-", kOwnClaim)}});
  }
  if (kind != "own") {
    claims.push_back(
        {{"name", kSharedClaim}, {"resourceClaimName", SharedClaimName(fields.Text("name"))}});
  }
  pod["spec"]["resourceClaims"] = std::move(claims);
  Json& annotations = pod["metadata"]["annotations"];
  annotations[kClaimSpec] = DeviceClaimSpec(fields, name).dump();
  const std::string queue = fields.Text("claim_queue");
  if (!queue.empty()) annotations[kClaimQueue] = queue;
}

Json MakeClaim(const std::string& ns, const std::string& name, Json spec) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"name", name}, {"namespace", ns}}},
          {"spec", std::move(spec)}};
}

std::string SharedClaimName(const std::string& job) { return absl::StrCat(job, "-", kSharedClaim); }

std::string GeneratedClaimPrefix(const std::string& pod) {
  return absl::StrCat(pod, "-", kOwnClaim, "-");
}

}  // namespace fairlead::sim::world
