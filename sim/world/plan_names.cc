// Names at the API's limits, texts that are not ASCII, and amounts in every notation.
#include "sim/world/plan_draft.h"

namespace fairlead::sim::world {
namespace {

constexpr size_t kMaxName = 253;
constexpr size_t kMaxNumber = 6;  // that a controller appends to the name of a job

// That ends with `end`, and has `length` characters.
std::string LongName(const std::string& end, size_t length) {
  std::string name;
  while (name.size() + end.size() + 1 < length) name += name.size() % 50 == 49 ? '.' : 'x';
  while (!name.empty() && name.back() == '.') name.back() = 'x';
  return name + "." + end;
}

}  // namespace

std::string PlanTenants::HostileName() {
  const std::string number = absl::StrCat(7 + hostile_names_++);
  switch (random_.Below(5)) {
    case 0:
      return LongName(absl::StrCat("h", number), kMaxName - kMaxNumber);
    case 1:
      return absl::StrCat("1000", number);
    case 2:
      return LongName(absl::StrCat("h", number), 63 - kMaxNumber);
    case 3:
      return absl::StrCat("a.b-c.0", number, ".d");
    default:  // equal but for the digits
      return absl::StrCat("train-", number);
  }
}

void PlanTenants::Names() {
  static const std::vector<std::string> kNotes = {
      "\xd0\xb7\xd0\xb0\xd0\xb4\xd0\xb0\xd1\x87\xd0\xb0", "\xf0\x9f\x9a\x80 \"go\"\n\t\\",
      "\xe2\x80\xa8\x01\x7f", "{\"a\":[null]}"};
  static const std::vector<std::string> kCpu = {"0.1", "100e-3", "1e0", "1500000u", "1.5"};
  static const std::vector<std::string> kMemory = {"1.5Gi", "1e9", "0.001T", "536870912",
                                                   "1000000k"};
  const std::vector<std::string> queues = {LongName("q", kMaxName), "42", LongName("p", 63),
                                           Any(queues_)};
  for (size_t i = 0; i + 1 < queues.size(); ++i) Queue(At(0, "queue"), queues[i]);
  const bool has_node = OneIn(2);
  const std::string node = LongName("n", kMaxName);
  if (has_node) {
    At(0, "node").With("name", node).With("cpu", 16'000).With("memory", 64 * kGiB).With("gpu", 8);
  }
  Times(4, 10, [&] {
    const std::string name = HostileName(), queue = Any(queues);
    const bool group = queue.size() > 63 || OneIn(2);
    Operation& job = At(random_.Between(500, plan_.end_ms - 5 * kSecond), "job");
    job.With("name", name).With("ns", OneIn(2) ? "team-a" : "team-b").With("queue", queue);
    const int64_t pods = random_.Between(1, 4);
    job.With("pods", pods).With("grouping", group ? "own" : "none");
    job.With("min", OneIn(2) ? pods : 1).With("run", random_.Between(3, 25));
    job.With("note", Any(kNotes)).With("cpu_text", Any(kCpu)).With("memory_text", Any(kMemory));
    if (OneIn(3)) {
      job.With("fraction", "0.5");
    } else {
      job.With("gpu", random_.Between(0, 2));
    }
    if (OneIn(3)) job.With("class", "high");
  });
  Times(0, 2, [&] {
    At(Sometime(), "annotate-pods")
        .With("job", Any(jobs_))
        .With("key", "example.com/note")
        .With("value", Any(kNotes));
  });
}

}  // namespace fairlead::sim::world
