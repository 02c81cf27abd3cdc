// Profiles of the running process over HTTP, in the formats of gperftools, which pprof reads:
//
//   GET /debug/pprof/profile?seconds=10   where CPU time goes in that time; 1 to 60 seconds
//   GET /debug/pprof/heap                 what is allocated, by where that was, as sampled
//
// On loopback addresses alone: who reaches them may look into the process anyway, and a cluster's
// users are let there by their right to forward ports. One profile at a time.
//
// Thread-safety: as server::HttpServer; the profiler is called by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http_server.h"

namespace fairlead::cmd {

// Of the program; empty functions: it was built without one.
struct Profiler {
  std::function<absl::StatusOr<std::string>(absl::Duration)> cpu = nullptr;  // takes that long
  // FailedPrecondition if nothing is sampled; the message says how to change that.
  std::function<absl::StatusOr<std::string>()> heap = nullptr;
};

// InvalidArgument names the flag --profile-bind-address; Unavailable if the address cannot be
// bound.
absl::StatusOr<std::unique_ptr<server::HttpServer>> ServeProfiles(const std::string& address,
                                                                  const Profiler& profiler);

}  // namespace fairlead::cmd
