#include "sim/world/api_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_apply.h"
#include "sim/world/api_error.h"
#include "sim/world/api_json.h"
#include "sim/world/api_list.h"
#include "sim/world/api_pods.h"
#include "sim/world/api_request.h"
#include "sim/world/api_store.h"
#include "sim/world/api_writes.h"
#include "sim/world/json_patch.h"
#include "sim/world/watch_cache.h"

namespace fairlead::sim::world {
namespace {

constexpr size_t kMaxRemembered = 100;  // of requests that are not implemented

kube::HttpResponse StatusResponse(int code, const Json& status) {
  kube::HttpResponse response;
  response.status = code;
  response.content_type = kube::kJson;
  response.body = Dump(status);
  return response;
}

kube::HttpResponse Discovery(const std::string& group_version) {
  const std::vector<const ResourceRow*> rows = RowsOf(group_version);
  if (rows.empty()) {
    return ErrorResponse(GenericError(404, "the server could not find the requested resource"),
                         false);
  }
  Json resources = Json::array();
  for (const ResourceRow* row : rows) {
    resources.push_back({{"name", std::string(row->plural)},
                         {"kind", std::string(row->kind)},
                         {"namespaced", row->namespaced}});
  }
  return StatusResponse(200, {{"kind", "APIResourceList"},
                              {"apiVersion", "v1"},
                              {"groupVersion", group_version},
                              {"resources", resources}});
}

kube::HttpResponse GroupDiscovery(const std::string& group) {
  const std::string version(VersionOf(group));
  if (version.empty()) return Discovery(group);
  return StatusResponse(200, {{"kind", "APIGroup"},
                              {"apiVersion", "v1"},
                              {"name", group},
                              {"preferredVersion", {{"groupVersion", version}}}});
}

Json DeletedStatus(const ApiObject& object) {
  Json status = SuccessStatus(200);
  status.erase("code");
  Json details = {{"name", TextAt(object.json(), {"metadata", "name"})},
                  {"kind", std::string(object.row().plural)},
                  {"uid", TextAt(object.json(), {"metadata", "uid"})}};
  const absl::string_view group = GroupOf(object.row());
  if (!group.empty()) details["group"] = std::string(group);
  status["details"] = std::move(details);
  return status;
}

}  // namespace

class ApiServer::Impl {
 public:
  explicit Impl(EventQueue* time)
      : writer(time, &store), applier(&writer), lister(time, &store), watches(time, &store) {}

  kube::HttpResponse Route(const kube::HttpRequest& request, const ApiRequest& target,
                           absl::string_view client);
  kube::HttpResponse Unimplemented(const kube::HttpRequest& request);

  ApiStore store;
  ApiWriter writer;
  Applier applier;
  Lister lister;
  WatchCache watches;
  std::vector<std::string> unimplemented;

