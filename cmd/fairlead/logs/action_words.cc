#include "cmd/fairlead/logs/action_words.h"

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {

const char* ActionName(const model::Action& action) {
  // In the order of the variant.
  static constexpr const char* kNames[] = {"bind",
                                           "evict",
                                           "set_pod_verdict",
                                           "set_pod_group_verdict",
                                           "set_pod_group_annotations",
                                           "create_node_request",
                                           "update_node_request_status",
                                           "delete_node_request",
                                           "set_node_taint",
                                           "launch_node",
                                           "terminate_node",
                                           "emit_event",
                                           "create_gpu_reservation",
                                           "delete_pod",
                                           "apply_config_map",
                                           "store_usage",
                                           "reserve_claim",
                                           "deallocate_claim",
                                           "bind_volume",
                                           "select_volume_node",
                                           "ask_extenders",
                                           "nominate_node",
                                           "call_plugin",
                                           "set_pod_group_scheduled",
                                           "set_extended_claim",
                                           "set_node_pool_ready",
                                           "read_object",
                                           "write_pod_group",
                                           "set_pod_group",
                                           "set_kai_status",
                                           "set_suspended",
                                           "list_suspended"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(model::Action::what)>);
  return kNames[action.what.index()];
}

std::string Describe(const model::Action& action) {
  return std::visit(
      []<typename T>(const T& what) -> std::string {
        if constexpr (std::is_same_v<T, model::BindPod>) {
          return absl::StrCat("bind ", what.ns, "/", what.name, " to ", what.node);
        } else if constexpr (std::is_same_v<T, model::EvictPod>) {
          return absl::StrCat("evict ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodUnschedulable>) {
          return absl::StrCat("verdict of pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::CallPlugin>) {
          const model::RemoteCall& call = *what.call;
          if (call.question != nullptr) return absl::StrCat("call ", call.plugin, " about nodes");
          return absl::StrCat("call ", call.plugin, " about ", call.ns, "/", call.name);
        } else if constexpr (std::is_same_v<T, model::NominateNode>) {
          return absl::StrCat("nominate ", what.node, " for ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodGroupSchedulability>) {
          return absl::StrCat("verdict of pod group ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodGroupAnnotations>) {
          return absl::StrCat("annotations of pod group ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodGroupScheduled>) {
          return absl::StrCat("condition of pod group ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetConditions>) {
          return absl::StrCat("conditions of ", model::KindTitle(what.kind), " ",
                              model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::SetKaiStatus>) {
          return absl::StrCat("counts of ", model::KindTitle(what.kind), " ",
                              model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::CreateNodeRequest>) {
          return absl::StrCat("create node request ", what.request->meta.name);
        } else if constexpr (std::is_same_v<T, model::UpdateNodeRequestStatus>) {
          return absl::StrCat("status of node request ", what.request->meta.name);
        } else if constexpr (std::is_same_v<T, model::DeleteNodeRequest>) {
          return absl::StrCat("delete node request ", what.name);
        } else if constexpr (std::is_same_v<T, model::SetNodeTaint>) {
          return absl::StrCat(what.present ? "taint node " : "untaint node ", what.node);
        } else if constexpr (std::is_same_v<T, model::LaunchNode>) {
          return absl::StrCat("launch ", what.request->meta.name, " (", what.request->instance_type,
                              ")");
        } else if constexpr (std::is_same_v<T, model::TerminateNode>) {
          return absl::StrCat("terminate ", what.request_name);
        } else if constexpr (std::is_same_v<T, model::CreateGpuReservation>) {
          return absl::StrCat("reserve a GPU of ", what.node, " by pod ", what.name);
        } else if constexpr (std::is_same_v<T, model::DeletePod>) {
          return absl::StrCat("delete pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::ApplyConfigMap>) {
          return absl::StrCat("config map ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::ReserveClaim>) {
          return absl::StrCat(what.allocate ? "allocate claim " : "reserve claim ", what.ns, "/",
                              what.name);
        } else if constexpr (std::is_same_v<T, model::DeallocateClaim>) {
          return absl::StrCat("deallocate claim ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetExtendedClaim>) {
          return absl::StrCat(what.claim.empty() ? "no claim" : "claim",
                              " for the extended resources of pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::BindVolume>) {
          return absl::StrCat("bind volume ", what.volume, " to claim ", what.claim_ns, "/",
                              what.claim_name);
        } else if constexpr (std::is_same_v<T, model::SelectVolumeNode>) {
          return absl::StrCat("select node ", what.node, " for volume claim ", what.ns, "/",
                              what.name);
        } else if constexpr (std::is_same_v<T, model::AskExtenders>) {
          return absl::StrCat("ask extenders about ", what.victims.empty() ? "" : "evictions on ",
                              what.nodes.size(), " nodes for ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::ReadObject>) {
          return absl::StrCat("read ", what.kind, " ", model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::WritePodGroup>) {
          return absl::StrCat(what.group->meta.uid.empty() ? "create" : "change", " pod group ",
                              model::Key(what.group->meta));
        } else if constexpr (std::is_same_v<T, model::SetPodGroup>) {
          return absl::StrCat("pod group of pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetSuspended>) {
          return absl::StrCat(what.suspended ? "suspend " : "release ", what.object->kind, " ",
                              model::Key(what.object->ns, what.object->name));
        } else if constexpr (std::is_same_v<T, model::ListSuspended>) {
          return absl::StrCat("list suspended objects of kind ", what.kind);
        } else if constexpr (std::is_same_v<T, model::StoreUsage>) {
          return absl::StrCat("store usage in config map ", what.ns, "/", what.name);
        } else {
          return absl::StrCat("event about ", what.name);
        }
      },
      action.what);
}

}  // namespace fairlead::cmd
