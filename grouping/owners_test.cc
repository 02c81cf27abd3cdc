#include "grouping/owners.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grouping/grouping_testing.h"
#include "gtest/gtest.h"

namespace fairlead::grouping::testing {
namespace {

using ::testing::HasSubstr;

Json Thing(int number, size_t above) {
  Json metadata = Json::Object();
  metadata.Set("name", absl::StrCat("t", number)).Set("uid", absl::StrCat("u", number));
  if (above > 0) {
    Json reference = Json::Object();
    reference.Set("apiVersion", "example.com/v1").Set("kind", "Thing");
    reference.Set("name", absl::StrCat("t", number + 1)).Set("uid", absl::StrCat("u", number + 1));
    Json references = Json::Array();
    references.Add(std::move(reference));
    metadata.Set("ownerReferences", std::move(references));
  }
  Json thing = Json::Object();
  thing.Set("apiVersion", "example.com/v1").Set("kind", "Thing");
  thing.Set("metadata", std::move(metadata));
  return thing;
}

absl::StatusOr<Chain> ChainOf(size_t length) {
  static FakeObjects& objects = *new FakeObjects();
  objects = FakeObjects();
  for (size_t i = 0; i < length; ++i) objects.Add(Thing(static_cast<int>(i), length - 1 - i));
  model::Pod pod;
  pod.meta.ns = "team";
  pod.meta.name = pod.meta.uid = "p";
  pod.meta.owners = {{"example.com/v1", "Thing", "t0", "u0", true}};
  return OwnersOf(pod, KindTable::BuiltIn(), objects);
}

TEST(OwnersTest, AChainAsLongAsPermittedIsFollowed) {
  const absl::StatusOr<Chain> chain = ChainOf(kMostOwners);
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_EQ(chain->owners.size(), kMostOwners);
  EXPECT_EQ(chain->owners.front().name.name, "t0");
  EXPECT_EQ(chain->owners.back().name.name, "t15");
  EXPECT_EQ(chain->owners.back().name.ns, "team");
}

TEST(OwnersTest, ALongerChainIsRefused) {
  const absl::StatusOr<Chain> chain = ChainOf(kMostOwners + 1);
  EXPECT_EQ(chain.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(chain.status().message(),
              HasSubstr("example.com/v1 Thing team/t15: metadata.ownerReferences: the pod has more "
                        "than 16 owners above each other"));
}

// The API server bounds no field of a reference.
TEST(OwnersTest, AReferenceThatIsTooLongIsRefusedAndNotQuotedWhole) {
  const FakeObjects objects;
  model::Pod pod;
  pod.meta.ns = "team";
  pod.meta.name = "p";
  pod.meta.owners = {{"example.com/v1", "Thing", std::string(100000, 'x'), "u0", true}};
  const absl::Status status = OwnersOf(pod, KindTable::BuiltIn(), objects).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("xxx\": longer than 253"));
  EXPECT_LT(status.message().size(), 200U);
}

TEST(OwnersTest, ErrorsOfThePortKeepTheirCode) {
  FakeObjects objects;
  objects.Fail({"example.com/v1", "Thing", "team", "t0", ""},
               absl::PermissionDeniedError("things: get"));
  model::Pod pod;
  pod.meta.ns = "team";
  pod.meta.owners = {{"example.com/v1", "Thing", "t0", "u0", true}};
  EXPECT_EQ(OwnersOf(pod, KindTable::BuiltIn(), objects).status(),
            absl::PermissionDeniedError("things: get"));
}

}  // namespace
}  // namespace fairlead::grouping::testing
