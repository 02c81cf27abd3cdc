#include "autoscale-hook/catalog/catalog.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/offers.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr char kMinimal[] = R"(defaults: {zones: [a, b], reserved: {cpu: 100m, memory: 1Gi}}
types:
- name: x.large
  cpu: 2
  memory: 8Gi
)";

TEST(CatalogTest, WhatIsWrongIsNamedWithItsPlace) {
  struct Case {
    const char* yaml;
    const char* want;
  };
  const Case cases[] = {
      {"", "c.yaml: the file is empty"},
      {"[]", "c.yaml:1:1: catalogue: must be a mapping"},
      {"types: [1, 2", "c.yaml:1:1: end of sequence flow not found"},
      {"types: 3", "c.yaml:1:8: types: must be a list"},
      {"{}", "c.yaml:1:1: types: is missing"},
      {"types: []\nnonsense: 1", "c.yaml:2:1: nonsense: unknown field"},
      {"types: []\ntypes: []", "c.yaml:2:1: given twice: \"types\""},
      {"types:\n- name: a\n  cpu: 1", "c.yaml:2:3: types[0].memory: is missing"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi}", "types[0].zones: is missing and has no default"},
      {"types:\n- {name: a, cpu: -1, memory: 1Gi, zones: [z]}",
       "c.yaml:2:18: types[0].cpu: must be greater than zero"},
      {"types:\n- {name: a, cpu: 1, memory: lots, zones: [z]}", "c.yaml:2:29: types[0].memory: "},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], price: {on_demand: -0.5}}",
       "types[0].price.on_demand: must not be negative"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], price: {ondemand: 1}}",
       "types[0].price.ondemand: unknown field"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], gpu: {count: 1}}",
       "types[0].gpu.model: is missing"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], gpu: {model: m, count: 1000001}}",
       "types[0].gpu.count: must be 1000000 at most"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z, z]}", "\"z\" is given twice"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: []}", "types[0].zones: must not be empty"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z]}\n- {name: a, cpu: 1, memory: 1Gi, "
       "zones: [z]}",
       "c.yaml:3:3: types[1].name: \"a\" is given twice"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], reserved: {cpu: 1}}",
       "types[0].reserved.cpu: leaves nothing for pods"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], extra: {cpu: 1}}",
       "types[0].extra.cpu: has a field of its own"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], labels: {k: [v]}}",
       "types[0].labels.k: must be text"},
      {"types:\n- 7", "c.yaml:2:3: types[0]: must be a mapping"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], reservations: {name: r}}",
       "types[0].reservations: must be a list"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], reservations: [{name: r, count: 1}]}",
       "types[0].reservations[0].price: is missing"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: -1}]}",
       "types[0].reservations[0].price: must not be negative"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 0, price: 0}]}",
       "types[0].reservations[0].count: must be greater than zero"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 100001, price: 0}]}",
       "types[0].reservations[0].count: must be 100000 at most"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: 'r/1', count: 1, price: 0}]}",
       "types[0].reservations[0].name: must be the value of a label"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: '', count: 1, price: 0}]}",
       "types[0].reservations[0].name: must be text"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: 0, zone: y}]}",
       "types[0].reservations: \"r\": zone \"y\" is no zone of the type"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: 0, labels: {fairlead.dev/node-pool: p}}]}",
       "types[0].reservations[0].labels.fairlead.dev/node-pool: is set by Fairlead"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: 0, labels: {k: 'a b'}}]}",
       "types[0].reservations[0].labels.k: must be the value of a label"},
      {"types:\n- {name: a, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: 0}]}\n"
       "- {name: b, cpu: 1, memory: 1Gi, zones: [z], "
       "reservations: [{name: r, count: 1, price: 0}]}",
       "types[1].reservations: \"r\" is given twice"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.yaml);
    const auto catalog = Catalog::Parse(c.yaml, "c.yaml");
    ASSERT_FALSE(catalog.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(catalog.status()));
    EXPECT_NE(std::string(catalog.status().message()).find(c.want), std::string::npos)
        << catalog.status();
  }
}

