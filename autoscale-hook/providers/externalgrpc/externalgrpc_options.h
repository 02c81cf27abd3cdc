// The provider externalgrpc: groups/ over a server that speaks cluster-autoscaler's protocol for
// external cloud providers (docs/providers/externalgrpc.md). external-grpc/client.h is its port.
//
// Thread-safety: pure functions.
#pragma once

#include "autoscale-hook/providers/groups/groups_provider.h"

namespace fairlead::hook {

inline constexpr char kExternalGrpcName[] = "externalgrpc";

// The defaults, with the words of this provider.
inline GroupsOptions ExternalGrpcOptions() {
  GroupsOptions options;
  options.words = {.provider = kExternalGrpcName,
                   .source = "the server",
                   .no_template =
                       "the server has none, so the group is not offered; serve "
                       "NodeGroupTemplateNodeInfo",
                   .no_price = "the server tells none",
                   .give_price = "add the type with its price to the catalogue",
                   .restore = "add it to the server again"};
  return options;
}

}  // namespace fairlead::hook
