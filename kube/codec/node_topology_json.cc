// NodeResourceTopology (topology.node.k8s.io/v1alpha2) and KAI's annotations about the NUMA nodes
// of a pod.
//
// Policy and scope are in `attributes`; exporters that are older write one word for both into
// `topologyPolicies`. A word that is not known is policy "none", as the kubelet's default. Zones of
// other types than "Node" (sockets, dies) are left out: the kubelet aligns to NUMA nodes alone.
#include "kube/codec/node_topology_json.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube::json {
namespace {

using model::NumaPolicy;
using model::NumaScope;

// A machine has some tens of NUMA nodes at most.
constexpr size_t kMaxZones = 64;
constexpr size_t kMaxZoneResources = 64;

NumaPolicy PolicyOf(absl::string_view word) {
  if (word == "single-numa-node") return NumaPolicy::kSingleNumaNode;
  if (word == "restricted") return NumaPolicy::kRestricted;
  if (word == "best-effort") return NumaPolicy::kBestEffort;
  return NumaPolicy::kNone;
}

void SetFormerPolicy(absl::string_view word, model::NodeResourceTopology& out) {
  static constexpr std::tuple<const char*, NumaPolicy, NumaScope> kWords[] = {
      {"SingleNUMANodePodLevel", NumaPolicy::kSingleNumaNode, NumaScope::kPod},
      {"SingleNUMANodeContainerLevel", NumaPolicy::kSingleNumaNode, NumaScope::kContainer},
      {"RestrictedPodLevel", NumaPolicy::kRestricted, NumaScope::kPod},
      {"Restricted", NumaPolicy::kRestricted, NumaScope::kContainer},
      {"RestrictedContainerLevel", NumaPolicy::kRestricted, NumaScope::kContainer},
      {"BestEffortPodLevel", NumaPolicy::kBestEffort, NumaScope::kPod},
      {"BestEffort", NumaPolicy::kBestEffort, NumaScope::kContainer},
      {"BestEffortContainerLevel", NumaPolicy::kBestEffort, NumaScope::kContainer},
  };
  for (const auto& [known, policy, scope] : kWords) {
    if (word == known) std::tie(out.policy, out.scope) = std::make_pair(policy, scope);
  }
}

// The number at the end of a zone's name; none: behind all that have one.
int64_t NumberOf(absl::string_view name) {
  size_t digits = 0;
  while (digits < name.size() && absl::ascii_isdigit(name[name.size() - 1 - digits])) ++digits;
  int64_t number = 0;
  constexpr int64_t kNone = INT64_MAX;
  return absl::SimpleAtoi(name.substr(name.size() - digits), &number) ? number : kNone;
}

// One {name, capacity, allocatable, available}.
void ReadZoneResource(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::NumaZone& zone) {
  std::string name, allocatable, available;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") reader.String(v, at, name);
    if (key == "allocatable") allocatable = std::string(reader.NumberOrText(v, at).value_or(""));
    if (key == "available") available = std::string(reader.NumberOrText(v, at).value_or(""));
  });
  if (name.empty()) return reader.problems().Add(path.Field("name"), "must be specified");
  const auto read = [&](const char* field, const std::string& text, model::ResourceList& out) {
    const absl::StatusOr<int64_t> amount = model::ParseResourceQuantity(name, text);
    if (!amount.ok() || *amount < 0) {
      return reader.problems().Add(path.Field(field),
                                   Quoted(text) + " must be a quantity, at least 0");
    }
    model::Set(out, name, *amount);
  };
  read("allocatable", allocatable, zone.allocatable);
  read("available", available, zone.available);
}

void ReadZone(JsonReader& reader, JsonValue value, const FieldPath& path,
              std::vector<model::NumaZone>& zones) {
  model::NumaZone zone;
  std::string type;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") reader.String(v, at, zone.name);
    if (key == "type") reader.String(v, at, type);
    if (key != "resources") return;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      if (i < kMaxZoneResources) ReadZoneResource(reader, item, at.Item(i), zone);
    });
  });
  if (type == "Node") zones.push_back(std::move(zone));
}

