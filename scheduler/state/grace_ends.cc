#include "scheduler/state/grace_ends.h"

namespace fairlead::state {

void GraceEnds::Set(PodId pod, absl::Time end) {
  const auto [known, added] = ends_.try_emplace(pod, end);
  if (!added) {
    in_order_.erase({known->second, pod});
    known->second = end;
  }
  in_order_.insert({end, pod});
}

void GraceEnds::Erase(PodId pod) {
  const auto known = ends_.find(pod);
  if (known == ends_.end()) return;
  in_order_.erase({known->second, pod});
  ends_.erase(known);
}

absl::Time GraceEnds::First() const {
  return in_order_.empty() ? absl::InfiniteFuture() : in_order_.begin()->first;
}

std::vector<PodId> GraceEnds::TakeUntil(absl::Time time) {
  std::vector<PodId> pods;
  while (!in_order_.empty() && in_order_.begin()->first <= time) {
    pods.push_back(in_order_.begin()->second);
    ends_.erase(pods.back());
    in_order_.erase(in_order_.begin());
  }
  return pods;
}

}  // namespace fairlead::state
