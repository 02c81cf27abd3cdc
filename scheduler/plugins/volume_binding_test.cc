// VolumeBinding and VolumeZone, and what all plugins of volumes say of faults.
#include "scheduler/plugins/volume_binding.h"

#include <functional>
#include <string>
#include <vector>

#include "scheduler/model/api_names.h"
#include "scheduler/plugins/volume_testing.h"

namespace fairlead::plugins {
namespace {

using ::testing::HasSubstr;

constexpr Capacity kCapacities[] = {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty};
constexpr const char* kPlugins[] = {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
                                    "VolumeZone"};
constexpr char kNoVolumeAffinity[] = "X node(s) didn't match PersistentVolume's node affinity";
constexpr char kNoVolumeToBind[] = "X node(s) didn't find available persistent volumes to bind";

// ---- faults

TEST_F(VolumeTest, AFaultIsToldByItsPluginAlone) {
  struct Case {
    std::function<void()> set;
    const char* plugin;
    const char* fault;
  };
  const Case cases[] = {
      {[] {}, "VolumeRestrictions", "persistentvolumeclaim \"data\" not found"},
      {[this] {
         model::PersistentVolumeClaim claim = Claim("data", "fast");
         claim.volume_name = "gone";
         claim.lost = true;
         Put(claim);
       },
       "VolumeBinding",
       "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"gone\""},
      {[this] {
         model::PersistentVolumeClaim claim = Claim("data", "fast");
         claim.meta.deletion = model::testing::At(1);
         Put(claim);
       },
       "VolumeBinding", "persistentvolumeclaim \"data\" is being deleted"},
      {[this] {
         Put(Class("now", "csi.example.com", Binding::kImmediate));
         Put(Claim("data", "now"));
       },
       "VolumeBinding", "pod has unbound immediate PersistentVolumeClaims"},
      {[this] {
         model::PersistentVolumeClaim claim = Claim("data", "fast");
         claim.volume_name = "pv";
         claim.bind_completed = true;
         Put(claim);
       },
       "VolumeZone", "persistentvolume \"pv\" not found"},
  };
  AddNode(MakeNode("n", 0));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fault);
    state_.RemoveVolumeObject(model::Kind::kPersistentVolumeClaim, "ns", "data");
    c.set();
    WaitingWith({"data"});
    for (const char* plugin : kPlugins) {
      const auto framework = Only(plugin);
      const bool tells = std::string(plugin) == c.plugin;
      EXPECT_EQ(framework->RefusesEverywhere(Ctx().pod_class),
                tells ? absl::StrCat("spec.volumes: ", c.fault) : "")
          << plugin;
      for (const Capacity capacity : kCapacities) {
        EXPECT_EQ(Why(*framework, "n", capacity), tells ? absl::StrCat("X ", c.fault) : "")
            << plugin;
      }
    }
  }
  PutBound("data", Volume("pv", "fast"));
  for (const char* plugin : kPlugins) {
    EXPECT_EQ(Only(plugin)->RefusesEverywhere(Ctx().pod_class), "") << plugin;
    EXPECT_EQ(Why(*Only(plugin), "n"), "") << plugin;
  }
}

TEST_F(VolumeTest, AFaultIsToldBeforeWhatIsWrongWithTheNode) {
  model::Node node = MakeNode("n", 0);
  node.ready = false;
  AddNode(node);
  WaitingWith({"data"});
  const auto made =
      framework::Framework::Make({"test", {{"NodeReady"}, {"VolumeRestrictions"}}}, registry_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Why(**made, "n"), "X persistentvolumeclaim \"data\" not found");
  framework::Status why;
  EXPECT_FALSE((*made)->Filter(Ctx(), Node("n"), &why));
  EXPECT_EQ(why.plugin, "VolumeRestrictions");
}

TEST_F(VolumeTest, WithoutThePluginOfTheFaultNoneRefuses) {
  AddNode(MakeNode("n", 0));
  WaitingWith({"data"});
  const auto made = framework::Framework::Make(
      {"test", {{"NodeVolumeLimits"}, {"VolumeBinding"}, {"VolumeZone"}}}, registry_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->RefusesEverywhere(Ctx().pod_class), "");
  EXPECT_EQ(Why(**made, "n"), "");
}

// ---- which classes

