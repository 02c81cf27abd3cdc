#include "document/json.h"

#include <gtest/gtest.h>

#include "document/yaml.h"

namespace fairlead {
namespace {

Json Sample() {
  Json resources = Json::Object();
  resources.Set("nvidia.com/gpu", "8").Set("cpu", "500m");
  Json items = Json::Array();
  Json first = Json::Object();
  first.Set("name", "a b").Set("resources", resources).Set("tags", Json::Array());
  Json second = Json::Object();
  second.Set("name", "yes").Set("count", Json::Int(-3)).Set("leaf", Json::Bool(true));
  items.Add(first).Add(second).Add(Json::String("plain")).Add(Json());
  Json json = Json::Object();
  return json.Set("kind", "List").Set("items", items).Set("none", Json::Object());
}

TEST(JsonTest, Compact) {
  EXPECT_EQ(Sample().Compact(),
            R"({"kind":"List","items":[{"name":"a b","resources":{"nvidia.com/gpu":"8",)"
            R"("cpu":"500m"},"tags":[]},{"name":"yes","count":-3,"leaf":true},"plain",null],)"
            R"("none":{}})");
}

TEST(JsonTest, Pretty) {
  Json json = Json::Object();
  Json list = Json::Array();
  json.Set("a", list.Add(Json::Int(1)).Add(Json::Object())).Set("b", "x\"y");
  EXPECT_EQ(json.Pretty(), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"x\\\"y\"\n}\n");
}

TEST(JsonTest, Yaml) {
  EXPECT_EQ(Sample().Yaml(),
            "kind: List\n"
            "items:\n"
            "- name: a b\n"
            "  resources:\n"
            "    nvidia.com/gpu: \"8\"\n"
            "    cpu: \"500m\"\n"
            "  tags: []\n"
            "- name: \"yes\"\n"
            "  count: -3\n"
            "  leaf: true\n"
            "- plain\n"
            "- null\n"
            "none: {}\n");
}

// A strict reader of YAML gets an equal tree back, whatever the strings are.
TEST(JsonTest, YamlReadsBackAsTheSame) {
  for (const char* text : {"",
                           " ",
                           "true",
                           "No",
                           "1",
                           "-1.5",
                           "~",
                           "null",
                           "a: b",
                           "a #b",
                           "- x",
                           "#x",
                           "&a",
                           "*a",
                           "!t",
                           "%d",
                           "@x",
                           "`x`",
                           "{a",
                           "[a",
                           "'q'",
                           "\"q\"",
                           "multi\nline",
                           "tab\there",
                           "2026-03-02T00:00:00Z",
                           "0x10",
                           "é\xE7\xA0\x94",
                           "trailing ",
                           "?",
                           "a,b",
                           "=",
                           "<<",
                           ".inf",
                           "1_000"}) {
    Json json = Json::Object();
    Json list = Json::Array();
    json.Set("key", text).Set(text[0] == '\0' ? "empty" : text, Json::Int(1));
    list.Add(Json::String(text));
    json.Set("list", list);
    const auto read = YamlToJson(json.Yaml());
    ASSERT_TRUE(read.ok()) << text << ": " << read.status() << "\n" << json.Yaml();
    ASSERT_EQ(read->size(), 1u) << text;
    EXPECT_EQ((*read)[0], json.Compact()) << text;
  }
}

TEST(JsonTest, ParsesAndKeepsOrderAndNumbers) {
  for (const char* text : {R"({"b":1,"a":[true,false,null,"x",-5,18446744073709551615,0.1]})", "[]",
                           "\"x\"", "null", R"({"a":{"b":{}}})"}) {
    const absl::StatusOr<Json> json = Json::Parse(text);
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(json->Compact(), text);
  }
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "nul", "{} {}"}) {
    EXPECT_EQ(Json::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(JsonTest, FindsAndReplaces) {
  Json json = *Json::Parse(R"({"a":{"b":"c"},"n":7})");
  EXPECT_EQ(json.TextAt({"a", "b"}), "c");
  EXPECT_EQ(json.TextAt({"n"}), "7");
  EXPECT_EQ(json.TextAt({"a", "x", "y"}), "");
  EXPECT_EQ(json.At({"n", "b"}), nullptr);
  json.At({"a"})->Set("b", "d");
  EXPECT_EQ(json.Compact(), R"({"a":{"b":"d"},"n":7})");
}

}  // namespace
}  // namespace fairlead
