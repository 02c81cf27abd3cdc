#include "tests/differential/random_devices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::differential {
namespace {

constexpr char kDriver[] = "gpu.example.com";
constexpr int kAsks = 12;

const std::vector<std::string>& Models() {
  static const auto& models = *new std::vector<std::string>{"a100", "h100", "l4"};
  return models;
}

const std::vector<std::string>& Versions() {
  static const auto& versions =
      *new std::vector<std::string>{"1.2.3", "1.10.0", "1.10.0-rc.1", "2.0.0-beta.2+x"};
  return versions;
}

const std::vector<std::string>& Racks() {
  static const auto& racks = *new std::vector<std::string>{"r0", "r1"};
  return racks;
}

const std::vector<std::string>& Taints() {
  static const auto& taints = *new std::vector<std::string>{"slow", "broken"};
  return taints;
}

const std::vector<std::string>& Effects() {
  static const auto& effects = *new std::vector<std::string>{"NoSchedule", "NoExecute", "None"};
  return effects;
}

}  // namespace

nlohmann::json RandomDevices::Make() {
  partitions_ = dice_.OneIn(2);
  const int64_t count = dice_.Between(2, 4);
  for (int64_t i = 0; i < count; ++i) {
    const std::string node = absl::StrCat("n", i);
    nodes_.push_back(node);
    labels_[node] = Json::object();
    if (!dice_.OneIn(5)) labels_[node]["rack"] = dice_.Pick(Racks());
    if (!dice_.OneIn(6)) AddPool(node, {{"nodeName", node}});
  }
  for (int64_t i = dice_.OneIn(3) ? 0 : dice_.Between(1, 2); i > 0; --i) {
    AddPool(absl::StrCat("net", i), dice_.OneIn(3) ? Json() : MakeScope());
  }
  classes_.push_back(
      {{"metadata", {{"name", "any"}}},
       {"spec",
        {{"selectors",
          {{{"cel", {{"expression", absl::StrCat("device.driver == '", kDriver, "'")}}}}}}}}});
  classes_.push_back(
      {{"metadata", {{"name", "some"}}}, {"spec", {{"selectors", MakeSelectors()}}}});
  GiveAway();
  Json asks = Json::array();
  for (int i = 0; i < kAsks; ++i) {
    Json claims = Json::array();
    const int64_t pods = dice_.OneIn(3) ? 2 : 1;
    for (int64_t c = 0; c < pods; ++c) {
      claims.push_back(MakeClaim(absl::StrCat("ask-", i, "-", c), pods == 1));
    }
    asks.push_back(std::move(claims));
  }
  return {{"nodes", nodes_},           {"labels", labels_},        {"resourceSlices", slices_},
          {"deviceClasses", classes_}, {"resourceClaims", given_}, {"asks", asks}};
}

nlohmann::json RandomDevices::MakeScope() {
  const auto selector = [&](const char* part, const char* key, const std::string& value) -> Json {
    const Json requirement = {
        {"key", key}, {"operator", dice_.Pick({"In", "NotIn"})}, {"values", Json::array({value})}};
    const Json term = {{part, Json::array({requirement})}};
    return {{"nodeSelector", {{"nodeSelectorTerms", Json::array({term})}}}};
  };
  switch (dice_.Between(0, 3)) {
    case 0:
      return {{"allNodes", true}};
    case 1:
      return selector("matchFields", "metadata.name", dice_.Pick({"n0", "n1", "n2"}));
    default:
      return selector("matchExpressions", "rack", dice_.Pick(Racks()));
  }
}

