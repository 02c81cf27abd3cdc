#include "admission/validate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::admission {
namespace {

constexpr size_t kMostShown = 5;
constexpr int kUnprocessable = 422;

struct Rules {
  const Cluster& cluster;
  const Policy& policy;
};

Findings Check(const Request& request, const Json& object, const Rules& rules) {
  if (IsOf(request, model::Kind::kQueue)) return CheckQueue(object, rules.cluster);
  if (IsOf(request, model::Kind::kPodGroup)) {
    return CheckPodGroup(object, rules.cluster, rules.policy);
  }
  for (const model::Kind kind : {model::Kind::kNodePool, model::Kind::kNodeRequest}) {
    if (IsOf(request, kind)) return CheckByDecoder(kind, object);
  }
  if (IsOf(request, model::Kind::kPod) && IsOurs(object, rules.policy)) {
    return CheckPod(object, rules.cluster, rules.policy);
  }
  return {};
}

std::string Subject(const Request& request) {
  std::string name = request.name;
  if (name.empty()) name = request.object.TextAt({"metadata", "name"});
  if (name.empty()) {
    name = absl::StrCat(request.object.TextAt({"metadata", "generateName"}), "*");
  }
  return absl::StrCat(request.kind, " ", name);
}

std::string Words(const std::vector<Problem>& problems) {
  const size_t shown = std::min(problems.size(), kMostShown);
  std::string text =
      absl::StrJoin(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(shown), "; ",
                    [](std::string* out, const Problem& problem) { *out += problem.text; });
  if (problems.size() > shown) absl::StrAppend(&text, "; and ", problems.size() - shown, " more");
  return text;
}

}  // namespace

bool IsOf(const Request& request, model::Kind kind) {
  const model::KindTraits& traits = model::TraitsOf(kind);
  const absl::string_view version = traits.api_version;
  const size_t slash = version.find('/');
  const absl::string_view group = slash == absl::string_view::npos ? "" : version.substr(0, slash);
  return request.resource == traits.resource && request.group == group;
}

Response Validate(const Request& request, const Cluster& cluster, const Policy& policy) {
  Response response;
  if (!IsWrite(request)) return response;
  const Rules rules = {cluster, policy};
  Findings found = Check(request, request.object, rules);
  response.warnings = std::move(found.warnings);
  if (!found.problems.empty() && request.operation == Operation::kUpdate &&
      request.old_object.is_object()) {
    const Findings before = Check(request, request.old_object, rules);
    found.problems =
        NewProblems(found.problems, request.object, before.problems, request.old_object);
  }
  if (found.problems.empty()) return response;
  Response refusal = Refuse(kUnprocessable, "Invalid",
                            absl::StrCat(Subject(request), ": ", Words(found.problems)));
  refusal.warnings = std::move(response.warnings);
  return refusal;
}

}  // namespace fairlead::admission
