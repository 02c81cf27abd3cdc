#include "core/capacity_objects.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/provisioning_group.h"

namespace fairlead::core {
namespace {

constexpr int64_t kMostPods = 10'000;  // of one object
constexpr absl::Duration kDefaultValidity = absl::Hours(7 * 24);

constexpr char kConsumes[] = "autoscaling.x-k8s.io/consume-provisioning-request";
// As older versions of cluster-autoscaler have it.
constexpr char kConsumesOld[] = "cluster-autoscaler.kubernetes.io/consume-provisioning-request";

// Types of conditions, and reasons of ProvisioningRequests.
constexpr char kReady[] = "ReadyForProvisioning";
constexpr char kProvisioning[] = "Provisioning";
constexpr char kAccepted[] = "Accepted";
constexpr char kProvisioned[] = "Provisioned";
constexpr char kFailed[] = "Failed";
constexpr char kBookingExpired[] = "BookingExpired";
constexpr char kRevoked[] = "CapacityRevoked";
constexpr char kNotFound[] = "CapacityIsNotFound";

constexpr char kOnTheirWay[] = "nodes are on their way";
constexpr char kRoom[] = "there is room for all of its pods";

bool HasTrue(const std::vector<model::Condition>& conditions, absl::string_view type) {
  const auto found = model::FindCondition(conditions, type);
  return found != conditions.end() && found->IsTrue();
}

bool IsOurs(const model::CapacityBuffer& buffer) {
  return buffer.strategy == model::kActiveCapacity && !buffer.meta.deletion.has_value();
}
bool IsOurs(const model::ProvisioningRequest& request) {
  const bool known = request.class_name == model::kCheckCapacityClass ||
                     request.class_name == model::kAtomicScaleUpClass;
  // What our own provider asks of another autoscaler is not answered from our plan.
  return known && !request.meta.deletion.has_value() && !model::IsMadeByProvider(request.meta);
}

std::string WhyNoRoom(const CapacityAnswer& answer) {
  constexpr char kNoRoom[] = "there is no room for all of its pods";
  return answer.details.empty() ? kNoRoom : absl::StrCat(kNoRoom, ": ", answer.details);
}

absl::StatusOr<int64_t> ReplicasOf(const model::CapacityBuffer& buffer,
                                   const model::PodSpec& spec) {
  std::optional<int64_t> count = buffer.by_scalable ? buffer.resolved_replicas : buffer.replicas;
  for (const auto& [name, limit] : buffer.limits) {
    const int64_t each = name == model::kPodsName ? 1 : model::Get(spec.requests, name);
    if (each <= 0) continue;
    count = std::min(count.value_or(limit / each), limit / each);
  }
  if (!count.has_value()) {
    return absl::InvalidArgumentError("spec.limits: the template requests none of these resources");
  }
  if (*count > kMostPods) {
    return absl::InvalidArgumentError(absl::StrCat("spec: asks for ", *count, " pods, at most ",
                                                   kMostPods, " are kept room for"));
  }
  return *count;
}

}  // namespace

std::string CapacityAsk::Name() const { return absl::StrCat(model::KindTitle(kind), " ", key); }

bool CapacityObjects::Status::SaysTheSame(const Status& other) const {
  return buffer.value_or(model::SetConditions::Buffer()) ==
             other.buffer.value_or(model::SetConditions::Buffer()) &&
         SayTheSame(conditions, other.conditions);
}

// ---- events

bool CapacityObjects::Upsert(const model::PodTemplate& pod_template) {
  Template& known = templates_[model::Key(pod_template.meta)];
  known.object = pod_template;
  return !empty();
}

bool CapacityObjects::Upsert(const model::CapacityBuffer& buffer) {
  auto& row = buffers_[model::Key(buffer.meta)];
  const model::CapacityBuffer former = std::exchange(row.object, buffer);
  if (former.meta.uid != buffer.meta.uid) {
    row = {};
    row.object = buffer;
  }
  Status shown{buffer.conditions, std::nullopt};
  if (!buffer.by_scalable) {
    shown.buffer = {buffer.resolved_template, buffer.resolved_generation,
                    buffer.resolved_replicas.value_or(0)};
  }
  row.write.Show(std::move(shown));
  write_at_ = absl::InfinitePast();
  const auto wants = [](const model::CapacityBuffer& b) {
    return std::tuple(b.meta.uid, b.meta.generation, b.meta.deletion.has_value(), b.invalid,
                      b.by_scalable ? b.resolved_template : "",
                      b.by_scalable ? b.resolved_replicas : std::nullopt);
  };
  return wants(former) != wants(buffer);
}

bool CapacityObjects::Upsert(const model::ProvisioningRequest& request) {
  auto& row = requests_[model::Key(request.meta)];
  const bool same = row.object.meta.uid == request.meta.uid &&
                    row.object.meta.deletion.has_value() == request.meta.deletion.has_value();
  if (row.object.meta.uid != request.meta.uid) row = {};
  row.object = request;
  row.write.Show({request.conditions, std::nullopt});
  write_at_ = absl::InfinitePast();
  if (HasTrue(request.conditions, kProvisioned) && !row.provisioned_at.has_value()) {
    row.provisioned_at = model::FindCondition(request.conditions, kProvisioned)->since;
  }
  const bool ended = HasTrue(request.conditions, kFailed) ||
                     HasTrue(request.conditions, kRevoked) ||
                     HasTrue(request.conditions, kBookingExpired);
  const bool ends = ended && !row.ended;
  row.ended = row.ended || ended;
  return !same || ends;
}

bool CapacityObjects::Remove(model::Kind kind, const std::string& ns, const std::string& name,
                             const std::string& uid) {
  const auto remove = [&](auto& rows) {
    const auto found = rows.find(model::Key(ns, name));
    if (found == rows.end() || (!uid.empty() && found->second.object.meta.uid != uid)) return false;
    rows.erase(found);
    return true;
  };
  if (kind == model::Kind::kCapacityBuffer) return remove(buffers_);
  if (kind == model::Kind::kProvisioningRequest) return remove(requests_);
  return remove(templates_) && !empty();
}

bool CapacityObjects::PodSeen(const model::Pod& pod) {
  const std::string* name = pod.meta.annotations.Find(kConsumes);
  if (name == nullptr) name = pod.meta.annotations.Find(kConsumesOld);
  if (name == nullptr) return PodGone(pod.meta.ns, pod.meta.name);
  std::pair<std::string, bool> consumer(model::Key(pod.meta.ns, *name), !pod.node_name.empty());
  const auto [known, added] = consumers_.try_emplace(model::Key(pod.meta));
  return std::exchange(known->second, consumer) != consumer && requests_.contains(consumer.first);
}

bool CapacityObjects::PodGone(const std::string& ns, const std::string& name) {
  return !consumers_.empty() && consumers_.erase(model::Key(ns, name)) > 0;
}

// ---- what is asked for

absl::StatusOr<CapacityObjects::Template*> CapacityObjects::Resolve(const std::string& ns,
                                                                    const std::string& name,
                                                                    const std::string& field) {
  const auto found = templates_.find(model::Key(ns, name));
  if (found == templates_.end()) {
    return absl::NotFoundError(
        absl::StrCat(field, ": there is no PodTemplate ", model::Key(ns, name)));
  }
  Template& known = found->second;
  const model::Pod& pod = known.object.pod;
  std::string fault = pod.invalid;
  if (fault.empty() && !(pod.spec.resource_claims.empty() && pod.spec.claim_templates.empty())) {
    fault = "template.spec.resourceClaims: room for pods with claims is not looked for";
  }
  if (!fault.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": PodTemplate ", model::Key(ns, name), ": ", fault));
  }
  std::shared_ptr<const model::PodSpec> spec = state_.SpecFor(pod);
  if (known.spec == nullptr || !(*known.spec == *spec)) known.spec = std::move(spec);
  return &known;
}

