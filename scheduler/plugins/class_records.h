// What a plugin has found out about a class of pods, with the counters that it reads; kept while
// the class is asked about.
//
// The counters are those that the framework attached. A plugin that is asked about another state,
// or was attached to none, counts that state by itself, again whenever it has changed: right, but
// O(pods) for each change.
//
// Thread-safety: the state's. Complexity: O(1) for a class that is known. The least recently used
// records are dropped beyond kMaxRecords.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

// `Record` is made from (DomainCounters&, const state::PodClass&), and may keep sets and views of
// the counters.
template <typename Record>
class ClassRecords {
 public:
  explicit ClassRecords(size_t max_records) : max_records_(max_records) {}

  void Attach(framework::DomainCounters* counters) {
    Clear();
    own_ = nullptr;
    attached_ = counters;
  }

  // Valid until the next call; `from` is what it counts with.
  template <typename Make>
  Record& Get(const framework::Context& context, framework::DomainCounters*& from, Make make) {
    framework::DomainCounters& counters = CountersOf(context.state);
    from = &counters;
    const model::PodSpec* spec = context.pod_class.spec.get();
    if (!records_.empty() && records_.front().spec.get() == spec) return *records_.front().record;
    const auto found = by_spec_.find(spec);
    if (found != by_spec_.end()) {
      records_.splice(records_.begin(), records_, found->second);
      return *records_.front().record;
    }
    records_.push_front({context.pod_class.spec, make(counters, context.pod_class)});
    by_spec_.emplace(spec, records_.begin());
    if (records_.size() > max_records_) {
      by_spec_.erase(records_.back().spec.get());
      records_.pop_back();
    }
    return *records_.front().record;
  }

 private:
  struct Entry {
    std::shared_ptr<const model::PodSpec> spec;  // kept alive: its address is the key
    std::unique_ptr<Record> record;
  };

  void Clear() {
    by_spec_.clear();
    records_.clear();
  }

  framework::DomainCounters& CountersOf(const state::ClusterState& state) {
    const bool attached = attached_ != nullptr && &attached_->state() == &state;
    if (attached && own_ == nullptr) return *attached_;
    if (attached || own_ == nullptr || &own_->state() != &state || version_ != state.version()) {
      Clear();
      own_ = attached ? nullptr : std::make_unique<framework::DomainCounters>(state);
      version_ = state.version();
    }
    return attached ? *attached_ : *own_;
  }

  const size_t max_records_;
  framework::DomainCounters* attached_ = nullptr;
  std::unique_ptr<framework::DomainCounters> own_;  // a snapshot
  uint64_t version_ = 0;                            // of the state that it was taken of
  std::list<Entry> records_;                        // most recently used first
  absl::flat_hash_map<const model::PodSpec*, typename std::list<Entry>::iterator> by_spec_;
};

}  // namespace fairlead::plugins
