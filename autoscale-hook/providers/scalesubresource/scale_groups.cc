#include "autoscale-hook/providers/scalesubresource/scale_groups.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/configured_shape.h"
#include "autoscale-hook/providers/groups/object_path.h"

namespace fairlead::hook {
namespace {

constexpr char kReplicaPlacePrefix[] = "node.fairlead.dev://";
constexpr size_t kLongestGroupText = 2048;

absl::Status NoGroup(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("group ", id, " is not configured"));
}

// The plural of the kind, if it has the subresource where that is asked for.
absl::StatusOr<std::string> ResourceOf(const Json& discovered, const std::string& kind,
                                       const std::string& api_version) {
  const Json* const resources = discovered.Find("resources");
  if (resources != nullptr && resources->is_array()) {
    for (const Json& resource : resources->items()) {
      const std::string name = resource.TextAt({"name"});
      if (name.empty() || absl::StrContains(name, "/")) continue;
      if (resource.TextAt({"kind"}) == kind) return name;
    }
  }
  return absl::NotFoundError(absl::StrCat("the server has no kind ", kind, " in ", api_version));
}

}  // namespace

GroupsOptions ScaleSubresourceOptions() {
  GroupsOptions options;
  options.words = {.provider = kScaleSubresourceName,
                   .source = "the configuration",
                   .no_template = "the configuration has none, so the group is not offered",
                   .no_price = "the configuration has no priceUSDPerHour",
                   .give_price =
                       "set priceUSDPerHour, or add the type with its price to the "
                       "catalogue",
                   .restore = "add it to scaleSubresource.groups again"};
  options.poll = absl::Seconds(15);
  options.poll_open = absl::Seconds(5);
  return options;
}

ScaleGroups::ScaleGroups(const std::vector<model::ScaleGroup>& groups, KnownType known_type,
                         ObjectApi* api, Scheduler* scheduler)
    : known_type_(std::move(known_type)), api_(api), scheduler_(scheduler) {
  for (const model::ScaleGroup& config : groups) groups_[config.Id()].config = config;
}

std::string ScaleGroups::ListedNode::InstanceId() const {
  return provider_id.empty() ? absl::StrCat(kReplicaPlacePrefix, name) : provider_id;
}

ScaleGroups::Group* ScaleGroups::Find(const std::string& id) {
  const auto place = groups_.find(id);
  return place == groups_.end() ? nullptr : &place->second;
}

std::set<std::string> ScaleGroups::Living(const Group& group) const {
  std::set<std::string> ids;
  if (!group.nodes.ok()) return ids;
  for (const ListedNode& node : *group.nodes) {
    if (!node.deleting) ids.insert(node.InstanceId());
  }
  return ids;
}

// ---- rounds

void ScaleGroups::FindCollection(const std::string& api_version, const std::string& kind,
                                 const std::string& resource, const std::string& ns,
                                 PathDone done) {
  const std::string root = ApiRoot(api_version);
  if (!resource.empty()) return done(CollectionPathOf(root, ns, resource));
  api_->Get(
      root, callbacks_.Once<absl::StatusOr<Json>>([root, kind, api_version, ns,
                                                   done](const absl::StatusOr<Json>& discovered) {
        if (!discovered.ok()) {
          return done(WithSubject(absl::StrCat("discovery of ", api_version), discovered.status()));
        }
        const absl::StatusOr<std::string> plural = ResourceOf(*discovered, kind, api_version);
        if (!plural.ok()) return done(plural.status());
        done(CollectionPathOf(root, ns, *plural));
      }));
}

void ScaleGroups::FindPaths(const std::string& id, Done done) {
  const Group& group = groups_.at(id);
  const model::ScaleMark& mark = group.config.mark;
  if (group.path.empty()) {
    const model::ScaleGroup& of = group.config;
    return FindCollection(of.api_version, of.kind, of.resource, of.ns,
                          [this, id, done](const absl::StatusOr<std::string>& path) {
                            if (!path.ok()) return done(path.status());
                            Group& found = groups_.at(id);
                            found.path =
                                absl::StrCat(*path, "/", EscapePathPart(found.config.name));
                            FindPaths(id, done);
                          });
  }
  if (!group.mark_path.empty() || mark.key.empty()) return done(absl::OkStatus());
  if (mark.api_version.empty()) {
    groups_.at(id).mark_path = "/api/v1/nodes";
    return done(absl::OkStatus());
  }
  // The namespace follows with the name.
  FindCollection(mark.api_version, mark.kind, mark.resource, "",
                 [this, id, done](const absl::StatusOr<std::string>& path) {
                   if (!path.ok()) return done(path.status());
                   groups_.at(id).mark_path = *path;
                   done(absl::OkStatus());
                 });
}

void ScaleGroups::Refresh(Done done) {
  const auto open = std::make_shared<size_t>(groups_.size() + 1);
  const Then finish = [this, open, done] {
    if (--*open == 0) done(OfRound());
  };
  std::vector<std::string> ids;
  for (const auto& [id, group] : groups_) ids.push_back(id);
  for (const std::string& id : ids) {
    FindPaths(id, [this, id, finish](const absl::Status& status) {
      if (status.ok()) return ReadGroup(id, finish);
      groups_.at(id).replicas = WithSubject(id, status);
      groups_.at(id).nodes = WithSubject(id, status);
      finish();
    });
  }
  finish();
}

