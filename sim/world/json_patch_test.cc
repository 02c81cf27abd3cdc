// Patches as text: before, patch, after or the error.
#include "sim/world/json_patch.h"

#include <ostream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

struct PatchRow {
  const char* name;
  const char* before;
  const char* patch;
  const char* after;       // JSON; or
  const char* error = "";  // a part of it
  ResourceType type = ResourceType::kPods;
  friend void PrintTo(const PatchRow& row, std::ostream* out) { *out << row.name; }
};
std::string RowName(const ::testing::TestParamInfo<PatchRow>& info) { return info.param.name; }

void Expect(const PatchRow& row, const std::string& error, const Json& result) {
  EXPECT_THAT(error, ::testing::HasSubstr(row.error));
  if (*row.error == '\0') {
    EXPECT_EQ(error, "");
    EXPECT_EQ(Dump(result), Dump(Parse(row.after)));
  }
}

class JsonPatchTest : public ::testing::TestWithParam<PatchRow> {};
TEST_P(JsonPatchTest, Applies) {
  Json target = Parse(GetParam().before);
  const std::string error = ApplyJsonPatch(Parse(GetParam().patch), target);
  Expect(GetParam(), error, target);
}
const PatchRow kJsonPatches[] = {
    {"Add", R"({"a":{}})", R"([{"op":"add","path":"/a/b","value":1}])", R"({"a":{"b":1}})"},
    {"AddReplacesWhole", R"({"a":{"b":{"x":1}}})",
     R"([{"op":"add","path":"/a/b","value":{"y":2}}])", R"({"a":{"b":{"y":2}}})"},
    {"AddToNothing", R"({})", R"([{"op":"add","path":"/a/b","value":1}])", "", "missing path"},
    {"AddNull", R"({"a":{}})", R"([{"op":"add","path":"/a/b","value":null}])",
     R"({"a":{"b":null}})"},
    {"AddToList", R"({"a":[1,3]})",
     R"([{"op":"add","path":"/a/1","value":2},{"op":"add","path":"/a/-","value":4}])",
     R"({"a":[1,2,3,4]})"},
    {"AddBeyondList", R"({"a":[1]})", R"([{"op":"add","path":"/a/5","value":2}])", "",
     "missing path"},
    {"TestHolds", R"({"a":1})", R"([{"op":"test","path":"/a","value":1}])", R"({"a":1})"},
    {"TestFails", R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])", "", "test failed"},
    {"MissingPassesForNull", R"({})", R"([{"op":"test","path":"/a/b","value":null}])", R"({})"},
    {"EmptyDoesNotPassForNull", R"({"a":{}})", R"([{"op":"test","path":"/a","value":null}])", "",
     "test failed"},
    {"TestOfMissing", R"({})", R"([{"op":"test","path":"/a","value":1}])", "", "test failed"},
    {"Remove", R"({"a":1,"b":[1,2]})",
     R"([{"op":"remove","path":"/a"},{"op":"remove","path":"/b/0"}])", R"({"b":[2]})"},
    {"RemoveMissing", R"({})", R"([{"op":"remove","path":"/a"}])", "", "missing path"},
    {"Replace", R"({"a":1})", R"([{"op":"replace","path":"/a","value":2}])", R"({"a":2})"},
    {"ReplaceMissing", R"({})", R"([{"op":"replace","path":"/a","value":2}])", "", "missing path"},
    {"CopyAndMove", R"({"a":{"x":1}})",
     R"([{"op":"copy","from":"/a","path":"/b"},{"op":"move","from":"/a/x","path":"/c"}])",
     R"({"a":{},"b":{"x":1},"c":1})"},
    {"Escapes", R"({"a/b":1,"c~d":2})",
     R"([{"op":"replace","path":"/a~1b","value":3},{"op":"remove","path":"/c~0d"}])",
     R"({"a/b":3})"},
    {"UnknownOperation", R"({})", R"([{"op":"jump","path":"/a"}])", "", "Unexpected kind: jump"},
    {"NoList", R"({})", R"({"op":"add"})", "", "cannot unmarshal"},
    {"ThroughAText", R"({"a":"text"})", R"([{"op":"add","path":"/a/b","value":1}])", "",
     "missing path"},
};
INSTANTIATE_TEST_SUITE_P(Rows, JsonPatchTest, ::testing::ValuesIn(kJsonPatches), RowName);