TEST(CatalogTest, DefaultsAndUnits) {
  const auto catalog = Catalog::Parse(kMinimal, "c.yaml");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const InstanceType* type = catalog->Find("x.large");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->cpu_milli, 2000);
  EXPECT_EQ(type->memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(type->reserved_cpu_milli, 100);
  EXPECT_EQ(type->zones, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(type->on_demand_micro_usd.has_value());
  EXPECT_EQ(catalog->Find("x"), nullptr);
}

TEST(CatalogTest, BuiltIn) {
  const Catalog& catalog = Catalog::BuiltIn();
  EXPECT_GE(catalog.types().size(), 40u);
  EXPECT_FALSE(catalog.as_of().empty());
  EXPECT_FALSE(catalog.source().empty());
  const InstanceType* p5 = catalog.Find("p5.48xlarge");
  ASSERT_NE(p5, nullptr);
  EXPECT_EQ(p5->gpu_model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(p5->gpu_count, 8);
  EXPECT_EQ(p5->on_demand_micro_usd, 55040000);
  EXPECT_EQ(catalog.Find("g6.xlarge")->on_demand_micro_usd, 804800);
  int priced = 0;
  for (const InstanceType& type : catalog.types()) priced += type.on_demand_micro_usd.has_value();
  EXPECT_GE(priced, 20);
}

TEST(CatalogTest, TemplateNode) {
  const auto catalog = Catalog::Parse(R"(types:
- name: x.large
  cpu: 2
  memory: 8Gi
  gpu: {model: NVIDIA-L4, count: 2, memory_mib: 23034}
  zones: [a]
  price: {on_demand: 1.5, spot: 0.5}
  labels: {tier: fast}
  extra: {vpc.amazonaws.com/efa: 4}
  reserved: {cpu: 100m, memory: 1Gi}
)",
                                      "c.yaml");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  model::NodePool pool;
  pool.meta.name = "gpu";
  pool.allow_spot = true;
  pool.labels.Set("team", "ml");
  pool.taints.push_back({"dedicated", "ml", model::TaintEffect::kNoSchedule});
  pool.startup_taints.push_back({"cni", "", model::TaintEffect::kNoSchedule});
  const std::vector<Offer> offers = MakeOffers(Catalogs(&*catalog), {&pool});
  ASSERT_EQ(offers.size(), 2u);
  EXPECT_FALSE(offers[0].spot);
  EXPECT_EQ(offers[1].price_micro_usd_per_hour, 500000);
  const model::Node node = TemplateNode(offers[1], "fl-1");
  EXPECT_EQ(node.meta.labels.Get(model::kGpuProductLabel), "NVIDIA-L4");
  EXPECT_EQ(node.meta.labels.Get(model::kGpuMemoryLabel), "23034");
  EXPECT_EQ(node.meta.labels.Get(model::kCapacityTypeLabel), "spot");
  EXPECT_EQ(node.meta.labels.Get(model::kNodeRequestLabel), "fl-1");
  EXPECT_EQ(node.meta.labels.Get(model::kPoolLabel), "gpu");
  EXPECT_EQ(node.meta.labels.Get("team"), "ml");
  EXPECT_EQ(node.meta.labels.Get("tier"), "fast");
  EXPECT_EQ(node.taints.size(), 2u);
  EXPECT_EQ(UsableNode(offers[1], "fl-1").taints.size(), 1u);
  EXPECT_EQ(model::Get(node.allocatable, "nvidia.com/gpu"), 2000);
  EXPECT_EQ(model::Get(node.allocatable, "cpu"), 1900);
  EXPECT_EQ(model::Get(node.allocatable, "memory"), int64_t{7} << 30);
  EXPECT_EQ(model::Get(node.allocatable, "vpc.amazonaws.com/efa"), 4);
}

constexpr char kReserved[] = R"(types:
- name: p5.48xlarge
  cpu: 192
  memory: 2048Gi
  gpu: {model: H100, count: 8}
  zones: [a, b]
  price: {on_demand: 55.04, spot: 20}
  reservations:
  - {name: cr-2, count: 3, price: 31.5}
  - name: cr-1
    zone: b
    count: 2
    price: 0
    labels: {karpenter.k8s.aws/capacity-reservation-id: cr-1}
)";

