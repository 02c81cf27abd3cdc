// ParseSubject: what `fairlead explain` is asked about.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cmd/fairlead/inspect/explain.h"

namespace fairlead::cmd {

absl::StatusOr<Subject> ParseSubject(absl::string_view text, absl::string_view ns) {
  Subject subject;
  subject.ns = ns.empty() ? "default" : std::string(ns);
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  subject.name = parts.back();
  if (parts.size() > 2 || subject.name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": must be NAME or KIND/NAME; the namespace goes into -n"));
  }
  if (parts.size() == 1) return subject;
  const std::string& kind = parts[0];
  if (kind == "pod" || kind == "pods" || kind == "po") {
    subject.kind = Subject::Kind::kPod;
  } else if (kind == "podgroup" || kind == "podgroups" || kind == "pg") {
    subject.kind = Subject::Kind::kPodGroup;
  } else if (kind == "queue" || kind == "queues") {
    subject.kind = Subject::Kind::kQueue;
  } else if (kind == "job" || kind == "jobs") {
    subject.kind = Subject::Kind::kJob;
  } else if (kind == "deployment" || kind == "deployments" || kind == "deploy") {
    subject.kind = Subject::Kind::kDeployment;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": ", kind,
                     " is none of pod, podgroup, job, deployment, queue; the namespace goes into "
                     "-n"));
  }
  return subject;
}

}  // namespace fairlead::cmd
