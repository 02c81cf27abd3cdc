// Who may read the dashboard: requests need "Authorization: Bearer TOKEN", and a reviewer says of
// each token what it may. Answers are kept for a while, because a page asks every other second.
//
// Bounded: at most kBurst, and kReviewsPerSecond from then on, are asked for, so that a guesser of
// tokens costs the API server little; no more than that are kept. A token whose answer is kept is
// not affected. Tokens are kept in memory only, as long as their answers.
//
// Thread-safety: any thread; the reviewer is called by one at a time, and may block.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace fairlead::dashboard {

// OK: it may read. Unauthenticated: the token is no one's. PermissionDenied: its user may not read.
// Any other code: it could not be found out. The message is for the user.
using TokenReview = std::function<absl::Status(const std::string& token)>;

class Access {
 public:
  static constexpr absl::Duration kKept = absl::Seconds(60);    // of an answer
  static constexpr absl::Duration kRetried = absl::Seconds(5);  // of none
  static constexpr size_t kTokenBytes = 8 << 10;
  static constexpr double kReviewsPerSecond = 2, kBurst = 20;

  // `clock` outlives it.
  Access(TokenReview review, const Clock* clock) : review_(std::move(review)), clock_(clock) {}

  // As of TokenReview, for the value of the header Authorization. ResourceExhausted: too many other
  // tokens were asked about.
  absl::Status Check(absl::string_view authorization);

 private:
  struct Answer {
    absl::Status status;
    absl::Duration until;  // steady
  };
  bool TakeTurn(absl::Duration now);

  const TokenReview review_;
  const Clock* const clock_;
  std::mutex mutex_;
  std::map<std::string, Answer, std::less<>> answers_;  // by token
  double turns_ = kBurst;
  absl::Duration turns_at_ = absl::ZeroDuration();
};

}  // namespace fairlead::dashboard
