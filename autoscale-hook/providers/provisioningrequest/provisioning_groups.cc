#include "autoscale-hook/providers/provisioningrequest/provisioning_groups.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/configured_shape.h"
#include "autoscale-hook/providers/groups/object_path.h"
#include "base/json_writer.h"

namespace fairlead::hook {
namespace {

constexpr size_t kLongestProviderId = 2048;
constexpr char kProvisioningRequests[] = "provisioningrequests";
constexpr char kNodeRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests/";

absl::Status NoSuchGroup(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("group ", id, " is not configured"));
}

// Another program was faster: the next round sees what it has done.
bool IsOvertaken(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status);
}

}  // namespace

GroupsOptions ProvisioningRequestOptions() {
  GroupsOptions options;
  options.words = {.provider = model::kProvisioningRequestProvider,
                   .source = "the configuration",
                   .no_template = "the configuration has none, so the group is not offered",
                   .no_price = "the configuration has no priceUSDPerHour",
                   .give_price =
                       "set priceUSDPerHour, or add the type with its price to the "
                       "catalogue",
                   .restore = "add it to provisioningRequest.groups again"};
  options.poll = absl::Seconds(15);
  options.poll_open = absl::Seconds(5);
  options.one_increase_per_set = true;
  return options;
}

ProvisioningGroups::ProvisioningGroups(const model::ProvisioningSettings& settings,
                                       KnownType known_type, ObjectApi* api, Scheduler* scheduler)
    : settings_(settings), known_type_(std::move(known_type)), api_(api), scheduler_(scheduler) {
  for (const model::ProvisioningGroup& config : settings_.groups) {
    groups_[config.Id()].config = config;
  }
}

std::string ProvisioningGroups::RequestPath(const std::string& name) const {
  const std::string path = CollectionPathOf(kRequestsRoot, settings_.ns, kProvisioningRequests);
  return name.empty() ? path : absl::StrCat(path, "/", EscapePathPart(name));
}

ProvisioningGroups::Group* ProvisioningGroups::Find(const std::string& id) {
  const auto place = groups_.find(id);
  return place == groups_.end() ? nullptr : &place->second;
}

// ---- rounds

void ProvisioningGroups::Refresh(Done done) {
  const std::string path = RequestPath("");
  api_->List(path, absl::StrCat(model::kMadeByLabel, "=", model::kProvisioningRequestProvider),
             callbacks_.Once<absl::StatusOr<Json>>(
                 [this, path, done = std::move(done)](const absl::StatusOr<Json>& list) {
                   if (!list.ok()) {
                     for (auto& [id, group] : groups_) {
                       group.read = WithSubject("list " + path, list.status());
                     }
                     return done(OfRound());
                   }
                   TakeRequests(*list);
                   StartClocks();
                   const auto open = std::make_shared<size_t>(groups_.size() + 1);
                   const Then finish = [this, open, done] {
                     if (--*open > 0) return;
                     ForgetReleased();
                     done(OfRound());
                   };
                   std::vector<std::string> ids;
                   for (const auto& [id, group] : groups_) ids.push_back(id);
                   for (const std::string& id : ids) ReadNodes(id, finish);
                   finish();
                 }));
}

// What concerns all groups: the API server does not answer, or wants fewer calls.
absl::Status ProvisioningGroups::OfRound() const {
  for (const auto& [id, group] : groups_) {
    if (absl::IsUnavailable(group.read) || absl::IsResourceExhausted(group.read)) {
      return group.read;
    }
  }
  return absl::OkStatus();
}

void ProvisioningGroups::ForgetReleased() {
  std::set<std::string> there;
  for (const auto& [id, group] : groups_) {
    if (!group.read.ok()) return;
    for (const ListedNode& node : group.nodes) there.insert(node.provider_id);
  }
  std::erase_if(released_, [&](const std::string& id) { return !there.contains(id); });
}

void ProvisioningGroups::TakeRequests(const Json& list) {
  std::map<std::string, Group*> by_name;
  for (auto& [id, group] : groups_) {
    group.read = absl::OkStatus();
    group.requests.clear();
    by_name[group.config.name] = &group;
  }
  for (const Json& item : list.items()) {
    const auto group = by_name.find(item.TextAt({"metadata", "labels", kProvisioningGroupLabel}));
    if (group == by_name.end()) continue;
    absl::StatusOr<BoughtRequest> request = DecodeBoughtRequest(item);
    if (!request.ok()) {
      group->second->read = request.status();
    } else if (!request->deleting) {
      const std::string name = request->name;
      group->second->requests[name] = *std::move(request);
    }
  }
}

