#include "scheduler/verdict/json.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "scheduler/model/taint_effect.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::verdict {
namespace {

using model::FormatQuantity;

// Members of one JSON object, in the order of the calls.
class ObjectWriter {
 public:
  ObjectWriter() { json_.BeginObject(); }
  // `json` is a finished JSON value.
  ObjectWriter& Raw(absl::string_view key, absl::string_view json) {
    json_.Key(key).Raw(json);
    return *this;
  }
  ObjectWriter& Text(absl::string_view key, absl::string_view text) {
    json_.Field(key, text);
    return *this;
  }
  ObjectWriter& TextIfSet(absl::string_view key, absl::string_view text) {
    return text.empty() ? *this : Text(key, text);
  }
  ObjectWriter& Number(absl::string_view key, int64_t number) {
    json_.Key(key).Int(number);
    return *this;
  }
  ObjectWriter& NumberIfSet(absl::string_view key, int64_t number) {
    return number == 0 ? *this : Number(key, number);
  }
  ObjectWriter& ListIfAny(absl::string_view key, const std::vector<std::string>& values) {
    return values.empty() ? *this : Raw(key, absl::StrCat("[", absl::StrJoin(values, ","), "]"));
  }
  // Call once, at the end.
  std::string Done() { return json_.EndObject().Take(); }

 private:
  JsonWriter json_;
};

std::vector<std::string> Strings(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) out.push_back(JsonQuoted(text));
  return out;
}

std::vector<std::string> Requirements(const std::vector<model::SelectorRequirement>& requirements) {
  std::vector<std::string> out;
  for (const model::SelectorRequirement& r : requirements) {
    ObjectWriter one;
    one.Text("key", r.key).Text("operator", OperatorName(r.op));
    one.ListIfAny("values", Strings(r.values));
    out.push_back(one.Done());
  }
  return out;
}

std::string Labels(const model::StringMap& labels) {
  ObjectWriter out;
  for (const auto& [key, value] : labels) out.Text(key, value);
  return out.Done();
}

void AddTerms(const model::PodSpec& spec, ObjectWriter& out) {
  if (!spec.node_selector.empty()) out.Raw("nodeSelector", Labels(spec.node_selector));
  if (spec.has_required_node_affinity) {
    std::vector<std::string> terms;
    for (const model::NodeSelectorTerm& term : spec.required_node_terms) {
      ObjectWriter one;
      one.ListIfAny("matchExpressions", Requirements(term.match_expressions));
      one.ListIfAny("matchFields", Requirements(term.match_fields));
      terms.push_back(one.Done());
    }
    out.Raw("terms", absl::StrCat("[", absl::StrJoin(terms, ","), "]"));
  }
  std::vector<std::string> tolerations;
  for (const model::Toleration& t : spec.tolerations) {
    ObjectWriter one;
    one.TextIfSet("key", t.key).Text("operator", t.exists ? "Exists" : "Equal");
    if (!t.exists) one.Text("value", t.value);
    if (t.effect.has_value()) one.Text("effect", TaintEffectName(*t.effect));
    tolerations.push_back(one.Done());
  }
  out.ListIfAny("tolerations", tolerations);
  std::vector<std::string> spread;
  for (const model::TopologySpreadConstraint& c : spec.topology_spread) {
    if (!c.do_not_schedule) continue;
    ObjectWriter one;
    one.Text("topologyKey", c.topology_key).Number("maxSkew", c.max_skew);
    spread.push_back(one.Done());
  }
  out.ListIfAny("spread", spread);
  std::vector<std::string> apart;
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (term.weight == 0) apart.push_back(JsonQuoted(term.topology_key));
  }
  out.ListIfAny("antiAffinity", apart);
}

std::string DemandEntry(const DemandClass& demand, bool with_terms) {
  ObjectWriter out;
  out.Number("count", demand.count).Number("minCount", demand.min_count);
  if (demand.spec == nullptr) return out.Done();
  const model::PodSpec& spec = *demand.spec;
  ObjectWriter resources;
  for (const auto& [name, amount] : spec.requests) {
    if (amount != 0) resources.Text(name, FormatQuantity(name, amount));
  }
  out.Raw("resources", resources.Done());
  if (spec.gpu_share.IsSet()) {
    ObjectWriter gpu;
    gpu.NumberIfSet("fractionMilli", spec.gpu_share.fraction_milli);
    gpu.NumberIfSet("memoryMib", spec.gpu_share.memory_mib);
    gpu.Number("devices", spec.gpu_share.devices);
    out.Raw("gpu", gpu.Done());
  }
  if (with_terms) AddTerms(spec, out);
  return out.Done();
}

std::string PredicateJson(const FailedPredicate& p) {
  ObjectWriter out;
  out.Text("plugin", p.plugin).Text("reason", p.reason).Number("nodes", p.nodes);
  if (!p.missing.empty()) {
    ObjectWriter missing;
    for (const MissingAmount& m : p.missing) {
      missing.Text(m.resource, FormatQuantity(m.resource, m.smallest));
    }
    out.Raw("missing", missing.Done());
  }
  return out.Done();
}

