#include "scheduler/model/object_meta.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::model {
namespace {

bool KeyLess(const StringMap::Entry& entry, absl::string_view key) { return entry.first < key; }

}  // namespace

StringMap::StringMap(std::initializer_list<Entry> entries) {
  entries_.reserve(entries.size());
  for (const Entry& entry : entries) Set(entry.first, entry.second);
}

const std::string* StringMap::Find(absl::string_view key) const {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), key, KeyLess);
  return it != entries_.end() && it->first == key ? &it->second : nullptr;
}

absl::string_view StringMap::Get(absl::string_view key) const {
  const std::string* value = Find(key);
  return value == nullptr ? absl::string_view() : absl::string_view(*value);
}

void StringMap::Set(absl::string_view key, absl::string_view value) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), key, KeyLess);
  if (it != entries_.end() && it->first == key) {
    it->second = std::string(value);
  } else {
    entries_.emplace(it, std::string(key), std::string(value));
  }
}

void StringMap::Erase(absl::string_view key) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), key, KeyLess);
  if (it != entries_.end() && it->first == key) entries_.erase(it);
}

bool IsRelevantAnnotation(absl::string_view key) {
  return key == kPodGroupAnnotation || key == kReceivedResourceTypeAnnotation ||
         key == "cluster-autoscaler.kubernetes.io/safe-to-evict" ||
         key == "karpenter.sh/do-not-disrupt" || absl::StartsWith(key, "gpu-") ||
         absl::StartsWith(key, "kai.scheduler/") || absl::StartsWith(key, "fairlead.dev/") ||
         absl::StartsWith(key, "kwok.x-k8s.io/") || absl::StartsWith(key, kMigPrefix) ||
         key == kGpuIndexAnnotation || key == kSharedGpuConfigMapAnnotation ||
         key == kMirrorPodAnnotation;
}

std::string VerdictHashOf(absl::string_view verdict_json) {
  constexpr absl::string_view kField = "\"hash\":\"";
  const size_t at = verdict_json.rfind(kField);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = verdict_json.substr(at + kField.size());
  return std::string(rest.substr(0, rest.find('"')));
}

std::string Key(absl::string_view ns, absl::string_view name) {
  return ns.empty() ? std::string(name) : absl::StrCat(ns, "/", name);
}

}  // namespace fairlead::model