// A request that says something else than before begins anew.
void ProvisioningGroups::StartClocks() {
  std::set<std::string> there;
  for (const auto& [id, group] : groups_) {
    for (const auto& [name, request] : group.requests) {
      there.insert(request.uid);
      const auto [place, added] = clocks_.try_emplace(request.uid);
      Clock& clock = place->second;
      if (clock.stage == request.stage) continue;
      clock = {request.stage, ++last_clock_, false};
      absl::Duration patience = absl::InfiniteDuration();
      if (request.stage == RequestStage::kNoCapacity) patience = settings_.capacity_wait;
      if (request.stage == RequestStage::kProvisioned) patience = settings_.arrival_timeout;
      if (patience == absl::InfiniteDuration()) continue;
      clock.over = patience == absl::ZeroDuration();
      if (clock.over) continue;
      const auto end = callbacks_.Once<std::pair<std::string, uint64_t>>([this](const auto& which) {
        const auto running = clocks_.find(which.first);
        if (running != clocks_.end() && running->second.number == which.second) {
          running->second.over = true;
        }
      });
      scheduler_->After(patience,
                        [end, uid = request.uid, number = clock.number] { end({uid, number}); });
    }
  }
  std::erase_if(clocks_, [&](const auto& entry) { return !there.contains(entry.first); });
  std::erase_if(unwanted_, [&](const auto& entry) { return !there.contains(entry.first); });
}

void ProvisioningGroups::ReadNodes(const std::string& id, Then then) {
  api_->List(
      "/api/v1/nodes", SelectorText(groups_.at(id).config.node_selector),
      callbacks_.Once<absl::StatusOr<Json>>([this, id, then](const absl::StatusOr<Json>& list) {
        Group& group = groups_.at(id);
        if (!list.ok()) {
          group.read = WithSubject("list nodes", list.status());
          return then();
        }
        group.nodes.clear();
        for (const Json& item : list->items()) {
          ListedNode node;
          node.name = item.TextAt({"metadata", "name"});
          node.provider_id = item.TextAt({"spec", "providerID"});
          if (node.name.empty() || node.provider_id.empty()) continue;
          if (node.provider_id.size() > kLongestProviderId) continue;
          node.resource_version = item.TextAt({"metadata", "resourceVersion"});
          std::string error;
          if (!absl::ParseTime(absl::RFC3339_full, item.TextAt({"metadata", "creationTimestamp"}),
                               &node.creation, &error)) {
            continue;
          }
          node.deleting = item.At({"metadata", "deletionTimestamp"}) != nullptr;
          node.came_for =
              ParsePlaceName(item.TextAt({"metadata", "annotations", kCameForAnnotation}));
          node.ordered_by = item.TextAt({"metadata", "annotations", kOrderedByAnnotation});
          group.nodes.push_back(std::move(node));
        }
        std::sort(group.nodes.begin(), group.nodes.end(),
                  [](const ListedNode& a, const ListedNode& b) {
                    return std::tie(a.creation, a.name) < std::tie(b.creation, b.name);
                  });
        if (!group.read.ok()) return then();  // a request cannot be read: nothing is decided
        TakePlaces(group);
        TakeArrivals(id, ArrivalsOf(group), [this, id, then] {
          Group& of = groups_.at(id);
          std::vector<std::string> changed;
          for (const auto& [name, request] : of.requests) {
            if (request.places != request.recorded_places) changed.push_back(name);
          }
          RecordPlaces(id, changed, [this, id, then] {
            DeleteFinished(id, [this, id, then] { CheckOneNode(id, then); });
          });
        });
      }));
}

// What nodes say about the places of requests counts before what the requests have recorded.
void ProvisioningGroups::TakePlaces(Group& group) {
  for (const ListedNode& node : group.nodes) {
    if (!node.came_for.has_value()) continue;
    const auto request = group.requests.find(node.came_for->first);
    if (request == group.requests.end()) continue;
    if (node.came_for->second < request->second.places.size()) {
      request->second.places[node.came_for->second] = '+';
    }
  }
}

std::vector<ProvisioningGroups::Arrival> ProvisioningGroups::ArrivalsOf(const Group& group) {
  std::vector<const BoughtRequest*> waiting;
  for (const auto& [name, request] : group.requests) {
    if (request.stage == RequestStage::kProvisioned) waiting.push_back(&request);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const auto* a, const auto* b) { return a->creation < b->creation; });
  std::vector<Arrival> places;
  for (const BoughtRequest* request : waiting) {
    for (size_t i = 0; i < request->places.size(); ++i) {
      if (request->places[i] == '.')
        places.push_back({"", request->name, i, request->ordered_by[i]});
    }
  }
  std::vector<Arrival> arrivals;
  for (const ListedNode& node : group.nodes) {
    if (arrivals.size() == std::min(places.size(), kArrivalsPerRound)) break;
    if (node.came_for.has_value() || node.deleting) continue;
    // Times are whole seconds, and no machine boots in one. The oldest place is first: if the node
    // is older than that one, it is older than all.
    Arrival arrival = places[arrivals.size()];
    if (node.creation <= group.requests.at(arrival.request).creation) continue;
    arrival.node = node.name;
    arrivals.push_back(std::move(arrival));
  }
  return arrivals;
}

