// How to reach a scheduler extender: its address, TLS and connections.
//
// Source: makeTransport in kube-scheduler's extender.go and TLSConfigFor in client-go, release
// 1.36. As there, enableHTTPS does not change the scheme of urlPrefix: without an authority it
// turns the verification of the server's certificate off.
//
// Thread-safety: pure functions; NewTransport starts a thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "kube/credentials/client_config.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/http.h"
#include "scheduler/model/extender_config.h"

namespace fairlead::extenders {

// The address of the origin, the authorities, and our certificate. InvalidArgument names the field:
// urlPrefix is no http(s) URL, or has a user, a query or a fragment; a certificate without a key or
// the reverse; an authority together with `insecure`.
absl::StatusOr<kube::ClientConfig> ConnectionTo(const model::ExtenderConfig& config);

// The path of url_prefix, without a slash at the end: "/scheduler", or empty. Empty too if the
// prefix is no URL.
std::string PathOf(absl::string_view url_prefix);

// One connection for each call that Client makes at a time, and answers of 64 MiB at most.
kube::CurlTransportOptions TransportOptions();

// The transport for Client. Errors as above, or a file with an authority that cannot be read; they
// begin with the extender's urlPrefix. The clock must outlive the transport.
absl::StatusOr<std::unique_ptr<kube::HttpTransport>> NewTransport(
    const model::ExtenderConfig& config, const Clock& clock);

}  // namespace fairlead::extenders
