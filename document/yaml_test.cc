#include "document/yaml.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fairlead {
namespace {

TEST(YamlToJsonTest, CoreSchema) {
  struct Case {
    const char *yaml, *json;
  };
  const Case cases[] = {
      {"a: 1\nb: [x, 'y', \"z\"]\n", R"({"a":1,"b":["x","y","z"]})"},
      {"no: yes\non: off\n", R"({"no":"yes","on":"off"})"},
      {"[true, false, True, FALSE, 'true']", R"([true,false,true,false,"true"])"},
      {"[~, null, '', 'null', ]", R"([null,null,"","null"])"},
      {"a:\nb: 1", R"({"a":null,"b":1})"},
      {"[-1, +2, 007, 0x1F, 0o17, 1e3, .5, 5., -0.25E-2]", "[-1,2,7,31,15,1e3,0.5,5,-0.25e-2]"},
      {"[1.2.3, 12ab, 0x, -, ., 1e, '5', 2026-11-21]",
       R"(["1.2.3","12ab","0x","-",".","1e","5","2026-11-21"])"},
      {"[9007199254740993, 123456789012345678901234567890]",
       "[9007199254740993,123456789012345678901234567890]"},
      {"[!!str 5, !!str true]", R"(["5","true"])"},
      {"t: |\n  a\n  b\n", R"({"t":"a\nb\n"})"},
      {"1: x", R"({"1":"x"})"},
      {R"({"j": [1, {"k": "v\n"}]})", R"({"j":[1,{"k":"v\n"}]})"},
  };
  for (const Case& c : cases) {
    absl::StatusOr<std::vector<std::string>> documents = YamlToJson(c.yaml);
    ASSERT_TRUE(documents.ok()) << c.yaml << documents.status();
    ASSERT_EQ(documents->size(), 1u) << c.yaml;
    EXPECT_EQ((*documents)[0], c.json) << c.yaml;
  }
}

TEST(YamlToJsonTest, Documents) {
  absl::StatusOr<std::vector<std::string>> documents =
      YamlToJson("# only a comment\n---\na: 1\n---\n---\nb: 2\n...\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(*documents, (std::vector<std::string>{"{\"a\":1}", "null", "{\"b\":2}"}));
  EXPECT_TRUE(YamlToJson("")->empty());
}

TEST(YamlToJsonTest, RefusesWithLineAndColumn) {
  struct Case {
    std::string yaml, place, why;
  };
  const Case cases[] = {
      {"a: 1\nb: 2\na: 3\n", "line 3, column 1: ", "given twice"},
      {"x:\n  k: 1\n  'k': 2\n", "line 3, column 3: ", "given twice"},
      {"a: &x 1\n", "line 1, column ", "anchors"},
      {"a: &x [*x]\n", "line 1, column ", "anchors"},
      {"a: *x\n", "line 1, column ", ""},
      {"? [a]\n: 1\n", "line 1, column 3: ", "key must be a string"},
      {"~: 1\n", "line 1, column 1: ", "key must be a string"},
      {"<<: {a: 1}\n", "line 1, column 1: ", "merge keys"},
      {"a: .inf\n", "line 1, column 4: ", "JSON"},
      {"a: !!binary aGk=\n", "line 1, column ", "tag"},
      {"a: !custom {}\n", "line 1, column ", "tag"},
      {"a: [1,\n", "line 2, column ", ""},
      {"a: b: c\n", "line 1, column ", ""},
      {"\ta: 1\n", "line 1, column ", ""},
      // yaml-cpp does not advance past these texts by itself (found by tests/fuzz/wire_fuzz.cc).
      {",\"c\":[{\"a\":\"b\"}", "line 1, column 1: ", "unexpected"},
      {"a: 1\n---\n]\n", "line 3, column 1: ", "illegal"},
      {std::string(65, '[') + std::string(65, ']'), "line 1, column 65: ", "deeper"},
      {std::string(100000, '['), "line 1, column ", ""},
      {std::string(100000, '{'), "line 1, column ", ""},
  };
  for (const Case& c : cases) {
    const std::string message(YamlToJson(c.yaml).status().message());
    EXPECT_TRUE(absl::StartsWith(message, absl::StrCat("YAML: ", c.place)))
        << c.yaml.substr(0, 40) << " -> " << message;
    EXPECT_TRUE(absl::StrContains(message, c.why)) << message;
  }
  EXPECT_TRUE(YamlToJson(std::string(64, '[') + std::string(64, ']')).ok());
}

TEST(LoadYamlTest, AliasesAreResolvedAndBombsRefused) {
  const YamlOptions aliases{.aliases = true};
  const auto trees = LoadYaml("---\na: &x {n: 1, s: '1', t: true, d: 0.5}\nb: *x\n", aliases);
  ASSERT_TRUE(trees.ok()) << trees.status();
  ASSERT_EQ(trees->size(), 1u);
  EXPECT_EQ((*trees)[0].Find("b")->Compact(), R"({"n":1,"s":"1","t":true,"d":0.5})");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j == 0 ? "" : ", ", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_TRUE(absl::StrContains(LoadYaml(bomb, aliases).status().message(), "more than"));
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&deep, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_TRUE(absl::StrContains(LoadYaml(deep, aliases).status().message(), "nested deeper"));
  EXPECT_FALSE(LoadYaml("a: &x [*x]", aliases).ok());
  EXPECT_FALSE(LoadYaml("? &k a\n: 1\nb: *k", {}).ok());
}

TEST(LoadYamlTest, ErrorsNameTheFileAndHideSecrets) {
  EXPECT_EQ(LoadYaml("a: 1\na: 2", {.file_name = "f.yaml"}).status().message(),
            "f.yaml:2:1: given twice: \"a\"");
  EXPECT_EQ(LoadYaml("a: 1\na: 2", {.file_name = "f.yaml", .quotes = false}).status().message(),
            "f.yaml:2:1: given twice");
}

TEST(LoadYamlTest, ValuesKnowTheirPlaces) {
  const auto trees = LoadYaml("a:\n  b.c: 1\n  b:\n    c: [x, {d: 2}]\n");
  ASSERT_TRUE(trees.ok()) << trees.status();
  const Json& root = trees->front();
  EXPECT_EQ(FindPlace(root, "a.b.c").line, 2) << "the longest key that fits";
  EXPECT_EQ(FindPlace(root, "a.b").line, 3);
  EXPECT_EQ(FindPlace(root, "a.b[3]").line, 3) << "the deepest part that exists";
  EXPECT_EQ(FindPlace(root, "").line, 1);
  const Json* list = root.At({"a", "b", "c"});
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->place().column, 8);
  EXPECT_EQ(list->key_place().column, 5);
  EXPECT_EQ(FindPlace(*list, "[1].d").column, 13);
  EXPECT_EQ(FindPlace(*list, "[1000000000000000000000]").column, 8);
}

}  // namespace
}  // namespace fairlead
