#include "base/json_writer.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(JsonWriterTest, EscapesAndNests) {
  JsonWriter json;
  json.BeginObject().Field("a\"\\", std::string("\n\r\t\x01\x1F\0x\xFF", 8));
  json.Key("list").BeginArray().Int(-1).Bool(true).Null().BeginObject().EndObject().EndArray();
  json.Key("raw").Raw("{\"x\":1}").FieldUnlessEmpty("no", "").EndObject();
  EXPECT_EQ(json.Take(),
            "{\"a\\\"\\\\\":\"\\n\\r\\t\\u0001\\u001f\\u0000x\xEF\xBF\xBD\","
            "\"list\":[-1,true,null,{}],\"raw\":{\"x\":1}}");
  EXPECT_EQ(json.BeginArray().EndArray().Take(), "[]");
}

TEST(JsonWriterTest, PrettyIsALinePerValue) {
  JsonWriter json(JsonLayout::kPretty);
  json.BeginObject().Field("a", "{,:").Key("empty").BeginObject().EndObject();
  json.Key("list").BeginArray().Int(1).BeginArray().EndArray();
  json.BeginObject().Key("b").Null().EndObject().EndArray().EndObject();
  EXPECT_EQ(json.Take(), R"({
  "a": "{,:",
  "empty": {},
  "list": [
    1,
    [],
    {
      "b": null
    }
  ]
})");
  EXPECT_EQ(json.BeginArray().Int(1).EndArray().Take(), "[\n  1\n]") << "used again";
}

TEST(JsonQuotedTest, Escapes) {
  EXPECT_EQ(JsonQuoted("a\"b\\c\n\r\t\x01\x1f/\x7f"),
            "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f/\x7f\"");
  EXPECT_EQ(JsonQuoted(absl::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(JsonQuoted("\xC3\xA9\xFF"), "\"\xC3\xA9\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace fairlead
