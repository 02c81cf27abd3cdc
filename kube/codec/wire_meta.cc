#include "absl/time/time.h"
#include "kube/codec/field_values.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube::wire {

bool ReadTime(absl::string_view bytes, std::optional<absl::Time>& out) {
  int64_t seconds = 0;
  int64_t nanos = 0;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) seconds = r.Int64();
    if (r.field() == 2) nanos = r.Int32();
  }
  if (!r.ok()) return false;
  if (seconds != 0 || nanos != 0) {
    out = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanos);
  }
  return true;
}

namespace {

bool ReadOwner(absl::string_view bytes, model::OwnerReference& out) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.kind = r.String();
        break;
      case 3:
        out.name = r.String();
        break;
      case 4:
        out.uid = r.String();
        break;
      case 5:
        out.api_version = r.String();
        break;
      case 6:
        out.controller = r.Bool();
        break;
      default:
        break;
    }
  }
  return r.ok();
}

bool ReadRequirement(absl::string_view bytes, const FieldPath& path, Problems& problems,
                     model::SelectorRequirement& out) {
  absl::string_view op;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.key = r.String();
        break;
      case 2:
        op = r.Bytes();
        break;
      case 3:
        out.values.push_back(r.String());
        break;
      default:
        break;
    }
  }
  if (!r.ok()) return false;
  SetOperator(op, SelectorKind::kLabels, path.Field("operator"), problems, out.op);
  return true;
}

}  // namespace

bool ReadMapEntry(absl::string_view bytes, MapEntry& out) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) out.key = r.Bytes();
    if (r.field() == 2) out.value = r.Bytes();
  }
  return r.ok();
}

bool ReadQuantityEntry(absl::string_view bytes, const FieldPath& path, Problems& problems,
                       model::ResourceList& out) {
  MapEntry entry;
  if (!ReadMapEntry(bytes, entry)) return false;
  absl::string_view quantity;
  WireReader r(entry.value);
  while (r.Next()) {
    if (r.field() == 1) quantity = r.Bytes();
  }
  if (!r.ok()) return false;
  SetQuantity(entry.key, quantity, path, problems, out);
  return true;
}

bool ReadLabelSelector(absl::string_view bytes, const FieldPath& path, Problems& problems,
                       model::LabelSelector& out) {
  out.none = false;
  model::StringMap match_labels;
  const FieldPath expressions = path.Field("matchExpressions");
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) {
      MapEntry entry;
      r.Check(ReadMapEntry(r.Bytes(), entry));
      match_labels.Set(entry.key, entry.value);
    } else if (r.field() == 2) {
      const FieldPath item = expressions.Item(out.requirements.size());
      r.Check(ReadRequirement(r.Bytes(), item, problems, out.requirements.emplace_back()));
    }
  }
  if (!match_labels.empty()) PrependMatchLabels(match_labels, out);
  return r.ok();
}

bool ReadMeta(absl::string_view bytes, model::ObjectMeta& out, model::TextPool* keys) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.name = r.String();
        break;
      case 3:
        out.ns = r.String();
        break;
      case 5:
        out.uid = r.String();
        break;
      case 6:
        out.resource_version = r.String();
        break;
      case 7:
        out.generation = r.Int64();
        break;
      case 8: {
        std::optional<absl::Time> creation;
        r.Check(ReadTime(r.Bytes(), creation));
        if (creation.has_value()) out.creation = *creation;
        break;
      }
      case 9:
        r.Check(ReadTime(r.Bytes(), out.deletion));
        break;
      case 11: {
        MapEntry entry;
        r.Check(ReadMapEntry(r.Bytes(), entry));
        out.labels.Set(entry.key, entry.value, keys);
        break;
      }
      case 12: {
        MapEntry entry;
        r.Check(ReadMapEntry(r.Bytes(), entry));
        if (model::IsRelevantAnnotation(entry.key)) out.annotations.Set(entry.key, entry.value);
        break;
      }
      case 13:
        r.Check(ReadOwner(r.Bytes(), out.owners.emplace_back()));
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace fairlead::kube::wire
