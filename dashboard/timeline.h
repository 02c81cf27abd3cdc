// What has been: a point per minute for the last 24 hours, and the last events. In memory alone: it
// starts empty with the process.
//
// Bounded: kPoints points; of each at most kQueues different queues, those without use and price
// not stored; kEvents events. About 10 MB if 200 queues are in use all day.
//
// Thread-safety: none, one thread; copies are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::dashboard {

struct TimelinePoint {
  absl::Time at;
  int64_t used_gpu_milli = 0, known_gpu_milli = 0;
  int64_t waiting_workloads = 0;
  int64_t micro_usd_per_hour = 0;
  struct OfQueue {
    std::string queue;
    int64_t used_gpu_milli = 0, micro_usd_per_hour = 0;
  };
  std::vector<OfQueue> queues;
};

struct TimelineEvent {
  absl::Time at;
  // "requested", "failed", "removing", "removed"; "evicted"; "suspended", "released".
  std::string kind;
  std::string subject;  // a NodeRequest, "namespace/name" of a pod, "Job namespace/name"
  std::string text;     // why
};

class Timeline {
 public:
  static constexpr size_t kPoints = 24 * 60, kQueues = 200, kEvents = 200, kQueueValues = 96;

  static constexpr absl::Duration kRepeats = absl::Minutes(10);

  // True if there is no point of this minute yet.
  [[nodiscard]] bool Wants(absl::Time now) const;
  // Ignored unless Wants(point.at): time does not go back.
  void Add(const TimelinePoint& point);
  // An event like one of the last kRepeats is not added again: a write that is repeated is no
  // second event.
  void Add(TimelineEvent event);

  [[nodiscard]] size_t points() const { return rows_.size(); }
  [[nodiscard]] const std::deque<TimelineEvent>& events() const { return events_; }

  // For the page: {"minutes":[Unix minutes],"used","known","waiting","price":[a number each],
  // "queues":[{"name","used":[],"price":[]}],"events":[{"at","kind","subject","text"}]}. Of queues
  // there are at most kQueueValues values, each the mean of as many points; events: newest first.
  [[nodiscard]] std::string Json() const;

 private:
  struct QueueValue {
    uint16_t id = 0;  // index into names_
    int64_t used_gpu_milli = 0, micro_usd_per_hour = 0;
  };
  struct Row {
    int64_t minute = 0;
    int64_t used_gpu_milli = 0, known_gpu_milli = 0, waiting_workloads = 0, micro_usd_per_hour = 0;
    std::vector<QueueValue> queues;
  };
  struct Named {
    std::string name;
    size_t rows = 0;  // that have a value of it; 0: the place is free
  };
  // The place of a queue in names_; kQueues if there is none left.
  size_t PlaceOf(const std::string& queue);
  void DropOldest();

  std::deque<Row> rows_;
  std::vector<Named> names_;
  std::map<std::string, size_t> places_;
  std::deque<TimelineEvent> events_;  // oldest first
};

}  // namespace fairlead::dashboard
