#include "cmd/gpu-index/announce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "kube/codec/codec.h"
#include "kube/codec/encode_parts.h"
#include "scheduler/model/api_names.h"

namespace fairlead::gpu_index {

absl::Status Announce(kube::HttpTransport& transport, const OwnPod& pod,
                      const std::string& device) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject().Key("annotations").BeginObject();
  json.Field(model::kGpuIndexAnnotation, device).EndObject().EndObject().EndObject();
  kube::HttpRequest request;
  request.method = "PATCH";
  request.path = kube::PodPath(pod.ns, pod.name);
  request.content_type = kube::kMergePatch;
  request.body = json.Take();
  request.traffic = kube::TrafficClass::kWrite;
  const absl::StatusOr<kube::HttpResponse> answer = transport.Call(std::move(request));
  const std::string what = absl::StrCat("annotation of pod ", pod.ns, "/", pod.name);
  if (!answer.ok()) {
    return absl::UnavailableError(absl::StrCat(what, ": ", answer.status().ToString()));
  }
  if (answer->status >= 200 && answer->status < 300) return absl::OkStatus();
  const kube::ApiStatus error = kube::DecodeStatus(answer->content_type, answer->body);
  const std::string text = absl::StrCat(what, ": ", answer->status, " ", error.message);
  const bool passing = answer->status >= 500 || answer->status == 429 || answer->status == 408;
  return passing ? absl::UnavailableError(text) : absl::FailedPreconditionError(text);
}

}  // namespace fairlead::gpu_index
