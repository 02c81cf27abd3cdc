// The command line. Only files of this folder include CLI11.
#include "cmd/main/command_line.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/fairlead/bundle/bundle_command.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/forecast/forecast_commands.h"
#include "cmd/fairlead/forecast/simulate_command.h"
#include "cmd/fairlead/inspect/catalog_command.h"
#include "cmd/fairlead/inspect/explain.h"
#include "cmd/fairlead/inspect/show_commands.h"
#include "cmd/fairlead/journal/journal_command.h"
#include "cmd/fairlead/journal/replay_command.h"
#include "cmd/fairlead/migrate/migrate_command.h"
#include "cmd/fairlead/run/run_scheduler.h"
#include "cmd/fairlead/terminal/nearest.h"
#include "cmd/main/common_options.h"
#include "cmd/main/completion.h"
#include "cmd/main/report_commands.h"
#include "core/shard.h"
#include "demo/day_command.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {
namespace {

constexpr char kAbout[] =
    "Fairlead: a queue scheduler for Kubernetes and the GPU autoscaler that belongs to it.\n"
    "It says why a pod waits, and provisions nodes only for pods that would run on them.\n";

constexpr char kExamples[] =
    "Examples:\n"
    "  fairlead run --config fairlead.yaml          schedule, here or in a pod\n"
    "  fairlead explain train-0 -n research         why does it wait, what would help?\n"
    "  fairlead queues                              use, quota and waiting work by queue\n"
    "  fairlead top --sort price                    who holds what, and what does it cost?\n"
    "  fairlead nodes -o json | jq .pricePerHourUSD\n"
    "  fairlead what-if -f more-gpus.yaml           what would change, and what would it cost?\n"
    "  fairlead drain-plan gpu-7                    where would its pods go?\n"
    "  fairlead simulate tests/scenarios/two-team-day\n"
    "  kubectl fairlead explain pod/train-0         the same, as a plugin of kubectl\n"
    "'fairlead COMMAND --help' tells more of each.\n";

CLI::Validator IsLabelValue() {
  return CLI::Validator(
      [](const std::string& value) {
        const std::string fault = core::LabelValueFault(value);
        return fault.empty() ? "" : absl::StrCat("\"", value.substr(0, 80), "\" ", fault);
      },
      "", "");
}

void AddShow(CLI::App& app, CommonFlags& flags, const char* outputs = kOutputs) {
  AddCluster(app, flags.cluster);
  AddSettings(app, flags);
  app.add_option_function<std::string>(
         "--partition-label-value",
         [&flags](const std::string& value) { flags.partition_label_value = value; },
         "Look at one shard of the cluster, as `fairlead run` with this flag schedules it "
         "(default: "
         "as configured, else all)")
      ->type_name("VALUE")
      ->check(IsLabelValue());
  app.add_option("-o,--output", flags.output, kOutputHelp)->type_name(outputs);
}

// What the parser knows of a command and all below it.
CommandDescription Describe(const CLI::App& app) {
  CommandDescription command;
  command.name = app.get_name();
  command.about = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.argument = option->get_type_name();
      continue;
    }
    FlagDescription flag{{}, option->get_description(), ""};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (option->get_expected_max() > 0) flag.value = option->get_type_name();
    command.flags.push_back(std::move(flag));
  }
  for (const CLI::App* below : app.get_subcommands({}))
    command.commands.push_back(Describe(*below));
  return command;
}

// "--flag=" is "--flag" with an empty value, which CLI11 only knows as a word of its own. Returns
// the new words, which `words` names.
std::vector<std::string> SplitEmptyValues(std::vector<const char*>& words) {
  std::vector<std::string> names;
  names.reserve(words.size());
  std::vector<const char*> out;
  for (const char* word : words) {
    const absl::string_view text(word);
    if (!absl::StartsWith(text, "--") || !absl::EndsWith(text, "=") ||
        text.find('=') != text.size() - 1) {
      out.push_back(word);
      continue;
    }
    names.emplace_back(text.substr(0, text.size() - 1));
    out.push_back(names.back().c_str());
    out.push_back("");
  }
  words = std::move(out);
  return names;
}

