// The runner's own oracle: fed with KAI's recorded actions in every session of every case, it must
// find no difference. So the folding of rounds, the comparison and the call limits mean what the
// data mean, whatever the engine does.
//
// The data is outside the repository: FAIRLEAD_SHARED names the folder that has
// conformance/kai/*.json, by default ../shared. Without it the test skips and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/conformance/case_runner.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {
namespace {

std::filesystem::path DataFolder() {
  const char* shared = std::getenv("FAIRLEAD_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "conformance" / "kai";
}

// Its sessions are those of KAI's run of the case; after the recorded sessions KAI did nothing.
class Replay {
 public:
  explicit Replay(const Json& test) {
    const JsonView observed = JsonView(&test, "", &error_).At("observed");
    if (test.TextAt({"mode"}) == "single") {
      sessions_.push_back(observed);
    } else {
      sessions_ = observed.At("roundTrace").Items();
    }
    final_ = observed.At("pods").Members();
  }

  SessionResult Next(const SessionInput& input) {
    SessionResult result;
    const bool recorded = next_ < sessions_.size();
    const auto pods = recorded ? sessions_[next_].At("pods").Members() : final_;
    for (const auto& [name, pod] : pods) {
      PodOutcome& out = result.pods[KeyOf(input, name)];
      out.status = pod.At("status").Text();
      out.node = pod.At("node").Text();
      out.gpu_groups = pod.At("gpuGroups").Texts();
    }
    if (recorded) {
      for (const JsonView& event : sessions_[next_].At("events").Items()) {
        const std::string op = event.At("op").Text();
        result.events.push_back({op == "bind"    ? SessionEvent::Op::kBind
                                 : op == "evict" ? SessionEvent::Op::kEvict
                                                 : SessionEvent::Op::kPipeline,
                                 event.At("pod").Text(), event.At("node").Text()});
      }
    }
    ++next_;
    return result;
  }

 private:
  static std::string KeyOf(const SessionInput& input, const std::string& name) {
    for (const kube::Object& object : input.objects) {
      const auto* pod = std::get_if<model::Pod>(&object);
      if (pod != nullptr && pod->meta.name == name) return model::Key(pod->meta);
    }
    return name;
  }

  absl::Status error_;
  std::vector<JsonView> sessions_;
  std::vector<std::pair<std::string, JsonView>> final_;
  size_t next_ = 0;
};

TEST(KaiReplay, WhatKaiDidPassesEveryCase) {
  if (!std::filesystem::exists(DataFolder())) {
    std::cerr << "SKIPPED: no conformance data in " << DataFolder()
              << "; set FAIRLEAD_SHARED to the folder that has conformance/kai\n";
    GTEST_SKIP();
  }
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DataFolder())) {
    if (entry.path().filename().string().rfind("actions__", 0) != 0) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    const absl::StatusOr<Json> file = ParseJson(text.str());
    ASSERT_TRUE(file.ok()) << entry.path() << ": " << file.status();
    for (const Json& json : file->items) {
      absl::StatusOr<SchedulingCase> test = ReadSchedulingCase(json);
      ASSERT_TRUE(test.ok()) << json.TextAt({"source"}) << ": " << test.status();
      EXPECT_THAT(test->notes, ::testing::IsEmpty()) << test->source;
      // The record lacks sums of requests, verdicts, and nodes of every round.
      test->expect.jobs.clear();
      test->expect.nodes.clear();
      auto replay = std::make_shared<Replay>(json);
      const CaseReport report = RunSchedulingCase(
          *test, [replay](const SessionInput& input) -> absl::StatusOr<SessionResult> {
            return replay->Next(input);
          });
      EXPECT_THAT(report.differences, ::testing::IsEmpty()) << test->source << "\n"
                                                            << absl::StrJoin(report.log, "\n");
      ++cases;
    }
  }
  EXPECT_EQ(cases, 397);
}

}  // namespace
}  // namespace fairlead::conformance
