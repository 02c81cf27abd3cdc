#include "tests/behaviours/behaviour_steps.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::behaviours {
namespace {

class StepReader {
 public:
  StepReader(const FieldReader& reader, const std::map<ObjectRef, Json>& manifests)
      : reader_(reader), manifests_(manifests) {}

  absl::StatusOr<std::vector<Step>> Read(const Json& steps) {
    std::vector<Step> read;
    if (steps.is_array() && steps.items().empty()) {
      return reader_.Error(steps, "steps", "there are none");
    }
    FAIRLEAD_RETURN_IF_ERROR(
        reader_.List(steps, "steps", [&](const Json& node, const std::string& at) {
          read.emplace_back().place = node.place();
          return ReadStep(node, at, read.back());
        }));
    for (const auto& [ref, manifest] : manifests_) {
      if (!applied_.contains(ref)) {
        return reader_.Error(manifest, ref.Text(), "is not applied by any step");
      }
    }
    return read;
  }

 private:
  absl::Status ReadStep(const Json& node, const std::string& at, Step& step) {
    FAIRLEAD_RETURN_IF_ERROR(reader_.Map(
        node, at,
        {{"apply", [&](const Json& value,
                       const std::string& field) { return ReadRefs(value, field, step.apply); }},
         {"patch", [&](const Json& value,
                       const std::string& field) { return ReadPatches(value, field, step); }},
         {"delete", [&](const Json& value,
                        const std::string& field) { return ReadRefs(value, field, step.remove); }},
         {"expect",
          [&](const Json& value, const std::string& field) {
            return ReadExpectations(value, field, step);
          }}},
        {"expect"}));
    applied_.insert(step.apply.begin(), step.apply.end());
    return absl::OkStatus();
  }

  absl::StatusOr<ObjectRef> ReadRef(absl::string_view text, TextPlace place,
                                    const std::string& at) const {
    absl::StatusOr<ObjectRef> ref = ParseObjectRef(text);
    if (!ref.ok()) return reader_.ErrorAt(place, at, ref.status().message());
    if (!manifests_.contains(*ref)) {
      return reader_.ErrorAt(place, at, absl::StrCat("the file has no manifest of ", ref->Text()));
    }
    return ref;
  }

  absl::Status ReadRefs(const Json& node, const std::string& at,
                        std::vector<ObjectRef>& out) const {
    return reader_.List(node, at, [&](const Json& item, const std::string& field) -> absl::Status {
      FAIRLEAD_ASSIGN_OR_RETURN(ObjectRef ref, ReadRef(item.text(), item.place(), field));
      out.push_back(std::move(ref));
      return absl::OkStatus();
    });
  }

  absl::Status ReadPatches(const Json& node, const std::string& at, Step& step) const {
    return reader_.AnyMap(
        node, at,
        [&](const std::string& key, const Json& value, const std::string& field) -> absl::Status {
          FAIRLEAD_ASSIGN_OR_RETURN(ObjectRef ref, ReadRef(key, value.key_place(), field));
          if (!value.is_object()) return reader_.Error(value, field, "must be a mapping");
          step.patch.emplace_back(std::move(ref), value);
          return absl::OkStatus();
        });
  }

  absl::StatusOr<std::string> ReadPod(absl::string_view text, TextPlace place,
                                      const std::string& at) const {
    const std::string key = PodKey(text);
    FAIRLEAD_RETURN_IF_ERROR(ReadRef(absl::StrCat("Pod/", key), place, at).status());
    return key;
  }

  absl::Status ReadPods(const Json& node, const std::string& at,
                        std::vector<std::string>& out) const {
    return reader_.List(node, at, [&](const Json& item, const std::string& field) -> absl::Status {
      FAIRLEAD_ASSIGN_OR_RETURN(std::string pod, ReadPod(item.text(), item.place(), field));
      out.push_back(std::move(pod));
      return absl::OkStatus();
    });
  }

