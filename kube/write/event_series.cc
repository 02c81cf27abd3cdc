#include "kube/write/event_series.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "kube/codec/codec.h"
#include "kube/write/write_answers.h"

namespace fairlead::kube {
namespace {

bool IsSame(const model::EmitEvent& a, const model::EmitEvent& b) {
  return a.about == b.about && a.ns == b.ns && a.name == b.name && a.uid == b.uid &&
         a.warning == b.warning && a.reason == b.reason && a.note == b.note &&
         a.action == b.action && a.reporter == b.reporter && a.related == b.related;
}

uint64_t HashOf(const model::EmitEvent& event) {
  StableHash hash;
  hash.Add(static_cast<int64_t>(event.about)).Add(event.ns).Add(event.name).Add(event.uid);
  hash.Add(event.reason).Add(event.note).Add(static_cast<int64_t>(event.action));
  hash.Add(event.related->uid);
  return hash.value();
}

class EventProtocol final : public WriteProtocol {
 public:
  EventProtocol(EventRecordPtr record, WriterIdentity identity, const Clock& clock)
      : record_(std::move(record)), identity_(std::move(identity)), clock_(clock) {
    record_->writing = true;
  }
  ~EventProtocol() override { record_->writing = false; }
  EventProtocol(const EventProtocol&) = delete;
  EventProtocol& operator=(const EventProtocol&) = delete;

  HttpRequest Next(absl::Time) override {
    const EventRecord& r = *record_;
    if (!r.exists) {
      return ToRequest(
          EncodeEvent(r.event, identity_.reporting_controller, identity_.host, r.first));
    }
    sent_ = r.count;
    record_->patched_at = clock_.Steady();
    return ToRequest(EncodeEventSeries(r.event, r.first, r.count, r.last));
  }

  Decision OnAnswer(const WriteAnswer& answer) override {
    const std::string what = absl::StrCat("event ", record_->event.reason, " of ",
                                          model::Key(record_->event.ns, record_->event.name));
    if (IsUnknown(answer)) unknown_ = true;
    return record_->exists ? OnPatched(answer, DecideGenerally(what, answer))
                           : OnPosted(DecideCreation(what, answer));
  }

 private:
  // One observation has one name: an event of that name is this one, of an attempt without an
  // answer.
  Decision OnPosted(Decision decision) const {
    if (absl::IsAlreadyExists(decision.status)) decision.status = absl::OkStatus();
    if (decision.status.ok()) {
      record_->exists = true;
      record_->told = 1;
    }
    return decision;
  }

  Decision OnPatched(const WriteAnswer& answer, Decision decision) const {
    if (HasCode(answer, 404) || HasCode(answer, 409)) {
      record_->exists = false;
      record_->first = record_->last;
      record_->count = 1;
      return Continue();
    }
    if (decision.status.ok()) record_->told = sent_;
    return decision;
  }

  const EventRecordPtr record_;
  const WriterIdentity identity_;
  const Clock& clock_;
  int64_t sent_ = 0;  // the count of the last PATCH
};

}  // namespace

EventSeries::Observed EventSeries::Observe(const model::EmitEvent& event, absl::Time now,
                                           absl::Duration steady) {
  // A pod is bound once; its binding may fail often.
  const bool may_repeat = event.action != model::EventAction::kBinding || event.warning;
  const uint64_t hash = may_repeat ? HashOf(event) : 0;
  if (may_repeat) {
    if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
      const Records::iterator place = found->second;
      const EventRecord& known = **place;
      if (IsSame(known.event, event) && steady - known.observed_at < kSeriesLasts) {
        records_.splice(records_.end(), records_, place);
        return Repeat(*place, now, steady);
      }
      Forget(place);
    }
  }
  auto record = std::make_shared<EventRecord>();
  record->event = event;
  record->first = record->last = now;
  record->observed_at = steady;
  if (may_repeat) {
    if (records_.size() >= max_) Forget(records_.begin());
    by_hash_[hash] = records_.insert(records_.end(), record);
  }
  return {std::move(record), /*write=*/true};
}

EventSeries::Observed EventSeries::Repeat(const EventRecordPtr& record, absl::Time now,
                                          absl::Duration steady) {
  record->last = now;
  record->observed_at = steady;
  if (!record->exists && !record->writing) {  // its POST has failed
    record->first = now;
    record->count = 1;
    return {record, /*write=*/true};
  }
  ++record->count;
  if (record->timed) return {record};
  return Look(record, steady);
}

EventSeries::Observed EventSeries::Look(const EventRecordPtr& record, absl::Duration steady) {
  record->timed = false;
  if (record->count <= std::max<int64_t>(record->told, 1)) return {record};
  if (!record->exists && !record->writing) return {record};
  const absl::Duration pause =
      record->writing ? kSeriesPause : record->patched_at + kSeriesPause - steady;
  if (pause <= absl::ZeroDuration()) return {record, /*write=*/true};
  record->timed = true;
  return {record, /*write=*/false, pause};
}

void EventSeries::Forget(Records::iterator record) {
  by_hash_.erase(HashOf((*record)->event));
  records_.erase(record);
}

std::unique_ptr<WriteProtocol> MakeEventProtocol(EventRecordPtr record,
                                                 const WriterIdentity& identity,
                                                 const Clock& clock) {
  return std::make_unique<EventProtocol>(std::move(record), identity, clock);
}

}  // namespace fairlead::kube
