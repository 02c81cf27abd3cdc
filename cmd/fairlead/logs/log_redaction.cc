#include "cmd/fairlead/logs/log_redaction.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "document/json.h"
#include "journal/kept_words.h"

namespace fairlead::cmd {
namespace {

// log_redaction_test.cc compares this list with the source text.
constexpr absl::string_view kMessages[] = {
    "a change takes effect only after a restart",
    "action failed",
    "became leader",
    "certificate of the webhooks",
    "certificate of the webhooks is in place",
    "configuration read again",
    "configuration unchanged",
    "deciding without the usage of queues; it will be read again",
    "decision",
    "events dropped: too many wait to be written",
    "fair shares are divided with history again",
    "fair shares are divided without history",
    "guests cannot ask over gRPC",
    "kind is installed",
    "kind is not installed, or may not be read; it counts as empty",
    "log lines dropped",
    "machine reported",
    "new configuration in effect",
    "nodes could not be listed; machines without a node are not ended",
    "not every write was answered before the end; the lease is not released",
    "objects may be out of date; nothing is evicted, provisioned or removed",
    "offers of a provider",
    "pods of a node to be removed could not be listed",
    "problem of a provider",
    "recording a journal",
    "refused",
    "scheduling one shard of the cluster",
    "sending traces",
    "serving /livez, /readyz and /metrics",
    "serving guests",
    "serving profiles",
    "serving the dashboard",
    "serving webhooks",
    "starting",
    "stopped",
    "synced",
    "the collector takes traces again",
    "the journal ends; everything else goes on",
    "the last traces are lost",
    "the lease could not be read or written",
    "the new configuration cannot be run",
    "the new configuration cannot be used; the former one stays in force",
    "traces are not taken; decisions go on",
    "usage of queues",
    "usage of queues could not be fetched",
    "usage of queues could not be read; recording starts again",
    "waiting for the cluster",
    "watch fails; it will be retried",
    "watch works again",
    "whoever reaches the dashboard may read it: --dashboard-auth=none",
    "writes were given up because the new configuration takes effect",
};

constexpr absl::string_view kKeys[] = {"action",
                                       "actions",
                                       "apiVersion",
                                       "auth",
                                       "bound",
                                       "capacityType",
                                       "cluster",
                                       "code",
                                       "count",
                                       "cycle",
                                       "decision",
                                       "error",
                                       "event",
                                       "events",
                                       "evicted",
                                       "failure",
                                       "field",
                                       "file",
                                       "group",
                                       "history",
                                       "hook",
                                       "id",
                                       "identity",
                                       "instanceType",
                                       "kind",
                                       "last_word_ago",
                                       "lease",
                                       "leader_election",
                                       "level",
                                       "machine",
                                       "message",
                                       "msg",
                                       "name",
                                       "namespace",
                                       "next_ms",
                                       "node",
                                       "nodePool",
                                       "node_pool",
                                       "nodeRequest",
                                       "noderequest",
                                       "nodes_requested",
                                       "nodes_terminated",
                                       "parts",
                                       "phase",
                                       "pod",
                                       "pods",
                                       "port",
                                       "priceUsdPerHour",
                                       "problem",
                                       "provider",
                                       "providerID",
                                       "queue",
                                       "reason",
                                       "replaces",
                                       "reservation",
                                       "scheduler_names",
                                       "shard",
                                       "state",
                                       "time",
                                       "took_us",
                                       "types",
                                       "uid",
                                       "user",
                                       "verdicts",
                                       "version",
                                       "warning",
                                       "why",
                                       "workloads",
                                       "zone"};

// Keys of numbers and times: logfmt does not tell a number from a name of digits.
constexpr absl::string_view kAmountKeys[] = {
    "actions",  "bound",  "count",           "cycle",   "decision",        "events",
    "evicted",  "id",     "last_word_ago",   "next_ms", "nodes_requested", "nodes_terminated",
    "parts",    "port",   "priceUsdPerHour", "time",    "took_us",         "types",
    "verdicts", "version"};

// Values of `event` and `level`.
constexpr absl::string_view kWords[] = {"answer",  "debug",     "error",  "evict",     "forget",
                                        "info",    "launch",    "phase",  "provision", "release",
                                        "suspend", "terminate", "warning"};

template <size_t kSize>
bool IsIn(const absl::string_view (&list)[kSize], absl::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

std::string RedactedKey(absl::string_view key, journal::Redactor& redactor) {
  return IsIn(kKeys, key) ? std::string(key) : redactor.Of(std::string(key));
}

std::string RedactedValue(absl::string_view key, absl::string_view value,
                          journal::Redactor& redactor) {
  const bool stays = key == "msg"                       ? IsLogMessage(value)
                     : key == "event" || key == "level" ? IsIn(kWords, value)
                     : IsIn(kAmountKeys, key)           ? journal::KeptWords::IsAmount(value)
                                                        : false;
  return stays ? std::string(value) : redactor.Of(std::string(value));
}

Json RedactedJson(absl::string_view key, const Json& json, journal::Redactor& redactor) {
  if (json.is_object()) {
    Json out = Json::Object();
    for (const auto& [name, value] : json.fields()) {
      out.Append(RedactedKey(name, redactor), RedactedJson(name, value, redactor));
    }
    return out;
  }
  if (json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(RedactedJson(key, item, redactor));
    return out;
  }
  return json.type() == Json::Type::kString
             ? Json::String(RedactedValue(key, json.text(), redactor))
             : json;
}

// key=value key="a value": none if the line is none of those.
std::optional<std::vector<std::pair<std::string, std::string>>> PairsOf(absl::string_view line) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!line.empty()) {
    const size_t equals = line.find_first_of("= \"");
    if (equals == 0 || equals == absl::string_view::npos || line[equals] != '=') {
      return std::nullopt;
    }
    auto& [key, value] = pairs.emplace_back(line.substr(0, equals), "");
    line.remove_prefix(equals + 1);
    if (!line.empty() && line.front() == '"') {
      size_t at = 1;
      for (; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) ++at;
        value += line[at];
      }
      if (at >= line.size()) return std::nullopt;
      line.remove_prefix(at + 1);
    } else {
      const absl::string_view bare = line.substr(0, line.find(' '));
      value = std::string(bare);
      line.remove_prefix(bare.size());
    }
    if (!line.empty() && line.front() != ' ') return std::nullopt;
    if (!line.empty()) line.remove_prefix(1);
  }
  return pairs;
}

