// The kinds of storage from JSON.
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "scheduler/model/volumes.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Claim = model::PersistentVolumeClaim;
using Volume = model::PersistentVolume;
using Capacity = model::CsiStorageCapacity;
using Binding = model::StorageClass::Binding;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// `rest` follows the metadata, whose last field is `annotations`.
template <typename T>
T DecodeVolumeObject(absl::string_view rest, absl::string_view annotations = "null") {
  const model::KindTraits& traits = model::TraitsOf(model::KindOf<T>());
  const auto decoded = DecodeObject(
      traits.kind, kJson,
      absl::StrCat(R"({"apiVersion":")", traits.api_version, R"(","kind":")", traits.name,
                   R"(","metadata":{"name":"o","namespace":"ns","uid":"u","resourceVersion":"7",)",
                   R"("annotations":)", annotations, "}", rest.empty() ? "" : ",", rest, "}"));
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? std::get<T>(*decoded) : T();
}

Claim ClaimOf(absl::string_view spec) {
  return DecodeVolumeObject<Claim>(absl::StrCat(R"("spec":{)", spec, "}"));
}
Volume VolumeOf(absl::string_view spec) {
  return DecodeVolumeObject<Volume>(absl::StrCat(R"("spec":{)", spec, "}"));
}

TEST(VolumeJson, WhatIsNotUnderstoodOfAClaimIsSaid) {
  struct Case {
    const char *spec, *problem;
  };
  const Case cases[] = {
      {R"("resources":{"requests":{"storage":"lots"}})",
       "spec.resources.requests[storage]: \"lots\" is not a quantity"},
      {R"("resources":{"requests":{"storage":"-1"}})",
       "spec.resources.requests[storage]: \"-1\" must not be negative"},
      {R"("resources":{"requests":{"storage":true}})",
       "spec.resources.requests[storage]: must be a number or a string, not true or false"},
      {R"("resources":{"requests":[]})", "spec.resources.requests: must be an object, not a list"},
      {R"("resources":7)", "spec.resources: must be an object, not a number"},
      {R"("accessModes":"ReadWriteOnce")", "spec.accessModes: must be a list, not a string"},
      {R"("accessModes":[1])", "spec.accessModes[0]: must be a string, not a number"},
      {R"("volumeMode":"block")", R"(spec.volumeMode: "block" is none of Filesystem, Block)"},
      {R"("volumeMode":1)", "spec.volumeMode: must be a string, not a number"},
      {R"("storageClassName":{})", "spec.storageClassName: must be a string, not an object"},
      {R"("volumeName":1)", "spec.volumeName: must be a string, not a number"},
      {R"("selector":"a=b")", "spec.selector: must be an object, not a string"},
      {R"("selector":{"matchLabels":{"a":1}})",
       "spec.selector.matchLabels[a]: must be a string, not a number"},
      {R"("selector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]})",
       R"(spec.selector.matchExpressions[0].operator: "Gt" is none of In, NotIn, Exists)"},
      {R"("selector":{"matchExpressions":[{"key":"a","operator":"NotIn","values":[]}]})",
       R"(spec.selector: the requirement on "a" must have values)"},
      {R"("selector":{"matchExpressions":[{"key":"a","operator":"In"}]})",
       R"(spec.selector: the requirement on "a" must have values)"},
      {R"("selector":{"matchExpressions":[{"key":"a","operator":"Exists","values":["1"]}]})",
       R"(spec.selector: the requirement on "a" must not have values)"},
  };
  for (const Case& c : cases) {
    const Claim claim = ClaimOf(c.spec);
    EXPECT_THAT(claim.invalid, HasSubstr(c.problem)) << c.spec;
    EXPECT_EQ(claim.meta.name, "o") << "the object is not lost";
    EXPECT_FALSE(claim.has_request) << c.spec;
  }
  EXPECT_THAT(DecodeVolumeObject<Claim>(R"("spec":[])").invalid,
              HasSubstr("spec: must be an object"));
  EXPECT_THAT(DecodeVolumeObject<Claim>(R"("status":{"phase":1})").invalid,
              HasSubstr("status.phase"));
  EXPECT_TRUE(ClaimOf(R"("selector":7)").selector.none);
}