template <typename Object>
void CapacityObjects::Say(Row<Object>& row, const char* type, const char* status,
                          std::string reason, std::string message) {
  model::Condition& said = model::ConditionOf(row.says, type);
  said.status = status;
  said.reason = std::move(reason);
  said.message = std::move(message);
}

std::optional<CapacityAsk> CapacityObjects::AskOf(Row<model::CapacityBuffer>& row) {
  const model::CapacityBuffer& buffer = row.object;
  if (!IsOurs(buffer)) {
    row.says.clear();
    row.buffer.reset();
    return std::nullopt;
  }
  CapacityAsk ask;
  ask.key = model::Key(buffer.meta);
  ask.wants_nodes = ask.keeps_nodes = true;
  const auto resolve = [&]() -> absl::Status {
    if (!buffer.invalid.empty()) return absl::InvalidArgumentError(buffer.invalid);
    const bool by_status = buffer.by_scalable;
    if (by_status && (buffer.resolved_template.empty() || !buffer.resolved_replicas.has_value())) {
      return absl::InvalidArgumentError(
          "spec.scalableRef: no controller has written its template and number to "
          "status.podTemplateRef and status.replicas; spec.podTemplateRef needs none");
    }
    FAIRLEAD_ASSIGN_OR_RETURN(
        const Template* found,
        Resolve(buffer.meta.ns, by_status ? buffer.resolved_template : buffer.pod_template,
                by_status ? "status.podTemplateRef.name" : "spec.podTemplateRef.name"));
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t replicas, ReplicasOf(buffer, *found->spec));
    if (!by_status) {
      row.buffer = {buffer.pod_template, found->object.meta.generation, replicas};
    }
    ask.pods = {{found->spec, replicas}};
    ask.queue = std::string(found->object.pod.meta.labels.Get(model::kQueueLabel));
    return absl::OkStatus();
  };
  if (const absl::Status status = resolve(); !status.ok()) {
    Say(row, kReady, "False", "Refused", std::string(status.message()));
    Say(row, kProvisioning, "", "", "");
    return std::nullopt;
  }
  Say(row, kReady, "True", "Resolved", "its template and number of pods are known");
  return ask;
}

