#include "cmd/fairlead/cluster/api_client.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/codec/codec.h"
#include "kube/transport/url.h"

namespace fairlead::cmd {
namespace {

absl::StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case 400:
    case 405:
    case 415:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
    case 410:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kAlreadyExists;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

std::string RootOf(const std::string& api_version) {
  return absl::StrCat(absl::StrContains(api_version, "/") ? "/apis/" : "/api/", api_version);
}

}  // namespace

absl::Status StatusOfAnswer(const absl::StatusOr<kube::HttpResponse>& answer) {
  if (!answer.ok()) return answer.status();
  if (answer->status >= 200 && answer->status < 300) return absl::OkStatus();
  const kube::ApiStatus status = kube::DecodeStatus(answer->content_type, answer->body);
  absl::StatusCode code = CodeOf(answer->status);
  // 409 means a conflicting change here, not a name that is taken.
  if (answer->status == 409 && status.reason == "Conflict") code = absl::StatusCode::kAborted;
  return absl::Status(
      code, status.message.empty() ? absl::StrCat("HTTP ", answer->status) : status.message);
}

std::string ObjectId::Text() const {
  return absl::StrCat(kind, " ", ns.empty() ? "" : absl::StrCat(ns, "/"), name);
}

absl::Status StatusOfCall(const absl::StatusOr<kube::HttpResponse>& answer,
                          absl::StatusCode conflict, absl::StatusCode expired) {
  absl::Status said = StatusOfAnswer(answer);
  if (said.ok()) return said;
  absl::StatusCode code = said.code();
  if (!answer.ok()) {
    code = absl::StatusCode::kUnavailable;
  } else if (answer->status == 409) {
    code = conflict;
  } else if (answer->status == 410) {
    code = expired;
  }
  return {code, said.message()};
}

absl::StatusOr<ObjectId> IdOf(const Json& manifest) {
  ObjectId id{manifest.TextAt({"apiVersion"}), manifest.TextAt({"kind"}),
              manifest.TextAt({"metadata", "namespace"}), manifest.TextAt({"metadata", "name"})};
  for (const auto& [value, field] :
       {std::pair<std::string, const char*>{id.api_version, "apiVersion"},
        {id.kind, "kind"},
        {id.name, "metadata.name"}}) {
    if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(field, " is missing"));
  }
  return id;
}

absl::StatusOr<Json> ApiClient::Send(kube::HttpRequest request, const std::string& what) {
  const std::string method = request.method;
  absl::StatusOr<kube::HttpResponse> answer = transport_->Call(std::move(request));
  if (const absl::Status status = StatusOfAnswer(answer); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(method, " ", what, ": ", status.message()));
  }
  return Json::Parse(answer->body);
}

absl::StatusOr<Json> ApiClient::GetPath(const std::string& path) {
  kube::HttpRequest request;
  request.path = path;
  return Send(std::move(request), path);
}

absl::StatusOr<ApiClient::Resource> ApiClient::Find(const std::string& api_version,
                                                    const std::string& kind) {
  auto known = kinds_.find(api_version);
  if (known == kinds_.end()) {
    const absl::StatusOr<Json> list = GetPath(RootOf(api_version));
    if (absl::IsNotFound(list.status())) {
      return absl::NotFoundError(
          absl::StrCat("the server has no kind ", kind, " in ", api_version));
    }
    if (!list.ok()) return list.status();
    known = kinds_.try_emplace(api_version).first;
    const Json* resources = list->Find("resources");
    for (const Json& resource : resources == nullptr ? std::vector<Json>() : resources->items()) {
      const std::string name = resource.TextAt({"name"});
      if (absl::StrContains(name, "/")) continue;  // a subresource
      known->second[resource.TextAt({"kind"})] = {name, resource.TextAt({"namespaced"}) == "true"};
    }
  }
  auto resource = known->second.find(kind);
  if (resource == known->second.end()) {
    return absl::NotFoundError(absl::StrCat("the server has no kind ", kind, " in ", api_version));
  }
  return resource->second;
}

