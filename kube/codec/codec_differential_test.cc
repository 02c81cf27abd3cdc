// The decoders against the oracle of testing/random_core.h: random objects, written by the
// generated serialiser, must decode to the expected value, and so must the JSON of each object.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using testing::Envelope;
using testing::Frame;
using testing::Random;
namespace core = testing::core;

constexpr uint64_t kSeeds = 400;

TEST(CodecDifferentialTest, PodFromProtobufAndJson) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const core::Pod pod = testing::RandomPod(random);
    const model::Pod want = testing::ExpectedPod(pod);
    absl::StatusOr<Object> wire =
        DecodeObject(model::Kind::kPod, kProtobuf, Envelope("v1", "Pod", pod.SerializeAsString()));
    ASSERT_TRUE(wire.ok()) << wire.status();
    testing::ExpectSamePod(std::get<model::Pod>(*wire), want);
    absl::StatusOr<Object> json = DecodeObject(model::Kind::kPod, kJson, testing::PodJson(pod));
    ASSERT_TRUE(json.ok()) << json.status() << testing::PodJson(pod);
    testing::ExpectSamePod(std::get<model::Pod>(*json), want);
  }
}

TEST(CodecDifferentialTest, NodeFromProtobufAndJson) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const core::Node node = testing::RandomNode(random);
    const model::Node want = testing::ExpectedNode(node);
    absl::StatusOr<Object> wire = DecodeObject(model::Kind::kNode, kProtobuf,
                                               Envelope("v1", "Node", node.SerializeAsString()));
    ASSERT_TRUE(wire.ok()) << wire.status();
    testing::ExpectSameNode(std::get<model::Node>(*wire), want);
    absl::StatusOr<Object> json = DecodeObject(model::Kind::kNode, kJson, testing::NodeJson(node));
    ASSERT_TRUE(json.ok()) << json.status();
    testing::ExpectSameNode(std::get<model::Node>(*json), want);
  }
}

// Random damage: the result is InvalidArgument or some object, and no byte out of bounds is read
// (the sanitizer builds check this).
TEST(CodecDifferentialTest, DamagedBytesNeverCrash) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed);
    std::string body = Envelope("v1", "Pod", testing::RandomPod(random).SerializeAsString());
    std::string json = testing::PodJson(testing::RandomPod(random));
    for (std::string* text : {&body, &json}) {
      for (size_t i = 1 + random.Below(4); i > 0; --i) {
        (*text)[random.Below(text->size())] = static_cast<char>(random.Below(256));
      }
    }
    const auto wire = DecodeObject(model::Kind::kPod, kProtobuf, body);
    if (!wire.ok()) {
      EXPECT_EQ(wire.status().code(), absl::StatusCode::kInvalidArgument);
    }
    const auto decoded = DecodeObject(model::Kind::kPod, kJson, json);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(CodecDifferentialTest, TruncatedAtEveryOffset) {
  const google::protobuf::LogSilencer silence;  // it prints what it rejects
  Random random(7);
  core::Pod pod = testing::RandomPod(random);
  const std::string raw = pod.SerializeAsString();
  const std::string json = testing::PodJson(pod);
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_FALSE(DecodeObject(model::Kind::kPod, kJson, json.substr(0, size)).ok()) << size;
  }
  const std::string body = Envelope("v1", "Pod", raw);
  for (size_t size = 0; size < body.size(); ++size) {
    // A cut at a field's end is well-formed protobuf: the generated parser says which cuts are.
    const std::string cut = body.substr(0, size);
    core::Unknown unknown;
    const bool envelope_ok = cut.size() >= 4 && unknown.ParseFromString(cut.substr(4));
    const bool want = envelope_ok && unknown.typemeta().kind() == "Pod" &&
                      core::Pod().ParseFromString(unknown.raw());
    EXPECT_EQ(DecodeObject(model::Kind::kPod, kProtobuf, cut).ok(), want) << size;
  }
  for (size_t size = 0; size < raw.size(); ++size) {
    const std::string cut = raw.substr(0, size);
    const bool want = core::Pod().ParseFromString(cut);
    EXPECT_EQ(DecodeObject(model::Kind::kPod, kProtobuf, Envelope("v1", "Pod", cut)).ok(), want)
        << size;
  }
}

