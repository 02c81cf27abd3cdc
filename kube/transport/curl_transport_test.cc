#include "kube/transport/curl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "kube/transport/curl_test_fixture.h"

namespace fairlead::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- requests ----------------------------------------------------------------------------------

TEST_F(CurlTransportTest, SendsAndAnswers) {
  Start([](const LoopbackServer::Request&, Connection& c) { c.Answer(200, "{\"a\":1}"); });
  HttpRequest request = Get("/api/v1/pods?limit=5&continue=a%2Fb");
  request.accept = "application/vnd.kubernetes.protobuf,application/json";
  const Answer answer = transport_->Call(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_EQ(answer->body, "{\"a\":1}");
  EXPECT_EQ(answer->retry_after, absl::ZeroDuration());
  const auto seen = server_->requests().at(0);
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, request.path);
  EXPECT_EQ(seen.headers.at("accept"), request.accept);
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer hunter2-0");
  EXPECT_EQ(seen.headers.at("user-agent"), "fairlead");
  EXPECT_EQ(seen.headers.count("content-type"), 0u);
}

// One handle serves all of them: nothing of one request may appear in the next.
TEST_F(CurlTransportTest, MethodsAndBodiesDoNotMix) {
  Start([](const LoopbackServer::Request&, Connection& c) { c.Answer(201, ""); });
  const std::string large(2'000'000, 'x');  // above the size at which libcurl would ask first
  const struct {
    const char* method;
    std::string body;
  } calls[] = {{"POST", "one"}, {"GET", ""},    {"PATCH", "two"},
               {"DELETE", ""},  {"PUT", large}, {"DELETE", "d"},
               {"POST", ""},    {"GET", ""},    {"PATCH", std::string("\0b", 2)}};
  for (const auto& call : calls) ASSERT_TRUE(transport_->Call(With(call.method, call.body)).ok());
  const auto seen = server_->requests();
  ASSERT_EQ(seen.size(), std::size(calls));
  for (size_t i = 0; i < seen.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(seen[i].method, calls[i].method);
    EXPECT_TRUE(seen[i].body == calls[i].body);
    const bool has_body = !calls[i].body.empty() || seen[i].method == "POST";
    EXPECT_EQ(seen[i].headers.count("content-type"), has_body ? 1u : 0u);
    EXPECT_EQ(seen[i].headers.count("expect"), 0u);
    EXPECT_EQ(seen[i].connection, 0);
  }
}

TEST_F(CurlTransportTest, RefusesWhatNoMessageCanCarry) {
  Start([](const LoopbackServer::Request&, Connection& c) { c.Answer(200, ""); });
  HttpRequest request = Get("/a");
  request.content_type = "a\r\nX-Evil: 1";
  HttpRequest accept = Get("/a");
  accept.accept = "a\nb";
  HttpRequest method = Get("/a");
  method.method = "GET /b";
  for (const HttpRequest& bad : {Get("/a b"), Get("no-slash"), Get("/a\r\nX: y"), Get("@evil/"),
                                 Get(""), Get("/#x"), request, accept, method}) {
    EXPECT_TRUE(absl::IsInvalidArgument(transport_->Call(bad).status())) << bad.path;
  }
  EXPECT_TRUE(server_->requests().empty());
  EXPECT_TRUE(transport_->Call(Get("/fine")).ok());
}

// ---- answers -----------------------------------------------------------------------------------

TEST_F(CurlTransportTest, ErrorAnswersAreAnswersWithRetryAfter) {
  Start([](const LoopbackServer::Request& request, Connection& c) {
    // The path is the value of the header.
    c.Answer(429, "busy", absl::StrCat("Retry-After: ", request.target.substr(1), "\r\n"));
  });
  const struct {
    const char* value;
    absl::Duration at_least, at_most;
  } cases[] = {{"1", absl::Seconds(1), absl::Seconds(1)},
               {"0", absl::ZeroDuration(), absl::ZeroDuration()},
               {"-5", absl::ZeroDuration(), absl::ZeroDuration()},
               {"soon", absl::ZeroDuration(), absl::ZeroDuration()},
               {"99999999999999999", absl::Hours(1), absl::Hours(1)}};
  for (const auto& c : cases) {
    const Answer answer = transport_->Call(Get(absl::StrCat("/", c.value)));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 429);
    EXPECT_EQ(answer->body, "busy");
    EXPECT_GE(answer->retry_after, c.at_least) << c.value;
    EXPECT_LE(answer->retry_after, c.at_most) << c.value;
  }
}

TEST_F(CurlTransportTest, RetryAfterMayBeADate) {
  Start([this](const LoopbackServer::Request&, Connection& c) {
    c.Answer(503, "",
             absl::StrCat("retry-after: ",
                          absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT",
                                           clock_.Now() + absl::Minutes(10), absl::UTCTimeZone()),
                          "\r\n"));
  });
  const Answer answer = transport_->Call(Get("/"));
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(answer->retry_after, absl::Minutes(9));
  EXPECT_LE(answer->retry_after, absl::Minutes(10));
}

