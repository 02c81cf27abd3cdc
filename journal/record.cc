#include "journal/record.h"

#include "base/hash.h"
#include "journal/model_codec.h"

namespace fairlead::journal {
namespace {

template <typename T, size_t kIndex = 0>
constexpr size_t IndexOf() {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<kIndex, Record>>) {
    return kIndex;
  } else {
    return IndexOf<T, kIndex + 1>();
  }
}

}  // namespace

std::string Encode(const Record& record) {
  std::string bytes;
  Writer writer(&bytes);
  Write(writer, record);
  return bytes;
}

std::string EncodeApplied(const model::ClusterEvent& event) {
  std::string bytes;
  Writer writer(&bytes);
  writer.Unsigned(IndexOf<Applied>());
  Write(writer, event);
  return bytes;
}

absl::StatusOr<Record> Decode(absl::string_view bytes) {
  Reader reader(bytes);
  Record record;
  Read(reader, record);
  if (reader.failed()) return absl::InvalidArgumentError("a record is damaged");
  if (!reader.AtEnd()) return absl::InvalidArgumentError("a record is too long");
  return record;
}

uint64_t RecordShape() { return MixShapes(ShapeOf<Record>(), ShapeOf<model::Action>()); }

uint64_t HashOf(const model::Action& action) {
  std::string bytes;
  Writer writer(&bytes);
  Write(writer, action);
  return StableHash().Add(bytes).value();
}

Outline OutlineOf(const model::Action& action) {
  Outline outline;
  Writer writer(&outline.shape, &outline.texts);
  Write(writer, action);
  return outline;
}

Outline OutlineOf(const Record& record) {
  Outline outline;
  Writer writer(&outline.shape, &outline.texts);
  Write(writer, record);
  return outline;
}

}  // namespace fairlead::journal
