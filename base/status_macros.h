// Early returns for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FAIRLEAD_RETURN_IF_ERROR(expr)          \
  do {                                          \
    ::absl::Status fairlead_status_ = (expr);   \
    if (!fairlead_status_.ok()) return fairlead_status_; \
  } while (false)

#define FAIRLEAD_CONCAT_INNER(a, b) a##b
#define FAIRLEAD_CONCAT(a, b) FAIRLEAD_CONCAT_INNER(a, b)
#define FAIRLEAD_ASSIGN_OR_RETURN(lhs, expr) \
  FAIRLEAD_ASSIGN_OR_RETURN_IMPL(FAIRLEAD_CONCAT(fairlead_or_, __LINE__), lhs, expr)
#define FAIRLEAD_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return std::move(tmp).status();       \
  lhs = std::move(tmp).value()