// One after another, the last one first.
void ProvisioningGroups::TakeArrivals(const std::string& id, std::vector<Arrival> arrivals,
                                      Then then) {
  if (arrivals.empty()) return then();
  const Arrival arrival = arrivals.back();
  arrivals.pop_back();
  const std::vector<ListedNode>& nodes = groups_.at(id).nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const ListedNode& listed) {
    return listed.name == arrival.node;
  });
  if (node == nodes.end()) return TakeArrivals(id, std::move(arrivals), std::move(then));
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.Field("resourceVersion", node->resource_version).Key("annotations").BeginObject();
  json.Field(kHoldAnnotation, "true");
  json.Field(kCameForAnnotation, PlaceName(arrival.request, arrival.place));
  json.Field(kOrderedByAnnotation, arrival.ordered_by);
  json.EndObject().EndObject().EndObject();
  const std::string path = absl::StrCat("/api/v1/nodes/", EscapePathPart(arrival.node));
  api_->Patch(path, json.Take(),
              callbacks_.Once<absl::StatusOr<Json>>(
                  [this, id, path, arrival, arrivals, then](const absl::StatusOr<Json>& written) {
                    Group& group = groups_.at(id);
                    const absl::Status status = written.status();
                    if (!status.ok() && !IsOvertaken(status)) {
                      group.read = WithSubject("patch " + path, status);
                      return then();
                    }
                    for (ListedNode& listed : group.nodes) {
                      if (status.ok() && listed.name == arrival.node) {
                        listed.came_for = {arrival.request, arrival.place};
                      }
                    }
                    TakePlaces(group);
                    TakeArrivals(id, arrivals, then);
                  }));
}

void ProvisioningGroups::RecordPlaces(const std::string& id, std::vector<std::string> requests,
                                      Then then) {
  if (requests.empty()) return then();
  const std::string name = requests.back();
  requests.pop_back();
  const std::map<std::string, BoughtRequest>& known = groups_.at(id).requests;
  const auto request = known.find(name);
  if (request == known.end()) return RecordPlaces(id, std::move(requests), std::move(then));
  const std::string path = RequestPath(name), places = request->second.places;
  api_->Patch(path, AnnotationPatch(request->second.resource_version, kPlacesAnnotation, places),
              callbacks_.Once<absl::StatusOr<Json>>([this, id, path, name, places, requests,
                                                     then](const absl::StatusOr<Json>& written) {
                Group& group = groups_.at(id);
                if (!written.ok() && !IsOvertaken(written.status())) {
                  group.read = WithSubject("patch " + path, written.status());
                  return then();
                }
                const auto kept = group.requests.find(name);
                if (written.ok() && kept != group.requests.end()) {
                  kept->second.recorded_places = places;
                  kept->second.resource_version = written->TextAt({"metadata", "resourceVersion"});
                }
                RecordPlaces(id, requests, then);
              }));
}

// One in a round: the next round sees to the others, and to a failure. The API server deletes what
// stays after its NodeRequests.
void ProvisioningGroups::DeleteFinished(const std::string& id, Then then) {
  Group& group = groups_.at(id);
  std::set<std::string> needed;
  for (const ListedNode& node : group.nodes) {
    if (node.came_for.has_value() && !released_.contains(node.provider_id)) {
      needed.insert(node.came_for->first);
    }
  }
  for (const auto& [name, request] : group.requests) {
    if (request.HasOpenPlace() || needed.contains(name)) continue;
    const std::string of = name;
    return api_->Delete(
        RequestPath(name), request.uid, request.resource_version,
        callbacks_.Once<const absl::Status&>([this, id, of, then](const absl::Status& status) {
          if (status.ok()) groups_.at(id).requests.erase(of);
          then();
        }));
  }
  then();
}

// A node of which no NodeRequest knows would be kept for good.
void ProvisioningGroups::CheckOneNode(const std::string& id, Then then) {
  Group& group = groups_.at(id);
  const ListedNode* next = nullptr;  // by name, after the one that was checked last, or the first
  for (const ListedNode& node : group.nodes) {
    if (!node.came_for.has_value() || node.ordered_by.empty() || node.deleting) continue;
    if (released_.contains(node.provider_id)) continue;
    const auto rank = [&](const ListedNode& of) {
      return std::pair(of.name <= group.checked, absl::string_view(of.name));
    };
    if (next == nullptr || rank(node) < rank(*next)) next = &node;
  }
  if (next == nullptr) return then();
  group.checked = next->name;
  api_->Get(absl::StrCat(kNodeRequests, EscapePathPart(next->ordered_by)),
            callbacks_.Once<absl::StatusOr<Json>>([this, name = next->name,
                                                   provider_id = next->provider_id,
                                                   then](const absl::StatusOr<Json>& request) {
              if (!absl::IsNotFound(request.status())) return then();
              // A failure shows when it is checked again.
              LetGo(name, provider_id, [then](const absl::Status&) { then(); });
            }));
}

