#include "usage-prometheus/answer.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/codec/json_reader.h"

namespace fairlead::prometheus {
namespace {

using kube::FieldPath;
using kube::JsonReader;
using kube::JsonValue;

constexpr size_t kWarningsMax = 3;     // of one answer, and
constexpr size_t kMessageBytes = 300;  // per message from Prometheus

// The envelope of every answer, of errors too.
struct Envelope {
  std::string status, error_type, error, result_type;
  std::string problems;  // of the rest
  bool has_result = false;
  Answer answer;
};

void ReadSample(JsonReader& reader, JsonValue item, const FieldPath& path, Sample& sample) {
  bool has_value = false;
  reader.Fields(item, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "metric") {
      return reader.Fields(v, at, [&](absl::string_view label, JsonValue text) {
        if (label == kQueueLabel) reader.String(text, at.Field(label), sample.queue);
      });
    }
    if (key != "value") return;
    size_t count = 0;
    std::string text;
    reader.Items(v, at, [&](size_t i, JsonValue part) {
      count = i + 1;
      if (i == 1) reader.String(part, at.Item(i), text);
    });
    if (!reader.ok()) return;
    has_value = true;
    if (count != 2) return reader.problems().Add(at, "is not a time and a number");
    absl::StatusOr<Decimal> value = ParseDecimal(text);
    if (value.ok()) {
      sample.value = *value;
    } else {
      reader.problems().Add(
          at, absl::StrCat(sample.queue.empty() ? "" : "queue ", sample.queue,
                           sample.queue.empty() ? "" : ": ", value.status().message()));
    }
  });
  if (!has_value) reader.problems().Add(path, "has no value");
}

void ReadData(JsonReader& reader, JsonValue value, const FieldPath& path, Envelope& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "resultType") return reader.String(v, at, out.result_type);
    if (key != "result") return;
    out.has_result = true;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      ReadSample(reader, item, at.Item(i), out.answer.samples.emplace_back());
    });
  });
}

absl::StatusOr<Envelope> ReadEnvelope(absl::string_view body) {
  Envelope out;
  FAIRLEAD_RETURN_IF_ERROR(kube::ReadJson(body, [&](JsonReader& reader, JsonValue value) {
    const FieldPath root;
    reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = root.Field(key);
      if (key == "status") return reader.String(v, at, out.status);
      if (key == "errorType") return reader.String(v, at, out.error_type);
      if (key == "error") return reader.String(v, at, out.error);
      if (key == "data") return ReadData(reader, v, at, out);
      if (key == "warnings") return reader.Strings(v, at, out.answer.warnings);
    });
    out.problems = reader.problems().Text();
  }));
  return out;
}

std::string Short(absl::string_view text) { return std::string(text.substr(0, kMessageBytes)); }

std::string ErrorText(const Envelope& envelope) {
  return absl::StrCat(Short(envelope.error_type), envelope.error_type.empty() ? "" : ": ",
                      envelope.error.empty() ? "no reason given" : Short(envelope.error));
}

absl::Status StatusError(const kube::HttpResponse& response) {
  std::string why;
  if (response.status >= 300 && response.status < 400) {
    why = "a redirect, which is not followed: connectionString has to name the server itself";
  } else if (absl::StatusOr<Envelope> envelope = ReadEnvelope(response.body);
             envelope.ok() && !envelope->status.empty()) {
    why = ErrorText(*envelope);
  }
  return absl::UnavailableError(
      absl::StrCat("HTTP status ", response.status, why.empty() ? "" : ": ", why));
}

bool IsZero(const Sample& sample) { return sample.value.mantissa == 0; }

absl::Status CheckQueues(const Answer& answer) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const Sample& sample : answer.samples) {
    if (sample.queue.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("a series has no label ", kQueueLabel));
    }
    if (!seen.insert(sample.queue).second) {
      return absl::InvalidArgumentError(absl::StrCat("queue ", sample.queue, " has two series"));
    }
  }
  return absl::OkStatus();
}

// Adds one metric. Omits the resource if the cluster has none and no queue held any.
absl::Status AddParts(const Metric& metric, const MetricAnswers& answers, Usage& usage) {
  const auto error = [&metric](bool capacity, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(FieldOf(metric, capacity), ": ", what));
  };
  const std::vector<Sample>& held = answers.allocation.samples;
  const std::vector<Sample>& whole = answers.capacity.samples;
  if (const absl::Status queues = CheckQueues(answers.allocation); !queues.ok()) {
    return error(false, queues.message());
  }
  if (whole.size() > 1) {
    return error(true, absl::StrCat(whole.size(), " series; it has to be one, such as of sum()"));
  }
  if (whole.empty() || IsZero(whole.front())) {
    if (std::all_of(held.begin(), held.end(), IsZero)) return absl::OkStatus();
    return error(true, "no capacity over the whole window, though queues have held some");
  }
  for (const Sample& sample : held) {
    const int64_t nano = NanoFraction(sample.value, whole.front().value);
    if (nano > 0) usage.report.parts.push_back({sample.queue, metric.resource, nano});
  }
  if (held.empty()) {
    usage.warnings.push_back(
        absl::StrCat(FieldOf(metric, false), ": no series: no queue has used the resource"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FieldOf(const Metric& metric, bool capacity) {
  return absl::StrCat(metric.name, capacity ? "CapacityMetric" : "AllocationMetric");
}

absl::StatusOr<Answer> ReadAnswer(const kube::HttpResponse& response) {
  if (response.status != 200) return StatusError(response);
  FAIRLEAD_ASSIGN_OR_RETURN(Envelope envelope, ReadEnvelope(response.body));
  if (envelope.status == "error") return absl::UnavailableError(ErrorText(envelope));
  if (envelope.status != "success") {
    return absl::InvalidArgumentError(
        absl::StrCat("status ", kube::Quoted(envelope.status), " is not \"success\""));
  }
  if (envelope.result_type != "vector") {
    return absl::InvalidArgumentError(
        absl::StrCat("data.resultType ", kube::Quoted(envelope.result_type), " is not \"vector\""));
  }
  if (!envelope.problems.empty()) return absl::InvalidArgumentError(envelope.problems);
  if (!envelope.has_result) return absl::InvalidArgumentError("data.result is missing");
  Answer answer = std::move(envelope.answer);
  if (answer.warnings.size() > kWarningsMax) answer.warnings.resize(kWarningsMax);
  for (std::string& warning : answer.warnings) warning = Short(warning);
  return answer;
}

absl::StatusOr<Usage> Combine(absl::Time at, absl::Span<const Metric> metrics,
                              absl::Span<const MetricAnswers> answers) {
  Usage usage;
  usage.report.at = at;
  for (size_t i = 0; i < metrics.size(); ++i) {
    for (const bool capacity : {false, true}) {
      for (const std::string& warning :
           (capacity ? answers[i].capacity : answers[i].allocation).warnings) {
        usage.warnings.push_back(absl::StrCat(FieldOf(metrics[i], capacity), ": ", warning));
      }
    }
    FAIRLEAD_RETURN_IF_ERROR(AddParts(metrics[i], answers[i], usage));
  }
  std::sort(usage.report.parts.begin(), usage.report.parts.end(),
            [](const model::UsageReport::Part& a, const model::UsageReport::Part& b) {
              return std::tie(a.queue, a.resource) < std::tie(b.queue, b.resource);
            });
  return usage;
}

}  // namespace fairlead::prometheus
