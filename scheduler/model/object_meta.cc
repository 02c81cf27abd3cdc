#include "scheduler/model/object_meta.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::model {
namespace {

constexpr auto kKeyLess = [](const auto& entry, absl::string_view key) {
  return *entry.first < key;
};

}  // namespace

void TextPool::Trim() {
  if (texts_.size() < trim_at_) return;
  absl::erase_if(texts_, [](const Text& text) { return text.IsAlone(); });
  trim_at_ = std::max<size_t>(1024, 2 * texts_.size());
}

TextPool::Text TextPool::Intern(absl::string_view text) {
  const auto found = texts_.find(text);
  if (found != texts_.end()) return *found;
  Trim();
  return *texts_.insert(Text(std::string(text))).first;
}

TextPool::Text TextPool::Intern(const Text& text) {
  const auto found = texts_.find(text);
  if (found != texts_.end()) return *found;
  Trim();
  return *texts_.insert(text).first;
}

StringMap::StringMap(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) Set(entry.first, entry.second);
}

const StringMap::Texts& StringMap::None() {
  static const Texts& none = *new Texts();
  return none;
}

const std::string* StringMap::Find(absl::string_view key) const {
  const auto it = std::lower_bound(texts().begin(), texts().end(), key, kKeyLess);
  return it != texts().end() && *it->first == key ? &*it->second : nullptr;
}

absl::string_view StringMap::Get(absl::string_view key) const {
  const std::string* value = Find(key);
  return value == nullptr ? absl::string_view() : absl::string_view(*value);
}

void StringMap::Set(absl::string_view key, absl::string_view value, TextPool* pool) {
  // Both may be views into this map.
  Text new_value{std::string(value)};
  Texts& own = texts_.Own();
  const auto it = std::lower_bound(own.begin(), own.end(), key, kKeyLess);
  if (it != own.end() && *it->first == key) {
    it->second = std::move(new_value);
    return;
  }
  Text new_key = pool != nullptr ? pool->Intern(key) : Text(std::string(key));
  const ptrdiff_t at = it - own.begin();
  constexpr size_t kFew = 4;
  if (own.empty()) own.reserve(kFew);
  own.emplace(own.begin() + at, std::move(new_key), std::move(new_value));
}

void StringMap::Erase(absl::string_view key) {
  if (!Has(key)) return;
  Texts& own = texts_.Own();
  const auto it = std::lower_bound(own.begin(), own.end(), key, kKeyLess);
  if (it != own.end() && *it->first == key) own.erase(it);
}

void StringMap::Intern(TextPool& pool) {
  if (!texts_) return;
  Texts interned;
  interned.reserve(size());
  for (const auto& [key, value] : texts()) {
    interned.emplace_back(pool.Intern(key), pool.Intern(value));
  }
  texts_ = Shared<Texts>(std::move(interned));
}

bool operator==(const StringMap& a, const StringMap& b) {
  if (a.texts_.IsSameAs(b.texts_)) return true;
  const auto same = [](const TextPool::Text& x, const TextPool::Text& y) {
    return x.IsSameAs(y) || *x == *y;
  };
  return std::equal(a.texts().begin(), a.texts().end(), b.texts().begin(), b.texts().end(),
                    [&](const auto& x, const auto& y) {
                      return same(x.first, y.first) && same(x.second, y.second);
                    });
}

bool IsRelevantAnnotation(absl::string_view key) {
  return key == kPodGroupAnnotation || key == kReceivedResourceTypeAnnotation ||
         key == kSafeToEvictAnnotation || key == kKarpenterDoNotDisruptAnnotation ||
         absl::StartsWith(key, kLunaNodePrefix) || key == kLunaDoNotEvictAnnotation ||
         absl::StartsWith(key, "gpu-") || absl::StartsWith(key, "kai.scheduler/") ||
         absl::StartsWith(key, "fairlead.dev/") || absl::StartsWith(key, "kwok.x-k8s.io/") ||
         absl::StartsWith(key, kMigPrefix) || key == kGpuIndexAnnotation ||
         key == kSharedGpuConfigMapAnnotation || key == kMirrorPodAnnotation;
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
