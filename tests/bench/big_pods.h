// Pods and nodes as a real API server stores them, in its wire format: managed fields, environment,
// projected volumes, conditions, labels of a Job. About 2.3 KiB a pod.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace fairlead::bench {

// The messages of `count` pods, numbers from `first`, as the fields of one PodList: the
// concatenation of several results is one list.
std::string PodItems(int64_t first, int64_t count);
std::string NodeItems(int64_t first, int64_t count);
// The input of DecodeList: the list in the API server's envelope.
std::string PodListBody(const std::string& items);
std::string NodeListBody(const std::string& items);

}  // namespace fairlead::bench
