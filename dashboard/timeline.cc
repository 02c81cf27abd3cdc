#include "dashboard/timeline.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "dashboard/snapshot_json.h"

namespace fairlead::dashboard {
namespace {

int64_t MinuteOf(absl::Time at) { return absl::ToUnixSeconds(at) / 60; }

// The means of as many values as share a place, without fractions.
void WriteMeans(JsonWriter& json, absl::string_view key, const std::vector<int64_t>& values,
                size_t step) {
  json.Key(key).BeginArray();
  for (size_t begin = 0; begin < values.size(); begin += step) {
    const size_t end = std::min(begin + step, values.size());
    int64_t sum = 0;
    for (size_t i = begin; i < end; ++i) sum += values[i];
    json.Int(sum / static_cast<int64_t>(end - begin));
  }
  json.EndArray();
}

}  // namespace

bool Timeline::Wants(absl::Time now) const {
  return rows_.empty() || MinuteOf(now) > rows_.back().minute;
}

size_t Timeline::PlaceOf(const std::string& queue) {
  if (const auto found = places_.find(queue); found != places_.end()) return found->second;
  const auto free = std::find_if(names_.begin(), names_.end(),
                                 [](const Named& named) { return named.rows == 0; });
  const auto place = static_cast<size_t>(free - names_.begin());
  if (free == names_.end()) {
    if (names_.size() >= kQueues) return kQueues;
    names_.emplace_back();
  }
  names_[place].name = queue;
  places_[queue] = place;
  return place;
}

void Timeline::DropOldest() {
  for (const QueueValue& value : rows_.front().queues) {
    Named& named = names_[value.id];
    if (--named.rows == 0) places_.erase(named.name);
  }
  rows_.pop_front();
}

void Timeline::Add(const TimelinePoint& point) {
  if (!Wants(point.at)) return;
  Row row{MinuteOf(point.at),      point.used_gpu_milli,     point.known_gpu_milli,
          point.waiting_workloads, point.micro_usd_per_hour, {}};
  while (!rows_.empty() && (rows_.size() >= kPoints ||
                            rows_.front().minute + static_cast<int64_t>(kPoints) <= row.minute)) {
    DropOldest();
  }
  for (const TimelinePoint::OfQueue& queue : point.queues) {
    if (queue.used_gpu_milli == 0 && queue.micro_usd_per_hour == 0) continue;
    const size_t place = PlaceOf(queue.queue);
    if (place == kQueues) continue;
    ++names_[place].rows;
    row.queues.push_back(
        {static_cast<uint16_t>(place), queue.used_gpu_milli, queue.micro_usd_per_hour});
  }
  rows_.push_back(std::move(row));
}

void Timeline::Add(TimelineEvent event) {
  event.subject = TruncateUtf8(event.subject, kNameBytes);
  event.text = TruncateUtf8(event.text, kTextBytes);
  for (const TimelineEvent& known : events_) {
    const bool same =
        known.kind == event.kind && known.subject == event.subject && known.text == event.text;
    if (same && event.at - known.at < kRepeats) return;
  }
  if (events_.size() >= kEvents) events_.pop_front();
  events_.push_back(std::move(event));
}

std::string Timeline::Json() const {
  JsonWriter json;
  json.BeginObject();
  const auto column = [&](absl::string_view key, int64_t Row::* number) {
    json.Key(key).BeginArray();
    for (const Row& row : rows_) json.Int(row.*number);
    json.EndArray();
  };
  column("minutes", &Row::minute);
  column("used", &Row::used_gpu_milli);
  column("known", &Row::known_gpu_milli);
  column("waiting", &Row::waiting_workloads);
  column("price", &Row::micro_usd_per_hour);

  std::vector<std::vector<int64_t>> used(names_.size()), price(names_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (const QueueValue& value : rows_[i].queues) {
      used[value.id].resize(rows_.size());
      price[value.id].resize(rows_.size());
      used[value.id][i] = value.used_gpu_milli;
      price[value.id][i] = value.micro_usd_per_hour;
    }
  }
  const size_t step = std::max<size_t>(1, (rows_.size() + kQueueValues - 1) / kQueueValues);
  json.Key("queues").BeginArray();
  for (const auto& [name, place] : places_) {
    json.BeginObject().Field("name", TruncateUtf8(name, kNameBytes));
    WriteMeans(json, "used", used[place], step);
    WriteMeans(json, "price", price[place], step);
    json.EndObject();
  }
  json.EndArray();
  json.Key("events").BeginArray();
  for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
    json.BeginObject().Key("at").Int(absl::ToUnixMillis(event->at));
    json.Field("kind", event->kind).Field("subject", event->subject).Field("text", event->text);
    json.EndObject();
  }
  return json.EndArray().EndObject().Take();
}

}  // namespace fairlead::dashboard