TEST(VolumeJson, WhatIsNotUnderstoodOfOtherKindsIsSaid) {
  struct Case {
    std::string invalid;
    const char* problem;
  };
  const Case cases[] = {
      {VolumeOf(R"("capacity":{"storage":"1GiB"})").invalid,
       "spec.capacity[storage]: \"1GiB\" is not a quantity"},
      {VolumeOf(R"("volumeMode":"")").invalid, "spec.volumeMode"},
      {VolumeOf(R"("claimRef":"ns/c")").invalid, "spec.claimRef: must be an object"},
      {VolumeOf(R"("claimRef":{"uid":7})").invalid, "spec.claimRef.uid"},
      {VolumeOf(R"("nodeAffinity":{"required":[]})").invalid, "spec.nodeAffinity.required"},
      {VolumeOf(R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)"
                R"({"key":"a","operator":"Is"}]}]}})")
           .invalid,
       "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator"},
      {VolumeOf(R"("csi":{"driver":[]})").invalid, "spec.csi.driver"},
      {DecodeVolumeObject<Volume>(R"("status":"Available")").invalid, "status: must be an object"},
      {DecodeVolumeObject<model::StorageClass>(R"("volumeBindingMode":"Later")").invalid,
       R"(volumeBindingMode: "Later" is none of Immediate, WaitForFirstConsumer)"},
      {DecodeVolumeObject<model::StorageClass>(R"("provisioner":7)").invalid, "provisioner"},
      {DecodeVolumeObject<model::StorageClass>(R"("allowedTopologies":{})").invalid,
       "allowedTopologies"},
      {DecodeVolumeObject<model::StorageClass>(
           R"("allowedTopologies":[{"matchLabelExpressions":[{"key":"a","values":"b"}]}])")
           .invalid,
       "allowedTopologies[0].matchLabelExpressions[0].values: must be a list"},
      {DecodeVolumeObject<Capacity>(R"("capacity":"much")").invalid,
       "capacity: \"much\" is not a quantity"},
      {DecodeVolumeObject<Capacity>(R"("maximumVolumeSize":"-1Gi")").invalid,
       "maximumVolumeSize: \"-1Gi\" must not be negative"},
      {DecodeVolumeObject<Capacity>(R"("nodeTopology":[])").invalid,
       "nodeTopology: must be an object"},
      {DecodeVolumeObject<Capacity>(
           R"("nodeTopology":{"matchExpressions":[{"key":"a","operator":"NotIn"}]})")
           .invalid,
       "nodeTopology: the requirement on \"a\" must have values"},
  };
  for (const Case& c : cases) EXPECT_THAT(c.invalid, HasSubstr(c.problem));
}

// These kinds have no field that says it: a server has no such objects, and manifests are refused.
TEST(VolumeJson, WrongTypesInKindsThatCannotSayIt) {
  const auto node = DecodeVolumeObject<model::CsiNode>(
      R"("spec":{"drivers":[{"name":"a","allocatable":{"count":"3"}},{"name":"b"},7]})");
  EXPECT_THAT(node.drivers, ElementsAre(model::CsiNode::Driver{"a", {}},
                                        model::CsiNode::Driver{"b", {}}, model::CsiNode::Driver{}));
  EXPECT_FALSE(DecodeVolumeObject<model::CsiDriver>(R"("spec":{"storageCapacity":"true"})")
                   .storage_capacity);
  EXPECT_EQ(
      DecodeVolumeObject<model::VolumeAttachment>(R"("spec":{"source":7,"attacher":{}})").driver,
      "");
  EXPECT_FALSE(DecodeManifests(R"({"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver",)"
                               R"("metadata":{"name":"d"},"spec":{"storageCapacity":"true"}})")
                   .ok());
}

TEST(VolumeJson, QuantitiesAreRoundedUpToBytes) {
  struct Case {
    const char* text;
    int64_t bytes;
  };
  const Case cases[] = {
      {R"("0")", 0},
      {R"("10Gi")", int64_t{10} << 30},
      {R"("1.5Ki")", 1536},
      {R"("1G")", 1000 * 1000 * 1000},
      {R"("1m")", 1},
      {R"("1000001m")", 1001},
      {R"("1e3")", 1000},
      {"1024", 1024},
      {R"("0.1Ki")", 103},
      {R"("8Ei")", kMax},
      {R"("9223372036854775807")", kMax},
      {R"("99999999999999999999999999999999999999999999999999E")", kMax},
      {"1e300", kMax},
  };
  for (const Case& c : cases) {
    const Claim claim =
        ClaimOf(absl::StrCat(R"("resources":{"limits":{"storage":"1"},)",
                             R"("requests":{"other":"x","storage":)", c.text, "}}"));
    EXPECT_EQ(claim.invalid, "") << c.text;
    EXPECT_TRUE(claim.has_request) << c.text;
    EXPECT_EQ(claim.requested_bytes, c.bytes) << c.text;
    EXPECT_EQ(VolumeOf(absl::StrCat(R"("capacity":{"storage":)", c.text, "}")).capacity_bytes,
              c.bytes)
        << c.text;
    const auto capacity = DecodeVolumeObject<Capacity>(
        absl::StrCat(R"("capacity":)", c.text, R"(,"maximumVolumeSize":)", c.text));
    EXPECT_EQ(capacity.capacity_bytes, c.bytes) << c.text;
    EXPECT_EQ(capacity.largest_bytes, c.bytes) << c.text;
  }
  const Claim endless = ClaimOf(
      absl::StrCat(R"("resources":{"requests":{"storage":")", std::string(100'000, '9'), "\"}}"));
  EXPECT_THAT(endless.invalid, HasSubstr("is not a quantity"));
  EXPECT_LT(endless.invalid.size(), 300u);
}

