#include "tests/differential/judge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
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
#include "scheduler/plugins/spread_args.h"
#include "scheduler/state/cluster_state.h"
#include "tests/differential/judge_preemption.h"

namespace fairlead::differential {
namespace {

using framework::Capacity;
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
  } else if (kind == model::Kind::kPodDisruptionBudget) {
    state.UpsertDisruptionBudget(std::get<model::PodDisruptionBudget>(*decoded));
  } else if (kind == model::Kind::kPod) {
    state.UpsertPod(std::get<model::Pod>(*decoded));
  } else {
    std::visit(
        [&state](const auto& typed) {
          if constexpr (std::is_constructible_v<model::VolumeObject, decltype(typed)>) {
            state.UpsertVolumeObject(typed);
          } else if constexpr (std::is_constructible_v<model::SpreadSource, decltype(typed)>) {
            state.UpsertSpreadSource(typed);
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
                {"services", model::Kind::kService},
                {"replicationControllers", model::Kind::kReplicationController},
                {"replicaSets", model::Kind::kReplicaSet},
                {"statefulSets", model::Kind::kStatefulSet},
                {"podDisruptionBudgets", model::Kind::kPodDisruptionBudget},
                {"pods", model::Kind::kPod}};

// As kube-scheduler is set up: it knows no other way to keep a node than a taint, and has default
// constraints if nothing is said.
framework::Profile ProfileOf(const Json& world) {
  framework::Profile profile{"fairlead"};
  const Json given = world.value("pluginConfig", Json::object());
  for (const std::string name : world["plugins"]) {
    profile.plugins.push_back({name});
    std::string& args = profile.plugins.back().args_json;
    if (name == "NodeUnschedulable") args = R"({"honorToleration":true})";
    if (name == "PodTopologySpread") args = R"({"defaultingType":"System"})";
    if (given.contains(name)) args = given[name].dump();
  }
  return profile;
}

absl::StatusOr<std::unique_ptr<framework::Framework>> MakeFramework(
    const framework::Profile& profile) {
  framework::Registry registry;
  FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
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

// One pod asked about, by the framework with counters and by the one without.
struct Asked {
  const framework::Framework& attached;
  const framework::Framework& recounting;
  const framework::Context& context;
};
using Nodes = std::vector<const state::NodeInfo*>;

// The answers without counters have to be the same; if they are not, that is said as the answer.
// Appends the nodes that are admitted.
Json RefusalsOf(const Asked& asked, Nodes& admitted) {
  const state::ClusterState& state = asked.context.state;
  Json answers = Json::object();
  for (const auto& [name, id] : state.nodes_by_name()) {
    const Json counted = RefusalOf(asked.attached, asked.context, state.node(id));
    const Json recounted = RefusalOf(asked.recounting, asked.context, state.node(id));
    answers[name] = counted;
    if (counted != recounted) {
      answers[name] = {
          {"plugin", "counters"}, {"code", counted.dump()}, {"reasons", recounted.dump()}};
    } else if (counted.empty()) {
      admitted.push_back(&state.node(id));
    }
  }
  return answers;
}

// By plugin, in the order of the nodes.
std::map<std::string, std::vector<int64_t>> ScoresOf(const framework::Framework& framework,
                                                     const framework::Context& context,
                                                     const Nodes& nodes) {
  std::map<std::string, std::vector<int64_t>> scores;
  for (const auto& each : framework.ScoresByPlugin(context, nodes)) {
    scores[std::string(each.plugin)] = each.scores;
  }
  return scores;
}

// What the engine sums up for the nodes that it chooses from.
std::vector<int64_t> SumsOf(const framework::Framework& framework,
                            const framework::Context& context, const Nodes& nodes) {
  std::vector<framework::Kind> kinds;
  for (const state::NodeInfo* node : nodes) kinds.push_back({node, 1});
  std::vector<int64_t> sums = framework.ScoreKinds(context, kinds);
  for (size_t i = 0; i < nodes.size(); ++i) {
    sums[i] += framework.Score(context, *nodes[i]);
  }
  return sums;
}

// As kube-scheduler: null for fewer than two nodes. A text is no score, and so a difference.
Json Score(const Asked& asked, const Nodes& nodes) {
  if (nodes.size() < 2) return nullptr;
  const auto scores = ScoresOf(asked.attached, asked.context, nodes);
  const auto recounted = ScoresOf(asked.recounting, asked.context, nodes);
  const std::vector<int64_t> sums = SumsOf(asked.attached, asked.context, nodes);
  Json answer = Json::object();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string& node = nodes[i]->object.meta.name;
    int64_t ahead = 0;  // of the first node; plugins that score all nodes alike may be left out
    for (const auto& [plugin, by_node] : scores) {
      ahead += (by_node[i] - by_node[0]) * framework::kPreferenceStep;
      answer[plugin][node] = by_node[i];
      if (by_node[i] == recounted.at(plugin)[i]) continue;
      answer[plugin][node] =
          absl::StrCat(by_node[i], " with counters, ", recounted.at(plugin)[i], " without");
    }
    if (sums[i] - sums[0] != ahead) {
      answer["the engine's sum"][node] =
          absl::StrCat("ahead by ", sums[i] - sums[0], ", plugins by ", ahead);
    }
  }
  return answer;
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
  options.keep_images = true;
  options.sum_scoring_requests = true;
  options.priority_rules = {state::PriorityRules::kKubernetes};
  const framework::Profile profile = ProfileOf(world);
  options.spread_defaults = plugins::SpreadDefaultsOf({profile});
  state::ClusterState state(options);
  FAIRLEAD_ASSIGN_OR_RETURN(const auto attached, MakeFramework(profile));
  FAIRLEAD_ASSIGN_OR_RETURN(const auto recounting, MakeFramework(profile));
  framework::DomainCounters counters(state);
  state.Subscribe(&counters);
  attached->Attach(&counters);
  for (state::StateSubscriber* each : attached->Subscribers()) state.Subscribe(each);
  state.SetNamespacesReadable(true);
  for (const auto& [list, kind] : kObjects) {
    for (const Json& object : world.value(list, Json::array())) {
      FAIRLEAD_RETURN_IF_ERROR(Put(state, kind, object));
    }
  }
  Json answer{{"pods", Json::array()}, {"scores", Json::array()}};
  for (const Json& pod : world["ask"]) {
    // One at a time: pods that wait do not look at each other.
    FAIRLEAD_RETURN_IF_ERROR(Put(state, model::Kind::kPod, pod));
    const std::string ns = pod["metadata"]["namespace"];
    const std::string name = pod["metadata"]["name"];
    const state::PodId asked = state.FindPod(ns, name);
    const state::PodClassId id = state.pod(asked).pod_class;
    const framework::Context context{state, state.pod_class(id), id, Capacity::kNow};
    Nodes admitted;
    answer["pods"].push_back(RefusalsOf({*attached, *recounting, context}, admitted));
    answer["scores"].push_back(Score({*attached, *recounting, context}, admitted));
    if (world.value("preempt", false)) {
      answer["preemptions"].push_back(JudgePreemption(state, *attached, asked));
    }
    state.RemovePod(ns, name, "");
  }
  attached->Attach(nullptr);
  const std::string wrong = state.CheckConsistency();
  if (!wrong.empty()) return absl::InternalError(wrong);
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
      for (const char* when : {"requiredDuringSchedulingIgnoredDuringExecution",
                               "preferredDuringSchedulingIgnoredDuringExecution"}) {
        const Json::json_pointer path(absl::StrCat("/spec/affinity/", kind, "/", when));
        if (!pod.contains(path)) continue;
        for (Json& entry : pod[path]) {
          Json& term = entry.contains("podAffinityTerm") ? entry["podAffinityTerm"] : entry;
          const auto selector = term.find("namespaceSelector");
          if (selector != term.end() && met_by_nothing(*selector)) *selector = Json::object();
        }
      }
    }
  }
  return world;
}

namespace {

// Counts what both sides say of one thing: `what` is that, for people.
struct Sides {
  const Json& ours;
  const Json& faulty;  // ours of WithKnownFault()
  const Json& theirs;
};
void Count(const Sides& sides, const std::string& what, Comparison& result) {
  if (sides.ours == sides.theirs && !sides.ours.is_null()) return;
  if (!sides.theirs.is_null() && sides.faulty == sides.theirs) {
    ++result.known_faults;
    return;
  }
  result.differences.push_back(absl::StrCat(what, ": fairlead ", sides.ours.dump(),
                                            ", kube-scheduler ", sides.theirs.dump()));
}

// object[key], or null.
const Json& In(const Json& object, const std::string& key) {
  static const auto& null = *new Json();
  const auto found = object.find(key);  // the end of what is no object
  return found == object.end() ? null : *found;
}

// Of a pod that is asked about, or null.
const Json& Of(const Json& answers, const char* list, size_t pod) {
  static const auto& null = *new Json();
  const Json& pods = In(answers, list);
  return pods.is_array() && pod < pods.size() ? pods[pod] : null;
}

// The scores of the nodes by one plugin. kube-scheduler leaves out a plugin that has nothing to say
// of a pod; ours may not: any score is right then, if all nodes have it.
void CompareScores(const Sides& plugin, const std::string& what, Comparison& result) {
  if (plugin.theirs.is_null()) {
    for (const auto& [node, score] : plugin.ours.items()) {
      if (score.is_number() && score == plugin.ours.front()) continue;
      result.differences.push_back(absl::StrCat(what, " on ", node, ": fairlead ", score.dump(),
                                                ", kube-scheduler does not score"));
    }
    return;
  }
  for (const auto& [node, score] : plugin.theirs.items()) {
    const Json& our = In(plugin.ours, node);
    Count({our, In(plugin.faulty, node), score}, absl::StrCat(what, " on ", node), result);
    if (our.is_number()) ++result.scores;
  }
}

// All scores for a pod; `admitted`: so many nodes have to be scored.
void ComparePlugins(const Sides& pod, const std::string& name, int64_t admitted,
                    Comparison& result) {
  if (!pod.theirs.is_object()) {
    // Of which nodes there are to score, the refusals say more.
    if (admitted < 2) return;
    result.differences.push_back(
        absl::StrCat(name, ": kube-scheduler scores none of ", admitted, " nodes"));
    return;
  }
  std::set<std::string> plugins;
  for (const Json* side : {&pod.ours, &pod.theirs}) {
    if (!side->is_object()) continue;
    for (const auto& [plugin, scores] : side->items()) plugins.insert(plugin);
  }
  for (const std::string& plugin : plugins) {
    CompareScores({In(pod.ours, plugin), In(pod.faulty, plugin), In(pod.theirs, plugin)},
                  absl::StrCat(name, ": ", plugin), result);
  }
}

void CountPreemption(const Sides& pod, const std::string& name, Comparison& result) {
  result.preemptions += static_cast<int64_t>(In(pod.theirs, "nodes").size());
  std::vector<std::string> differences = ComparePreemption(name, pod.ours, pod.theirs);
  if (differences.empty()) return;
  if (ComparePreemption(name, pod.faulty, pod.theirs).empty()) {
    ++result.known_faults;
    return;
  }
  std::move(differences.begin(), differences.end(), std::back_inserter(result.differences));
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Json& world, const Json& theirs) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json ours, Judge(world));
  FAIRLEAD_ASSIGN_OR_RETURN(const Json faulty, Judge(WithKnownFault(world)));
  Comparison result;
  for (size_t i = 0; i < world["ask"].size(); ++i) {
    const std::string pod = absl::StrCat("pod ", Name(world["ask"][i]));
    int64_t admitted = 0;
    for (const Json& node : world["nodes"]) {
      const std::string name = node["metadata"]["name"];
      const auto refusal = [&](const Json& answers) {
        return Normal(In(Of(answers, "pods", i), name));
      };
      const Json their = refusal(theirs);
      Count({refusal(ours), refusal(faulty), their}, absl::StrCat(pod, " on ", name), result);
      ++result.pairs;
      if (their.is_object() && their.empty()) ++admitted;
    }
    ComparePlugins({Of(ours, "scores", i), Of(faulty, "scores", i), Of(theirs, "scores", i)}, pod,
                   admitted, result);
    if (world.value("preempt", false)) {
      CountPreemption(
          {Of(ours, "preemptions", i), Of(faulty, "preemptions", i), Of(theirs, "preemptions", i)},
          pod, result);
    }
  }
  return result;
}

}  // namespace fairlead::differential
