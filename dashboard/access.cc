#include "dashboard/access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace fairlead::dashboard {

absl::Status Access::Check(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "bearer ";
  absl::string_view token;
  if (absl::StartsWithIgnoreCase(authorization, kScheme)) {
    token = absl::StripAsciiWhitespace(authorization.substr(kScheme.size()));
  }
  if (token.empty() || token.size() > kTokenBytes) {
    return absl::UnauthenticatedError("sign in with a Kubernetes token");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Duration now = clock_->Steady();
  const auto known = answers_.find(token);
  if (known != answers_.end() && now < known->second.until) return known->second.status;
  if (!TakeTurn(now)) {
    return absl::ResourceExhaustedError("too many sign-ins at once; try again in a minute");
  }
  const std::string key(token);
  absl::Status status = review_(key);
  const bool told =
      status.ok() || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
  const absl::Duration after = clock_->Steady();
  std::erase_if(answers_, [after](const auto& entry) { return entry.second.until <= after; });
  answers_[key] = {status, after + (told ? kKept : kRetried)};
  return status;
}

bool Access::TakeTurn(absl::Duration now) {
  const double seconds = absl::ToDoubleSeconds(now - turns_at_);
  turns_ = std::min(kBurst, turns_ + seconds * kReviewsPerSecond);
  turns_at_ = now;
  if (turns_ < 1) return false;
  turns_ -= 1;
  return true;
}

}  // namespace fairlead::dashboard
