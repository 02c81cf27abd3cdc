#include "extenders/connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "extenders/endpoint.h"
#include "extenders/wire.h"
#include "kube/codec/field_problems.h"
#include "kube/credentials/credentials.h"

namespace fairlead::extenders {
namespace {

struct Address {
  bool https = false;
  std::string origin;  // "http://host:port"
  std::string path;    // without a slash at the end
};

absl::StatusOr<Address> Parse(absl::string_view url) {
  const auto error = [url](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("urlPrefix ", kube::Quoted(url), " ", what));
  };
  // Without the value: it may have a password.
  if (url.find('@') != absl::string_view::npos) {
    return absl::InvalidArgumentError("urlPrefix must not have a user");
  }
  Address address;
  address.https = absl::StartsWithIgnoreCase(url, "https://");
  if (!address.https && !absl::StartsWithIgnoreCase(url, "http://")) {
    return error("is neither http:// nor https://");
  }
  const bool printable = std::all_of(url.begin(), url.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!printable) return error("holds a space or a character that has to be escaped");
  if (url.find_first_of("?#") != absl::string_view::npos) {
    return error("has a query or a fragment");
  }
  absl::string_view rest = url.substr(url.find("//") + 2);
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view authority = rest.substr(0, slash);
  rest.remove_prefix(slash);
  if (authority.empty()) return error("names no host");
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  address.origin = absl::StrCat(address.https ? "https://" : "http://", authority);
  address.path = std::string(rest);
  return address;
}

absl::Status CheckTls(const model::ExtenderConfig::Tls& tls, bool has_ca) {
  const bool has_certificate = !tls.certificate_pem.empty() || !tls.certificate_file.empty();
  const bool has_key = !tls.key_pem.empty() || !tls.key_file.empty();
  if (has_certificate != has_key) {
    return absl::InvalidArgumentError(has_certificate
                                          ? "tlsConfig: a certificate needs keyFile or keyData"
                                          : "tlsConfig: a key needs certFile or certData");
  }
  if (tls.insecure && has_ca) {
    return absl::InvalidArgumentError("tlsConfig: insecure excludes caFile and caData");
  }
  return absl::OkStatus();
}

}  // namespace

std::string PathOf(absl::string_view url_prefix) {
  absl::StatusOr<Address> address = Parse(url_prefix);
  return address.ok() ? std::move(address->path) : "";
}

absl::StatusOr<kube::ClientConfig> ConnectionTo(const model::ExtenderConfig& config) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Address address, Parse(config.url_prefix));
  const model::ExtenderConfig::Tls& tls = config.tls;
  const bool has_ca = !tls.ca_pem.empty() || !tls.ca_file.empty();
  FAIRLEAD_RETURN_IF_ERROR(CheckTls(tls, has_ca));
  kube::ClientConfig client;
  client.origin = absl::StrCat("extender ", config.url_prefix);
  client.server.url = address.origin;
  if (!address.https) return client;
  client.server.ca_pem = tls.ca_pem;
  client.server.ca_file = tls.ca_file;
  client.server.tls_server_name = tls.server_name;
  client.server.insecure_skip_tls_verify = tls.insecure || (config.enable_https && !has_ca);
  client.user.certificate_pem = tls.certificate_pem;
  client.user.certificate_file = tls.certificate_file;
  client.user.key_pem = tls.key_pem;
  client.user.key_file = tls.key_file;
  return client;
}

kube::CurlTransportOptions TransportOptions() {
  kube::CurlTransportOptions options;
  // Over HTTP/1.1 each call in flight needs a connection; no call waits for another's.
  options.read_connections_max = kCallsMax;
  options.write_connections_max = kBindingsMax;
  options.max_body_bytes = kAnswerBytesMax;
  return options;
}

absl::StatusOr<std::unique_ptr<kube::HttpTransport>> NewTransport(
    const model::ExtenderConfig& config, const Clock& clock) {
  const auto describe = [&config](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("extender ", config.url_prefix, ": ", status.message()));
  };
  const absl::StatusOr<kube::ClientConfig> client = ConnectionTo(config);
  // Its messages name urlPrefix, unless that has a password.
  if (!client.ok()) return client.status();
  absl::StatusOr<std::unique_ptr<kube::CurlTransport>> transport = kube::CurlTransport::Create(
      client->server, kube::NewCredentialSource(*client, clock), clock, TransportOptions());
  if (!transport.ok()) return describe(transport.status());
  return *std::move(transport);
}

}  // namespace fairlead::extenders