TEST(VolumeJson, AbsentFields) {
  const auto claim = DecodeVolumeObject<Claim>("");
  EXPECT_EQ(claim.invalid, "");
  EXPECT_EQ(claim.storage_class + claim.volume_name + claim.selected_node + claim.attributes_class,
            "");
  EXPECT_EQ(claim.access_modes, 0);
  EXPECT_FALSE(claim.block || claim.has_request || claim.bind_completed || claim.lost);
  EXPECT_TRUE(claim.selector.none);
  EXPECT_FALSE(ClaimOf(R"("resources":{"requests":{"storage":null}},"selector":null)").has_request);
  EXPECT_FALSE(ClaimOf(R"("selector":{})").selector.none) << "it matches every volume";

  const auto volume = DecodeVolumeObject<Volume>("");
  EXPECT_EQ(volume.invalid, "");
  EXPECT_EQ(volume.storage_class + volume.attributes_class + volume.csi_driver + volume.csi_handle,
            "");
  EXPECT_EQ(volume.capacity_bytes, 0);
  EXPECT_EQ(volume.access_modes, 0);
  EXPECT_FALSE(volume.block || volume.has_node_affinity || volume.available);
  EXPECT_FALSE(volume.claim.has_value());
  EXPECT_FALSE(VolumeOf(R"("nodeAffinity":{},"claimRef":null)").has_node_affinity);

  const auto storage_class = DecodeVolumeObject<model::StorageClass>("");
  EXPECT_EQ(storage_class.invalid, "");
  EXPECT_EQ(storage_class.binding, Binding::kNotSet);
  EXPECT_THAT(storage_class.allowed_topologies, IsEmpty());
  const auto capacity = DecodeVolumeObject<Capacity>("");
  EXPECT_EQ(capacity.invalid, "");
  EXPECT_TRUE(capacity.node_topology.none);
  EXPECT_FALSE(capacity.capacity_bytes.has_value() || capacity.largest_bytes.has_value());
  EXPECT_THAT(DecodeVolumeObject<model::CsiNode>("").drivers, IsEmpty());
  EXPECT_FALSE(DecodeVolumeObject<model::CsiDriver>("").storage_capacity);
  const auto attachment = DecodeVolumeObject<model::VolumeAttachment>("");
  EXPECT_EQ(attachment.driver + attachment.node_name + attachment.volume_name, "");
}

TEST(VolumeJson, TheAnnotationGoesBeforeTheStorageClassOfTheSpec) {
  struct Case {
    const char *annotations, *spec, *want;
  };
  const Case cases[] = {
      {"null", "{}", ""},
      {"null", R"({"storageClassName":"field"})", "field"},
      {R"({"volume.beta.kubernetes.io/storage-class":"beta"})", "{}", "beta"},
      {R"({"volume.beta.kubernetes.io/storage-class":"beta"})", R"({"storageClassName":"field"})",
       "beta"},
      {R"({"volume.beta.kubernetes.io/storage-class":""})", R"({"storageClassName":"field"})", ""},
      {R"({"volume.kubernetes.io/storage-class":"x"})", R"({"storageClassName":"field"})", "field"},
  };
  for (const Case& c : cases) {
    const std::string spec = absl::StrCat(R"("spec":)", c.spec);
    EXPECT_EQ(DecodeVolumeObject<Claim>(spec, c.annotations).storage_class, c.want)
        << c.annotations;
    EXPECT_EQ(DecodeVolumeObject<Volume>(spec, c.annotations).storage_class, c.want)
        << c.annotations;
  }
  const auto wrong =
      DecodeVolumeObject<Claim>("", R"({"volume.beta.kubernetes.io/storage-class":7,"other":8})");
  EXPECT_EQ(wrong.invalid,
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: must be a string, not "
            "a number");
}