std::string QueueBlockJson(const QueueBlock& block) {
  ObjectWriter out;
  out.Text("queue", block.queue).Text("resource", block.resource);
  if (block.limit != model::kUnlimited) {
    out.Text("limit", FormatQuantity(block.resource, block.limit));
  }
  out.Text("used", FormatQuantity(block.resource, block.used));
  out.Text("requested", FormatQuantity(block.resource, block.requested));
  if (block.promised > 0) out.Text("promised", FormatQuantity(block.resource, block.promised));
  return out.Done();
}

// The lists of a verdict as finished JSON values; Shorten removes entries from their ends.
struct Lists {
  std::vector<std::string> node_requests, unblockers, details, predicates, demand, bare_demand;
  size_t demand_with_terms = 0;  // how many entries, from the front, are shown with their terms
  std::string subject;
  std::string hash;
  bool truncated = false;
};

Lists ListsOf(const Verdict& v) {
  Lists lists;
  lists.node_requests = Strings(v.node_requests);
  for (const Unblocker& u : v.unblockers) {
    ObjectWriter one;
    one.Text("by", ResolvableByName(u.by)).Text("what", u.what);
    lists.unblockers.push_back(one.Done());
  }
  lists.details = Strings(v.details);
  for (const FailedPredicate& p : v.failed_predicates) lists.predicates.push_back(PredicateJson(p));
  for (const DemandClass& d : v.demand) {
    lists.demand.push_back(DemandEntry(d, true));
    lists.bare_demand.push_back(DemandEntry(d, false));
  }
  lists.demand_with_terms = lists.demand.size();
  lists.subject = ToValidUtf8(v.subject);
  lists.hash = Hash(v);
  return lists;
}

// Removes at least `excess` bytes, in the order that the header gives. False if nothing is left to
// remove. The caller writes the text again and repeats the call if it is still too long.
bool Shorten(Lists& lists, size_t excess) {
  lists.truncated = true;
  size_t saved = 0;
  while (saved < excess && lists.demand_with_terms > 0) {
    const size_t i = --lists.demand_with_terms;
    saved += lists.demand[i].size() - lists.bare_demand[i].size();
  }
  if (saved > 0) return true;
  for (std::vector<std::string>* list : {&lists.predicates, &lists.details, &lists.unblockers,
                                         &lists.node_requests, &lists.bare_demand}) {
    while (saved < excess && !list->empty()) {
      saved += list->back().size() + 1;
      list->pop_back();
    }
    if (saved > 0) return true;
  }
  if (lists.subject.empty()) return false;
  lists.subject = std::string(TruncateUtf8(lists.subject, lists.subject.size() / 2));
  return true;
}

std::string Write(const Verdict& v, const Lists& lists) {
  ObjectWriter out;
  out.Number("v", kVocabularyVersion).Text("code", CodeName(v.code));
  out.Text("category", CategoryName(CategoryOf(v.code))).Text("scope", ScopeName(v.scope));
  out.Text("resolvableBy", ResolvableByName(ResolvableByOf(v.code))).Text("hash", lists.hash);
  out.TextIfSet("queue", v.queue).NumberIfSet("position", v.position);
  if (v.queue_block.has_value()) out.Raw("queueBlock", QueueBlockJson(*v.queue_block));
  out.NumberIfSet("podsWaiting", v.pods_waiting).NumberIfSet("podsRunning", v.pods_running);
  out.NumberIfSet("minMember", v.min_member)
      .NumberIfSet("observedGeneration", v.observed_generation);
  out.TextIfSet("subject", lists.subject).TextIfSet("estimate", ToValidUtf8(v.estimate));
  if (IsFinite(v.until)) out.Text("until", TimeText(*v.until));
  if (IsFinite(v.expected_at)) out.Text("expectedAt", TimeText(*v.expected_at));
  out.ListIfAny("nodeRequests", lists.node_requests).ListIfAny("unblockers", lists.unblockers);
  out.ListIfAny("details", lists.details).ListIfAny("predicates", lists.predicates);
  std::vector<std::string> demand;
  for (size_t i = 0; i < lists.bare_demand.size(); ++i) {
    demand.push_back(i < lists.demand_with_terms ? lists.demand[i] : lists.bare_demand[i]);
  }
  out.ListIfAny("demand", demand);
  if (lists.truncated) out.Raw("truncated", "true");
  return out.Done();
}

}  // namespace

std::string DemandJson(const DemandClass& demand) { return DemandEntry(demand, true); }

std::string ToJson(const Verdict& verdict, size_t max_bytes) {
  Lists lists = ListsOf(verdict);
  std::string json = Write(verdict, lists);
  while (json.size() > max_bytes && Shorten(lists, json.size() - max_bytes)) {
    json = Write(verdict, lists);
  }
  return json;
}

}  // namespace fairlead::verdict