TEST(CodecDifferentialTest, ListPage) {
  Random random(3);
  core::PodList list;
  list.mutable_metadata()->set_resourceversion("812");
  list.mutable_metadata()->set_continue_("token");
  for (int i = 0; i < 20; ++i) *list.add_items() = testing::RandomPod(random);
  absl::StatusOr<ListPage> page =
      DecodeList(model::Kind::kPod, kProtobuf, Envelope("v1", "PodList", list.SerializeAsString()));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, "812");
  EXPECT_EQ(page->continue_token, "token");
  ASSERT_EQ(page->items.size(), 20u);
  std::string json = R"({"kind":"PodList","items":[)";
  for (int i = 0; i < 20; ++i) {
    testing::ExpectSamePod(std::get<model::Pod>(page->items[i]),
                           testing::ExpectedPod(list.items(i)));
    json += (i > 0 ? "," : "") + testing::PodJson(list.items(i));
  }
  json += R"(],"metadata":{"resourceVersion":"812","continue":"token"}})";
  absl::StatusOr<ListPage> from_json = DecodeList(model::Kind::kPod, kJson, json);
  ASSERT_TRUE(from_json.ok()) << from_json.status();
  EXPECT_EQ(from_json->continue_token, "token");
  ASSERT_EQ(from_json->items.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    testing::ExpectSamePod(std::get<model::Pod>(from_json->items[i]),
                           testing::ExpectedPod(list.items(i)));
  }
}

// ---- watch
// ---------------------------------------------------------------------------------------

struct Stream {
  std::string content_type, bytes;
};

Stream ProtobufStream(const core::Pod& pod) {
  const std::string object = Envelope("v1", "Pod", pod.SerializeAsString());
  core::Pod bookmark;
  bookmark.mutable_metadata()->set_resourceversion("900");
  (*bookmark.mutable_metadata()->mutable_annotations())["k8s.io/initial-events-end"] = "true";
  core::Status gone;
  gone.set_code(410);
  gone.set_reason("Expired");
  gone.set_message("too old resource version");
  gone.mutable_details()->set_retryafterseconds(3);
  return {"application/vnd.kubernetes.protobuf;stream=watch",
          Frame("ADDED", object) + Frame("MODIFIED", object) + Frame("DELETED", object) +
              Frame("BOOKMARK", Envelope("v1", "Pod", bookmark.SerializeAsString())) +
              Frame("ERROR", Envelope("v1", "Status", gone.SerializeAsString()))};
}

Stream JsonStream(const core::Pod& pod) {
  const std::string object = testing::PodJson(pod);
  std::string text;
  for (const char* type : {"ADDED", "MODIFIED", "DELETED"}) {
    text += std::string(R"({"type":")") + type + R"(","object":)" + object + "}\n";
  }
  text +=
      R"({"object":{"kind":"Pod","metadata":{"resourceVersion":"900","annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"})"
      "\r\n\n"
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version","details":{"retryAfterSeconds":3}}})"
      "\n";
  return {"application/json", text};
}

void ExpectStream(const core::Pod& pod, const std::vector<WatchEvent>& events) {
  ASSERT_EQ(events.size(), 5u);
  const WatchEventType types[] = {WatchEventType::kAdded, WatchEventType::kModified,
                                  WatchEventType::kDeleted, WatchEventType::kBookmark,
                                  WatchEventType::kError};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(events[i].type, types[i]);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(events[i].object.has_value());
    EXPECT_EQ(events[i].resource_version, pod.metadata().resourceversion());
    EXPECT_EQ(MetaOf(*events[i].object).uid, pod.metadata().uid());
  }
  EXPECT_FALSE(events[3].object.has_value());
  EXPECT_EQ(events[3].resource_version, "900");
  EXPECT_TRUE(events[3].initial_events_end);
  EXPECT_FALSE(events[4].object.has_value());
  EXPECT_EQ(events[4].error.code, 410);
  EXPECT_EQ(events[4].error.reason, "Expired");
  EXPECT_EQ(events[4].error.message, "too old resource version");
  EXPECT_EQ(events[4].error.retry_after, absl::Seconds(3));
}

