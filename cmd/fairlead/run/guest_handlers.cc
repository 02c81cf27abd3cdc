#include "cmd/fairlead/run/guest_handlers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "extenders/served.h"

namespace fairlead::cmd {
namespace {

using core::GuestAnswer;

server::Response JsonResponse(int status, std::string body) {
  server::Response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

server::Response BadQuestion(const absl::Status& why) {
  return JsonResponse(400, extenders::FilterFailure(why.message()));
}

// Another replica may lead: the scheduler's next question shall go through another connection.
server::Response Unavailable(int status, const absl::Status& why) {
  server::Response response = JsonResponse(status, extenders::FilterFailure(why.message()));
  response.close = true;
  return response;
}

extenders::Admission AdmissionOf(const GuestAnswer& answer) {
  switch (answer.kind) {
    case GuestAnswer::Kind::kNotOurs:
      return {.everywhere = true, .node = "", .reason = ""};
    case GuestAnswer::Kind::kHeld:  // never told to an extender, which reserves nothing
    case GuestAnswer::Kind::kGranted:
      return {.everywhere = false,
              .node = answer.node,
              .reason = absl::StrCat("Fairlead has placed the pod on node ", answer.node)};
    case GuestAnswer::Kind::kWaits:
      return {.everywhere = false, .node = "", .reason = answer.reason};
    case GuestAnswer::Kind::kUndecided:
      break;
  }
  return {.everywhere = false, .node = "", .reason = "Fairlead has not decided about the pod yet"};
}

server::Response Filter(Application& application, absl::string_view body) {
  const auto question = extenders::ReadFilterQuestion(body);
  if (!question.ok()) return BadQuestion(question.status());
  const auto answer = application.AskGuest(question->pod, "", kDecisionWait);
  if (!answer.ok()) return Unavailable(200, answer.status());
  return JsonResponse(200, extenders::FilterAnswer(*question, AdmissionOf(*answer)));
}

server::Response Preempt(Application& application, absl::string_view body) {
  const auto question = extenders::ReadPreemptionQuestion(body);
  if (!question.ok()) return BadQuestion(question.status());
  const auto answer = application.AskGuest(question->pod, "", absl::ZeroDuration());
  // A status other than 200 is an error to the scheduler, which evicts nothing then.
  if (!answer.ok()) return Unavailable(503, answer.status());
  const bool keep = answer->kind == GuestAnswer::Kind::kNotOurs;
  return JsonResponse(200, extenders::PreemptionAnswer(*question, keep));
}

}  // namespace

std::map<std::string, server::BodyHandler> GuestHandlers(Application& application) {
  return {{"/extender/filter",
           [&application](absl::string_view body) { return Filter(application, body); }},
          {"/extender/preempt",
           [&application](absl::string_view body) { return Preempt(application, body); }}};
}

absl::StatusOr<std::unique_ptr<guests::Service>> ServeGuests(const std::string& address,
                                                             Application& application) {
  if (address.empty() || address == "0") return std::unique_ptr<guests::Service>();
  FAIRLEAD_ASSIGN_OR_RETURN(const server::BindAddress at, server::ParseBindAddress(address));
  return guests::Service::Start(
      at.host.empty() ? absl::StrCat("[::]:", at.port) : address,
      [&application](const model::Pod& pod, const std::string& reserved_on, absl::Duration wait) {
        return application.AskGuest(pod, reserved_on, wait);
      },
      [&application] { return application.Grants(); });
}

}  // namespace fairlead::cmd