void CheckZones(const FieldPath& path, std::vector<model::NumaZone>& zones, Problems& problems) {
  std::sort(zones.begin(), zones.end(), [](const model::NumaZone& a, const model::NumaZone& b) {
    return std::make_pair(NumberOf(a.name), absl::string_view(a.name)) <
           std::make_pair(NumberOf(b.name), absl::string_view(b.name));
  });
  if (zones.size() > kMaxZones) problems.Add(path, "has more than 64 NUMA nodes");
  for (size_t i = 1; i < zones.size(); ++i) {
    if (zones[i].name == zones[i - 1].name)
      problems.Add(path, Quoted(zones[i].name) + " is there twice");
  }
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::NodeResourceTopology& out) {
  const FieldPath root;
  std::string policy, scope, former;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kNodeResourceTopology);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "zones") {
      reader.Items(
          v, at, [&](size_t i, JsonValue item) { ReadZone(reader, item, at.Item(i), out.zones); });
    }
    if (key == "attributes") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        const FieldPath attribute = at.Item(i);
        std::string name, text;
        reader.Fields(item, attribute, [&](absl::string_view field, JsonValue word) {
          if (field == "name") reader.String(word, attribute.Field(field), name);
          if (field == "value") reader.String(word, attribute.Field(field), text);
        });
        if (name == "topologyManagerPolicy") policy = text;
        if (name == "topologyManagerScope") scope = text;
      });
    }
    if (key == "topologyPolicies") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        if (i == 0) reader.String(item, at.Item(i), former);
      });
    }
  });
  if (policy.empty()) {
    SetFormerPolicy(former, out);
  } else {
    out.policy = PolicyOf(policy);
    out.scope = scope == "pod" ? NumaScope::kPod : NumaScope::kContainer;
  }
  CheckZones(root.Field("zones"), out.zones, reader.problems());
  out.invalid = reader.problems().Text();
}

}  // namespace fairlead::kube::json

namespace fairlead::kube {
namespace {

// Empty unless the text is an array of {zone, amount}, each with a name and amounts of at least 0.
std::vector<model::ZoneAmounts> ReadZones(absl::string_view text) {
  std::vector<model::ZoneAmounts> zones;
  const FieldPath root;
  bool good = true;
  // The reader takes objects only.
  const absl::Status status =
      ReadJson(absl::StrCat("{\"zones\":", text, "}"), [&](JsonReader& reader, JsonValue value) {
        reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
          if (key != "zones") return;
          reader.Items(v, root, [&](size_t, JsonValue item) {
            model::ZoneAmounts& zone = zones.emplace_back();
            reader.Fields(item, root, [&](absl::string_view field, JsonValue part) {
              if (field == "zone") reader.String(part, root, zone.zone);
              if (field == "amount") reader.Quantities(part, root, zone.amounts);
            });
          });
        });
        good = reader.problems().empty();
      });
  const bool complete = std::all_of(zones.begin(), zones.end(), [](const auto& zone) {
    return !zone.zone.empty() && !zone.amounts.empty() &&
           std::all_of(zone.amounts.begin(), zone.amounts.end(),
                       [](const auto& amount) { return amount.second >= 0; });
  });
  if (!status.ok() || !good || !complete || zones.size() > json::kMaxZones) zones.clear();
  return zones;
}

}  // namespace

std::vector<model::ZoneAmounts> ReadNumaZones(const model::StringMap& annotations) {
  for (const char* key : {model::kNumaObservedAnnotation, model::kNumaPredictedAnnotation}) {
    const std::string* text = annotations.Find(key);
    if (text == nullptr) continue;
    std::vector<model::ZoneAmounts> zones = ReadZones(*text);
    if (!zones.empty()) return zones;
  }
  return {};
}

}  // namespace fairlead::kube