void RandomDevices::AddPool(const std::string& pool, const Json& scope) {
  const bool of_many = scope.is_null() || !scope.contains("nodeName");
  const auto slice = [&](const std::string& name, int64_t count) {
    Json made = {{"metadata", {{"name", absl::StrCat(pool, "-", name)}}},
                 {"spec",
                  {{"driver", kDriver},
                   {"pool", {{"name", pool}, {"generation", 1}, {"resourceSliceCount", count}}}}}};
    if (scope.is_null()) {
      made["spec"]["perDeviceNodeSelection"] = true;
    } else {
      made["spec"].update(scope);
    }
    return made;
  };
  const int64_t sets = partitions_ ? dice_.Between(1, 3) : 0;
  const int64_t halves = dice_.OneIn(4) ? 2 : 1;
  const int64_t missing = of_many && dice_.OneIn(8) ? 1 : 0;
  const int64_t slices = halves + (sets > 0 ? 1 : 0) + missing;
  if (sets > 0) {
    Json counters = slice("counters", slices);
    for (int64_t s = 0; s < sets; ++s) {
      const std::string set = absl::StrCat("set-", s);
      const int64_t amount = dice_.Between(2, 8);
      left_[absl::StrCat(pool, "/", set)] = amount;
      counters["spec"]["sharedCounters"].push_back(
          {{"name", set}, {"counters", {{"lanes", {{"value", absl::StrCat(amount)}}}}}});
    }
    slices_.push_back(std::move(counters));
  }
  int64_t number = 0;
  for (int64_t half = 0; half < halves; ++half) {
    Json part = slice(absl::StrCat("devices-", half), slices);
    part["spec"]["devices"] = Json::array();
    for (int64_t n = dice_.Between(1, sets > 0 ? 9 : 7); n > 0; --n) {
      if (of_many && number > 0 && dice_.OneIn(60)) --number;
      const std::string name = absl::StrCat("d", number++);
      Json device = MakeDevice(name);
      if (sets > 0 && !dice_.OneIn(6)) device = MakePartition(name, sets, std::move(device));
      if (scope.is_null()) {
        device.update(dice_.OneIn(4) ? Json{{"nodeName", dice_.Pick({"n0", "n1", "n2"})}}
                                     : MakeScope());
      }
      devices_.emplace_back(pool, device);
      part["spec"]["devices"].push_back(std::move(device));
    }
    slices_.push_back(std::move(part));
  }
}

nlohmann::json RandomDevices::MakeDevice(const std::string& name) {
  Json device = {
      {"name", name},
      {"attributes",
       {{"model", {{"string", dice_.Pick(Models())}}}, {"numa", {{"int", dice_.Between(0, 2)}}}}}};
  Json& attributes = device["attributes"];
  if (!dice_.OneIn(3)) attributes["ecc"] = {{"bool", dice_.OneIn(2)}};
  if (!dice_.OneIn(3)) attributes["firmware"] = {{"version", dice_.Pick(Versions())}};
  if (dice_.OneIn(2)) attributes["net.example.com/rack"] = {{"int", dice_.Between(0, 1)}};
  if (!dice_.OneIn(4)) {
    device["capacity"]["memory"] = {{"value", absl::StrCat(dice_.Between(1, 4) * 20, "Gi")}};
  }
  for (int64_t n = dice_.OneIn(4) ? dice_.Between(1, 2) : 0; n > 0; --n) {
    device["taints"].push_back({{"key", dice_.Pick(Taints())},
                                {"value", dice_.OneIn(2) ? "x" : ""},
                                {"effect", dice_.Pick(Effects())}});
  }
  return device;
}

nlohmann::json RandomDevices::MakePartition(const std::string& name, int64_t sets, Json device) {
  Json uses = Json::array();
  const int64_t first = dice_.Between(0, sets - 1);
  uses.push_back({{"counterSet", absl::StrCat("set-", first)},
                  {"counters", {{"lanes", {{"value", absl::StrCat(dice_.Between(1, 4))}}}}}});
  if (sets > 1 && dice_.OneIn(5)) {
    uses.push_back({{"counterSet", absl::StrCat("set-", (first + 1) % sets)},
                    {"counters", {{"lanes", {{"value", "1"}}}}}});
  }
  device["name"] = name;
  device["consumesCounters"] = std::move(uses);
  return device;
}

