#include "cmd/simtest/settings_files.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "absl/time/time.h"
#include "cmd/simtest/catalogue.h"
#include "cmd/simtest/checks.h"
#include "cmd/simtest/machine_checks.h"
#include "sim/world/facts.h"
#include "sim/world/plan_guests.h"

namespace fairlead::simtest {
namespace {

constexpr char kHead[] = "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n";

// $0: hook on, $1: GPUs, $2: dollars, $3: nodes, $4, $5: the rate for pods of a
// queue and size, $6, $7: for all, $8: the rest, $9: after how long consolidation moves pods.
constexpr char kBase[] = R"(stalenessGracePeriod: 30s
consolidationMinRuntime: $9
leaderElection: {resourceNamespace: kube-system}
hook:
  enabled: $0
  provider: kwok
  catalogFile: catalogue.yaml
  clusterGPULimit: $1
  costLimitPerHour: "$2.00"
  maxNodes: $3
  provisioningBurst: $4
  provisioningPerMinute: $5
  totalProvisioningBurst: $6
  totalProvisioningPerMinute: $7
  unneededAfter: 30s
  launchTimeout: 30s
  # A dead watch is noticed within 80 s: a shorter wait ends machines unseen.
  readyTimeout: 150s
  backoffInitial: 5s
  backoffMax: 40s
  expectedBoot: 30s
$8)";

// Two profiles: pods of the one are placed by kube-scheduler's scores.
constexpr char kSpread[] = R"(schedulerNames: [fairlead, kai-scheduler]
defaultPlugins: {fairlead: Upstream}
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: fairlead
- schedulerName: kai-scheduler
  pluginConfig:
  - name: NodePlacement
    args: {gpu: spread, cpu: spread}
)";

constexpr char kUnshared[] = R"(---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: fairlead
  plugins:
    multiPoint:
      disabled: [{name: GpuSharing}]
)";

// Whatever is wrong beside it: it would be seen.
constexpr char kHarmful[] = R"(schedulerNames: [another]
leaderElection: {resourceNamespace: kube-system}
hook: {enabled: true, provider: kwok, clusterGPULimit: 100000, costLimitPerHour: "100000.00"}
)";

bool IsGoodConfiguration(absl::string_view version) {
  static const auto* const kGood =
      new std::set<std::string>{"base", "spread", "quiet", "rounding", "unshared"};
  return kGood->contains(std::string(version));
}

bool IsGoodCatalogue(absl::string_view version) {
  int number = 0;
  return absl::SimpleAtoi(version, &number);
}

std::string Base(const sim::world::Plan& plan) {
  return absl::StrCat(
      kHead,
      absl::Substitute(kBase, plan.hook ? "true" : "false", kGpuCap, plan.max_usd_per_hour,
                       plan.max_nodes, kPurchaseBurst, kPurchasesPerMinute, kTotalBurst,
                       kTotalPerMinute,
                       absl::StrCat(plan.empties ? "  consolidationPolicy: "
                                                   "WhenEmptyOrUnderutilized\n"
                                                 : "",
                                    plan.paced ? "evictions: {perSecond: 1, burst: 1}\n" : ""),
                       absl::FormatDuration(kMovable)),
      sim::world::HasGuests(plan)
          ? absl::StrCat("guests: {schedulerNames: [", sim::world::kGuestScheduler,
                         "], bindTimeout: ", absl::FormatDuration(kGuestBindTimeout), "}\n")
          : "",
      sim::world::GroupsByOwners(plan) ? "grouping: {enabled: true}\n" : "",
      plan.kai_status ? "kaiStatus: true\n" : "",
      plan.sharded ? "shard: {partitionLabelValue: ''}\n" : "");
}

std::string Half(const std::string& text) { return text.substr(0, text.size() / 2); }

