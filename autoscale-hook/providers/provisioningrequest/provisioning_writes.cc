// The calls of ProvisioningGroups that write (provisioning_groups.h has the rules).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/configured_shape.h"
#include "autoscale-hook/providers/groups/object_path.h"
#include "autoscale-hook/providers/provisioningrequest/provisioning_groups.h"

namespace fairlead::hook {

void ProvisioningGroups::Finish(const OperationPtr& op, const absl::Status& status) {
  if (std::exchange(op->over, true)) return;
  op->done(status);
}

// ---- purchases

void ProvisioningGroups::IncreaseSize(const std::string& id, const Increase& increase, Done done) {
  const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(done));
  op->increase = increase;
  const Group* const group = Find(id);
  if (group == nullptr) {
    return Finish(op, absl::NotFoundError(absl::StrCat("group ", id, " is not configured")));
  }
  if (increase.delta <= 0 || increase.delta > kMostPlaces || increase.token.empty()) {
    return Finish(op, absl::InvalidArgumentError(absl::StrCat(
                          "group ", id, ": machines that are ordered together: ", increase.delta,
                          ", and one ProvisioningRequest is made for 1 to ", kMostPlaces)));
  }
  const absl::StatusOr<model::Node> node = TemplateOfShape(group->config, known_type_, id);
  if (!node.ok()) return Finish(op, WithSubject(absl::StrCat("group ", id), node.status()));
  const MachinePod pod = MakeMachinePod(settings_, group->config, *node);
  op->pod_template = pod.name;
  const std::string path = CollectionPathOf("/api/v1", settings_.ns, "podtemplates");
  // Its name is made of its content: one that is there is the same.
  api_->Create(
      path, pod.body,
      callbacks_.Once<absl::StatusOr<Json>>([this, op, path](const absl::StatusOr<Json>& created) {
        if (!created.ok() && !absl::IsAlreadyExists(created.status())) {
          return Finish(op, OfObjectCall(created.status(), "create in " + path));
        }
        CreateRequest(op);
      }));
}

void ProvisioningGroups::CreateRequest(const OperationPtr& op) {
  if (op->expired) return Finish(op, GivenUp(*op));
  const std::string path = RequestPath("");
  api_->Create(
      path,
      MakeRequestBody(settings_, groups_.at(op->group).config, op->pod_template, op->increase),
      callbacks_.Once<absl::StatusOr<Json>>([this, op, path](const absl::StatusOr<Json>& created) {
        if (!absl::IsAlreadyExists(created.status())) {
          return Finish(op, created.ok() ? absl::OkStatus()
                                         : OfObjectCall(created.status(), "create in " + path));
        }
        api_->Get(
            RequestPath(RequestName(op->increase.token)),
            callbacks_.Once<absl::StatusOr<Json>>(
                [this, op](const absl::StatusOr<Json>& object) { CheckExisting(op, object); }));
      }));
}

// The same increase was carried out before, unless others have made the object.
void ProvisioningGroups::CheckExisting(const OperationPtr& op, const absl::StatusOr<Json>& object) {
  const std::string name = RequestName(op->increase.token);
  if (!object.ok()) {
    // Deleted meanwhile: the next attempt makes it.
    return Finish(op, OfMachineRead(object.status(), "read ProvisioningRequest " + name));
  }
  const absl::StatusOr<BoughtRequest> request = DecodeBoughtRequest(*object);
  if (!request.ok()) return Finish(op, request.status());
  const std::string maker = object->TextAt({"metadata", "labels", model::kMadeByLabel});
  if (maker != model::kProvisioningRequestProvider ||
      request->group != groups_.at(op->group).config.name ||
      static_cast<int64_t>(request->places.size()) != op->increase.delta) {
    return Finish(
        op,
        RefusedForGroup(op->group, absl::StrCat("ProvisioningRequest ", settings_.ns, "/", name,
                                                " is there, and is not of this order; delete it")));
  }
  if (request->deleting) {
    return Finish(op, absl::UnavailableError(
                          absl::StrCat("ProvisioningRequest ", name, " is being deleted")));
  }
  Finish(op, absl::OkStatus());
}

void ProvisioningGroups::DecreaseTargetSize(const std::string& id, int64_t /*delta*/, Done done) {
  done(RefusedForGroup(id, "every place belongs to a ProvisioningRequest, and goes with it"));
}

// ---- ends

