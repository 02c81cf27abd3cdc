#include "autoscale-hook/providers/clusterapi/cluster_api_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/clusterapi/capacity_template.h"
#include "autoscale-hook/providers/groups/object_path.h"

namespace fairlead::hook {
namespace {

constexpr char kApiGroup[] = "cluster.x-k8s.io";

absl::Status NoCollection(const std::string& group) {
  return absl::NotFoundError(absl::StrCat("group ", group, ": the server has no such object"));
}

bool VersionIsServed(const Json& api_group, absl::string_view version) {
  const Json* const versions = api_group.Find("versions");
  if (versions == nullptr || !versions->is_array()) return false;
  return std::any_of(versions->items().begin(), versions->items().end(),
                     [&](const Json& served) { return served.TextAt({"version"}) == version; });
}

}  // namespace

GroupsOptions ClusterApiOptions() {
  GroupsOptions options;
  options.words = {
      .provider = kClusterApiName,
      .source = "Cluster API",
      .no_template = "nothing tells what its machines have, so the group is not offered",
      .no_price = absl::StrCat("it has no annotation ", kPriceAnnotation),
      .give_price = "set the annotation, or add the type with its price to the catalogue",
      .restore = "set its annotations again"};
  return options;
}

std::string ClusterApiGroups::RootPath() const {
  return absl::StrCat("/apis/", kApiGroup, "/", version_);
}

std::string ClusterApiGroups::CollectionPath(const char* plural) const {
  return CollectionPathOf(RootPath(), scope_.ns, plural);
}

std::string ClusterApiGroups::ObjectPath(const std::string& ns, const char* plural,
                                         const std::string& name) const {
  return absl::StrCat(CollectionPathOf(RootPath(), ns, plural), "/", EscapePathPart(name));
}

// ---- rounds

void ClusterApiGroups::FindVersion(Done done) {
  if (!version_.empty()) return done(absl::OkStatus());
  api_->Get(absl::StrCat("/apis/", kApiGroup),
            callbacks_.Once<absl::StatusOr<Json>>([this, done](const absl::StatusOr<Json>& read) {
              if (!read.ok() && !absl::IsNotFound(read.status())) {
                return done(WithSubject("read the versions of cluster.x-k8s.io", read.status()));
              }
              for (const char* version : {"v1beta2", "v1beta1"}) {
                if (!read.ok() || !VersionIsServed(*read, version)) continue;
                version_ = version;
                return done(absl::OkStatus());
              }
              done(absl::NotFoundError(
                  "the server has no cluster.x-k8s.io of version v1beta2 or v1beta1: is Cluster "
                  "API installed?"));
            }));
}

void ClusterApiGroups::Refresh(Done done) {
  FindVersion([this, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    const auto read = std::make_shared<GroupMap>();
    ListGroups(ScalableKind::kMachineDeployment, read, [this, read, done](absl::Status listed) {
      if (!listed.ok()) return done(listed);
      ListGroups(ScalableKind::kMachinePool, read, [this, read, done](absl::Status pools) {
        if (!pools.ok()) return done(pools);
        ListMachines(kDeploymentNameLabel, ScalableKind::kMachineDeployment, read,
                     [this, read, done](absl::Status machines) {
                       if (!machines.ok()) return done(machines);
                       ListMachines(kPoolNameLabel, ScalableKind::kMachinePool, read,
                                    [this, read, done](const absl::Status& of_pools) {
                                      if (!of_pools.ok()) return done(of_pools);
                                      TakeRead(std::move(*read));
                                      DeleteSwallowed(done);
                                    });
                     });
      });
    });
  });
}

void ClusterApiGroups::ListGroups(ScalableKind kind, std::shared_ptr<GroupMap> read, Done done) {
  const std::string selector =
      scope_.cluster_name.empty() ? "" : absl::StrCat(kClusterNameLabel, "=", scope_.cluster_name);
  api_->List(
      CollectionPath(ScalablePlural(kind)), selector,
      callbacks_.Once<absl::StatusOr<Json>>([this, kind, read, done](absl::StatusOr<Json> list) {
        if (absl::IsNotFound(list.status())) {
          // MachinePools may be missing. Deployments are not: the version is read again.
          if (kind == ScalableKind::kMachinePool) return done(absl::OkStatus());
          version_.clear();
        }
        if (!list.ok()) {
          return done(WithSubject(absl::StrCat("list ", ScalablePlural(kind)), list.status()));
        }
        for (Json& item : list->items()) {
          const std::string id = GroupIdOf(kind, item);
          if (id.empty() || !IsNodeGroup(item)) continue;
          Group& group = (*read)[id];
          group.kind = kind;
          group.read = DecodeScalable(kind, item);
          group.object = std::move(item);
        }
        done(absl::OkStatus());
      }));
}

void ClusterApiGroups::ListMachines(const char* label, ScalableKind kind,
                                    std::shared_ptr<GroupMap> read, Done done) {
  const bool needed = std::any_of(read->begin(), read->end(),
                                  [&](const auto& entry) { return entry.second.kind == kind; });
  if (!needed) return done(absl::OkStatus());
  api_->List(
      CollectionPath("machines"), label,
      callbacks_.Once<absl::StatusOr<Json>>([kind, read, done](const absl::StatusOr<Json>& list) {
        if (!list.ok()) return done(WithSubject("list machines", list.status()));
        absl::Status wrong;
        for (const Json& item : list->items()) {
          absl::StatusOr<ClusterMachine> machine = DecodeMachine(item);
          if (!machine.ok()) {
            wrong = machine.status();
            continue;
          }
          // Label and name of the controller lead to one group; IsMachineOf checks the rest.
          const auto place = read->find(GroupIdOf(kind, *machine));
          if (place == read->end() || !place->second.read.ok()) continue;
          if (!IsMachineOf(*machine, *place->second.read)) continue;
          place->second.machines.push_back(*std::move(machine));
        }
        // A Machine that cannot be decoded may belong to any group of this kind.
        for (auto& [id, group] : *read) {
          if (group.kind == kind && !wrong.ok()) group.machines_wrong = wrong;
        }
        done(absl::OkStatus());
      }));
}

void ClusterApiGroups::TakeRead(GroupMap read) {
  std::map<std::string, int> swallowed, troubled;
  for (auto& [id, group] : read) {
    std::sort(group.machines.begin(), group.machines.end(),
              [](const ClusterMachine& a, const ClusterMachine& b) { return a.name < b.name; });
    CountRounds(id, group);
    const auto living = std::count_if(group.machines.begin(), group.machines.end(),
                                      [](const ClusterMachine& of) { return !of.deleting; });
    for (const ClusterMachine& machine : group.machines) {
      if (!machine.trouble_reason.empty()) {
        troubled[machine.uid] = troubled_[machine.uid] + 1;
      }
      if (!group.read.ok() || group.read->paused || machine.deleting) continue;
      if (group.kind != ScalableKind::kMachineDeployment) continue;
      // Its MachineSet does not want fewer than there are.
      if (group.read->removed.contains(machine.uid) && living <= group.read->replicas) {
        swallowed[machine.uid] = swallowed_[machine.uid] + 1;
      }
    }
  }
  swallowed_ = std::move(swallowed);
  troubled_ = std::move(troubled);
  groups_ = std::move(read);
}

void ClusterApiGroups::CountRounds(const std::string& id, Group& group) {
  if (!group.read.ok()) return;
  int64_t places = group.read->replicas;
  for (const ClusterMachine& machine : group.machines) {
    if (!machine.deleting && !group.read->removed.contains(machine.uid)) --places;
  }
  const auto before = groups_.find(id);
  if (places > 0) group.rounds_open = before == groups_.end() ? 1 : before->second.rounds_open + 1;
}

// Deletes one Machine of those that wait in vain; the next round sees to the others.
void ClusterApiGroups::DeleteSwallowed(Done done) {
  for (const auto& [id, group] : groups_) {
    for (const ClusterMachine& machine : group.machines) {
      const auto rounds = swallowed_.find(machine.uid);
      if (rounds == swallowed_.end() || rounds->second < kRoundsUntilDeletion) continue;
      rounds->second = 0;
      // A failure shows in the next rounds.
      return api_->Delete(ObjectPath(machine.ns, "machines", machine.name), machine.uid, "",
                          callbacks_.Once<const absl::Status&>(
                              [done](const absl::Status&) { done(absl::OkStatus()); }));
    }
  }
  done(absl::OkStatus());
}

// ---- reads

void ClusterApiGroups::Groups(Answer<std::vector<CloudGroup>> answer) {
  std::vector<CloudGroup> list;
  for (const auto& [id, group] : groups_) {
    CloudGroup told;
    told.id = id;
    if (group.read.ok()) {
      told.min_size = group.read->min_size;
      told.max_size = group.read->max_size;
    } else {
      told.wrong = group.read.status();
    }
    told.debug = CapacityInputs(group.object);
    list.push_back(std::move(told));
  }
  answer(std::move(list));
}

void ClusterApiGroups::NodePrice(const CloudNode& node, Answer<double> answer) {
  const auto group = groups_.find(node.name);
  if (group == groups_.end()) return answer(NoCollection(node.name));
  const absl::StatusOr<std::optional<double>> price = PriceOf(group->second.object);
  if (!price.ok()) return answer(price.status());
  if (!price->has_value()) return answer(absl::UnimplementedError("no annotation has a price"));
  answer(**price);
}

void ClusterApiGroups::TargetSize(const std::string& id, Answer<int64_t> answer) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return answer(NoCollection(id));
  if (!group->second.read.ok()) return answer(group->second.read.status());
  answer(group->second.read->replicas);
}