void ProvisioningGroups::LetGo(const std::string& node, const std::string& provider_id, Done done) {
  const std::string path = absl::StrCat("/api/v1/nodes/", EscapePathPart(node));
  api_->Patch(path, AnnotationPatch("", kHoldAnnotation, std::nullopt),
              callbacks_.Once<absl::StatusOr<Json>>(
                  [this, path, provider_id, done](const absl::StatusOr<Json>& written) {
                    if (!written.ok() && !absl::IsNotFound(written.status())) {
                      return done(OfObjectCall(written.status(), "patch " + path));
                    }
                    released_.insert(provider_id);
                    done(absl::OkStatus());
                  }));
}

// ---- reads

CloudInstance ProvisioningGroups::ErrorOf(const BoughtRequest& request) const {
  CloudInstance error;
  const auto clock = clocks_.find(request.uid);
  const bool over = clock != clocks_.end() && clock->second.over;
  const auto fail = [&](FailureClass failure, const std::string& code, const std::string& text) {
    error.failure = failure;
    error.error_code = code;
    error.error_message = text;
  };
  switch (request.stage) {
    case RequestStage::kWaiting:
      break;
    case RequestStage::kNoCapacity:
      if (over) fail(request.failure, request.reason, request.message);
      break;
    case RequestStage::kFound:
      fail(request.failure, request.reason,
           absl::StrCat("the autoscaler holds that nodes have room, and makes none: ",
                        request.message));
      break;
    case RequestStage::kProvisioned:
      if (over) {
        fail(FailureClass::kTimeout, "NoNode",
             absl::StrCat("no node has come within ",
                          absl::FormatDuration(settings_.arrival_timeout),
                          " of the condition Provisioned"));
      }
      break;
    case RequestStage::kFailed:
      fail(request.failure, request.reason, request.message);
      break;
  }
  return error;
}

std::vector<CloudInstance> ProvisioningGroups::InstancesOf(const Group& group) const {
  std::vector<CloudInstance> instances;
  for (const auto& [name, request] : group.requests) {
    CloudInstance place = ErrorOf(request);
    place.state = InstanceState::kCreating;
    place.placeholder = place.ordered = true;
    for (size_t i = 0; i < request.places.size(); ++i) {
      if (request.places[i] != '.') continue;
      place.id = PlaceId(name, i);
      instances.push_back(place);
    }
  }
  for (const ListedNode& node : group.nodes) {
    if (!node.came_for.has_value()) continue;
    CloudInstance machine;
    machine.id = node.provider_id;
    machine.former_id = PlaceId(node.came_for->first, node.came_for->second);
    machine.ordered = true;
    const bool ends = node.deleting || released_.contains(node.provider_id);
    machine.state = ends ? InstanceState::kDeleting : InstanceState::kRunning;
    instances.push_back(std::move(machine));
  }
  return instances;
}

void ProvisioningGroups::Groups(Answer<std::vector<CloudGroup>> answer) {
  std::vector<CloudGroup> list;
  for (const auto& [id, group] : groups_) {
    list.push_back(GroupOfShape(group.config, known_type_, id, 0, group.config.max_size));
  }
  answer(std::move(list));
}

void ProvisioningGroups::NodePrice(const CloudNode& node, Answer<double> answer) {
  const Group* const group = Find(node.name);
  if (group == nullptr) return answer(NoSuchGroup(node.name));
  answer(PriceOfShape(group->config));
}

void ProvisioningGroups::TargetSize(const std::string& id, Answer<int64_t> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoSuchGroup(id));
  if (!group->read.ok()) return answer(group->read);
  const std::vector<CloudInstance> instances = InstancesOf(*group);
  answer(std::count_if(instances.begin(), instances.end(), [](const CloudInstance& instance) {
    return instance.state != InstanceState::kDeleting;
  }));
}

void ProvisioningGroups::Nodes(const std::string& id, Answer<std::vector<CloudInstance>> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoSuchGroup(id));
  if (!group->read.ok()) return answer(group->read);
  answer(InstancesOf(*group));
}

void ProvisioningGroups::TemplateNode(const std::string& id, Answer<model::Node> answer) {
  const Group* const group = Find(id);
  if (group == nullptr) return answer(NoSuchGroup(id));
  answer(TemplateOfShape(group->config, known_type_, id));  // NodePrice knows it by its name
}

}  // namespace fairlead::hook
