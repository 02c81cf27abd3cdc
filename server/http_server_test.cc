#include "server/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http_server_testing.h"

namespace fairlead::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }
  void Start(HttpServerOptions options = {}) {
    auto server = HttpServer::Start({"127.0.0.1", 0},
                                    {{"/livez", [](absl::string_view) { return Response{}; }},
                                     {"/echo",
                                      [](absl::string_view query) {
                                        Response response;
                                        response.body = std::string(query);
                                        return response;
                                      }},
                                     {"/big",
                                      [](absl::string_view) {
                                        Response response;
                                        response.body = std::string(64 << 20, 'x');
                                        return response;
                                      }},
                                     {"/sick",
                                      [](absl::string_view) {
                                        Response response;
                                        response.status = 500;
                                        response.body = "hung\n";
                                        return response;
                                      }}},
                                    options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  [[nodiscard]] int Connect() const { return testing::Connect(server_->port()); }
  // Sends the bytes and reads until the server closes.
  std::string Ask(const std::string& bytes) const {
    const int fd = Connect();
    (void)!write(fd, bytes.data(), bytes.size());
    return testing::ReadAll(fd);
  }
  std::string Get(const std::string& target, const std::string& method = "GET") const {
    return Ask(
        absl::StrCat(method, " ", target, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWithTheHandlerOfThePath) {
  Start();
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Get("/echo?a=b&c"), HasSubstr("\r\n\r\na=b&c"));
  EXPECT_THAT(Get("/sick"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(Get("/nothing"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/livez/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/livez", "POST"), StartsWith("HTTP/1.1 405"));
  const std::string head = Get("/sick", "HEAD");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 5"));
  EXPECT_THAT(head, Not(HasSubstr("hung")));
}

TEST_F(HttpServerTest, AHandlerOfRequestsIsToldHeaders) {
  HttpServerOptions options;
  options.requests["/who"] = [](const Request& request) {
    Response response;
    response.body = absl::StrCat(request.query, "|", request.host, "|", request.authorization);
    response.headers = {{"X-Content-Type-Options", "nosniff"}};
    return response;
  };
  Start(options);
  const std::string answer =
      Ask("GET /who?q HTTP/1.1\r\nHost: h:1\r\nauthorization: Bearer t\r\n"
          "Connection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nq|h:1|Bearer t"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, HasSubstr("Cache-Control: no-store\r\n"));
  EXPECT_THAT(Ask("GET /who HTTP/1.0\r\n\r\n"), HasSubstr("\r\n\r\n||"));
  EXPECT_THAT(Get("/who", "PUT"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Get("/who", "HEAD"), HasSubstr("Content-Length: 3\r\n"));
}

TEST_F(HttpServerTest, WhatTheClientHasIsNotSentAgain) {
  HttpServerOptions options;
  options.requests["/page"] = [](const Request& request) {
    Response response;
    if (!request.query.empty()) response.status = 503;
    response.body = "content";
    response.etag = "\"v1\"";
    return response;
  };
  Start(options);
  const auto ask = [&](const std::string& etag, const std::string& target = "/page") {
    return Ask(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: x\r\nIf-None-Match: ", etag,
                            "\r\nConnection: close\r\n\r\n"));
  };
  const std::string first = ask("\"v0\"");
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(first, HasSubstr("ETag: \"v1\"\r\n"));
  EXPECT_THAT(first, HasSubstr("Cache-Control: no-cache\r\n"));
  for (const char* same : {"\"v1\"", "W/\"v1\"", "\"v0\", \"v1\"", "*"}) {
    const std::string again = ask(same);
    EXPECT_THAT(again, StartsWith("HTTP/1.1 304")) << same;
    EXPECT_THAT(again, Not(HasSubstr("content"))) << same;
    EXPECT_THAT(again, HasSubstr("ETag: \"v1\"\r\n")) << same;
  }
  EXPECT_THAT(ask("\"v1\"", "/page?fails"), StartsWith("HTTP/1.1 503")) << "an error is told";
}

// The answer 304 has no body, so the next answer on the connection follows at once.
TEST_F(HttpServerTest, AConnectionGoesOnAfter304) {
  HttpServerOptions options;
  options.requests["/page"] = [](const Request&) {
    Response response;
    response.body = "content";
    response.etag = "\"v1\"";
    return response;
  };
  Start(options);
  const std::string all =
      Ask("GET /page HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"v1\"\r\n\r\n"
          "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(all, HasSubstr("HTTP/1.1 304"));
  EXPECT_THAT(all, HasSubstr("\r\n\r\nHTTP/1.1 200 OK"));
}

TEST(BindAddressTest, LoopbackIsTold) {
  for (const char* near : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(*ParseBindAddress(near))) << near;
  }
  for (const char* far : {":1", "0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[fe80::1]:1"}) {
    EXPECT_FALSE(IsLoopback(*ParseBindAddress(far))) << far;
  }
}

TEST_F(HttpServerTest, AConnectionServesManyRequests) {
  Start();
  const std::string one = "GET /echo?n HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string all =
      Ask(absl::StrCat(one, one, one, "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n"));
  size_t answers = 0;
  for (size_t at = all.find("HTTP/1.1 200"); at != std::string::npos;
       at = all.find("HTTP/1.1 200", at + 1)) {
    ++answers;
  }
  EXPECT_EQ(answers, 4u);
}

TEST_F(HttpServerTest, RefusesWhatIsNoHttpAndWhatIsTooLarge) {
  Start();
  EXPECT_THAT(Ask("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask(absl::StrCat("GET /livez HTTP/1.1\r\nA: ", std::string(20'000, 'a'), "\r\n\r\n")),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("POST /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200")) << "and goes on";
}

// Idle connections keep no probe out: the one that has been idle for longest makes place.
TEST_F(HttpServerTest, AConnectionBeyondTheLimitTakesThePlaceOfTheIdlest) {
  HttpServerOptions options;
  options.connections_max = 2;
  Start(options);
  // A connection counts at the latest after its first answer, which is read whole.
  const std::string one = "GET /livez HTTP/1.1\r\n\r\n";
  const auto ask = [&](int fd) {
    (void)!write(fd, one.data(), one.size());
    std::string answer;
    char byte;
    while (answer.find("\r\n\r\n") == std::string::npos) {
      if (read(fd, &byte, 1) != 1) return false;
      answer += byte;
    }
    return true;
  };
  const int first = Connect();
  EXPECT_TRUE(ask(first));
  const int second = Connect();
  EXPECT_TRUE(ask(second));
  EXPECT_TRUE(ask(first));
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(testing::ReadAll(second), "") << "closed after its answer";
  EXPECT_TRUE(ask(first));
  close(first);
  // Nor do those that never send a request.
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(Connect());
    EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200"));
  }
  for (const int fd : silent) close(fd);
}

// Metrics wait for the thread that decides.
TEST_F(HttpServerTest, ASlowHandlerDelaysNoProbe) {
  std::promise<void> asked, go;
  HttpServerOptions options;
  options.slow_paths = {"/metrics"};
  auto server = HttpServer::Start({"127.0.0.1", 0},
                                  {{"/livez", [](absl::string_view) { return Response{}; }},
                                   {"/metrics",
                                    [&](absl::string_view query) {
                                      asked.set_value();
                                      go.get_future().wait();
                                      Response response;
                                      response.body = std::string(query);
                                      return response;
                                    }}},
                                  options);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  const int fd = Connect();
  const std::string scrape = "GET /metrics?all HTTP/1.1\r\nConnection: close\r\n\r\n";
  (void)!write(fd, scrape.data(), scrape.size());
  asked.get_future().wait();
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200"));
  go.set_value();
  EXPECT_THAT(testing::ReadAll(fd), HasSubstr("\r\n\r\nall"));
}

TEST_F(HttpServerTest, EndsWhileASlowHandlerWaits) {
  std::promise<void> asked, go;
  std::once_flag once;
  const std::shared_future<void> gone = go.get_future().share();
  HttpServerOptions options;
  options.slow_paths = {"/metrics"};
  auto server = HttpServer::Start({"127.0.0.1", 0},
                                  {{"/metrics",
                                    [&](absl::string_view) {
                                      std::call_once(once, [&] { asked.set_value(); });
                                      gone.wait();
                                      return Response{};
                                    }}},
                                  options);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  std::vector<int> fds;
  for (int i = 0; i < 3; ++i) {  // two wait behind the first
    fds.push_back(Connect());
    const std::string scrape = "GET /metrics HTTP/1.1\r\n\r\n";
    (void)!write(fds.back(), scrape.data(), scrape.size());
    if (i == 0) asked.get_future().wait();
  }
  std::thread end([&] { server_.reset(); });
  go.set_value();
  end.join();
  for (const int fd : fds) close(fd);
}

// An IPv6 cluster asks on an IPv6 address, an IPv4 one on an IPv4 address.
TEST_F(HttpServerTest, WithoutAHostItListensOnBothFamilies) {
  auto server =
      HttpServer::Start({"", 0}, {{"/livez", [](absl::string_view) { return Response{}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200"));
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(server_->port()));
  address.sin6_addr = in6addr_loopback;
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) GTEST_SKIP() << "no IPv6 here";
  const int connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (connected != 0 && errno == EADDRNOTAVAIL) {
    close(fd);
    GTEST_SKIP() << "no IPv6 loopback here";
  }
  ASSERT_EQ(connected, 0) << std::strerror(errno);
  const std::string one = "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n";
  (void)!write(fd, one.data(), one.size());
  EXPECT_THAT(testing::ReadAll(fd), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, EndsConnectionsThatAreTooSlow) {
  HttpServerOptions options;
  options.read_timeout = absl::Milliseconds(50);
  options.write_timeout = absl::Milliseconds(50);
  Start(options);
  EXPECT_EQ(Ask("GET /livez HT"), "") << "an unfinished request";
  const int fd = Connect();
  const std::string big = "GET /big HTTP/1.1\r\n\r\n";
  (void)!write(fd, big.data(), big.size());
  // The client reads nothing until the server has given up: the rest of the answer never comes.
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200")) << "meanwhile others are served";
  while (send(fd, "\r\n", 2, MSG_NOSIGNAL) > 0) {
  }
  close(fd);
}

TEST_F(HttpServerTest, SaysWhenTheAddressIsTaken) {
  Start();
  const auto second = HttpServer::Start({"127.0.0.1", server_->port()}, {});
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(server_->port())));
}

TEST(BindAddressTest, Parses) {
  EXPECT_EQ(ParseBindAddress(":8080")->port, 8080);
  EXPECT_EQ(ParseBindAddress(":8080")->host, "");
  EXPECT_EQ(ParseBindAddress("127.0.0.1:0")->host, "127.0.0.1");
  EXPECT_EQ(ParseBindAddress("[::1]:1")->host, "::1");
  for (const char* bad : {"", "8080", "x", ":x", ":70000", ":-1", "::1:80", "[::1:80", "name:80"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBindAddress(bad).status())) << bad;
  }
}

HttpServerOptions WithPost() {
  HttpServerOptions options;
  options.body_bytes_max = 1 << 20;
  options.posts["/filter"] = [](absl::string_view body) {
    Response response;
    response.content_type = "application/json";
    response.body = absl::StrCat(body.size(), ":", body.substr(0, 5));
    response.close = body == "close";
    return response;
  };
  return options;
}

std::string Post(const std::string& path, const std::string& body) {
  return absl::StrCat("POST ", path,
                      " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ", body.size(),
                      "\r\n\r\n", body);
}

TEST_F(HttpServerTest, AHandlerMayTakeABody) {
  Start(WithPost());
  EXPECT_THAT(Ask(Post("/filter", "hello world")),
              ::testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\n\r\n11:hello")));
  EXPECT_THAT(Ask(Post("/filter", "")), HasSubstr("\r\n\r\n0:"));
  EXPECT_THAT(Ask(Post("/filter", std::string(1 << 20, 'x'))), HasSubstr("1048576:xxxxx"));
  EXPECT_THAT(Ask("POST /filter HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n2\r\no!\r\n0\r\n\r\n"),
              HasSubstr("6:hello"));
}

TEST_F(HttpServerTest, AnAnswerMayEndItsConnection) {
  Start(WithPost());
  const std::string ask = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nclose";
  const std::string answer = Ask(ask + ask);
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_EQ(answer.rfind("HTTP/1.1"), 0u) << "the second one goes through another connection";
}

TEST_F(HttpServerTest, ABodyThatIsTooLargeOrNotExpectedIsRefused) {
  Start(WithPost());
  EXPECT_THAT(Ask(Post("/filter", std::string((1 << 20) + 1, 'x'))), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask(Post("/livez", "x")), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask(Post("/livez", "")), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Ask("GET /filter HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
}

}  // namespace
}  // namespace fairlead::server
