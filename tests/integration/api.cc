#include "tests/integration/api.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "gtest/gtest.h"
#include "kube/credentials/credentials.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {

class History::Observer final : public kube::StreamObserver {
 public:
  explicit Observer(std::shared_ptr<History> history) : history_(std::move(history)) {}
  void OnHeaders(int status, absl::string_view /*content_type*/) override {
    if (status != 200) Add("ERROR", Json::Int(status));
  }
  void OnData(absl::string_view bytes) override {
    buffer_.append(bytes.data(), bytes.size());
    for (size_t end = buffer_.find('\n'); end != std::string::npos; end = buffer_.find('\n')) {
      absl::StatusOr<Json> event = Json::Parse(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      if (!event.ok()) continue;
      Add(event->TextAt({"type"}), std::move(*event->Find("object")));
    }
  }
  void OnDone(const absl::Status& /*status*/, absl::Duration /*retry_after*/) override {}

 private:
  void Add(std::string type, Json object) {
    const std::lock_guard<std::mutex> lock(history_->mutex_);
    if (type == "BOOKMARK") {  // the first one ends the initial events
      history_->begun_ = true;
      return;
    }
    history_->events_.push_back({std::move(type), std::move(object)});
  }

  std::shared_ptr<History> history_;
  std::string buffer_;
};

std::vector<History::Event> History::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_;
}

size_t History::objects() const {
  std::set<std::string> uids;
  for (const Event& event : events()) uids.insert(event.object.TextAt({"metadata", "uid"}));
  return uids.size();
}

bool History::Any(const std::function<bool(const Json&)>& condition) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(events_.begin(), events_.end(),
                     [&](const Event& event) { return condition(event.object); });
}

Api::Api(const kube::ClientConfig& config) {
  kube::CurlTransportOptions options;
  options.user_agent = "fairlead-integration";
  auto transport = kube::CurlTransport::Create(
      config.server, kube::NewCredentialSource(config, clock_), clock_, options);
  FAIRLEAD_CHECK(transport.ok(), transport.status().ToString());
  transport_ = *std::move(transport);
}

Answer Api::Call(std::string method, std::string path, std::string body, std::string content_type) {
  kube::HttpRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.body = std::move(body);
  if (!request.body.empty()) request.content_type = std::move(content_type);
  absl::StatusOr<kube::HttpResponse> response;
  // An API server that has just started, or just learnt of a CRD, answers 429 for a moment.
  const auto answered = [&] {
    response = transport_->Call(request);
    return !response.ok() || response->status != 429;
  };
  EXPECT_TRUE(Eventually("an answer other than 429", answered)) << request.path;
  Answer answer;
  if (!response.ok()) {
    answer.text = response.status().ToString();
    return answer;
  }
  answer.status = response->status;
  answer.text = std::move(response->body);
  if (absl::StatusOr<Json> parsed = Json::Parse(answer.text); parsed.ok()) {
    answer.body = *std::move(parsed);
  }
  return answer;
}

Json Api::Create(std::string collection, const std::string& body) {
  const std::string what = collection;
  Answer answer = Call("POST", std::move(collection), body);
  EXPECT_TRUE(answer.ok()) << "POST " << what << ": " << answer.text << "\nof " << body;
  return std::move(answer.body);
}

Json Api::Merge(std::string path, const std::string& body) {
  const std::string what = path;
  Answer answer = Call("PATCH", std::move(path), body, kube::kMergePatch);
  EXPECT_TRUE(answer.ok()) << "PATCH " << what << ": " << answer.text << "\nof " << body;
  return std::move(answer.body);
}

void Api::Delete(std::string path) {
  const std::string what = path;
  const Answer answer =
      Call("DELETE", std::move(path),
           R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0})");
  EXPECT_TRUE(answer.ok() || answer.status == 404) << "DELETE " << what << ": " << answer.text;
}

std::vector<Json> Api::List(const std::string& collection) {
  Answer answer = Get(collection);
  EXPECT_TRUE(answer.ok()) << "GET " << collection << ": " << answer.text;
  Json* items = answer.body.Find("items");
  return items == nullptr ? std::vector<Json>() : std::move(items->items());
}

double Api::Metric(absl::string_view name, const std::vector<std::string>& labels) {
  const Answer answer = Get("/metrics");
  EXPECT_TRUE(answer.ok()) << answer.text;
  double sum = 0;
  for (absl::string_view line : absl::StrSplit(answer.text, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat(name, "{"))) continue;
    const bool wanted = std::all_of(labels.begin(), labels.end(), [line](const std::string& label) {
      return absl::StrContains(line, label);
    });
    double value = 0;
    if (wanted && absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum += value;
  }
  return sum;
}

std::shared_ptr<History> Api::Watch(const std::string& collection) {
  auto history = std::make_shared<History>();
  kube::HttpRequest request;
  // The initial events of such a watch are the existing objects.
  request.path = absl::StrCat(collection, "?watch=true&sendInitialEvents=true&allowWatchBookmarks=",
                              "true&resourceVersionMatch=NotOlderThan");
  request.traffic = kube::TrafficClass::kWatch;
  request.timeout = absl::InfiniteDuration();
  transport_->Stream(std::move(request), std::make_shared<History::Observer>(history));
  EXPECT_TRUE(Eventually("the watch has begun", [&] {
    const std::lock_guard<std::mutex> lock(history->mutex_);
    return history->begun_;
  }));
  return history;
}

}  // namespace fairlead::integration
