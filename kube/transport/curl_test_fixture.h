// Fixtures of the libcurl transport's tests: credentials that change, a stream's collector, and a
// server with a transport to it.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::kube {

using Answer = absl::StatusOr<HttpResponse>;
using Connection = LoopbackServer::Connection;

inline constexpr char kSecret[] = "hunter2";

// Credentials that change when they are rejected, `changes` times; loads may be delayed or fail.
class ChangingCredentials final : public CredentialSource {
 public:
  explicit ChangingCredentials(int changes = 0) : changes_(changes) { Set(0); }
  CredentialsPtr Current() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return mode_ == Mode::kGood ? current_ : nullptr;
  }
  void Load(CredentialsPtr rejected, Done done) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (mode_ == Mode::kSilent) {
      held_.push_back(std::move(done));
      return;
    }
    if (mode_ == Mode::kFailing) {
      lock.unlock();
      return done(absl::UnauthenticatedError("the plugin is missing"));
    }
    if (rejected == current_ && number_ < changes_) Set(number_ + 1);
    const CredentialsPtr result = current_;
    lock.unlock();
    done(result);
  }
  enum class Mode { kGood, kSilent, kFailing };
  void set_mode(Mode mode) {
    const std::lock_guard<std::mutex> lock(mutex_);
    mode_ = mode;
  }

 private:
  void Set(int number) {
    number_ = number;
    Credentials credentials;
    credentials.authorization = absl::StrCat("Bearer ", kSecret, "-", number);
    current_ = std::make_shared<const Credentials>(std::move(credentials));
  }
  const int changes_;
  std::mutex mutex_;
  Mode mode_ = Mode::kGood;
  int number_ = 0;
  CredentialsPtr current_;
  std::vector<Done> held_;
};

// Collects a stream; waits for conditions on the collected data.
class Collector final : public StreamObserver {
 public:
  void OnHeaders(int status, absl::string_view content_type) override {
    Change([&] {
      EXPECT_EQ(status_, 0) << "headers twice";
      status_ = status;
      content_type_ = std::string(content_type);
    });
  }
  void OnData(absl::string_view bytes) override {
    Change([&] {
      EXPECT_NE(status_, 0) << "data before headers";
      data_.append(bytes.data(), bytes.size());
    });
  }
  void OnDone(const absl::Status& status, absl::Duration retry_after) override {
    Change([&] {
      EXPECT_FALSE(done_.has_value()) << "done twice";
      done_ = status;
      retry_after_ = retry_after;
    });
  }
  // Until `data` or other data has come, or the stream has ended.
  void AwaitData(const std::string& data) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(
        lock, [&] { return data_ == data || !absl::StartsWith(data, data_) || done_.has_value(); });
    EXPECT_EQ(data_, data);
  }
  // The first data; empty if the stream ends without any.
  std::string AwaitAnyData() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !data_.empty() || done_.has_value(); });
    return data_;
  }
  absl::Status AwaitDone() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_.has_value(); });
    return *done_;
  }
  // After AwaitDone.
  int status_ = 0;
  std::string content_type_, data_;
  absl::Duration retry_after_;

 private:
  template <typename Function>
  void Change(Function change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<absl::Status> done_;
};

class CurlTransportTest : public ::testing::Test {
 protected:
  // A server and a transport to it.
  void Start(LoopbackServer::Handler handler, CurlTransportOptions options = {}, int changes = 0) {
    server_ = std::make_unique<LoopbackServer>(std::move(handler));
    ServerConfig config;
    config.url = server_->url();
    Connect(config, options, changes);
  }
  void Connect(const ServerConfig& config, CurlTransportOptions options = {}, int changes = 0) {
    auto credentials = std::make_unique<ChangingCredentials>(changes);
    credentials_ = credentials.get();
    auto transport = CurlTransport::Create(config, std::move(credentials), clock_, options);
    ASSERT_TRUE(transport.ok()) << transport.status();
    transport_ = *std::move(transport);
  }
  static HttpRequest Get(const std::string& path) {
    HttpRequest request;
    request.path = path;
    return request;
  }
  static HttpRequest With(const std::string& method, const std::string& body) {
    HttpRequest request;
    request.method = method;
    request.path = "/objects";
    request.content_type = kMergePatch;
    request.body = body;
    request.traffic = TrafficClass::kWrite;
    return request;
  }
  std::future<Answer> Send(HttpRequest request, HttpTransport::Id* id = nullptr) {
    auto promise = std::make_shared<std::promise<Answer>>();
    const HttpTransport::Id sent = transport_->Send(std::move(request), [promise](Answer answer) {
      promise->set_value(std::move(answer));  // throws if called twice
    });
    if (id != nullptr) *id = sent;
    return promise->get_future();
  }

  RealClock clock_;
  ChangingCredentials* credentials_ = nullptr;  // the transport's
  std::unique_ptr<LoopbackServer> server_;
  std::unique_ptr<CurlTransport> transport_;  // goes first
};

}  // namespace fairlead::kube
