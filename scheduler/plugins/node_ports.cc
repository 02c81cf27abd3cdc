#include "scheduler/plugins/node_ports.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

bool EveryAddress(const model::HostPort& port) {
  return port.host_ip.empty() || port.host_ip == "0.0.0.0";
}

absl::string_view Protocol(const model::HostPort& port) {
  return port.protocol.empty() ? absl::string_view("TCP") : port.protocol;
}

bool Collide(const model::HostPort& a, const model::HostPort& b) {
  return a.port == b.port && Protocol(a) == Protocol(b) &&
         (EveryAddress(a) || EveryAddress(b) || a.host_ip == b.host_ip);
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodePorts::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodePorts>();
}

bool NodePorts::Filter(const framework::Context& context, const state::NodeInfo& node,
                       framework::Status* why) const {
  for (const state::PodId id : node.pods) {
    const state::PodRecord& pod = context.state.pod(id);
    if (!InTheWay(pod, context.capacity)) continue;
    for (const model::HostPort& taken : context.state.pod_class(pod.pod_class).spec->host_ports) {
      for (const model::HostPort& wanted : context.pod_class.spec->host_ports) {
        if (Collide(taken, wanted)) {
          return Refuse(why, framework::Code::kUnschedulable,
                        "node(s) didn't have free ports for the requested pod ports");
        }
      }
    }
  }
  return true;
}

}  // namespace fairlead::plugins
