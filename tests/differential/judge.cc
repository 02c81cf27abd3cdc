#include "tests/differential/judge.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "kube/codec/json_codec.h"
#include "scheduler/framework/domain_counters.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::differential {
namespace {

using framework::Code;

absl::Status Put(state::ClusterState& state, model::Kind kind, const Json& object) {
  auto decoded = kube::json::DecodeObject(kind, object.dump());
  const std::string name = object["metadata"]["name"];
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", decoded.status().message()));
  }
  const std::string* invalid = kube::InvalidOf(*decoded);
  if (invalid != nullptr && !invalid->empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", *invalid));
  }
  if (kind == model::Kind::kNamespace) {
    state.UpsertNamespace(std::get<model::Namespace>(*decoded));
  } else if (kind == model::Kind::kNode) {
    state.UpsertNode(std::get<model::Node>(*decoded));
  } else if (kind == model::Kind::kPod) {
    state.UpsertPod(std::get<model::Pod>(*decoded));
  } else {
    std::visit(
        [&state](const auto& typed) {
          if constexpr (std::is_constructible_v<model::VolumeObject, decltype(typed)>) {
            state.UpsertVolumeObject(typed);
          }
        },
        *decoded);
  }
  return absl::OkStatus();
}

// What is there before anything is asked, in the order in which kinds are listed.
constexpr struct {
  const char* list;
  model::Kind kind;
} kObjects[] = {{"namespaces", model::Kind::kNamespace},
                {"nodes", model::Kind::kNode},
                {"storageClasses", model::Kind::kStorageClass},
                {"csiDrivers", model::Kind::kCsiDriver},
                {"csiNodes", model::Kind::kCsiNode},
                {"csiStorageCapacities", model::Kind::kCsiStorageCapacity},
                {"persistentVolumes", model::Kind::kPersistentVolume},
                {"persistentVolumeClaims", model::Kind::kPersistentVolumeClaim},
                {"volumeAttachments", model::Kind::kVolumeAttachment},
                {"pods", model::Kind::kPod}};

// As kube-scheduler is set up: it knows no other way to keep a node than a taint.
absl::StatusOr<std::unique_ptr<framework::Framework>> MakeFramework(const Json& world) {
  framework::Registry registry;
  FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
  framework::Profile profile{"fairlead"};
  for (const std::string name : world["plugins"]) {
    profile.plugins.push_back({name});
    if (name == "NodeUnschedulable")
      profile.plugins.back().args_json = R"({"honorToleration":true})";
  }
  return framework::Framework::Make(profile, registry);
}

Json RefusalOf(const framework::Framework& framework, const framework::Context& context,
               const state::NodeInfo& node) {
  framework::Status why;
  if (framework.Filter(context, node, &why)) return Json::object();
  return {
      {"plugin", std::string(why.plugin)},
      {"code", why.code == Code::kUnschedulable ? "Unschedulable" : "UnschedulableAndUnresolvable"},
      {"reasons", why.reason}};
}

// The answers without counters have to be the same; if they are not, that is said as the answer.
Json Ask(const framework::Framework& attached, const framework::Framework& recounting,
         const state::ClusterState& state, const state::PodRecord& pod) {
  const framework::Context context{state, state.pod_class(pod.pod_class), pod.pod_class};
  Json answers = Json::object();
  for (const auto& [name, id] : state.nodes_by_name()) {
    const Json counted = RefusalOf(attached, context, state.node(id));
    const Json recounted = RefusalOf(recounting, context, state.node(id));
    answers[name] = counted;
    if (counted != recounted) {
      answers[name] = {
          {"plugin", "counters"}, {"code", counted.dump()}, {"reasons", recounted.dump()}};
    }
  }
  return answers;
}

std::string Name(const Json& object) {
  return absl::StrCat(object["metadata"]["namespace"].get<std::string>(), "/",
                      object["metadata"]["name"].get<std::string>());
}

