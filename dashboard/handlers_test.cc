#include "dashboard/handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dashboard/assets.h"

namespace fairlead::dashboard {
namespace {

using server::Request;
using server::Response;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class HandlersTest : public ::testing::Test {
 protected:
  Response Ask(const std::string& path, const Request& request = {"", "localhost", ""}) {
    const auto handlers = Handlers(options_);
    const auto handler = handlers.find(path);
    EXPECT_NE(handler, handlers.end()) << path;
    return handler == handlers.end() ? Response() : handler->second(request);
  }

  FakeClock clock_{absl::UnixEpoch()};
  absl::Status failure_, review_;
  CachedText data_{[this]() -> absl::StatusOr<SourceText> {
                     if (!failure_.ok()) return failure_;
                     return SourceText{"{\"data\":1}", absl::ZeroDuration()};
                   },
                   absl::Seconds(1), &clock_};
  Access access_{[this](const std::string&) { return review_; }, &clock_};
  HandlerOptions options_{.snapshot = &data_, .timeline = &data_};
};

TEST_F(HandlersTest, EveryAnswerIsSecured) {
  options_.access = &access_;
  for (const auto& [path, handler] : Handlers(options_)) {
    const Response response = handler({"", "localhost", ""});
    EXPECT_THAT(response.headers, Contains(Pair("X-Content-Type-Options", "nosniff"))) << path;
    EXPECT_THAT(response.headers,
                Contains(Pair("Content-Security-Policy", HasSubstr("default-src 'none'"))))
        << path;
    EXPECT_THAT(response.headers,
                Not(Contains(Pair("Content-Security-Policy", HasSubstr("unsafe")))));
    EXPECT_THAT(response.headers, Not(Contains(Pair("Access-Control-Allow-Origin", ::testing::_))));
  }
}

TEST_F(HandlersTest, ThePageIsServedWithItsTypesAndTags) {
  const Response page = Ask("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(page.body.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(page.etag.size(), 66u) << page.etag;
  EXPECT_EQ(Ask("/app.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Ask("/style.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(Ask("/icon.svg").content_type, "image/svg+xml");
  EXPECT_NE(Ask("/app.js").etag, page.etag);
}

// Nothing that the policy forbids, and nothing from elsewhere.
TEST_F(HandlersTest, ThePageHasNoInlineScriptAndNoForeignAddress) {
  for (size_t i = 0; i < kAssetCount; ++i) {
    const std::string content(kAssets[i].content);
    EXPECT_THAT(content, Not(HasSubstr("innerHTML"))) << kAssets[i].name;
    EXPECT_THAT(content, Not(HasSubstr("insertAdjacentHTML"))) << kAssets[i].name;
    EXPECT_THAT(content, Not(HasSubstr(" style=\""))) << kAssets[i].name;
    EXPECT_THAT(content, Not(HasSubstr(" onclick="))) << kAssets[i].name;
    EXPECT_THAT(content, Not(HasSubstr("https://"))) << kAssets[i].name;
    EXPECT_THAT(content, Not(HasSubstr("@import"))) << kAssets[i].name;
  }
}

TEST_F(HandlersTest, WithAccessDataNeedsAToken) {
  options_.access = &access_;
  const Response none = Ask("/data/snapshot");
  EXPECT_EQ(none.status, 401);
  EXPECT_THAT(none.headers, Contains(Pair("WWW-Authenticate", HasSubstr("Bearer"))));
  EXPECT_THAT(none.body, Not(HasSubstr("data")));
  EXPECT_EQ(Ask("/data/snapshot", {"", "x", "Bearer good"}).body, "{\"data\":1}");
  EXPECT_EQ(Ask("/data/timeline").status, 401);
  EXPECT_EQ(Ask("/").status, 200) << "the page itself holds nothing";
}

TEST_F(HandlersTest, RefusalsHaveTheirStatusAndOneSentence) {
  options_.access = &access_;
  const struct {
    absl::Status review;
    int status;
  } cases[] = {{absl::UnauthenticatedError("expired"), 401},
               {absl::PermissionDeniedError("may not list queues"), 403},
               {absl::UnavailableError("the API server is away"), 503},
               {absl::FailedPreconditionError("auth-delegator"), 503}};
  for (const auto& one : cases) {
    review_ = one.review;
    const Response response =
        Ask("/data/snapshot", {"", "x", one.review.ToString().insert(0, "Bearer ")});
    EXPECT_EQ(response.status, one.status);
    EXPECT_EQ(response.body, std::string(one.review.message()) + "\n");
  }
}

TEST_F(HandlersTest, ASilentSourceIs503WhateverItsCode) {
  failure_ = absl::PermissionDeniedError("of another matter");
  const Response response = Ask("/data/snapshot");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "of another matter\n");
}

TEST_F(HandlersTest, OnALoopbackAddressOnlyItsOwnNamesAreServed) {
  options_.local_hosts_only = true;
  for (const char* host :
       {"localhost", "LOCALHOST:8082", "127.0.0.1:1", "127.0.0.1", "[::1]:8082", "[::1]"}) {
    EXPECT_EQ(Ask("/data/snapshot", {"", host, ""}).status, 200) << host;
  }
  for (const char* host : {"", "evil.example", "localhost.evil.example:80",
                           "127.0.0.1.evil.example", "10.0.0.1:80", "[fe80::1]", ":80", "[", "]"}) {
    EXPECT_EQ(Ask("/data/snapshot", {"", host, ""}).status, 421) << host;
  }
  options_.local_hosts_only = false;
  EXPECT_EQ(Ask("/data/snapshot", {"", "proxy.example", ""}).status, 200);
}

}  // namespace
}  // namespace fairlead::dashboard
