#include "core/config_grouping.h"

#include <memory>
#include <utility>

#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "core/config_fields.h"
#include "document/json.h"

namespace fairlead::core {
namespace {

absl::Status ReadKinds(const simdjson::dom::element& value, const std::string& path,
                       grouping::KindTable& out) {
  absl::StatusOr<Json> rows = Json::Parse(simdjson::minify(value));
  if (!rows.ok()) return Bad(path, rows.status().message());
  // Errors of a file without a name begin with the colon behind it.
  absl::StatusOr<grouping::KindTable> table = grouping::KindTable::Read(*rows, "", path);
  if (!table.ok()) {
    return absl::InvalidArgumentError(absl::StripPrefix(table.status().message(), ": "));
  }
  out = *std::move(table);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGrouping(const simdjson::dom::element& value, const std::string& path,
                          GroupingOptions& out) {
  grouping::KindTable table = grouping::KindTable::BuiltIn();
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"enabled", Flag(&out.enabled)},
                  {"suspend", Flag(&out.suspend)},
                  {"ownerReadsPerSecond", Count(&out.reads_per_second, 1)},
                  {"kinds", [&](const simdjson::dom::element& kinds, const std::string& at) {
                     return ReadKinds(kinds, at, table);
                   }}}));
  out.table = std::make_shared<const grouping::KindTable>(std::move(table));
  return absl::OkStatus();
}

}  // namespace fairlead::core
