#include "scheduler/model/instance_facts.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "scheduler/model/api_names.h"

namespace fairlead::model {
namespace {

// Labels that say that a machine is a spot machine, with their values in lower case.
struct SpotLabel {
  const char *key, *value;
};
constexpr SpotLabel kSpotLabels[] = {
    {"eks.amazonaws.com/capacityType", "spot"},
    {"cloud.google.com/gke-spot", "true"},
    {"cloud.google.com/gke-preemptible", "true"},
    {"cloud.google.com/gke-provisioning", "spot"},
    {"kubernetes.azure.com/scalesetpriority", "spot"},
    {"karpenter.sh/capacity-type", "spot"},
    {kCapacityTypeLabel, "spot"},
};

constexpr const char* kProductLabels[] = {
    kGpuProductLabel,
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
};

// "NC24ads_A100_v4" -> "NCads_A100_v4", "E4-2s_v3" -> "Es_v3": without the number of CPUs, and
// without the lower one that a constrained size has.
std::string AzureSeries(absl::string_view size) {
  const auto digits_from = [&](size_t at) {
    while (at < size.size() && absl::ascii_isdigit(size[at])) ++at;
    return at;
  };
  size_t begin = 0;
  while (begin < size.size() && absl::ascii_isalpha(size[begin])) ++begin;
  size_t end = digits_from(begin);
  if (end > begin && end < size.size() && size[end] == '-') {
    const size_t constrained = digits_from(end + 1);
    if (constrained > end + 1) end = constrained;
  }
  return absl::StrCat(size.substr(0, begin), size.substr(end));
}

// Takes the next word off the text; "" at its end.
absl::string_view NextWord(absl::string_view& text) {
  const auto is_letter = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.';
  };
  size_t begin = 0;
  while (begin < text.size() && !is_letter(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && is_letter(text[end])) ++end;
  const absl::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

bool IsSpotNode(const StringMap& labels) {
  return std::any_of(std::begin(kSpotLabels), std::end(kSpotLabels), [&](const SpotLabel& label) {
    return absl::EqualsIgnoreCase(labels.Get(label.key), label.value);
  });
}

bool IsReservedNode(const StringMap& labels) {
  return absl::EqualsIgnoreCase(labels.Get("karpenter.sh/capacity-type"), "reserved") ||
         absl::EqualsIgnoreCase(labels.Get(kCapacityTypeLabel), "reserved");
}

std::string InstanceFamily(absl::string_view type_name) {
  if (absl::StartsWith(type_name, "VM.") || absl::StartsWith(type_name, "BM.")) {
    const size_t last = type_name.rfind('.');
    return std::string(last > 2 ? type_name.substr(0, last) : type_name);
  }
  absl::string_view size = type_name;
  if (absl::ConsumePrefix(&size, "Standard_") || absl::ConsumePrefix(&size, "Basic_")) {
    return AzureSeries(size);
  }
  const size_t dot = type_name.find('.');
  return std::string(
      type_name.substr(0, dot != absl::string_view::npos ? dot : type_name.find('-')));
}

absl::string_view GpuProductOf(const StringMap& labels) {
  for (const char* key : kProductLabels) {
    const absl::string_view product = labels.Get(key);
    if (!product.empty()) return product;
  }
  return "";
}

bool GpuModelSuits(absl::string_view model, absl::string_view product) {
  absl::string_view wanted = NextWord(model);
  if (wanted.empty()) return false;
  for (absl::string_view word = NextWord(product); !word.empty(); word = NextWord(product)) {
    if (!absl::EqualsIgnoreCase(word, wanted)) continue;
    wanted = NextWord(model);
    if (wanted.empty()) return true;
  }
  return false;
}

}  // namespace fairlead::model
