#include "demo/day_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::demo {
namespace {

constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests";
constexpr absl::Duration kPause = absl::Milliseconds(200);
constexpr int kAttempts = 100;  // of kPause each
constexpr int kPatience = 50;   // pods may take so many pauses to end by themselves

const cmd::ObjectId& Lease() {
  static const auto* const id =
      new cmd::ObjectId{"coordination.k8s.io/v1", "Lease", kDayLeaseNamespace, "fairlead"};
  return *id;
}

cmd::ObjectId NamespaceId(const std::string& name) { return {"v1", "Namespace", "", name}; }

// True if a controller of the cluster will soon have created what is missing.
bool WorthWaiting(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsAborted(status) ||
         (absl::IsPermissionDenied(status) &&
          absl::StrContains(status.message(), "service account"));
}

bool IsWorkload(const cmd::ObjectId& id) {
  return id.kind == "Job" || id.kind == "Deployment" || id.kind == "Pod" || id.kind == "PodGroup";
}

}  // namespace

absl::StatusOr<std::set<std::string>> DayObjects::NamesOf(const std::string& path) {
  std::set<std::string> names;
  absl::StatusOr<Json> list = client_->GetPath(path);
  if (absl::IsNotFound(list.status())) return names;
  if (!list.ok()) return list.status();
  const Json* items = list->Find("items");
  for (const Json& item : items == nullptr ? std::vector<Json>() : items->items()) {
    names.insert(item.TextAt({"metadata", "name"}));
  }
  return names;
}

absl::StatusOr<bool> DayObjects::IsThere(const cmd::ObjectId& id) {
  for (int i = 0;; ++i) {
    const absl::StatusOr<Json> found = client_->Get(id);
    if (absl::IsNotFound(found.status())) return false;
    if (!found.ok()) return found.status();
    if (found->TextAt({"metadata", "deletionTimestamp"}).empty()) return true;
    if (i >= kAttempts || !sleep_(kPause)) {
      return absl::UnavailableError(absl::StrCat(id.Text(), " is still being deleted"));
    }
  }
}

// A later day must not find them half deleted.
void DayObjects::WaitUntilGone(const std::vector<cmd::ObjectId>& ids) {
  for (const cmd::ObjectId& id : ids) {
    for (int i = 0; i < kAttempts && client_->Get(id).ok(); ++i) pause_(kPause);
  }
}

absl::Status DayObjects::CheckFree(const DayPlan& plan) {
  missing_.clear();
  for (const Json& definition : plan.definitions) {
    FAIRLEAD_ASSIGN_OR_RETURN(const cmd::ObjectId id, cmd::IdOf(definition));
    FAIRLEAD_ASSIGN_OR_RETURN(const bool there, IsThere(id));
    if (!there) missing_.push_back(definition);
  }
  const auto will_be_there = [this](const cmd::ObjectId& id) {
    return std::any_of(missing_.begin(), missing_.end(), [&](const Json& definition) {
      return definition.TextAt({"spec", "names", "kind"}) == id.kind;
    });
  };
  std::set<std::string> seen;
  for (const auto& step : plan.manifests) {
    for (const Json& manifest : step) {
      FAIRLEAD_ASSIGN_OR_RETURN(const cmd::ObjectId id, cmd::IdOf(manifest));
      if (id.kind == "Namespace" || !seen.insert(id.Text()).second) continue;
      if (will_be_there(id)) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(const bool known, client_->Knows(id.api_version, id.kind));
      if (!known) {
        return absl::FailedPreconditionError(
            absl::StrCat("the cluster does not know the kind ", id.kind, " (", id.api_version,
                         "); install it, or say with --crds where its definition is"));
      }
      const absl::Status found = client_->Get(id).status();
      if (absl::IsNotFound(found)) continue;
      FAIRLEAD_RETURN_IF_ERROR(found);
      return absl::AlreadyExistsError(
          absl::StrCat(id.Text(),
                       " is in the cluster already; the day would overwrite it. Delete it, or use "
                       "another cluster."));
    }
  }
  FAIRLEAD_ASSIGN_OR_RETURN(nodes_before_, NamesOf(kNodes));
  FAIRLEAD_ASSIGN_OR_RETURN(requests_before_, NamesOf(kRequests));
  lease_before_ = client_->Get(Lease()).ok();
  return absl::OkStatus();
}

