// Objects and steps for tests of pods with PersistentVolumeClaims in the decision loop. Header
// only; never part of the product.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/volume_builders.h"

namespace fairlead::core::testing {

using model::BindVolume;
using model::PersistentVolume;
using model::PersistentVolumeClaim;
using model::SelectVolumeNode;
using model::testing::BoundTo;
using model::testing::MakeStorageClass;
using model::testing::MakeVolume;
using model::testing::MakeVolumeClaim;
using model::testing::OfClaim;
using model::testing::Where;

template <typename T>
T Version(int64_t version, T object) {
  object.meta.resource_version = absl::StrCat(version);
  return object;
}

inline PersistentVolumeClaim Selected(PersistentVolumeClaim claim, const std::string& node) {
  claim.selected_node = node;
  return claim;
}

// Of class "local", whose volumes are made by hand.
inline PersistentVolume OnHost(const std::string& name, const std::string& node) {
  return Where(MakeVolume(name, "local"), model::kHostnameLabel, {node});
}

inline model::Pod WithClaims(model::Pod pod, const std::vector<std::string>& claims) {
  for (const std::string& claim : claims) pod.spec.volume_claims.push_back({claim, false});
  return pod;
}

class VolumesTest : public DecisionLoopTest {
 protected:
  VolumesTest() {
    options_.hook.enabled = false;
    options_.emit_events = true;
    Restart();
  }
  // Nodes n1, n2, ...
  void Begin(int nodes = 1) {
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    Put(MakeStorageClass("local", model::kNoProvisioner));
    Put(MakeStorageClass("cloud", "csi.example"));
    for (int i = 1; i <= nodes; ++i) Put(MakeNode(absl::StrCat("n", i), 0));
  }
  void BeginAgain(int nodes = 1) {
    Restart();
    Begin(nodes);
  }
  static model::Pod Pod(const std::string& name, const std::vector<std::string>& claims) {
    return WithClaims(PodBuilder("ns", name).Queue("team").Build(), claims);
  }
  void Delete(model::Kind kind, const std::string& ns, const std::string& name,
              const std::string& uid = "") {
    loop_->Apply(model::Delete{kind, ns, name, uid});
  }
  void Cordon(const std::string& node, bool cordoned = true) {
    model::Node changed = MakeNode(node, 0);
    changed.unschedulable = cordoned;
    Put(changed);
  }
  // Pod "p" with claim "c" of class "cloud" on node n1; the write in that step.
  StepResult AskForCloud(int64_t at = 1) {
    Put(Version(5, MakeVolumeClaim("c", "cloud")));
    Put(Pod("p", {"c"}));
    const StepResult step = Step(at);
    EXPECT_THAT(Of<SelectVolumeNode>(step), ::testing::SizeIs(1));
    return step;
  }
  // The same for class "local", and a volume "v" there.
  StepResult AskForLocal(int64_t at = 1) {
    Put(Version(4, OnHost("v", "n1")));
    Put(Version(5, MakeVolumeClaim("c", "local")));
    Put(Pod("p", {"c"}));
    const StepResult step = Step(at);
    EXPECT_THAT(Of<BindVolume>(step), ::testing::SizeIs(1));
    return step;
  }
  // The words of the events about bindings that failed.
  static std::vector<std::string> FailuresIn(const StepResult& step) {
    std::vector<std::string> notes;
    for (const auto& event : Of<model::EmitEvent>(step)) {
      if (event.reason == "FailedBinding") notes.push_back(event.note);
    }
    return notes;
  }
  static size_t WritesIn(const StepResult& step) {
    return Of<BindVolume>(step).size() + Of<SelectVolumeNode>(step).size();
  }
  static std::string VerdictIn(const StepResult& step) {
    const auto verdicts = Of<model::SetPodUnschedulable>(step);
    return verdicts.empty() ? "" : absl::StrCat(verdicts[0].reason, ": ", verdicts[0].message);
  }
  std::string ToldAt(int64_t at) {
    const StepResult step = Step(at);
    AnswerAll(step);
    return VerdictIn(step);
  }
};

}  // namespace fairlead::core::testing
