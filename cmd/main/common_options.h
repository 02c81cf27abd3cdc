// Options that several commands have. Needs CLI11; for cmd/main alone.
// Thread-safety: one thread, as the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "cmd/fairlead/cluster/command_flags.h"

namespace fairlead::cmd {

// Refuses a value that says nothing: a shell variable that is not set, mostly.
inline std::string NotBlank(const std::string& value) {
  return absl::StripAsciiWhitespace(value).empty() ? "must not be empty" : "";
}

inline constexpr char kOutputHelp[] = "table for people; json or yaml for tools";
inline constexpr char kOutputs[] = "table|json|yaml";
inline constexpr char kWideOutputs[] = "table|wide|json|yaml";

inline void AddCluster(CLI::App& app, ClusterFlags& flags) {
  app.add_option(
         "--kubeconfig", flags.kubeconfig,
         "Kubeconfig file (default: $KUBECONFIG, ~/.kube/config, the pod's service account)")
      ->type_name("FILE")
      ->check(NotBlank);
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: the current one)")
      ->type_name("NAME")
      ->check(NotBlank);
}

inline void AddSettings(CLI::App& app, CommonFlags& flags) {
  app.add_option("--config", flags.configuration,
                 "KubeSchedulerConfiguration and FairleadConfiguration, one file")
      ->type_name("FILE")
      ->check(NotBlank);
  app.add_option("--catalog", flags.catalog, "Instance types on offer (default: the built-in ones)")
      ->type_name("FILE")
      ->check(NotBlank);
}

}  // namespace fairlead::cmd
