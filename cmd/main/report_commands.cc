#include "cmd/main/report_commands.h"

#include <iostream>

#include "cmd/main/common_options.h"

namespace fairlead::cmd {
namespace {

using Action = std::function<absl::Status()>;

void AddReplay(CLI::App& app, ReplayFlags& flags, Action& action) {
  CLI::App* sub =
      app.add_subcommand("replay", "The decisions of a journal, made again, and compared");
  sub->add_option("file", flags.file, "JOURNAL")->required()->type_name("")->check(NotBlank);
  sub->add_option("-o,--output", flags.output, "table for people, json for tools")
      ->type_name("table|json");
  sub->footer(
      "Plays what `fairlead run --journal FOLDER` has recorded through the same program, without "
      "a\n"
      "cluster, and compares each decision with the recorded one. Exit code 1 at the first that\n"
      "differs, with what is decided here instead.\n\n"
      "Examples:\n"
      "  fairlead replay journals/fairlead-20261129T030000.000Z.journal.gz\n"
      "  fairlead replay -o json \"$FILE\" | jq .decisions\n");
  sub->callback([&] { action = [&] { return RunReplay(flags, std::cout); }; });
}

void AddJournal(CLI::App& app, JournalRedactFlags& flags, Action& action) {
  CLI::App* journal = app.add_subcommand("journal", "Make journals fit to be given away");
  journal->require_subcommand(1);
  CLI::App* sub = journal->add_subcommand(
      "redact", "Journals without the names in them, which replay all the same");
  sub->add_option("files", flags.files, "JOURNAL...")->required()->type_name("")->check(NotBlank);
  sub->add_option("--to", flags.to, "Folder of the new files; made if it is missing")
      ->required()
      ->type_name("FOLDER")
      ->check(NotBlank);
  sub->add_option("-o,--output", flags.output, "table for people, json for tools")
      ->type_name("table|json");
  sub->footer(
      "Replaces every text that is on no list of public words: names, namespaces, labels,\n"
      "annotations, nodes, devices, images, users, messages, expressions. Each word becomes the\n"
      "same other word in all files, in the order of the old ones, because decisions depend on\n"
      "that order. Names of Kubernetes and Fairlead stay, and so do public instance types, zones\n"
      "and GPU models, amounts and times.\n\n"
      "The result is played beside the original. If one decision differs, nothing is written, and\n"
      "the message has the file, the record and the step. No file is overwritten.\n\n"
      "Examples:\n"
      "  fairlead journal redact journals/*.journal.gz --to redacted\n"
      "  fairlead replay redacted/redacted-1.journal.gz\n");
  sub->callback([&] { action = [&] { return RunJournalRedact(flags, std::cout); }; });
}

void AddBundle(CLI::App& app, BundleFlags& flags, Action& action) {
  CLI::App* sub = app.add_subcommand("bundle", "An archive for a report of a fault");
  AddCluster(*sub, flags.common.cluster);
  AddSettings(*sub, flags.common);
  sub->add_option("-o,--output", flags.file,
                  "The archive, a new file (default: fairlead-bundle-TIME.tar.gz in this folder)")
      ->type_name("FILE")
      ->check(NotBlank);
  sub->add_option("--format", flags.common.output,
                  "How its contents are listed: table for people; json or yaml for tools")
      ->type_name(kOutputs);
  sub->add_option("-n,--namespace", flags.common.ns, "Namespace of the program (default: fairlead)")
      ->type_name("NAME")
      ->check(NotBlank);
  sub->add_option("--journal", flags.journal,
                  "Journal, or folder of some (`run --journal`); the newest one is put in")
      ->type_name("PATH")
      ->check(NotBlank);
  sub->add_option("--log", flags.log, "Log of the program; its last 4 MiB are put in")
      ->type_name("FILE")
      ->check(NotBlank);
  sub->add_option("--audit-log", flags.audit_log, "Audit log; its last 4 MiB are put in")
      ->type_name("FILE")
      ->check(NotBlank);
  sub->add_flag_callback(
      "--no-redact", [&flags] { flags.redact = false; },
      "Leave names as they are, for a report inside");
  sub->add_option("--max-size", flags.max_mib,
                  "MiB of all files before they are compressed (default: 50)")
      ->type_name("MIB")
      ->check(CLI::Range(1, 4096));
  sub->footer(
      "Reads with your own rights: versions, configuration without passwords and keys, queues, "
      "pod\n"
      "groups, node pools, node requests, nodes, the pods that Fairlead schedules with their\n"
      "verdicts, its events and Lease, metrics and health, and all that decisions read now as a\n"
      "journal for `fairlead replay`. Of pods only what decisions read: no environment, no\n"
      "arguments. Secrets are never read. Nothing is written to the cluster or sent anywhere.\n\n"
      "Names are replaced as `journal redact` does, in all files by the same words. What cannot "
      "be\n"
      "read or does not fit is left out; the output and manifest.json in the archive say what it\n"
      "is, and which right was missing.\n\n"
      "Examples:\n"
      "  fairlead bundle --config fairlead.yaml\n"
      "  kubectl logs -n fairlead deploy/fairlead > fairlead.log\n"
      "  fairlead bundle --journal journals --log fairlead.log -o report.tar.gz\n"
      "  tar -xzf report.tar.gz && cat fairlead-bundle/manifest.json\n");
  sub->callback([&] { action = [&] { return RunBundle(flags, std::cout); }; });
}

}  // namespace

void AddReportCommands(CLI::App& app, ReportFlags& flags, std::function<absl::Status()>& action) {
  AddReplay(app, flags.replay, action);
  AddJournal(app, flags.redact, action);
  AddBundle(app, flags.bundle, action);
}

}  // namespace fairlead::cmd
