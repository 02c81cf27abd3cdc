#include "scheduler/verdict/json.h"

#include <simdjson.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/quantity.h"

namespace fairlead::verdict {
namespace {

using ::testing::HasSubstr;
namespace dom = simdjson::dom;

TEST(JsonTest, EmptyVerdict) {
  Verdict v;
  EXPECT_EQ(ToJson(v),
            R"({"v":1,"code":"None","category":"policy","scope":"pod","resolvableBy":"Time",)"
            R"("hash":")" +
                Hash(v) + R"("})");
}

TEST(JsonTest, WholeVerdict) {
  auto spec = std::make_shared<model::PodSpec>();
  spec->requests = {{"cpu", 1500}, {"memory", int64_t{1} << 30}, {"nvidia.com/gpu", 2000}};
  spec->gpu_share = {500, 0, 2};
  spec->node_selector = {{"pool", "a"}};
  spec->has_required_node_affinity = true;
  spec->required_node_terms = {{{{"zone", model::SelectorOperator::kIn, {"a", "b"}},
                                 {"spot", model::SelectorOperator::kExists, {}}},
                                {{"metadata.name", model::SelectorOperator::kNotIn, {"n1"}}}}};
  spec->tolerations = {{"gpu", false, "yes", model::TaintEffect::kNoSchedule}, {"", true, "", {}}};
  spec->topology_spread.resize(2);
  spec->topology_spread[0].topology_key = "zone";
  spec->topology_spread[1].do_not_schedule = false;
  spec->pod_anti_affinity.resize(2);
  spec->pod_anti_affinity[0].topology_key = "host";
  spec->pod_anti_affinity[1].weight = 5;
  Verdict v;
  v.code = Code::kQueueLimitReached;
  v.scope = Scope::kGang;
  v.queue = "research";
  v.position = 3;
  v.queue_block = QueueBlock{"dept", "nvidia.com/gpu", 8000, 7500, 1000};
  v.failed_predicates = {
      {"NodeResourcesFit", "Insufficient cpu", 2, {{"cpu", 250}, {"memory", 7}}}};
  v.unblockers = {{ResolvableBy::kQueueChange, "raise it"}};
  v.demand = {{spec, 4, 2}};
  v.details = {"a \"detail\""};
  v.node_requests = {"nr-1"};
  v.expected_at = absl::FromUnixSeconds(1'800'000'000);
  v.until = absl::FromUnixSeconds(1'700'000'000);
  v.subject = "ConfigMap x/y";
  v.pods_waiting = 4;
  v.pods_running = 1;
  v.min_member = 2;
  v.observed_generation = 6;
  EXPECT_EQ(
      ToJson(v),
      R"({"v":1,"code":"QueueLimitReached","category":"policy","scope":"gang",)"
      R"("resolvableBy":"QueueChange","hash":")" +
          Hash(v) +
          R"(","queue":"research","position":3,"queueBlock":{"queue":"dept",)"
          R"("resource":"nvidia.com/gpu","limit":"8","used":"7500m","requested":"1"},)"
          R"("podsWaiting":4,"podsRunning":1,"minMember":2,"observedGeneration":6,)"
          R"("subject":"ConfigMap x/y","until":"2023-11-14T22:13:20Z",)"
          R"("expectedAt":"2027-01-15T08:00:00Z","nodeRequests":["nr-1"],)"
          R"("unblockers":[{"by":"QueueChange","what":"raise it"}],"details":["a \"detail\""],)"
          R"("predicates":[{"plugin":"NodeResourcesFit","reason":"Insufficient cpu","nodes":2,)"
          R"("missing":{"cpu":"250m","memory":"7"}}],)"
          R"("demand":[{"count":4,"minCount":2,)"
          R"("resources":{"cpu":"1500m","memory":"1073741824","nvidia.com/gpu":"2"},)"
          R"("gpu":{"fractionMilli":500,"devices":2},"nodeSelector":{"pool":"a"},)"
          R"("terms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},)"
          R"({"key":"spot","operator":"Exists"}],)"
          R"("matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}],)"
          R"("tolerations":[{"key":"gpu","operator":"Equal","value":"yes","effect":"NoSchedule"},)"
          R"({"operator":"Exists"}],"spread":[{"topologyKey":"zone","maxSkew":1}],)"
          R"("antiAffinity":["host"]}]})");
}

