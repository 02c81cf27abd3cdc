#include "tests/conformance/case_runner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/model/api_names.h"
#include "tests/conformance/world.h"

namespace fairlead::conformance {
namespace {

// KAI rounds the sums of its tables; a thousandth of a device is below their resolution.
constexpr int64_t kMilliGpuTolerance = 1;

std::string StatusAt(absl::string_view status, absl::string_view node) {
  return node.empty() ? std::string(status) : absl::StrCat(status, " on ", node);
}

std::string Devices(int64_t milli_gpus) {
  return absl::StrCat(static_cast<double>(milli_gpus) / 1000, " GPUs");
}

const char* OpName(SessionEvent::Op op) {
  switch (op) {
    case SessionEvent::Op::kBind:
      return "bind";
    case SessionEvent::Op::kEvict:
      return "evict";
    case SessionEvent::Op::kPipeline:
      return "pipeline";
  }
  return "";
}

class Run {
 public:
  Run(const SchedulingCase& test, const SessionRunner& run_session)
      : test_(test), run_session_(run_session), world_(test) {}

  CaseReport Do();

 private:
  bool Round(const std::string& label);
  void Differ(const std::string& text) { report_.differences.push_back(label_ + text); }
  bool Resolve();
  void CompareLimits();
  void CompareLimit(SessionEvent::Op op, const std::optional<int64_t>& most,
                    absl::string_view what);
  void ComparePods(const std::map<std::string, PodOutcome>& pods);
  void CompareZones(const std::string& name, const ExpectedPod& expected, const PodOutcome& got);
  void CompareNodes(const std::map<std::string, NodeOutcome>& nodes);
  void CompareFoldedNodes();
  void CompareJobs();
  void CompareSums(const std::string& name, const ExpectedJob& expected, const std::string& key);
  void CompareVerdict(const std::string& name, const ExpectedJob& expected, const std::string& key);
  void CompareStart(const std::string& name, const ExpectedJob& expected, const std::string& key);
  void Log();

