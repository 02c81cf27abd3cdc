// Services and controllers from both encodings. The bytes of protobuf are written by hand, by the
// field numbers of k8s.io/api.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using model::Kind;

// A field of bytes, shorter than 128.
std::string Bytes(int field, absl::string_view value) {
  return absl::StrCat(std::string(1, static_cast<char>(field << 3 | 2)),
                      std::string(1, static_cast<char>(value.size())), value);
}
std::string Number(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}
std::string Entry(absl::string_view key, absl::string_view value) {
  return absl::StrCat(Bytes(1, key), Bytes(2, value));
}
// metadata{name=1, namespace=3, uid=5} and spec, between fields that are not read.
std::string Message(absl::string_view spec) {
  return absl::StrCat(Bytes(1, absl::StrCat(Bytes(1, "web"), Bytes(3, "ns"), Bytes(5, "u"))),
                      Bytes(2, absl::StrCat(Number(4, 3), spec, Bytes(3, "x"))),
                      Bytes(3, Number(1, 1)));
}
std::string Enveloped(Kind kind, absl::string_view spec) {
  const model::KindTraits& traits = model::TraitsOf(kind);
  return testing::Envelope(traits.api_version, traits.name, Message(spec));
}

template <typename T>
T DecodeSource(absl::string_view type, absl::string_view body) {
  const absl::StatusOr<Object> object = DecodeObject(model::KindOf<T>(), type, body);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<T>(*object) : T();
}
std::string Json(absl::string_view spec) {
  return absl::StrCat(R"({"metadata":{"name":"web","namespace":"ns","uid":"u"},"spec":)", spec,
                      "}");
}

template <typename T>
void ExpectAMap() {
  const std::string json =
      Json(R"({"replicas":3,"ports":[{"port":80}],"selector":{"tier":"","app":"web"}})");
  const std::string wire = Enveloped(
      model::KindOf<T>(), absl::StrCat(Bytes(2, Entry("tier", "")), Bytes(2, Entry("app", "web"))));
  for (const T& object : {DecodeSource<T>(kJson, json), DecodeSource<T>(kProtobuf, wire)}) {
    EXPECT_EQ(model::Key(object.meta), "ns/web");
    EXPECT_EQ(object.meta.uid, "u");
    EXPECT_EQ(object.selector, (model::StringMap{{"app", "web"}, {"tier", ""}}));
    EXPECT_EQ(object.invalid, "");
  }
  for (const char* spec : {"{}", R"({"selector":null})", R"({"selector":{}})"}) {
    EXPECT_TRUE(DecodeSource<T>(kJson, Json(spec)).selector.empty()) << spec;
  }
  EXPECT_TRUE(DecodeSource<T>(kProtobuf, Enveloped(model::KindOf<T>(), "")).selector.empty());
  EXPECT_NE(DecodeSource<T>(kJson, Json(R"({"selector":{"app":7}})")).invalid, "");
}

TEST(SpreadSourcesCodecTest, ServicesAndReplicationControllersSelectByAMap) {
  ExpectAMap<model::Service>();
  ExpectAMap<model::ReplicationController>();
}

template <typename T>
void ExpectASelector() {
  const std::string json = Json(
      R"({"selector":{"matchLabels":{"app":"web"},
          "matchExpressions":[{"key":"tier","operator":"NotIn","values":["x"]}]}})");
  // LabelSelector{matchLabels=1, matchExpressions=2{key=1, operator=2, values=3}}.
  const std::string wire = Enveloped(
      model::KindOf<T>(),
      Bytes(2, absl::StrCat(
                   Bytes(1, Entry("app", "web")),
                   Bytes(2, absl::StrCat(Bytes(1, "tier"), Bytes(2, "NotIn"), Bytes(3, "x"))))));
  for (const T& object : {DecodeSource<T>(kJson, json), DecodeSource<T>(kProtobuf, wire)}) {
    EXPECT_EQ(model::Key(object.meta), "ns/web");
    EXPECT_FALSE(object.selector.none);
    EXPECT_TRUE(object.selector.Matches({{"app", "web"}}));
    EXPECT_FALSE(object.selector.Matches({{"app", "web"}, {"tier", "x"}}));
    EXPECT_FALSE(object.selector.Matches({{"app", "db"}}));
    EXPECT_EQ(object.invalid, "");
  }
  EXPECT_TRUE(DecodeSource<T>(kJson, Json("{}")).selector.none);
  EXPECT_TRUE(DecodeSource<T>(kProtobuf, Enveloped(model::KindOf<T>(), "")).selector.none);
  EXPECT_NE(DecodeSource<T>(kJson, Json(R"({"selector":{"matchExpressions":[
                {"key":"k","operator":"Resembles"}]}})"))
                .invalid,
            "");
  EXPECT_NE(DecodeSource<T>(
                kProtobuf,
                Enveloped(model::KindOf<T>(),
                          Bytes(2, Bytes(2, absl::StrCat(Bytes(1, "k"), Bytes(2, "Resembles"))))))
                .invalid,
            "");
}

TEST(SpreadSourcesCodecTest, ReplicaSetsAndStatefulSetsHaveALabelSelector) {
  ExpectASelector<model::ReplicaSet>();
  ExpectASelector<model::StatefulSet>();
}

TEST(SpreadSourcesCodecTest, DamagedBytesAreErrorsAndNeverMore) {
  for (const Kind kind :
       {Kind::kService, Kind::kReplicationController, Kind::kReplicaSet, Kind::kStatefulSet}) {
    const std::string whole =
        Enveloped(kind, absl::StrCat(Bytes(2, Entry("tier", "")), Bytes(2, Entry("app", "web"))));
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
      for (const std::string& bytes : {damaged, whole.substr(0, i)}) {
        const auto object = DecodeObject(kind, kProtobuf, bytes);
        if (!object.ok()) {
          ASSERT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::kube