// A file of which half was written ends within a field.
std::string ConfigurationText(const sim::world::Plan& plan, const std::string& version) {
  if (version == "empty") return "\n";
  if (version == "half") return absl::StrCat(kHead, kHarmful, "hook: {maxN");
  if (version == "unknown-field") return absl::StrCat(kHead, kHarmful, "hok: {}\n");
  if (version == "bad-type") return absl::StrCat(kHead, kHarmful, "staleAfter: soon\n");
  if (version == "unknown-provider") {
    return absl::StrCat(kHead, "schedulerNames: [another]\nhook: {provider: aws}\n");
  }
  std::string text = Base(plan);
  if (version == "quiet") absl::StrAppend(&text, "events: false\n");
  if (version == "rounding") absl::StrAppend(&text, "reclaimRounding: nearest\n");
  if (version == "spread") absl::StrAppend(&text, kSpread);
  if (version == "unshared") absl::StrAppend(&text, kUnshared);
  return text;
}

std::string TypeText(const hook::InstanceType& type) {
  std::string gpu;
  if (type.gpu_count > 0) {
    gpu = absl::StrCat("  gpu: {model: ", type.gpu_model, ", count: ", type.gpu_count,
                       ", memory_mib: ", type.gpu_memory_mib, "}\n");
  }
  std::string reservations;
  for (const hook::Reservation& one : type.reservations) {
    absl::StrAppend(&reservations, "  - {name: ", one.name, ", count: ", one.count, ", price: ",
                    absl::StrFormat("%d.%06d", one.price_micro_usd_per_hour / kMicroPerUsd,
                                    one.price_micro_usd_per_hour % kMicroPerUsd),
                    one.zone.empty() ? "" : ", zone: ", one.zone, ", labels: {",
                    absl::StrJoin(one.labels, ", ", absl::PairFormatter(": ")), "}}\n");
  }
  return absl::StrCat(
      "- name: ", type.name, "\n  cpu: ", type.cpu_milli / 1000,
      "\n  memory: ", type.memory_bytes >> 30, "Gi\n  zones: [", absl::StrJoin(type.zones, ", "),
      "]\n", gpu,
      absl::StrFormat("  price: {on_demand: %d.%06d}\n", *type.on_demand_micro_usd / kMicroPerUsd,
                      *type.on_demand_micro_usd % kMicroPerUsd),
      reservations.empty() ? "" : "  reservations:\n", reservations);
}

std::string CatalogueText(const std::string& version) {
  if (version == "empty") return "";
  int number = 0;
  const bool known = absl::SimpleAtoi(version, &number);
  std::string text = "types:\n";
  for (const hook::InstanceType& type : WorldCatalog(known ? number : 0).types()) {
    absl::StrAppend(&text, TypeText(type));
  }
  if (version == "half") return absl::StrCat(Half(text), "\n  cp");
  // Free machines, and one that there cannot be.
  if (version == "bad") {
    return "types:\n- {name: gpu8, cpu: 64, memory: 256Gi, zones: [zone-a], price: {on_demand: "
           "0}}\n"
           "- {name: gpu9, cpu: -1, memory: 1Gi, zones: [zone-a]}\n";
  }
  return text;
}

}  // namespace

void SettingsFiles::Write(absl::string_view configuration, absl::string_view catalogue) {
  if (!configuration.empty()) configuration_ = std::string(configuration);
  if (!catalogue.empty()) catalogue_ = std::string(catalogue);
  if (IsGoodConfiguration(configuration_)) good_configuration_ = configuration_;
  if (IsGoodCatalogue(catalogue_)) good_catalogue_ = catalogue_;
}

void SettingsFiles::Restore() {
  configuration_ = good_configuration_;
  catalogue_ = good_catalogue_;
}

bool SettingsFiles::usable() const {
  return IsGoodConfiguration(configuration_) && IsGoodCatalogue(catalogue_);
}

absl::StatusOr<std::string> SettingsFiles::Read(const std::string& path) const {
  const bool is_catalogue = path == kCatalogueFile;
  if ((is_catalogue ? catalogue_ : configuration_) == "missing") {
    return absl::InvalidArgumentError(absl::StrCat(path, ": No such file or directory"));
  }
  return is_catalogue ? CatalogueText(catalogue_) : ConfigurationText(plan_, configuration_);
}

void AdjustOptions(const sim::world::Plan& plan, core::Options& options) {
  options.engine.bind_backoff_max = absl::Seconds(20);
  options.hook.cancel_after = absl::Seconds(10);
  if (plan.max_search_work > 0) {
    options.engine.max_search_work = plan.max_search_work;
    options.engine.max_walk_work = plan.max_search_work;
  }
}

}  // namespace fairlead::simtest