// The reasons in one order: kube-scheduler tells resources in the order of a Go map.
Json Normal(Json refusal) {
  if (!refusal.contains("reasons")) return refusal;
  std::vector<std::string> reasons =
      refusal["reasons"].is_array() ? refusal["reasons"].get<std::vector<std::string>>()
                                    : absl::StrSplit(refusal["reasons"].get<std::string>(), ", ");
  std::sort(reasons.begin(), reasons.end());
  refusal["reasons"] = reasons;
  return refusal;
}

}  // namespace

absl::StatusOr<Json> Judge(const Json& world) {
  state::StateOptions options;
  options.scheduler_names = {"fairlead"};
  state::ClusterState state(options);
  FAIRLEAD_ASSIGN_OR_RETURN(const auto attached, MakeFramework(world));
  FAIRLEAD_ASSIGN_OR_RETURN(const auto recounting, MakeFramework(world));
  framework::DomainCounters counters(state);
  state.Subscribe(&counters);
  attached->Attach(&counters);
  for (state::StateSubscriber* each : attached->Subscribers()) state.Subscribe(each);
  state.SetNamespacesReadable(true);
  for (const auto& [list, kind] : kObjects) {
    for (const Json& object : world[list]) {
      FAIRLEAD_RETURN_IF_ERROR(Put(state, kind, object));
    }
  }
  Json answer{{"pods", Json::array()}};
  for (const Json& pod : world["ask"]) {
    // One at a time: pods that wait do not look at each other.
    FAIRLEAD_RETURN_IF_ERROR(Put(state, model::Kind::kPod, pod));
    const std::string ns = pod["metadata"]["namespace"];
    const std::string name = pod["metadata"]["name"];
    answer["pods"].push_back(
        Ask(*attached, *recounting, state, state.pod(state.FindPod(ns, name))));
    state.RemovePod(ns, name, "");
  }
  attached->Attach(nullptr);
  return answer;
}

Json WithKnownFault(Json world) {
  const auto met_by_nothing = [](const Json& selector) {
    if (selector.contains("matchLabels") && !selector["matchLabels"].empty()) return false;
    if (!selector.contains("matchExpressions")) return true;
    return std::all_of(selector["matchExpressions"].begin(), selector["matchExpressions"].end(),
                       [](const Json& requirement) {
                         const std::string op = requirement["operator"];
                         return op == "NotIn" || op == "DoesNotExist";
                       });
  };
  for (Json& pod : world["ask"]) {
    for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
      const Json::json_pointer path(
          absl::StrCat("/spec/affinity/", kind, "/requiredDuringSchedulingIgnoredDuringExecution"));
      if (!pod.contains(path)) continue;
      for (Json& term : pod[path]) {
        const auto selector = term.find("namespaceSelector");
        if (selector != term.end() && met_by_nothing(*selector)) *selector = Json::object();
      }
    }
  }
  return world;
}

absl::StatusOr<Comparison> Compare(const Json& world, const Json& theirs) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json ours, Judge(world));
  FAIRLEAD_ASSIGN_OR_RETURN(const Json faulty, Judge(WithKnownFault(world)));
  Comparison result;
  const auto at = [](const Json& answers, size_t pod, const std::string& node) -> Json {
    const auto pods = answers.find("pods");
    if (pods == answers.end() || pod >= pods->size() || !(*pods)[pod].contains(node)) return {};
    return Normal((*pods)[pod][node]);
  };
  for (size_t pod = 0; pod < world["ask"].size(); ++pod) {
    for (const Json& node : world["nodes"]) {
      const std::string name = node["metadata"]["name"];
      ++result.pairs;
      const Json our = at(ours, pod, name);
      const Json their = at(theirs, pod, name);
      if (our == their && !our.is_null()) continue;
      if (!their.is_null() && at(faulty, pod, name) == their) {
        ++result.known_faults;
        continue;
      }
      result.differences.push_back(absl::StrCat("pod ", Name(world["ask"][pod]), " on ", name,
                                                ": fairlead ", our.dump(), ", kube-scheduler ",
                                                their.dump()));
    }
  }
  return result;
}

}  // namespace fairlead::differential
