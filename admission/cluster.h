// What the rules of admission know besides the request: the program's settings, and the objects
// that it has read. Thread-safety: plain values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/model/workload_objects.h"

namespace fairlead::admission {

struct Policy {
  // As state::StateOptions has them; `guests` are not in `scheduler_names`.
  std::vector<std::string> scheduler_names;
  std::vector<std::string> guests;
  std::string default_queue;
  bool builtin_default_queue = true;
  // Who submits must be allowed to `use` the queue, of every queue; false: of restricted ones.
  bool queue_authorization = false;
  // Whether nothing is admitted that could not be authorized; false: all of it.
  bool authorization_fails_closed = false;
};

struct Cluster {
  std::map<std::string, std::shared_ptr<const model::Queue>> queues;  // by name
  std::map<std::string, std::string> default_queues;                  // by namespace
};

}  // namespace fairlead::admission
