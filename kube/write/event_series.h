// Events that repeat. The first observation of an event is a POST. If the event is observed again
// within kSeriesLasts, the next write is a PATCH of its series: how often it was observed, and when
// last (events.k8s.io/v1, `series`, as client-go's event broadcaster writes it). Two events are the
// same if all that they say is equal, object and note included.
//
// Rate: an event is patched at most once in kSeriesPause; what is observed meanwhile is counted,
// and told by one patch afterwards. An event that is gone (404, or a 409) is posted anew, as the
// first of another series. The binding of a pod never repeats, and is not remembered.
//
// Memory: at most kMaxSeries events; beyond that the one that was observed longest ago is
// forgotten, and what was counted of it since its last patch is never told.
//
// Ownership: a record is shared with the writes of it. Thread-safety: none; the executor's lock.
// No clock: times come in. Complexity: O(1), with a hash and a copy of the event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/write/write_protocol.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

inline constexpr absl::Duration kSeriesLasts = absl::Minutes(6);
inline constexpr absl::Duration kSeriesPause = absl::Minutes(1);
inline constexpr size_t kMaxSeries = 4096;

// One event, and what the server knows of it.
struct EventRecord {
  model::EmitEvent event;
  absl::Time first, last;  // wall time of the first and of the last observation
  int64_t count = 1;       // observations
  bool exists = false;     // the server has the event,
  int64_t told = 0;        // with this count
  bool writing = false;    // a write of it is queued or under way
  bool timed = false;      // it will be looked at by a timer
  absl::Duration observed_at = absl::ZeroDuration();      // steady: the last observation
  absl::Duration patched_at = -absl::InfiniteDuration();  // steady: the last PATCH that was sent
};
using EventRecordPtr = std::shared_ptr<EventRecord>;

class EventSeries {
 public:
  explicit EventSeries(size_t max = kMaxSeries) : max_(max) {}

  struct Observed {
    EventRecordPtr record;
    bool write = false;  // it is to be written now
    // The record is to be looked at after this time; zero: it need not be, or it will be already.
    absl::Duration look_after = absl::ZeroDuration();
  };
  Observed Observe(const model::EmitEvent& event, absl::Time now, absl::Duration steady);
  // The time to look at the record has come; the same answer.
  static Observed Look(const EventRecordPtr& record, absl::Duration steady);

  [[nodiscard]] size_t size() const { return records_.size(); }

 private:
  using Records = std::list<EventRecordPtr>;  // in the order of the last observation
  Observed Repeat(const EventRecordPtr& record, absl::Time now, absl::Duration steady);
  void Forget(Records::iterator record);

  const size_t max_;
  Records records_;
  absl::flat_hash_map<uint64_t, Records::iterator> by_hash_;  // of all that the event says
};

// Writes the record: a POST if the server does not have the event, else a PATCH. The count of a
// PATCH is that of the moment when it is sent. `clock` says when that is, for the pause.
std::unique_ptr<WriteProtocol> MakeEventProtocol(EventRecordPtr record,
                                                 const WriterIdentity& identity,
                                                 const Clock& clock);

}  // namespace fairlead::kube
