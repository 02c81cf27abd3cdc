#include "extenders/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"

namespace fairlead::extenders {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

model::ExtenderConfig At(const std::string& url_prefix) {
  model::ExtenderConfig config;
  config.url_prefix = url_prefix;
  return config;
}
std::string OriginOf(const std::string& url_prefix) {
  const auto client = ConnectionTo(At(url_prefix));
  return client.ok() ? client->server.url : client.status().ToString();
}

TEST(ConnectionTest, AnAddressIsAnOriginAndAPath) {
  EXPECT_EQ(OriginOf("http://x:8080/a/b"), "http://x:8080");
  EXPECT_EQ(PathOf("http://x:8080/a/b"), "/a/b");
  EXPECT_EQ(OriginOf("HTTPS://[::1]:1//"), "https://[::1]:1");
  EXPECT_EQ(PathOf("https://[::1]:1//"), "");
  EXPECT_EQ(PathOf("http://x"), "");
  EXPECT_EQ(PathOf("http://x/a/"), "/a");
}

TEST(ConnectionTest, WhatIsNoAddressIsInvalid) {
  for (const char* url : {"", "x:80", "ftp://x", "http://", "http:///a", "http://x/a b",
                          "http://x?q", "http://x/#f", "http://\xc3\xa9/"}) {
    const auto client = ConnectionTo(At(url));
    EXPECT_TRUE(absl::IsInvalidArgument(client.status())) << url;
    EXPECT_THAT(client.status().message(), HasSubstr("urlPrefix")) << url;
    EXPECT_EQ(PathOf(url), "") << url;
  }
}

TEST(ConnectionTest, APasswordIsNotTold) {
  const auto client = ConnectionTo(At("http://me:secret word@x/"));
  EXPECT_TRUE(absl::IsInvalidArgument(client.status()));
  EXPECT_THAT(client.status().message(), Not(HasSubstr("secret")));
}

TEST(ConnectionTest, TheCertificateIsVerifiedUnlessUpstreamDoesNot) {
  const auto insecure = [](bool enable_https, bool insecure_flag, const char* ca_pem,
                           const char* ca_file) {
    model::ExtenderConfig config = At("https://x");
    config.enable_https = enable_https;
    config.tls.insecure = insecure_flag;
    config.tls.ca_pem = ca_pem;
    config.tls.ca_file = ca_file;
    return ConnectionTo(config).value().server.insecure_skip_tls_verify;
  };
  EXPECT_FALSE(insecure(false, false, "", ""));
  EXPECT_TRUE(insecure(true, false, "", ""));
  EXPECT_FALSE(insecure(true, false, "pem", ""));
  EXPECT_FALSE(insecure(true, false, "", "/file"));
  EXPECT_TRUE(insecure(false, true, "", ""));
}

TEST(ConnectionTest, TlsFieldsArePassedOnOverHttpsAlone) {
  model::ExtenderConfig config = At("https://x");
  config.tls.server_name = "name";
  config.tls.ca_pem = "ca";
  config.tls.certificate_file = "/cert";
  config.tls.key_pem = "key";
  auto client = ConnectionTo(config).value();
  EXPECT_EQ(client.server.tls_server_name, "name");
  EXPECT_EQ(client.server.ca_pem, "ca");
  EXPECT_EQ(client.user.certificate_file, "/cert");
  EXPECT_EQ(client.user.key_pem, "key");
  config.url_prefix = "http://x";
  client = ConnectionTo(config).value();
  EXPECT_EQ(client.server.ca_pem, "");
  EXPECT_EQ(client.user.key_pem, "");
}

TEST(ConnectionTest, ContradictionsAreInvalid) {
  model::ExtenderConfig config = At("https://x");
  config.tls.certificate_pem = "cert";
  EXPECT_THAT(ConnectionTo(config).status().message(), HasSubstr("keyFile"));
  config.tls = {};
  config.tls.key_file = "/key";
  EXPECT_THAT(ConnectionTo(config).status().message(), HasSubstr("certFile"));
  config.tls = {};
  config.tls.insecure = true;
  config.tls.ca_pem = "ca";
  EXPECT_THAT(ConnectionTo(config).status().message(), HasSubstr("insecure"));
}

TEST(ConnectionTest, ATransportThatCannotBeMadeNamesTheExtender) {
  const RealClock clock;
  EXPECT_TRUE(absl::IsInvalidArgument(NewTransport(At("x"), clock).status()));
  model::ExtenderConfig config = At("https://x/s");
  config.tls.ca_file = "/does/not/exist";
  const auto transport = NewTransport(config, clock);
  EXPECT_FALSE(transport.ok());
  EXPECT_THAT(transport.status().message(), HasSubstr("extender https://x/s: "));
  EXPECT_THAT(transport.status().message(), HasSubstr("/does/not/exist"));
}

}  // namespace
}  // namespace fairlead::extenders
