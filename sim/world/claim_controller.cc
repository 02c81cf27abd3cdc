#include "sim/world/claim_controller.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/device_objects.h"
#include "sim/world/facts.h"

namespace fairlead::sim::world {
namespace {

constexpr char kClaimControllerActor[] = "claim-controller";

// It needs no claim any more, or will never need one.
bool IsDone(const PodFacts& pod) { return pod.terminal || (pod.terminating && pod.node.empty()); }

bool NamesClaims(const Json& pod) { return !ReadPodClaims(pod).empty(); }

}  // namespace

std::string MissingClaim(const ApiServer& server, const Json& pod) {
  const std::string ns = TextAt(pod, {"metadata", "namespace"});
  const std::string uid = TextAt(pod, {"metadata", "uid"});
  const std::string node = TextAt(pod, {"spec", "nodeName"});
  for (const PodClaim& named : ReadPodClaims(pod)) {
    const Json* const object =
        named.claim.empty() ? nullptr : server.Find(ResourceType::kResourceClaims, ns, named.claim);
    if (object == nullptr) return absl::StrCat("claim ", named.name, " does not exist");
    const ClaimFacts claim = ReadClaim(*object);
    if (!claim.allocated) return absl::StrCat("claim ", named.claim, " is not allocated");
    if (claim.node != node) {
      return absl::StrCat("claim ", named.claim, " is allocated on ", claim.node);
    }
    if (!claim.IsReservedFor(uid)) {
      return absl::StrCat("claim ", named.claim, " is not reserved for the pod");
    }
    if (named.generated && claim.owner != uid) {
      return absl::StrCat("claim ", named.claim, " was made for another pod");
    }
  }
  return "";
}

ClaimController::ClaimController(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type == ResourceType::kPods) OnPod(commit);
    if (commit.type == ResourceType::kResourceClaims) OnClaim(commit);
  });
}

void ClaimController::OnPod(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  if (!NamesClaims(object)) return;
  const PodFacts pod = ReadPod(object);
  if (commit.after == nullptr) {
    pods_.erase(pod.uid);
  } else {
    pods_[pod.uid] = {pod.ns, pod.name};
  }
  if (commit.before == nullptr) WakePod({pod.ns, pod.name}, 20, 1200);
  if (commit.after != nullptr && !IsDone(pod)) return;
  for (const PodClaim& claim : ReadPodClaims(object)) {
    if (!claim.claim.empty()) WakeClaim({pod.ns, claim.claim});
  }
  // One that the pod does not name yet.
  const std::string made = ClaimMadeFor(pod.ns, pod.uid);
  if (!made.empty()) WakeClaim({pod.ns, made});
}

void ClaimController::OnClaim(const ApiServer::Commit& commit) {
  const ClaimFacts claim = ReadClaim(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after != nullptr) return WakeClaim({claim.ns, claim.name});
  for (const auto& [uid, key] : pods_) {
    if (key.first == claim.ns) WakePod(key, 100, 3000);
  }
}

void ClaimController::WakePod(const Key& key, int64_t low_ms, int64_t high_ms) {
  if (!waking_pods_.insert(key).second) return;
  time_->After(absl::Milliseconds(random_.Between(low_ms, high_ms)), [this, key] {
    waking_pods_.erase(key);
    SyncPod(key);
  });
}

void ClaimController::WakeClaim(const Key& key) {
  if (!waking_claims_.insert(key).second) return;
  time_->After(absl::Milliseconds(random_.Between(10, 800)), [this, key] {
    waking_claims_.erase(key);
    SyncClaim(key);
  });
}

std::string ClaimController::ClaimMadeFor(const std::string& ns, const std::string& uid) const {
  std::string name;
  server_->ForEach(ResourceType::kResourceClaims, [&](const Json& object) {
    const ClaimFacts claim = ReadClaim(object);
    if (claim.ns == ns && claim.owner == uid && !claim.deleting) name = claim.name;
  });
  return name;
}

void ClaimController::SyncPod(const Key& key) {
  const Json* const pod = server_->Find(ResourceType::kPods, key.first, key.second);
  if (pod == nullptr) return;
  const PodFacts facts = ReadPod(*pod);
  if (facts.terminal || facts.terminating) return;
  for (const PodClaim& claim : ReadPodClaims(*pod)) {
    if (!claim.claim.empty() &&
        server_->Find(ResourceType::kResourceClaims, key.first, claim.claim) != nullptr) {
      continue;
    }
    if (claim.extended > 0) continue;  // the scheduler makes it
    if (claim.generated) {
      MakeGenerated(*pod, claim);
      return WakePod(key, 5, 300);  // its status may have changed the object
    }
    const std::string spec = TextAt(*pod, {"metadata", "annotations", kClaimSpec});
    Json shared = MakeClaim(key.first, claim.claim, Json::parse(spec, nullptr, false));
    const std::string queue = TextAt(*pod, {"metadata", "annotations", kClaimQueue});
    if (!queue.empty()) shared["metadata"]["labels"]["kai.scheduler/queue"] = queue;
    server_->Create(ResourceType::kResourceClaims, std::move(shared), "tenant").IgnoreError();
  }
}