TEST(JsonTest, UnlimitedAndInfiniteAreLeftOut) {
  Verdict v;
  v.queue_block = QueueBlock{"q", "cpu", model::kUnlimited, 1, 1};
  v.until = absl::InfiniteFuture();
  v.expected_at = absl::InfinitePast();
  const std::string json = ToJson(v);
  for (const char* absent : {"limit", "until", "expectedAt"}) {
    EXPECT_THAT(json, ::testing::Not(HasSubstr(absent)));
  }
}

TEST(JsonQuotedTest, EveryStringComesBack) {
  dom::parser parser;
  for (unsigned code_point = 0; code_point < 0x800; ++code_point) {
    std::string text = "x";
    if (code_point < 0x80) {
      text += static_cast<char>(code_point);
    } else {
      text += static_cast<char>(0xC0 | (code_point >> 6));
      text += static_cast<char>(0x80 | (code_point & 0x3F));
    }
    // The value is in an object because simdjson's DOM parses only objects here.
    const std::string json = "{\"k\":" + JsonQuoted(text) + "}";
    dom::element element;
    ASSERT_EQ(parser.parse(json).get(element), simdjson::SUCCESS) << json;
    std::string_view back;
    ASSERT_EQ(element["k"].get(back), simdjson::SUCCESS);
    ASSERT_EQ(back, text);
  }
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  unsigned Below(unsigned bound) { return static_cast<unsigned>(random_()) % bound; }
  std::string Bytes(unsigned max) {
    std::string out(Below(max + 1), '\0');
    const bool wild = Below(4) == 0;
    for (char& c : out) c = static_cast<char>(wild ? Below(256) : 'a' + Below(26));
    return out;
  }
  std::string Name(unsigned max) {
    std::string out(1 + Below(max), 'a');
    for (char& c : out) c = static_cast<char>('a' + Below(26));
    return out;
  }
  int64_t Amount() { return static_cast<int64_t>(random_()) * (1 + Below(1000)); }

  Verdict Make() {
    Verdict v;
    v.code = static_cast<Code>(Below(kCodeCount));
    v.scope = static_cast<Scope>(Below(4));
    v.queue = Name(253);
    v.position = Below(5);
    if (Below(2) == 0)
      v.queue_block = QueueBlock{Name(253), Name(317), Amount(), Amount(), Amount()};
    for (unsigned i = Below(8); i > 0; --i) {
      FailedPredicate p{Name(20), Bytes(80), Amount(), {}};
      for (unsigned j = Below(3); j > 0; --j)
        p.missing.push_back({Name(20) + std::to_string(j), Amount()});
      v.failed_predicates.push_back(p);
    }
    for (unsigned i = Below(4); i > 0; --i)
      v.unblockers.push_back({ResolvableBy::kTime, Bytes(200)});
    for (unsigned i = Below(5); i > 0; --i) v.demand.push_back({Spec(), Amount(), Amount()});
    for (unsigned i = Below(5); i > 0; --i) v.details.push_back(Bytes(300));
    for (unsigned i = Below(30); i > 0; --i) v.node_requests.push_back(Name(60));
    if (Below(2) == 0) v.expected_at = absl::FromUnixSeconds(Below(2'000'000'000));
    v.subject = Bytes(Below(10) == 0 ? 5000 : 100);
    v.pods_waiting = Amount();
    v.min_member = Amount();
    v.observed_generation = Amount();
    return v;
  }

 private:
  std::shared_ptr<const model::PodSpec> Spec() {
    auto spec = std::make_shared<model::PodSpec>();
    for (const char* name : {"cpu", "memory", "nvidia.com/gpu"}) {
      if (Below(2) == 0) spec->requests.emplace_back(name, Amount());
    }
    for (unsigned i = Below(4); i > 0; --i) spec->node_selector.Set(Name(30), Bytes(60));
    spec->has_required_node_affinity = Below(2) == 0;
    for (unsigned i = Below(4); i > 0; --i) {
      spec->required_node_terms.push_back(
          {{{Name(9), model::SelectorOperator::kIn, {Bytes(9)}}}, {}});
    }
    for (unsigned i = Below(4); i > 0; --i)
      spec->tolerations.push_back({Bytes(9), Below(2) == 0, Bytes(9), {}});
    if (Below(3) == 0) spec->gpu_share.memory_mib = 1 + Below(9999);
    return spec;
  }
  std::mt19937 random_;
};

size_t Length(const dom::element& object, const char* key) {
  dom::array array;
  return object[key].get(array) == simdjson::SUCCESS ? array.size() : 0;
}

std::string Text(const dom::element& object, const char* key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "(absent)";
}

bool HasTerms(const dom::element& demand) {
  for (const char* key : {"nodeSelector", "terms", "tolerations"}) {
    if (demand[key].error() == simdjson::SUCCESS) return true;
  }
  return false;
}

bool WantsTerms(const DemandClass& d) {
  return !d.spec->node_selector.empty() || d.spec->has_required_node_affinity ||
         !d.spec->tolerations.empty();
}

// Checks the fields that are always present against the verdict.
void CheckFixedPart(const Verdict& v, const dom::element& json) {
  ASSERT_EQ(Text(json, "code"), ToStd(CodeName(v.code)));
  ASSERT_EQ(Text(json, "category"), ToStd(CategoryName(CategoryOf(v.code))));
  ASSERT_EQ(Text(json, "hash"), Hash(v));
  ASSERT_EQ(Text(json, "queue"), v.queue);
  if (!v.queue_block.has_value()) return;
  const dom::element block = json["queueBlock"].value_unsafe();
  ASSERT_EQ(Text(block, "queue"), v.queue_block->queue);
  const absl::string_view resource = v.queue_block->resource;
  ASSERT_EQ(Text(block, "resource"), ToStd(resource));
  ASSERT_EQ(*model::ParseResourceQuantity(resource, Text(block, "limit")), v.queue_block->limit);
  ASSERT_EQ(*model::ParseResourceQuantity(resource, Text(block, "used")), v.queue_block->used);
  ASSERT_EQ(*model::ParseResourceQuantity(resource, Text(block, "requested")),
            v.queue_block->requested);
}

// Checks the order in which fields are left out: if something of an earlier stage is present,
// nothing of a later stage is missing. A list loses entries from its end.
void CheckLeftOut(const Verdict& v, const dom::element& json) {
  const size_t demand = Length(json, "demand");
  const size_t predicates = Length(json, "predicates");
  const size_t details = Length(json, "details");
  bool terms_left = false;
  bool terms_missing = false;
  for (size_t i = 0; i < demand; ++i) {
    const bool has = HasTerms(json["demand"].at(i).value_unsafe());
    terms_left = terms_left || has;
    if (!has && WantsTerms(v.demand[i])) terms_missing = true;
    if (has) {
      ASSERT_FALSE(terms_missing) << "terms are left out from the last entry on";
    }
  }
  const bool predicates_missing = predicates < v.failed_predicates.size();
  const bool details_missing = details < v.details.size();
  if (predicates_missing) {
    ASSERT_FALSE(terms_left);
  }
  if (details_missing) {
    ASSERT_EQ(predicates, 0u);
  }
  for (const auto& [key, size] :
       {std::pair{"unblockers", v.unblockers.size()}, {"demand", v.demand.size()}}) {
    if (Length(json, key) < size) {
      ASSERT_EQ(details, 0u);
    }
  }
  for (size_t i = 0; i < predicates; ++i) {
    ASSERT_EQ(Text(json["predicates"].at(i).value_unsafe(), "plugin"),
              v.failed_predicates[i].plugin);
  }
  const bool truncated = json["truncated"].error() == simdjson::SUCCESS;
  if (terms_missing || predicates_missing || details_missing) {
    ASSERT_TRUE(truncated);
  }
}

TEST(JsonPropertyTest, ParsesBoundedAndLeavesOutInOrder) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Generator generator(seed);
  dom::parser parser;
  int truncated = 0;
  for (int round = 0; round < 1000; ++round) {
    const Verdict v = generator.Make();
    const size_t limit = generator.Below(3) == 0 ? 1'000'000 : kMaxAnnotationBytes;
    const std::string json = ToJson(v, limit);
    ASSERT_LE(json.size(), limit) << json;
    dom::element element;
    ASSERT_EQ(parser.parse(json).get(element), simdjson::SUCCESS) << json;
    ASSERT_NO_FATAL_FAILURE(CheckFixedPart(v, element)) << json;
    ASSERT_NO_FATAL_FAILURE(CheckLeftOut(v, element)) << json;
    const bool cut = element["truncated"].error() == simdjson::SUCCESS;
    ASSERT_TRUE(limit == kMaxAnnotationBytes || !cut);
    // The text is cut only if the whole is longer than the limit.
    if (cut) {
      ASSERT_GT(ToJson(v, 1'000'000).size(), limit);
    }
    truncated += cut ? 1 : 0;
  }
  EXPECT_GT(truncated, 100);
}

}  // namespace
}  // namespace fairlead::verdict
