#include "cmd/fairlead/migrate/migrate_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr size_t kNamesTold = 5;
constexpr size_t kCheckWidth = 100;

std::string Names(std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kNamesTold) names.resize(kNamesTold);
  std::string text = absl::StrJoin(names, ", ");
  if (all > kNamesTold) absl::StrAppend(&text, " and ", all - kNamesTold, " more");
  return text;
}

class Examination {
 public:
  Examination(const KaiInstallation& kai, bool controllers)
      : kai_(kai), controllers_(controllers) {}

  std::vector<Finding> Run() {
    Deployments();
    Fairlead();
    Shards();
    Config();
    Webhooks();
    Queues();
    Groups();
    Topologies();
    Pods();
    Classes();
    absl::c_stable_sort(findings_,
                        [](const Finding& a, const Finding& b) { return a.matter < b.matter; });
    return std::move(findings_);
  }

 private:
  void Add(Matter matter, std::string subject, std::string what, std::string to_do = "") {
    findings_.push_back({matter, std::move(subject), std::move(what), std::move(to_do)});
  }
  [[nodiscard]] std::vector<std::string> NamesOf(KaiComponent component, bool running) const {
    std::vector<std::string> names;
    for (const KaiDeployment& deployment : kai_.deployments) {
      if (deployment.component != component || (running && deployment.replicas == 0)) continue;
      names.push_back(absl::StrCat(deployment.ns, "/", deployment.name));
    }
    return names;
  }
  [[nodiscard]] bool Runs(KaiComponent component) const {
    return !NamesOf(component, /*running=*/true).empty();
  }

  void Deployments() {
    if (kai_.deployments.empty()) {
      Add(Matter::kDiffers, "Deployments of KAI",
          absl::StrCat("none in namespace ", kai_.ns, ", and none with KAI's images elsewhere"));
    }
    const std::vector<std::string> schedulers = NamesOf(KaiComponent::kScheduler, true);
    if (!schedulers.empty()) {
      Add(Matter::kDiffers, "scheduler",
          absl::StrCat(Names(schedulers), " place the pods of ", kai_.scheduler_name,
                       "; `fairlead migrate` stops them, and Fairlead places these pods then"));
    }
    if (Runs(KaiComponent::kOperator)) {
      Add(Matter::kDiffers, "operator",
          absl::StrCat(
              Names(NamesOf(KaiComponent::kOperator, true)),
              " sets the replicas of KAI's Deployments; `fairlead migrate` stops it first"));
    }
    if (Runs(KaiComponent::kNodeScaleAdjuster)) {
      Add(Matter::kDiffers, "node-scale-adjuster",
          "makes placeholder pods for fractions of GPUs; `fairlead migrate` stops it, and the hook "
          "takes its place (docs/autoscaling.md)");
    }
    std::set<std::string> keepers;
    for (const KaiDeployment& deployment : kai_.deployments) {
      if (!deployment.kept_by.empty()) keepers.insert(deployment.kept_by);
    }
    for (const std::string& keeper : keepers) {
      if (keeper == "Helm") {
        Add(Matter::kDiffers, "Helm",
            "an upgrade of KAI's release starts its operator again, which starts its scheduler",
            "do not upgrade the release while Fairlead has the scheduler name");
      } else {
        Add(Matter::kDoFirst, keeper,
            absl::StrCat(keeper,
                         " keeps KAI's Deployments as they are in its source, and would "
                         "start what `fairlead migrate` stops"),
            absl::StrCat("pause ", keeper, " for KAI's Deployments"));
      }
    }
    OtherControllers();
    if (!kai_.open_bind_requests.empty()) {
      Add(Matter::kDiffers, "BindRequests",
          absl::StrCat(kai_.open_bind_requests.size(),
                       " are not done: ", Names(kai_.open_bind_requests),
                       "; `fairlead migrate` waits for the binder to finish them"));
    }
  }

  void OtherControllers() {
    if (!controllers_) {
      Add(Matter::kSame, "other controllers",
          "binder, pod-grouper, podgroup-controller, queue-controller and admission webhook run "
          "on; Fairlead needs none of them but the webhook, for shares of GPUs without its own "
          "policies (manifests/gpu-sharing)");
      return;
    }
    const FairleadInstallation& fairlead = kai_.fairlead;
    if (Runs(KaiComponent::kPodGrouper) && !fairlead.grouping) {
      Add(Matter::kDoFirst, "pod-grouper",
          "without it, and without Fairlead's own grouping, new workloads have no PodGroup",
          "set grouping.enabled: true in Fairlead's configuration, and apply manifests/grouping");
    }
    if ((Runs(KaiComponent::kQueueController) || Runs(KaiComponent::kPodGroupController)) &&
        !fairlead.kai_status) {
      Add(Matter::kDoFirst, "statuses",
          "without queue-controller and podgroup-controller the statuses of queues and groups "
          "stay as they are now",
          "set kaiStatus: true in Fairlead's configuration");
    }
  }

