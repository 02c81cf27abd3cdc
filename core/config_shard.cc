#include "core/config_shard.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/config_fields.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {

absl::Status ReadShard(const simdjson::dom::element& value, const std::string& path,
                       std::optional<Shard>& shard) {
  std::optional<std::string> label_value;
  const std::string field = absl::StrCat(path, ".partitionLabelValue");
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"partitionLabelValue",
        [&label_value](const simdjson::dom::element& text, const std::string& at) -> absl::Status {
          std::string_view read;
          if (text.get(read) != simdjson::SUCCESS) return Bad(at, "must be a string");
          const std::string given(read);
          const std::string fault = LabelValueFault(given);
          if (!fault.empty()) return Bad(at, absl::StrCat("\"", given, "\" ", fault));
          label_value = given;
          return absl::OkStatus();
        }}}));
  if (!label_value.has_value()) {
    return Bad(field, absl::StrCat("must be set; \"\" is the shard of objects without the label ",
                                   model::kNodePoolLabel));
  }
  shard = Shard{*std::move(label_value)};
  return absl::OkStatus();
}

absl::Status CheckShard(const Options& options) {
  if (options.state.guest_schedulers.empty()) return absl::OkStatus();
  return Bad("guests",
             "cannot be combined with a shard: a scheduler that is a guest asks one process about "
             "all of its pods");
}

void SetShard(const std::optional<Shard>& shard, const std::string& lease_name, Options& options) {
  options.shard = shard;
  options.hook.request_prefix = RequestPrefixOf(shard.has_value() ? &*shard : nullptr);
  options.hook.node_labels = {};
  if (shard.has_value() && !shard->label_value.empty()) {
    options.hook.node_labels.Set(model::kNodePoolLabel, shard->label_value);
  }
  const std::string lease = shard.has_value() ? LeaseNameOf(lease_name, *shard) : lease_name;
  options.usage_store.name = absl::StrCat(lease, "-usage");
}

}  // namespace fairlead::core