absl::StatusOr<bool> ApiClient::Knows(const std::string& api_version, const std::string& kind) {
  const absl::StatusOr<Resource> found = Find(api_version, kind);
  if (found.ok()) return true;
  if (absl::IsNotFound(found.status())) return false;
  return found.status();
}

absl::StatusOr<std::string> ApiClient::PathOf(const ObjectId& id) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Resource resource, Find(id.api_version, id.kind));
  std::string path = RootOf(id.api_version);
  if (resource.namespaced) {
    absl::StrAppend(&path, "/namespaces/", id.ns.empty() ? "default" : id.ns);
  }
  return absl::StrCat(path, "/", resource.plural, "/", id.name);
}

absl::StatusOr<Json> ApiClient::Get(const ObjectId& id) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string path, PathOf(id));
  kube::HttpRequest request;
  request.path = std::move(path);
  return Send(std::move(request), id.Text());
}

absl::StatusOr<std::vector<Json>> ApiClient::List(const std::string& path) {
  constexpr char kPage[] = "500";
  std::vector<Json> all;
  std::string token;
  do {
    kube::HttpRequest request;
    request.path = path;
    kube::AddQuery(request.path, "limit", kPage);
    if (!token.empty()) kube::AddQuery(request.path, "continue", token);
    FAIRLEAD_ASSIGN_OR_RETURN(Json list, Send(std::move(request), path));
    if (Json* const items = list.Find("items")) {
      for (Json& item : items->items()) all.push_back(std::move(item));
    }
    token = list.TextAt({"metadata", "continue"});
  } while (!token.empty());
  return all;
}

absl::StatusOr<Json> ApiClient::Apply(const Json& manifest, const std::string& manager) {
  FAIRLEAD_ASSIGN_OR_RETURN(const ObjectId id, IdOf(manifest));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string path, PathOf(id));
  kube::HttpRequest request;
  request.method = "PATCH";
  request.path = absl::StrCat(path, "?fieldManager=", manager, "&force=true");
  request.content_type = kube::kApplyPatch;
  request.body = manifest.Compact();
  request.traffic = kube::TrafficClass::kWrite;
  return Send(std::move(request), id.Text());
}

absl::StatusOr<Json> ApiClient::Patch(const ObjectId& id, const Json& patch) {
  return Patch(id, patch, kube::kMergePatch);
}

absl::StatusOr<Json> ApiClient::PatchJson(const ObjectId& id, const Json& operations) {
  return Patch(id, operations, kube::kJsonPatch);
}

absl::StatusOr<Json> ApiClient::Patch(const ObjectId& id, const Json& patch,
                                      const char* content_type) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string path, PathOf(id));
  kube::HttpRequest request;
  request.method = "PATCH";
  request.path = std::move(path);
  request.content_type = content_type;
  request.body = patch.Compact();
  request.traffic = kube::TrafficClass::kWrite;
  return Send(std::move(request), id.Text());
}

absl::Status ApiClient::Delete(const ObjectId& id, int64_t grace_seconds) {
  absl::StatusOr<std::string> path = PathOf(id);
  if (absl::IsNotFound(path.status())) return absl::OkStatus();
  if (!path.ok()) return path.status();
  kube::HttpRequest request;
  request.method = "DELETE";
  request.path = *std::move(path);
  request.content_type = kube::kJson;
  Json options = Json::Object();
  options.Set("apiVersion", "v1").Set("kind", "DeleteOptions");
  options.Set("propagationPolicy", "Background");
  if (grace_seconds >= 0) options.Set("gracePeriodSeconds", Json::Int(grace_seconds));
  request.body = options.Compact();
  request.traffic = kube::TrafficClass::kWrite;
  const absl::Status status = Send(std::move(request), id.Text()).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace fairlead::cmd