  const SchedulingCase& test_;
  const SessionRunner& run_session_;
  World world_;
  SessionResult last_;
  std::string label_;                        // "round 3: ", before every line
  std::map<std::string, std::string> keys_;  // of expected pods
  CaseReport report_;
};

bool Run::Resolve() {
  for (const auto& [name, expected] : test_.expect.pods) {
    const absl::StatusOr<std::string> key = world_.PodKey(name);
    if (!key.ok()) {
      Differ(absl::StrCat("expect.pods: ", key.status().message()));
      return false;
    }
    keys_[name] = *key;
  }
  return true;
}

bool Run::Round(const std::string& label) {
  label_ = label;
  absl::StatusOr<SessionInput> input = world_.MakeInput(test_.actions);
  if (!input.ok()) {
    Differ(std::string(input.status().message()));
    return false;
  }
  absl::StatusOr<SessionResult> result = run_session_(*input);
  if (!result.ok()) {
    Differ(std::string(result.status().message()));
    return false;
  }
  last_ = *std::move(result);
  Log();
  CompareLimits();
  return true;
}

void Run::Log() {
  std::vector<std::string> events;
  for (const SessionEvent& event : last_.events) {
    events.push_back(absl::StrCat(OpName(event.op), " ", event.pod,
                                  event.op == SessionEvent::Op::kEvict ? " from " : " to ",
                                  event.node));
  }
  report_.log.push_back(
      absl::StrCat(label_, events.empty() ? "nothing done" : absl::StrJoin(events, ", ")));
  for (const auto& [key, code] : last_.verdicts) {
    report_.log.push_back(absl::StrCat(label_, key, " waits: ", code));
  }
  for (const std::string& note : last_.notes) report_.log.push_back(label_ + note);
}

void Run::CompareLimit(SessionEvent::Op op, const std::optional<int64_t>& most,
                       absl::string_view what) {
  if (!most.has_value()) return;
  std::vector<std::string> pods;
  for (const SessionEvent& event : last_.events) {
    if (event.op == op) pods.push_back(event.pod);
  }
  if (static_cast<int64_t>(pods.size()) <= *most) return;
  Differ(absl::StrCat(what, " in one session: expected at most ", *most, ", got ", pods.size(),
                      " (", absl::StrJoin(pods, ", "), ")"));
}

void Run::CompareLimits() {
  const CallLimits& limits = test_.expect.limits;
  CompareLimit(SessionEvent::Op::kBind, limits.binds, "bindings");
  CompareLimit(SessionEvent::Op::kEvict, limits.evictions, "evictions");
  CompareLimit(SessionEvent::Op::kPipeline, limits.pipelines, "promises");
}

void Run::ComparePods(const std::map<std::string, PodOutcome>& pods) {
  for (const auto& [name, expected] : test_.expect.pods) {
    const auto got = pods.find(keys_.at(name));
    const std::string wanted = StatusAt(expected.status, expected.node.value_or(""));
    if (got == pods.end()) {
      Differ(absl::StrCat("pod ", name, ": expected ", wanted, ", got no such pod"));
      continue;
    }
    // KAI's name for a placement between the decision and the commit.
    const std::string& status = expected.status == "Allocated" ? "Binding" : expected.status;
    const bool same_node = !expected.node.has_value() || *expected.node == got->second.node;
    if (got->second.status == status && same_node) {
      CompareZones(name, expected, got->second);
      continue;
    }
    Differ(absl::StrCat("pod ", name, ": expected ", wanted, ", got ",
                        StatusAt(got->second.status, got->second.node)));
  }
}

void Run::CompareZones(const std::string& name, const ExpectedPod& expected,
                       const PodOutcome& got) {
  if (!expected.numa_zones.has_value() || *expected.numa_zones == got.numa_positions) return;
  Differ(absl::StrCat("pod ", name, ": expected NUMA nodes [",
                      absl::StrJoin(*expected.numa_zones, ", "), "], got [",
                      absl::StrJoin(got.numa_positions, ", "), "]"));
}

void Run::CompareNodes(const std::map<std::string, NodeOutcome>& nodes) {
  for (const auto& [name, expected] : test_.expect.nodes) {
    const auto got = nodes.find(name);
    if (got == nodes.end()) {
      Differ(absl::StrCat("node ", name, ": there is none"));
      continue;
    }
    const auto compare = [&](const std::optional<int64_t>& wanted, int64_t have,
                             absl::string_view what) {
      if (!wanted.has_value() || *wanted == have) return;
      Differ(absl::StrCat("node ", name, ": expected ", Devices(*wanted), " ", what, ", got ",
                          Devices(have)));
    };
    compare(expected.idle_milli_gpus, got->second.idle_milli_gpus, "idle");
    compare(expected.releasing_milli_gpus, got->second.releasing_milli_gpus, "being released");
    for (const auto& [position, amounts] : expected.numa_available) {
      const auto& zones = got->second.numa_available;
      for (const auto& [resource, amount] : amounts) {
        const bool known = position >= 0 && position < static_cast<int64_t>(zones.size());
        const int64_t have =
            known ? model::Get(zones[static_cast<size_t>(position)], resource) : -1;
        if (have == amount) continue;
        Differ(absl::StrCat("node ", name, ": expected ", model::FormatQuantity(resource, amount),
                            " ", resource, " free on NUMA node ", position, ", got ",
                            known ? model::FormatQuantity(resource, have) : "no such NUMA node"));
      }
    }
  }
}

void Run::CompareFoldedNodes() {
  if (test_.expect.nodes.empty()) return;
  const absl::StatusOr<SessionInput> input = world_.MakeInput({});
  if (!input.ok()) return Differ(std::string(input.status().message()));
  const absl::StatusOr<SessionResult> look = run_session_(*input);
  if (!look.ok()) return Differ(std::string(look.status().message()));
  CompareNodes(look->nodes);
}

void Run::CompareSums(const std::string& name, const ExpectedJob& expected,
                      const std::string& key) {
  PodOutcome sum;
  std::optional<int64_t> accepted;
  for (const std::string& pod : world_.PodsOf(key)) {
    const auto got = last_.pods.find(pod);
    if (got == last_.pods.end()) continue;
    sum.milli_gpus += got->second.milli_gpus;
    sum.milli_cpus += got->second.milli_cpus;
    sum.memory_bytes += got->second.memory_bytes;
    if (!got->second.node.empty()) accepted = accepted.value_or(0) + got->second.milli_gpus;
  }
  const auto gpus = [&](const std::optional<int64_t>& wanted, int64_t have,
                        absl::string_view verb) {
    if (!wanted.has_value() || std::abs(*wanted - have) <= kMilliGpuTolerance) return;
    Differ(absl::StrCat("job ", name, ": expected to ", verb, " ", Devices(*wanted), ", got ",
                        Devices(have)));
  };
  gpus(expected.milli_gpus, sum.milli_gpus, "ask for");
  // KAI also has the row for jobs that hold nothing, and ignores it there.
  if (accepted.has_value()) gpus(expected.accepted_milli_gpus, *accepted, "hold");
  if (expected.milli_cpus.has_value() && *expected.milli_cpus != sum.milli_cpus) {
    Differ(absl::StrCat("job ", name, ": expected to ask for ", *expected.milli_cpus,
                        " milli-CPU, got ", sum.milli_cpus));
  }
  if (expected.memory_bytes.has_value() && *expected.memory_bytes != sum.memory_bytes) {
    Differ(absl::StrCat("job ", name, ": expected to ask for ", *expected.memory_bytes,
                        " bytes of memory, got ", sum.memory_bytes));
  }
}

void Run::CompareVerdict(const std::string& name, const ExpectedJob& expected,
                         const std::string& key) {
  if (expected.error_message.empty()) return;
  const std::vector<std::string> codes = CodesFor(expected.error_message);
  if (codes.empty()) {
    report_.log.push_back(
        absl::StrCat("job ", name, ": no verdict is known for: ", expected.error_message));
    return;
  }
  const auto got = last_.verdicts.find(key);
  const std::string code = got == last_.verdicts.end() ? "none" : got->second;
  if (std::find(codes.begin(), codes.end(), code) != codes.end()) return;
  Differ(absl::StrCat("job ", name, ": expected the verdict ", absl::StrJoin(codes, " or "),
                      ", got ", code));
}

void Run::CompareStart(const std::string& name, const ExpectedJob& expected,
                       const std::string& key) {
  if (!expected.last_start_older_than.has_value()) return;
  const std::string text = world_.GroupAnnotation(key, model::kLastStartAnnotation);
  absl::Time start;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &start, &error) &&
      test_.now - start >= *expected.last_start_older_than) {
    return;
  }
  Differ(absl::StrCat("job ", name, ": expected to have started at least ",
                      absl::FormatDuration(*expected.last_start_older_than), " ago, got ",
                      text.empty() ? "no start" : text));
}

