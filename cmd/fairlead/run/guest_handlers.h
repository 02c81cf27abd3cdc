// What schedulers ask whose pods Fairlead decides about (docs/guests.md): over the protocol of
// extenders, POST /extender/filter and POST /extender/preempt, and over gRPC.
//
// A pod that has just come is decided about within milliseconds, so an answer waits for that, at
// most kDecisionWait; a scheduler that is told to wait would come back a second later.
//
// Thread-safety: the handlers may run on any thread but the owner's. They block.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"
#include "guests/service.h"
#include "server/http_server.h"

namespace fairlead::cmd {

inline constexpr absl::Duration kDecisionWait = absl::Seconds(1);

// `application` outlives them.
std::map<std::string, server::BodyHandler> GuestHandlers(Application& application);

// The service for guests over gRPC; null without an address. `application` outlives it, and is to
// be told Publish (Application::Ports::tell_grants).
absl::StatusOr<std::unique_ptr<guests::Service>> ServeGuests(const std::string& address,
                                                             Application& application);

}  // namespace fairlead::cmd