 private:
  kube::HttpResponse Get(const ApiRequest& target);
  kube::HttpResponse Post(const kube::HttpRequest& request, const ApiRequest& target,
                          absl::string_view client);
  kube::HttpResponse PostSubresource(const kube::HttpRequest& request, const ApiRequest& target,
                                     const Json& body, absl::string_view client);
  kube::HttpResponse Patch(const kube::HttpRequest& request, const ApiRequest& target,
                           absl::string_view client);
  kube::HttpResponse Put(const kube::HttpRequest& request, const ApiRequest& target,
                         absl::string_view client);
  kube::HttpResponse Delete(const kube::HttpRequest& request, const ApiRequest& target,
                            absl::string_view client);
  static kube::HttpResponse Answer(const ApiRequest& target, const ApiResult& result);
};

kube::HttpResponse ApiServer::Impl::Unimplemented(const kube::HttpRequest& request) {
  const std::string what = absl::StrCat(request.method, " ", request.path);
  if (unimplemented.size() < kMaxRemembered) unimplemented.push_back(what);
  return ErrorResponse(NotImplementedError(what), false);
}

kube::HttpResponse ApiServer::Impl::Answer(const ApiRequest& target, const ApiResult& result) {
  if (!result.error.ok()) return ErrorResponse(result.error, target.protobuf);
  return ObjectResponse(result.created ? 201 : 200, target, *result.object);
}

kube::HttpResponse ApiServer::Impl::Get(const ApiRequest& target) {
  if (target.name.empty()) return lister.List(target);
  const ObjectPtr object =
      store.Find(target.row->type, ObjectKey(*target.row, target.ns, target.name));
  if (object == nullptr) {
    return ErrorResponse(NotFoundError(*target.row, target.name), target.protobuf);
  }
  return ObjectResponse(200, target, *object);
}

kube::HttpResponse ApiServer::Impl::PostSubresource(const kube::HttpRequest& request,
                                                    const ApiRequest& target, const Json& body,
                                                    absl::string_view client) {
  if (target.row->type != ResourceType::kPods) return Unimplemented(request);
  if (target.subresource == "binding") {
    const ApiError error = BindPod(writer, target.ns, target.name, body, client);
    if (!error.ok()) return ErrorResponse(error, target.protobuf);
    return StatusResponse(201, SuccessStatus(201));
  }
  if (target.subresource == "eviction") {
    const EvictionAnswer answer = EvictPod(writer, target.ns, target.name, body, client);
    if (!answer.error.ok()) return ErrorResponse(answer.error, target.protobuf);
    return StatusResponse(201, answer.status);
  }
  return Unimplemented(request);
}

kube::HttpResponse ApiServer::Impl::Post(const kube::HttpRequest& request, const ApiRequest& target,
                                         absl::string_view client) {
  Json body;
  if (ApiError error = ReadBody(request, target, body); !error.ok()) {
    return ErrorResponse(error, target.protobuf);
  }
  if (!target.subresource.empty()) return PostSubresource(request, target, body, client);
  if (!target.name.empty()) return Unimplemented(request);
  const std::string kind = TextAt(body, {"kind"});
  const std::string api_version = TextAt(body, {"apiVersion"});
  if (kind != target.row->kind || api_version != target.row->group_version) {
    return ErrorResponse(
        BadRequestError(absl::StrCat("the object provided is unrecognized: ", api_version, " ",
                                     kind, " does not match ", target.row->kind)),
        target.protobuf);
  }
  if (target.row->namespaced) {
    const std::string ns = TextAt(body, {"metadata", "namespace"});
    if (!ns.empty() && ns != target.ns) {
      return ErrorResponse(
          BadRequestError("the namespace of the provided object does not match the namespace "
                          "sent on the request"),
          target.protobuf);
    }
    MakeObject(body, {"metadata"})["namespace"] = target.ns;
  }
  return Answer(target, writer.Create(*target.row, std::move(body), WriteScope::kObject, client));
}

kube::HttpResponse ApiServer::Impl::Patch(const kube::HttpRequest& request,
                                          const ApiRequest& target, absl::string_view client) {
  const bool status = target.subresource == "status";
  if ((!target.subresource.empty() && !status) || (status && !target.row->has_status)) {
    return Unimplemented(request);
  }
  const bool strategic = request.content_type == kube::kStrategicMergePatch;
  const bool apply = request.content_type == kube::kApplyPatch;
  const bool json = request.content_type == kube::kJsonPatch;
  const bool custom = IsCustom(*target.row);
  if ((strategic && custom) ||
      (!strategic && !apply && !json && request.content_type != kube::kMergePatch)) {
    return ErrorResponse(UnsupportedMediaTypeError(custom), target.protobuf);
  }
  if (apply && (status || !target.QueryIsTrue("force"))) return Unimplemented(request);
  const Json patch = Parse(request.body);
  if (patch.is_discarded()) {
    return ErrorResponse(BadRequestError("error decoding patch: invalid JSON"), target.protobuf);
  }
  if (apply) {
    return Answer(target, applier.Apply(*target.row, target.ns, target.name, patch,
                                        target.Query("fieldManager"), client));
  }
  const auto change = [&](Json& object) -> ApiError {
    if (json) {
      const std::string why = ApplyJsonPatch(patch, object);
      return why.empty() ? ApiError() : GenericError(422, why);
    }
    if (!patch.is_object()) return BadRequestError("the patch must be an object");
    if (!strategic) {
      ApplyMergePatch(patch, object);
      return {};
    }
    const std::string why = ApplyStrategicMergePatch(*target.row, patch, object);
    return why.empty() ? ApiError() : BadRequestError(why);
  };
  return Answer(target,
                writer.Update(*target.row, target.ns, target.name,
                              status ? WriteScope::kStatus : WriteScope::kObject, change, client));
}

kube::HttpResponse ApiServer::Impl::Put(const kube::HttpRequest& request, const ApiRequest& target,
                                        absl::string_view client) {
  const bool status = target.subresource == "status";
  if ((!target.subresource.empty() && !status) || (status && !target.row->has_status)) {
    return Unimplemented(request);
  }
  Json body;
  if (ApiError error = ReadBody(request, target, body); !error.ok()) {
    return ErrorResponse(error, target.protobuf);
  }
  const auto change = [&](Json& object) -> ApiError {
    object = body;
    return {};
  };
  return Answer(target,
                writer.Update(*target.row, target.ns, target.name,
                              status ? WriteScope::kStatus : WriteScope::kObject, change, client));
}

kube::HttpResponse ApiServer::Impl::Delete(const kube::HttpRequest& request,
                                           const ApiRequest& target, absl::string_view client) {
  if (!target.subresource.empty()) return Unimplemented(request);
  Json body;
  if (ApiError error = ReadBody(request, target, body); !error.ok()) {
    return ErrorResponse(error, target.protobuf);
  }
  const ApiResult result =
      writer.Delete(*target.row, target.ns, target.name, ReadDeleteOptions(body), client);
  // Pods are told as they are; of others only what is still there.
  if (!result.error.ok() || !result.removed || target.row->type == ResourceType::kPods) {
    return Answer(target, result);
  }
  return StatusResponse(200, DeletedStatus(*result.object));
}

kube::HttpResponse ApiServer::Impl::Route(const kube::HttpRequest& request,
                                          const ApiRequest& target, absl::string_view client) {
  const bool collection = target.name.empty();
  if (request.method == "GET" && target.subresource.empty()) return Get(target);
  if (request.method == "POST" && (!target.row->namespaced || !target.ns.empty())) {
    return Post(request, target, client);
  }
  if (!collection && request.method == "PATCH") return Patch(request, target, client);
  if (!collection && request.method == "PUT") return Put(request, target, client);
  if (!collection && request.method == "DELETE") return Delete(request, target, client);
  return Unimplemented(request);
}

ApiServer::ApiServer(EventQueue* time) : impl_(std::make_unique<Impl>(time)) {}
ApiServer::~ApiServer() = default;

kube::HttpResponse ApiServer::Handle(const kube::HttpRequest& request, absl::string_view client) {
  if (const std::optional<std::string> group = DiscoveredGroup(request)) return Discovery(*group);
  if (const std::optional<std::string> group = AskedGroup(request)) return GroupDiscovery(*group);
  const std::optional<ApiRequest> target = ParseRequest(request);
  if (!target.has_value() || target->QueryIsTrue("watch")) return impl_->Unimplemented(request);
  for (const auto& hurry : hurries_) hurry(request);
  const bool of_claim =
      (target->row->type == ResourceType::kResourceClaims && target->subresource == "status") ||
      (target->row->type == ResourceType::kPersistentVolumeClaims && request.method == "PATCH");
  const bool refused = target->subresource == "binding" ? refused_bindings_.contains(target->name)
                                                        : of_claim && RefusesClaim(target->name);
  if (refused) {
    return ErrorResponse(GenericError(403, "admission webhook \"policy\" denied the request"),
                         target->protobuf);
  }
  return impl_->Route(request, *target, client);
}

bool ApiServer::RefusesClaim(absl::string_view name) const {
  return std::any_of(refused_claims_.begin(), refused_claims_.end(),
                     [&](const auto& prefix) { return absl::StartsWith(name, prefix); });
}

ApiServer::WatchId ApiServer::OpenWatch(const kube::HttpRequest& request, WatchSink sink) {
  const std::optional<ApiRequest> target = ParseRequest(request);
  if (!target.has_value() || !target->name.empty() || request.method != "GET") {
    kube::HttpResponse refusal = impl_->Unimplemented(request);
    sink.headers(refusal.status, refusal.content_type);
    sink.data(std::move(refusal.body));
    sink.end();
    return 0;
  }
  return impl_->watches.Open(*target, std::move(sink));
}

void ApiServer::CloseWatch(WatchId watch) { impl_->watches.Close(watch); }
void ApiServer::EndAllWatches() { impl_->watches.EndAll(); }
void ApiServer::DefaultStatus(ResourceType type, bool has_default) {
  impl_->store.DefaultStatus(type, has_default);
}
void ApiServer::Compact() { impl_->store.Forget(); }

const Json* ApiServer::Find(ResourceType type, absl::string_view ns, absl::string_view name) const {
  const ObjectPtr object = impl_->store.Find(type, ObjectKey(RowOf(type), ns, name));
  return object == nullptr ? nullptr : &object->json();
}

void ApiServer::ForEach(ResourceType type, const std::function<void(const Json&)>& use) const {
  for (const auto& [key, object] : impl_->store.All(type)) use(object->json());
}

size_t ApiServer::Count(ResourceType type) const { return impl_->store.All(type).size(); }

absl::Status ApiServer::Create(ResourceType type, Json object, absl::string_view actor) {
  return ToStatus(
      impl_->writer.Create(RowOf(type), std::move(object), WriteScope::kActor, actor).error);
}

absl::Status ApiServer::Modify(ResourceType type, absl::string_view ns, absl::string_view name,
                               const std::function<absl::Status(Json&)>& change,
                               absl::string_view actor) {
  absl::Status refused;
  const ApiResult result = impl_->writer.Update(
      RowOf(type), ns, name, WriteScope::kActor,
      [&](Json& object) -> ApiError {
        refused = change(object);
        return refused.ok() ? ApiError() : BadRequestError("the actor thought better of it");
      },
      actor);
  return refused.ok() ? ToStatus(result.error) : refused;
}

absl::Status ApiServer::Remove(ResourceType type, absl::string_view ns, absl::string_view name,
                               absl::string_view actor, int64_t grace_seconds) {
  DeleteOptions options;
  if (grace_seconds >= 0) options.grace_seconds = grace_seconds;
  return ToStatus(impl_->writer.Delete(RowOf(type), ns, name, options, actor).error);
}

absl::Status ApiServer::RemoveNow(ResourceType type, absl::string_view ns, absl::string_view name,
                                  absl::string_view actor) {
  return ToStatus(impl_->writer.RemoveNow(RowOf(type), ns, name, actor).error);
}

void ApiServer::Listen(std::function<void(const Commit&)> listener) {
  impl_->store.Listen(
      [listener = std::move(listener)](const Change& change, absl::string_view actor) {
        Commit commit{change.type, nullptr, nullptr, actor, change.version};
        if (change.before != nullptr) commit.before = &change.before->json();
        if (change.after != nullptr) commit.after = &change.after->json();
        listener(commit);
      });
}

uint64_t ApiServer::version() const { return impl_->store.version(); }
const std::vector<std::string>& ApiServer::unimplemented() const { return impl_->unimplemented; }

}  // namespace fairlead::sim::world
