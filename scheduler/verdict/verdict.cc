#include "scheduler/verdict/verdict.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "scheduler/verdict/json.h"

namespace fairlead::verdict {
namespace {

constexpr absl::string_view kPluginPrefix = "plugin ";

struct CodeRow {
  Code code;
  absl::string_view name;
  Category category;
  ResolvableBy by;
};

// In the order of the enum (checked by a test). kNone counts as policy: no node is ever provisioned
// for it. The hook's caps are kUserChange because an operator sets them.
constexpr CodeRow kCodes[] = {
    {Code::kNone, "None", Category::kPolicy, ResolvableBy::kTime},
    {Code::kInvalidRequest, "InvalidRequest", Category::kImpossible, ResolvableBy::kUserChange},
    {Code::kQueueNotFound, "QueueNotFound", Category::kPolicy, ResolvableBy::kQueueChange},
    {Code::kQueueNotLeaf, "QueueNotLeaf", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kMissingObject, "MissingObject", Category::kImpossible, ResolvableBy::kUserChange},
    {Code::kGated, "Gated", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kGangIncomplete, "GangIncomplete", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kSchedulingBackoff, "SchedulingBackoff", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kBindingRefused, "BindingRefused", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kQueueLimitReached, "QueueLimitReached", Category::kPolicy, ResolvableBy::kQueueChange},
    {Code::kNonPreemptibleOverQuota, "NonPreemptibleOverQuota", Category::kPolicy,
     ResolvableBy::kQueueChange},
    {Code::kOverFairShare, "OverFairShare", Category::kPolicy, ResolvableBy::kQueueChange},
    {Code::kPreemptionDelay, "PreemptionDelay", Category::kPolicy, ResolvableBy::kTime},
    {Code::kNoInstanceTypeFits, "NoInstanceTypeFits", Category::kImpossible,
     ResolvableBy::kUserChange},
    {Code::kTopologyInfeasible, "TopologyInfeasible", Category::kImpossible,
     ResolvableBy::kUserChange},
    {Code::kConstraintsUnsatisfiable, "ConstraintsUnsatisfiable", Category::kImpossible,
     ResolvableBy::kUserChange},
    {Code::kWaitingForVictims, "WaitingForVictims", Category::kCapacity, ResolvableBy::kPreemption},
    {Code::kNodesRequested, "NodesRequested", Category::kCapacity, ResolvableBy::kNodeScaleUp},
    {Code::kGpuCapReached, "GpuCapReached", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kCostCapReached, "CostCapReached", Category::kPolicy, ResolvableBy::kUserChange},
    {Code::kInsufficientCapacity, "InsufficientCapacity", Category::kCapacity,
     ResolvableBy::kNodeScaleUp},
};
static_assert(std::size(kCodes) == kCodeCount);

const CodeRow& Row(Code code) { return kCodes[static_cast<size_t>(code)]; }

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
         c == '/' || c == '$' || c == '%' || c == ',';
}

// Numbers, each with a unit of at most two letters ("Gi", "ms"), and what joins them: "1m30s".
bool IsAmount(absl::string_view word) {
  if (!word.empty() && word[0] == '$') word.remove_prefix(1);
  if (word.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(word[0]))) return false;
  int letters = 0;
  for (const char c : word) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      letters = 0;
    } else if (absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      if (++letters > 2) return false;
    } else if (c != '.' && c != ',' && c != '/' && c != '%') {
      return false;
    }
  }
  return true;
}

void AddSorted(StableHash& hash, std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  hash.Add(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) hash.Add(text);
}

void AddPredicates(StableHash& hash, const std::vector<FailedPredicate>& predicates) {
  // Predicates are listed by node count, which changes; they are hashed in a stable order.
  std::vector<std::string> texts;
  for (const FailedPredicate& p : predicates) {
    std::string text = p.plugin + '\n' + p.reason;
    std::vector<std::string> lacking;
    for (const MissingAmount& m : p.missing) lacking.push_back(m.resource);
    std::sort(lacking.begin(), lacking.end());
    for (const std::string& resource : lacking) text += '\n' + resource;
    texts.push_back(std::move(text));
  }
  AddSorted(hash, std::move(texts));
}

// Policy holds it whatever the nodes say: their reasons pass like numbers.
bool DependsOnNodes(Code code) { return CategoryOf(code) != Category::kPolicy; }

}  // namespace

absl::string_view CodeName(Code code) { return Row(code).name; }

std::optional<Code> ParseCode(absl::string_view name) {
  for (const CodeRow& row : kCodes) {
    if (row.name == name) return row.code;
  }
  return std::nullopt;
}

Category CategoryOf(Code code) { return Row(code).category; }

absl::string_view CategoryName(Category category) {
  switch (category) {
    case Category::kCapacity:
      return "capacity";
    case Category::kPolicy:
      return "policy";
    case Category::kImpossible:
      return "impossible";
  }
  return "";
}

absl::string_view ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kPod:
      return "pod";
    case Scope::kGang:
      return "gang";
    case Scope::kQueue:
      return "queue";
    case Scope::kCluster:
      return "cluster";
  }
  return "";
}

absl::string_view ResolvableByName(ResolvableBy by) {
  switch (by) {
    case ResolvableBy::kNodeScaleUp:
      return "NodeScaleUp";
    case ResolvableBy::kQueueChange:
      return "QueueChange";
    case ResolvableBy::kPreemption:
      return "Preemption";
    case ResolvableBy::kUserChange:
      return "UserChange";
    case ResolvableBy::kTime:
      return "Time";
  }
  return "";
}

ResolvableBy ResolvableByOf(Code code) { return Row(code).by; }

