// Heaps whose keys change: what the program uses, and Boost.Heap in its place, doing the same on
// the same keys. The program also walks its orders and looks into them, which no heap can do; that
// is not measured here.
#include <boost/heap/d_ary_heap.hpp>
#include <boost/heap/fibonacci_heap.hpp>
#include <boost/heap/pairing_heap.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/reconcile/due_times.h"
#include "scheduler/engine/pending.h"
#include "tests/bench/benchmarks.h"

namespace fairlead::bench {
namespace {

namespace heap = boost::heap;

constexpr size_t kTurns = 200'000;
constexpr uint64_t kSeed = 20'261'127;

// An order by a balanced tree.
template <typename Set>
class TreeOrder {
 public:
  using Key = typename Set::value_type;
  void Add(Key key) { keys_.push_back(*set_.insert(std::move(key)).first); }
  [[nodiscard]] const Key& First() const { return *set_.begin(); }
  void Change(size_t id, Key key) {
    set_.erase(keys_[id]);
    keys_[id] = key;
    set_.insert(std::move(key));
  }

 private:
  Set set_;
  std::vector<Key> keys_;  // by id
};

// The same by a heap with handles.
template <typename Heap>
class HeapOrder {
 public:
  using Key = typename Heap::value_type;
  void Add(Key key) { handles_.push_back(heap_.push(std::move(key))); }
  [[nodiscard]] const Key& First() const { return heap_.top(); }
  void Change(size_t id, Key key) { heap_.update(handles_[id], std::move(key)); }

