#include "cmd/fairlead/bundle/bundle_reader.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/bundle/bundle_fields.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "kube/transport/url.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::cmd {
namespace {

constexpr char kPageSize[] = "500";
constexpr char kOwnLabel[] = "app.kubernetes.io/name=fairlead";
constexpr size_t kDaemonsMax = 4;
constexpr int64_t kPartsExpected = 14;  // for the bar alone
// "left out", in base64, as the fields have it.
constexpr absl::string_view kLeftOut = "bGVmdCBvdXQ=";
// Parts of names of fields, in small letters: also of arguments of plugins that are not known here.
constexpr absl::string_view kSecretFields[] = {"authorization", "cadata",  "certdata",
                                               "credential",    "keydata", "passphrase",
                                               "password",      "secret",  "token"};
constexpr absl::string_view kOwnGroups[] = {"fairlead.dev", "scheduling.run.ai", "kai.scheduler"};

struct OwnKind {
  const char* file;
  model::Kind kind;
};
constexpr OwnKind kOwnKinds[] = {{"queues", model::Kind::kQueue},
                                 {"nodepools", model::Kind::kNodePool},
                                 {"noderequests", model::Kind::kNodeRequest},
                                 {"podgroups", model::Kind::kPodGroup}};

Json ShapeOfText(const char* text) {
  absl::StatusOr<Json> shape = Json::Parse(text);
  return shape.ok() ? *std::move(shape) : Json::Object();
}

// Says why the part is not there.
void SetProblem(const absl::Status& status, absl::string_view right, BundlePart& part) {
  part.problem = absl::IsPermissionDenied(status)
                     ? absl::StrCat("forbidden: needs the right to ", right)
                     : absl::StatusCodeToString(status.code());
  part.detail = std::string(status.message());
}

// Of a list those alone.
void KeepItems(BundlePart& part, absl::FunctionRef<bool(const Json&)> kept) {
  Json items = Json::Array();
  for (const Json& item : part.json.items()) {
    if (kept(item)) items.Add(item);
  }
  part.json = std::move(items);
}

// Without the annotations that nothing of ours reads.
void DropForeignAnnotations(Json& object) {
  Json* annotations = object.At({"metadata", "annotations"});
  if (annotations == nullptr) return;
  Json kept = Json::Object();
  for (const auto& [key, value] : annotations->fields()) {
    if (model::IsRelevantAnnotation(key)) kept.Append(key, value);
  }
  *annotations = std::move(kept);
}

// The port named "http" in manifests/base/deployment.yaml; if the pod names none, the default one.
std::string HttpPortOf(const Json& pod) {
  const Json* containers = pod.At({"spec", "containers"});
  if (containers == nullptr) return "8080";
  for (const Json& container : containers->items()) {
    const Json* ports = container.Find("ports");
    if (ports == nullptr) continue;
    for (const Json& port : ports->items()) {
      const std::string number = port.TextAt({"containerPort"});
      if (port.TextAt({"name"}) == "http" && !number.empty()) return number;
    }
  }
  return "8080";
}

bool IsSecretField(absl::string_view name) {
  const std::string low = absl::AsciiStrToLower(name);
  return absl::c_any_of(kSecretFields,
                        [&](absl::string_view field) { return absl::StrContains(low, field); });
}

// A URL without a user, a password and what follows "?".
std::string PublicUrl(const std::string& text) {
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos) return text;
  const absl::string_view all = text;
  const absl::string_view rest = all.substr(scheme + 3);
  const absl::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const size_t at = host.rfind('@');
  const size_t query = rest.find('?');
  const size_t begin = at == absl::string_view::npos ? 0 : at + 1;
  return absl::StrCat(all.substr(0, scheme + 3),
                      rest.substr(begin, query == absl::string_view::npos ? query : query - begin));
}

Json WithoutSecrets(const Json& json) {
  if (json.is_object()) {
    Json out = Json::Object();
    for (const auto& [key, value] : json.fields()) {
      out.Append(key, IsSecretField(key) ? Json::String(kLeftOut) : WithoutSecrets(value));
    }
    return out;
  }
  if (json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(WithoutSecrets(item));
    return out;
  }
  return json.type() == Json::Type::kString ? Json::String(PublicUrl(json.text())) : json;
}

}  // namespace

