#include "cmd/fairlead/inspect/explain_watch.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {

absl::StatusOr<WatchUntil> ParseWatchUntil(absl::string_view text) {
  if (text.empty()) return WatchUntil::kNever;
  if (text == "placed") return WatchUntil::kPlaced;
  if (text == "running") return WatchUntil::kRunning;
  return absl::InvalidArgumentError(absl::StrCat("--until ", text, ": must be placed or running"));
}

WatchedAnswer StateOf(const Explanation& explanation) {
  using State = Explanation::State;
  WatchedAnswer answer;
  answer.key = ExplainJson(explanation).Compact();
  const bool ended = explanation.state == State::kFinished;
  answer.placed = ended || explanation.state == State::kRunning;
  const bool runs =
      explanation.is_group
          ? std::all_of(explanation.pods.begin(), explanation.pods.end(),
                        [](const core::RunningRow& pod) { return pod.status == "Running"; })
          : explanation.pod_status == "Running";
  answer.running = ended || (explanation.state == State::kRunning && runs);
  return answer;
}

absl::Status WatchAnswers(const std::function<absl::StatusOr<WatchedAnswer>()>& ask,
                          WatchUntil until, const std::function<void(absl::Duration)>& sleep,
                          std::ostream& out) {
  std::optional<std::string> shown;
  while (true) {
    const absl::StatusOr<WatchedAnswer> answer = ask();
    if (answer.ok()) {
      if (shown != answer->key) {
        out << (shown.has_value() ? "\n" : "") << answer->text << std::flush;
        shown = answer->key;
      }
      if (until == WatchUntil::kPlaced && answer->placed) return absl::OkStatus();
      if (until == WatchUntil::kRunning && answer->running) return absl::OkStatus();
    } else {
      const bool passing =
          absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
      if (!passing || !shown.has_value()) return answer.status();
      std::cerr << "note: " << answer.status().message() << "; asking again" << std::endl;
    }
    sleep(kWatchInterval);
  }
}

}  // namespace fairlead::cmd