TEST(OffersTest, AReservationIsOfferedInItsZoneToThePoolsThatMayUseIt) {
  const auto catalog = Catalog::Parse(kReserved, "c.yaml");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE(catalog->has_reservations());
  EXPECT_FALSE(Catalog::BuiltIn().has_reservations());
  model::NodePool any, none, one;
  any.meta.name = "any";
  none.meta.name = "none";
  none.reservations.emplace();
  one.meta.name = "one";
  one.reservations = {"cr-1", "no-such"};
  const auto names = [&](const model::NodePool& pool) {
    std::vector<std::string> found;
    for (const Offer& offer : MakeOffers(Catalogs(&*catalog), {&pool})) {
      found.push_back(absl::StrCat(offer.zone, ":",
                                   offer.reservation == nullptr ? "" : offer.reservation->name));
    }
    return found;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(names(any), (List{"a:", "a:cr-2", "b:", "b:cr-1", "b:cr-2"}));
  EXPECT_EQ(names(none), (List{"a:", "b:"}));
  EXPECT_EQ(names(one), (List{"a:", "b:", "b:cr-1"}));
}

TEST(OffersTest, ANodeOfAReservationSaysSo) {
  const auto catalog = Catalog::Parse(kReserved, "c.yaml");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const InstanceType& type = *catalog->Find("p5.48xlarge");
  model::NodePool pool;
  const Offer offer{&type, &pool, "b", false, 0, type.FindReservation("cr-1")};
  const model::Node node = UsableNode(offer, "fl-1");
  EXPECT_EQ(node.meta.labels.Get(model::kCapacityTypeLabel), "reserved");
  EXPECT_EQ(node.meta.labels.Get(model::kReservationLabel), "cr-1");
  EXPECT_EQ(node.meta.labels.Get("karpenter.k8s.aws/capacity-reservation-id"), "cr-1");
  EXPECT_EQ(offer.PriceOfChoice(), 55040) << "a thousandth of what it costs on demand";
  EXPECT_EQ(type.PriceOf(false, "cr-2"), 31'500'000);
  EXPECT_EQ(type.PriceOf(false, "cr-3"), std::nullopt);
  EXPECT_EQ(type.PriceOf(false, ""), 55'040'000);
  const Offer plain{&type, &pool, "b", false, 55'040'000};
  EXPECT_FALSE(UsableNode(plain, "fl-1").meta.labels.Has(model::kReservationLabel));
}

TEST(OffersTest, PoolsNarrowAndOrderWhatIsOffered) {
  InstanceType type;
  type.name = "t";
  type.zones = {"a", "b"};
  type.on_demand_micro_usd = 10;
  type.spot_micro_usd = 20;  // a stale table: higher than on demand
  const Catalog catalog = Catalog::FromTypes({type});
  model::NodePool light, heavy, broken, other;
  light.meta.name = "a-light";
  light.allow_spot = true;
  heavy.meta.name = "b-heavy";
  heavy.weight = 5;
  heavy.zones = {"b"};
  broken.invalid = "no such provider";
  other.instance_types = {"u"};
  const std::vector<Offer> offers =
      MakeOffers(Catalogs(&catalog), {&light, &heavy, &broken, &other});
  ASSERT_EQ(offers.size(), 3u);
  EXPECT_EQ(offers[0].pool, &heavy);
  EXPECT_EQ(offers[1].zone, "a");
  EXPECT_EQ(offers[2].zone, "b");
}

}  // namespace
}  // namespace fairlead::hook