// What concerns all groups: the API server does not answer, or wants fewer calls.
absl::Status ScaleGroups::OfRound() const {
  for (const auto& [id, group] : groups_) {
    for (const absl::Status& status : {group.replicas.status(), group.nodes.status()}) {
      if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ScaleGroups::ReplicasIn(const Json& scale) {
  const std::string text = scale.TextAt({"spec", "replicas"});
  int64_t replicas = 0;
  if (text.empty() || absl::SimpleAtoi(text, &replicas)) return replicas;
  return absl::InvalidArgumentError(
      absl::StrCat("scale: spec.replicas: \"", text.substr(0, 40), "\" is not a whole number"));
}

void ScaleGroups::ReadGroup(const std::string& id, Then then) {
  api_->Get(
      absl::StrCat(groups_.at(id).path, "/scale"),
      callbacks_.Once<absl::StatusOr<Json>>([this, id, then](const absl::StatusOr<Json>& scale) {
        Group& group = groups_.at(id);
        group.replicas = scale.ok() ? ReplicasIn(*scale) : scale.status();
        if (!group.replicas.ok()) group.replicas = WithSubject(id, group.replicas.status());
        ReadNodes(id, [this, id, then] { Settle(id, then); });
      }));
}

void ScaleGroups::ReadNodes(const std::string& id, Then then) {
  api_->List(
      "/api/v1/nodes", SelectorText(groups_.at(id).config.node_selector),
      callbacks_.Once<absl::StatusOr<Json>>([this, id, then](const absl::StatusOr<Json>& list) {
        Group& group = groups_.at(id);
        if (!list.ok()) {
          group.nodes = WithSubject("list nodes", list.status());
          return then();
        }
        std::vector<ListedNode> nodes;
        for (const Json& item : list->items()) {
          ListedNode node;
          node.name = item.TextAt({"metadata", "name"});
          node.provider_id = item.TextAt({"spec", "providerID"});
          if (node.name.empty() || node.provider_id.size() > kLongestGroupText) continue;
          node.deleting = item.At({"metadata", "deletionTimestamp"}) != nullptr;
          node.record = item.TextAt({"metadata", "annotations", kRemovedFromAnnotation});
          for (const std::string& key :
               {group.config.mark.key, group.config.mark.name_annotation}) {
            const Json* const value = item.At({"metadata", "annotations", key});
            if (value != nullptr) node.annotations.Set(key, value->text());
          }
          nodes.push_back(std::move(node));
        }
        group.nodes = std::move(nodes);
        then();
      }));
}

// Records of unknown outcome; the last round's are forgotten with their nodes.
void ScaleGroups::Settle(const std::string& id, Then then) {
  Group& group = groups_.at(id);
  if (!group.nodes.ok()) return then();
  std::map<std::string, Settled> settled;
  std::map<std::string, std::string> open;
  for (const ListedNode& node : *group.nodes) {
    if (node.record.empty()) continue;
    const auto known = group.settled.find(node.name);
    if (known != group.settled.end() && known->second.record == node.record) {
      settled.insert(*known);
    } else {
      open[node.name] = node.record;
    }
  }
  group.settled = std::move(settled);
  if (open.empty()) return then();
  api_->Get(group.path,
            callbacks_.Once<absl::StatusOr<Json>>(
                [this, id, open, then](const absl::StatusOr<Json>& object) {
                  Group& of = groups_.at(id);
                  if (!object.ok()) {
                    of.replicas = WithSubject(id, object.status());  // nothing may be written
                    return then();
                  }
                  const std::string now = absl::StrCat(object->TextAt({"metadata", "uid"}), "/",
                                                       object->TextAt({"metadata", "generation"}));
                  const std::string uid = now.substr(0, now.find('/') + 1);
                  for (const auto& [node, record] : open) {
                    if (absl::StartsWith(record, uid)) of.settled[node] = {record, record != now};
                  }
                  then();
                }));
}

// ---- reads

void ScaleGroups::Groups(Answer<std::vector<CloudGroup>> answer) {
  std::vector<CloudGroup> list;
  for (const auto& [id, group] : groups_) {
    const model::ScaleGroup& config = group.config;
    list.push_back(GroupOfShape(config, known_type_, id, config.min_size, config.max_size));
  }
  answer(std::move(list));
}

void ScaleGroups::NodePrice(const CloudNode& node, Answer<double> answer) {
  const Group* const group = Find(node.name);
  if (group == nullptr) return answer(NoGroup(node.name));
  answer(PriceOfShape(group->config));
}

void ScaleGroups::TargetSize(const std::string& id, Answer<int64_t> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoGroup(id));
  answer(group->replicas);
}

void ScaleGroups::Nodes(const std::string& id, Answer<std::vector<CloudInstance>> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoGroup(id));
  if (!group->nodes.ok()) return answer(group->nodes.status());
  std::vector<CloudInstance> instances;
  for (const ListedNode& node : *group->nodes) {
    CloudInstance instance;
    instance.id = node.InstanceId();
    instance.placeholder = node.provider_id.empty();
    if (!instance.placeholder) instance.former_id = absl::StrCat(kReplicaPlacePrefix, node.name);
    instance.state = node.deleting          ? InstanceState::kDeleting
                     : instance.placeholder ? InstanceState::kCreating
                                            : InstanceState::kRunning;
    instances.push_back(std::move(instance));
  }
  answer(std::move(instances));
}

void ScaleGroups::TemplateNode(const std::string& id, Answer<model::Node> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoGroup(id));
  answer(TemplateOfShape(group->config, known_type_, id));  // NodePrice knows it by its name
}

}  // namespace fairlead::hook
