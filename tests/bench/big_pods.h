// Pods and nodes as a real API server stores them, in its wire format: managed fields, environment,
// projected volumes, conditions, labels of a Job. About 2.3 KiB a pod. And PodGroups, one per pod,
// in JSON, the only format of custom kinds. About 1 KiB a group.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace fairlead::bench {

// The messages of `count` pods, numbers from `first`, as the fields of one PodList: the
// concatenation of several results is one list.
// With `groups` each names a PodGroup of its own.
std::string PodItems(int64_t first, int64_t count, bool groups = false);
std::string NodeItems(int64_t first, int64_t count);
// The input of DecodeList: the list in the API server's envelope.
std::string PodListBody(const std::string& items);
std::string NodeListBody(const std::string& items);
// The list of the PodGroups of those pods.
std::string PodGroupListBody(int64_t first, int64_t count);

}  // namespace fairlead::bench
