// Every kind has a row of traits, a type, decoders, a definition and a rule of the role that belong
// together.
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "document/yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Matches;

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

std::vector<Json> Documents(const std::string& file) {
  std::ifstream in(file);
  const auto documents =
      LoadYaml(std::string(std::istreambuf_iterator<char>(in), {}), {.aliases = true});
  EXPECT_TRUE(documents.ok()) << file << ": " << documents.status();
  return documents.ok() ? *documents : std::vector<Json>();
}

std::vector<std::string> TextsAt(const Json& object, absl::string_view field) {
  std::vector<std::string> texts;
  const Json* list = object.Find(field);
  if (list == nullptr) return texts;
  for (const Json& item : list->items()) texts.push_back(item.text());
  return texts;
}

std::string GroupOf(const model::KindTraits& traits) {
  const std::vector<std::string> parts = absl::StrSplit(traits.api_version, '/');
  return parts.size() == 2 ? parts[0] : "";
}

// True if the ClusterRole of the file permits the verbs for the kind.
bool Permits(const std::vector<Json>& documents, absl::string_view role,
             const model::KindTraits& traits, const std::vector<std::string>& verbs) {
  for (const Json& document : documents) {
    if (document.TextAt({"kind"}) != "ClusterRole") continue;
    if (document.TextAt({"metadata", "name"}) != role) continue;
    for (const Json& rule : document.Find("rules")->items()) {
      if (Matches(Contains(GroupOf(traits)))(TextsAt(rule, "apiGroups")) &&
          Matches(Contains(traits.resource))(TextsAt(rule, "resources")) &&
          Matches(IsSupersetOf(verbs))(TextsAt(rule, "verbs"))) {
        return true;
      }
    }
  }
  return false;
}

TEST(Kinds, TheRoleMayListAndWatchEach) {
  const std::vector<Json> documents = Documents("manifests/base/rbac.yaml");
  for (const model::KindTraits& traits : model::kKindTraits) {
    EXPECT_TRUE(Permits(documents, "fairlead", traits, {"list", "watch"})) << traits.name;
  }
}

// `fairlead explain` and its like list everything once.
TEST(Kinds, TheReadersRoleMayListEach) {
  const std::vector<Json> documents = Documents("manifests/base/reader-rbac.yaml");
  for (const model::KindTraits& traits : model::kKindTraits) {
    EXPECT_TRUE(Permits(documents, "fairlead-reader", traits, {"list"})) << traits.name;
    EXPECT_FALSE(Permits(documents, "fairlead-reader", traits, {"update"})) << traits.name;
  }
}

TEST(Kinds, DefinitionsOfInstalledKindsAreShipped) {
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (traits.presence != model::Presence::kInstalled) continue;
    const std::string file =
        absl::StrCat("crds/", absl::AsciiStrToLower(absl::string_view(traits.name)), ".yaml");
    const std::vector<Json> documents = Documents(file);
    ASSERT_EQ(documents.size(), 1u) << file;
    const Json& crd = documents[0];
    EXPECT_EQ(crd.TextAt({"spec", "names", "kind"}), traits.name);
    EXPECT_EQ(crd.TextAt({"spec", "names", "plural"}), traits.resource);
    EXPECT_EQ(crd.TextAt({"spec", "scope"}), traits.is_namespaced ? "Namespaced" : "Cluster");
    std::vector<std::string> versions;
    for (const Json& version : crd.At({"spec", "versions"})->items()) {
      versions.push_back(
          absl::StrCat(crd.TextAt({"spec", "group"}), "/", version.TextAt({"name"})));
    }
    EXPECT_THAT(versions, Contains(traits.api_version));
  }
}

}  // namespace
}  // namespace fairlead::kube
