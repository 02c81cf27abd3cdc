#include "admission/defaults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "admission/validate.h"
#include "document/json_pointer.h"
#include "scheduler/model/api_names.h"

namespace fairlead::admission {
namespace {

Json Added(absl::string_view path, Json value) {
  Json operation = Json::Object();
  operation.Set("op", "add").Set("path", path).Set("value", std::move(value));
  Json patch = Json::Array();
  patch.Add(std::move(operation));
  return patch;
}

Json LabelPatch(const Json& pod, absl::string_view key, absl::string_view value) {
  const Json* const labels = pod.At({"metadata", "labels"});
  if (labels != nullptr && labels->is_object()) {
    return Added(absl::StrCat("/metadata/labels/", EscapePointerStep(key)), Json::String(value));
  }
  Json made = Json::Object();
  made.Set(key, value);
  return Added("/metadata/labels", std::move(made));
}

}  // namespace

Response Default(const Request& request, const Cluster& cluster, const Policy& policy) {
  Response response;
  if (request.operation != Operation::kCreate || !request.sub_resource.empty() ||
      !IsOf(request, model::Kind::kPod)) {
    return response;
  }
  const Json& pod = request.object;
  const std::vector<std::string>& ours = policy.scheduler_names;
  const std::string scheduler = pod.TextAt({"spec", "schedulerName"});
  if (std::find(ours.begin(), ours.end(), scheduler) == ours.end()) return response;
  if (!NamedQueue(pod).empty() || !NamedGroup(pod).empty()) return response;
  const auto queue = cluster.default_queues.find(request.ns);
  if (queue == cluster.default_queues.end() || queue->second.empty()) return response;
  response.patch = LabelPatch(pod, model::kQueueLabel, queue->second);
  return response;
}

}  // namespace fairlead::admission
