#include "tracing/otlp_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "document/json.h"

namespace fairlead::tracing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Span Bare() {
  return {.trace = {0x5B8EFFF798038103, 0xD269B633813FC60C},
          .id = 0xEEE19B7EC3C1B174,
          .name = "step",
          .start = absl::FromUnixNanos(1'544'712'660'000'000'001),
          .end = absl::FromUnixNanos(1'544'712'661'000'000'000)};
}

// The one span of the body for this one, as JSON.
std::string Encoded(const Span& span) {
  const std::string body = EncodeTraces({}, {span});
  const Json json = *Json::Parse(body);
  const Json& resource = json.Find("resourceSpans")->items().at(0);
  return resource.Find("scopeSpans")->items().at(0).Find("spans")->items().at(0).Compact();
}

TEST(OtlpJsonTest, TheWholeBody) {
  EXPECT_EQ(EncodeTraces({"fairlead", "1.2", "host_1"}, {Bare()}),
            R"({"resourceSpans":[{"resource":{"attributes":[)"
            R"({"key":"service.name","value":{"stringValue":"fairlead"}},)"
            R"({"key":"service.version","value":{"stringValue":"1.2"}},)"
            R"({"key":"service.instance.id","value":{"stringValue":"host_1"}}]},)"
            R"("scopeSpans":[{"scope":{"name":"fairlead"},"spans":[)"
            R"({"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",)"
            R"("name":"step","kind":1,"startTimeUnixNano":"1544712660000000001",)"
            R"("endTimeUnixNano":"1544712661000000000"}]}]}]})");
}

TEST(OtlpJsonTest, NoSpansAndNoResourceAreStillARequest) {
  EXPECT_EQ(EncodeTraces({}, {}), R"({"resourceSpans":[{"resource":{"attributes":[]},)"
                                  R"("scopeSpans":[{"scope":{"name":"fairlead"},"spans":[]}]}]})");
}

TEST(OtlpJsonTest, ASpanNamesThoseThatItLinksTo) {
  Span span = Bare();
  span.links = {{{0x5B8EFFF798038103, 1}, 0xA}, {{0, 2}, 0xB}};
  EXPECT_THAT(
      Encoded(span),
      HasSubstr(
          R"("links":[{"traceId":"5b8efff7980381030000000000000001","spanId":"000000000000000a"},)"
          R"({"traceId":"00000000000000000000000000000002","spanId":"000000000000000b"}])"));
  EXPECT_THAT(Encoded(Bare()), Not(HasSubstr("links")));
}

// What the specification says of each type of a field.
TEST(OtlpJsonTest, FieldsByTheRulesOfTheEncoding) {
  struct Row {
    const char* rule;
    void (*change)(Span&);
    const char* expected;
  };
  const Row rows[] = {
      {"ids are hexadecimal, of full length", [](Span& s) { s.trace = {0, 1}, s.id = 0xA; },
       R"("traceId":"00000000000000000000000000000001","spanId":"000000000000000a")"},
      {"the parent is an id like the others", [](Span& s) { s.parent = 0xFF; },
       R"("parentSpanId":"00000000000000ff")"},
      {"enums are numbers", [](Span& s) { s.kind = SpanKind::kClient; }, R"("kind":3)"},
      {"64-bit integers are decimal strings", [](Span& s) { s.attributes = {{"n", kMost}}; },
       R"("attributes":[{"key":"n","value":{"intValue":"9223372036854775807"}}])"},
      {"negative ones too", [](Span& s) { s.attributes = {{"n", int64_t{-1}}}; },
       R"({"intValue":"-1"})"},
      {"booleans are booleans", [](Span& s) { s.attributes = {{"b", false}}; },
       R"({"key":"b","value":{"boolValue":false}})"},
      {"an empty string is a value", [](Span& s) { s.attributes = {{"t", std::string()}}; },
       R"({"key":"t","value":{"stringValue":""}})"},
      {"text is escaped", [](Span& s) { s.attributes = {{"t", std::string("a\"\n\x01")}}; },
       R"({"stringValue":"a\"\n\u0001"})"},
      {"and made UTF-8, which strings of Protobuf are",
       [](Span& s) { s.attributes = {{"t", std::string("a\xff")}}; },
       "{\"stringValue\":\"a\xEF\xBF\xBD\"}"},
      {"an error has a message",
       [](Span& s) { s.status = StatusCode::kError, s.status_message = "no"; },
       R"("status":{"message":"no","code":2})"},
      {"which may be missing", [](Span& s) { s.status = StatusCode::kOk; },
       R"("status":{"code":1})"},
      {"times are not negative", [](Span& s) { s.start = absl::InfinitePast(); },
       R"("startTimeUnixNano":"0")"},
      {"nor are durations", [](Span& s) { s.end = s.start - absl::Seconds(1); },
       R"("endTimeUnixNano":"1544712660000000001")"},
  };
  for (const Row& row : rows) {
    Span span = Bare();
    row.change(span);
    EXPECT_THAT(Encoded(span), HasSubstr(row.expected)) << row.rule;
  }
}

TEST(OtlpJsonTest, DefaultsAreLeftOut) {
  const std::string bare = Encoded(Bare());
  for (const char* field : {"parentSpanId", "attributes", "status"}) {
    EXPECT_THAT(bare, Not(HasSubstr(field)));
  }
}

}  // namespace
}  // namespace fairlead::tracing
