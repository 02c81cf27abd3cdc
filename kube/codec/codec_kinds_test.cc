// Every kind has a row of traits, a type and decoders that belong together.
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

std::string Smallest(const model::KindTraits& traits, absl::string_view metadata = "") {
  return absl::StrCat(R"({"apiVersion":")", traits.api_version, R"(","kind":")", traits.name,
                      R"(","metadata":{"name":"x")", metadata, "}}");
}

TEST(Kinds, RowTypeAndDecoderBelongTogether) {
  for (const model::KindTraits& traits : model::kKindTraits) {
    SCOPED_TRACE(traits.name);
    const auto object = DecodeObject(traits.kind, kJson, Smallest(traits));
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(model::KindOf(*object), traits.kind);
    EXPECT_EQ(MetaOf(*object).name, "x");
    // A decoder checks what the text says of itself, so no two kinds have each other's.
    for (const model::KindTraits& other : model::kKindTraits) {
      const bool same = other.kind == traits.kind;
      EXPECT_EQ(DecodeObject(traits.kind, kJson, Smallest(other)).ok(), same) << other.name;
    }
  }
}

TEST(Kinds, ProtobufIsReadWhereTheServerOffersIt) {
  for (const model::KindTraits& traits : model::kKindTraits) {
    // runtime.Unknown{typeMeta=1{apiVersion=1, kind=2}, raw=2}, the raw object empty.
    const std::string type = absl::StrCat(
        "\x12", std::string(1, static_cast<char>(std::string(traits.name).size())), traits.name);
    const std::string body = absl::StrCat(absl::string_view("k8s\0\x0a", 5),
                                          std::string(1, static_cast<char>(type.size())), type,
                                          absl::string_view("\x12\0", 2));
    const auto object = DecodeObject(traits.kind, kProtobuf, body);
    EXPECT_EQ(object.ok(), HasProtobuf(traits.kind)) << traits.name << ": " << object.status();
    if (!object.ok()) continue;
    EXPECT_EQ(model::KindOf(*object), traits.kind);
  }
}

TEST(Kinds, ManifestsOfEveryKindAreRead) {
  for (const model::KindTraits& traits : model::kKindTraits) {
    SCOPED_TRACE(traits.name);
    const auto manifests = DecodeManifests(Smallest(traits));
    // A NodeRequest without its spec is refused, for it has no field that says so.
    if (!manifests.ok()) {
      EXPECT_EQ(traits.kind, model::Kind::kNodeRequest) << manifests.status();
      continue;
    }
    ASSERT_EQ(manifests->objects.size(), 1u);
    EXPECT_EQ(MetaOf(manifests->objects[0]).ns, traits.is_namespaced ? "default" : "");
    if (const auto* pod = std::get_if<model::Pod>(&manifests->objects[0])) {
      EXPECT_EQ(pod->spec.ns, "default");
    }
  }
}

TEST(Kinds, PathsAreDistinct) {
  std::set<std::string> paths;
  for (const model::KindTraits& traits : model::kKindTraits) {
    EXPECT_TRUE(paths.insert(CollectionPath(traits.kind)).second) << traits.name;
    EXPECT_EQ(absl::StartsWith(CollectionPath(traits.kind), "/api/v1/"),
              absl::string_view(traits.api_version) == "v1");
  }
}

}  // namespace
}  // namespace fairlead::kube
