// Which resource decides where amounts of several are compared: how large a pod is, which one of
// several that are exceeded is told first. Devices are what nodes run out of first.
#pragma once

#include <array>

#include "scheduler/model/resources.h"

namespace fairlead::model {

// The resources that queues divide, scarcest first.
inline constexpr std::array<ResourceIndex, 3> kScarcestFirst = {kGpu, kCpu, kMemory};
inline constexpr ResourceIndex kScarcest = kScarcestFirst.front();

// True if `a` is more than `b` of the scarcest resource of which they differ.
inline bool IsLarger(const Resources& a, const Resources& b) {
  for (const ResourceIndex resource : kScarcestFirst) {
    if (a[resource] != b[resource]) return a[resource] > b[resource];
  }
  return false;
}

}  // namespace fairlead::model
