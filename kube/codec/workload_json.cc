// Queue, PodGroup (scheduling.run.ai) and Topology (kai.scheduler): KAI's names, units and
// meanings.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube::json {
namespace {

constexpr int64_t kMicroPerOne = 1000 * 1000;
constexpr size_t kMaxTopologyLevels = 16;

// How a number of a queue's resource is written. KAI's own three are plain numbers in a fixed unit;
// our other resources may be quantities, in the resource's own unit.
struct QueueUnit {
  int64_t base_units_per_one = 1;
  absl::string_view quantity_of;  // a resource name: quantities are allowed
};

void ReadBound(JsonReader& reader, JsonValue value, const FieldPath& path, const QueueUnit& unit,
               int64_t& out) {
  if (unit.quantity_of.empty() && !reader.Is(value, JsonType::number, path)) return;
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return;
  const absl::StatusOr<int64_t> micro = model::ParseDecimal(*text, kMicroPerOne);
  if (micro.ok() && *micro == -kMicroPerOne) {
    out = model::kUnlimited;
    return;
  }
  const absl::StatusOr<int64_t> amount =
      unit.quantity_of.empty() ? model::ParseDecimal(*text, unit.base_units_per_one)
                               : model::ParseResourceQuantity(unit.quantity_of, *text);
  if (!amount.ok()) {
    reader.problems().Add(path, absl::StrCat(Quoted(*text), " is not an amount"));
  } else if (*amount < 0) {
    reader.problems().Add(
        path, absl::StrCat(Quoted(*text), " must not be negative, -1 (unlimited) excepted"));
  } else {
    out = *amount;
  }
}

void ReadQueueResource(JsonReader& reader, JsonValue value, const FieldPath& path,
                       const QueueUnit& unit, model::QueueResource& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "quota") return ReadBound(reader, v, at, unit, out.quota);
    if (key == "limit") return ReadBound(reader, v, at, unit, out.limit);
    if (key == "lendingLimit") return ReadBound(reader, v, at, unit, out.lending_limit);
    if (key != "overQuotaWeight") return;
    const std::optional<int64_t> weight = reader.Decimal(v, at, kMicroPerOne);
    if (!weight.has_value()) return;
    if (*weight == -kMicroPerOne) {
      out.over_quota_weight_micro = 0;  // KAI's top queues have it: alone at their level, no share
    } else if (*weight < 0) {
      reader.problems().Add(at, "must not be negative");
    } else {
      out.over_quota_weight_micro = *weight;
    }
  });
}

void ReadQueueResources(JsonReader& reader, JsonValue value, const FieldPath& path,
                        model::Queue& out) {
  constexpr int64_t kBytesPerMegabyte = 1000 * 1000;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "gpu") return ReadQueueResource(reader, v, at, {1000, {}}, out.gpu);
    if (key == "cpu") return ReadQueueResource(reader, v, at, {1, {}}, out.cpu);
    if (key == "memory")
      return ReadQueueResource(reader, v, at, {kBytesPerMegabyte, {}}, out.memory);
    if (key != "other") return;
    reader.Fields(v, at, [&](absl::string_view name, JsonValue bounds) {
      model::QueueResource resource;
      ReadQueueResource(reader, bounds, at.Key(name), {model::BaseUnitsPerUnit(name), name},
                        resource);
      out.other.emplace_back(std::string(name), resource);
    });
  });
  std::sort(out.other.begin(), out.other.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

void ReadQueueSpec(JsonReader& reader, JsonValue value, const FieldPath& path, model::Queue& out) {
  bool has_resources = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "displayName") return reader.String(v, at, out.display_name);
    if (key == "parentQueue") return reader.String(v, at, out.parent);
    if (key == "preemptMinRuntime") return reader.Duration(v, at, out.preempt_min_runtime);
    if (key == "reclaimMinRuntime") return reader.Duration(v, at, out.reclaim_min_runtime);
    if (key == "priority") {
      out.priority = reader.Int32(v, at).value_or(out.priority);
    } else if (key == "resources") {
      has_resources = true;
      ReadQueueResources(reader, v, at, out);
    }
  });
  if (!has_resources) reader.problems().Add(path.Field("resources"), "must be specified");
}

