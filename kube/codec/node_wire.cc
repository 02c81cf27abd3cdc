#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/node_draft.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube::wire {
namespace {

bool ReadTaint(absl::string_view bytes, const FieldPath& path, Problems& problems,
               model::Taint& out) {
  absl::string_view effect;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.key = r.String();
        break;
      case 2:
        out.value = r.String();
        break;
      case 3:
        effect = r.Bytes();
        break;
      default:
        break;
    }
  }
  if (!r.ok()) return false;
  SetTaintEffect(effect, path.Field("effect"), problems, out.effect);
  return true;
}

bool ReadSpec(absl::string_view bytes, const FieldPath& path, NodeDraft& draft) {
  model::Node& node = draft.node;
  const FieldPath taints = path.Field("taints");
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 3:
        node.provider_id = r.String();
        break;
      case 4:
        node.unschedulable = r.Bool();
        break;
      case 5: {
        const FieldPath item = taints.Item(node.taints.size());
        r.Check(ReadTaint(r.Bytes(), item, draft.problems, node.taints.emplace_back()));
        break;
      }
      default:
        break;
    }
  }
  return r.ok();
}

bool ReadCondition(absl::string_view bytes, NodeDraft& draft) {
  absl::string_view type;
  absl::string_view status;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) type = r.Bytes();
    if (r.field() == 2) status = r.Bytes();
  }
  draft.AddCondition(type, status);
  return r.ok();
}

bool ReadImage(absl::string_view bytes, NodeDraft& draft) {
  ImageNames names;
  int64_t size_bytes = 0;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) names.push_back(r.Bytes());
    if (r.field() == 2) size_bytes = r.Int64();
  }
  draft.AddImage(names, size_bytes);
  return r.ok();
}

bool ReadStatus(absl::string_view bytes, const FieldPath& path, NodeDraft& draft) {
  const FieldPath capacity = path.Field("capacity");
  const FieldPath allocatable = path.Field("allocatable");
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadQuantityEntry(r.Bytes(), capacity, draft.problems, draft.capacity));
        break;
      case 2:
        r.Check(ReadQuantityEntry(r.Bytes(), allocatable, draft.problems, draft.node.allocatable));
        break;
      case 4:
        r.Check(ReadCondition(r.Bytes(), draft));
        break;
      case 8:
        r.Check(ReadImage(r.Bytes(), draft));
        break;
      case 14:
        draft.node.declared_features |= model::NodeFeatureOf(r.Bytes());
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace

bool Read(absl::string_view bytes, model::Node& out, model::TextPool* keys) {
  NodeDraft draft(out);
  const FieldPath root;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadMeta(r.Bytes(), draft.node.meta, keys));
        break;
      case 2:
        r.Check(ReadSpec(r.Bytes(), root.Field("spec"), draft));
        break;
      case 3:
        r.Check(ReadStatus(r.Bytes(), root.Field("status"), draft));
        break;
      default:
        break;
    }
  }
  if (!r.ok()) return false;
  FinishNode(draft);
  return true;
}

bool Read(absl::string_view bytes, model::PriorityClass& out, model::TextPool* keys) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadMeta(r.Bytes(), out.meta, keys));
        break;
      case 2:
        out.value = r.Int32();
        break;
      case 3:
        out.global_default = r.Bool();
        break;
      case 5:
        out.never_preempts = r.Bytes() == kNeverPreempts;
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace fairlead::kube::wire
