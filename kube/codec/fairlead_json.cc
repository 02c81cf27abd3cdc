// Our own kinds, fairlead.dev/v1alpha1. The JSON is the model's fields in camelCase:
//
//   NodeRequest  spec: pool provider instanceType zone spot priceUsdPerHour ("3.912") queue
//                      reasonWorkloads
//                status: phase nodeName message failure launchedAt registeredAt readyAt
//                unneededSince
//                        failedAt (RFC 3339, fractions allowed)
//   NodePool     spec: provider instanceTypes zones nodeClassRef allowSpot labels taints
//   startupTaints weight
//                      maxNodes (absent or -1: no bound)
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/node_request_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube {

namespace {

struct PhaseRow {
  model::NodeRequestPhase phase;
  absl::string_view name;
};
constexpr PhaseRow kPhases[] = {
    {model::NodeRequestPhase::kPending, "Pending"},
    {model::NodeRequestPhase::kLaunched, "Launched"},
    {model::NodeRequestPhase::kRegistered, "Registered"},
    {model::NodeRequestPhase::kReady, "Ready"},
    {model::NodeRequestPhase::kDraining, "Draining"},
    {model::NodeRequestPhase::kFailed, "Failed"},
    {model::NodeRequestPhase::kGone, "Gone"},
};

}  // namespace

absl::string_view PhaseName(model::NodeRequestPhase phase) {
  for (const PhaseRow& row : kPhases) {
    if (row.phase == phase) return row.name;
  }
  return "Pending";
}

std::optional<model::NodeRequestPhase> ParsePhase(absl::string_view name) {
  for (const PhaseRow& row : kPhases) {
    if (row.name == name) return row.phase;
  }
  return std::nullopt;
}

namespace json {
namespace {

void ReadPrice(JsonReader& reader, JsonValue value, const FieldPath& path, int64_t& micro_usd) {
  constexpr int64_t kMicroPerUsd = 1000 * 1000;
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return;
  const absl::StatusOr<int64_t> price = model::ParseDecimal(*text, kMicroPerUsd);
  if (price.ok() && *price >= 0) {
    micro_usd = *price;
  } else {
    reader.problems().Add(path, absl::StrCat(Quoted(*text), " is not a price in USD"));
  }
}

void ReadRequestSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::NodeRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "pool") return reader.String(v, at, out.pool);
    if (key == "provider") return reader.String(v, at, out.provider);
    if (key == "instanceType") return reader.String(v, at, out.instance_type);
    if (key == "zone") return reader.String(v, at, out.zone);
    if (key == "spot") return reader.Bool(v, at, out.spot);
    if (key == "priceUsdPerHour") {
      out.price_known = true;
      return ReadPrice(reader, v, at, out.price_micro_usd_per_hour);
    }
    if (key == "queue") return reader.String(v, at, out.queue);
    if (key == "reasonWorkloads") return reader.Strings(v, at, out.reason_workloads);
  });
}

void ReadRequestStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                       model::NodeRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "nodeName") return reader.String(v, at, out.node_name);
    if (key == "providerID") return reader.String(v, at, out.provider_id);
    if (key == "allocatable") return reader.Quantities(v, at, out.allocatable);
    if (key == "message") return reader.String(v, at, out.message);
    if (key == "failure") return reader.String(v, at, out.failure);
    if (key == "launchedAt") return reader.Time(v, at, out.launched_at);
    if (key == "registeredAt") return reader.Time(v, at, out.registered_at);
    if (key == "readyAt") return reader.Time(v, at, out.ready_at);
    if (key == "unneededSince") return reader.Time(v, at, out.unneeded_since);
    if (key == "failedAt") return reader.Time(v, at, out.failed_at);
    if (key != "phase") return;
    const absl::string_view text = reader.Text(v, at);
    if (std::optional<model::NodeRequestPhase> phase = ParsePhase(text)) {
      out.phase = *phase;
    } else {
      reader.problems().Add(at, absl::StrCat(Quoted(text), " is no phase"));
    }
  });
}

void ReadNodeClass(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::NodeClassRef& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "group") return reader.String(v, at, out.group);
    if (key == "kind") return reader.String(v, at, out.kind);
    if (key == "name") return reader.String(v, at, out.name);
  });
  for (const auto& [field, text] :
       {std::pair("group", &out.group), {"kind", &out.kind}, {"name", &out.name}}) {
    if (text->empty()) reader.problems().Add(path.Field(field), "must be set");
  }
}

void ReadPoolSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::NodePool& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "provider") return reader.String(v, at, out.provider);
    if (key == "nodeClassRef") return ReadNodeClass(reader, v, at, out.node_class);
    if (key == "instanceTypes") return reader.Strings(v, at, out.instance_types);
    if (key == "zones") return reader.Strings(v, at, out.zones);
    if (key == "allowSpot") return reader.Bool(v, at, out.allow_spot);
    if (key == "labels") return reader.Map(v, at, out.labels);
    if (key == "taints") return ReadTaints(reader, v, at, out.taints);
    if (key == "startupTaints") return ReadTaints(reader, v, at, out.startup_taints);
    if (key == "weight") {
      out.weight = reader.Int32(v, at).value_or(0);
    } else if (key == "maxNodes") {
      const std::optional<int64_t> number = reader.Int64(v, at);
      if (!number.has_value()) return;
      if (*number < model::kUnlimited) {
        reader.problems().Add(
            at, absl::StrCat(*number, " must not be negative, -1 (unlimited) excepted"));
      } else {
        out.max_nodes = *number;
      }
    }
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::NodeRequest& out) {
  const FieldPath root;
  out.price_known = false;  // unless spec.priceUsdPerHour says it
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kNodeRequest);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta, &out.finalizers);
    if (key == "spec") ReadRequestSpec(reader, v, at, out);
    if (key == "status") ReadRequestStatus(reader, v, at, out);
  });
}

void Read(JsonReader& reader, JsonValue value, model::NodePool& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kNodePool);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadPoolSpec(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

}  // namespace json
}  // namespace fairlead::kube
