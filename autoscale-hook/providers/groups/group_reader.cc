#include "autoscale-hook/providers/groups/group_reader.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

std::string KeyOfGroup(const std::string& id) { return absl::StrCat("group\n", id, "\n"); }
std::string KeyOfField(const std::string& id, absl::string_view field) {
  return absl::StrCat(KeyOfGroup(id), field);
}
absl::Status OfGroup(const std::string& id, const absl::Status& status) {
  return {status.code(), absl::StrCat("group ", id, ": ", status.message())};
}

}  // namespace

void GroupReader::Problem(const std::string& id, absl::string_view field,
                          const absl::Status& status) {
  outbox_->Problem(KeyOfField(id, field), OfGroup(id, status));
}

void GroupReader::Read(std::function<void(const absl::Status&)> done) {
  done_ = std::move(done);
  candidates_.clear();
  groups_->Refresh(guard_->Once<absl::Status>("Refresh", [this](const absl::Status& status) {
    if (!status.ok()) return std::exchange(done_, nullptr)(status);
    ReadGroups();
  }));
}

void GroupReader::ReadGroups() {
  using List = absl::StatusOr<std::vector<CloudGroup>>;
  groups_->Groups(guard_->Once<List>("NodeGroups", [this](const List& groups) {
    if (!groups.ok()) return std::exchange(done_, nullptr)(groups.status());
    TakeGroups(*groups);
    gpu_label_.has_value() ? ReadEachGroup() : ReadGpuLabel();
  }));
}

void GroupReader::TakeGroups(const std::vector<CloudGroup>& groups) {
  std::map<std::string, int> times;
  for (const CloudGroup& group : groups) ++times[group.id];
  if (times.erase("") > 0) {
    outbox_->Problem("groups", absl::InvalidArgumentError("groups: a group has no id"));
  } else {
    outbox_->Solved("groups");
  }
  for (const CloudGroup& group : groups) {
    if (group.id.empty()) continue;
    const absl::Status wrong =
        times[group.id] > 1
            ? absl::InvalidArgumentError(absl::StrCat("id: listed times: ", times[group.id]))
        : group.wrong.ok() ? CheckGroup(group)
                           : group.wrong;
    if (!wrong.ok()) {
      Problem(group.id, "list", wrong);
      continue;
    }
    outbox_->Solved(KeyOfField(group.id, "list"));
    GroupView& view = views_[group.id];
    view.template_due = view.template_due || view.group != group;
    view.group = group;
  }
  for (auto it = views_.begin(); it != views_.end();) {
    if (times.contains(it->first)) {
      ++it;
    } else {
      outbox_->SolvedAll(KeyOfGroup(it->first));
      it = views_.erase(it);
    }
  }
}

void GroupReader::ReadGpuLabel() {
  using Label = absl::StatusOr<std::string>;
  groups_->GpuLabel(guard_->Once<Label>("GPULabel", [this](const Label& label) {
    if (label.ok()) gpu_label_ = *label;
    if (absl::IsUnimplemented(label.status())) gpu_label_ = "";
    ReadEachGroup();
  }));
}

void GroupReader::ReadEachGroup() {
  std::vector<std::string> ids;
  for (const auto& [id, view] : views_) ids.push_back(id);
  open_ = ids.size() + 1;
  for (const std::string& id : ids) ReadTemplate(id);
  FinishOne();
}

void GroupReader::ReadTemplate(const std::string& id) {
  if (!views_[id].template_due) return ReadPrice(id);
  using Template = absl::StatusOr<model::Node>;
  groups_->TemplateNode(
      id, guard_->Once<Template>("NodeGroupTemplateNodeInfo", [this, id](const Template& node) {
        const absl::Status status = node.ok() ? CheckTemplate(*node) : node.status();
        GroupView& view = views_[id];
        if (status.ok()) {
          view.node = *node;
          view.template_due = view.priceless = false;
          outbox_->Solved(KeyOfField(id, "template"));
        } else if (absl::IsUnimplemented(status)) {
          Problem(id, "template",
                  absl::FailedPreconditionError(
                      absl::StrCat("template: ", outbox_->words().no_template)));
        } else {
          Problem(id, "template", status);
        }
        ReadPrice(id);
      }));
}

