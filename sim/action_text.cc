#include "sim/action_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace fairlead::sim {
namespace {

std::string Text(const model::StringMap& map) {
  return absl::StrJoin(map, ",", absl::PairFormatter("="));
}
std::string Text(const model::ResourceList& list) {
  return absl::StrJoin(list, ",", absl::PairFormatter("="));
}
std::string Text(const std::optional<absl::Time>& time) {
  return time.has_value() ? absl::FormatTime(*time, absl::UTCTimeZone()) : "-";
}
std::string Text(const model::NodeRequest& r) {
  return absl::StrCat(r.meta.name, " uid=", r.meta.uid, " pool=", r.pool, " provider=", r.provider,
                      " type=", r.instance_type, " zone=", r.zone, " spot=", r.spot ? 1 : 0,
                      " reservation=", r.reservation, " price=", r.price_micro_usd_per_hour,
                      " queue=", r.queue, " for=", absl::StrJoin(r.reason_workloads, ","),
                      " replaces=",
                      absl::StrJoin(r.replaces, ",",
                                    [](std::string* out, const model::ReplacedRequest& one) {
                                      absl::StrAppend(out, one.name);
                                    })) +
         absl::StrCat(" phase=", static_cast<int>(r.phase), " node=", r.node_name,
                      " message=", r.message, " failure=", r.failure,
                      " launched=", Text(r.launched_at), " registered=", Text(r.registered_at),
                      " ready=", Text(r.ready_at), " unneeded=", Text(r.unneeded_since),
                      " failed=", Text(r.failed_at));
}
std::string Text(const model::Taint& taint) {
  return absl::StrCat(taint.key, "=", taint.value, ":", static_cast<int>(taint.effect));
}

struct Writer {
  std::string operator()(const model::BindPod& a) const {
    return absl::StrCat("bind ", a.ns, "/", a.name, " ", a.uid, " ", a.node, " ",
                        Text(a.annotations), a.labels.empty() ? "" : " ", Text(a.labels));
  }
  std::string operator()(const model::EvictPod& a) const {
    return absl::StrCat("evict ", a.ns, "/", a.name, " ", a.uid, " ", a.reason, " ", a.message);
  }
  std::string operator()(const model::SetPodUnschedulable& a) const {
    return absl::StrCat("verdict ", a.ns, "/", a.name, " ", a.uid, " ", a.reason, " ", a.message,
                        " ", a.verdict_json, " ", a.nominated_node, " ", a.observed_generation);
  }
  std::string operator()(const model::NominateNode& a) const {
    return absl::StrCat("nominate ", a.ns, "/", a.name, " ", a.uid, " ", a.node);
  }
  std::string operator()(const model::CallPlugin& a) const {
    return absl::StrCat("call ", a.call->plugin, " ", static_cast<int>(a.call->point), " ",
                        a.call->number, " ", a.call->ns, "/", a.call->name, " ", a.call->uid, " ",
                        a.call->node, " ", Text(a.call->labels),
                        a.call->question == nullptr ? "" : " nodes");
  }
  std::string operator()(const model::SetPodGroupSchedulability& a) const {
    return absl::StrCat("group-verdict ", a.ns, "/", a.name, " ", a.uid, " ", a.reason, " ",
                        a.message, " ", a.schedulability_json);
  }
  std::string operator()(const model::SetPodGroupScheduled& a) const {
    return absl::StrCat("pod group ", a.ns, "/", a.name, " ", a.uid,
                        " scheduled=", a.scheduled ? "true" : "false", " ", a.message);
  }
  std::string operator()(const model::SetKaiStatus& a) const {
    return absl::StrCat("counts of ", model::KindTitle(a.kind), " ", model::Key(a.ns, a.name), " ",
                        a.uid, " allocated=", Text(a.counts.allocated),
                        " nonPreemptible=", Text(a.counts.allocated_non_preemptible),
                        " requested=", Text(a.counts.requested),
                        " children=", absl::StrJoin(a.child_queues, ","));
  }
  std::string operator()(const model::SetConditions& a) const {
    std::string text = absl::StrCat("conditions of ", model::KindTitle(a.kind), " ",
                                    model::Key(a.ns, a.name), " ", a.uid);
    for (const model::Condition& c : a.conditions) {
      absl::StrAppend(&text, " ", c.type, "=", c.status, " ", c.reason, " ", c.message);
    }
    if (a.buffer.has_value()) {
      absl::StrAppend(&text, " of ", a.buffer->replicas, " ", a.buffer->pod_template);
    }
    return text;
  }
  std::string operator()(const model::SetPodGroupAnnotations& a) const {
    return absl::StrCat("group-annotations ", a.ns, "/", a.name, " ", a.uid, " ",
                        Text(a.annotations));
  }
  std::string operator()(const model::CreateNodeRequest& a) const {
    return absl::StrCat("request ", Text(a.request));
  }
  std::string operator()(const model::UpdateNodeRequestStatus& a) const {
    return absl::StrCat("request-status ", Text(a.request));
  }
  std::string operator()(const model::DeleteNodeRequest& a) const {
    return absl::StrCat("delete-request ", a.name, " ", a.uid);
  }
  std::string operator()(const model::SetNodeTaint& a) const {
    return absl::StrCat("taint ", a.node, " ", a.uid, " ", Text(a.taint),
                        a.present ? " on" : " off");
  }
  std::string operator()(const model::StoreUsage& a) const {
    return absl::StrCat("usage ", a.ns, "/", a.name, " ", a.text);
  }
  std::string operator()(const model::LaunchNode& a) const {
    return absl::StrCat("launch ", Text(a.request), " as ", a.node->meta.name, " ",
                        Text(a.node->meta.labels), " ",
                        absl::StrJoin(a.node->allocatable, ",", absl::PairFormatter("=")));
  }
  std::string operator()(const model::TerminateNode& a) const {
    return absl::StrCat("terminate ", a.request_name, " ", a.provider, " ", a.node_name, " ",
                        a.provider_id);
  }
  std::string operator()(const model::CreateGpuReservation& a) const {
    return absl::StrCat("reserve ", a.ns, "/", a.name, " ", a.node, " ", a.group);
  }
  std::string operator()(const model::DeletePod& a) const {
    return absl::StrCat("delete-pod ", a.ns, "/", a.name, " ", a.uid);
  }
  std::string operator()(const model::ApplyConfigMap& a) const {
    return absl::StrCat("config-map ", a.ns, "/", a.name, " ", a.owner_uid, " ", Text(a.data));
  }
  std::string operator()(const model::ReserveClaim& a) const {
    std::string text = absl::StrCat("reserve-claim ", a.ns, "/", a.name, " ", a.uid, " ",
                                    a.allocate ? "allocate" : "has", " ", a.allocation.node);
    for (const model::AllocatedDevice& device : a.allocation.devices) {
      absl::StrAppend(&text, " ", device.driver, "/", device.pool, "/", device.device);
    }
    for (const model::ReserveClaim::Consumer& pod : a.pods) {
      absl::StrAppend(&text, " for ", pod.name, " ", pod.uid);
    }
    return text;
  }
  std::string operator()(const model::DeallocateClaim& a) const {
    return absl::StrCat("deallocate-claim ", a.ns, "/", a.name, " ", a.uid);
  }
  std::string operator()(const model::SetExtendedClaim& a) const {
    std::string text = absl::StrCat("extended-claim ", a.ns, "/", a.name, " ", a.uid, " ", a.node,
                                    " ", a.claim.empty() ? "none" : a.claim);
    for (const model::SetExtendedClaim::Resource& resource : a.resources) {
      absl::StrAppend(&text, " ", resource.name, " by ", resource.device_class);
    }
    return text;
  }
  std::string operator()(const model::BindVolume& a) const {
    return absl::StrCat("bind-volume ", a.volume, " ", a.uid, " to ", a.claim_ns, "/", a.claim_name,
                        " ", a.claim_uid);
  }
  std::string operator()(const model::SelectVolumeNode& a) const {
    return absl::StrCat("select-volume-node ", a.ns, "/", a.name, " ", a.uid, " ", a.node);
  }
  std::string operator()(const model::ReadObject& a) const {
    return absl::StrCat("read ", a.api_version, " ", a.kind, " ", a.ns, "/", a.name);
  }
  std::string operator()(const model::SetSuspended& a) const {
    const model::Suspendable& object = a.object;
    std::string pods;
    for (const model::Suspendable::Pod& pod : object.pods) {
      absl::StrAppend(&pods, " ", pod.name, " ", pod.uid);
    }
    return absl::StrCat(a.suspended ? "suspend " : "release ", object.api_version, " ", object.kind,
                        " ", object.ns, "/", object.name, " ", object.uid, " ",
                        object.resource_version, " ", object.path, " ", object.by, " ",
                        object.reason, pods);
  }
  std::string operator()(const model::ListSuspended& a) const {
    return absl::StrCat("list-suspended ", a.group, " ", a.kind);
  }
  std::string operator()(const model::WritePodGroup& a) const {
    const model::PodGroup& group = a.group;
    std::string text =
        absl::StrCat("write-group ", group.meta.ns, "/", group.meta.name, " ", group.meta.uid, " ",
                     group.min_member.value_or(-1), " ", group.min_sub_group.value_or(-1));
    for (const model::SubGroup& sub : group.sub_groups) {
      absl::StrAppend(&text, " ", sub.parent, "/", sub.name, "=", sub.min_member.value_or(-1), ",",
                      sub.min_sub_group.value_or(-1));
    }
    return text;
  }
  std::string operator()(const model::SetPodGroup& a) const {
    return absl::StrCat("group-of-pod ", a.ns, "/", a.name, " ", a.uid, " ", a.group, " ",
                        a.sub_group);
  }
  std::string operator()(const model::AskExtenders& a) const {
    std::string text =
        absl::StrCat("ask-extenders ", a.ns, "/", a.name, " ", a.uid, " ",
                     absl::StrJoin(a.extenders, ","), " ", absl::StrJoin(a.nodes, ","));
    for (const model::AskExtenders::NodeVictims& victims : a.victims) {
      absl::StrAppend(&text, " evict");
      for (const auto& pod : victims.pods) absl::StrAppend(&text, " ", pod.ns, "/", pod.name);
    }
    return text;
  }
  std::string operator()(const model::EmitEvent& a) const {
    return absl::StrCat("event ", model::KindName(a.about), " ", a.ns, "/", a.name, " ", a.uid, " ",
                        a.warning ? "warning " : "", a.reason, " ", a.note);
  }
};

}  // namespace

std::string ActionText(const model::Action& action) {
  return absl::StrCat(action.id, " ", std::visit(Writer{}, action.what));
}

}  // namespace fairlead::sim