TEST_F(CurlTransportTest, InformationalAnswersAreNotTheAnswer) {
  Start([](const LoopbackServer::Request&, Connection& c) {
    c.Write("HTTP/1.1 103 Early Hints\r\nContent-Type: text/evil\r\nRetry-After: 9\r\n\r\n");
    c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Type\r\n\r\n");
    c.Chunk("x");
    c.Write("0\r\nContent-Type: text/evil\r\n\r\n");
  });
  const Answer answer = transport_->Call(Get("/"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "");
  EXPECT_EQ(answer->retry_after, absl::ZeroDuration());
  EXPECT_EQ(answer->body, "x");
}

TEST_F(CurlTransportTest, BrokenAnswersAreUnavailable) {
  Start([](const LoopbackServer::Request& request, Connection& c) {
    c.Close();
    if (request.target == "/none") return;
    if (request.target == "/garbage") return c.Write("hunter2\r\n\r\n");
    if (request.target == "/half-header") return c.Write("HTTP/1.1 200 OK\r\nContent-Ty");
    if (request.target == "/half-body") {
      return c.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
    c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    c.Chunk("half");
    if (request.target == "/bad-chunk") c.Write("hunter2\r\n");
  });
  for (const char* path :
       {"/none", "/garbage", "/half-header", "/half-body", "/half-chunks", "/bad-chunk"}) {
    const Answer answer = transport_->Call(Get(absl::StrCat(path, "?token=hunter2")));
    // libcurl turns an unfinished header into an answer without a body; any other cut is no answer.
    if (absl::string_view(path) != "/half-header") {
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << path << ": " << answer.status();
      EXPECT_THAT(std::string(answer.status().message()),
                  AllOf(HasSubstr("GET "), HasSubstr(path), Not(HasSubstr(kSecret))));
    }
  }
}

TEST_F(CurlTransportTest, ConnectionRefusedIsUnavailable) {
  // A port that was free a moment ago, because its owner has closed it.
  ServerConfig config;
  config.url = LoopbackServer([](const LoopbackServer::Request&, Connection&) {}).url();
  Connect(config);
  const Answer answer = transport_->Call(Get("/version"));
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()),
              AllOf(HasSubstr("GET /version"), Not(HasSubstr(kSecret))));
}

TEST_F(CurlTransportTest, LargeAnswersAreCutOff) {
  CurlTransportOptions options;
  options.max_body_bytes = 1000;
  Start(
      [](const LoopbackServer::Request& request, Connection& c) {
        if (request.target == "/fits") return c.Answer(200, std::string(1000, 'x'));
        if (request.target == "/announced") return c.Answer(200, std::string(1001, 'x'));
        c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        c.Chunk(std::string(600, 'x'));
        c.Chunk(std::string(600, 'x'));
        c.WaitForClose();
      },
      options);
  EXPECT_EQ(transport_->Call(Get("/fits"))->body.size(), 1000u);
  for (const char* path : {"/announced", "/chunked"}) {
    const Answer answer = transport_->Call(Get(path));
    EXPECT_TRUE(absl::IsResourceExhausted(answer.status())) << answer.status();
  }
}

TEST_F(CurlTransportTest, LateAnswersTimeOut) {
  Start([](const LoopbackServer::Request& request, Connection& c) {
    if (request.target == "/begun") {
      c.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
    c.WaitForClose();
  });
  for (const char* path : {"/silent", "/begun"}) {
    HttpRequest request = Get(path);
    request.timeout = absl::Milliseconds(50);
    const Answer answer = transport_->Call(request);
    EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr("within 50ms"));
  }
  HttpRequest past = Get("/past");
  past.timeout = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsDeadlineExceeded(transport_->Call(past).status()));
}

// ---- cancellation and shutdown -----------------------------------------------------------------

TEST_F(CurlTransportTest, CancelAnswersCancelled) {
  std::promise<void> arrived;
  Start([&arrived](const LoopbackServer::Request& request, Connection& c) {
    if (request.target == "/quick") return c.Answer(200, "");
    arrived.set_value();
    c.WaitForClose();  // the test hangs here unless the connection is closed
  });
  HttpTransport::Id id = 0;
  std::future<Answer> answer = Send(Get("/slow"), &id);
  arrived.get_future().wait();
  transport_->Cancel(id + 1000);
  transport_->Cancel(id);
  transport_->Cancel(id);
  EXPECT_TRUE(absl::IsCancelled(answer.get().status()));
  // Before the request is sent.
  credentials_->set_mode(ChangingCredentials::Mode::kSilent);
  answer = Send(Get("/slow"), &id);
  transport_->Cancel(id);
  EXPECT_TRUE(absl::IsCancelled(answer.get().status()));
  credentials_->set_mode(ChangingCredentials::Mode::kGood);
  EXPECT_TRUE(transport_->Call(Get("/quick")).ok());
}