void GroupReader::ReadPrice(const std::string& id) {
  const GroupView& view = views_[id];
  if (!view.node.has_value() || view.priceless) return ReadTarget(id);
  using Price = absl::StatusOr<double>;
  const CloudNode node = {view.node->provider_id, view.node->meta.name, view.node->meta.labels};
  groups_->NodePrice(node, guard_->Once<Price>("PricingNodePrice", [this, id](const Price& told) {
    GroupView& of = views_[id];
    if (absl::IsUnimplemented(told.status())) {
      of.priceless = true;
      of.price.reset();
      outbox_->Solved(KeyOfField(id, "server price"));
      return ReadTarget(id);
    }
    const auto price =
        told.ok() ? CheckPrice(*told) : absl::StatusOr<std::optional<int64_t>>(told.status());
    if (price.ok()) {
      of.price = *price;
      outbox_->Solved(KeyOfField(id, "server price"));
    } else {
      Problem(id, "server price", price.status());
    }
    ReadTarget(id);
  }));
}

void GroupReader::ReadTarget(const std::string& id) {
  using Size = absl::StatusOr<int64_t>;
  groups_->TargetSize(id, guard_->Once<Size>("NodeGroupTargetSize", [this, id](const Size& size) {
    const absl::Status status = size.ok() ? CheckTargetSize(*size) : size.status();
    if (!status.ok()) return Finish(id, status);
    ReadNodes(id, *size);
  }));
}

void GroupReader::ReadNodes(const std::string& id, int64_t target) {
  using List = absl::StatusOr<std::vector<CloudInstance>>;
  groups_->Nodes(id, guard_->Once<List>("NodeGroupNodes", [this, id, target](List list) {
    if (!list.ok()) return Finish(id, list.status());
    absl::StatusOr<InstanceMap> instances = CheckInstances(*std::move(list));
    if (!instances.ok()) return Finish(id, instances.status());
    candidates_[id] = {target, *std::move(instances)};
    Finish(id, absl::OkStatus());
  }));
}

void GroupReader::Finish(const std::string& id, const absl::Status& status) {
  views_[id].status = OfGroup(id, status);
  FinishOne();
}

void GroupReader::FinishOne() {
  if (--open_ > 0) return;
  RefuseShared();
  for (auto& [id, view] : views_) {
    if (!view.status.ok()) {
      outbox_->Problem(KeyOfField(id, "sizes"), view.status);
      continue;
    }
    outbox_->Solved(KeyOfField(id, "sizes"));
    Candidate& candidate = candidates_[id];
    view.target = candidate.target;
    view.instances = std::move(candidate.instances);
  }
  candidates_.clear();
  std::exchange(done_, nullptr)(absl::OkStatus());
}

// An instance that two groups list belongs to neither of them: both lists are refused. Of a group
// that was not read now the last list counts.
void GroupReader::RefuseShared() {
  std::map<absl::string_view, const std::string*> group_of;
  std::map<std::string, absl::Status> refused;
  for (const auto& [id, view] : views_) {
    const auto candidate = candidates_.find(id);
    for (const auto& [instance, unused] :
         candidate == candidates_.end() ? view.instances : candidate->second.instances) {
      const auto [place, added] = group_of.try_emplace(instance, &id);
      if (added) continue;
      for (const std::string& group : {id, *place->second}) {
        refused.try_emplace(group, absl::InvalidArgumentError(absl::StrCat(
                                       "group ", group, ": instances: ", instance, " is in groups ",
                                       *place->second, " and ", id)));
      }
    }
  }
  for (const auto& [group, status] : refused) {
    if (views_[group].status.ok()) views_[group].status = status;
  }
}

std::shared_ptr<const Catalog> GroupReader::TakeOffers() {
  std::vector<InstanceType> types;
  for (const auto& [id, view] : views_) {
    if (!view.node.has_value()) continue;
    const absl::string_view name = view.node->meta.labels.Get(model::kInstanceTypeLabel);
    const InstanceType* known = known_type_ == nullptr ? nullptr : known_type_(name);
    types.push_back(
        MakeInstanceType({id, &*view.node, view.price, gpu_label_.value_or(""), known}));
    if (HasPrice(types.back())) {
      outbox_->Solved(KeyOfField(id, "price"));
      continue;
    }
    types.pop_back();
    const std::string missing =
        name.empty() ? std::string("and its template has no label node.kubernetes.io/instance-type")
                     : absl::StrCat("and no type \"", name, "\" in the catalogue has one");
    Problem(id, "price",
            absl::FailedPreconditionError(absl::StrCat("price: ", outbox_->words().no_price, ", ",
                                                       missing, ", so the group is not offered; ",
                                                       outbox_->words().give_price)));
  }
  if (offers_ != nullptr && SameTypes(offers_->types(), types)) return nullptr;
  offers_ = std::make_shared<const Catalog>(Catalog::FromTypes(std::move(types)));
  return offers_;
}

}  // namespace fairlead::hook
