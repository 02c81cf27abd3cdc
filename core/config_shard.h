// Field `shard` of FairleadConfiguration, and what follows from it. Internal to core but for
// SetShard. Thread-safety: pure functions.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/options.h"
#include "core/shard.h"

namespace fairlead::core {

absl::Status ReadShard(const simdjson::dom::element& value, const std::string& path,
                       std::optional<Shard>& shard);

// InvalidArgument for settings that a shard cannot have.
absl::Status CheckShard(const Options& options);

// Makes the options those of the shard: its objects, the names of its NodeRequests, the label of
// its nodes, and where its usage is stored. `lease_name`: of the Lease without a shard.
void SetShard(const std::optional<Shard>& shard, const std::string& lease_name, Options& options);

}  // namespace fairlead::core
