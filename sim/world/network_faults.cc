#include "sim/world/network_faults.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_error.h"
#include "sim/world/api_request.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kPerMille = 1000;

// Proxies and flow control answer in plain text.
kube::HttpResponse PlainText(int status, const char* text) {
  kube::HttpResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = text;
  return response;
}

std::string VerbOf(const kube::HttpRequest& request, const ApiRequest& target) {
  if (request.method == "GET") {
    return target.QueryIsTrue("watch") ? "watch" : target.name.empty() ? "list" : "get";
  }
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  return request.method == "PATCH" ? "patch" : "delete";
}

ApiError Forbidden(const kube::HttpRequest& request) {
  const std::optional<ApiRequest> target = ParseRequest(request);
  if (!target.has_value()) return GenericError(403, "forbidden: unknown resource");
  const ResourceRow& row = *target->row;
  const std::string name = target->name.empty() ? "" : absl::StrCat(" \"", target->name, "\"");
  const std::string resource =
      absl::StrCat(row.plural, target->subresource.empty() ? "" : "/", target->subresource);
  ApiError error = GenericError(
      403,
      absl::StrCat(QualifiedResource(row), name, " is forbidden: User \"fairlead\" cannot ",
                   VerbOf(request, *target), " resource \"", resource, "\" in API group \"",
                   GroupOf(row), "\" ",
                   target->ns.empty() ? std::string("at the cluster scope")
                                      : absl::StrCat("in the namespace \"", target->ns, "\"")));
  error.details = {{"kind", std::string(row.plural)}};
  return error;
}

}  // namespace

uint64_t Draws::Next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

absl::Duration Draws::Between(absl::Duration low, absl::Duration high) {
  const int64_t span = absl::ToInt64Nanoseconds(high - low);
  const uint64_t draw = Next();
  if (span <= 0) return low;
  return low + absl::Nanoseconds(static_cast<int64_t>(draw % static_cast<uint64_t>(span + 1)));
}

Fate DrawFate(const NetworkFaults& faults, bool is_write, Draws& draws) {
  auto at = static_cast<int64_t>(draws.Below(kPerMille));
  const bool coin = draws.Coin();
  const struct {
    int chance;
    Fate fate;
  } rows[] = {{faults.lose_request, Fate::kLostRequest},
              {faults.lose_answer, Fate::kLostAnswer},
              {faults.throttle, Fate::kThrottled},
              {faults.server_error, Fate::kServerError},
              {faults.gateway_timeout, coin ? Fate::kTimeoutServed : Fate::kTimeoutUnserved},
              {is_write ? faults.conflict : 0, Fate::kFalseConflict}};
  for (const auto& row : rows) {
    if (at < row.chance) return row.fate;
    at -= row.chance;
  }
  return Fate::kServed;
}

kube::HttpResponse FaultResponse(Fate fate, bool coin) {
  switch (fate) {
    case Fate::kThrottled: {
      // Priority and fairness answers in plain text.
      kube::HttpResponse response = PlainText(429, "Too many requests, please try again later.\n");
      response.retry_after = absl::Seconds(1);
      return response;
    }
    case Fate::kServerError:
      if (coin) return PlainText(503, "upstream connect error or disconnect/reset before headers");
      return ErrorResponse(GenericError(500, ""), false);
    case Fate::kTimeoutServed:
    case Fate::kTimeoutUnserved:
      return ErrorResponse(GenericError(504, ""), false);
    case Fate::kFalseConflict: {
      // The words of a ResourceQuota that changed meanwhile. No object of the request has.
      return ErrorResponse(
          ConflictError("resourcequotas", "quota",
                        "the object has been modified; please apply your changes to the latest "
                        "version and try again"),
          false);
    }
    default:
      return PlainText(500, "no fault");
  }
}

std::string WriteKindOf(const kube::HttpRequest& request) {
  if (request.method == "GET") return "";
  const std::optional<ApiRequest> target = ParseRequest(request);
  if (!target.has_value()) return "other";
  return absl::StrCat(VerbOf(request, *target), "-", target->row->plural,
                      target->subresource.empty() ? "" : "/", target->subresource);
}

bool IsLeaseKind(const std::string& kind) { return absl::EndsWith(kind, "-leases"); }

kube::HttpResponse RefusalResponse(int status, const kube::HttpRequest& request) {
  if (status == 429) return FaultResponse(Fate::kThrottled, false);
  if (status == 403) return ErrorResponse(Forbidden(request), false);
  kube::HttpResponse response = ErrorResponse(GenericError(status, "refused"), false);
  return response;
}

}  // namespace fairlead::sim::world
