// fairlead-bench: runs the benchmarks with matching names, prints a table and writes it as JSON.
// kUsage has the flags.
//
// Exit code: 0 also when a goal is missed (a busy machine is no bug); 1 if a benchmark did not do
// what it says (the others still run); 2 for wrong arguments.
#include <re2/re2.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"
#include "tests/bench/reference.h"

namespace fairlead::bench {
namespace {

constexpr char kUsage[] =
    "Usage: fairlead-bench [FLAG]...\n"
    "Runs benchmarks, prints a table and the machine's index, judges goals at index 1.\n\n"
    "  --filter REGEX         only those whose names match\n"
    "  --list                 print the names and end\n"
    "  --repetitions N        of each measurement (default: 5)\n"
    "  --out FILE             write the results as JSON, too\n"
    "  --crds FOLDER          our CustomResourceDefinitions (default: crds)\n"
    "  --control-plane FILE   the API server's program (default: as scripts/ cache it)\n"
    "  --reference            measure the machine alone: the reference workload and its index\n"
    "  --help                 print this and end\n";

struct Arguments {
  std::string out, filter, crds = "crds", control_plane, child;
  int repetitions = 5;
  bool list = false;
};

int Fail(const std::string& what) {
  std::fprintf(stderr, "fairlead-bench: %s\n", what.c_str());
  return 2;
}

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && std::filesystem::is_regular_file(path, ignored);
}

// The scripts keep the control plane that they have built here.
std::string CachedControlPlane() {
  const char* named = std::getenv("FAIRLEAD_CONTROL_PLANE");
  if (named != nullptr && *named != '\0') return named;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder = cache != nullptr && *cache != '\0' ? std::string(cache)
                       : home != nullptr                  ? absl::StrCat(home, "/.cache")
                                                          : std::string();
  return folder.empty() ? folder : absl::StrCat(folder, "/fairlead/bin/fairlead-control-plane");
}

bool HasFiles(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator files(folder, error);
  return !error && files != std::filesystem::directory_iterator();
}

int RunAll(const Arguments& arguments) {
  const std::vector<Benchmark> all = {
      {"placements_1k", Placements1k},
      {"placements_20k", Placements20k},
      {"affinity_5k", Affinity5k},
      {"anti_affinity_5k", AntiAffinity5k},
      {"zone_spread_5k", ZoneSpread5k},
      {"host_spread_5k", HostSpread5k},
      {"upstream_5k", Upstream5k},
      {"many_sizes_5k", ManySizes5k},
      {"many_sizes_reclaim", ManySizesReclaim},
      {"remote_plugin_1k", RemotePlugin1k},
      {"fill_500x8", Fill500x8},
      {"queued_320k", Queued320k},
      {"idle_cycle", IdleCycle},
      {"pending_full_2000", PendingFull2000},
      {"pending_depth_5000", PendingDepth5000},
      {"reclaim_cycle_500", ReclaimCycle500},
      {"reclaim_paced_1000", ReclaimPaced1000},
      {"reclaim_gang_100_nodes", ReclaimGang100Nodes},
      {"hopeless_gang", HopelessGang},
      {"growth_nodes", GrowthWithNodes},
      {"growth_fill", GrowthWithFill},
      {"heaps", Heaps},
      {"memory_5k_100k", Memory5k100k},
      {"decode_pods_100k", DecodePods100k},
      {"scale_100k", Scale100k},
      {"verdict_to_request", VerdictToRequest},
      {"demand_capped_20k", DemandCapped20k},
      {"plan_51k", Plan51k},
      {"hook-step-10k-nodes-ms", HookStep10kNodes},
      {"plan-50k-pods-1000-types-ms", Plan50kPods1000Types},
      {"plan-20k-mixed-400-types-ms", Plan20kMixed400Types},
      {"plan-cost-over-bound", PlanCostOverBound},
      {"plan-cost-over-bound-openb", PlanCostOverBoundOfTraces},
      {"plan-month", PlanMonth},
      {"bind_rate", BindRate},
      {"e2e_reclaim_1000", EndToEndReclaim},
      {"e2e_verdict_to_request", EndToEndVerdictToRequest},
  };
  const RE2 filter(arguments.filter.empty() ? "." : arguments.filter, RE2::Quiet);
  if (!filter.ok()) return Fail(absl::StrCat("--filter: ", filter.error()));
  Report report([] { return IndexOf(MeasureReference()); });
  Run run{report, arguments.repetitions, arguments.control_plane, arguments.crds};
  if (run.control_plane.empty()) run.control_plane = CachedControlPlane();
  if (!IsFile(run.control_plane)) run.control_plane.clear();
  if (!HasFiles(run.crds)) run.crds.clear();
  bool all_succeeded = true, any = false;
  for (const Benchmark& benchmark : all) {
    if (!RE2::PartialMatch(benchmark.name, filter)) continue;
    any = true;
    if (arguments.list) {
      Report::Say(benchmark.name);
      continue;
    }
    report.Begin();
    if (!Succeeds(benchmark.name, [&] { benchmark.run(run); })) all_succeeded = false;
    report.End();
  }
  if (!any) return Fail("--filter: no benchmark has such a name; --list has all");
  const int code = all_succeeded ? 0 : 1;
  if (arguments.out.empty() || arguments.list) return code;
  if (report.missed() > 0) Report::Say(absl::StrCat(report.missed(), " goals missed"));
  const absl::Status written = report.WriteJson(arguments.out);
  return written.ok() ? code : Fail(written.ToString());
}

int Main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (flag == "--reference") {
      const ReferenceTimes times = MeasureReference();
      Report::Say(absl::StrFormat("hashing %.5f s, sorting %.5f s, chasing %.5f s: index %.2f",
                                  times.hashing, times.sorting, times.chasing, IndexOf(times)));
      return 0;
    }
    if (flag == "--list") {
      arguments.list = true;
      continue;
    }
    std::string* value = flag == "--out"             ? &arguments.out
                         : flag == "--filter"        ? &arguments.filter
                         : flag == "--crds"          ? &arguments.crds
                         : flag == "--control-plane" ? &arguments.control_plane
                         : flag == "--child"         ? &arguments.child
                                                     : nullptr;
    if (value == nullptr && flag != "--repetitions") {
      return Fail(absl::StrCat("unknown flag ", flag, "; --help has the flags"));
    }
    if (i + 1 >= argc) return Fail(absl::StrCat(flag, " needs a value"));
    const std::string text = argv[++i];
    if (value != nullptr) {
      *value = text;
    } else if (!absl::SimpleAtoi(text, &arguments.repetitions) || arguments.repetitions < 1) {
      return Fail(absl::StrCat(flag, " ", text, ": must be a number above 0"));
    }
  }
  if (arguments.child.empty()) return RunAll(arguments);
  const std::map<std::string, void (*)(bool)> children = {{"memory_5k_100k", Memory5k100kChild},
                                                          {"decode_pods_100k", DecodePods100kChild},
                                                          {"scale_100k", Scale100kChild}};
  for (const auto& [name, child] : children) {
    for (const bool groups : {false, true}) {
      if (arguments.child != NameOf(name, groups)) continue;
      return Succeeds(arguments.child, [&] { child(groups); }) ? 0 : 1;
    }
  }
  return Fail("--child: unknown");
}

}  // namespace
}  // namespace fairlead::bench

int main(int argc, char** argv) { return fairlead::bench::Main(argc, argv); }
