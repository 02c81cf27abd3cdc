// The NodeRequests, as this process knows them: what it wrote is true here at once, before the API
// server's echo, so that nothing is bought twice in between (invariant I3).
//
// We are the only writer of their status (the lease fences it), so for a request that is known the
// API's copy only says that it exists; its status is taken over only for one that is new here, which is
// how a restart rebuilds everything (I5).
//
// Thread-safety: the owner's thread.
#pragma once

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

  // Written by us, not yet confirmed.
  void Created(const model::NodeRequest& request);
  void StatusWritten(const model::NodeRequest& request);
  // The creation was refused for good, or we deleted it.
  void Forget(const std::string& name);

  [[nodiscard]] const model::NodeRequest* Find(const std::string& name) const;
  [[nodiscard]] std::vector<const model::NodeRequest*> All() const;  // by name
  // Its node is promised to pods: ordered, or registered and not being removed.
  [[nodiscard]] static bool Promises(const model::NodeRequest& request);

 private:
  std::map<std::string, model::NodeRequest> requests_;
};

}  // namespace fairlead::core