void Run::CompareJobs() {
  for (const auto& [name, expected] : test_.expect.jobs) {
    const absl::StatusOr<std::string> key = world_.GroupKey(name);
    // A job of single pods has no group to check.
    if (!key.ok()) continue;
    CompareSums(name, expected, *key);
    CompareVerdict(name, expected, *key);
    CompareStart(name, expected, *key);
  }
}

CaseReport Run::Do() {
  report_.log = test_.notes;
  if (!Resolve()) return std::move(report_);
  if (!test_.rounds) {
    if (!Round("")) return std::move(report_);
    ComparePods(last_.pods);
    CompareNodes(last_.nodes);
    CompareJobs();
    report_.pods = last_.pods;
    return std::move(report_);
  }
  for (int64_t round = 1; round <= test_.until_match; ++round) {
    if (!Round(absl::StrCat("round ", round, ": "))) return std::move(report_);
    const absl::StatusOr<std::map<std::string, PodOutcome>> folded = world_.Fold(last_);
    if (!folded.ok()) {
      Differ(std::string(folded.status().message()));
      return std::move(report_);
    }
    if (round < test_.until_match) continue;
    label_ = absl::StrCat("after round ", round, ": ");
    ComparePods(*folded);
    CompareFoldedNodes();
    CompareJobs();
  }
  // A wrong match would be reported again in every later round.
  for (int64_t i = 1; i <= test_.after_match && report_.differences.empty(); ++i) {
    if (!Round(absl::StrCat("round ", test_.until_match + i, " (nothing may change): "))) break;
    ComparePods(last_.pods);
    CompareNodes(last_.nodes);
    CompareJobs();
    const auto folded = world_.Fold(last_);
    if (!folded.ok()) Differ(std::string(folded.status().message()));
  }
  return std::move(report_);
}

}  // namespace

CaseReport RunSchedulingCase(const SchedulingCase& test, const SessionRunner& run_session) {
  return Run(test, run_session).Do();
}

}  // namespace fairlead::conformance
