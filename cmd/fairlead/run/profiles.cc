#include "cmd/fairlead/run/profiles.h"

#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace fairlead::cmd {
namespace {

constexpr char kFlag[] = "--profile-bind-address";
constexpr int kUsualSeconds = 10, kMostSeconds = 60;

server::Response Answer(absl::StatusOr<std::string> profile) {
  server::Response response;
  if (profile.ok()) {
    response.content_type = "application/octet-stream";
    response.body = *std::move(profile);
    return response;
  }
  response.status = absl::IsInvalidArgument(profile.status()) ? 400 : 503;
  response.body = absl::StrCat(profile.status().message(), "\n");
  return response;
}

absl::StatusOr<absl::Duration> SecondsOf(absl::string_view query) {
  if (query.empty()) return absl::Seconds(kUsualSeconds);
  int seconds = 0;
  if (absl::ConsumePrefix(&query, "seconds=") && absl::SimpleAtoi(query, &seconds) &&
      seconds >= 1 && seconds <= kMostSeconds) {
    return absl::Seconds(seconds);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the one parameter is seconds, a whole number from 1 to ", kMostSeconds));
}

absl::StatusOr<std::string> CpuProfile(const Profiler& profiler, absl::string_view query) {
  FAIRLEAD_ASSIGN_OR_RETURN(const absl::Duration duration, SecondsOf(query));
  return profiler.cpu(duration);
}

}  // namespace

absl::StatusOr<std::unique_ptr<server::HttpServer>> ServeProfiles(const std::string& address,
                                                                  const Profiler& profiler) {
  if (profiler.cpu == nullptr || profiler.heap == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFlag, ": this program was built without a profiler"));
  }
  const absl::StatusOr<server::BindAddress> parsed = server::ParseBindAddress(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kFlag, ": ", parsed.status().message()));
  }
  if (!server::IsLoopback(*parsed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFlag, ": ", address,
                     " is not a loopback address, as in 127.0.0.1:6060; `kubectl "
                     "port-forward` reaches it from outside"));
  }
  const std::map<std::string, server::Handler> handlers = {
      {"/debug/pprof/profile",
       [profiler](absl::string_view query) { return Answer(CpuProfile(profiler, query)); }},
      {"/debug/pprof/heap", [profiler](absl::string_view) { return Answer(profiler.heap()); }}};
  server::HttpServerOptions options;
  // One thread for both, so one profile at a time.
  options.slow_paths = {"/debug/pprof/profile", "/debug/pprof/heap"};
  return server::HttpServer::Start(*parsed, handlers, std::move(options));
}

}  // namespace fairlead::cmd