TEST_F(VolumeTest, ClassesThatNoPluginOfVolumesRefusesSkipAllOfThem) {
  AddNode(MakeNode("n", 0));
  Put(Class("local", model::kNoProvisioner));
  PutBound("anywhere", Volume("pv-anywhere", "nfs"));
  PutBound("many", OfDriver(Volume("pv-many", "nfs"), "csi.example.com"), model::kReadWriteMany);
  PutBound("once", Volume("pv-once", "nfs"), model::kReadWriteOncePod);
  PutBound("there", AtLabel(Volume("pv-there", "nfs"), "rack", {"r1"}));
  model::PersistentVolume in_zone = Volume("pv-zone", "nfs");
  in_zone.meta.labels.Set(model::kZoneLabel, "a");
  PutBound("zone", in_zone);
  Put(Claim("waits", "local"));
  Put(Claim("shared", "local"));
  AddPod(PodWith("other", {"many", "shared"}));
  struct Case {
    std::vector<std::string> claims;
    std::vector<std::string> plugins;  // that apply
    bool node_local;
  };
  const Case cases[] = {
      {{}, {}, true},
      {{"anywhere"}, {}, true},
      {{"once"}, {}, true},  // of this pod alone
      {{"there"}, {"VolumeBinding"}, true},
      {{"zone"}, {"VolumeZone"}, true},
      {{"waits"}, {"NodeVolumeLimits", "VolumeBinding"}, true},
      {{"many"}, {"NodeVolumeLimits"}, true},
      {{"shared"}, {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding"}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.claims));
    WaitingWith(c.claims);
    std::vector<std::string> plugins;
    framework::Profile profile{"test"};
    for (const char* plugin : kPlugins) {
      profile.plugins.push_back({plugin});
      const auto made = registry_.Make(plugin, "");
      ASSERT_TRUE(made.ok());
      const auto& filter = dynamic_cast<const framework::FilterPlugin&>(**made);
      if (filter.FilterApplies(Ctx().pod_class)) plugins.emplace_back(plugin);
    }
    EXPECT_EQ(plugins, c.plugins);
    const auto all = framework::Framework::Make(profile, registry_);
    ASSERT_TRUE(all.ok());
    EXPECT_EQ((*all)->NodeLocal(Ctx().pod_class), c.node_local);
  }
}

// ---- VolumeBinding

TEST_F(VolumeTest, BoundVolumesByNodeAffinity) {
  const auto binding = Only("VolumeBinding");
  model::Node node = MakeNode("n", 0);
  node.meta.labels.Set("rack", "r1");
  AddNode(node);
  using Terms = std::vector<model::NodeSelectorTerm>;
  constexpr auto kIn = model::SelectorOperator::kIn;
  struct Case {
    bool has_affinity;
    Terms terms;
    bool fits;
  };
  const Case cases[] = {
      {false, {}, true},
      {true, {}, false},
      {true, {{}}, false},  // a term without expressions matches no node
      {true, {{{{"rack", kIn, {"r1"}}}, {}}}, true},
      {true, {{{{"rack", kIn, {"r2"}}}, {}}}, false},
      {true, {{{{"rack", kIn, {"r2"}}}, {}}, {{{"rack", kIn, {"r3", "r1"}}}, {}}}, true},
      {true, {{{{"rack", kIn, {"r1"}}, {"zone", kIn, {"a"}}}, {}}}, false},
      // By labels alone: fields exclude no node.
      {true, {{{}, {{"metadata.name", kIn, {"another"}}}}}, true},
      {true, {{{{"rack", kIn, {"r2"}}}, {{"metadata.name", kIn, {"n"}}}}}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    model::PersistentVolume volume = Volume("pv", "fast");
    volume.has_node_affinity = c.has_affinity;
    volume.node_terms = c.terms;
    PutBound("data", volume);
    PutBound("other", AtLabel(Volume("pv-other", "fast"), "rack", {"r1"}));
    WaitingWith({"data", "other"});
    for (const Capacity capacity : kCapacities) {
      EXPECT_EQ(Why(*binding, "n", capacity), c.fits ? "" : kNoVolumeAffinity);
    }
  }
}

TEST_F(VolumeTest, UnboundClaimsFindAVolumeOrAProvisioner) {
  const auto binding = Only("VolumeBinding");
  for (const char* name : {"a", "b"}) AddNode(MakeNode(name, 0));
  Put(Class("local", model::kNoProvisioner));
  model::StorageClass made = Class("made", "csi.example.com");
  Put(made);
  Put(AtLabel(Volume("pv-a", "local"), model::kHostnameLabel, {"a"}));
  PutBound("at-b", AtLabel(Volume("pv-b", "fast"), model::kHostnameLabel, {"b"}));
  Put(Claim("one", "local"));
  Put(Claim("two", "local"));
  Put(Claim("new", "made"));
  model::PersistentVolumeClaim large = Claim("large", "local");
  large.requested_bytes = 2 * kGiB;
  Put(large);
  model::PersistentVolumeClaim selected = Claim("selected", "made");
  selected.selected_node = "b";
  Put(selected);
  const std::string both =
      absl::StrCat(kNoVolumeAffinity, ", ", absl::string_view(kNoVolumeToBind).substr(2));
  struct Case {
    std::vector<std::string> claims;
    std::string on_a, on_b;
  };
  const Case cases[] = {
      {{"one"}, "", kNoVolumeToBind},
      {{"large"}, kNoVolumeToBind, kNoVolumeToBind},
      {{"one", "two"}, kNoVolumeToBind, kNoVolumeToBind},  // there is one volume
      {{"new"}, "", ""},
      {{"new", "one"}, "", kNoVolumeToBind},
      {{"selected"}, kNoVolumeToBind, ""},
      {{"at-b"}, kNoVolumeAffinity, ""},
      {{"at-b", "one"}, kNoVolumeAffinity, kNoVolumeToBind},
      {{"at-b", "large"}, both, kNoVolumeToBind},
      {{"at-b", "selected"}, both, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.claims));
    WaitingWith(c.claims);
    for (const Capacity capacity : kCapacities) {
      EXPECT_EQ(Why(*binding, "a", capacity), c.on_a);
      EXPECT_EQ(Why(*binding, "b", capacity), c.on_b);
    }
  }
  made.allowed_topologies = {{{{model::kHostnameLabel, model::SelectorOperator::kIn, {"b"}}}, {}}};
  Put(made);
  WaitingWith({"new"});
  EXPECT_EQ(Why(*binding, "a"), kNoVolumeToBind);
  EXPECT_EQ(Why(*binding, "b"), "");
}

TEST_F(VolumeTest, ProvisionersNeedRoom) {
  constexpr char kNoSpace[] = "X node(s) did not have enough free storage";
  const auto binding = Only("VolumeBinding");
  for (const char* name : {"a", "b"}) AddNode(MakeNode(name, 0));
  Put(Class("made", "csi.example.com"));
  Put(Claim("new", "made"));
  PutBound("at-b", AtLabel(Volume("pv-b", "fast"), model::kHostnameLabel, {"b"}));
  WaitingWith({"new"});
  EXPECT_EQ(Why(*binding, "a"), "");
  model::CsiDriver driver;
  driver.meta.name = "csi.example.com";
  driver.storage_capacity = true;
  Put(driver);
  EXPECT_EQ(Why(*binding, "a"), kNoSpace);
  model::CsiStorageCapacity capacity;
  capacity.meta.ns = "kube-system";
  capacity.meta.name = "on-a";
  capacity.storage_class = "made";
  capacity.node_topology = {false, {{model::kHostnameLabel, model::SelectorOperator::kIn, {"a"}}}};
  capacity.capacity_bytes = kGiB;
  Put(capacity);
  EXPECT_EQ(Why(*binding, "a"), "");
  EXPECT_EQ(Why(*binding, "b"), kNoSpace);
  capacity.largest_bytes = kGiB - 1;
  Put(capacity);
  EXPECT_EQ(Why(*binding, "a"), kNoSpace);
  WaitingWith({"at-b", "new"});
  EXPECT_EQ(Why(*binding, "a"),
            "X node(s) didn't match PersistentVolume's node affinity, node(s) did not have enough "
            "free storage");
}

TEST_F(VolumeTest, AClaimThatIsDecidedForTheNodeAsksForNothing) {
  const auto binding = Only("VolumeBinding");
  for (const char* name : {"a", "b"}) AddNode(MakeNode(name, 0));
  Put(Class("local", model::kNoProvisioner));
  for (const char* host : {"a", "b"}) {
    Put(AtLabel(Volume(absl::StrCat("pv-", host), "local"), model::kHostnameLabel, {host}));
  }
  Put(Claim("shared", "local"));
  Put(Claim("own", "local"));
  AddPod(PodWith("first", {"shared"}));
  WaitingWith({"shared"});
  EXPECT_EQ(Why(*binding, "a"), "");
  EXPECT_EQ(Why(*binding, "b"), "");
  {
    state::Transaction txn(state_);
    txn.Allocate(state_.FindPod("ns", "first"), state_.FindNode("a"));
    EXPECT_EQ(Why(*binding, "a"), "") << "its volume is taken, but by this claim";
    WaitingWith({"own"});
    EXPECT_EQ(Why(*binding, "a"), kNoVolumeToBind) << "taken by another claim";
    EXPECT_EQ(Why(*binding, "b"), "");
    WaitingWith({"own", "shared"});
    EXPECT_EQ(Why(*binding, "a"), kNoVolumeToBind);
  }
  WaitingWith({"own"});
  EXPECT_EQ(Why(*binding, "a"), "") << "rolled back";
}

TEST(VolumeBindingArgsTest, BindTimeout) {
  const auto timeout_of = [](std::vector<framework::ProfilePlugin> plugins) {
    return BindTimeoutOf({{"test", std::move(plugins)}});
  };
  EXPECT_EQ(*timeout_of({}), absl::Seconds(600));
  EXPECT_EQ(*timeout_of({{"NodeReady"}, {"VolumeBinding"}}), absl::Seconds(600));
  EXPECT_EQ(*timeout_of({{"VolumeBinding", 1, R"({"bindTimeoutSeconds":0})"}}),
            absl::ZeroDuration());
  EXPECT_EQ(*timeout_of({{"VolumeBinding", 1, R"({"bindTimeoutSeconds":30})"}}), absl::Seconds(30));
  for (const char* bad : {R"({"bindTimeoutSeconds":-1})", R"({"bindTimeoutSeconds":"30s"})",
                          R"({"bindTimeoutSeconds":1.5})"}) {
    EXPECT_THAT(std::string(timeout_of({{"VolumeBinding", 1, bad}}).status().message()),
                HasSubstr("args.bindTimeoutSeconds: must be a whole number from 0 to"))
        << bad;
    EXPECT_FALSE(VolumeBinding::Make(bad).ok()) << bad;
  }
  const auto made = VolumeBinding::Make(R"({"bindTimeoutSeconds":7})");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(dynamic_cast<const VolumeBinding&>(**made).bind_timeout(), absl::Seconds(7));
}

// ---- VolumeZone

TEST_F(VolumeTest, VolumeZone) {
  constexpr char kNo[] = "X node(s) had no available volume zone";
  constexpr char kBetaZone[] = "failure-domain.beta.kubernetes.io/zone";
  constexpr char kBetaRegion[] = "failure-domain.beta.kubernetes.io/region";
  constexpr char kZone[] = "topology.kubernetes.io/zone";
  constexpr char kRegion[] = "topology.kubernetes.io/region";
  using Labels = std::vector<std::pair<const char*, const char*>>;
  struct Case {
    Labels volume, node;
    bool fits;
  };
  const Case cases[] = {
      {{{kZone, "a"}}, {{kZone, "a"}}, true},
      {{{kZone, "a"}}, {{kZone, "b"}}, false},
      {{{kZone, "a"}}, {}, true},  // the node says nothing of zones
      {{{kZone, "a"}}, {{"rack", "r1"}}, true},
      {{{kZone, "a"}}, {{kRegion, "west"}}, false},  // but not of this one
      {{{kZone, "b__a"}}, {{kZone, "a"}}, true},
      {{{kZone, "b__c"}}, {{kZone, "a"}}, false},
      {{{kZone, "a"}, {kRegion, "west"}}, {{kZone, "a"}, {kRegion, "west"}}, true},
      {{{kZone, "a"}, {kRegion, "west"}}, {{kZone, "a"}, {kRegion, "east"}}, false},
      {{{kZone, "a"}, {kRegion, "west"}}, {{kZone, "a"}}, false},
      // A beta label is compared with a beta label first, then with the stable one.
      {{{kBetaZone, "a"}}, {{kBetaZone, "a"}, {kZone, "b"}}, true},
      {{{kBetaZone, "a"}}, {{kBetaZone, "b"}, {kZone, "a"}}, false},
      {{{kBetaZone, "a"}}, {{kZone, "a"}}, true},
      {{{kBetaZone, "a"}}, {{kZone, "b"}}, false},
      {{{kBetaRegion, "west"}}, {{kRegion, "west"}}, true},
      {{{kBetaRegion, "west"}}, {{kRegion, "east"}}, false},
      {{{kZone, "a"}}, {{kBetaZone, "a"}}, false},  // not the other way round
  };
  const auto zone = Only("VolumeZone");
  PutBound("anywhere", Volume("pv-anywhere", "fast"));
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    model::Node node = MakeNode("n", 0);
    for (const auto& [key, value] : c.node) node.meta.labels.Set(key, value);
    AddNode(node);
    model::PersistentVolume volume = Volume("pv", "fast");
    for (const auto& [key, value] : c.volume) volume.meta.labels.Set(key, value);
    PutBound("data", volume);
    WaitingWith({"anywhere", "data"});
    for (const Capacity capacity : kCapacities) {
      EXPECT_EQ(Why(*zone, "n", capacity), c.fits ? "" : kNo);
    }
    EXPECT_EQ(zone->FilterNodeObject(Ctx(), Node("n"), nullptr), c.fits);
  }
}

}  // namespace
}  // namespace fairlead::plugins
