#include "grouping/table.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/status_macros.h"
#include "document/fields.h"
#include "grouping/table_yaml.h"

namespace fairlead::grouping {
namespace {

constexpr char kAny[] = "*";

bool Names(const KindRow& row, absl::string_view group, absl::string_view kind, bool any_kind) {
  return (row.kind == kAny) == any_kind && (any_kind || row.kind == kind) &&
         (row.group == kAny || row.group == group);
}

}  // namespace

absl::string_view GroupOfVersion(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view() : api_version.substr(0, slash);
}

const KindTable& KindTable::BuiltIn() {
  static const KindTable& table = *[] {
    const FieldReader reader("the built-in table of kinds");
    absl::StatusOr<Json> root = reader.Parse(kBuiltInKindsYaml);
    FAIRLEAD_CHECK(root.ok(), root.status().ToString());
    const Json* kinds = root->Find("kinds");
    FAIRLEAD_CHECK(kinds != nullptr, "the built-in table of kinds has no rows");
    absl::StatusOr<std::vector<KindRow>> rows =
        ReadKindRows(*kinds, "the built-in table of kinds", "kinds");
    FAIRLEAD_CHECK(rows.ok(), rows.status().ToString());
    auto made = std::make_unique<KindTable>();
    made->rows_ = *std::move(rows);
    return made.release();
  }();
  return table;
}

absl::StatusOr<KindTable> KindTable::Read(const Json& rows, absl::string_view file,
                                          const std::string& field) {
  KindTable table;
  FAIRLEAD_ASSIGN_OR_RETURN(table.rows_, ReadKindRows(rows, file, field));
  const std::vector<KindRow>& built_in = BuiltIn().rows_;
  table.rows_.insert(table.rows_.end(), built_in.begin(), built_in.end());
  return table;
}

absl::StatusOr<const KindRow*> KindTable::Find(absl::string_view api_version,
                                               absl::string_view kind, const Scope& scope) const {
  const absl::string_view group = GroupOfVersion(api_version);
  for (const bool any_kind : {false, true}) {
    for (const KindRow& row : rows_) {
      if (!Names(row, group, kind, any_kind)) continue;
      if (!row.when.has_value()) return &row;
      FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, row.when->Holds(scope));
      if (holds) return &row;
    }
  }
  return nullptr;
}

bool KindTable::IsRead(absl::string_view api_version, absl::string_view kind) const {
  const absl::string_view group = GroupOfVersion(api_version);
  const auto first = std::find_if(rows_.begin(), rows_.end(), [&](const KindRow& row) {
    return Names(row, group, kind, /*any_kind=*/false);
  });
  return first == rows_.end() || first->read;
}

}  // namespace fairlead::grouping