void RandomDevices::GiveAway() {
  std::set<std::string> given;  // a name may be there twice
  for (const auto& [pool, device] : devices_) {
    if (!dice_.OneIn(6)) continue;
    const std::string name = absl::StrCat("given-", pool, "-", device["name"].get<std::string>());
    if (!given.insert(name).second) continue;
    const bool admin = !partitions_ && dice_.OneIn(4);
    std::vector<std::pair<int64_t*, int64_t>> takes;  // of the counters that it uses
    for (const Json& use : device.value("consumesCounters", Json::array())) {
      const std::string set = absl::StrCat(pool, "/", use["counterSet"].get<std::string>());
      const std::string amount = use["counters"]["lanes"]["value"];
      takes.emplace_back(&left_[set], std::stoll(amount));
    }
    if (std::any_of(takes.begin(), takes.end(),
                    [](const auto& take) { return *take.first < take.second; })) {
      continue;
    }
    for (const auto& [left, amount] : takes) *left -= amount;
    Json result = {
        {"request", "r"}, {"driver", kDriver}, {"pool", pool}, {"device", device["name"]}};
    if (admin) result["adminAccess"] = true;
    given_.push_back(
        {{"metadata", {{"name", name}, {"namespace", "default"}}},
         {"spec",
          {{"devices",
            {{"requests", {{{"name", "r"}, {"exactly", {{"deviceClassName", "any"}}}}}}}}}},
         {"status", {{"allocation", {{"devices", {{"results", {result}}}}}}}}});
  }
}

nlohmann::json RandomDevices::MakeClaim(const std::string& name, bool alone) {
  Json requests = Json::array(), constraints = Json::array();
  const bool distinct = dice_.OneIn(6);
  const int64_t count = dice_.Between(1, distinct ? 3 : 2);
  for (int64_t r = 0; r < count; ++r) {
    Json request = MakeRequest(alone, distinct);
    request["name"] = absl::StrCat("r", r);
    requests.push_back(std::move(request));
  }
  if (distinct || dice_.OneIn(3)) {
    const std::string attribute =
        absl::StrCat(dice_.OneIn(5) ? "net.example.com/" : absl::StrCat(kDriver, "/"),
                     dice_.Pick({"model", "numa", "rack", "firmware"}));
    Json constraint = {{distinct ? "distinctAttribute" : "matchAttribute", attribute}};
    if (dice_.OneIn(3)) constraint["requests"] = {"r0"};
    constraints.push_back(std::move(constraint));
  }
  return {{"metadata", {{"name", name}, {"namespace", "default"}}},
          {"spec", {{"devices", {{"requests", requests}, {"constraints", constraints}}}}}};
}

nlohmann::json RandomDevices::MakeRequest(bool alone, bool distinct) {
  if (!dice_.OneIn(4)) return {{"exactly", MakeExact(alone, distinct)}};
  Json options = Json::array();
  for (int64_t i = 0; i < 2; ++i) {
    Json option = MakeExact(/*alone=*/false, distinct);
    option["name"] = absl::StrCat("o", i);
    options.push_back(std::move(option));
  }
  return {{"firstAvailable", options}};
}

nlohmann::json RandomDevices::MakeExact(bool alone, bool distinct) {
  Json out = {{"deviceClassName", dice_.OneIn(5) ? "some" : "any"}};
  if (!distinct && dice_.OneIn(6)) {
    out["allocationMode"] = "All";
  } else {
    out["allocationMode"] = "ExactCount";
    out["count"] = distinct || dice_.OneIn(2) ? 1 : dice_.Between(1, 3);
  }
  if (dice_.OneIn(2)) out["selectors"] = MakeSelectors();
  if (alone && !partitions_ && dice_.OneIn(6)) out["adminAccess"] = true;
  for (int64_t n = dice_.OneIn(3) ? dice_.Between(1, 2) : 0; n > 0; --n) {
    Json toleration = {{"operator", dice_.OneIn(2) ? "Exists" : "Equal"}};
    if (toleration["operator"] == "Equal" || !dice_.OneIn(4)) {
      toleration["key"] = dice_.Pick(Taints());
    }
    if (toleration["operator"] == "Equal" && dice_.OneIn(2)) toleration["value"] = "x";
    if (dice_.OneIn(3)) toleration["effect"] = dice_.Pick({"NoSchedule", "NoExecute"});
    out["tolerations"].push_back(std::move(toleration));
  }
  return out;
}