  void Fairlead() {
    const FairleadInstallation& fairlead = kai_.fairlead;
    if (fairlead.name.empty()) {
      Add(Matter::kDoFirst, "Fairlead", "no Deployment with label app.kubernetes.io/name=fairlead",
          "install Fairlead with schedulerNames: [fairlead] (docs/install.md)");
      return;
    }
    const std::string subject = absl::StrCat("Fairlead ", fairlead.ns, "/", fairlead.name);
    if (fairlead.text.empty() || !fairlead.problem.empty()) {
      Add(Matter::kDoFirst, subject,
          fairlead.text.empty()
              ? "its configuration was not found in a ConfigMap of volume \"configuration\""
              : absl::StrCat("its configuration cannot be read: ", fairlead.problem),
          "mount the file as manifests/base/deployment.yaml does");
      return;
    }
    const bool serves = absl::c_linear_search(fairlead.scheduler_names, kai_.scheduler_name);
    if (serves && Runs(KaiComponent::kScheduler)) {
      Add(Matter::kDoFirst, subject,
          absl::StrCat("schedulerNames has ", kai_.scheduler_name,
                       " while KAI's scheduler runs: two schedulers serve one name"),
          absl::StrCat("take ", kai_.scheduler_name, " from schedulerNames"));
    } else {
      Add(Matter::kSame, subject,
          absl::StrCat("serves ", absl::StrJoin(fairlead.scheduler_names, ", "),
                       serves ? "" : "; `fairlead migrate` adds KAI's name"));
    }
    if (fairlead.kai_status && !controllers_ &&
        (Runs(KaiComponent::kQueueController) || Runs(KaiComponent::kPodGroupController))) {
      Add(Matter::kDiffers, "kaiStatus",
          "is on while KAI's controllers write the same fields: both write, and the numbers agree",
          "set kaiStatus: false, or stop these controllers");
    }
    if (kai_.has_definitions && !kai_.stores_verdicts) {
      Add(Matter::kDoFirst, "CRD podgroups.scheduling.run.ai",
          "is KAI's: the API server drops the verdict of groups (status.schedulability)",
          "kubectl apply -f crds/podgroup.yaml -f crds/queue.yaml; they have all of KAI's fields");
    }
  }

  void Shards() {
    for (const KaiShard& shard : kai_.shards) {
      const std::string subject = absl::StrCat("SchedulingShard ", shard.name);
      const bool apart = !kai_.fairlead.shards.empty();
      if (!shard.partition.empty() || apart) Partition(subject, shard.partition);
      if (shard.spreads_gpu || shard.spreads_cpu) {
        Add(Matter::kDiffers, subject, "spreads pods; Fairlead packs them by default",
            "set the arguments gpu and cpu of plugin NodePlacement (docs/configuration.md)");
      }
      for (const std::string& setting : shard.settings) Setting(subject, setting);
      if (shard.partition.empty() && !apart && !shard.spreads_gpu && !shard.spreads_cpu &&
          shard.settings.empty()) {
        Add(Matter::kSame, subject, "has KAI's defaults, which are Fairlead's");
      }
    }
  }

  // `value`: of the label; Fairlead has shards, or KAI does.
  void Partition(const std::string& subject, const std::string& value) {
    const std::string nodes = value.empty() ? "nodes without a pool" : absl::StrCat("pool ", value);
    if (kai_.fairlead.shards.contains(value)) {
      Add(Matter::kSame, subject, absl::StrCat("has the ", nodes, ", as a shard of Fairlead's"));
      return;
    }
    Add(Matter::kDoFirst, subject,
        absl::StrCat("has only the ", nodes, "; ",
                     kai_.fairlead.shards.empty() ? "Fairlead schedules the whole cluster"
                                                  : "Fairlead has no such shard"),
        absl::StrCat("run Fairlead with --partition-label-value=", value,
                     ", and once for each other shard (docs/shards.md)"));
  }