void ClusterApiGroups::Nodes(const std::string& id, Answer<std::vector<CloudInstance>> answer) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return answer(NoCollection(id));
  if (!group->second.read.ok()) return answer(group->second.read.status());
  if (!group->second.machines_wrong.ok()) return answer(group->second.machines_wrong);
  answer(InstancesOf(group->second));
}

std::vector<CloudInstance> ClusterApiGroups::InstancesOf(const Group& group) const {
  std::vector<CloudInstance> instances;
  std::set<std::string> with_machine;
  for (const ClusterMachine& machine : group.machines) {
    CloudInstance instance;
    instance.id = machine.InstanceId();
    instance.placeholder = machine.provider_id.empty();
    if (!instance.placeholder) instance.former_id = machine.PlaceId();
    instance.state = machine.has_node ? InstanceState::kRunning : InstanceState::kCreating;
    if (machine.deleting || group.read->removed.contains(machine.uid)) {
      instance.state = InstanceState::kDeleting;
    }
    const auto trouble = troubled_.find(machine.uid);
    if (!machine.failure_reason.empty()) {
      instance.error_code = machine.failure_reason;
      instance.error_message = machine.failure_message;
    } else if (trouble != troubled_.end() && trouble->second >= kRoundsOfTrouble) {
      instance.error_code = machine.trouble_reason;
      instance.error_message = machine.trouble_message;
    }
    if (IsShortage(instance.error_code, instance.error_message)) {
      instance.error_class = kOutOfResources;
    }
    with_machine.insert(machine.provider_id);
    instances.push_back(std::move(instance));
  }
  // Of a MachinePool, also those without Machine objects.
  for (const std::string& id : group.read->provider_ids) {
    if (with_machine.contains(id)) continue;
    instances.push_back({.id = id, .state = InstanceState::kRunning});
  }
  return instances;
}