nlohmann::json RandomDevices::MakeSelectors() {
  Json selectors = Json::array();
  for (int64_t n = dice_.Between(1, 2); n > 0; --n) {
    selectors.push_back({{"cel", {{"expression", Expression(2)}}}});
  }
  return selectors;
}

std::string RandomDevices::Attribute(const std::string& name) {
  const std::string domain = name == "rack" ? "net.example.com" : kDriver;
  return dice_.OneIn(6) ? absl::StrCat("device.attributes[\"", domain, "\"][\"", name, "\"]")
                        : absl::StrCat("device.attributes[\"", domain, "\"].", name);
}

std::string RandomDevices::Expression(int depth) {
  if (depth == 0 || dice_.OneIn(3)) return Term();
  const auto part = [&] {
    const std::string text = Expression(depth - 1);
    return dice_.OneIn(2) ? absl::StrCat("(", text, ")") : text;
  };
  switch (dice_.Between(0, 4)) {
    case 0:
      return absl::StrCat("!(", Expression(depth - 1), ")");
    case 1:
      return absl::StrCat("(", Expression(depth - 1), ") ? (", Expression(depth - 1), ") : (",
                          Expression(depth - 1), ")");
    case 2:
      return absl::StrCat(part(), " && ", part());
    default:
      return absl::StrCat(part(), " || ", part());
  }
}

std::string RandomDevices::Term() {
  const auto relation = [&] { return dice_.Pick({" == ", " != ", " < ", " <= ", " > ", " >= "}); };
  const auto equality = [&] { return dice_.Pick({" == ", " != "}); };
  // Most terms that could fail ask first.
  const auto guarded = [&](const std::string& name, const std::string& term) {
    const std::string domain = name == "rack" ? "net.example.com" : kDriver;
    if (dice_.OneIn(5)) return term;
    return dice_.OneIn(2)
               ? absl::StrCat("has(device.attributes['", domain, "'].", name, ") && ", term)
               : absl::StrCat("'", name, "' in device.attributes['", domain, "'] && ", term);
  };
  switch (dice_.Between(0, 11)) {
    case 0:
      return absl::StrCat("device.driver", equality(), "'", dice_.Pick({kDriver, "other"}), "'");
    case 1:
      return absl::StrCat(Attribute("model"), relation(), "'", dice_.Pick(Models()), "'");
    case 2:
      return absl::StrCat(Attribute("numa"), relation(), dice_.Between(-1, 2));
    case 3:
      return absl::StrCat(Attribute("model"), " in ['", dice_.Pick(Models()), "', '",
                          dice_.Pick(Models()), "']");
    case 4:
      return absl::StrCat(
          Attribute("model"), ".",
          dice_.Pick({"startsWith('a')", "endsWith('00')", "contains('1')", "matches('^[ah]1')",
                      "matches(r'\\d{3}$')", "lowerAscii() == 'l4'", "upperAscii() != 'A100'"}));
    case 5:
      return guarded("ecc", dice_.OneIn(2) ? Attribute("ecc")
                                           : absl::StrCat(Attribute("ecc"), equality(), "true"));
    case 6:
      return guarded("rack", absl::StrCat(Attribute("rack"), relation(), dice_.Between(0, 1)));
    case 7:
      return guarded("firmware", absl::StrCat(Attribute("firmware"), ".",
                                              dice_.Pick({"isGreaterThan", "isLessThan"}),
                                              "(semver('", dice_.Pick(Versions()), "'))"));
    case 8:
      return guarded("firmware",
                     absl::StrCat(Attribute("firmware"), dice_.Pick({".major()", ".minor()"}),
                                  relation(), dice_.Between(1, 10)));
    case 9:
      return absl::StrCat("'memory' in device.capacity['", kDriver, "'] && device.capacity['",
                          kDriver, "'].memory.compareTo(quantity('", dice_.Between(1, 4) * 20,
                          "Gi'))", relation(), "0");
    case 10:
      return absl::StrCat("'", dice_.Pick({kDriver, "net.example.com", "other"}),
                          "' in device.attributes");
    default:
      // Of another type.
      return absl::StrCat(Attribute("numa"), equality(), "'", dice_.Between(0, 2), "'");
  }
}

}  // namespace fairlead::differential