class CommandLine {
 public:
  // Configurations may name `plugins`.
  CommandLine(const std::string& program, const framework::RegistryPtr& plugins,
              const Profiler& profiler)
      : app_(kAbout, program) {
    run_.profiler = profiler;
    run_.common.plugins = common_.plugins = explain_.common.plugins = top_.common.plugins =
        day_.plugins = simulate_.plugins = plugins;
    what_if_.common.plugins = drain_plan_.common.plugins = plugins;
    reports_.SetPlugins(plugins);
    app_.require_subcommand(1);
    app_.footer(kExamples);
    app_.set_version_flag("--version", std::string("fairlead ") + kVersion);
    AddRun();
    AddExplain();
    AddQueues();
    AddNodes();
    AddTop();
    AddWhatIf();
    AddDrainPlan();
    AddMigrate();
    AddReportCommands(app_, reports_, action_);
    AddCatalog();
    AddDay();
    AddSimulate();
    AddCompletion();
    app_.add_subcommand("version", "Print the version")->callback([this] {
      action_ = [] {
        std::cout << "fairlead " << kVersion << std::endl;
        return absl::OkStatus();
      };
    });
  }

  int Main(int argc, char** argv) {
    if (const std::string problem = CommandProblem(argc, argv); !problem.empty()) {
      std::cerr << "fairlead: " << problem << std::endl;
      return 2;
    }
    std::vector<const char*> words(argv, argv + argc);
    const std::vector<std::string> names = SplitEmptyValues(words);
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      // Help and version are "errors" with code 0.
      const int code = app_.exit(error);
      return code == 0 ? 0 : 2;
    }
    const absl::Status status = action_();
    if (status.ok()) return std::cout.flush() ? 0 : 1;
    std::cerr << "fairlead: " << status.message() << std::endl;
    return absl::IsInvalidArgument(status) ? 2 : 1;
  }

 private:
  // The error in the command's name, with the valid names; empty if there is none.
  std::string CommandProblem(int argc, char** argv) const {
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands({})) names.push_back(sub->get_name());
    const std::string list = absl::StrCat("commands: ", absl::StrJoin(names, ", "));
    if (argc < 2) return absl::StrCat("a command is missing; ", list, "; --help tells more");
    const std::string typed = argv[1];
    if (absl::c_linear_search(names, typed)) return "";
    if (absl::StartsWith(typed, "-")) {
      if (typed == "-h" || typed == "--help" || typed == "--version") return "";
      return absl::StrCat("\"", typed.substr(0, 64),
                          "\" stands before the command; usage: fairlead COMMAND [FLAGS]; ", list,
                          "; --help tells more");
    }
    const std::string meant = Nearest(typed, names);
    return absl::StrCat("unknown command \"", typed.substr(0, 64), "\"; ",
                        meant.empty() ? "" : absl::StrCat("did you mean ", meant, "? "), list);
  }

  void AddRun() {
    CLI::App* sub = app_.add_subcommand("run", "Schedule pods and provision nodes, until stopped");
    AddCluster(*sub, run_.common.cluster);
    AddSettings(*sub, run_.common);
    CLI::Option* elect =
        sub->add_option("--leader-elect", run_.leader_elect,
                        "Write only while holding the Lease, so that several may run "
                        "(default: true)")
            ->type_name("true|false")
            ->expected(0, 1)
            ->default_str("true");
    sub->add_option("--scheduler-name", run_.scheduler_names,
                    "spec.schedulerName of the pods to schedule; may be given more than once")
        ->type_name("NAME")
        ->check(NotBlank);
    sub->add_option("--partition-label-value", run_.partition_label_values,
                    absl::StrCat("Schedule one shard of the cluster: what has this value of label ",
                                 model::kNodePoolLabel,
                                 "; empty: what has no such label. May be given more than once "
                                 "(default: as configured, else the whole cluster)"))
        ->type_name("VALUE")
        ->check(IsLabelValue());
    sub->add_option("--identity", run_.identity, "Name of this process in the Lease and in events")
        ->type_name("NAME")
        ->check(NotBlank);
    sub->add_option("--metrics-bind-address", run_.metrics_bind_address,
                    "Serve /metrics, /livez and /readyz there, as in :8080; 0: nowhere "
                    "(default: as configured, else nowhere)")
        ->type_name("HOST:PORT");
    sub->add_option("--webhook-bind-address", run_.webhook_bind_address,
                    "Serve the admission webhooks there over TLS, as in :9443 (default: nowhere)")
        ->type_name("HOST:PORT");
    sub->add_option("--webhook-certificate-dir", run_.webhook_certificate_dir,
                    "Folder with their tls.crt and tls.key, read again when they change (default: "
                    "the program makes its own, in the Secret fairlead-webhook)")
        ->type_name("FOLDER")
        ->check(NotBlank);
    sub->add_option("--dashboard-bind-address", run_.dashboard_bind_address,
                    "Serve the dashboard there, as in 127.0.0.1:8082; 0: nowhere (default)")
        ->type_name("HOST:PORT");
    sub->add_option("--dashboard-auth", run_.dashboard_auth,
                    "What the dashboard's data needs: a Kubernetes token, or nothing (default: "
                    "token, unless the address is a loopback one)")
        ->type_name("token|none")
        ->check(NotBlank);
    sub->add_option("--profile-bind-address", run_.profile_bind_address,
                    "Serve CPU and heap profiles there, as in 127.0.0.1:6060; a loopback address "
                    "(default: nowhere)")
        ->type_name("HOST:PORT");
    sub->add_option("--log-level", run_.log_level, "How much is logged")
        ->type_name("debug|info|warning|error|off");
    sub->add_option("--log-format", run_.log_format, "How it is logged")->type_name("logfmt|json");
    sub->add_option("--audit-log", run_.audit_log,
                    "Append a line of JSON there for each node that is provisioned or removed and "
                    "each pod that is evicted, with the reason; -: standard output")
        ->type_name("FILE")
        ->check(NotBlank);
    sub->add_option("--journal", run_.journal,
                    "Record there what decisions depend on, and the decisions, for `replay`: a new "
                    "file for each start, 512 MiB at most; the last four stay")
        ->type_name("FOLDER")
        ->check(NotBlank);
    sub->footer(
        "Reads the cluster, decides, writes; one log line a decision on standard error.\n"
        "SIGTERM: what was decided is written, then the Lease is given back. SIGHUP, or a change "
        "of\n"
        "the files: configuration and catalogue are read again. Exit code 1 when leadership was\n"
        "lost: whatever started it should start it again.\n\n"
        "Examples:\n"
        "  fairlead run --config fairlead.yaml\n"
        "  fairlead run --kubeconfig dev.kubeconfig --scheduler-name fairlead --log-level debug\n");
    sub->callback([this, elect] {
      run_.leader_elect_given = elect->count() > 0;
      action_ = [this] { return RunScheduler(run_); };
    });
  }

  void AddExplain() {
    CLI::App* sub =
        app_.add_subcommand("explain",
                            "Why a pod or pod group waits and what would let it run; what a "
                            "queue holds");
    AddShow(*sub, explain_.common);
    sub->add_option("subject", explain_.subject,
                    "NAME, pod/NAME, podgroup/NAME, job/NAME, deployment/NAME or queue/NAME")
        ->required()
        ->type_name("")
        ->check([](const std::string& text) {
          return std::string(ParseSubject(text, "").status().message());
        });
    sub->add_option("-n,--namespace", explain_.common.ns,
                    "Namespace (default: that of the context)")
        ->type_name("NAME")
        ->check(NotBlank);
    sub->add_flag("-w,--watch", explain_.watch,
                  "Ask every 10 s, and show the answer when it changes");
    sub->add_option("--until", explain_.until, "Watch, and end when it has a node, or runs")
        ->type_name("placed|running")
        ->check(NotBlank);
    sub->footer(
        "Lists the cluster once, decides once without writing anything, and shows the verdict:\n"
        "code, numbers, the queue from the top with its quotas and limits, what each kind of node\n"
        "says, what would unblock it, nodes on order; and whether the API server has the same.\n\n"
        "Examples:\n"
        "  fairlead explain train-0 -n research\n"
        "  fairlead explain podgroup/sweep -n research -o yaml\n"
        "  fairlead explain train-0 -n research --until running\n");
    sub->callback([this] { action_ = [this] { return RunExplain(explain_, std::cout); }; });
  }

  void AddQueues() {
    CLI::App* sub = app_.add_subcommand("queues", "The tree of queues: quota, limit, use, waiting");
    AddShow(*sub, common_, kWideOutputs);
    sub->footer("Examples:\n  fairlead queues\n  fairlead queues -o json | jq '.items[].name'\n");
    sub->callback([this] { action_ = [this] { return RunQueues(common_, std::cout); }; });
  }

  void AddNodes() {
    CLI::App* sub = app_.add_subcommand("nodes", "Nodes: state, GPUs in use, what they cost");
    AddShow(*sub, common_, kWideOutputs);
    sub->footer("Examples:\n  fairlead nodes\n  fairlead nodes -o yaml\n");
    sub->callback([this] { action_ = [this] { return RunNodes(common_, std::cout); }; });
  }

  void AddTop() {
    CLI::App* sub = app_.add_subcommand("top", "Who holds what now, and what that costs");
    AddShow(*sub, top_.common);
    sub->add_option("--sort", top_.sort, "The largest first (default: gpus)")
        ->type_name("gpus|cpu|memory|price|pods|waiting|name")
        ->check(NotBlank);
    sub->add_option("--limit", top_.limit, "Workloads in the table (default: 20)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
    sub->footer(
        "By queue and by workload: GPUs, CPU and memory that pods request, and their part of the\n"
        "price of the provisioned nodes that they are on.\n\n"
        "Examples:\n"
        "  fairlead top --sort price\n"
        "  fairlead top -o json | jq '.workloads[0]'\n");
    sub->callback([this] { action_ = [this] { return RunTop(top_, std::cout); }; });
  }

  static void AddBound(CLI::App& app, std::string& bound) {
    app.add_option("--for", bound, "The longest time that is played, 1s to 24h (default: 1h)")
        ->type_name("DURATION")
        ->check(NotBlank);
  }

  void AddWhatIf() {
    CLI::App* sub = app_.add_subcommand(
        "what-if", "What would happen to the present cluster if it were changed");
    AddShow(*sub, what_if_.common);
    sub->add_option("-f,--filename", what_if_.files,
                    "Manifests that are applied: queues, node pools, priority classes, "
                    "topologies, pods, pod groups, jobs; may be given more than once")
        ->type_name("FILE")
        ->check(NotBlank);
    sub->add_option("--delete", what_if_.removed,
                    "An object that is taken away; may be given more than once")
        ->type_name("KIND/[NAMESPACE/]NAME")
        ->check(NotBlank);
    sub->add_option("--with-config", what_if_.with_configuration,
                    "The configuration with the change (default: that of --config)")
        ->type_name("FILE")
        ->check(NotBlank);
    sub->add_option("--with-catalog", what_if_.with_catalog,
                    "The instance types and prices with the change (default: those of --catalog)")
        ->type_name("FILE")
        ->check(NotBlank);
    AddBound(*sub, what_if_.bound);
    sub->add_option("--journal", what_if_.journal,
                    "Journal, or folder of some (`run --journal`): what was recorded is played "
                    "instead of the present cluster, from the first to the last decision")
        ->type_name("PATH")
        ->check(NotBlank);
    sub->footer(
        "Reads the cluster once and plays it on in virtual time, without and with the change, "
        "until\n"
        "nothing changes any more: victims leave, bound pods run, requested nodes come. Shows "
        "what\n"
        "differs: queues, workloads, evictions, nodes and dollars per hour. Nothing is written.\n"
        "With --journal no cluster is contacted: the recorded pods come as they came and run for "
        "as\n"
        "long as they ran, in a simulated cluster.\n\n"
        "Examples:\n"
        "  fairlead what-if --journal journals -f research-with-8-gpus.yaml\n"
        "  fairlead what-if -f research-with-8-gpus.yaml\n"
        "  fairlead what-if --delete queue/research --delete pod/team/web-0 -o json\n"
        "  fairlead what-if --with-catalog cheaper.yaml --for 4h\n");
    sub->callback([this] { action_ = [this] { return RunWhatIf(what_if_, std::cout); }; });
  }

  void AddDrainPlan() {
    CLI::App* sub = app_.add_subcommand("drain-plan",
                                        "What would become of the pods of nodes that are drained");
    AddShow(*sub, drain_plan_.common);
    sub->add_option("nodes", drain_plan_.nodes, "NODE...")
        ->required()
        ->type_name("")
        ->check(NotBlank);
    AddBound(*sub, drain_plan_.bound);
    sub->footer(
        "Reads the cluster once and plays it on in virtual time with the nodes cordoned and their\n"
        "pods evicted: which are placed where, which wait and why, which cannot be evicted, which\n"
        "nodes would be requested, what that costs. Nothing is written.\n\n"
        "Examples:\n"
        "  fairlead drain-plan gpu-7\n"
        "  fairlead drain-plan gpu-7 gpu-8 -o json | jq '.pods[] | select(.fate == \"waits\")'\n");
    sub->callback([this] { action_ = [this] { return RunDrainPlan(drain_plan_, std::cout); }; });
  }

  static constexpr char kDryRunHelp[] = "Show the steps, and do nothing";
  void AddMigrate() {
    CLI::App* sub = app_.add_subcommand(
        "migrate", "Let Fairlead take the place of KAI's scheduler, or go back");
    AddCluster(*sub, migrate_.cluster);
    AddMigrateSteps(*sub, "Do the steps");
    sub->add_flag("--controllers", migrate_.controllers,
                  "Stop KAI's other controllers, too: binder, pod-grouper, podgroup-controller, "
                  "queue-controller");
    sub->footer(
        "Begin with `fairlead migrate check`. The steps: KAI's operator, node-scale-adjuster and\n"
        "schedulers are scaled to 0, then KAI's scheduler name goes into Fairlead's "
        "configuration, so\n"
        "that never two schedulers serve it. Each step is looked at before the next one. Running "
        "pods\n"
        "are not touched, and nothing is deleted. The former values are in the ConfigMap\n"
        "fairlead-migration beside Fairlead, and `migrate back` restores them. May be given "
        "again.\n\n"
        "Examples:\n"
        "  fairlead migrate check\n"
        "  fairlead migrate --dry-run\n"
        "  fairlead migrate --yes\n"
        "  fairlead migrate back --yes\n");
    AddMigrateCheck(*sub);
    AddMigrateBack(*sub);
    sub->callback([this, sub] {
      if (!sub->get_subcommands().empty()) return;
      action_ = [this] { return RunMigrate(migrate_, std::cout); };
    });
  }

  void AddMigrateSteps(CLI::App& app, const char* yes) {
    app.add_flag("--dry-run", migrate_.dry_run, kDryRunHelp);
    app.add_flag("--yes", migrate_.yes, yes);
  }

  void AddMigrateCheck(CLI::App& migrate) {
    CLI::App* sub = migrate.add_subcommand(
        "check", "What will be the same, what will differ, and what is to be done first");
    AddCluster(*sub, migrate_.cluster);
    sub->add_option("-o,--output", migrate_.output, kOutputHelp)->type_name(kOutputs);
    sub->add_flag("--controllers", migrate_.controllers,
                  "With KAI's other controllers stopped, too");
    sub->footer(
        "Reads KAI's Deployments, Config and SchedulingShards, Queues, PodGroups, Topologies, "
        "webhooks,\n"
        "PriorityClasses, the pods of its scheduler, and Fairlead's own configuration. Nothing is\n"
        "written. Exit code 1 if something is to be done first.\n\n"
        "Examples:\n"
        "  fairlead migrate check\n"
        "  fairlead migrate check -o json | jq '.findings[] | select(.matter == \"doFirst\")'\n");
    sub->callback([this] { action_ = [this] { return RunMigrateCheck(migrate_, std::cout); }; });
  }

  void AddMigrateBack(CLI::App& migrate) {
    CLI::App* sub =
        migrate.add_subcommand("back", "Undo what `migrate` did: KAI's scheduler serves again");
    AddCluster(*sub, migrate_.cluster);
    AddMigrateSteps(*sub, "Undo the steps");
    sub->add_option("--settle", migrate_.settle,
                    "How long to wait until Fairlead has its changed file, before KAI's scheduler "
                    "is started (default: 150s)")
        ->type_name("DURATION")
        ->check(NotBlank);
    sub->footer(
        "Restores what the ConfigMap fairlead-migration has, in reverse: first Fairlead's "
        "configuration\n"
        "loses KAI's scheduler name. A field that somebody else has changed since is left as it "
        "is, "
        "and\n"
        "told with exit code 1. Pods that Fairlead has placed run on.\n\n"
        "Examples:\n"
        "  fairlead migrate back --dry-run\n"
        "  fairlead migrate back --yes\n");
    sub->callback([this] { action_ = [this] { return RunMigrateBack(migrate_, std::cout); }; });
  }

  void AddCatalog() {
    CLI::App* sub = app_.add_subcommand("catalog", "Instance types on offer, and their prices");
    AddSettings(*sub, common_);
    sub->add_option("-o,--output", common_.output, kOutputHelp)->type_name(kOutputs);
    sub->footer(
        "Shows the catalogue that `run` would use with the same files, and how old its prices "
        "are.\n"
        "Contacts no cluster.\n\n"
        "Examples:\n"
        "  fairlead catalog\n"
        "  fairlead catalog --catalog mine.yaml -o json | jq -r '.items[].name'\n"
        "  fairlead catalog import vms.csv --region us-east-1 --help\n");
    AddCatalogImport(*sub);
    sub->callback([this, sub] {
      if (!sub->get_subcommands().empty()) return;
      action_ = [this] { return RunCatalog(common_, std::cout); };
    });
  }

  void AddCatalogImport(CLI::App& catalog) {
    CLI::App* sub = catalog.add_subcommand("import", "A catalogue file from a public price list");
    hook::CsvImportOptions& options = catalog_import_.options;
    sub->add_option(
           "file", catalog_import_.file,
           "CSV: a row for each type, zone and region, as vms.csv of the SkyPilot catalogue")
        ->required()
        ->type_name("FILE");
    sub->add_option("--region", options.region, "Its prices (default: the only one of the file)")
        ->type_name("NAME")
        ->check(NotBlank);
    sub->add_option(
           "--zones", options.zones,
           "Zones as nodes are labelled (topology.kubernetes.io/zone), by commas, for every "
           "type (default: those of the file)")
        ->delimiter(',')
        ->type_name("NAMES")
        ->check(NotBlank);
    sub->add_option("--types", options.types, "Only types whose whole name matches (RE2)")
        ->type_name("REGEX")
        ->check(NotBlank);
    sub->add_flag("--gpus-only", options.gpus_only, "Only types with GPUs");
    sub->add_option("--as-of", options.as_of, "When the prices were true, for people")
        ->type_name("DATE");
    sub->footer(
        "Prints the file. What is wrong in the list, or of no use, is left out and told on "
        "standard\n"
        "error. A price of 0 counts as unknown: such a type is listed, and never provisioned.\n\n"
        "Example, with a list from github.com/skypilot-org/skypilot-catalog, catalogs/v8/aws:\n"
        "  fairlead catalog import vms.csv --region us-east-1 --zones us-east-1a,us-east-1b \\\n"
        "      --gpus-only --as-of 2026-11 > catalog.yaml\n"
        "  fairlead catalog --catalog catalog.yaml\n");
    sub->callback(
        [this] { action_ = [this] { return RunCatalogImport(catalog_import_, std::cout); }; });
  }

  void AddDay() {
    CLI::App* sub =
        app_.add_subcommand("day", "Play a scenario on a real API server, live, with its bill");
    AddCluster(*sub, day_.cluster);
    sub->add_option("--scenario", day_.scenario, "Folder with scenario.yaml")
        ->required()
        ->type_name("DIR");
    sub->add_option("--crds", day_.crds,
                    "Folder of CustomResourceDefinitions to install where they are missing "
                    "(default: the first folder crds above the scenario)")
        ->type_name("DIR");
    sub->add_option("--speed", day_.speed,
                    "Seconds of the scenario in one second (default: its own, at most 600)")
        ->check(CLI::PositiveNumber)
        ->type_name("N");
    sub->add_flag("--yes", day_.yes, "Do not ask before writing to the cluster");
    sub->add_flag("--plain", day_.plain, "A log instead of the full screen");
    sub->add_option("--log-file", day_.log_file, "Where the scheduler's own log goes")
        ->type_name("FILE");
    sub->footer(
        "Needs a cluster whose nodes are faked by kwok, and no other Fairlead in it. Everything "
        "it\n"
        "creates is deleted at the end, also after Ctrl-C (a second Ctrl-C ends at once).\n\n"
        "Examples:\n"
        "  fairlead day --scenario tests/scenarios/two-team-day --kubeconfig dev.kubeconfig\n"
        "  fairlead day --scenario tests/scenarios/two-team-day --speed 600 --plain --yes\n");
    sub->callback([this] { action_ = [this] { return demo::RunDayCommand(day_); }; });
  }

  void AddSimulate() {
    CLI::App* sub = app_.add_subcommand(
        "simulate", "Play a scenario without any cluster, in virtual time, in seconds");
    sub->add_option("scenario", simulate_.scenario, "Folder with scenario.yaml")
        ->required()
        ->type_name("DIR");
    sub->add_option("-o,--output", simulate_.output, "table for people, json for tools")
        ->type_name("table|json");
    sub->add_option("--config", simulate_.configuration,
                    "Configuration where the scenario has none of its own")
        ->type_name("FILE")
        ->check(NotBlank);
    sub->add_flag("--live", simulate_.live, "Show the log at the scenario's pace");
    sub->add_flag("--check", simulate_.check, "Check every invariant after every decision");
    sub->add_option("--journal", simulate_.journal,
                    "New file: the decisions as a journal, for replay and what-if")
        ->type_name("FILE")
        ->check(NotBlank);
    sub->footer(
        "Examples:\n"
        "  fairlead simulate tests/scenarios/two-team-day\n"
        "  fairlead simulate tests/scenarios/two-team-day --journal day.journal.gz\n"
        "  fairlead replay day.journal.gz\n");
    sub->callback(
        [this] { action_ = [this] { return RunSimulateCommand(simulate_, std::cout); }; });
  }

  void AddCompletion() {
    CLI::App* sub =
        app_.add_subcommand("completion", "A script with which a shell completes flags");
    sub->add_option("shell", shell_, "The shell")->required()->type_name("bash|zsh|fish");
    sub->footer(
        "Examples:\n"
        "  source <(fairlead completion bash)           in ~/.bashrc\n"
        "  fairlead completion zsh > ~/.zfunc/_fairlead with fpath+=~/.zfunc before compinit\n"
        "  fairlead completion fish > ~/.config/fish/completions/fairlead.fish\n");
    sub->callback([this] {
      action_ = [this]() -> absl::Status {
        const absl::StatusOr<std::string> script = CompletionScript(shell_, Describe(app_));
        if (script.ok()) std::cout << *script;
        return script.status();
      };
    });
  }

  CLI::App app_;
  std::function<absl::Status()> action_;
  CommonFlags common_;
  ExplainFlags explain_;
  TopFlags top_;
  WhatIfFlags what_if_;
  DrainPlanFlags drain_plan_;
  MigrateFlags migrate_;
  ReportFlags reports_;
  CatalogImportFlags catalog_import_;
  RunFlags run_;
  demo::DayFlags day_;
  SimulateFlags simulate_;
  std::string shell_;
};

}  // namespace

int Main(int argc, char** argv, const std::vector<framework::NamedPlugin>& own,
         const Profiler& profiler) {
  std::signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<framework::RegistryPtr> plugins = plugins::WithBuiltIn(own);
  if (!plugins.ok()) {
    std::cerr << "fairlead: " << plugins.status().message() << std::endl;
    return 2;
  }
  // A kubectl plugin has another name; messages show the command that the user typed.
  const std::string program = argc > 0 ? argv[0] : "fairlead";
  const bool of_kubectl = absl::EndsWith(program, "kubectl-fairlead");
  return CommandLine(of_kubectl ? "kubectl fairlead" : "fairlead", *plugins, profiler)
      .Main(argc, argv);
}

}  // namespace fairlead::cmd
