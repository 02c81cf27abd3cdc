#include "dashboard/snapshot_json.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/json_writer.h"
#include "base/utf8.h"

namespace fairlead::dashboard {
namespace {

void Name(JsonWriter& json, absl::string_view key, absl::string_view name) {
  json.FieldUnlessEmpty(key, TruncateUtf8(name, kNameBytes));
}
void Text(JsonWriter& json, absl::string_view key, absl::string_view text) {
  json.FieldUnlessEmpty(key, TruncateUtf8(text, kTextBytes));
}
void Number(JsonWriter& json, absl::string_view key, int64_t number) { json.Key(key).Int(number); }
void NumberOrNull(JsonWriter& json, absl::string_view key, const std::optional<int64_t>& number) {
  json.Key(key);
  number.has_value() ? json.Int(*number) : json.Null();
}
void Time(JsonWriter& json, absl::string_view key, const std::optional<absl::Time>& time) {
  if (!time.has_value() || *time == absl::InfinitePast() || *time == absl::InfiniteFuture()) return;
  json.Key(key).Int(absl::ToUnixMillis(*time));
}
void Flag(JsonWriter& json, absl::string_view key, bool is) {
  if (is) json.Key(key).Bool(true);
}
// At most `most` of them.
void Texts(JsonWriter& json, absl::string_view key, const std::vector<std::string>& texts,
           size_t most) {
  if (texts.empty()) return;
  json.Key(key).BeginArray();
  for (size_t i = 0; i < std::min(most, texts.size()); ++i) {
    json.String(TruncateUtf8(texts[i], kNameBytes));
  }
  json.EndArray();
}

void Write(JsonWriter& json, const QueueLine& queue) {
  Name(json, "name", queue.name);
  Name(json, "parent", queue.parent);
  Text(json, "problem", queue.problem);
  Number(json, "depth", queue.depth);
  Flag(json, "leaf", queue.leaf);
  NumberOrNull(json, "quota", queue.quota_gpu_milli);
  NumberOrNull(json, "limit", queue.limit_gpu_milli);
  NumberOrNull(json, "fairShare", queue.fair_share_gpu_milli);
  Number(json, "used", queue.used_gpu_milli);
  Number(json, "requested", queue.requested_gpu_milli);
  Number(json, "waiting", queue.waiting_workloads);
  Number(json, "pods", queue.running_pods);
  Number(json, "price", queue.micro_usd_per_hour);
}

void Write(JsonWriter& json, const WaitingLine& waiting) {
  Name(json, "workload", waiting.workload);
  Flag(json, "group", waiting.is_group);
  Name(json, "queue", waiting.queue);
  Number(json, "priority", waiting.priority);
  json.Field("code", waiting.code).Field("category", waiting.category);
  Text(json, "sentence", waiting.sentence);
  Text(json, "message", waiting.message);
  Texts(json, "helps", waiting.helps, kHelps);
  Number(json, "position", waiting.position);
  Number(json, "pods", waiting.pods);
  Time(json, "since", waiting.since);
  Time(json, "expected", waiting.expected_at);
}

void Write(JsonWriter& json, const NodeLine& node) {
  Name(json, "name", node.name);
  Name(json, "pool", node.pool);
  Name(json, "type", node.type);
  Name(json, "zone", node.zone);
  json.Field("status", node.status);
  Name(json, "capacity", node.capacity_type);
  Flag(json, "ours", node.ours);
  Flag(json, "coming", node.coming);
  Number(json, "gpus", node.gpu_milli);
  Number(json, "used", node.used_gpu_milli);
  Number(json, "promised", node.promised_gpu_milli);
  Number(json, "pods", node.pods);
  Number(json, "price", node.micro_usd_per_hour);
  Time(json, "unneeded", node.unneeded_since);
}

void Write(JsonWriter& json, const PurchaseLine& purchase) {
  Name(json, "name", purchase.name);
  Name(json, "pool", purchase.pool);
  Name(json, "type", purchase.type);
  Name(json, "zone", purchase.zone);
  Name(json, "capacity", purchase.capacity_type);
  json.Field("phase", purchase.phase);
  Name(json, "queue", purchase.queue);
  Name(json, "failure", purchase.failure);
  Text(json, "message", purchase.message);
  Texts(json, "workloads", purchase.workloads, kReasons);
  Number(json, "workloadsMore",
         static_cast<int64_t>(purchase.workloads.size() -
                              std::min(kReasons, purchase.workloads.size())));
  NumberOrNull(json, "price", purchase.micro_usd_per_hour);
  Time(json, "requested", purchase.requested_at);
}

template <typename Line>
void Rows(JsonWriter& json, absl::string_view key, const std::vector<Line>& lines, size_t most) {
  const size_t shown = std::min(most, lines.size());
  json.Key(key).BeginArray();
  for (size_t i = 0; i < shown; ++i) {
    json.BeginObject();
    Write(json, lines[i]);
    json.EndObject();
  }
  json.EndArray();
  json.Key(std::string(key) + "More").Int(static_cast<int64_t>(lines.size() - shown));
}

struct PoolTotals {
  int64_t nodes = 0, coming = 0, gpu_milli = 0, used_gpu_milli = 0, price = 0;
  void Add(const NodeLine& node) {
    ++nodes;
    price += node.micro_usd_per_hour;
    if (node.coming) {
      ++coming;
      return;
    }
    gpu_milli += node.gpu_milli;
    used_gpu_milli += node.used_gpu_milli;
  }
  void Write(JsonWriter& json) const {
    Number(json, "nodes", nodes);
    Number(json, "coming", coming);
    Number(json, "gpus", gpu_milli);
    Number(json, "used", used_gpu_milli);
    Number(json, "price", price);
  }
};

// Nodes of ours before the others, each by pool.
using PoolKey = std::pair<bool, std::string>;

}  // namespace

std::string SnapshotJson(const Snapshot& snapshot) {
  JsonWriter json;
  json.BeginObject();
  Time(json, "at", snapshot.at);
  Name(json, "version", snapshot.version);
  json.Key("leads").Bool(snapshot.leads);
  Name(json, "leader", snapshot.leader);
  json.Key("synced").Bool(snapshot.synced);
  PoolTotals all;
  std::map<PoolKey, PoolTotals> pools;
  for (const NodeLine& node : snapshot.nodes) {
    all.Add(node);
    pools[{!node.ours, node.pool}].Add(node);
  }
  json.Key("totals").BeginObject();
  all.Write(json);
  Number(json, "waiting", static_cast<int64_t>(snapshot.waiting.size()));
  Number(json, "bill", snapshot.micro_usd_per_hour);
  Number(json, "idle", snapshot.idle_micro_usd_per_hour);
  json.EndObject();
  json.Key("pools").BeginArray();
  size_t shown = 0;
  for (const auto& [key, totals] : pools) {
    if (++shown > kPoolRows) break;
    json.BeginObject();
    Flag(json, "ours", !key.first);
    Name(json, "name", key.second);
    totals.Write(json);
    json.EndObject();
  }
  json.EndArray();
  Rows(json, "queues", snapshot.queues, kQueueRows);
  Rows(json, "waiting", snapshot.waiting, kWaitingRows);
  Rows(json, "nodes", snapshot.nodes, kNodeRows);
  Rows(json, "purchases", snapshot.purchases, kPurchaseRows);
  return json.EndObject().Take();
}

}  // namespace fairlead::dashboard