Json Reduced(const Json& json, const Json& shape) {
  if (shape.is_object() && json.is_object()) {
    Json out = Json::Object();
    for (const auto& [key, held] : shape.fields()) {
      if (const Json* field = json.Find(key); field != nullptr)
        out.Append(key, Reduced(*field, held));
    }
    return out;
  }
  if (shape.is_array() && json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(Reduced(item, shape.items().front()));
    return out;
  }
  // Something else than was expected is left out.
  return shape.is_object() || shape.is_array() ? Json() : json;
}

absl::StatusOr<Json> PublicConfiguration(absl::string_view yaml) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<Json> documents, LoadYaml(yaml));
  Json list = Json::Array();
  for (const Json& document : documents) {
    if (!document.is_null()) list.Add(WithoutSecrets(document));
  }
  return list;
}

absl::StatusOr<std::string> PublicDocument(const std::string& document) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json json, Json::Parse(document));
  return WithoutSecrets(json).Compact();
}

absl::StatusOr<Json> BundleReader::Get(const std::string& path) {
  ApiClient client(transport_);
  absl::StatusOr<Json> got = client.GetPath(path);
  if (call_ != nullptr) call_(static_cast<int64_t>(parts_.size()), kPartsExpected);
  return got;
}

absl::StatusOr<Json> BundleReader::List(const std::string& path, const Json& shape) {
  Json items = Json::Array();
  std::string next;
  do {
    std::string page_path = path;
    kube::AddQuery(page_path, "limit", kPageSize);
    if (!next.empty()) kube::AddQuery(page_path, "continue", next);
    FAIRLEAD_ASSIGN_OR_RETURN(const Json page, Get(page_path));
    const Json* list = page.Find("items");
    for (const Json& item : list == nullptr ? std::vector<Json>() : list->items()) {
      Json reduced = Reduced(item, shape);
      DropForeignAnnotations(reduced);
      items.Add(std::move(reduced));
    }
    next = page.TextAt({"metadata", "continue"});
  } while (!next.empty());
  return items;
}

void BundleReader::AddList(std::string file, std::string what, const std::string& path,
                           absl::string_view right, const Json& shape) {
  BundlePart part{std::move(file), std::move(what), BundlePart::Form::kList};
  absl::StatusOr<Json> items = List(path, shape);
  if (items.ok()) {
    part.json = *std::move(items);
  } else {
    SetProblem(items.status(), right, part);
  }
  parts_.push_back(std::move(part));
}

void BundleReader::AddObject(std::string file, std::string what, const std::string& path,
                             absl::string_view right, const Json& shape) {
  BundlePart part{std::move(file), std::move(what), BundlePart::Form::kObject};
  const absl::StatusOr<Json> object = Get(path);
  if (object.ok()) {
    part.json = Reduced(*object, shape);
  } else {
    SetProblem(object.status(), right, part);
  }
  parts_.push_back(std::move(part));
}

void BundleReader::AddDefinitions() {
  AddList("crds.json", "versions of our CustomResourceDefinitions",
          "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
          "list customresourcedefinitions.apiextensions.k8s.io", ShapeOfText(kDefinitionFields));
  KeepItems(parts_.back(), [](const Json& item) {
    return absl::c_linear_search(kOwnGroups, item.TextAt({"spec", "group"}));
  });
}

void BundleReader::AddMissing(std::string what, std::string problem, std::string detail) {
  BundlePart part{"", std::move(what)};
  part.problem = std::move(problem);
  part.detail = std::move(detail);
  parts_.push_back(std::move(part));
}

// Of each ConfigMap of the deployment the files that are configurations.
void BundleReader::AddConfiguration() {
  BundlePart part{"configuration.json", "configuration without passwords and keys",
                  BundlePart::Form::kConfiguration, Json::Object()};
  std::string path = absl::StrCat("/api/v1/namespaces/", scope_.ns, "/configmaps");
  kube::AddQuery(path, "labelSelector", kOwnLabel);
  const absl::StatusOr<Json> answer = Get(path);
  if (!answer.ok()) {
    SetProblem(answer.status(), "list configmaps in the program's namespace", part);
    parts_.push_back(std::move(part));
    return;
  }
  const Json* maps = answer->Find("items");
  for (const Json& map : maps == nullptr ? std::vector<Json>() : maps->items()) {
    const Json* data = map.Find("data");
    if (data == nullptr) continue;
    for (const auto& [file, content] : data->fields()) {
      absl::StatusOr<Json> documents = PublicConfiguration(content.text());
      if (!documents.ok()) {
        AddMissing("a file of the configuration", "it is no YAML, so it may have anything in it",
                   file);
        continue;
      }
      const bool is_one = absl::c_any_of(documents->items(), [](const Json& document) {
        return absl::EndsWith(document.TextAt({"kind"}), "Configuration");
      });
      if (is_one) part.json.Set(file, *documents);
    }
  }
  if (part.json.fields().empty()) {
    part.problem = absl::StrCat("no ConfigMap in the namespace has the label ", kOwnLabel,
                                " and a configuration; --namespace names the program's namespace");
    part.detail = absl::StrCat("namespace ", scope_.ns);
  }
  parts_.push_back(std::move(part));
}

