// Small cases for the tests of the runner.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/conformance/json.h"

namespace fairlead::conformance {

inline std::string NodeJson(absl::string_view name, int gpus) {
  return absl::StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name,
                      R"("},"status":{"allocatable":{"cpu":"100","memory":"100G","pods":"110",)",
                      R"("nvidia.com/gpu":")", gpus, R"("}}})");
}

inline std::string QueueJson(absl::string_view name) {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":{"name":")", name,
      R"("},"spec":{"resources":{"cpu":{"quota":-1,"limit":-1},"gpu":{"quota":-1,"limit":-1},)",
      R"("memory":{"quota":-1,"limit":-1}}}})");
}

inline std::string GroupJson(absl::string_view name, absl::string_view queue,
                             absl::string_view priority_class = "train") {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup","metadata":{"name":")", name,
      R"(","namespace":"default","uid":")", name, R"("},"spec":{"minMember":1,"queue":")", queue,
      R"(","priorityClassName":")", priority_class, R"("}})");
}

inline std::string PriorityClassJson(absl::string_view name, int value) {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":")", name,
      R"("},"value":)", value, "}");
}

// Running on `node`, waiting if `node` is empty.
inline std::string PodJson(absl::string_view name, absl::string_view group, absl::string_view node,
                           int gpus = 1) {
  return absl::StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
      R"(","namespace":"default","uid":")", name, R"(","annotations":{"pod-group-name":")", group,
      R"("},"labels":{"runai-gpu-group":"old"}},"spec":{"schedulerName":"kai-scheduler",)",
      node.empty() ? "" : absl::StrCat(R"("nodeName":")", node, R"(",)"),
      R"("containers":[{"name":"main","resources":{"requests":{"cpu":"1","nvidia.com/gpu":")", gpus,
      R"("}}}]},"status":{"phase":")", node.empty() ? "Pending" : "Running", R"("}})");
}

// One waiting pod "wait-0" of group "wait" and one running pod "run-0" of group "run" on node n1.
inline std::string CaseJson(absl::string_view mode, absl::string_view rounds,
                            absl::string_view expect, absl::string_view state = "{}") {
  return absl::StrCat(R"({"name":"a case","source":"some_test.go:Test[0]","mode":")", mode,
                      R"(","actions":["allocate"],"rounds":)", rounds,
                      R"(,"now":"2026-01-01T00:00:00Z","schedulerConfig":{},"objects":[)",
                      NodeJson("n1", 2), ",", QueueJson("q"), ",", PriorityClassJson("train", 50),
                      ",", GroupJson("wait", "q"), ",", GroupJson("run", "q"), ",",
                      PodJson("wait-0", "wait", ""), ",", PodJson("run-0", "run", "n1"),
                      R"(],"state":)", state, R"(,"expect":)", expect, "}");
}

}  // namespace fairlead::conformance