TEST(CodecWatchTest, CutAtEveryByte) {
  core::Pod pod;  // small: every cut decodes the whole stream again
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_uid("u-1");
  pod.mutable_metadata()->set_resourceversion("812");
  for (const Stream& stream : {ProtobufStream(pod), JsonStream(pod)}) {
    for (size_t cut = 0; cut <= stream.bytes.size(); ++cut) {
      SCOPED_TRACE(cut);
      WatchDecoder decoder(model::Kind::kPod, stream.content_type);
      std::vector<WatchEvent> events;
      ASSERT_TRUE(decoder.Feed(absl::string_view(stream.bytes).substr(0, cut), events).ok());
      ASSERT_TRUE(decoder.Feed(absl::string_view(stream.bytes).substr(cut), events).ok());
      ExpectStream(pod, events);
      if (HasFailure()) return;
    }
    for (size_t piece : {size_t{1}, size_t{3}, size_t{7}, size_t{1000}}) {
      SCOPED_TRACE(piece);
      WatchDecoder decoder(model::Kind::kPod, stream.content_type);
      std::vector<WatchEvent> events;
      for (size_t at = 0; at < stream.bytes.size(); at += piece) {
        ASSERT_TRUE(decoder.Feed(absl::string_view(stream.bytes).substr(at, piece), events).ok());
      }
      ExpectStream(pod, events);
    }
  }
}

TEST(CodecWatchTest, RefusesWhatIsNoEvent) {
  core::Pod pod;
  const std::string object = Envelope("v1", "Pod", pod.SerializeAsString());
  const std::string cases[] = {Frame("NONSENSE", object),
                               Frame("", object),
                               Frame("ADDED", "not enveloped"),
                               Frame("ADDED", Envelope("v1", "Status", "")),
                               Frame("ERROR", object),
                               std::string("\x7F\xFF\xFF\xFF", 4),  // 2 GiB announced
                               std::string("\x01\x00\x00\x01", 4),  // one byte above 16 MiB
                               std::string("\x00\x00\x00\x02\xFF\xFF", 6)};
  for (const std::string& bytes : cases) {
    WatchDecoder decoder(model::Kind::kPod, kProtobuf);
    std::vector<WatchEvent> events;
    EXPECT_EQ(decoder.Feed(bytes, events).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(events.empty());
  }
  for (const char* line : {"{}\n", "garbage\n",
                           R"({"type":"ADDED"})"
                           "\n",
                           R"({"type":"X","object":{}})"
                           "\n",
                           R"({"type":"ADDED","object":{"kind":"Status"}})"
                           "\n",
                           R"({"type":"ERROR","object":{"kind":"Pod"}})"
                           "\n",
                           R"({"type":"ADDED","object":{}}})"
                           "\n"}) {
    WatchDecoder decoder(model::Kind::kPod, kJson);
    std::vector<WatchEvent> events;
    EXPECT_EQ(decoder.Feed(line, events).code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

TEST(CodecWatchTest, EndlessLineIsRefused) {
  WatchDecoder decoder(model::Kind::kPod, kJson);
  std::vector<WatchEvent> events;
  const std::string megabyte(1 << 20, ' ');
  absl::Status status;
  int fed = 0;
  for (; status.ok() && fed < 20; ++fed) status = decoder.Feed(megabyte, events);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(fed, 17);
}

}  // namespace
}  // namespace fairlead::kube
