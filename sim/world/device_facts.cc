#include "sim/world/device_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fairlead::sim::world {
namespace {

// Null where the path leads nowhere.
const Json* At(const Json& object, const std::vector<const char*>& path) {
  const Json* at = &object;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string Text(const Json& object, const std::vector<const char*>& path) {
  const Json* const value = At(object, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

int64_t Number(const Json& object, const std::vector<const char*>& path, int64_t otherwise) {
  const Json* const value = At(object, path);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : otherwise;
}

// An empty list where there is none.
const Json& List(const Json& object, const std::vector<const char*>& path) {
  static const auto* const kNone = new Json(Json::array());
  const Json* const value = At(object, path);
  return value != nullptr && value->is_array() ? *value : *kNone;
}

std::vector<std::string> Selectors(const Json& list) {
  std::vector<std::string> out;
  for (const Json& selector : list) out.push_back(Text(selector, {"cel", "expression"}));
  return out;
}

bool TermMatches(absl::string_view term, const std::string& driver, const DeviceFacts& device) {
  const std::vector<absl::string_view> words = absl::StrSplit(term, absl::MaxSplits(' ', 2));
  if (words.size() != 3 || (words[1] != "==" && words[1] != "!=")) return false;
  absl::string_view subject = words[0];
  std::string value;
  if (subject == "device.driver") {
    value = absl::StrCat("\"", driver, "\"");
  } else {
    const std::string domain = absl::StrCat("device.attributes[\"", driver, "\"].");
    if (!absl::ConsumePrefix(&subject, domain)) return false;
    const auto found = device.attributes.find(std::string(subject));
    if (found == device.attributes.end()) return false;
    value = found->second;
  }
  return (value == words[2]) == (words[1] == "==");
}

}  // namespace

std::vector<PodClaim> ReadPodClaims(const Json& pod) {
  std::vector<PodClaim> out;
  for (const Json& entry : List(pod, {"spec", "resourceClaims"})) {
    PodClaim claim{Text(entry, {"name"}), Text(entry, {"resourceClaimName"}), false};
    claim.generated = claim.claim.empty();
    if (claim.generated) {
      for (const Json& status : List(pod, {"status", "resourceClaimStatuses"})) {
        if (Text(status, {"name"}) == claim.name) claim.claim = Text(status, {"resourceClaimName"});
      }
    }
    out.push_back(std::move(claim));
  }
  return out;
}

SliceFacts ReadSlice(const Json& slice) {
  SliceFacts out;
  out.name = Text(slice, {"metadata", "name"});
  out.node = Text(slice, {"spec", "nodeName"});
  out.driver = Text(slice, {"spec", "driver"});
  out.pool = Text(slice, {"spec", "pool", "name"});
  out.generation = Number(slice, {"spec", "pool", "generation"}, 0);
  for (const Json& device : List(slice, {"spec", "devices"})) {
    DeviceFacts& facts = out.devices.emplace_back();
    facts.name = Text(device, {"name"});
    const Json* const attributes = At(device, {"attributes"});
    if (attributes == nullptr) continue;
    // {"string": "a"} and {"int": 5}
    for (auto it = attributes->begin(); it != attributes->end(); ++it) {
      if (it->is_object() && !it->empty()) facts.attributes[it.key()] = it->begin()->dump();
    }
  }
  return out;
}

bool ClaimFacts::IsReservedFor(const std::string& uid_of_pod) const {
  return std::find(reserved.begin(), reserved.end(), uid_of_pod) != reserved.end();
}

ClaimFacts ReadClaim(const Json& claim) {
  ClaimFacts out;
  out.ns = Text(claim, {"metadata", "namespace"});
  out.name = Text(claim, {"metadata", "name"});
  out.uid = Text(claim, {"metadata", "uid"});
  for (const Json& owner : List(claim, {"metadata", "ownerReferences"})) {
    if (Text(owner, {"kind"}) == "Pod") out.owner = Text(owner, {"uid"});
  }
  out.deleting = At(claim, {"metadata", "deletionTimestamp"}) != nullptr;
  for (const Json& finalizer : List(claim, {"metadata", "finalizers"})) {
    if (finalizer == kClaimFinalizer) out.protected_by_finalizer = true;
  }
  for (const Json& request : List(claim, {"spec", "devices", "requests"})) {
    out.ask.device_class = Text(request, {"exactly", "deviceClassName"});
    out.ask.count = Number(request, {"exactly", "count"}, 1);
    out.ask.selectors = Selectors(List(request, {"exactly", "selectors"}));
  }
  out.allocated = At(claim, {"status", "allocation"}) != nullptr;
  for (const Json& device : List(claim, {"status", "allocation", "devices", "results"})) {
    out.devices.push_back(absl::StrCat(Text(device, {"driver"}), "/", Text(device, {"pool"}), "/",
                                       Text(device, {"device"})));
  }
  for (const Json& term :
       List(claim, {"status", "allocation", "nodeSelector", "nodeSelectorTerms"})) {
    for (const Json& field : List(term, {"matchFields"})) {
      for (const Json& value : List(field, {"values"})) out.node = value.get<std::string>();
    }
  }
  for (const Json& consumer : List(claim, {"status", "reservedFor"})) {
    out.reserved.push_back(Text(consumer, {"uid"}));
  }
  return out;
}

std::vector<std::string> ReadClassSelectors(const Json& device_class) {
  return Selectors(List(device_class, {"spec", "selectors"}));
}

bool SelectorMatches(absl::string_view selector, const std::string& driver,
                     const DeviceFacts& device) {
  const std::vector<absl::string_view> terms = absl::StrSplit(selector, " && ");
  return std::all_of(terms.begin(), terms.end(), [&](absl::string_view term) {
    return TermMatches(absl::StripAsciiWhitespace(term), driver, device);
  });
}

}  // namespace fairlead::sim::world