void ClusterApiGroups::TemplateNode(const std::string& id, Answer<model::Node> answer) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return answer(NoCollection(id));
  const std::optional<InfrastructureRef> ref = NeededInfrastructure(group->second.object);
  if (!ref.has_value()) return ReadInfrastructure(id, "", "", std::move(answer));
  // The names of the custom resources that Cluster API's contract asks for.
  const std::string tail =
      absl::StrCat("/namespaces/", EscapePathPart(ref->ns), "/",
                   EscapePathPart(absl::StrCat(absl::AsciiStrToLower(ref->kind), "s")), "/",
                   EscapePathPart(ref->name));
  const std::string path = absl::StrCat("/apis/", EscapePathPart(ref->group));
  if (!ref->version.empty()) {
    return ReadInfrastructure(id, absl::StrCat(path, "/", EscapePathPart(ref->version)), tail,
                              std::move(answer));
  }
  api_->Get(path, callbacks_.Once<absl::StatusOr<Json>>([this, id, path, tail, answer](
                                                            const absl::StatusOr<Json>& versions) {
    if (!versions.ok()) {
      return answer(WithSubject("template: read " + path, versions.status()));
    }
    const std::string version = versions->TextAt({"preferredVersion", "version"});
    ReadInfrastructure(id, absl::StrCat(path, "/", EscapePathPart(version)), tail, answer);
  }));
}

// An empty path: none is needed.
void ClusterApiGroups::ReadInfrastructure(const std::string& id, const std::string& group_path,
                                          const std::string& tail, Answer<model::Node> answer) {
  const auto make = [this, id, answer](const Json* infrastructure) {
    const auto group = groups_.find(id);
    if (group == groups_.end()) return answer(NoCollection(id));
    absl::StatusOr<model::Node> node = MakeCapacityTemplate(group->second.object, infrastructure);
    if (node.ok()) node->meta.name = id;  // NodePrice knows it by that
    answer(std::move(node));
  };
  if (group_path.empty()) return make(nullptr);
  api_->Get(group_path + tail,
            callbacks_.Once<absl::StatusOr<Json>>([make, answer](const absl::StatusOr<Json>& read) {
              if (absl::IsNotFound(read.status())) return make(nullptr);
              if (!read.ok()) {
                return answer(WithSubject("template: read the machine template", read.status()));
              }
              make(&*read);
            }));
}

}  // namespace fairlead::hook