std::string RedactedLine(absl::string_view line, journal::Redactor& redactor) {
  if (absl::StartsWith(line, "{")) {
    const absl::StatusOr<Json> json = Json::Parse(line);
    if (json.ok()) return RedactedJson("", *json, redactor).Compact();
  }
  const auto pairs = PairsOf(line);
  if (!pairs.has_value()) return redactor.Of(std::string(line));
  std::string out;
  for (const auto& [key, value] : *pairs) {
    const std::string redacted = RedactedValue(key, value, redactor);
    const bool is_plain = !redacted.empty() && redacted.find_first_of(" \"=") == std::string::npos;
    absl::StrAppend(&out, out.empty() ? "" : " ", RedactedKey(key, redactor), "=",
                    is_plain ? redacted : Json::String(redacted).Compact());
  }
  return out;
}

}  // namespace

bool IsLogMessage(absl::string_view message) { return IsIn(kMessages, message); }

std::string RedactedLog(absl::string_view lines, journal::Redactor& redactor) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!text.empty()) absl::StrAppend(&out, RedactedLine(text, redactor), "\n");
  }
  return out;
}

absl::string_view LastLines(absl::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  text.remove_prefix(text.size() - bytes_max);
  const size_t end = text.find('\n');
  return end == absl::string_view::npos ? absl::string_view() : text.substr(end + 1);
}

}  // namespace fairlead::cmd