// First the claim, then, as another write, its name in the pod's status.
void ClaimController::MakeGenerated(const Json& pod, const PodClaim& claim) {
  const PodFacts facts = ReadPod(pod);
  std::string name = ClaimMadeFor(facts.ns, facts.uid);
  if (name.empty()) {
    name = absl::StrCat(GeneratedClaimPrefix(facts.name), made_++);
    const std::string spec = TextAt(pod, {"metadata", "annotations", kClaimSpec});
    Json object = MakeClaim(facts.ns, name, Json::parse(spec, nullptr, false));
    object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                          {"kind", "Pod"},
                                                          {"name", facts.name},
                                                          {"uid", facts.uid},
                                                          {"controller", true},
                                                          {"blockOwnerDeletion", true}}});
    server_->Create(ResourceType::kResourceClaims, std::move(object), kClaimControllerActor)
        .IgnoreError();
    return;
  }
  const auto change = [&](Json& changed) {
    changed["status"]["resourceClaimStatuses"] =
        Json::array({{{"name", claim.name}, {"resourceClaimName", name}}});
    return absl::OkStatus();
  };
  server_->Modify(ResourceType::kPods, facts.ns, facts.name, change, kClaimControllerActor)
      .IgnoreError();
}

bool ClaimController::IsUnneeded(const ClaimFacts& claim) const {
  if (!claim.owner.empty()) {
    const auto owner = pods_.find(claim.owner);
    if (owner == pods_.end()) return true;
    return ReadPod(*server_->Find(ResourceType::kPods, owner->second.first, owner->second.second))
        .terminal;
  }
  return std::none_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const auto& [ns, name] = entry.second;
    if (ns != claim.ns) return false;
    const std::vector<PodClaim> named =
        ReadPodClaims(*server_->Find(ResourceType::kPods, ns, name));
    return std::any_of(named.begin(), named.end(),
                       [&](const PodClaim& each) { return each.claim == claim.name; });
  });
}

void ClaimController::SyncClaim(const Key& key) {
  const auto& [ns, name] = key;
  const Json* const object = server_->Find(ResourceType::kResourceClaims, ns, name);
  if (object == nullptr) return;
  const ClaimFacts claim = ReadClaim(*object);
  std::set<std::string> valid;
  for (const std::string& uid : claim.reserved) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) continue;
    const Json* const found =
        server_->Find(ResourceType::kPods, pod->second.first, pod->second.second);
    if (!IsDone(ReadPod(*found))) valid.insert(uid);
  }
  const bool frees =
      claim.allocated && valid.empty() && (claim.reserved.size() > valid.size() || claim.deleting);
  if (valid.size() < claim.reserved.size() || frees) {
    const auto change = [&](Json& changed) {
      Json& status = changed["status"];
      if (frees) status.erase("allocation");
      Json kept = Json::array();
      for (const Json& consumer : status.value("reservedFor", Json::array())) {
        if (valid.contains(consumer.value("uid", ""))) kept.push_back(consumer);
      }
      status["reservedFor"] = std::move(kept);
      return absl::OkStatus();
    };
    server_->Modify(ResourceType::kResourceClaims, ns, name, change, kClaimControllerActor)
        .IgnoreError();
    return WakeClaim(key);
  }
  if (!claim.deleting && IsUnneeded(claim)) {
    server_->Remove(ResourceType::kResourceClaims, ns, name, "gc").IgnoreError();
    return;
  }
  if (!claim.deleting || claim.allocated || !claim.protected_by_finalizer) return;
  const auto unprotect = [](Json& changed) {
    Json& finalizers = changed["metadata"]["finalizers"];
    std::erase_if(finalizers.get_ref<Json::array_t&>(),
                  [](const Json& finalizer) { return finalizer == kClaimFinalizer; });
    return absl::OkStatus();
  };
  server_->Modify(ResourceType::kResourceClaims, ns, name, unprotect, kClaimControllerActor)
      .IgnoreError();
}

}  // namespace fairlead::sim::world
