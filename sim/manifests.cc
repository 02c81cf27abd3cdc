#include "sim/manifests.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "simdjson.h"

namespace fairlead::sim {
namespace {

using Element = simdjson::dom::element;

std::string TextAt(Element element, absl::string_view pointer, absl::string_view otherwise) {
  std::string_view text;
  if (element.at_pointer(ToStd(pointer)).get(text) != simdjson::SUCCESS) {
    return std::string(otherwise);
  }
  return std::string(text);
}

absl::Status Fault(absl::string_view file, absl::string_view object, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", object, ": ", what));
}

// A whole number of at least zero; `otherwise` if it is absent.
absl::StatusOr<int64_t> CountAt(Element element, absl::string_view pointer, int64_t otherwise,
                                absl::string_view file, absl::string_view object) {
  Element value;
  if (element.at_pointer(ToStd(pointer)).get(value) != simdjson::SUCCESS) return otherwise;
  int64_t count = 0;
  if (value.get(count) != simdjson::SUCCESS || count < 0) {
    return Fault(file, object, absl::StrCat(pointer, " must be a whole number of at least 0"));
  }
  return count;
}

// The pod template as the pod that a controller would create from it, without a name.
absl::StatusOr<model::Pod> ReadTemplate(Element document, const std::string& ns,
                                        absl::string_view file, absl::string_view object) {
  Element metadata, spec;
  if (document.at_pointer("/spec/template/spec").get(spec) != simdjson::SUCCESS) {
    return Fault(file, object, "spec.template.spec is missing");
  }
  std::string metadata_json = "{}";
  if (document.at_pointer("/spec/template/metadata").get(metadata) == simdjson::SUCCESS) {
    metadata_json = simdjson::minify(metadata);
  }
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "Pod");
  json.Key("metadata").Raw(metadata_json).Key("spec").Raw(simdjson::minify(spec)).EndObject();
  absl::StatusOr<kube::Object> decoded =
      kube::DecodeObject(model::Kind::kPod, "application/json", json.Take());
  if (!decoded.ok()) return Fault(file, object, decoded.status().message());
  auto pod = std::get<model::Pod>(*std::move(decoded));
  if (!pod.invalid.empty()) return Fault(file, object, pod.invalid);
  pod.meta.ns = ns;
  pod.spec.ns = ns;
  return pod;
}

absl::StatusOr<ControllerSpec> ReadController(ControllerKind kind, Element document,
                                              absl::string_view file) {
  ControllerSpec spec;
  spec.kind = kind;
  spec.ns = TextAt(document, "/metadata/namespace", "default");
  spec.name = TextAt(document, "/metadata/name", "");
  const bool job = kind == ControllerKind::kJob;
  const std::string object =
      absl::StrCat(job ? "Job " : "Deployment ", model::Key(spec.ns, spec.name));
  if (spec.name.empty()) return Fault(file, object, "metadata.name is missing");
  FAIRLEAD_ASSIGN_OR_RETURN(
      spec.replicas,
      CountAt(document, job ? "/spec/parallelism" : "/spec/replicas", 1, file, object));
  FAIRLEAD_ASSIGN_OR_RETURN(spec.completions,
                            CountAt(document, "/spec/completions", spec.replicas, file, object));
  FAIRLEAD_ASSIGN_OR_RETURN(spec.pod_template, ReadTemplate(document, spec.ns, file, object));
  return spec;
}

absl::Status ReadOther(absl::string_view json, absl::string_view file, Manifest& manifest) {
  simdjson::dom::parser parser;
  Element document;
  if (parser.parse(simdjson::padded_string(ToStd(json))).get(document) != simdjson::SUCCESS) {
    return Fault(file, "document", "is not readable");
  }
  const std::string kind = TextAt(document, "/kind", "");
  if (kind != "Deployment" && kind != "Job") return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(
      ControllerSpec spec,
      ReadController(kind == "Job" ? ControllerKind::kJob : ControllerKind::kDeployment, document,
                     file));
  manifest.controllers.push_back(std::move(spec));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(absl::string_view yaml, absl::string_view file_name) {
  absl::StatusOr<kube::Manifests> decoded = kube::DecodeManifests(yaml);
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": ", decoded.status().message()));
  }
  Manifest manifest;
  manifest.objects = std::move(decoded->objects);
  for (const Object& object : manifest.objects) {
    const std::string* invalid = kube::InvalidOf(object);
    if (invalid != nullptr && !invalid->empty()) {
      return Fault(file_name, model::Key(MetaOf(object)), *invalid);
    }
  }
  size_t wanted = 0;
  for (const std::string& skipped : decoded->skipped) {  // "apps/v1 Deployment default/web"
    if (absl::StartsWith(skipped, "v1 Namespace ")) continue;
    if (!absl::StartsWith(skipped, "apps/v1 Deployment ") &&
        !absl::StartsWith(skipped, "batch/v1 Job ")) {
      return Fault(file_name, skipped, "the simulator has no such kind");
    }
    ++wanted;
  }
  if (decoded->skipped.empty()) return manifest;
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<std::string> documents, YamlToJson(yaml));
  for (const std::string& json : documents) {
    FAIRLEAD_RETURN_IF_ERROR(ReadOther(json, file_name, manifest));
  }
  if (manifest.controllers.size() != wanted) {
    return Fault(file_name, "List", "a Deployment or Job must be a document of its own");
  }
  return manifest;
}

}  // namespace fairlead::sim
