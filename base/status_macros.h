// Early returns for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Variable names contain the line number, so that the expression of one macro may hold a lambda
// that uses another.
#define FAIRLEAD_RETURN_IF_ERROR(expr) \
  FAIRLEAD_RETURN_IF_ERROR_IMPL(FAIRLEAD_CONCAT(fairlead_status_, __LINE__), expr)
#define FAIRLEAD_RETURN_IF_ERROR_IMPL(tmp, expr) \
  do {                                           \
    ::absl::Status tmp = (expr);                 \
    if (!tmp.ok()) return tmp;                   \
  } while (false)

#define FAIRLEAD_CONCAT_INNER(a, b) a##b
#define FAIRLEAD_CONCAT(a, b) FAIRLEAD_CONCAT_INNER(a, b)
#define FAIRLEAD_ASSIGN_OR_RETURN(lhs, expr) \
  FAIRLEAD_ASSIGN_OR_RETURN_IMPL(FAIRLEAD_CONCAT(fairlead_or_, __LINE__), lhs, expr)
#define FAIRLEAD_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return std::move(tmp).status();       \
  lhs = std::move(tmp).value()
