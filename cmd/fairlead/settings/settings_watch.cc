#include "cmd/fairlead/settings/settings_watch.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::cmd {

std::string SettingsWatch::Contents() const {
  std::string all;
  for (const std::string& path : {configuration_path_, catalog_path_, catalog_file_}) {
    if (path.empty()) continue;
    const absl::StatusOr<std::string> text = read_(path);
    // The length separates the texts.
    absl::StrAppend(&all, text.ok() ? text->size() : 0, "\n",
                    text.ok() ? *text : std::string(text.status().message()), "\n");
  }
  return all;
}

bool SettingsWatch::IsEmpty() const {
  if (configuration_path_.empty()) return false;
  const absl::StatusOr<std::string> text = read_(configuration_path_);
  return text.ok() && absl::StripAsciiWhitespace(*text).empty();
}

absl::StatusOr<Settings> SettingsWatch::Read(std::string& before) {
  absl::StatusOr<Settings> settings = load_(configuration_path_, catalog_path_, read_);
  if (!settings.ok() || settings->catalog_file == catalog_file_) return settings;
  // The text of this file is compared too from now on.
  catalog_file_ = settings->catalog_file;
  before = Contents();
  return load_(configuration_path_, catalog_path_, read_);
}

absl::StatusOr<Settings> SettingsWatch::Load() {
  std::string before = Contents();
  FAIRLEAD_ASSIGN_OR_RETURN(Settings settings, Read(before));
  contents_ = std::move(before);
  first_ = settings.configuration;
  return settings;
}

std::optional<absl::StatusOr<Settings>> SettingsWatch::Poll() {
  std::string before = Contents();
  if (before == contents_) return std::nullopt;
  if (IsEmpty()) {
    contents_ = std::move(before);
    return absl::InvalidArgumentError(absl::StrCat(configuration_path_, ": is empty"));
  }
  absl::StatusOr<Settings> settings = Read(before);
  if (Contents() != before) return std::nullopt;  // it is being written: the next Poll reads it
  contents_ = std::move(before);
  return settings;
}

std::vector<std::string> SettingsWatch::UnchangeableChanges(const Settings& next) const {
  std::vector<std::string> fields;
  const core::Configuration& b = next.configuration;
  if (!(first_.leader_election == b.leader_election)) fields.push_back("leaderElection");
  if (!(first_.usage_database == b.usage_database)) fields.push_back("usage");
  if (first_.kwok_boot_delay != b.kwok_boot_delay) fields.push_back("kwok.bootDelay");
  if (first_.kwok_out_of_stock_file != b.kwok_out_of_stock_file) {
    fields.emplace_back("kwok.outOfStockFile");
  }
  if (!(first_.karpenter_node_class == b.karpenter_node_class)) fields.push_back("karpenter");
  if (!(first_.external_grpc == b.external_grpc)) fields.push_back("externalgrpc");
  if (!(first_.cluster_api == b.cluster_api)) fields.push_back("clusterApi");
  if (!(first_.scale_groups == b.scale_groups)) fields.push_back("scaleSubresource");
  if (!(first_.provisioning == b.provisioning)) fields.push_back("provisioningRequest");
  if (first_.stale_after != b.stale_after) fields.push_back("staleAfter");
  if (first_.guests_bind_address != b.guests_bind_address) {
    fields.emplace_back("guests.bindAddress");
  }
  if (!(first_.admission == b.admission)) fields.push_back("admission");
  if (first_.metrics_bind_address != b.metrics_bind_address) {
    fields.push_back("metricsBindAddress");
  }
  if (!(first_.tracing == b.tracing)) fields.push_back("tracing");
  if (!(first_.options.shard == b.options.shard)) fields.push_back("shard");
  return fields;
}

}  // namespace fairlead::cmd
