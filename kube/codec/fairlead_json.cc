// Our own kinds, fairlead.dev/v1alpha1. The JSON is the model's fields in camelCase:
//
//   NodeRequest  spec: pool provider instanceType zone spot reservation priceUsdPerHour ("3.912")
//                      queue reasonWorkloads replaces (name uid)
//                status: phase nodeName message failure launchedAt registeredAt readyAt
//                        unneededSince failedAt (RFC 3339, fractions allowed)
//   NodePool     spec: provider instanceTypes zones nodeClassRef allowSpot labels taints
//                      reservations (absent: all) startupTaints weight
//                      maxNodes (absent or -1: no bound)
//                      disruption (consolidationPolicy consolidateAfter budgets, as Karpenter has)
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/cron.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/node_request_names.h"
#include "kube/codec/pool_devices_json.h"
#include "scheduler/model/device_names.h"
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
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return;
  const absl::StatusOr<int64_t> price = model::ParseDollars(*text);
  if (price.ok()) {
    micro_usd = *price;
  } else {
    reader.problems().Add(path, absl::StrCat(Quoted(*text), " is not a price in USD"));
  }
}

void ReadReplaced(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::ReplacedRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") return reader.String(v, at, out.name);
    if (key == "uid") return reader.String(v, at, out.uid);
  });
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
    if (key == "reservation") return reader.String(v, at, out.reservation);
    if (key == "priceUsdPerHour") {
      out.price_known = true;
      return ReadPrice(reader, v, at, out.price_micro_usd_per_hour);
    }
    if (key == "queue") return reader.String(v, at, out.queue);
    if (key == "replaces") {
      return reader.Items(v, at, [&](size_t i, JsonValue one) {
        ReadReplaced(reader, one, at.Item(i), out.replaces.emplace_back());
      });
    }
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

// "5" or "10%".
void ReadBudgetNodes(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::DisruptionBudget& out) {
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return;
  absl::string_view number = *text;
  out.percent = absl::ConsumeSuffix(&number, "%");
  const bool digits = !number.empty() && number.size() <= 9 &&
                      std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(number, &out.nodes) || (out.percent && out.nodes > 100)) {
    reader.problems().Add(path,
                          absl::StrCat(Quoted(*text), " must be a number of nodes, or 0% to 100%"));
  }
}

void ReadBudgetReason(absl::string_view text, const FieldPath& path, JsonReader& reader,
                      model::DisruptionBudget& out) {
  if (text == "Empty") {
    out.for_empty = true;
  } else if (text == "Underutilized") {
    out.for_underutilized = true;
  } else {
    reader.problems().Add(path, absl::StrCat(Quoted(text), " must be Empty or Underutilized"));
  }
}

void ReadBudget(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::DisruptionBudget& out) {
  bool has_nodes = false;
  std::optional<absl::Duration> duration;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "nodes") {
      has_nodes = true;
      return ReadBudgetNodes(reader, v, at, out);
    }
    if (key == "duration") return reader.Duration(v, at, duration);
    if (key == "reasons") {
      return reader.Items(v, at, [&](size_t i, JsonValue reason) {
        ReadBudgetReason(reader.Text(reason, at.Item(i)), at.Item(i), reader, out);
      });
    }
    if (key != "schedule") return;
    absl::StatusOr<CronSchedule> schedule = CronSchedule::Parse(reader.Text(v, at));
    if (schedule.ok()) {
      out.schedule = *schedule;
    } else {
      reader.problems().Add(at, schedule.status().message());
    }
  });
  if (!has_nodes) reader.problems().Add(path.Field("nodes"), "must be set");
  if (out.schedule.has_value() != duration.has_value()) {
    reader.problems().Add(path, "schedule and duration must be set together");
  }
  if (!duration.has_value()) return;
  out.duration = *duration;
  if (*duration < absl::Minutes(1) || *duration > CronSchedule::kLongestWindow) {
    reader.problems().Add(path.Field("duration"), "must be from 1m to 744h");
  }
}

void ReadDisruption(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::Disruption& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "budgets") {
      return reader.Items(v, at, [&](size_t i, JsonValue budget) {
        ReadBudget(reader, budget, at.Item(i), out.budgets.emplace_back());
      });
    }
    if (key != "consolidationPolicy" && key != "consolidateAfter") return;
    const std::string text(reader.Text(v, at));
    if (key == "consolidationPolicy") {
      out.consolidation = model::ParseConsolidationPolicy(text);
      if (!out.consolidation.has_value()) {
        reader.problems().Add(
            at, absl::StrCat(Quoted(text), " must be ", model::kConsolidationPolicies));
      }
      return;
    }
    absl::Duration after;
    if (text == "Never") {
      out.consolidate_after = absl::InfiniteDuration();
    } else if (absl::ParseDuration(text, &after) && after >= absl::ZeroDuration() &&
               after < absl::InfiniteDuration()) {
      out.consolidate_after = after;
    } else {
      reader.problems().Add(at,
                            absl::StrCat(Quoted(text), " must be a duration such as 5m, or Never"));
    }
  });
}