int64_t CapacityObjects::ConsumersOf(const std::string& request) const {
  return std::count_if(consumers_.begin(), consumers_.end(), [&](const auto& entry) {
    return entry.second.first == request && entry.second.second;
  });
}

bool CapacityObjects::Books(Row<model::ProvisioningRequest>& row, absl::Time now) {
  int64_t pods = 0;
  for (const auto& set : row.object.pod_sets) pods += set.count;
  const absl::Time end = *row.provisioned_at + options_.booking;
  if (ConsumersOf(model::Key(row.object.meta)) >= pods) {
    Say(row, kBookingExpired, "True", "CapacityBookingConsumed", "all of its pods are bound");
  } else if (now >= end) {
    Say(row, kBookingExpired, "True", "CapacityReservationTimeExpired",
        absl::StrCat("its room was kept for ", absl::FormatDuration(options_.booking)));
  } else {
    decide_at_ = std::min(decide_at_, end);
    return true;
  }
  row.ended = true;
  return false;
}

std::optional<CapacityAsk> CapacityObjects::AskOf(Row<model::ProvisioningRequest>& row,
                                                  absl::Time now) {
  const model::ProvisioningRequest& request = row.object;
  if (!IsOurs(request) || row.ended) return std::nullopt;
  const auto fail = [&](const char* reason, std::string why) {
    Say(row, kFailed, "True", reason, std::move(why));
    row.ended = true;
    return std::nullopt;
  };
  if (!request.invalid.empty()) return fail("FailedToCreatePods", request.invalid);
  Say(row, kAccepted, "True", "Accepted", "Fairlead answers it");
  CapacityAsk ask;
  ask.kind = model::Kind::kProvisioningRequest;
  ask.key = model::Key(request.meta);
  ask.atomic = true;
  if (row.provisioned_at.has_value()) {
    if (!Books(row, now)) return std::nullopt;
    ask.keeps_nodes = true;
  } else if (request.class_name == model::kAtomicScaleUpClass) {
    absl::Duration valid = kDefaultValidity;
    int64_t seconds = 0;
    if (absl::SimpleAtoi(request.parameters.Get("ValidUntilSeconds"), &seconds) && seconds > 0) {
      valid = absl::Seconds(seconds);
    }
    const absl::Time end = request.meta.creation + valid;
    if (now >= end) return fail("Expired", "no room was found for all of its pods in time");
    decide_at_ = std::min(decide_at_, end);
    ask.wants_nodes = true;
    ask.keeps_nodes = row.ordered;
  }
  for (size_t i = 0; i < request.pod_sets.size(); ++i) {
    const auto& set = request.pod_sets[i];
    const absl::StatusOr<Template*> found =
        Resolve(request.meta.ns, set.pod_template,
                absl::StrCat("spec.podSets[", i, "].podTemplateRef.name"));
    if (!found.ok()) {
      // The template may come later.
      Say(row, kProvisioned, "False", "FailedToCheckCapacity",
          std::string(found.status().message()));
      return std::nullopt;
    }
    ask.pods.push_back({(*found)->spec, set.count});
    if (ask.queue.empty()) {
      ask.queue = std::string((*found)->object.pod.meta.labels.Get(model::kQueueLabel));
    }
  }
  int64_t pods = 0;
  for (const CapacityAsk::Pods& each : ask.pods) pods += each.count;
  if (pods > kMostPods) {
    return fail("FailedToCreatePods",
                absl::StrCat("spec.podSets: ", pods, " pods are more than ", kMostPods));
  }
  return ask;
}

