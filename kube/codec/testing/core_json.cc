// The random messages as the API server's JSON. Upstream's field names are those of the subset,
// except what Go embeds (inlined in JSON), two long names, and types with a JSON form of their own.
#include <google/protobuf/message.h>

#include "base/json_writer.h"
#include "kube/codec/format_time.h"
#include "kube/codec/testing/random_core.h"

namespace fairlead::kube::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string JsonName(const FieldDescriptor& field) {
  if (field.name() == "required" || field.name() == "preferred") {
    return field.name() + "DuringSchedulingIgnoredDuringExecution";
  }
  return field.name();
}

bool IsEmbedded(const FieldDescriptor& field) {
  return field.name() == "localObjectReference" || field.name() == "volumeSource";
}

void WriteFields(JsonWriter& json, const Message& message);

void WriteMessage(JsonWriter& json, const Message& message) {
  if (const auto* quantity = dynamic_cast<const core::Quantity*>(&message)) {
    json.String(quantity->string());
  } else if (const auto* time = dynamic_cast<const core::Time*>(&message)) {
    json.String(FormatSeconds(absl::FromUnixSeconds(time->seconds())));
  } else {
    json.BeginObject();
    WriteFields(json, message);
    json.EndObject();
  }
}

void WriteScalar(JsonWriter& json, const Message& message, const FieldDescriptor& field,
                 int index) {
  const Reflection& r = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      json.String(repeated ? r.GetRepeatedString(message, &field, index)
                           : r.GetString(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      json.Bool(r.GetBool(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      json.Int(r.GetInt32(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      json.Int(r.GetInt64(message, &field));
      break;
    default:
      json.Null();
  }
}

void WriteMapField(JsonWriter& json, const Message& message, const FieldDescriptor& field) {
  const Reflection& r = *message.GetReflection();
  json.BeginObject();
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    const Message& entry = r.GetRepeatedMessage(message, &field, i);
    const FieldDescriptor& key = *entry.GetDescriptor()->FindFieldByNumber(1);
    const FieldDescriptor& value = *entry.GetDescriptor()->FindFieldByNumber(2);
    json.Key(entry.GetReflection()->GetString(entry, &key));
    if (value.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      WriteMessage(json, entry.GetReflection()->GetMessage(entry, &value));
    } else {
      WriteScalar(json, entry, value, -1);
    }
  }
  json.EndObject();
}

void WriteFields(JsonWriter& json, const Message& message) {
  const Reflection& r = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->type() == FieldDescriptor::TYPE_BYTES || field->number() >= 900) continue;
    if (IsEmbedded(*field)) {
      WriteFields(json, r.GetMessage(message, field));
      continue;
    }
    json.Key(JsonName(*field));
    if (field->is_map()) {
      WriteMapField(json, message, *field);
    } else if (field->is_repeated()) {
      json.BeginArray();
      for (int i = 0; i < r.FieldSize(message, field); ++i) {
        if (is_message) {
          WriteMessage(json, r.GetRepeatedMessage(message, field, i));
        } else {
          WriteScalar(json, message, *field, i);
        }
      }
      json.EndArray();
    } else if (is_message) {
      WriteMessage(json, r.GetMessage(message, field));
    } else {
      WriteScalar(json, message, *field, -1);
    }
  }
}

std::string ObjectJson(const char* kind, const Message& message) {
  JsonWriter json;
  json.BeginObject().Field("kind", kind).Field("apiVersion", "v1");
  WriteFields(json, message);
  json.EndObject();
  return json.Take();
}

}  // namespace

std::string PodJson(const core::Pod& pod) { return ObjectJson("Pod", pod); }
std::string NodeJson(const core::Node& node) { return ObjectJson("Node", node); }

}  // namespace fairlead::kube::testing