void ReadTopologyConstraint(JsonReader& reader, JsonValue value, const FieldPath& path,
                            model::TopologyConstraint& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "topology") reader.String(v, at, out.topology);
    if (key == "requiredTopologyLevel") reader.String(v, at, out.required_level);
    if (key == "preferredTopologyLevel") reader.String(v, at, out.preferred_level);
  });
}

void ReadMinimum(JsonReader& reader, JsonValue value, const FieldPath& path,
                 std::optional<int32_t>& out) {
  const std::optional<int32_t> number = reader.Int32(value, path);
  if (!number.has_value()) return;
  if (*number < 0) {
    reader.problems().Add(path, absl::StrCat(*number, " must not be negative"));
  } else {
    out = number;
  }
}

void ReadSubGroup(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::SubGroup& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") return reader.String(v, at, out.name);
    if (key == "parent") return reader.String(v, at, out.parent);
    if (key == "minMember") return ReadMinimum(reader, v, at, out.min_member);
    if (key == "minSubGroup") return ReadMinimum(reader, v, at, out.min_sub_group);
    if (key == "topologyConstraint") return ReadTopologyConstraint(reader, v, at, out.topology);
  });
}

// KAI has only these two.
void ReadBackoff(JsonReader& reader, JsonValue value, const FieldPath& path, int32_t& out) {
  const std::optional<int32_t> number = reader.Int32(value, path);
  if (!number.has_value()) return;
  if (*number == model::kTryForEver || *number == model::kTryOnce) {
    out = *number;
  } else {
    reader.problems().Add(path, absl::StrCat(*number,
                                             " is none of -1 (try for ever), 1 (stop "
                                             "after one failed attempt in a node pool)"));
  }
}

void ReadPodGroupSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::PodGroup& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "queue") return reader.String(v, at, out.queue);
    if (key == "priorityClassName") return reader.String(v, at, out.priority_class_name);
    if (key == "minMember") return ReadMinimum(reader, v, at, out.min_member);
    if (key == "minSubGroup") return ReadMinimum(reader, v, at, out.min_sub_group);
    if (key == "topologyConstraint") return ReadTopologyConstraint(reader, v, at, out.topology);
    if (key == "markUnschedulable") return reader.Bool(v, at, out.mark_unschedulable);
    if (key == "preemptionDelay") return reader.Duration(v, at, out.preemption_delay);
    if (key == "stalenessGracePeriod") return reader.Duration(v, at, out.staleness_grace_period);
    if (key == "schedulingBackoff") {
      ReadBackoff(reader, v, at, out.scheduling_backoff);
    } else if (key == "preemptibility") {
      const absl::string_view text = reader.Text(v, at);
      out.preemptibility = model::ParsePreemptibility(text);
      if (out.preemptibility == model::Preemptibility::kByPriority && !text.empty()) {
        reader.problems().Add(
            at, absl::StrCat(Quoted(text), " is none of preemptible, non-preemptible"));
      }
    } else if (key == "subGroups") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadSubGroup(reader, item, at.Item(i), out.sub_groups.emplace_back());
      });
    }
  });
}

// An entry of schedulingConditions: the pool that wrote it, and its text, which is written back
// unchanged.
void ReadSchedulingCondition(JsonReader& reader, JsonValue value, const FieldPath& path,
                             model::SchedulingCondition& out) {
  out.json = "null";
  model::SchedulingCondition said;  // of reasons[]
  reader.RawFields(value, path, out.json, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "nodePool") reader.String(v, at, out.node_pool);
    if (key == "transitionID") reader.String(v, at, out.transition_id);
    if (key == "reason") reader.String(v, at, out.reason);
    if (key == "message") reader.String(v, at, out.message);
    if (key != "reasons") return;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      if (i > 0) return;
      const FieldPath first = at.Item(i);
      reader.Fields(item, first, [&](absl::string_view field, JsonValue text) {
        if (field == "reason") reader.String(text, first.Field(field), said.reason);
        if (field == "message") reader.String(text, first.Field(field), said.message);
      });
    });
  });
  if (!said.reason.empty()) out.reason = std::move(said.reason);
  if (!said.message.empty()) out.message = std::move(said.message);
}