std::string Hash(const Verdict& v) {
  static const std::vector<FailedPredicate> kNoPredicates;
  StableHash hash;
  hash.Add(int64_t{kVocabularyVersion}).Add(CodeName(v.code)).Add(ScopeName(v.scope)).Add(v.queue);
  hash.Add(int64_t{v.queue_block.has_value()});
  if (v.queue_block.has_value()) {
    const QueueBlock& block = *v.queue_block;
    hash.Add(block.queue).Add(block.resource).Add(block.limit).Add(block.requested);
  }
  AddPredicates(hash, DependsOnNodes(v.code) ? v.failed_predicates : kNoPredicates);
  hash.Add(static_cast<int64_t>(v.unblockers.size()));
  for (const Unblocker& unblocker : v.unblockers) {
    hash.Add(ResolvableByName(unblocker.by)).Add(WithoutAmounts(unblocker.what));
  }
  hash.Add(static_cast<int64_t>(v.demand.size()));
  for (const DemandClass& demand : v.demand) hash.Add(DemandJson({demand.spec, 0, 0}));
  hash.Add(static_cast<int64_t>(v.details.size()));
  for (const std::string& detail : v.details) hash.Add(WithoutAmounts(detail));
  AddSorted(hash, v.node_requests);
  hash.Add(v.subject);
  hash.Add(int64_t{v.until.has_value()});
  if (v.until.has_value()) hash.Add(absl::ToUnixSeconds(*v.until));
  hash.Add(v.min_member).Add(v.observed_generation);
  if (!v.estimate.empty()) hash.Add(v.estimate);
  return hash.Hex();
}

std::string WithoutAmounts(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    // Punctuation that ends a sentence or a clause is not part of the word.
    size_t word_end = end;
    while (word_end > at && (text[word_end - 1] == '.' || text[word_end - 1] == ',')) --word_end;
    const absl::string_view word = text.substr(at, word_end - at);
    if (IsAmount(word)) {
      out += '#';
    } else {
      out.append(word.data(), word.size());
    }
    out.append(text.data() + word_end, end - word_end);
    at = end;
  }
  return out;
}

bool SameButForPassingNumbers(const Verdict& a, const Verdict& b) {
  const auto same_block = [&] {
    if (a.queue_block.has_value() != b.queue_block.has_value()) return false;
    if (!a.queue_block.has_value()) return true;
    const QueueBlock& x = *a.queue_block;
    const QueueBlock& y = *b.queue_block;
    return x.limit == y.limit && x.requested == y.requested && x.resource == y.resource &&
           x.queue == y.queue;
  };
  const auto same_predicate = [](const FailedPredicate& x, const FailedPredicate& y) {
    return x.plugin == y.plugin && x.reason == y.reason &&
           std::equal(x.missing.begin(), x.missing.end(), y.missing.begin(), y.missing.end(),
                      [](const MissingAmount& m, const MissingAmount& n) {
                        return m.resource == n.resource;
                      });
  };
  const auto same_demand = [](const DemandClass& x, const DemandClass& y) {
    return x.spec == y.spec;
  };
  return a.code == b.code && a.scope == b.scope && a.min_member == b.min_member &&
         a.observed_generation == b.observed_generation && a.until == b.until && same_block() &&
         a.queue == b.queue && a.subject == b.subject && a.estimate == b.estimate &&
         a.unblockers == b.unblockers && a.details == b.details &&
         a.node_requests == b.node_requests &&
         std::equal(a.demand.begin(), a.demand.end(), b.demand.begin(), b.demand.end(),
                    same_demand) &&
         (!DependsOnNodes(a.code) ||
          std::equal(a.failed_predicates.begin(), a.failed_predicates.end(),
                     b.failed_predicates.begin(), b.failed_predicates.end(), same_predicate));
}

// Two lines, the second with the help.
std::string HeldByPlugin(absl::string_view plugin, absl::string_view why, absl::string_view help) {
  std::string subject = absl::StrCat(kPluginPrefix, plugin, ": ", why);
  std::replace(subject.begin(), subject.end(), '\n', ' ');
  if (!help.empty()) absl::StrAppend(&subject, "\n", help);
  return subject;
}

absl::string_view WhyHeld(absl::string_view subject) {
  return subject.substr(0, subject.find('\n'));
}

absl::string_view HelpIfHeld(absl::string_view subject) {
  const size_t line = subject.find('\n');
  return line == absl::string_view::npos ? "" : subject.substr(line + 1);
}

absl::string_view PluginThatHolds(absl::string_view subject) {
  if (!absl::ConsumePrefix(&subject, kPluginPrefix)) return "";
  return subject.substr(0, subject.find(": "));
}

bool IsExpected(const Verdict& verdict) {
  switch (verdict.code) {
    case Code::kQueueLimitReached:
      return verdict.queue_block.has_value() &&
             verdict.queue_block->requested <= verdict.queue_block->limit;
    case Code::kGated:
    case Code::kGangIncomplete:
    case Code::kPreemptionDelay:
    case Code::kWaitingForVictims:
    case Code::kNodesRequested:
      return true;
    default:
      return false;
  }
}

absl::string_view ConditionReason(Code code, bool hook_on) {
  if (CategoryOf(code) == Category::kCapacity && !hook_on) return "Unschedulable";
  return CodeName(code);
}

bool IsFailedAttempt(Code code) {
  switch (code) {
    case Code::kNone:
    case Code::kInvalidRequest:
    case Code::kGated:
    case Code::kGangIncomplete:
    case Code::kSchedulingBackoff:
    case Code::kBindingRefused:
    case Code::kWaitingForVictims:
    case Code::kNodesRequested:
      return false;
    default:
      return true;
  }
}

}  // namespace fairlead::verdict
