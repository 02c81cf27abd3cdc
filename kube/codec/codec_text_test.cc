#include <gtest/gtest.h>

#include "kube/codec/field_problems.h"
#include "kube/codec/json_writer.h"
#include "kube/codec/utf8.h"

namespace fairlead::kube {
namespace {

TEST(Utf8Test, InvalidSequencesBecomeReplacements) {
  struct Case {
    std::string in, out;
  };
  const std::string r = "\xEF\xBF\xBD";
  const Case cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"\x80", r},                          // continuation alone
      {"\xC0\xAF", r + r},                  // overlong
      {"\xE0\x80\xAF", r + r + r},          // overlong
      {"\xED\xA0\x80", r + r + r},          // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
      {"a\xE2\x82", "a" + r + r},           // cut
      {"\xFF"
       "b",
       r + "b"},
  };
  for (const Case& c : cases) EXPECT_EQ(ToValidUtf8(c.in), c.out);
}

TEST(Utf8Test, TruncatesOnCodePoints) {
  const std::string euro = "\xE2\x82\xAC";
  const std::string text = "a" + euro + euro;
  const size_t lengths[] = {0, 1, 1, 1, 4, 4, 4, 7, 7};
  for (size_t max = 0; max < std::size(lengths); ++max) {
    EXPECT_EQ(TruncateUtf8(text, max), text.substr(0, lengths[max])) << max;
  }
}

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

TEST(JsonWriterTest, Times) {
  const absl::Time time = absl::FromUnixMicros(1795226439000120);
  EXPECT_EQ(FormatSeconds(time), "2026-11-21T02:00:39Z");
  EXPECT_EQ(FormatMicros(time), "2026-11-21T02:00:39.000120Z");
  EXPECT_EQ(FormatExact(time), "2026-11-21T02:00:39.00012Z");
  EXPECT_EQ(FormatMicros(absl::FromUnixSeconds(0)), "1970-01-01T00:00:00.000000Z");
}

TEST(ProblemsTest, TextIsSortedAndBounded) {
  Problems problems;
  EXPECT_EQ(problems.Text(), "");
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  const FieldPath list = spec.Field("list");
  for (uint64_t i : {4, 2, 0, 2, 9}) problems.Add(list.Item(i), "bad");
  EXPECT_EQ(problems.Text(), "spec.list[0]: bad; spec.list[2]: bad; spec.list[4]: bad; and 1 more");
  Problems many;
  for (int i = 0; i < 100000; ++i) many.Add(spec.Key(std::string(100000, 'k')), "x");
  EXPECT_LT(many.Text().size(), 1000u);
  EXPECT_LT(Quoted(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace fairlead::kube