// Null if the field is none of them.
model::ResourceList* CountOf(model::KaiCounts& counts, absl::string_view field) {
  if (field == "allocated") return &counts.allocated;
  if (field == "allocatedNonPreemptible") return &counts.allocated_non_preemptible;
  return field == "requested" ? &counts.requested : nullptr;
}

// An invalid value in a status refuses no pod; so too in the status of a queue.
void ReadPodGroupStatus(JsonReader& reader, JsonValue status, const FieldPath& path,
                        model::PodGroup& out) {
  const Problems before = reader.problems();
  reader.Fields(status, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "schedulability") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue hash) {
        if (field == "hash") reader.String(hash, at.Field(field), out.schedulability_hash);
      });
    } else if (key == "schedulingConditions") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadSchedulingCondition(reader, item, at.Item(i), out.scheduling_conditions.emplace_back());
      });
    } else if (key == "resourcesStatus") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue amounts) {
        model::ResourceList* const list = CountOf(out.resources_status, field);
        if (list != nullptr) reader.Quantities(amounts, at.Field(field), *list);
      });
    }
  });
  reader.problems() = before;
}

// An invalid amount is ignored.
void ReadQueueStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::Queue& out) {
  const Problems before = reader.problems();
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "childQueues") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        reader.String(item, at.Item(i), out.child_queues.emplace_back());
      });
      return;
    }
    model::KaiCounts read = out.status.value_or(model::KaiCounts());
    model::ResourceList* const list = CountOf(read, key);
    if (list == nullptr) return;
    reader.Quantities(v, at, *list);
    out.status = std::move(read);
  });
  reader.problems() = before;
}

void ReadLevels(JsonReader& reader, JsonValue value, const FieldPath& path, model::Topology& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    model::Topology::Level& level = out.levels.emplace_back();
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "nodeLabel") reader.String(v, at.Field(key), level.node_label);
      if (key == "alias") reader.String(v, at.Field(key), level.alias);
    });
  });
}

void CheckLevels(const std::vector<model::Topology::Level>& levels, const FieldPath& path,
                 Problems& problems) {
  if (levels.empty() || levels.size() > kMaxTopologyLevels) {
    problems.Add(path, absl::StrCat("must have 1 to ", kMaxTopologyLevels, " levels"));
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    const FieldPath item = path.Item(i);
    const FieldPath at = item.Field("nodeLabel");
    const std::string& label = levels[i].node_label;
    if (label.empty()) problems.Add(at, "must be specified");
    if (label == model::kHostnameLabel && i + 1 != levels.size()) {
      problems.Add(at, absl::StrCat(label, " can only be the last level"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (levels[j].node_label == label && !label.empty()) {
        problems.Add(at, absl::StrCat(Quoted(label), " is there twice"));
      }
    }
  }
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::Queue& out) {
  const FieldPath root;
  bool has_spec = false;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kQueue);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") {
      has_spec = true;
      ReadQueueSpec(reader, v, at, out);
    }
    if (key == "status") ReadQueueStatus(reader, v, at, out);
  });
  const FieldPath spec = root.Field("spec");
  if (!has_spec) reader.problems().Add(spec.Field("resources"), "must be specified");
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::PodGroup& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "apiVersion") CheckApiGroup(reader, v, model::Kind::kPodGroup);
    if (key == "kind") CheckKind(reader, v, model::Kind::kPodGroup);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadPodGroupSpec(reader, v, at, out);
    if (key == "status") ReadPodGroupStatus(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::Topology& out) {
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key == "kind") CheckKind(reader, v, model::Kind::kTopology);
    if (key == "metadata") ReadMeta(reader, v, root.Field(key), out.meta);
    if (key != "spec") return;
    reader.Fields(v, spec, [&](absl::string_view field, JsonValue levels) {
      if (field == "levels") ReadLevels(reader, levels, spec.Field(field), out);
    });
  });
  CheckLevels(out.levels, spec.Field("levels"), reader.problems());
  out.invalid = reader.problems().Text();
}

}  // namespace fairlead::kube::json
