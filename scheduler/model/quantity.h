// Kubernetes quantities ("1500m", "80Gi", "1e3") to integers, without floating point.
// Grammar and rounding: k8s.io/apimachinery/pkg/api/resource/quantity.go (a value finer than the
// scale rounds away from zero; a value past the largest int64 is capped there).
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::model {

// The value times `units_per_one` (1 for bytes and counts, 1000 for milli-units).
// InvalidArgument, with the text quoted, if it is not a quantity.
absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, int64_t units_per_one);

// Returns base units of the resource: ParseQuantity(text, BaseUnitsPerUnit(name)).
absl::StatusOr<int64_t> ParseResourceQuantity(absl::string_view resource_name,
                                              absl::string_view text);

// A plain decimal number ("0.7", "-1", "12") times `units_per_one`, rounded to nearest, half away
// from zero. Queue quotas are JSON numbers, and 0.7 of a GPU has to be 700 milli exactly.
absl::StatusOr<int64_t> ParseDecimal(absl::string_view text, int64_t units_per_one);

// Dollars ("12.50") in millionths. InvalidArgument if it is no plain decimal number, or negative.
inline constexpr int64_t kMicroUsdPerUsd = 1'000'000;
absl::StatusOr<int64_t> ParseDollars(absl::string_view text);
std::string FormatDollars(int64_t micro_usd);  // "$55.04"

}  // namespace fairlead::model
