#include "cmd/fairlead/app/usage_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "kube/codec/codec.h"

namespace fairlead::cmd {

bool UsageReader::Poll(absl::Time now) {
  if (done_) return true;
  if (waits_until_ == absl::InfinitePast()) waits_until_ = now + kPatience;
  if (!asking_ && now >= next_) {
    next_ = now + kPause;
    Ask();
  }
  if (now >= waits_until_) patient_ = false;
  return done_ || !patient_;
}

absl::Time UsageReader::wake_at() const {
  if (done_) return absl::InfiniteFuture();
  const absl::Time question = asking_ ? absl::InfiniteFuture() : next_;
  return patient_ ? std::min(question, waits_until_) : question;
}

void UsageReader::Ask() {
  asking_ = true;
  kube::HttpRequest request;
  request.path = path_;
  request.timeout = kPause;
  calls_.Send(std::move(request),
              [this](const absl::StatusOr<kube::HttpResponse>& answer) { OnAnswer(answer); });
}

void UsageReader::OnAnswer(const absl::StatusOr<kube::HttpResponse>& answer) {
  asking_ = false;
  // Not any other answer that counts as NotFound: what is stored would be overwritten.
  if (answer.ok() && answer->status == 404) {
    done_ = true;
    return found_(std::string());
  }
  if (const absl::Status status = StatusOfAnswer(answer); !status.ok()) {
    return failed_(
        absl::Status(status.code(), absl::StrCat("GET ", path_, ": ", status.message())));
  }
  done_ = true;
  found_(kube::DecodeStoredUsage(answer->body));
}

}  // namespace fairlead::cmd