std::vector<CapacityAsk> CapacityObjects::Asks(absl::Time now) {
  decide_at_ = absl::InfiniteFuture();
  write_at_ = absl::InfinitePast();
  using Order = std::pair<int, absl::Time>;
  std::vector<std::pair<Order, Row<model::ProvisioningRequest>*>> in_order;
  for (auto& [key, row] : requests_) {
    const bool checks = row.object.class_name == model::kCheckCapacityClass;
    const int rank = row.provisioned_at.has_value() ? 0 : checks ? 2 : 1;
    in_order.emplace_back(Order(rank, row.object.meta.creation), &row);
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CapacityAsk> asks;
  for (const auto& [order, row] : in_order) {
    if (std::optional<CapacityAsk> ask = AskOf(*row, now)) asks.push_back(std::move(*ask));
  }
  for (auto& [key, row] : buffers_) {
    if (std::optional<CapacityAsk> ask = AskOf(row)) asks.push_back(std::move(*ask));
  }
  return asks;
}

// ---- what is told

void CapacityObjects::Answer(const CapacityAsk& ask, const CapacityAnswer& answer, absl::Time now) {
  const bool all = answer.placed == answer.wanted;
  if (ask.kind == model::Kind::kCapacityBuffer) {
    auto& row = buffers_.at(ask.key);
    if (all && answer.usable) {
      Say(row, kProvisioning, "True", "CapacityProvisioned", kRoom);
    } else if (all || answer.nodes_requested) {
      Say(row, kProvisioning, "True", "NodesRequested", kOnTheirWay);
    } else {
      Say(row, kProvisioning, "False", answer.code, WhyNoRoom(answer));
    }
    return;
  }
  auto& row = requests_.at(ask.key);
  if (row.provisioned_at.has_value()) return;
  row.ordered = !answer.usable && (all || answer.nodes_requested);
  const bool checks = row.object.class_name == model::kCheckCapacityClass;
  if (all && answer.usable) {
    row.provisioned_at = now;
    decide_at_ = std::min(decide_at_, now + options_.booking);
    Say(row, kProvisioned, "True", checks ? "CapacityIsFound" : "CapacityIsProvisioned", kRoom);
    return;
  }
  Say(row, kProvisioned, "False", kNotFound, row.ordered ? kOnTheirWay : WhyNoRoom(answer));
  if (checks && row.object.parameters.Get("noRetry") == "true") {
    Say(row, kFailed, "True", kNotFound, "noRetry is set, and there is no room for its pods now");
    row.ended = true;
  }
}

template <typename Object>
CapacityObjects::Status CapacityObjects::Desired(const Row<Object>& row) {
  Status desired{row.object.conditions, row.buffer};
  if (!desired.buffer.has_value()) desired.buffer = row.write.shown().buffer;
  for (const model::Condition& said : row.says) {
    if (said.status.empty()) {
      const auto there = model::FindCondition(desired.conditions, said.type);
      if (there != desired.conditions.end()) desired.conditions.erase(there);
      continue;
    }
    model::Condition& place = model::ConditionOf(desired.conditions, said.type);
    if (place.status != said.status) place.since.reset();
    place.status = said.status;
    place.reason = said.reason;
    place.message = said.message;
    place.observed_generation = row.object.meta.generation;
  }
  return desired;
}

template <typename Rows>
void CapacityObjects::StepRows(Rows& rows, model::Kind kind, absl::Time now,
                               std::vector<model::Action>& actions) {
  for (auto& [key, row] : rows) {
    if (row.says.empty()) continue;
    Status desired = Desired(row);
    if (!row.write.Take(desired, now, rules_, write_at_)) continue;
    const model::ObjectMeta& meta = row.object.meta;
    model::SetConditions write{kind, meta.ns, meta.name, meta.uid, std::move(desired.conditions),
                               {}};
    if (kind == model::Kind::kCapacityBuffer) write.buffer = row.buffer;
    actions.push_back({0, std::move(write)});
  }
}

void CapacityObjects::Step(absl::Time now, std::vector<model::Action>& actions) {
  if (now < write_at_) return;
  write_at_ = absl::InfiniteFuture();
  StepRows(requests_, model::Kind::kProvisioningRequest, now, actions);
  StepRows(buffers_, model::Kind::kCapacityBuffer, now, actions);
}

void CapacityObjects::Answered(model::Kind kind, const std::string& key, const std::string& uid,
                               const absl::Status& status, absl::Time now) {
  const auto answered = [&](auto& rows) {
    const auto found = rows.find(key);
    if (found == rows.end() || found->second.object.meta.uid != uid) return;
    found->second.write.Answered(status, now, rules_);
    write_at_ = std::min(write_at_, found->second.write.due());
  };
  if (kind == model::Kind::kCapacityBuffer) answered(buffers_);
  if (kind == model::Kind::kProvisioningRequest) answered(requests_);
}

}  // namespace fairlead::core