void ProvisioningGroups::DeleteNodes(const std::string& id, const std::vector<CloudNode>& nodes,
                                     Done done) {
  const auto remove = [this, id](const CloudNode& node, Done then) {
    const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(then));
    op->instance = node.provider_id;
    const Group* const group = Find(id);
    if (group == nullptr || !group->read.ok()) {
      return Finish(op,
                    absl::UnavailableError(absl::StrCat("group ", id, " has not been read yet")));
    }
    if (const auto place = ParsePlaceId(node.provider_id); place.has_value()) {
      return TakeBackPlace(op, place->first, place->second);
    }
    const auto listed =
        std::find_if(group->nodes.begin(), group->nodes.end(), [&](const ListedNode& candidate) {
          return candidate.provider_id == node.provider_id && candidate.came_for.has_value();
        });
    if (listed == group->nodes.end()) {
      return Finish(op, absl::UnavailableError(absl::StrCat("group ", id, ": machine ",
                                                            node.provider_id, " is not listed")));
    }
    LetGo(listed->name, listed->provider_id,
          [this, op](const absl::Status& status) { Finish(op, status); });
  };
  RemoveEach(nodes, remove, done);
}

void ProvisioningGroups::TakeBackPlace(const OperationPtr& op, const std::string& name,
                                       size_t place) {
  const Group& group = groups_.at(op->group);
  const auto found = group.requests.find(name);
  // It went with another place of its request.
  if (found == group.requests.end() || place >= found->second.places.size() ||
      found->second.places[place] == '-') {
    return Finish(op, absl::OkStatus());
  }
  const BoughtRequest& request = found->second;
  if (request.places[place] == '+') {
    return Finish(op, absl::UnavailableError(absl::StrCat(
                          "group ", op->group, ": a node has come for place ", op->instance)));
  }
  if (!ErrorOf(request).error_code.empty()) return GiveUpPlaces(op, request);
  if (request.stage == RequestStage::kProvisioned) {
    return Finish(
        op, RefusedForGroup(
                op->group, absl::StrCat("ProvisioningRequest ", name, " is Provisioned, so the ",
                                        "machine is on its way; it is given back when its node has "
                                        "come, or if none comes within ",
                                        absl::FormatDuration(settings_.arrival_timeout))));
  }
  std::set<size_t>& unwanted = unwanted_[request.uid];
  unwanted.insert(place);
  const auto open = std::count(request.places.begin(), request.places.end(), '.');
  if (static_cast<int64_t>(unwanted.size()) < open) {
    return Finish(
        op, RefusedForGroup(
                op->group, absl::StrCat("ProvisioningRequest ", name, " asks for ", open,
                                        " machines whole, so it is taken back only if none of them "
                                        "is wanted; to go: ",
                                        unwanted.size())));
  }
  DeleteRequest(op, request);
}

// With the version that was read: it has not become Provisioned since.
void ProvisioningGroups::DeleteRequest(const OperationPtr& op, const BoughtRequest& request) {
  const std::string name = request.name, path = RequestPath(name);
  api_->Delete(
      path, request.uid, request.resource_version,
      callbacks_.Once<const absl::Status&>([this, op, name, path](const absl::Status& status) {
        if (!status.ok() && !absl::IsNotFound(status)) {
          return Finish(op, OfObjectCall(status, "delete " + path));
        }
        groups_.at(op->group).requests.erase(name);
        Finish(op, absl::OkStatus());
      }));
}

// All of them: none will come.
void ProvisioningGroups::GiveUpPlaces(const OperationPtr& op, const BoughtRequest& request) {
  if (request.places.find('+') == std::string::npos) return DeleteRequest(op, request);
  std::string places = request.places;
  std::replace(places.begin(), places.end(), '.', '-');
  const std::string name = request.name, path = RequestPath(name);
  api_->Patch(path, AnnotationPatch(request.resource_version, kPlacesAnnotation, places),
              callbacks_.Once<absl::StatusOr<Json>>([this, op, name, path,
                                                     places](const absl::StatusOr<Json>& written) {
                if (!written.ok()) {
                  return Finish(op, OfMachineRead(written.status(), "patch " + path));
                }
                auto& requests = groups_.at(op->group).requests;
                if (const auto kept = requests.find(name); kept != requests.end()) {
                  kept->second.places = kept->second.recorded_places = places;
                  kept->second.resource_version = written->TextAt({"metadata", "resourceVersion"});
                }
                Finish(op, absl::OkStatus());
              }));
}

}  // namespace fairlead::hook