  void Setting(const std::string& subject, const std::string& setting) {
    static const auto* const kFields = new std::map<std::string, std::string>{
        {"queueDepthPerAction", "set queueDepth"},
        {"minRuntime", "set preemptMinRuntime and reclaimMinRuntime"},
        {"kValue", "set usage.kValue"},
        {"usageDBConfig", "set usage; it has the same fields"},
        {"actions", "set actions, and queueDepth"},
        {"plugins", "compare them with the plugins of Fairlead's profile"},
        {"args", "compare them with the fields of docs/configuration.md"},
        {"scenarioSearchBudgets", ""},
        {"goMemLimit", ""},
        {"goMemLimitRatio", ""}};
    const auto found = kFields->find(setting);
    const bool idle = found != kFields->end() && found->second.empty();
    Add(Matter::kDiffers, subject,
        absl::StrCat("sets ", setting,
                     idle ? ", which has no counterpart" : ", which Fairlead does not read"),
        found == kFields->end() ? "look for a counterpart in docs/configuration.md"
                                : found->second);
  }

  void Config() {
    if (!kai_.queue_label.empty()) {
      Add(Matter::kDoFirst, "Config",
          absl::StrCat("global.queueLabelKey is ", kai_.queue_label, "; Fairlead reads ",
                       model::kQueueLabel),
          absl::StrCat("label pods and their owners with ", model::kQueueLabel, ", too"));
    }
    for (const std::string& selector : kai_.selectors) {
      Add(Matter::kDiffers, "Config",
          absl::StrCat(selector, " is set; Fairlead serves all pods of its scheduler names"));
    }
  }

  void Webhooks() {
    for (const KaiWebhook& webhook : kai_.webhooks) {
      const std::string subject = absl::StrCat("webhook ", webhook.name);
      const bool stops = controllers_ && webhook.validating && IsOfStopped(webhook);
      Add(stops && webhook.fails ? Matter::kDiffers : Matter::kSame, subject,
          stops && webhook.fails
              ? "refuses every write once its controller is stopped; `fairlead migrate` sets its "
                "failurePolicy to Ignore before"
              : "goes on");
    }
  }
  [[nodiscard]] bool IsOfStopped(const KaiWebhook& webhook) const {
    return absl::c_any_of(kai_.deployments, [&](const KaiDeployment& deployment) {
      return (deployment.component == KaiComponent::kQueueController ||
              deployment.component == KaiComponent::kPodGroupController) &&
             deployment.ns == webhook.service_ns && deployment.name == webhook.service;
    });
  }

  void Queues() {
    std::set<std::string> names;
    for (const model::Queue& queue : kai_.queues) names.insert(queue.meta.name);
    std::vector<std::string> orphans;
    size_t invalid = 0;
    for (const model::Queue& queue : kai_.queues) {
      if (!queue.parent.empty() && !names.contains(queue.parent)) {
        orphans.push_back(queue.meta.name);
      }
      if (queue.invalid.empty()) continue;
      ++invalid;
      Add(Matter::kDoFirst, absl::StrCat("Queue ", queue.meta.name),
          absl::StrCat("runs nothing in Fairlead: ", queue.invalid), "put the field right");
    }
    for (const std::string& queue : OnCycles()) {
      Add(Matter::kDoFirst, absl::StrCat("Queue ", queue),
          "is its own ancestor, and runs nothing in Fairlead", "set another parentQueue");
    }
    if (!orphans.empty()) {
      Add(Matter::kSame, "Queues without their parent",
          absl::StrCat(Names(orphans), " run nothing, as in KAI"));
    }
    if (kai_.queues.size() > invalid) {
      Add(Matter::kSame, "Queues",
          absl::StrCat("all fields of ", kai_.queues.size() - invalid,
                       " are honoured: quota, limit, weight, priority, minimum runtimes"));
    }
  }
  [[nodiscard]] std::set<std::string> OnCycles() const {
    std::map<std::string, std::string> parents;
    for (const model::Queue& queue : kai_.queues) parents[queue.meta.name] = queue.parent;
    std::set<std::string> found;
    for (const auto& [name, parent] : parents) {
      std::set<std::string> passed;
      std::string at = parent;
      while (!at.empty() && passed.insert(at).second) {
        if (at == name) found.insert(name);
        const auto next = parents.find(at);
        at = next == parents.end() ? "" : next->second;
      }
    }
    return found;
  }

  void Groups() {
    std::map<std::string, std::set<std::string>> namespaces;
    size_t invalid = 0;
    for (const model::PodGroup& group : kai_.pod_groups) {
      namespaces[group.meta.name].insert(group.meta.ns);
      if (group.invalid.empty()) continue;
      ++invalid;
      Add(Matter::kDiffers, absl::StrCat("PodGroup ", model::Key(group.meta)),
          absl::StrCat("its pods would wait with InvalidRequest: ", group.invalid),
          "put the field right; what runs goes on");
    }
    std::vector<std::string> shared;
    for (const auto& [name, in] : namespaces) {
      if (in.size() > 1) shared.push_back(name);
    }
    if (!shared.empty()) {
      Add(Matter::kDiffers, "PodGroups of equal names",
          absl::StrCat(Names(shared),
                       " are in several namespaces: one group in KAI, several here"));
    }
    if (kai_.pod_groups.size() > invalid) {
      Add(Matter::kSame, "PodGroups",
          absl::StrCat(kai_.pod_groups.size() - invalid,
                       " go on: members, sub-groups, topology, delays, and the times that KAI has "
                       "written on them"));
    }
  }

