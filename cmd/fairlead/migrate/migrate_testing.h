// Objects of a small KAI installation with a Fairlead beside it, for tests of `fairlead migrate`.
// Header only; never part of the product.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/migrate/kai_installation.h"
#include "document/yaml.h"

namespace fairlead::cmd::testing {

inline Json FromYaml(const std::string& yaml) {
  const auto documents = YamlToJson(yaml);
  EXPECT_TRUE(documents.ok()) << documents.status();
  if (!documents.ok() || documents->size() != 1) return Json();
  auto json = Json::Parse(documents->front());
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *std::move(json) : Json();
}

inline Json KaiDeploymentObject(const std::string& name, const std::string& program, int replicas,
                                const std::string& ns = "kai-scheduler") {
  return FromYaml(absl::StrCat(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: )",
                               name, ", namespace: ", ns, R"(, labels: {app: )", name, R"(}}
spec:
  replicas: )",
                               replicas, R"(
  selector: {matchLabels: {app: )",
                               name, R"(}}
  template:
    metadata: {labels: {app: )",
                               name, R"(}}
    spec:
      containers:
      - {name: main, image: "ghcr.io/kai-scheduler/kai-scheduler/)",
                               program, R"(:v0.17.0"}
)"));
}

// `flags`: more of them, as a list.
inline Json FairleadDeploymentObject(const std::string& flags = "[]") {
  return FromYaml(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: fairlead, namespace: fairlead, labels: {app.kubernetes.io/name: fairlead}}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/name: fairlead}}
  template:
    metadata: {labels: {app.kubernetes.io/name: fairlead}}
    spec:
      containers:
      - {name: fairlead, image: "fairlead:1", command: [fairlead, run, --config, /etc/fairlead/fairlead.yaml],
         args: )" +
                  flags + R"(}
      volumes:
      - {name: configuration, configMap: {name: fairlead-configuration}}
)");
}

inline constexpr char kFile[] =
    "# ours\n"
    "apiVersion: config.fairlead.dev/v1alpha1\n"
    "kind: FairleadConfiguration\n"
    "schedulerNames: [fairlead]  # and KAI's later\n"
    "hook: {enabled: false}\n";

inline Json FileObject(const std::string& text) {
  Json map = FromYaml(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fairlead-configuration, namespace: "
      "fairlead}\ndata: {}\n");
  map.Find("data")->Set("fairlead.yaml", text);
  return map;
}

// All of KAI's Deployments run, and Fairlead does not serve KAI's name.
inline KaiObjects Installed(const std::string& file = kFile) {
  KaiObjects objects;
  objects.deployments = {KaiDeploymentObject("queue-controller", "queuecontroller", 1),
                         KaiDeploymentObject("kai-scheduler-default", "scheduler", 2),
                         KaiDeploymentObject("kai-operator", "operator", 1),
                         KaiDeploymentObject("binder", "binder", 1),
                         KaiDeploymentObject("podgroup-controller", "podgroupcontroller", 1),
                         KaiDeploymentObject("pod-grouper", "podgrouper", 1),
                         KaiDeploymentObject("admission", "admission", 1),
                         KaiDeploymentObject("node-scale-adjuster", "nodescaleadjuster", 1),
                         KaiDeploymentObject("web", "nginx", 3, "default"),
                         FairleadDeploymentObject()};
  objects.deployments[8].Find("spec")->Set("template", Json::Object());
  objects.configs = {FromYaml("metadata: {name: kai-config}\nspec: {namespace: kai-scheduler}\n")};
  objects.shards = {FromYaml("metadata: {name: default}\nspec: {}\n")};
  objects.validating_webhooks = {FromYaml(R"(
metadata: {name: queue-validation-v2}
webhooks:
- name: queue-validation.kai.scheduler
  failurePolicy: Fail
  clientConfig: {service: {namespace: kai-scheduler, name: queue-controller}}
)")};
  objects.definitions = {FromYaml("metadata: {name: queues.scheduling.run.ai}\n"), FromYaml(R"(
metadata: {name: podgroups.scheduling.run.ai}
spec:
  versions:
  - schema: {openAPIV3Schema: {properties: {status: {properties: {schedulability: {type: object}}}}}}
)")};
  objects.queues = {FromYaml(R"(
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec: {resources: {gpu: {quota: 1, limit: -1}}}
)")};
  objects.fairlead_configuration = FileObject(file);
  return objects;
}

}  // namespace fairlead::cmd::testing
