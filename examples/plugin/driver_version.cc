#include "driver_version.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/plugins/args.h"

namespace example {
namespace {

using fairlead::framework::Code;
using fairlead::framework::Context;
using fairlead::framework::Status;
using fairlead::model::StringMap;
using fairlead::state::NodeInfo;
using fairlead::state::PodClass;

// The version that the label says; none if it is absent or no version.
std::optional<int32_t> VersionIn(const StringMap& labels, const std::string& key) {
  int32_t version = 0;
  const std::string* text = labels.Find(key);
  if (text == nullptr || !absl::SimpleAtoi(*text, &version) || version < 0) return std::nullopt;
  return version;
}

}  // namespace

DriverVersion::DriverVersion(std::string pod_label, std::string node_label)
    : pod_label_(std::move(pod_label)), node_label_(std::move(node_label)) {}

absl::StatusOr<std::unique_ptr<fairlead::framework::Plugin>> DriverVersion::Make(
    absl::string_view args_json) {
  std::string pod_label = "example.com/min-driver";
  std::string node_label = "nvidia.com/cuda.driver-version.major";
  const absl::Status read = fairlead::plugins::ReadArgs(
      kName, args_json, {{"podLabel", &pod_label}, {"nodeLabel", &node_label}});
  if (!read.ok()) return read;
  if (pod_label.empty()) return fairlead::plugins::BadArg("args.podLabel", "must not be empty");
  if (node_label.empty()) return fairlead::plugins::BadArg("args.nodeLabel", "must not be empty");
  return std::make_unique<DriverVersion>(std::move(pod_label), std::move(node_label));
}

bool DriverVersion::FilterApplies(const PodClass& pod_class) const {
  return pod_class.spec->labels_for_plugins.Has(pod_label_);
}

std::string DriverVersion::RefusesEverywhere(const PodClass& pod_class) const {
  const StringMap& labels = pod_class.spec->labels_for_plugins;
  if (VersionIn(labels, pod_label_).has_value()) return "";
  return absl::StrCat("metadata.labels[", pod_label_, "]: \"", labels.Get(pod_label_),
                      "\" is not the major version of a driver");
}

bool DriverVersion::Filter(const Context& context, const NodeInfo& node, Status* why) const {
  const auto wanted = VersionIn(context.pod_class.spec->labels_for_plugins, pod_label_);
  const auto there = VersionIn(node.object.meta.labels, node_label_);
  if (wanted.has_value() && there.has_value() && *there >= *wanted) return true;
  if (why == nullptr) return false;
  why->code = Code::kUnschedulableAndUnresolvable;
  if (!there.has_value()) {
    why->reason = "node(s) do not say the version of their GPU driver";
    return false;
  }
  why->reason = "node(s) have a GPU driver that is too old";
  why->detail = absl::StrCat("{", node_label_, ": ", *there, "}");
  return false;
}

bool DriverVersion::ScoreApplies(const PodClass& pod_class) const {
  return FilterApplies(pod_class);
}

int64_t DriverVersion::Score(const Context& context, const NodeInfo& node) const {
  const auto wanted = VersionIn(context.pod_class.spec->labels_for_plugins, pod_label_);
  const auto there = VersionIn(node.object.meta.labels, node_label_);
  if (!wanted.has_value() || !there.has_value() || *there < *wanted) return 0;
  return fairlead::framework::kMaxNodeScore -
         std::min<int64_t>(fairlead::framework::kMaxNodeScore, *there - *wanted);
}

}  // namespace example
