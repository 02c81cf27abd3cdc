// The types of the model that value_codec.h cannot take apart by itself. Include it before any use
// of Write() and Read(). Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cron.h"
#include "journal/value_codec.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::journal {

template <>
inline constexpr bool kHasOverloads<CronSchedule> = true;
template <>
inline constexpr bool kHasOverloads<model::StringMap> = true;
template <>
inline constexpr bool kHasOverloads<model::NodeAnswers> = true;
template <>
inline constexpr bool kHasOverloads<model::TypePattern> = true;
template <>
inline constexpr bool kHasOverloads<std::optional<model::NamespaceNames>> = true;
template <>
inline constexpr bool kHasOverloads<model::PodGroup> = true;
template <>
inline constexpr bool kHasOverloads<model::NativePodGroup> = true;

inline void Write(Writer& to, const CronSchedule& schedule) {
  for (const uint64_t number : schedule.ToNumbers()) to.Unsigned(number);
}
inline void Read(Reader& from, CronSchedule& schedule) {
  CronSchedule::Numbers numbers;
  for (uint64_t& number : numbers) number = from.Unsigned();
  schedule = CronSchedule::OfNumbers(numbers);
}

inline void Write(Writer& to, const model::StringMap& map) {
  to.Unsigned(map.size());
  for (const auto& [key, value] : map) {
    to.Text(key);
    to.Text(value);
  }
}
inline void Read(Reader& from, model::StringMap& map) {
  map = {};
  for (size_t i = from.Count(); i > 0 && !from.failed(); --i) {
    const absl::string_view key = from.Text();
    map.Set(key, from.Text());
  }
}

inline void Write(Writer& to, const model::NodeAnswers& answers) { Write(to, answers.list()); }
inline void Read(Reader& from, model::NodeAnswers& answers) {
  std::vector<model::NodeAnswer> list;
  Read(from, list);
  answers = model::NodeAnswers(std::move(list));
}

inline void Write(Writer& to, const model::TypePattern& pattern) {
  to.Unsigned(pattern.IsSet() ? 1 : 0);
  if (pattern.IsSet()) to.Text(pattern.text());
}
inline void Read(Reader& from, model::TypePattern& pattern) {
  pattern = {};
  if (from.Unsigned() == 0) return;
  absl::StatusOr<model::TypePattern> made = model::TypePattern::Make(from.Text());
  if (!made.ok()) return from.Fail();
  pattern = *std::move(made);
}

// The state sets it, decoders do not.
inline void Write(Writer&, const std::optional<model::NamespaceNames>&) {}
inline void Read(Reader&, std::optional<model::NamespaceNames>& names) { names.reset(); }

inline void Write(Writer& to, const model::PodGroup& group) {
  Write<model::PodGroupSpec>(to, group);
  Write(to, group.meta);
  Write(to, group.schedulability_hash);
  Write(to, group.scheduling_conditions);
  Write(to, group.resources_status);
}
inline void Read(Reader& from, model::PodGroup& group) {
  Read<model::PodGroupSpec>(from, group);
  Read(from, group.meta);
  Read(from, group.schedulability_hash);
  Read(from, group.scheduling_conditions);
  Read(from, group.resources_status);
}

inline void Write(Writer& to, const model::NativePodGroup& group) {
  Write(to, static_cast<const model::PodGroup&>(group));
  Write(to, group.scheduled_status);
  Write(to, group.scheduled_reason);
  Write(to, group.scheduled_message);
}
inline void Read(Reader& from, model::NativePodGroup& group) {
  Read(from, static_cast<model::PodGroup&>(group));
  Read(from, group.scheduled_status);
  Read(from, group.scheduled_reason);
  Read(from, group.scheduled_message);
}

}  // namespace fairlead::journal