class StrategicPatchTest : public ::testing::TestWithParam<PatchRow> {};
TEST_P(StrategicPatchTest, Applies) {
  Json target = Parse(GetParam().before);
  const std::string error =
      ApplyStrategicMergePatch(RowOf(GetParam().type), Parse(GetParam().patch), target);
  Expect(GetParam(), error, target);
}
const PatchRow kStrategicPatches[] = {
    {"ConditionsMergeByType",
     R"({"status":{"conditions":[{"type":"A","status":"True","reason":"r"},{"type":"B"}]}})",
     R"({"status":{"conditions":[{"type":"A","status":"False"},{"type":"C"}]}})",
     R"({"status":{"conditions":[{"type":"A","status":"False","reason":"r"},{"type":"B"},)"
     R"({"type":"C"}]}})"},
    {"NullTakesAway", R"({"metadata":{"annotations":{"a":"1","b":"2"}}})",
     R"({"metadata":{"annotations":{"a":null}}})", R"({"metadata":{"annotations":{"b":"2"}}})"},
    {"NullOfMissing", R"({})", R"({"status":{"x":null}})", R"({"status":{}})"},
    {"NullsOfANewEntryAreNothing", R"({})", R"({"status":{"conditions":[{"type":"A","x":null}]}})",
     R"({"status":{"conditions":[{"type":"A"}]}})"},
    {"OtherListsAreReplaced", R"({"spec":{"taints":[{"key":"a"}]}})",
     R"({"spec":{"taints":[{"key":"b"}]}})", R"({"spec":{"taints":[{"key":"b"}]}})", "",
     ResourceType::kNodes},
    {"FinalizersAreASet", R"({"metadata":{"finalizers":["a"]}})",
     R"({"metadata":{"finalizers":["a","b"]}})", R"({"metadata":{"finalizers":["a","b"]}})"},
    {"ReservedForMergesByUid", R"({"status":{"reservedFor":[{"uid":"1","name":"a"}]}})",
     R"({"status":{"reservedFor":[{"uid":"2","name":"b"}]}})",
     R"({"status":{"reservedFor":[{"name":"a","uid":"1"},{"name":"b","uid":"2"}]}})", "",
     ResourceType::kResourceClaims},
    {"ReservedForOfOthersIsAList", R"({"status":{"reservedFor":[{"uid":"1"}]}})",
     R"({"status":{"reservedFor":[{"uid":"2"}]}})", R"({"status":{"reservedFor":[{"uid":"2"}]}})"},
    {"EntriesAreDeleted", R"({"status":{"conditions":[{"type":"A"},{"type":"B"}]}})",
     R"({"status":{"conditions":[{"type":"A","$patch":"delete"}]}})",
     R"({"status":{"conditions":[{"type":"B"}]}})"},
    {"ObjectsAreReplaced", R"({"spec":{"a":1,"b":2}})", R"({"spec":{"$patch":"replace","c":3}})",
     R"({"spec":{"c":3}})"},
    {"WithoutTheKey", R"({})", R"({"status":{"conditions":[{"status":"True"}]}})", "",
     "declared merge key: type"},
};
INSTANTIATE_TEST_SUITE_P(Rows, StrategicPatchTest, ::testing::ValuesIn(kStrategicPatches), RowName);

TEST(MergePatchTest, ReplacesListsAndTakesNullsAway) {
  Json target = Parse(R"({"a":{"x":1,"y":2},"l":[1,2]})");
  ApplyMergePatch(Parse(R"({"a":{"x":null},"l":[3],"b":{"c":null,"d":1}})"), target);
  EXPECT_EQ(Dump(target), R"({"a":{"y":2},"b":{"d":1},"l":[3]})");
}

}  // namespace
}  // namespace fairlead::sim::world
