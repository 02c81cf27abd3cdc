#include "sim/world/device_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

std::vector<std::string> Selectors(const Json& list) {
  std::vector<std::string> out;
  for (const Json& selector : list) out.push_back(TextAt(selector, {"cel", "expression"}));
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
  int64_t devices = 0;
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    const std::string text = TextAt(container, {"resources", "requests", kExtendedResource});
    int64_t asked = 0;
    if (absl::SimpleAtoi(text, &asked)) devices += asked;
  }
  if (devices > 0) {
    out.push_back({"extended",
                   TextAt(pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"}),
                   true, devices});
  }
  for (const Json& entry : ItemsAt(pod, {"spec", "resourceClaims"})) {
    PodClaim claim{TextAt(entry, {"name"}), TextAt(entry, {"resourceClaimName"}), false, 0};
    claim.generated = claim.claim.empty();
    if (claim.generated) {
      for (const Json& status : ItemsAt(pod, {"status", "resourceClaimStatuses"})) {
        if (TextAt(status, {"name"}) == claim.name)
          claim.claim = TextAt(status, {"resourceClaimName"});
      }
    }
    out.push_back(std::move(claim));
  }
  return out;
}

SliceFacts ReadSlice(const Json& slice) {
  SliceFacts out;
  out.name = TextAt(slice, {"metadata", "name"});
  out.node = TextAt(slice, {"spec", "nodeName"});
  out.driver = TextAt(slice, {"spec", "driver"});
  out.pool = TextAt(slice, {"spec", "pool", "name"});
  out.generation = IntAt(slice, {"spec", "pool", "generation"}, 0);
  for (const Json& device : ItemsAt(slice, {"spec", "devices"})) {
    DeviceFacts& facts = out.devices.emplace_back();
    facts.name = TextAt(device, {"name"});
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
  out.ns = TextAt(claim, {"metadata", "namespace"});
  out.name = TextAt(claim, {"metadata", "name"});
  out.uid = TextAt(claim, {"metadata", "uid"});
  for (const Json& owner : ItemsAt(claim, {"metadata", "ownerReferences"})) {
    if (TextAt(owner, {"kind"}) == "Pod") out.owner = TextAt(owner, {"uid"});
  }
  out.deleting = At(claim, {"metadata", "deletionTimestamp"}) != nullptr;
  for (const Json& finalizer : ItemsAt(claim, {"metadata", "finalizers"})) {
    if (finalizer == kClaimFinalizer) out.protected_by_finalizer = true;
  }
  for (const Json& request : ItemsAt(claim, {"spec", "devices", "requests"})) {
    out.ask.device_class = TextAt(request, {"exactly", "deviceClassName"});
    out.ask.count = IntAt(request, {"exactly", "count"}, 1);
    out.ask.selectors = Selectors(ItemsAt(request, {"exactly", "selectors"}));
  }
  out.allocated = At(claim, {"status", "allocation"}) != nullptr;
  for (const Json& device : ItemsAt(claim, {"status", "allocation", "devices", "results"})) {
    out.devices.push_back(absl::StrCat(TextAt(device, {"driver"}), "/", TextAt(device, {"pool"}),
                                       "/", TextAt(device, {"device"})));
  }
  for (const Json& term :
       ItemsAt(claim, {"status", "allocation", "nodeSelector", "nodeSelectorTerms"})) {
    for (const Json& field : ItemsAt(term, {"matchFields"})) {
      for (const Json& value : ItemsAt(field, {"values"})) out.node = value.get<std::string>();
    }
  }
  for (const Json& consumer : ItemsAt(claim, {"status", "reservedFor"})) {
    out.reserved.push_back(TextAt(consumer, {"uid"}));
  }
  return out;
}

std::vector<std::string> ReadClassSelectors(const Json& device_class) {
  return Selectors(ItemsAt(device_class, {"spec", "selectors"}));
}

bool SelectorMatches(absl::string_view selector, const std::string& driver,
                     const DeviceFacts& device) {
  const std::vector<absl::string_view> terms = absl::StrSplit(selector, " && ");
  return std::all_of(terms.begin(), terms.end(), [&](absl::string_view term) {
    return TermMatches(absl::StripAsciiWhitespace(term), driver, device);
  });
}

}  // namespace fairlead::sim::world