TEST(VolumeJson, ReadsClaims) {
  const auto claim = DecodeVolumeObject<Claim>(
      R"("spec":{"accessModes":["ReadWriteOnce","ReadWriteOncePod","Telepathy"],)"
      R"("storageClassName":"fast","volumeMode":"Block","volumeName":"pv",)"
      R"("volumeAttributesClassName":"gold","resources":{"requests":{"storage":"2Gi"}},)"
      R"("selector":{"matchLabels":{"b":"c"},"matchExpressions":[)"
      R"({"key":"a","operator":"NotIn","values":["x"]},{"key":"d","operator":"Exists"}]},)"
      R"("dataSource":{"kind":"VolumeSnapshot","name":"s"}},"status":{"phase":"Lost"})",
      R"({"pv.kubernetes.io/bind-completed":"","volume.kubernetes.io/selected-node":"n1",)"
      R"("pv.kubernetes.io/bound-by-controller":"yes","fairlead.dev/x":"kept"})");
  EXPECT_EQ(claim.invalid, "");
  EXPECT_EQ(model::Key(claim.meta), "ns/o");
  EXPECT_EQ(claim.meta.uid, "u");
  EXPECT_EQ(claim.meta.resource_version, "7");
  EXPECT_EQ(claim.meta.annotations.size(), 1u);
  EXPECT_EQ(claim.meta.annotations.Get("fairlead.dev/x"), "kept");
  EXPECT_EQ(claim.access_modes, model::kReadWriteOnce | model::kReadWriteOncePod);
  EXPECT_EQ(claim.storage_class, "fast");
  EXPECT_EQ(claim.volume_name, "pv");
  EXPECT_EQ(claim.attributes_class, "gold");
  EXPECT_EQ(claim.selected_node, "n1");
  EXPECT_EQ(claim.requested_bytes, int64_t{2} << 30);
  EXPECT_TRUE(claim.block && claim.has_request && claim.bind_completed && claim.lost);
  EXPECT_TRUE(claim.IsBound());
  EXPECT_TRUE(claim.selector.Matches({{"b", "c"}, {"d", ""}}));
  EXPECT_FALSE(claim.selector.Matches({{"b", "c"}}));
  EXPECT_FALSE(claim.selector.Matches({{"a", "x"}, {"b", "c"}, {"d", ""}}));
  EXPECT_FALSE(DecodeVolumeObject<Claim>(R"("status":{"phase":"Pending"})").lost);
}

TEST(VolumeJson, ReadsVolumes) {
  const auto volume = DecodeVolumeObject<Volume>(
      R"("spec":{"capacity":{"storage":"5Gi"},"accessModes":["ReadOnlyMany","ReadWriteMany"],)"
      R"("volumeMode":"Block","storageClassName":"local","volumeAttributesClassName":"gold",)"
      R"("claimRef":{"kind":"PersistentVolumeClaim","namespace":"ns","name":"c","uid":"cu"},)"
      R"("csi":{"driver":"d.io","volumeHandle":"h1","fsType":"ext4"},)"
      R"("nodeAffinity":{"required":{"nodeSelectorTerms":[)"
      R"({"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]},)"
      R"({"matchExpressions":[{"key":"x","operator":"Gt","values":["3"]}]}]}}},)"
      R"("status":{"phase":"Available"})");
  EXPECT_EQ(volume.invalid, "");
  EXPECT_EQ(volume.capacity_bytes, int64_t{5} << 30);
  EXPECT_EQ(volume.access_modes, model::kReadOnlyMany | model::kReadWriteMany);
  EXPECT_TRUE(volume.block && volume.has_node_affinity && volume.available);
  EXPECT_EQ(volume.storage_class, "local");
  EXPECT_EQ(volume.attributes_class, "gold");
  EXPECT_EQ(volume.csi_driver, "d.io");
  EXPECT_EQ(volume.csi_handle, "h1");
  EXPECT_EQ(volume.claim, (Volume::ClaimRef{"ns", "c", "cu"}));
  ASSERT_EQ(volume.node_terms.size(), 2u);
  EXPECT_TRUE(volume.node_terms[0].Matches({{"kubernetes.io/hostname", "n1"}}, ""));
  EXPECT_TRUE(volume.node_terms[1].Matches({{"x", "4"}}, ""));
  EXPECT_FALSE(DecodeVolumeObject<Volume>(R"("status":{"phase":"Released"})").available);
  // Made for a claim that need not exist yet; for one that nothing is.
  EXPECT_EQ(VolumeOf(R"("claimRef":{"namespace":"ns","name":"c"})").claim,
            (Volume::ClaimRef{"ns", "c", ""}));
  EXPECT_EQ(VolumeOf(R"("claimRef":{})").claim, Volume::ClaimRef());
  // An affinity that no node satisfies is one.
  const Volume nowhere = VolumeOf(R"("nodeAffinity":{"required":{"nodeSelectorTerms":[]}})");
  EXPECT_TRUE(nowhere.has_node_affinity);
  EXPECT_THAT(nowhere.node_terms, IsEmpty());
}