absl::Status DayObjects::Prepare(const DayPlan& plan) {
  for (const Json& definition : missing_) {
    FAIRLEAD_ASSIGN_OR_RETURN(cmd::ObjectId id, cmd::IdOf(definition));
    FAIRLEAD_RETURN_IF_ERROR(client_->Apply(definition).status());
    definitions_.push_back(std::move(id));
  }
  for (const Json& definition : missing_) {
    const std::string group = definition.TextAt({"spec", "group"});
    const std::string kind = definition.TextAt({"spec", "names", "kind"});
    const Json* versions = definition.At({"spec", "versions"});
    for (const Json& version : versions == nullptr ? std::vector<Json>() : versions->items()) {
      const std::string api = absl::StrCat(group, "/", version.TextAt({"name"}));
      for (int i = 0;; ++i) {
        client_->ForgetKinds();
        const absl::StatusOr<bool> known = client_->Knows(api, kind);
        if (known.ok() && *known) break;
        if (i >= kAttempts || !sleep_(kPause)) {
          return absl::UnavailableError(
              absl::StrCat("the server does not serve ", kind, " of ", api));
        }
      }
    }
  }
  for (const std::string& ns : plan.namespaces) {
    FAIRLEAD_ASSIGN_OR_RETURN(const bool there, IsThere(NamespaceId(ns)));
    if (there) continue;
    Json manifest = Json::Object();
    Json metadata = Json::Object();
    manifest.Set("apiVersion", "v1").Set("kind", "Namespace");
    manifest.Set("metadata", metadata.Set("name", ns));
    FAIRLEAD_RETURN_IF_ERROR(client_->Apply(manifest).status());
    namespaces_.push_back(NamespaceId(ns));
    own_namespaces_.push_back(ns);
  }
  return absl::OkStatus();
}

absl::Status DayObjects::Apply(const Json& manifest) {
  FAIRLEAD_ASSIGN_OR_RETURN(cmd::ObjectId id, cmd::IdOf(manifest));
  if (id.kind == "Namespace") return absl::OkStatus();  // made in Prepare, or existed before
  for (int i = 0;; ++i) {
    const absl::Status applied = client_->Apply(manifest).status();
    if (applied.ok()) break;
    if (!WorthWaiting(applied) || i >= kAttempts || !sleep_(kPause)) return applied;
  }
  const bool known = std::any_of(created_.begin(), created_.end(), [&](const cmd::ObjectId& other) {
    return other.Text() == id.Text();
  });
  if (!known) created_.push_back(std::move(id));
  return absl::OkStatus();
}

absl::Status DayObjects::Delete(const cmd::ObjectId& id) { return client_->Delete(id); }

absl::Status DayObjects::Scale(const cmd::ObjectId& id, int64_t replicas) {
  Json spec = Json::Object();
  spec.Set(id.kind == "Job" ? "parallelism" : "replicas", Json::Int(replicas));
  Json patch = Json::Object();
  return client_->Patch(id, patch.Set("spec", std::move(spec))).status();
}

// Fake kubelets end the pods; without kubelets they are force-deleted.
void DayObjects::WaitForPods(const std::vector<std::string>& namespaces) {
  for (const std::string& ns : namespaces) {
    const std::string path = absl::StrCat("/api/v1/namespaces/", ns, "/pods");
    for (int i = 0; i < kAttempts; ++i) {
      const absl::StatusOr<std::set<std::string>> pods = NamesOf(path);
      if (!pods.ok() || pods->empty()) break;
      if (i >= kPatience) {
        for (const std::string& pod : *pods) {
          const absl::Status forced = client_->Delete({"v1", "Pod", ns, pod}, /*grace_seconds=*/0);
          (void)forced;  // checked again in the next round
        }
      }
      pause_(kPause);
    }
  }
}

absl::Status DayObjects::DeleteNew(const std::string& path, const cmd::ObjectId& prototype,
                                   const std::set<std::string>& before) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesOf(path));
  for (const std::string& name : names) {
    if (before.contains(name)) continue;
    cmd::ObjectId id = prototype;
    id.name = name;
    if (id.kind == "Node") {
      // Other programs' nodes may have joined meanwhile.
      const absl::StatusOr<Json> node = client_->Get(id);
      if (!node.ok() || node->TextAt({"metadata", "labels", "fairlead.dev/node-request"}).empty()) {
        continue;
      }
    }
    FAIRLEAD_RETURN_IF_ERROR(client_->Delete(id));
  }
  return absl::OkStatus();
}

absl::Status DayObjects::Cleanup() {
  absl::Status first;
  const auto note = [&first](const absl::Status& status) { first.Update(status); };
  const auto remove = [&](std::vector<cmd::ObjectId>& ids, bool workloads) {
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      if (IsWorkload(*id) == workloads) note(client_->Delete(*id));
    }
  };
  remove(created_, /*workloads=*/true);
  WaitForPods(own_namespaces_);
  note(DeleteNew(kRequests, {"fairlead.dev/v1alpha1", "NodeRequest", "", ""}, requests_before_));
  note(DeleteNew(kNodes, {"v1", "Node", "", ""}, nodes_before_));
  remove(created_, /*workloads=*/false);
  created_.clear();
  if (!lease_before_) note(client_->Delete(Lease()));
  for (std::vector<cmd::ObjectId>* ids : {&namespaces_, &definitions_}) {
    remove(*ids, /*workloads=*/false);
    WaitUntilGone(*ids);
    ids->clear();
  }
  return first;
}

}  // namespace fairlead::demo
