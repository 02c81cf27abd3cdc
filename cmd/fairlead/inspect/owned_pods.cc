#include "cmd/fairlead/inspect/owned_pods.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "kube/transport/url.h"

namespace fairlead::cmd {
namespace {

// The owner of that kind that controls the object; null if there is none.
const Json* OwnerOf(const Json& object, absl::string_view kind) {
  const Json* owners = object.At({"metadata", "ownerReferences"});
  if (owners == nullptr) return nullptr;
  for (const Json& owner : owners->items()) {
    if (owner.TextAt({"kind"}) == kind && owner.TextAt({"controller"}) == "true") return &owner;
  }
  return nullptr;
}

// Whether pods belong to a Deployment, through their ReplicaSets; reads each ReplicaSet once.
class ReplicaSets {
 public:
  ReplicaSets(ApiClient* client, std::string ns, std::string deployment_uid)
      : client_(client), ns_(std::move(ns)), deployment_uid_(std::move(deployment_uid)) {}

  absl::StatusOr<bool> Owns(const Json& pod) {
    const Json* owner = OwnerOf(pod, "ReplicaSet");
    if (owner == nullptr) return false;
    const std::string name = owner->TextAt({"name"});
    if (const auto known = ours_.find(name); known != ours_.end()) return known->second;
    const absl::StatusOr<Json> set = client_->Get({"apps/v1", "ReplicaSet", ns_, name});
    if (!set.ok() && !absl::IsNotFound(set.status())) return set.status();
    const Json* above = set.ok() ? OwnerOf(*set, "Deployment") : nullptr;
    return ours_[name] = above != nullptr && above->TextAt({"uid"}) == deployment_uid_;
  }

 private:
  ApiClient* const client_;
  const std::string ns_, deployment_uid_;
  std::map<std::string, bool> ours_;
};

std::string SelectorOf(const Json& owner) {
  const Json* labels = owner.At({"spec", "selector", "matchLabels"});
  if (labels == nullptr) return "";
  std::vector<std::string> terms;
  for (const auto& [key, value] : labels->fields()) {
    terms.push_back(absl::StrCat(key, "=", value.text()));
  }
  return absl::StrJoin(terms, ",");
}

bool Waits(const Json& pod) {
  return pod.TextAt({"spec", "nodeName"}).empty() && pod.TextAt({"status", "phase"}) == "Pending";
}

}  // namespace

absl::StatusOr<OwnedPod> FindPodOf(ApiClient& client, const Subject& subject) {
  const bool job = subject.kind == Subject::Kind::kJob;
  const ObjectId id = job ? ObjectId{"batch/v1", "Job", subject.ns, subject.name}
                          : ObjectId{"apps/v1", "Deployment", subject.ns, subject.name};
  FAIRLEAD_ASSIGN_OR_RETURN(const Json owner, client.Get(id));
  const std::string uid = owner.TextAt({"metadata", "uid"});
  std::string path = absl::StrCat("/api/v1/namespaces/", subject.ns, "/pods");
  const std::string selector = SelectorOf(owner);
  if (!selector.empty()) kube::AddQuery(path, "labelSelector", selector);
  FAIRLEAD_ASSIGN_OR_RETURN(const Json list, client.GetPath(path));
  const Json* items = list.Find("items");
  ReplicaSets sets(&client, subject.ns, uid);
  std::vector<std::string> waiting, others;
  for (const Json& pod : items == nullptr ? std::vector<Json>() : items->items()) {
    bool ours = false;
    if (job) {
      const Json* reference = OwnerOf(pod, "Job");
      ours = reference != nullptr && reference->TextAt({"uid"}) == uid;
    } else {
      FAIRLEAD_ASSIGN_OR_RETURN(ours, sets.Owns(pod));
    }
    if (ours) (Waits(pod) ? waiting : others).push_back(pod.TextAt({"metadata", "name"}));
  }
  if (waiting.empty() && others.empty()) {
    return absl::NotFoundError(absl::StrCat(id.Text(), " has no pods"));
  }
  std::vector<std::string>& candidates = waiting.empty() ? others : waiting;
  OwnedPod found;
  found.name = *std::min_element(candidates.begin(), candidates.end());
  found.note = absl::StrCat(id.Text(), ": pods that wait: ", waiting.size(),
                            ", others: ", others.size(), "; this is pod ", found.name);
  return found;
}

}  // namespace fairlead::cmd
