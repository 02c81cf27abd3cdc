#include "extenders/ask.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::extenders {
namespace {

constexpr absl::string_view kGone = "the API server does not list the node";
// Of a body, beside the pod and the nodes; and beside each name.
constexpr size_t kFrameBytes = 64, kQuoteBytes = 3;

}  // namespace

void OneAsk::Start() {
  reader_->ReadPod(action_.ns, action_.name, action_.uid,
                   [self = shared_from_this()](absl::StatusOr<std::string> pod) {
                     self->OnPod(std::move(pod));
                   });
}

bool OneAsk::NeedsNodes() const {
  return std::any_of(action_.extenders.begin(), action_.extenders.end(), [this](int32_t position) {
    const Endpoint& endpoint = At(position);
    return endpoint.answers() && !endpoint.config().node_cache_capable;
  });
}

void OneAsk::OnPod(absl::StatusOr<std::string> pod) {
  if (!pod.ok()) return Fail(pod.status());
  pod_ = *std::move(pod);
  if (!NeedsNodes()) return CallNextFilter();
  reader_->ReadNodes([self = shared_from_this()](const absl::StatusOr<NodeTextsPtr>& nodes) {
    self->OnNodes(nodes);
  });
}

void OneAsk::OnNodes(const absl::StatusOr<NodeTextsPtr>& nodes) {
  if (!nodes.ok()) return Fail(nodes.status());
  nodes_ = *nodes;
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (asked_.IsLeft(i) && !nodes_->contains(asked_.name(i))) Refuse(i, kGone, false);
  }
  CallNextFilter();
}

// ---- filters -----------------------------------------------------------------------------------

void OneAsk::CallNextFilter() {
  while (next_ < action_.extenders.size() && asked_.count_left() > 0) {
    const size_t asked = next_++;
    const Endpoint& endpoint = At(action_.extenders[asked]);
    if (endpoint.config().filter_verb.empty()) continue;
    return Send(endpoint, endpoint.config().filter_verb,
                [this, asked](const Body& body) { OnFiltered(asked, body); });
  }
  CallScores();
}

void OneAsk::OnFiltered(size_t asked, const Body& body) {
  const int32_t position = action_.extenders[asked];
  const Endpoint& endpoint = At(position);
  const absl::Status status = TakeVerdicts(endpoint, body);
  // The end of the program is not an extender's failure.
  if (absl::IsCancelled(status)) return Fail(status);
  if (!status.ok() && !endpoint.config().ignorable) {
    return Fail(endpoint.Describe(endpoint.config().filter_verb, status), position);
  }
  CallNextFilter();
}

// Changes nothing if the answer is an error.
absl::Status OneAsk::TakeVerdicts(const Endpoint& endpoint, const Body& body) {
  if (!body.ok()) return body.status();
  const absl::StatusOr<std::vector<NodeVerdict>> verdicts =
      ReadFilterResult(*body, endpoint.config().node_cache_capable, asked_);
  if (!verdicts.ok()) return absl::UnavailableError(verdicts.status().message());
  const std::string without_reason =
      absl::StrCat("refused by extender ", endpoint.config().url_prefix);
  for (size_t i = 0; i < asked_.size(); ++i) {
    const NodeVerdict& verdict = (*verdicts)[i];
    if (!asked_.IsLeft(i) || verdict.admitted) continue;
    Refuse(i, verdict.reason.empty() ? without_reason : verdict.reason, verdict.unresolvable);
  }
  return absl::OkStatus();
}

// ---- scores ------------------------------------------------------------------------------------

void OneAsk::CallScores() {
  std::vector<const Endpoint*> scoring;
  for (const int32_t position : action_.extenders) {
    const Endpoint& endpoint = At(position);
    if (!endpoint.config().prioritize_verb.empty()) scoring.push_back(&endpoint);
  }
  if (asked_.count_left() <= 1 || scoring.empty()) return Succeed();
  open_scores_ = scoring.size();  // before the first answer
  for (const Endpoint* endpoint : scoring) {
    Send(*endpoint, endpoint->config().prioritize_verb,
         [this, endpoint](const Body& body) { OnScored(*endpoint, body); });
  }
}

void OneAsk::OnScored(const Endpoint& endpoint, const Body& body) {
  const absl::StatusOr<std::vector<int64_t>> points =
      body.ok() ? ReadScores(*body, endpoint.config().weight, asked_)
                : absl::StatusOr<std::vector<int64_t>>(body.status());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (absl::IsCancelled(points.status())) cancelled_ = points.status();
    for (size_t i = 0; points.ok() && i < answers_.size(); ++i) {
      answers_[i].score = AddPoints(answers_[i].score, (*points)[i]);
    }
    if (--open_scores_ > 0) return;
  }
  if (!cancelled_.ok()) return Fail(cancelled_);
  Succeed();
}

// ---- both --------------------------------------------------------------------------------------

void OneAsk::Send(const Endpoint& endpoint, const std::string& verb,
                  std::function<void(Body)> done) {
  endpoint.Ask(
      verb, BytesFor(endpoint),
      [self = shared_from_this(), &endpoint] { return self->ArgsFor(endpoint); },
      [self = shared_from_this(), done = std::move(done)](Body body) { done(std::move(body)); });
}

size_t OneAsk::BytesFor(const Endpoint& endpoint) const {
  size_t bytes = pod_.size() + kFrameBytes;
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (!asked_.IsLeft(i)) continue;
    const std::string& name = asked_.name(i);
    bytes += endpoint.config().node_cache_capable ? name.size() + kQuoteBytes
                                                  : nodes_->at(name).size() + 1;
  }
  return bytes;
}

std::string OneAsk::ArgsFor(const Endpoint& endpoint) const {
  if (endpoint.config().node_cache_capable) return ArgsWithNames(pod_, asked_);
  std::vector<absl::string_view> nodes;
  nodes.reserve(asked_.count_left());
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (asked_.IsLeft(i)) nodes.push_back(nodes_->at(asked_.name(i)));
  }
  return ArgsWithNodes(pod_, nodes);
}

}  // namespace fairlead::extenders
