// Creation, change and deletion of objects, for clients and actors alike: the one way into the
// store. Preconditions, strategies, finalizers and grace periods are applied here.
//
// Ownership: borrows the store and time. Thread-safety: none, one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "sim/event_queue.h"
#include "sim/world/api_error.h"
#include "sim/world/api_store.h"
#include "sim/world/api_strategy.h"

namespace fairlead::sim::world {

struct ApiResult {
  ApiError error;
  ObjectPtr object;  // as it is now; of a deletion: as it was last seen
  bool created = false;
  bool removed = false;  // of a deletion: gone, not only on its way
};

struct DeleteOptions {
  std::string uid, resource_version;     // preconditions; empty: none
  std::optional<int64_t> grace_seconds;  // else the object's own
};
DeleteOptions ReadDeleteOptions(const Json& body);

class ApiWriter {
 public:
  ApiWriter(const EventQueue* time, ApiStore* store) : time_(time), store_(store) {}

  ApiResult Create(const ResourceRow& row, Json object, WriteScope scope, absl::string_view actor);
  // `change` alters a copy; what it refuses changes nothing. A copy that is like the original makes
  // no version.
  using ChangeFunction = std::function<ApiError(Json&)>;
  ApiResult Update(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                   WriteScope scope, const ChangeFunction& change, absl::string_view actor);
  ApiResult Delete(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                   const DeleteOptions& options, absl::string_view actor);
  // Gone at once, finalizers or not.
  ApiResult RemoveNow(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                      absl::string_view actor);

  [[nodiscard]] absl::Time now() const { return time_->now(); }
  [[nodiscard]] const ApiStore& store() const { return *store_; }

 private:
  std::string NextUid();
  void DropOldEvents();

  const EventQueue* time_;
  ApiStore* store_;
  uint64_t last_uid_ = 0;
  std::deque<std::pair<absl::Time, std::string>> events_;  // by age
};

}  // namespace fairlead::sim::world