void BundleReader::AddPage(size_t daemon, const std::string& pod_path, absl::string_view page) {
  kube::HttpRequest request;
  request.path = absl::StrCat(pod_path, "/proxy/", page);
  request.accept = "text/plain, */*";
  const absl::StatusOr<kube::HttpResponse> answer = transport_->Call(std::move(request));
  const bool is_metrics = page == "metrics";
  BundlePart part{absl::StrCat("daemon-", daemon, "/", page, ".txt"),
                  absl::StrCat(page, " of pod ", daemon),
                  is_metrics ? BundlePart::Form::kMetrics : BundlePart::Form::kPlain};
  // A replica that is not ready answers 503.
  const bool is_health = !is_metrics && answer.ok() && answer->status == 503;
  const absl::Status status = is_health ? absl::OkStatus() : StatusOfAnswer(answer);
  if (status.ok()) {
    part.text = is_metrics ? answer->body : absl::StrCat("status ", answer->status, "\n");
  } else {
    SetProblem(status, "get pods/proxy in the program's namespace", part);
  }
  parts_.push_back(std::move(part));
}

// By the API server's proxy: the ports are closed to everything else.
void BundleReader::AddHealth() {
  const std::string pods_path = absl::StrCat("/api/v1/namespaces/", scope_.ns, "/pods");
  std::string path = pods_path;
  kube::AddQuery(path, "labelSelector", kOwnLabel);
  AddList("daemon-pods.json", "the program's own pods", path,
          "list pods in the program's namespace", ShapeOfText(kPodFields));
  const std::vector<Json> pods = parts_.back().json.items();
  if (pods.empty() && parts_.back().problem.empty()) {
    AddMissing("metrics and health",
               absl::StrCat("no pod in the namespace has the label ", kOwnLabel,
                            "; --namespace names the program's namespace"),
               absl::StrCat("namespace ", scope_.ns));
  }
  for (size_t i = 0; i < std::min(pods.size(), kDaemonsMax); ++i) {
    const std::string pod_path = absl::StrCat(pods_path, "/", pods[i].TextAt({"metadata", "name"}),
                                              ":", HttpPortOf(pods[i]));
    for (const absl::string_view page : {"metrics", "readyz", "livez"}) {
      AddPage(i + 1, pod_path, page);
    }
  }
}

std::vector<BundlePart> BundleReader::ReadAll() {
  const Json own = ShapeOfText(kOwnKindFields);
  AddObject("server.json", "version of the API server", "/version", "get /version",
            ShapeOfText(R"({"major":1,"minor":1,"gitVersion":1,"platform":1})"));
  AddDefinitions();
  AddConfiguration();
  AddObject(
      "lease.json", "the Lease",
      absl::StrCat("/apis/coordination.k8s.io/v1/namespaces/", scope_.ns, "/leases/", scope_.lease),
      "get leases.coordination.k8s.io in the program's namespace", ShapeOfText(kLeaseFields));
  for (const OwnKind& each : kOwnKinds) {
    const auto& [file, kind] = each;
    const model::KindTraits& traits = model::TraitsOf(kind);
    const std::string version = traits.api_version;
    AddList(absl::StrCat(file, ".json"), file, kube::CollectionPath(kind),
            absl::StrCat("list ", traits.resource, ".", version.substr(0, version.find('/'))), own);
  }
  AddHealth();
  std::string events = "/api/v1/events";
  kube::AddQuery(events, "fieldSelector", "reportingComponent=fairlead");
  AddList("events.json", "events of ours", events, "list events", ShapeOfText(kEventFields));
  AddList("nodes.json", "nodes", "/api/v1/nodes", "list nodes", ShapeOfText(kNodeFields));
  AddList("pods.json", "pods of ours", "/api/v1/pods", "list pods", ShapeOfText(kPodFields));
  KeepItems(parts_.back(), [this](const Json& pod) {
    return scope_.scheduler_names.contains(pod.TextAt({"spec", "schedulerName"}));
  });
  return std::move(parts_);
}

}  // namespace fairlead::cmd
