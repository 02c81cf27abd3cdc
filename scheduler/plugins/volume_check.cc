#include "scheduler/plugins/volume_check.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> VolumeCheck::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<VolumeCheck>();
}

std::string VolumeCheck::RefusesEverywhere(const state::PodClass& pod_class) const {
  if (pod_class.spec->pvc_names.empty()) return "";
  const std::string& claim = pod_class.spec->pvc_names.front();
  return absl::StrCat(
      "spec.volumes: ",
      claim.empty() ? "an ephemeral volume" : absl::StrCat("PersistentVolumeClaim ", claim),
      ": this version does not place pods with PersistentVolumeClaims");
}

bool VolumeCheck::Filter(const framework::Context& context, const state::NodeInfo&,
                         framework::Status* why) const {
  if (context.pod_class.spec->pvc_names.empty()) return true;
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "needs PersistentVolumeClaims, which this version does not place yet");
}

}  // namespace fairlead::plugins
