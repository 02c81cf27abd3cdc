// The NodeRequests, as this process knows them: what it wrote is true here at once, before the API
// server's echo, so that nothing is bought twice in between (invariant I3).
//
// We are the only writer of their status (the lease fences it), so for a request that is known the
// API's copy only says that it exists; its status is taken over only for one that is new here,
// which is how a restart rebuilds everything (I5).
//
// A request is *seen* once the watch has shown it. Before that its node is promised to pods, and
// that is all: no machine is launched for it and nobody is told that it costs money.
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/model/workload_objects.h"

namespace fairlead::core {

class RequestBook {
 public:
  // From the watch. True if something that decisions read changed.
  bool Upsert(const model::NodeRequest& request);
  // From the watch; a uid that is not the known one is ignored.
  bool Remove(const std::string& name, const std::string& uid);

  // Asked to be written.
  void Created(const model::NodeRequest& request);
  void StatusWritten(const model::NodeRequest& request);
  // The creation was refused for good, or given up.
  void Forget(const std::string& name);

  [[nodiscard]] const model::NodeRequest* Find(const std::string& name) const;
  [[nodiscard]] bool Seen(const std::string& name) const;
  [[nodiscard]] std::vector<const model::NodeRequest*> AllSeen() const;  // by name
  // Equal values mean that nothing changed in between.
  [[nodiscard]] uint64_t version() const { return version_; }
  // Its node is promised to pods: ordered, or registered and not being removed.
  [[nodiscard]] static bool Promises(const model::NodeRequest& request);

 private:
  struct Entry {
    model::NodeRequest request;
    bool seen = false;
  };
  std::map<std::string, Entry> requests_;
  uint64_t version_ = 1;
};

}  // namespace fairlead::core