  void Topologies() {
    size_t valid = 0;
    for (const model::Topology& topology : kai_.topologies) {
      if (topology.invalid.empty()) {
        ++valid;
      } else {
        Add(Matter::kDiffers, absl::StrCat("Topology ", topology.meta.name),
            absl::StrCat("workloads that name it would wait: ", topology.invalid),
            "put the field right");
      }
    }
    if (valid > 0) Add(Matter::kSame, "Topologies", absl::StrCat(valid, " are honoured"));
  }

  void Pods() {
    if (kai_.running_pods + kai_.waiting_pods == 0) return;
    Add(Matter::kSame, "pods",
        absl::StrCat(kai_.running_pods, " of ", kai_.scheduler_name,
                     " on their nodes run on; waiting ones: ", kai_.waiting_pods));
    for (const auto& [feature, pods] : kai_.pod_features) {
      if (feature == "gpu-fraction" || feature == "gpu-memory") {
        Add(Matter::kSame, feature, absl::StrCat("pods that share GPUs by it: ", pods));
      } else if (feature == "mps") {
        Add(Matter::kDiffers, feature,
            absl::StrCat("is not read by Fairlead; pods that have it: ", pods),
            "keep KAI's admission webhook, which passes it on");
      } else {
        Add(Matter::kDiffers, feature,
            absl::StrCat("is ignored on pods; pods that have it: ", pods),
            "set topologyConstraint of their PodGroup, or annotate their owner");
      }
    }
  }

  void Classes() {
    if (kai_.priority_classes.empty()) return;
    Add(Matter::kSame, "PriorityClasses",
        absl::StrCat(Names(kai_.priority_classes),
                     " are KAI's and go on; removing KAI's chart removes them, and "
                     "manifests/base/priorityclasses.yaml has the same"));
  }

  const KaiInstallation& kai_;
  const bool controllers_;
  std::vector<Finding> findings_;
};

}  // namespace

const char* MatterName(Matter matter) {
  switch (matter) {
    case Matter::kDoFirst:
      return "doFirst";
    case Matter::kDiffers:
      return "differs";
    case Matter::kSame:
      return "same";
  }
  return "?";
}

std::vector<Finding> ExamineKai(const KaiInstallation& kai, bool controllers) {
  return Examination(kai, controllers).Run();
}

bool IsReady(const std::vector<Finding>& findings) {
  return absl::c_none_of(findings, [](const Finding& f) { return f.matter == Matter::kDoFirst; });
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json list = Json::Array();
  for (const Finding& finding : findings) {
    Json item = Json::Object();
    item.Set("matter", MatterName(finding.matter)).Set("subject", finding.subject);
    item.Set("what", finding.what).SetUnlessEmpty("toDo", finding.to_do);
    list.Add(std::move(item));
  }
  Json out = Json::Object();
  out.Set("kind", "MigrationCheck").Set("ready", Json::Bool(IsReady(findings)));
  out.Set("findings", std::move(list));
  return out;
}

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string out;
  for (const auto& [matter, title] :
       {std::pair(Matter::kDoFirst, "TO DO FIRST"), std::pair(Matter::kDiffers, "DIFFERS"),
        std::pair(Matter::kSame, "THE SAME")}) {
    bool any = false;
    for (const Finding& finding : findings) {
      if (finding.matter != matter) continue;
      if (!std::exchange(any, true)) absl::StrAppend(&out, out.empty() ? "" : "\n", title, "\n");
      const std::string what =
          absl::StrCat(Printable(finding.subject), ": ", Printable(finding.what));
      absl::StrAppend(&out, "  ", Wrapped(what, kCheckWidth - 2, "      "), "\n");
      if (finding.to_do.empty()) continue;
      const std::string to_do = absl::StrCat("-> ", Printable(finding.to_do));
      absl::StrAppend(&out, "    ", Wrapped(to_do, kCheckWidth - 4, "       "), "\n");
    }
  }
  absl::StrAppend(&out, "\n",
                  IsReady(findings) ? "Nothing is in the way: fairlead migrate --dry-run"
                                    : "Something is to be done first.",
                  "\n");
  return out;
}

}  // namespace fairlead::cmd