TEST(VolumeJson, ReadsStorageClasses) {
  const auto storage_class = DecodeVolumeObject<model::StorageClass>(
      R"("provisioner":"d.io","volumeBindingMode":"WaitForFirstConsumer","parameters":{"a":"b"},)"
      R"("allowedTopologies":[{"matchLabelExpressions":[{"key":"zone","values":["a","b"]},)"
      R"({"key":"rack","values":["1"]}]},{"matchLabelExpressions":[{"key":"zone","values":[]}]},)"
      R"({"matchLabelExpressions":[{"key":"zone"}]},{}])");
  EXPECT_EQ(storage_class.invalid, "");
  EXPECT_EQ(storage_class.provisioner, "d.io");
  EXPECT_EQ(storage_class.binding, Binding::kWaitForFirstConsumer);
  const std::vector<model::NodeSelectorTerm>& terms = storage_class.allowed_topologies;
  ASSERT_EQ(terms.size(), 4u);
  EXPECT_TRUE(terms[0].Matches({{"zone", "b"}, {"rack", "1"}}, "n"));
  EXPECT_FALSE(terms[0].Matches({{"zone", "b"}}, "n"));
  for (size_t i = 1; i < terms.size(); ++i) {
    for (const model::StringMap& labels :
         {model::StringMap{}, model::StringMap{{"zone", "a"}}, model::StringMap{{"zone", ""}}}) {
      EXPECT_FALSE(terms[i].Matches(labels, "n")) << i;
    }
  }
  EXPECT_EQ(DecodeVolumeObject<model::StorageClass>(R"("volumeBindingMode":"Immediate")").binding,
            Binding::kImmediate);
}

TEST(VolumeJson, ReadsWhatDriversSay) {
  const auto node = DecodeVolumeObject<model::CsiNode>(
      R"("spec":{"drivers":[{"name":"a","nodeID":"x","allocatable":{"count":25}},)"
      R"({"name":"b","topologyKeys":["zone"],"allocatable":{}},)"
      R"({"name":"c","allocatable":{"count":0}}]})");
  EXPECT_THAT(node.drivers,
              ElementsAre(model::CsiNode::Driver{"a", 25}, model::CsiNode::Driver{"b", {}},
                          model::CsiNode::Driver{"c", 0}));
  EXPECT_TRUE(
      DecodeVolumeObject<model::CsiDriver>(R"("spec":{"storageCapacity":true})").storage_capacity);
  EXPECT_FALSE(
      DecodeVolumeObject<model::CsiDriver>(R"("spec":{"storageCapacity":false})").storage_capacity);

  const auto capacity = DecodeVolumeObject<Capacity>(
      R"("storageClassName":"fast","capacity":"10Gi","maximumVolumeSize":"1Gi",)"
      R"("nodeTopology":{"matchLabels":{"zone":"a"}})");
  EXPECT_EQ(capacity.invalid, "");
  EXPECT_EQ(model::Key(capacity.meta), "ns/o");
  EXPECT_EQ(capacity.storage_class, "fast");
  EXPECT_EQ(capacity.capacity_bytes, int64_t{10} << 30);
  EXPECT_EQ(capacity.largest_bytes, int64_t{1} << 30);
  EXPECT_TRUE(capacity.node_topology.Matches({{"zone", "a"}}));
  EXPECT_FALSE(capacity.node_topology.Matches({{"zone", "b"}}));

  const auto attachment = DecodeVolumeObject<model::VolumeAttachment>(
      R"("spec":{"attacher":"d.io","nodeName":"n1","source":{"persistentVolumeName":"pv"}},)"
      R"("status":{"attached":true})");
  EXPECT_EQ(attachment.driver, "d.io");
  EXPECT_EQ(attachment.node_name, "n1");
  EXPECT_EQ(attachment.volume_name, "pv");
  EXPECT_EQ(DecodeVolumeObject<model::VolumeAttachment>(
                R"("spec":{"attacher":"d.io","source":{"inlineVolumeSpec":{}}})")
                .volume_name,
            "");
}

}  // namespace
}  // namespace fairlead::kube