TEST_F(CurlTransportTest, ShutdownAndDestructionCancel) {
  Start([](const LoopbackServer::Request&, Connection& c) { c.WaitForClose(); });
  std::future<Answer> call = Send(Get("/a"));
  auto stream = std::make_shared<Collector>();
  transport_->Stream(Get("/w"), stream);
  transport_->Shutdown();
  ASSERT_EQ(call.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_TRUE(absl::IsCancelled(call.get().status()));
  EXPECT_TRUE(absl::IsCancelled(stream->AwaitDone()));
  EXPECT_TRUE(absl::IsCancelled(transport_->Call(Get("/later")).status()));
  transport_->Shutdown();

  ServerConfig config;
  config.url = server_->url();
  Connect(config);
  call = Send(Get("/b"));
  // A caller that calls again whenever it is cancelled does not prevent the end.
  auto again = std::make_shared<std::function<void()>>();
  int calls = 0;
  *again = [transport = transport_.get(), &calls, again_ptr = again.get()] {
    ++calls;
    transport->Send(Get("/c"), [again_ptr](const Answer&) { (*again_ptr)(); });
  };
  (*again)();
  transport_.reset();
  EXPECT_TRUE(absl::IsCancelled(call.get().status()));
  EXPECT_GT(calls, 1);
}

// ---- streams -----------------------------------------------------------------------------------

TEST_F(CurlTransportTest, StreamsArriveAsTheyAreSent) {
  std::promise<void> second, end;
  Start([&](const LoopbackServer::Request&, Connection& c) {
    c.Write(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json;stream=watch\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    c.Chunk("one,");
    second.get_future().wait();
    c.Chunk("two");
    end.get_future().wait();
    c.Chunk("");
  });
  auto stream = std::make_shared<Collector>();
  HttpRequest request = Get("/w");
  request.traffic = TrafficClass::kWatch;
  request.timeout = absl::InfiniteDuration();
  transport_->Stream(request, stream);
  stream->AwaitData("one,");
  second.set_value();
  stream->AwaitData("one,two");
  end.set_value();
  EXPECT_TRUE(stream->AwaitDone().ok());
  EXPECT_EQ(stream->status_, 200);
  EXPECT_EQ(stream->content_type_, "application/json;stream=watch");
}

TEST_F(CurlTransportTest, StreamsEndWithErrors) {
  Start([](const LoopbackServer::Request& request, Connection& c) {
    if (request.target == "/gone") return c.Answer(410, "expired", "Retry-After: 7\r\n");
    c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    c.Chunk("x");
    if (request.target == "/cut") return c.Close();
    c.WaitForClose();
  });
  auto gone = std::make_shared<Collector>();
  transport_->Stream(Get("/gone"), gone);
  EXPECT_TRUE(gone->AwaitDone().ok());
  EXPECT_EQ(gone->status_, 410);
  EXPECT_EQ(gone->data_, "expired");
  EXPECT_EQ(gone->retry_after_, absl::Seconds(7));

  auto cut = std::make_shared<Collector>();
  transport_->Stream(Get("/cut"), cut);
  EXPECT_TRUE(absl::IsUnavailable(cut->AwaitDone()));
  EXPECT_EQ(cut->data_, "x");

  auto cancelled = std::make_shared<Collector>();
  const auto id = transport_->Stream(Get("/held"), cancelled);
  cancelled->AwaitData("x");
  transport_->Cancel(id);
  EXPECT_TRUE(absl::IsCancelled(cancelled->AwaitDone()));

  auto late = std::make_shared<Collector>();
  HttpRequest request = Get("/late");
  request.timeout = absl::Milliseconds(50);
  transport_->Stream(request, late);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late->AwaitDone()));
}

TEST(CurlTransportCreateTest, RefusesAddresses) {
  const RealClock clock;
  for (const char* url : {"", "ftp://h", "http://user:hunter2@h", "http://[", "nonsense"}) {
    ServerConfig config;
    config.url = url;
    const auto transport =
        CurlTransport::Create(config, std::make_unique<StaticCredentials>(Credentials()), clock);
    EXPECT_TRUE(absl::IsInvalidArgument(transport.status())) << url;
    EXPECT_THAT(std::string(transport.status().message()), Not(HasSubstr(kSecret)));
  }
  ServerConfig config;
  config.url = "https://h";
  config.tls_server_name = "a:1";
  EXPECT_TRUE(absl::IsInvalidArgument(
      CurlTransport::Create(config, std::make_unique<StaticCredentials>(Credentials()), clock)
          .status()));
}

}  // namespace
}  // namespace fairlead::kube