struct SharingRow {
  model::GpuPartition::Strategy strategy;
  absl::string_view name;
};
constexpr SharingRow kSharing[] = {
    {model::GpuPartition::Strategy::kTimeSlicing, "TimeSlicing"},
    {model::GpuPartition::Strategy::kMps, "MPS"},
    {model::GpuPartition::Strategy::kMigSingle, "MIGSingle"},
    {model::GpuPartition::Strategy::kMigMixed, "MIGMixed"},
};

// "1g.5gb", "3g.40gb", "1g.10gb.me"; of resource names, so "+me" is written ".me".
bool IsMigProfile(absl::string_view text) {
  return text.size() <= 20 && absl::StrContains(text, "g.") && absl::StrContains(text, "gb") &&
         absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.' ||
                  absl::ascii_islower(static_cast<unsigned char>(c));
         });
}

void ReadMigDevices(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::GpuPartition& out) {
  reader.Fields(value, path, [&](absl::string_view profile, JsonValue v) {
    const FieldPath at = path.Field(profile);
    const std::optional<int64_t> count = reader.Int64(v, at);
    if (!count.has_value()) return;
    if (profile.empty() || !IsMigProfile(profile)) {
      return reader.problems().Add(at, "is no MIG profile, such as 1g.5gb");
    }
    if (*count < 1 || *count > 7) return reader.problems().Add(at, "must be from 1 to 7");
    out.instances.emplace_back(std::string(profile), *count);
  });
  std::sort(out.instances.begin(), out.instances.end());
}

void ReadGpuSharing(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::GpuPartition& out) {
  std::optional<int64_t> replicas;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "replicas") replicas = reader.Int64(v, at);
    if (key == "renameByDefault") return reader.Bool(v, at, out.renamed);
    if (key == "migDevices") return ReadMigDevices(reader, v, at, out);
    if (key != "strategy") return;
    const absl::string_view text = reader.Text(v, at);
    for (const SharingRow& row : kSharing) {
      if (row.name == text) out.strategy = row.strategy;
    }
  });
  using Strategy = model::GpuPartition::Strategy;
  const auto add = [&](absl::string_view field, absl::string_view problem) {
    reader.problems().Add(path.Field(field), problem);
  };
  if (out.strategy == Strategy::kNone) {
    return add("strategy", "must be TimeSlicing, MPS, MIGSingle or MIGMixed");
  }
  if (out.SharesTime()) {
    out.replicas = replicas.value_or(0);
    if (out.replicas < 2 || out.replicas > 1000) add("replicas", "must be from 2 to 1000");
    if (!out.instances.empty()) add("migDevices", "is of the MIG strategies");
    return;
  }
  if (replicas.has_value()) add("replicas", "is of the strategies TimeSlicing and MPS");
  if (out.instances.empty()) add("migDevices", "must be set");
  if (out.strategy == Strategy::kMigSingle && out.instances.size() > 1) {
    add("migDevices", "must be one profile: with MIGSingle all GPUs are divided alike");
  }
}

void ReadPoolStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::Condition& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "conditions") return;
    std::vector<model::Condition> conditions;
    ReadConditions(reader, v, path.Field(key), conditions);
    for (model::Condition& condition : conditions) {
      if (condition.type == "Ready") out = std::move(condition);
    }
  });
}

// Of the expected node they would take the place of its own.
void CheckPoolLabels(JsonReader& reader, const FieldPath& path, const model::NodePool& pool) {
  for (const char* key : {model::kHostnameLabel, model::kNodeRequestLabel, model::kPoolLabel}) {
    if (pool.labels.Find(key) == nullptr) continue;
    reader.problems().Add(path.Key(key), "is set by Fairlead, for each node of the pool");
  }
  const std::string* zone = pool.labels.Find(model::kZoneLabel);
  if (zone == nullptr || pool.zones.empty()) return;
  if (pool.zones.size() > 1 || pool.zones.front() != *zone) {
    reader.problems().Add(path.Key(model::kZoneLabel), "contradicts spec.zones");
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
    if (key == "reservations") return reader.Strings(v, at, out.reservations.emplace());
    if (key == "labels") return reader.Map(v, at, out.labels);
    if (key == "taints") return ReadTaints(reader, v, at, out.taints);
    if (key == "startupTaints") return ReadTaints(reader, v, at, out.startup_taints);
    if (key == "gpuSharing") return ReadGpuSharing(reader, v, at, out.gpu_sharing);
    if (key == "devices") return ReadPoolDevices(reader, v, at, out.devices);
    if (key == "disruption") return ReadDisruption(reader, v, at, out.disruption);
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
  CheckPoolLabels(reader, path.Field("labels"), out);
  const bool divided = out.gpu_sharing.strategy != model::GpuPartition::Strategy::kNone;
  if (divided && std::any_of(out.devices.begin(), out.devices.end(),
                             [](const auto& entry) { return model::IsGpuDriver(entry.driver); })) {
    reader.problems().Add(path.Field("gpuSharing"),
                          "is of device plugins, and devices has a driver of GPUs");
  }
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
    if (key == "status") ReadPoolStatus(reader, v, at, out.ready_condition);
  });
  out.invalid = reader.problems().Text();
}

}  // namespace json
}  // namespace fairlead::kube
