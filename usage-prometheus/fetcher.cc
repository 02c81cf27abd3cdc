#include "usage-prometheus/fetcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::prometheus {
namespace {

kube::HttpRequest RequestFor(const Queries& queries, const Question& question) {
  kube::HttpRequest request;
  request.path = question.path;
  request.timeout = queries.options().timeout;
  return request;
}

// Collects the answers of one fetch, on the I/O thread, which calls one at a time.
class Round {
 public:
  Round(const Queries& queries, absl::Time now, size_t questions)
      : at_(absl::FromUnixSeconds(absl::ToUnixSeconds(now))),
        metrics_(queries.options().metrics),
        answers_(metrics_.size()),
        left_(questions) {}

  // True if that was the last answer.
  bool Take(const Question& question, const absl::StatusOr<kube::HttpResponse>& response) {
    absl::StatusOr<Answer> answer =
        response.ok() ? ReadAnswer(*response) : absl::StatusOr<Answer>(response.status());
    if (answer.ok()) {
      MetricAnswers& both = answers_[question.metric];
      (question.capacity ? both.capacity : both.allocation) = *std::move(answer);
    } else if (failure_.ok()) {
      const std::string field = FieldOf(metrics_[question.metric], question.capacity);
      failure_ = absl::Status(answer.status().code(),
                              absl::StrCat(field, ": ", answer.status().message()));
    }
    return --left_ == 0;
  }
  [[nodiscard]] bool failed() const { return !failure_.ok(); }
  [[nodiscard]] absl::StatusOr<Usage> Outcome() const {
    FAIRLEAD_RETURN_IF_ERROR(failure_);
    return Combine(at_, metrics_, answers_);
  }

 private:
  const absl::Time at_;
  const std::vector<Metric> metrics_;
  std::vector<MetricAnswers> answers_;
  size_t left_;
  absl::Status failure_;  // the first
};

}  // namespace

void Fetch(kube::HttpTransport& transport, const Queries& queries, absl::Time now,
           std::function<void(absl::StatusOr<Usage>)> done) {
  const std::vector<Question> questions = queries.At(now);
  const auto round = std::make_shared<Round>(queries, now, questions.size());
  for (const Question& question : questions) {
    transport.Send(RequestFor(queries, question),
                   [round, question, done](const absl::StatusOr<kube::HttpResponse>& response) {
                     if (round->Take(question, response)) done(round->Outcome());
                   });
  }
}

absl::StatusOr<Usage> FetchNow(kube::HttpTransport& transport, const Queries& queries,
                               absl::Time now) {
  const std::vector<Question> questions = queries.At(now);
  Round round(queries, now, questions.size());
  for (const Question& question : questions) {
    round.Take(question, transport.Call(RequestFor(queries, question)));
    if (round.failed()) break;
  }
  return round.Outcome();
}

UsageFetcher::UsageFetcher(kube::HttpTransport* transport, Queries queries,
                           absl::Duration wait_timeout, Post post, Told told)
    : transport_(transport),
      queries_(std::move(queries)),
      wait_timeout_(wait_timeout),
      post_(std::move(post)),
      told_(std::move(told)) {}

bool UsageFetcher::Poll(absl::Time now) {
  if (waits_until_ == absl::InfinitePast()) waits_until_ = now + wait_timeout_;
  if (now >= waits_until_) ready_ = true;
  if (!asking_ && now >= next_) {
    next_ = now + queries_.options().usage.sample_interval;
    Ask(now);
  }
  return ready_;
}

absl::Time UsageFetcher::wake_at() const {
  const absl::Time question = asking_ ? absl::InfiniteFuture() : next_;
  return ready_ ? question : std::min(question, waits_until_);
}

void UsageFetcher::Ask(absl::Time now) {
  asking_ = true;
  Fetch(*transport_, queries_, now,
        [this, alive = alive_, post = post_](absl::StatusOr<Usage> usage) {
          post([this, alive, usage = std::move(usage)]() mutable {
            if (!*alive) return;
            asking_ = false;
            ready_ = true;
            told_(std::move(usage));
          });
        });
}

}  // namespace fairlead::prometheus
