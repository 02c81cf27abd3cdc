#include "scheduler/verdict/text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"
#include "scheduler/verdict/nodes_available.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::verdict {
namespace {

constexpr size_t kMaxBytes = 1024;
constexpr char kEllipsis[] = "\xE2\x80\xA6";
constexpr size_t kMaxNamesShown = 3;

// What a code says (one sentence, no full stop), and the advice for a verdict without unblockers.
struct Words {
  std::string fact;
  std::vector<std::string> advice;  // best first
};

bool IsGang(const Verdict& v) { return v.min_member > 1; }

int64_t PodsWithoutPlace(const Verdict& v) {
  int64_t count = 0;
  for (const DemandClass& d : v.demand) count += d.count;
  return count > 0 ? count : v.pods_waiting;
}

std::string QueueName(const Verdict& v) {
  return absl::StrCat("queue ", v.queue.empty() ? "(unnamed)" : v.queue);
}

// "queue research", or "queue dept (above queue research)".
std::string BlockingQueue(const Verdict& v) {
  const QueueBlock& block = *v.queue_block;
  if (block.queue.empty() || block.queue == v.queue) return QueueName(v);
  return absl::StrCat("queue ", block.queue, " (above ", QueueName(v), ")");
}

std::string BareBlockingQueue(const Verdict& v) {
  const std::string& queue = v.queue_block->queue;
  return queue.empty() ? QueueName(v) : absl::StrCat("queue ", queue);
}

std::string Capital(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

int64_t Needed(const QueueBlock& block) {
  const int64_t taken = model::SaturatingAdd(std::max<int64_t>(block.used, 0), block.promised);
  return model::SaturatingAdd(taken, block.requested);
}

// "8 in use, 2 promised to workloads that come first, 1 requested".
std::string Parts(const QueueBlock& block, absl::string_view in_use) {
  std::string text = absl::StrCat(model::FormatAmount(block.resource, block.used), in_use);
  if (block.promised > 0) {
    absl::StrAppend(&text, ", ", model::FormatAmount(block.resource, block.promised),
                    " promised to workloads that come first");
  }
  return absl::StrCat(text, ", ", model::FormatAmount(block.resource, block.requested),
                      " requested");
}

std::string InUse(const QueueBlock& block) { return Parts(block, " in use"); }

// "3 of the gang's 8 pods have no place: ", or nothing for a single pod.
std::string GangPrefix(const Verdict& v) {
  const int64_t count = PodsWithoutPlace(v);
  if (IsGang(v)) {
    const int64_t all = std::max(v.min_member, v.pods_waiting + v.pods_running);
    if (count == 0 || count > all) {
      return absl::StrCat("The gang needs places for ", Count(v.min_member, "pod", "pods"),
                          " at once: ");
    }
    return absl::StrCat(count, " of the gang's ", Count(all, "pod", "pods"),
                        count == 1 ? " has" : " have", " no place (", v.min_member,
                        " must start together): ");
  }
  return count > 1 ? absl::StrCat(count, " pods have no place: ") : "";
}

std::string NodeFor(const Verdict& v) {
  if (v.demand.empty() || v.demand[0].spec == nullptr) return "a node that fits";
  return absl::StrCat("a node with ", RequestText(*v.demand[0].spec), " free");
}

std::string EachPod(const Verdict& v) {
  if (v.demand.empty() || v.demand[0].spec == nullptr) return "the pod";
  return absl::StrCat("a pod that requests ", RequestText(*v.demand[0].spec));
}

Words InvalidRequest(const Verdict& v) {
  const absl::string_view what = v.scope == Scope::kPod ? "pod" : "workload";
  return {
      absl::StrCat("The ", what, " is not valid: ",
                   v.subject.empty() ? "a field of it cannot be understood" : v.subject),
      {"correct the field where the object is made (most fields of a pod cannot be edited, so it "
       "has to be created again)"}};
}

Words QueueNotFound(const Verdict& v) {
  if (!v.subject.empty()) {
    return {absl::StrCat(Capital(QueueName(v)), " cannot be used: ", v.subject),
            {"correct that queue",
             absl::StrCat("set label ", model::kQueueLabel, " to another queue")}};
  }
  return {absl::StrCat(Capital(QueueName(v)), " does not exist"),
          {"create it", absl::StrCat("set label ", model::kQueueLabel, " to a queue that exists")}};
}

Words QueueNotLeaf(const Verdict& v) {
  return {absl::StrCat(Capital(QueueName(v)),
                       " has queues below it, and workloads run only in queues without any"),
          {absl::StrCat("set label ", model::kQueueLabel, " to one of the queues below it")}};
}

Words MissingObject(const Verdict& v) {
  return {absl::StrCat(v.subject.empty() ? "An object that the pod refers to" : v.subject,
                       " does not exist"),
          {"create it, or remove the reference from the pod's template"}};
}

std::string GatesIn(const Verdict& v) {
  return v.subject.empty() ? "scheduling gates"
                           : absl::StrCat("scheduling gates (", v.subject, ")");
}

Words Gated(const Verdict& v) {
  const int64_t count = std::max<int64_t>(1, v.pods_waiting);
  const std::string held = count == 1 ? "The pod is" : absl::StrCat(count, " pods are");
  if (!PluginThatHolds(v.subject).empty()) {
    const absl::string_view help = HelpIfHeld(v.subject);
    return {absl::StrCat(held, " held back by ", WhyHeld(v.subject)),
            {help.empty() ? "wait until the plugin lets it in" : std::string(help)}};
  }
  return {absl::StrCat(held, " held by ", GatesIn(v)),
          {"let the controller that set the gates remove them from spec.schedulingGates"}};
}

std::string HeldSentence(absl::string_view subject) {
  const absl::string_view help = HelpIfHeld(subject);
  return absl::StrCat("Held back by ", WhyHeld(subject),
                      help.empty() ? "" : "; what helps: ", help);
}

Words GangIncomplete(const Verdict& v) {
  const int64_t have = v.pods_waiting + v.pods_running;
  const int64_t lack = std::max<int64_t>(0, v.min_member - have);
  std::string fact =
      absl::StrCat("The gang starts with ", Count(v.min_member, "pod", "pods"), " and has ", have);
  if (v.pods_running > 0) {
    absl::StrAppend(&fact, " (", v.pods_running, " running, ", v.pods_waiting, " waiting)");
  }
  if (lack == 0)
    return {fact, {"check the sizes of its subgroups and the scheduling gates of its pods"}};
  return {fact,
          {absl::StrCat("create ", lack, " more ", lack == 1 ? "pod" : "pods",
                        " (see the events of the controller that makes them)"),
           "lower minMember of the pod group"}};
}

Words SchedulingBackoff(const Verdict& v) {
  return {absl::StrCat("The group had one attempt (schedulingBackoff 1)",
                       v.subject.empty() ? "" : absl::StrCat(" in node pool ", v.subject),
                       ", which failed; it will not be retried there"),
          {absl::StrCat("move it to another node pool (label ", model::kNodePoolLabel,
                        " of the PodGroup)"),
           "set its schedulingBackoff to -1"}};
}

Words BindingRefused(const Verdict& v) {
  return {absl::StrCat("The API server refused the binding of ",
                       v.subject.empty() ? "a pod" : v.subject),
          {"remove what refuses it (admission webhook, quota, permission)",
           "wait: it is retried with growing pauses"}};
}

Words QueueLimitReached(const Verdict& v) {
  if (!v.queue_block.has_value()) {
    return {absl::StrCat(Capital(QueueName(v)), " has reached a limit"),
            {"raise the limit of the queue or wait for its workloads to end"}};
  }
  const QueueBlock& block = *v.queue_block;
  const std::string queue = BlockingQueue(v);
  const std::string limit = AmountText(block.resource, block.limit);
  const std::string raise =
      absl::StrCat("raise the limit of ", BareBlockingQueue(v), " to at least ",
                   AmountText(block.resource, Needed(block)));
  if (block.requested > block.limit) {
    const absl::string_view omitted = block.limit == 0 ? " (an omitted limit means 0)" : "";
    return {
        absl::StrCat("The workload requests ", AmountText(block.resource, block.requested),
                     ", more than the whole limit of ", queue, ", ", limit, omitted),
        {absl::StrCat("raise that limit to at least ", AmountText(block.resource, Needed(block))),
         "request less"}};
  }
  const int64_t excess = Needed(block) - block.limit;
  const std::string wait =
      absl::StrCat("wait until ", AmountText(block.resource, excess), " of that queue ",
                   model::FormatAmount(block.resource, excess) == "1" ? "is" : "are", " released");
  if (model::SaturatingAdd(block.used, block.promised) >= block.limit) {
    return {absl::StrCat(Capital(queue), " has reached its limit of ", limit, ": ", InUse(block)),
            {raise, wait}};
  }
  return {absl::StrCat("The workload would take ", queue, " over its limit of ", limit, ": ",
                       InUse(block)),
          {raise, wait}};
}

Words NonPreemptibleOverQuota(const Verdict& v) {
  const std::string preemptible = absl::StrCat("make the workload preemptible (label ",
                                               model::kPreemptibilityLabel, ": preemptible)");
  if (!v.queue_block.has_value()) {
    return {absl::StrCat("A non-preemptible workload must stay within the quota of ", QueueName(v)),
            {preemptible, "raise the quota of the queue"}};
  }
  const QueueBlock& block = *v.queue_block;
  return {absl::StrCat("Non-preemptible workloads must stay within the quota of ", BlockingQueue(v),
                       ", ", AmountText(block.resource, block.limit), ": ",
                       Parts(block, " in use by them")),
          {preemptible, absl::StrCat("raise the quota of ", BareBlockingQueue(v), " to at least ",
                                     AmountText(block.resource, Needed(block)))}};
}

Words OverFairShare(const Verdict& v) {
  const std::string wait = "wait until other queues need less";
  if (!v.queue_block.has_value()) {
    return {absl::StrCat(Capital(QueueName(v)), " is held at its fair share"),
            {wait, "raise the quota or the over-quota weight of the queue"}};
  }
  const QueueBlock& block = *v.queue_block;
  return {
      absl::StrCat(Capital(BlockingQueue(v)), " is held at its fair share of ",
                   AmountText(block.resource, block.limit), ": ", InUse(block)),
      {wait, absl::StrCat("raise the quota or the over-quota weight of ", BareBlockingQueue(v))}};
}

Words PreemptionDelay(const Verdict& v) {
  std::string fact = "No capacity is free, and the workload may not evict others yet";
  if (IsFinite(v.until)) absl::StrAppend(&fact, " (not before ", TimeText(*v.until), ")");
  return {
      fact,
      {"wait (it runs sooner if capacity becomes free)",
       absl::StrCat("set a shorter delay (annotation ", model::kPreemptionDelayAnnotation, ")")}};
}

// "no instance type on offer can run a pod that requests 1 GPU with its node selector". The hook
// says in the subject what of the pod keeps it off types that could run it otherwise.
std::string NoOffer(const Verdict& v) {
  return absl::StrCat("no instance type on offer can run ", EachPod(v),
                      v.subject.empty() ? "" : absl::StrCat(" with ", v.subject));
}

std::vector<std::string> HelpWithOffers(const Verdict& v) {
  if (v.subject.empty()) {
    return {"request less in one pod", "allow larger instance types in a NodePool"};
  }
  return {absl::StrCat("change ", v.subject), "add the labels that it asks for to a NodePool"};
}

Words NoInstanceTypeFits(const Verdict& v) { return {Capital(NoOffer(v)), HelpWithOffers(v)}; }

Words TopologyInfeasible(const Verdict& v) {
  return {
      absl::StrCat("The required topology placement",
                   v.subject.empty() ? "" : absl::StrCat(" (", v.subject, ")"), " cannot be met"),
      {"require a wider level, or only prefer this one", "make the gang smaller"}};
}

Words ConstraintsUnsatisfiable(const Verdict& v) {
  return {absl::StrCat("No node can run the pod, even when empty",
                       v.subject.empty() ? "" : absl::StrCat(" (", v.subject, ")")),
          {"change the pod's node selector, affinity, tolerations or request",
           "label or untaint a node for it"}};
}

Words WaitingForVictims(const Verdict& v) {
  std::string fact = "Waiting for evicted pods to terminate";
  if (IsFinite(v.expected_at)) absl::StrAppend(&fact, ", expected at ", TimeText(*v.expected_at));
  return {fact, {}};
}

Words NodesRequested(const Verdict& v) {
  std::string fact = "Waiting for requested nodes";
  if (!v.node_requests.empty()) {
    const auto count = static_cast<int64_t>(v.node_requests.size());
    fact = absl::StrCat("Waiting for ", Count(count, "requested node", "requested nodes"), " (",
                        AndList(v.node_requests, kMaxNamesShown), ")");
  }
  if (IsFinite(v.expected_at)) absl::StrAppend(&fact, ", expected at ", TimeText(*v.expected_at));
  return {fact, {}};
}

Words GpuCapReached(const Verdict& v) {
  return {absl::StrCat(GangPrefix(v),
                       "a new node would help, but the GPU cap of the autoscaler "
                       "forbids it"),
          {"raise the GPU cap of the autoscaler", "wait for other workloads to end"}};
}

Words CostCapReached(const Verdict& v) {
  return {absl::StrCat(GangPrefix(v),
                       "a new node would help, but the cost cap of the autoscaler "
                       "forbids it"),
          {"raise the cost cap of the autoscaler", "allow cheaper instance types",
           "wait for other workloads to end"}};
}

// What the nodes said is told before it.
Words InsufficientCapacity(const Verdict& v) {
  std::string fact = GangPrefix(v);
  if (!RestsOnNodes(v)) {
    absl::StrAppend(&fact, "no node fits");
  } else {
    absl::string_view whose = fact;
    absl::ConsumeSuffix(&whose, ": ");
    std::vector<std::string> facts = {std::string(whose), ShortageText(v.failed_predicates),
                                      DetailsText(v.failed_predicates)};
    facts.erase(std::remove(facts.begin(), facts.end(), ""), facts.end());
    fact = absl::StrJoin(facts, ". ");
  }
  return {fact, {absl::StrCat("add ", NodeFor(v))}};
}

Words WordsOf(const Verdict& v) {
  switch (v.code) {
    case Code::kNone:
      return {"Nothing keeps it waiting", {}};
    case Code::kInvalidRequest:
      return InvalidRequest(v);
    case Code::kQueueNotFound:
      return QueueNotFound(v);
    case Code::kQueueNotLeaf:
      return QueueNotLeaf(v);
    case Code::kMissingObject:
      return MissingObject(v);
    case Code::kGated:
      return Gated(v);
    case Code::kGangIncomplete:
      return GangIncomplete(v);
    case Code::kSchedulingBackoff:
      return SchedulingBackoff(v);
    case Code::kBindingRefused:
      return BindingRefused(v);
    case Code::kQueueLimitReached:
      return QueueLimitReached(v);
    case Code::kNonPreemptibleOverQuota:
      return NonPreemptibleOverQuota(v);
    case Code::kOverFairShare:
      return OverFairShare(v);
    case Code::kPreemptionDelay:
      return PreemptionDelay(v);
    case Code::kNoInstanceTypeFits:
      return NoInstanceTypeFits(v);
    case Code::kTopologyInfeasible:
      return TopologyInfeasible(v);
    case Code::kConstraintsUnsatisfiable:
      return ConstraintsUnsatisfiable(v);
    case Code::kWaitingForVictims:
      return WaitingForVictims(v);
    case Code::kNodesRequested:
      return NodesRequested(v);
    case Code::kGpuCapReached:
      return GpuCapReached(v);
    case Code::kCostCapReached:
      return CostCapReached(v);
    case Code::kInsufficientCapacity:
      return InsufficientCapacity(v);
  }
  return {};
}

// The position helps only if the queue order decides when the workload runs.
bool ShowsPosition(Code code) {
  switch (code) {
    case Code::kQueueLimitReached:
    case Code::kNonPreemptibleOverQuota:
    case Code::kOverFairShare:
    case Code::kPreemptionDelay:
    case Code::kGpuCapReached:
    case Code::kCostCapReached:
    case Code::kInsufficientCapacity:
      return true;
    default:
      return false;
  }
}

// Not more bytes than a message may have, and valid UTF-8.
std::string Bounded(std::string message) {
  message = ToValidUtf8(message);
  if (message.size() <= kMaxBytes) return message;
  return absl::StrCat(TruncateUtf8(message, kMaxBytes - (sizeof(kEllipsis) - 1)), kEllipsis);
}

// Appends a sentence; adds no second full stop to a text that ends with one.
void AppendSentence(std::string& message, absl::string_view sentence) {
  while (!sentence.empty() &&
         (sentence.back() == '.' || sentence.back() == ' ' || sentence.back() == '\n')) {
    sentence.remove_suffix(1);
  }
  if (sentence.empty()) return;
  absl::StrAppend(&message, message.empty() ? "" : " ", Capital(std::string(sentence)), ".");
}

}  // namespace

std::string ResourceNoun(absl::string_view resource) {
  if (resource == model::kGpuName) return "GPUs";
  if (resource == model::kCpuName) return "CPU cores";
  if (resource == model::kMemoryName) return "memory";
  if (resource == model::kPodsName) return "pod slots";
  if (absl::ConsumePrefix(&resource, model::kDemandPrefix)) {
    return absl::StrCat("devices of class ", resource);
  }
  if (absl::ConsumePrefix(&resource, model::kShapePrefix))
    return absl::StrCat("devices for a ", resource);
  return std::string(resource);
}

std::string DelayClause(absl::Time until) {
  return absl::StrCat("no eviction for this workload before ", TimeText(until), ", the end of its ",
                      "preemption delay");
}

// Leaves out every number that can change while code and reason do not.
std::string Sentence(const Verdict& v) {
  std::string fact;
  switch (v.code) {
    case Code::kGated:
      fact = PluginThatHolds(v.subject).empty() ? absl::StrCat("Held by ", GatesIn(v))
                                                : HeldSentence(v.subject);
      break;
    case Code::kGangIncomplete:
      fact = absl::StrCat("The gang starts with ", Count(v.min_member, "pod", "pods"),
                          ", and not all of them exist and may start");
      break;
    case Code::kQueueLimitReached:
      fact = "The queue has reached a limit";
      if (v.queue_block.has_value()) {
        const QueueBlock& block = *v.queue_block;
        fact = absl::StrCat(Capital(BlockingQueue(v)), " cannot give ",
                            AmountText(block.resource, block.requested), " within its limit of ",
                            AmountText(block.resource, block.limit));
      }
      break;
    case Code::kNonPreemptibleOverQuota:
      fact = absl::StrCat("Non-preemptible workloads must stay within the quota of ",
                          v.queue_block.has_value() ? BlockingQueue(v) : QueueName(v));
      if (v.queue_block.has_value()) {
        absl::StrAppend(&fact, ", ", AmountText(v.queue_block->resource, v.queue_block->limit));
      }
      break;
    case Code::kOverFairShare:
      fact = absl::StrCat(Capital(QueueName(v)), " is held at its fair share");
      break;
    case Code::kTopologyInfeasible:
      fact = absl::StrCat("The required topology placement",
                          v.subject.empty() ? "" : absl::StrCat(" (", v.subject, ")"),
                          " cannot be met");
      break;
    case Code::kConstraintsUnsatisfiable:
      fact = "No node can run the pod, even when empty";
      break;
    case Code::kNoInstanceTypeFits: {
      const std::string reasons = ReasonsText(v.failed_predicates);
      fact = Capital(absl::StrCat(reasons, reasons.empty() ? "" : "; ", NoOffer(v)));
      break;
    }
    case Code::kWaitingForVictims:
      fact = "Waiting for evicted pods to terminate";
      break;
    case Code::kNodesRequested:
      fact = v.node_requests.empty() ? "Waiting for requested nodes"
                                     : absl::StrCat("Waiting for requested nodes: ",
                                                    AndList(v.node_requests, kMaxNamesShown));
      break;
    case Code::kGpuCapReached:
      fact = "A new node would help, but the GPU cap of the autoscaler forbids it";
      break;
    case Code::kCostCapReached:
      fact = "A new node would help, but the cost cap of the autoscaler forbids it";
      break;
    case Code::kInsufficientCapacity: {
      fact = IsGang(v) ? absl::StrCat("No nodes have capacity for the gang's ", v.min_member,
                                      " pods at once")
                       : "No node has capacity for the pod";
      const std::string reasons = ReasonsText(v.failed_predicates);
      if (!reasons.empty()) absl::StrAppend(&fact, ": ", reasons);
      break;
    }
    default:
      fact = WordsOf(v).fact;
      break;
  }
  std::string sentence;
  AppendSentence(sentence, fact);
  return Bounded(std::move(sentence));
}

std::string ConditionMessage(const Verdict& v) {
  std::string message = NodesAvailable(v);
  if (message.empty()) return Sentence(v);
  // kube-scheduler's text says all of it.
  if (v.code != Code::kInsufficientCapacity) AppendSentence(message, WordsOf(v).fact);
  return Bounded(std::move(message));
}

std::string EventNote(const Verdict& v) {
  std::string message = Message(v);
  if (RestsOnNodes(v) || IsExpected(v)) return message;
  return Bounded(absl::StrCat(CodeName(v.code), ": ", message));
}

std::vector<Unblocker> DefaultUnblockers(const Verdict& verdict) {
  std::vector<Unblocker> unblockers;
  for (std::string& advice : WordsOf(verdict).advice) {
    const bool wait = absl::StartsWith(advice, "wait");
    unblockers.push_back(
        {wait ? ResolvableBy::kTime : ResolvableByOf(verdict.code), std::move(advice)});
  }
  return unblockers;
}

std::string Message(const Verdict& verdict) {
  Words words = WordsOf(verdict);
  if (!verdict.unblockers.empty()) {
    words.advice.clear();
    for (const Unblocker& unblocker : verdict.unblockers) words.advice.push_back(unblocker.what);
  }
  std::string message = NodesAvailable(verdict);
  AppendSentence(message, words.fact);
  if (ShowsPosition(verdict.code) && verdict.position > 0) {
    AppendSentence(message, absl::StrCat("Position ", verdict.position, " in the queue"));
  }
  if (!words.advice.empty()) {
    AppendSentence(message, absl::StrCat("What helps: ", absl::StrJoin(words.advice, "; or ")));
  }
  AppendSentence(message, verdict.estimate);
  if (!verdict.details.empty()) AppendSentence(message, absl::StrJoin(verdict.details, "; "));
  return Bounded(std::move(message));
}

}  // namespace fairlead::verdict