 private:
  Heap heap_;
  std::vector<typename Heap::handle_type> handles_;
};

template <typename Key>
using Later = heap::compare<std::greater<Key>>;
template <typename Key>
using DAry = heap::d_ary_heap<Key, heap::arity<4>, heap::mutable_<true>, Later<Key>>;
template <typename Key>
using Pairing = heap::pairing_heap<Key, Later<Key>>;
template <typename Key>
using Fibonacci = heap::fibonacci_heap<Key, Later<Key>>;

// Each turn the first goes to another place, and so does any other one. Returns what was first.
template <typename Order, typename MakeKey, typename IdOf>
uint64_t Play(Order& order, size_t count, MakeKey make_key, IdOf id_of) {
  std::mt19937_64 random(kSeed);
  uint64_t sum = 0;
  for (size_t turn = 0; turn < kTurns; ++turn) {
    const size_t first = id_of(order.First());
    sum = sum * 31 + first;
    order.Change(first, make_key(first, random()));
    const size_t other = random() % count;
    order.Change(other, make_key(other, random()));
  }
  return sum;
}

template <typename Order, typename MakeKey, typename IdOf>
uint64_t Measure(Run& run, const std::string& name, size_t count, const char* note,
                 MakeKey make_key, IdOf id_of) {
  std::vector<double> rates;
  double cpu = 0;
  uint64_t sum = 0;
  for (int i = 0; i < run.repetitions; ++i) {
    Order order;
    std::mt19937_64 random(kSeed + 1);
    for (size_t id = 0; id < count; ++id) order.Add(make_key(id, random()));
    const Stopwatch watch;
    sum = Play(order, count, make_key, id_of);
    rates.push_back(static_cast<double>(kTurns) / watch.Seconds());
    cpu = watch.CpuSeconds();
  }
  run.report.Add({name, "turns/s", Better::kHigher, rates, std::nullopt, std::nullopt, cpu, note});
  return sum;
}

template <typename Ours, typename Key, typename MakeKey, typename IdOf>
void Compare(Run& run, const std::string& what, const char* ours, size_t count, MakeKey make_key,
             IdOf id_of) {
  const std::string name = absl::StrCat("heaps/", what, "/");
  const uint64_t sum =
      Measure<TreeOrder<Ours>>(run, absl::StrCat(name, "ours"), count, ours, make_key, id_of);
  const auto rival = [&]<typename Heap>(const char* kind) {
    const uint64_t other = Measure<HeapOrder<Heap>>(run, absl::StrCat(name, kind), count,
                                                    "Boost.Heap", make_key, id_of);
    Require(other == sum, absl::StrCat(name, kind, ": another order"));
  };
  rival.template operator()<DAry<Key>>("d_ary_4");
  rival.template operator()<Pairing<Key>>("pairing");
  rival.template operator()<Fibonacci<Key>>("fibonacci");
}

using NodeKey = std::pair<int64_t, uint32_t>;  // minus the score, id

// Timers: what is due is taken, and is due again later.
template <typename Add, typename Take>
void Timers(Run& run, const std::string& name, const char* note,
            const std::function<std::pair<Add, Take>()>& make) {
  constexpr size_t kTimers = 10'000;
  std::vector<double> rates;
  double cpu = 0;
  for (int i = 0; i < run.repetitions; ++i) {
    const auto [add, take] = make();
    std::mt19937_64 random(kSeed);
    const absl::Time start = absl::UnixEpoch();
    const auto pause = [&] { return absl::Milliseconds(1 + random() % 60'000); };
    for (size_t id = 0; id < kTimers; ++id) add(start + pause(), id);
    size_t taken = 0;
    const Stopwatch watch;
    for (absl::Time now = start; taken < kTurns; now += absl::Milliseconds(10)) {
      for (const size_t id : take(now)) {
        add(now + pause(), id);
        ++taken;
      }
    }
    rates.push_back(static_cast<double>(taken) / watch.Seconds());
    cpu = watch.CpuSeconds();
  }
  run.report.Add({name, "timers/s", Better::kHigher, rates, std::nullopt, std::nullopt, cpu, note});
}

void CompareTimers(Run& run) {
  using Adding = std::function<void(absl::Time, size_t)>;
  using Taking = std::function<std::vector<size_t>(absl::Time)>;
  Timers<Adding, Taking>(run, "heaps/timers/ours", "core::DueTimes, a d_ary_heap", [] {
    auto due = std::make_shared<core::DueTimes<size_t>>();
    return std::pair<Adding, Taking>([due](absl::Time at, size_t id) { due->Add(at, id); },
                                     [due](absl::Time now) { return due->TakeDue(now); });
  });
  Timers<Adding, Taking>(run, "heaps/timers/tree", "std::map of lists", [] {
    auto due = std::make_shared<std::map<absl::Time, std::vector<size_t>>>();
    return std::pair<Adding, Taking>([due](absl::Time at, size_t id) { (*due)[at].push_back(id); },
                                     [due](absl::Time now) {
                                       std::vector<size_t> taken;
                                       while (!due->empty() && due->begin()->first <= now) {
                                         const std::vector<size_t>& first = due->begin()->second;
                                         taken.insert(taken.end(), first.begin(), first.end());
                                         due->erase(due->begin());
                                       }
                                       return taken;
                                     });
  });
}

}  // namespace

void Heaps(Run& run) {
  constexpr size_t kWorkloads = 10'000, kNodes = 5000;
  const auto service_key = [](size_t id, uint64_t random) {
    engine::QueueOrderKey key;
    key.minus_priority = -static_cast<int64_t>(random % 3) * 50;
    key.turn_ns = static_cast<int64_t>(random >> 8);
    key.uid = absl::StrFormat("%08x-0000-4000-8000-%012x", id, id);
    key.workload = static_cast<state::WorkloadId>(id);
    return key;
  };
  Compare<std::set<engine::QueueOrderKey>, engine::QueueOrderKey>(
      run, "service", "std::set, as of the workloads of a queue", kWorkloads, service_key,
      [](const engine::QueueOrderKey& key) { return static_cast<size_t>(key.workload); });
  const auto node_key = [](size_t id, uint64_t random) {
    return NodeKey{-static_cast<int64_t>(random % 1000), static_cast<uint32_t>(id)};
  };
  Compare<absl::btree_set<NodeKey>, NodeKey>(
      run, "nodes", "absl::btree_set, as of the nodes of a class", kNodes, node_key,
      [](const NodeKey& key) { return static_cast<size_t>(key.second); });
  CompareTimers(run);
}

}  // namespace fairlead::bench
