#include "cmd/simtest/shard_checks.h"

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::Json;
using sim::world::TextAt;

void ShardChecks::OnCommit(const ApiServer::Commit& commit, bool of_fairlead, absl::Time known) {
  const Json& object = commit.before != nullptr ? *commit.before : *commit.after;
  const std::string uid = TextAt(object, {"metadata", "uid"});
  if (of_fairlead) {
    const auto since = others_since_.find(uid);
    const bool is_known = since != others_since_.end() && since->second < known;
    const bool makes = commit.before == nullptr && sim::world::IsOfOtherShard(object);
    if (is_known || makes) {
      fail_("shard",
            absl::StrCat(std::string(commit.actor),
                         commit.before == nullptr  ? " creates "
                         : commit.after == nullptr ? " removes "
                                                   : " changes ",
                         TextAt(object, {"kind"}), " ", TextAt(object, {"metadata", "name"}),
                         ", which is of another shard"));
    }
  }
  if (commit.after != nullptr && sim::world::IsOfOtherShard(*commit.after)) {
    others_since_.try_emplace(uid, time_->now());
  } else {
    others_since_.erase(uid);
  }
}

}  // namespace fairlead::simtest
