// What tests ask of a redaction.
// Header only; never part of the product.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "journal/player.h"
#include "journal/records_in_memory.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::journal::testing {

inline std::set<std::string> TextsOf(const std::vector<std::string>& records) {
  std::set<std::string> texts;
  for (const std::string& record : records) {
    for (std::string& text : OutlineOf(*Decode(record)).texts) texts.insert(std::move(text));
  }
  return texts;
}

// Of "cpu=4000,example.com/fpga=1" the names; of another text the text.
inline std::vector<std::string> NamesIn(const std::string& value) {
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool is_amount =
        !field.second.empty() && field.second.find_first_not_of("0123456789") == std::string::npos;
    if (!is_amount) return {value};
    names.push_back(field.first);
  }
  return names;
}

// Names, namespaces, uids, and what is written on objects.
inline std::set<std::string> WordsOfUsers(const std::vector<std::string>& records) {
  std::set<std::string> words;
  for (const std::string& record : records) {
    const absl::StatusOr<Record> read = Decode(record);
    const auto* applied = std::get_if<Applied>(&*read);
    if (applied == nullptr || !std::holds_alternative<model::Upsert>(applied->event)) continue;
    const auto& meta = model::MetaOf(std::get<model::Upsert>(applied->event).object);
    words.insert({meta.ns, meta.name, meta.uid});
    for (const model::StringMap* map : {&meta.labels, &meta.annotations}) {
      for (const auto& [key, value] : *map) {
        words.insert(key);
        // Amounts and times stay.
        if (value.find_first_not_of("0123456789.:-TZ") == std::string::npos) continue;
        for (std::string& name : NamesIn(value)) words.insert(std::move(name));
      }
    }
  }
  return words;
}

// "" if the redacted records decide as recorded, and have none of the words of users. `is_public`:
// texts that may stay.
template <typename IsPublic>
std::string WhyBad(const std::vector<std::string>& records,
                   const std::vector<std::string>& redacted, const ReadOptions& read,
                   const IsPublic& is_public) {
  Player player(read);
  for (const std::string& record : redacted) {
    const absl::Status played = player.Play(record);
    if (!played.ok()) return absl::StrCat("redacted: ", played.message());
  }
  if (player.difference().has_value()) {
    return absl::StrCat("redacted: step ", player.difference()->step, " decides otherwise");
  }
  std::string bytes;
  for (const std::string& record : redacted) bytes += record;
  // Parts of texts that may stay: "pool" is one of "fairlead.dev/node-pool".
  std::set<std::string> stays;
  for (const std::string& text : TextsOf(redacted)) {
    if (is_public(text)) stays.insert(text);
  }
  for (const std::string& word : WordsOfUsers(records)) {
    if (word.size() < 4 || is_public(word) || !absl::StrContains(bytes, word)) continue;
    bool is_part = false;
    for (const std::string& text : stays) is_part |= absl::StrContains(text, word);
    if (!is_part) return absl::StrCat("redacted: it has \"", word, "\"");
  }
  return "";
}

}  // namespace fairlead::journal::testing