  absl::Status ReadExpectations(const Json& node, const std::string& at, Step& step) const {
    if (node.is_object() && node.fields().empty())
      return reader_.Error(node, at, "expects nothing");
    FAIRLEAD_RETURN_IF_ERROR(reader_.Map(
        node, at,
        {{"pods",
          [&](const Json& value, const std::string& field) {
            return reader_.AnyMap(
                value, field, [&](const std::string& pod, const Json& item, const std::string& in) {
                  return ReadPodExpectation(pod, item, in, step);
                });
          }},
         {"spread",
          [&](const Json& value, const std::string& field) {
            return reader_.List(value, field, [&](const Json& item, const std::string& in) {
              return ReadSpread(item, in, step.spread.emplace_back());
            });
          }},
         {"evicted", [&](const Json& value, const std::string& field) {
            step.evicted_place = value.place();
            return ReadPods(value, field, step.evicted);
          }}}));
    if (step.evicted_place.line == 0) step.evicted_place = node.place();
    std::sort(step.evicted.begin(), step.evicted.end());
    return absl::OkStatus();
  }

  absl::Status ReadPodExpectation(const std::string& name, const Json& node, const std::string& at,
                                  Step& step) const {
    PodExpectation& expected = step.pods.emplace_back();
    expected.place = node.key_place();
    FAIRLEAD_ASSIGN_OR_RETURN(expected.pod, ReadPod(name, node.key_place(), at));
    std::string only_node;
    FAIRLEAD_RETURN_IF_ERROR(
        reader_.Map(node, at,
                    {{"node", reader_.Text(&only_node)},
                     {"nodeIn", reader_.TextList(&expected.nodes)},
                     {"ignored",
                      [&](const Json& value, const std::string& field) {
                        expected.is_ignored = true;
                        return value.text() == "true" ? absl::OkStatus()
                                                      : reader_.Error(value, field, "must be true");
                      }},
                     {"waits", [&](const Json& value, const std::string& field) {
                        return ReadWaits(value, field, expected);
                      }}}));
    if (node.fields().size() != 1) {
      return reader_.Error(node, at, "must have one of node, nodeIn, waits and ignored");
    }
    if (!only_node.empty()) expected.nodes.push_back(only_node);
    const bool on_node = node.Find("waits") == nullptr && !expected.is_ignored;
    if (on_node && expected.nodes.empty()) return reader_.Error(node, at, "names no node");
    for (const std::string& place : expected.nodes) {
      if (!manifests_.contains(ObjectRef{"Node", "", place})) {
        return reader_.Error(node, at, absl::StrCat("the file has no manifest of Node/", place));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadWaits(const Json& node, const std::string& at, PodExpectation& expected) const {
    FAIRLEAD_RETURN_IF_ERROR(reader_.Map(node, at,
                                         {{"code", reader_.Text(&expected.code)},
                                          {"reasonContains", reader_.Text(&expected.reason)},
                                          {"messageContains", reader_.Text(&expected.message)}}));
    if (!expected.code.empty() && !verdict::ParseCode(expected.code).has_value()) {
      return reader_.Error(*node.Find("code"), absl::StrCat(at, ".code"),
                           "is not a code of docs/verdict.md");
    }
    return absl::OkStatus();
  }

  absl::Status ReadSpread(const Json& node, const std::string& at, SpreadExpectation& out) const {
    out.place = node.place();
    FAIRLEAD_RETURN_IF_ERROR(reader_.Map(
        node, at,
        {{"pods", [&](const Json& value,
                      const std::string& field) { return ReadPods(value, field, out.pods); }},
         {"by", reader_.Text(&out.label)},
         {"counts",
          [&](const Json& value, const std::string& field) {
            return reader_.List(value, field, [&](const Json& item, const std::string& in) {
              return reader_.Integer(&out.counts.emplace_back(), 1)(item, in);
            });
          }}},
        {"pods", "by", "counts"}));
    std::sort(out.counts.begin(), out.counts.end());
    return absl::OkStatus();
  }

  const FieldReader& reader_;
  const std::map<ObjectRef, Json>& manifests_;
  std::set<ObjectRef> applied_;
};

}  // namespace

absl::StatusOr<std::vector<Step>> ReadSteps(const FieldReader& reader, const Json& steps,
                                            const std::map<ObjectRef, Json>& manifests) {
  return StepReader(reader, manifests).Read(steps);
}

}  // namespace fairlead::behaviours
