// The subcommands, one function each; main.cc parses the command line. Every function prints its
// result to `out` and notes to standard error, and returns a Status with a message for users.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autoscale-hook/catalog/csv_import.h"
#include "cmd/fairlead/connection.h"
#include "cmd/fairlead/profiles.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

struct CommonFlags {
  ClusterFlags cluster;
  std::string output = "table";
  std::string configuration, catalog;                   // paths
  std::string ns;                                       // empty: that of the context
  std::optional<std::string> partition_label_value;     // core::Shard; absent: as configured
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that the configuration may name
};

// `fairlead queues`, `nodes`, `top`, `explain`: read-only.
absl::Status RunQueues(const CommonFlags& flags, std::ostream& out);
absl::Status RunNodes(const CommonFlags& flags, std::ostream& out);

struct TopFlags {
  CommonFlags common;
  std::string sort = "gpus";
  int64_t limit = 20;  // workloads in the table
};
absl::Status RunTop(const TopFlags& flags, std::ostream& out);

struct ExplainFlags {
  CommonFlags common;
  std::string subject;
  bool watch = false;
  std::string until;  // "", "placed", "running"; not empty: watch
};
absl::Status RunExplain(const ExplainFlags& flags, std::ostream& out);

// `fairlead what-if`: the present cluster and a change of it, played on; read-only.
struct WhatIfFlags {
  CommonFlags common;
  std::vector<std::string> files, removed;       // paths; "Kind/name", "Kind/namespace/name"
  std::string with_configuration, with_catalog;  // paths; empty: as in the present
  std::string bound = "1h";
  std::string journal;  // or a folder of some: what was recorded instead of the present cluster
};
absl::Status RunWhatIf(const WhatIfFlags& flags, std::ostream& out);

// `fairlead drain-plan NODE...`: what would become of their pods; read-only.
struct DrainPlanFlags {
  CommonFlags common;
  std::vector<std::string> nodes;
  std::string bound = "1h";
};
absl::Status RunDrainPlan(const DrainPlanFlags& flags, std::ostream& out);

// `fairlead migrate`, `migrate check` and `migrate back`: from KAI's scheduler to Fairlead, and
// back.
struct MigrateFlags {
  ClusterFlags cluster;
  std::string output = "table";       // of check
  bool dry_run = false, yes = false;  // one of them, but for check
  bool controllers = false;           // KAI's other controllers, too
  std::string settle = "150s";
};
// Reads alone. FailedPrecondition if something is to be done first.
absl::Status RunMigrateCheck(const MigrateFlags& flags, std::ostream& out);
absl::Status RunMigrate(const MigrateFlags& flags, std::ostream& out);
absl::Status RunMigrateBack(const MigrateFlags& flags, std::ostream& out);

// `fairlead catalog`: the instance types that can be bought. Contacts no cluster.
absl::Status RunCatalog(const CommonFlags& flags, std::ostream& out);

struct CatalogImportFlags {
  std::string file;
  hook::CsvImportOptions options;
};
// `fairlead catalog import`: prints a catalogue file. Contacts nothing.
absl::Status RunCatalogImport(const CatalogImportFlags& flags, std::ostream& out);

struct RunFlags {
  CommonFlags common;
  bool leader_elect = true, leader_elect_given = false;
  std::vector<std::string> scheduler_names;  // empty: as configured
  // Of core::Shard: the process runs these. None: the one that is configured, or the whole cluster.
  std::vector<std::string> partition_label_values;
  std::string identity;  // empty: host name and a random part
  std::string log_level = "info", log_format = "logfmt";
  std::string audit_log;             // a file; empty: none, "-": standard output
  std::string journal;               // a folder; empty: none is recorded
  std::string metrics_bind_address;  // empty: as configured; "0": none
  std::string webhook_bind_address;  // empty, "0": none
  // Empty: the program makes its own certificate.
  std::string webhook_certificate_dir;
  std::string profile_bind_address;  // profiles.h; empty, "0": none
  Profiler profiler = {};
  // dashboard_server.h; empty: no dashboard, and a token unless the address is a loopback one.
  std::string dashboard_bind_address, dashboard_auth;
};
// `fairlead run`: runs until SIGTERM or SIGINT. SIGHUP reads configuration and catalogue again.
absl::Status RunScheduler(const RunFlags& flags);

// `fairlead replay`: the decisions of a journal, made again. Contacts nothing.
struct ReplayFlags {
  std::string file, output = "table";
  framework::RegistryPtr plugins = plugins::BuiltIn();  // of the program that recorded
};
// FailedPrecondition if some decision is another one.
absl::Status RunReplay(const ReplayFlags& flags, std::ostream& out);

// `fairlead journal redact`: journals without names. Contacts nothing.
struct JournalRedactFlags {
  std::vector<std::string> files;
  std::string to;  // a folder
  std::string output = "table";
  framework::RegistryPtr plugins = plugins::BuiltIn();  // of the program that recorded
};
// FailedPrecondition if the journals do not replay, or decide otherwise without names; then no file
// is made.
absl::Status RunJournalRedact(const JournalRedactFlags& flags, std::ostream& out);

// `fairlead bundle`: an archive for a report of a fault; reads the cluster only.
struct BundleFlags {
  CommonFlags common;          // `ns`: of the program; empty: fairlead
  std::string file;            // empty: "fairlead-bundle-TIME.tar.gz" here
  std::string journal;         // a folder of journals; empty: none
  std::string log, audit_log;  // files; empty: none
  int64_t max_mib = 50;
  bool redact = true;
};
// What cannot be read is told in the archive and in `out`, and is no error. A file that exists is
// not overwritten.
absl::Status RunBundle(const BundleFlags& flags, std::ostream& out);

struct SimulateFlags {
  std::string scenario, output = "table", configuration;
  std::string journal;  // a new file: what is decided, for replay; empty: none
  bool live = false, check = false;
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that configurations may name
};
absl::Status RunSimulateCommand(const SimulateFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
