// The JSON DOM as protobuf and back, by tables of field names and numbers: k8s.io/api's messages as
// far as this world has them. Written from upstream's generated.proto files and apart from the
// product's codec, which is what it is to test.
//
// What a field of the DOM cannot be (a number where a string belongs) is left out, as a server that
// refused it would have done. Thread-safety: pure functions. Complexity: one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

enum class FieldType : uint8_t {
  kString,
  kInt,
  kBool,
  kQuantity,     // a string or number; message {string=1}
  kTime,         // RFC 3339; message {seconds=1, nanos=2}
  kIntOrString,  // message {type=1, intVal=2, strVal=3}
  kMessage,
  kInlined,  // a message whose fields are those of the parent in JSON
};
enum class FieldShape : uint8_t { kOne, kList, kMap };

struct MessageSchema;
struct FieldSchema {
  const char* name;
  uint32_t number;
  FieldType type;
  FieldShape shape = FieldShape::kOne;
  const MessageSchema* message = nullptr;
};
struct MessageSchema {
  const FieldSchema* fields;
  size_t count;
};

// Of types whose row says protobuf.
const MessageSchema& SchemaOf(ResourceType type);
const MessageSchema& StatusSchema();
const MessageSchema& BindingSchema();

std::string EncodeMessage(const MessageSchema& schema, const Json& object);
// Discarded if the bytes are malformed. Fields that the schema lacks are skipped.
Json DecodeMessage(const MessageSchema& schema, absl::string_view bytes);

// "k8s\0" and runtime.Unknown around a message.
std::string Enveloped(absl::string_view api_version, absl::string_view kind,
                      absl::string_view message);
struct Envelope {
  std::string api_version, kind;
  absl::string_view message;
};
bool OpenEnvelope(absl::string_view body, Envelope& out);

// A field of a message under construction.
void AppendBytesField(uint32_t number, absl::string_view bytes, std::string& out);
void AppendVarintField(uint32_t number, uint64_t value, std::string& out);

}  // namespace fairlead::sim::world
