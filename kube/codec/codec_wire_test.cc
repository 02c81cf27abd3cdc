#include <gtest/gtest.h>

#include <string>

#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/codec/wire_reader.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using testing::Envelope;
namespace core = testing::core;

// True if all of it can be read.
bool Walk(absl::string_view bytes) {
  WireReader r(bytes);
  while (r.Next()) {
  }
  return r.ok();
}

TEST(WireReaderTest, RefusesMalformedBytes) {
  const std::string cases[] = {
      std::string("\x08", 1),      // varint missing
      std::string("\x08\x80", 2),  // varint cut
      std::string("\x00\x01", 2),  // field 0
      std::string("\x0B", 1),      // group
      std::string("\x0E\x01", 2),  // wire type 6
      std::string("\x0A\x05"
                  "ab",
                  4),                  // length past the end
      std::string("\x09\x01\x02", 3),  // fixed64 cut
      std::string("\x0D\x01", 2),      // fixed32 cut
      // A length of 2^64-1, and a varint of eleven bytes.
      std::string("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11),
      std::string("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12),
      // A tag above 32 bits.
      std::string("\x88\x80\x80\x80\x80\x01\x01", 7),
  };
  for (const std::string& bytes : cases) EXPECT_FALSE(Walk(bytes)) << bytes.size();
  EXPECT_TRUE(Walk(""));
}

TEST(WireReaderTest, WrongTypeOfAKnownFieldIsAnError) {
  WireReader number(absl::string_view("\x08\x05", 2));
  ASSERT_TRUE(number.Next());
  EXPECT_EQ(number.Int64(), 5);
  EXPECT_EQ(number.Bytes(), "");
  EXPECT_FALSE(number.ok());
  EXPECT_FALSE(number.Next());
  WireReader text(absl::string_view("\x0A\x01x\x08\x01", 5));
  ASSERT_TRUE(text.Next());
  EXPECT_EQ(text.Int32(), 0);
  EXPECT_FALSE(text.Next());
}

TEST(CodecWireTest, NegativeNumbersAreTenBytes) {
  core::PriorityClass priority_class;
  priority_class.mutable_metadata()->set_name("low");
  priority_class.set_value(-5);
  priority_class.set_globaldefault(true);
  priority_class.set_preemptionpolicy("Never");
  absl::StatusOr<Object> object = DecodeObject(
      model::Kind::kPriorityClass, kProtobuf,
      Envelope("scheduling.k8s.io/v1", "PriorityClass", priority_class.SerializeAsString()));
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& got = std::get<model::PriorityClass>(*object);
  EXPECT_EQ(got.meta.name, "low");
  EXPECT_EQ(got.value, -5);
  EXPECT_TRUE(got.global_default);
  EXPECT_TRUE(got.never_preempts);
}

TEST(CodecWireTest, ZeroTimeIsNoTime) {
  core::Pod pod;
  pod.mutable_metadata()->mutable_creationtimestamp();
  pod.mutable_metadata()->mutable_deletiontimestamp();
  absl::StatusOr<Object> object =
      DecodeObject(model::Kind::kPod, kProtobuf, Envelope("v1", "Pod", pod.SerializeAsString()));
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(MetaOf(*object).creation, absl::InfinitePast());
  EXPECT_FALSE(MetaOf(*object).deletion.has_value());
}

TEST(CodecWireTest, BadContentIsInvalidAndHarmsNoOtherObject) {
  core::PodList list;
  core::Pod* bad = list.add_items();
  bad->mutable_metadata()->set_name("bad");
  core::Container* container = bad->mutable_spec()->add_containers();
  (*container->mutable_resources()->mutable_requests())["cpu"].set_string("lots");
  (*container->mutable_resources()->mutable_requests())["memory"].set_string("-1");
  bad->mutable_spec()->add_tolerations()->set_operator_("Gt");
  bad->mutable_spec()->add_tolerations()->set_effect("Never");
  core::Pod* good = list.add_items();
  good->mutable_metadata()->set_name("good");
  absl::StatusOr<ListPage> page =
      DecodeList(model::Kind::kPod, kProtobuf, Envelope("v1", "PodList", list.SerializeAsString()));
  ASSERT_TRUE(page.ok()) << page.status();
  const auto& pod = std::get<model::Pod>(page->items[0]);
  EXPECT_EQ(pod.invalid,
            "spec.containers[0].resources.requests[cpu]: \"lots\" is not a quantity (like 2, 500m, "
            "80Gi or 1e3); spec.containers[0].resources.requests[memory]: \"-1\" must not be "
            "negative; spec.tolerations[0].operator: \"Gt\" is none of Equal, Exists; and 1 more");
  EXPECT_EQ(std::get<model::Pod>(page->items[1]).invalid, "");
}

TEST(CodecWireTest, RefusesOtherKindsAndNoEnvelope) {
  const std::string raw = core::Pod().SerializeAsString();
  for (const std::string& body : {std::string(), std::string("k8s"), raw, std::string("{}"),
                                  Envelope("v1", "Node", raw), Envelope("v1", "Status", raw)}) {
    EXPECT_EQ(DecodeObject(model::Kind::kPod, kProtobuf, body).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DecodeList(model::Kind::kPod, kProtobuf, body).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(CodecStatusTest, EitherFormAndNeither) {
  core::Status status;
  status.set_code(409);
  status.set_reason("Conflict");
  status.set_message("already assigned");
  const std::string body = Envelope("v1", "Status", status.SerializeAsString());
  for (const char* type : {kProtobuf, kJson, ""}) {
    EXPECT_EQ(DecodeStatus(type, body).code, 409) << type;
  }
  const ApiStatus json = DecodeStatus(
      kJson,
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429})");
  EXPECT_EQ(json.code, 429);
  EXPECT_EQ(json.reason, "TooManyRequests");
  EXPECT_EQ(json.message, "slow down");
  EXPECT_EQ(json.retry_after, absl::Seconds(7));
  for (const char* type : {kProtobuf, kJson, "text/html"}) {
    const ApiStatus none = DecodeStatus(type, "<html>\xFF bad gateway");
    EXPECT_EQ(none.code, 0);
    EXPECT_EQ(none.message, "<html>\xEF\xBF\xBD bad gateway");
    EXPECT_EQ(DecodeStatus(type, R"({"kind":"Pod","code":3})").code, 0);
    EXPECT_LE(DecodeStatus(type, std::string(5000, 'x')).message.size(), 256u);
  }
}

}  // namespace
}  // namespace fairlead::kube
