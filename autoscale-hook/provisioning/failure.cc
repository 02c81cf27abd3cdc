#include "autoscale-hook/provisioning/failure.h"

#include <array>

namespace fairlead::hook {
namespace {

struct Row {
  FailureClass failure;
  const char* name;
  absl::StatusCode code;
};
constexpr std::array<Row, 6> kRows = {{
    {FailureClass::kStockout, "Stockout", absl::StatusCode::kResourceExhausted},
    {FailureClass::kQuota, "Quota", absl::StatusCode::kOutOfRange},
    {FailureClass::kAuth, "Auth", absl::StatusCode::kPermissionDenied},
    {FailureClass::kConfig, "Config", absl::StatusCode::kInvalidArgument},
    {FailureClass::kTimeout, "Timeout", absl::StatusCode::kDeadlineExceeded},
    {FailureClass::kOther, "Other", absl::StatusCode::kInternal},
}};

}  // namespace

absl::string_view FailureName(FailureClass failure) {
  return kRows[static_cast<size_t>(failure)].name;
}

std::optional<FailureClass> ParseFailure(absl::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.failure;
  }
  return std::nullopt;
}

absl::Status FailureStatus(FailureClass failure, absl::string_view message) {
  return {kRows[static_cast<size_t>(failure)].code, message};
}

bool IsUnknownOutcome(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsCancelled(status);
}

std::optional<FailureClass> ClassifyFailure(const absl::Status& status) {
  if (status.ok() || absl::IsAlreadyExists(status) || IsUnknownOutcome(status)) return std::nullopt;
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      return FailureClass::kAuth;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return FailureClass::kConfig;
    default:
      break;
  }
  for (const Row& row : kRows) {
    if (row.code == status.code()) return row.failure;
  }
  return FailureClass::kOther;
}

bool IsRefusal(FailureClass failure) {
  return failure != FailureClass::kTimeout && failure != FailureClass::kOther;
}

}  // namespace fairlead::hook
