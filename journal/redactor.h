// Takes records and actions apart, and replaces every text in them that is not on the allow-list
// (kept_words.h).
//
// A type needs nothing of its own as long as it is an aggregate without bases: every text in every
// field is renamed, also in fields that are declared tomorrow. A type that is no aggregate does not
// compile without an overload of Special(). Overloads exist for fields in which a text must keep a
// form (versions, expressions, JSON), and only these fields are treated otherwise.
//
// It works twice over the same values: first it collects the words, then it replaces them.
//
// Ownership: owns the words. Thread-safety: none. Complexity: O(value).
#pragma once

#include <algorithm>
#include <boost/pfr.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "journal/kept_words.h"
#include "journal/model_codec.h"
#include "journal/record.h"
#include "journal/renaming.h"

namespace fairlead::journal {

class Redactor {
 public:
  // `kept`: further texts that stay, names of plugins.
  explicit Redactor(const std::vector<std::string>& kept);

  // ---- first: collects what is in the value
  void Collect(Record& record) { Visit(record); }
  void Collect(model::Action& action) { Visit(action); }
  void Collect(const std::string& text);
  // No more is collected.
  void Assign();

  // ---- then: replaces
  // What was replaced so far is of no use.
  void BeginAgain();
  void Redact(Record& record) {
    telling_ = true;
    Visit(record);
    telling_ = false;
  }
  void Redact(model::Action& action) { Visit(action); }
  [[nodiscard]] std::string Of(const std::string& text);
  // The same of a text that may have words which were not collected; then it is of no use.
  [[nodiscard]] std::string Guess(const std::string& text);
  // That one stands for the text from now on. True if something else did so in a record already:
  // what was made so far contradicts what follows.
  bool Learn(const std::string& text, const std::string& other);
  // The same of a word, which always contradicts. False: that one stands for another word.
  bool LearnWord(absl::string_view word, absl::string_view other);
  // ---- texts beside the journals, both times
  // A configuration: keys that are no field are renamed.
  [[nodiscard]] Json Configuration(const Json& json);
  // An object of the API, or several: names of fields stay.
  [[nodiscard]] Json ApiObject(const Json& json);
  // Metrics in the text form of Prometheus: values of labels are renamed, lines that are none of
  // this program's are left out.
  [[nodiscard]] std::string Metrics(absl::string_view text);

  // A text that was not made by this redactor, and is not kept; empty: there is none.
  [[nodiscard]] std::string LeakIn(const Record& record) const;
  // A text that cannot be redacted: what it is, and why. Empty: there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] size_t words() const { return renaming_.size(); }

 private:
  template <typename T>
  static constexpr bool kIsPlain =
      std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, absl::Time> ||
      std::is_same_v<T, absl::Duration> || std::is_same_v<T, CronSchedule>;
  template <typename T>
  void Visit(T& value);
  template <typename T>
  void VisitFields(T& value) {
    boost::pfr::for_each_field(value, [this](auto& field) { Visit(field); });
  }
  template <typename T>
  void VisitList(std::vector<T>& list);

  void Special(std::string& text) { Text(text); }
  void Special(absl::Status& status);
  void Special(model::StringMap& map);
  void Special(model::ObjectMeta& meta);
  void Special(model::NodeAnswers& answers);
  void Special(model::TypePattern& pattern);
  void Special(std::optional<model::NamespaceNames>&) {}  // the state sets it
  void Special(model::SelectorRequirement& requirement);
  void Special(model::PodGroup& group);
  void Special(model::NativePodGroup& group);
  void Special(model::SchedulingCondition& condition);
  void Special(model::InstanceWishes& wishes);
  void Special(model::Node& node);
  void Special(model::DeviceVersion& version);
  void Special(model::DeviceClass& device_class);
  void Special(model::DeviceRequest& request);
  void Special(model::ActionResult& result);
  void Special(model::Suspendable& object);
  void Special(model::Progress& progress);
  void Special(hook::InstanceType& type);
  void Special(PodsListed& record);
  void Special(UsageRestored& record);
  void Special(Start& start);

  void Text(std::string& text);
  void Kept(const std::string& text);
  [[nodiscard]] std::string Renamed(absl::string_view text);
  // Takes the text out of the value, and puts it back after its other fields: a number as it is.
  template <typename T>
  void VisitBut(T& value, std::string& version);
  void Number(std::string& text);
  void LabelValue(absl::string_view key, std::string& value);
  void Expressions(std::vector<std::string>& selectors);
  [[nodiscard]] std::string Expression(absl::string_view text);
  // An object by which pods are grouped: keys that are no field are left out with what they hold.
  [[nodiscard]] Json GroupingObject(const Json& json);
  [[nodiscard]] Json Labels(const Json& json);
  [[nodiscard]] Json ApiLabels(const Json& json);
  [[nodiscard]] Json ApiField(absl::string_view key, const Json& value);
  [[nodiscard]] Json Amounts(const Json& json);
  void Problem(absl::string_view what, absl::string_view why);

  KeptWords kept_;
  Renaming renaming_;
  bool collecting_ = true;
  bool telling_ = false;  // it works on a record
  absl::flat_hash_map<std::string, std::string> learned_;
  absl::flat_hash_map<std::string, std::string> replaced_;  // texts, and what they became
  absl::flat_hash_set<std::string> made_;
  absl::flat_hash_set<std::string> told_;  // those of `replaced_` that were in records
  std::string problem_;
};

template <typename T>
void Redactor::VisitList(std::vector<T>& list) {
  // Lists in the order of their texts stay so: texts that are kept may have another place among
  // renamed ones.
  const auto restore = [&](const auto& before) {
    const bool was_sorted = std::is_sorted(list.begin(), list.end(), before);
    for (T& element : list) Visit(element);
    if (was_sorted) std::stable_sort(list.begin(), list.end(), before);
  };
  if constexpr (std::is_same_v<T, std::string>) {
    restore([](const T& a, const T& b) { return a < b; });
  } else if constexpr (kIs<T, std::pair>) {
    restore([](const T& a, const T& b) { return a.first < b.first; });
  } else {
    for (T& element : list) Visit(element);
  }
}

template <typename T>
void Redactor::Visit(T& value) {
  if constexpr (kIsPlain<T>) {
    return;
  } else if constexpr (requires { Special(value); }) {
    Special(value);
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    return;
  } else if constexpr (kIs<T, std::vector>) {
    VisitList(value);
  } else if constexpr (kIs<T, std::map>) {
    T renamed;
    for (auto& [key, held] : value) {
      auto entry = std::make_pair(key, std::move(held));
      Visit(entry.first);
      Visit(entry.second);
      renamed.insert(std::move(entry));
    }
    value = std::move(renamed);
  } else if constexpr (kIs<T, std::pair>) {
    Visit(value.first);
    Visit(value.second);
  } else if constexpr (kIs<T, std::optional>) {
    if (value) Visit(*value);
  } else if constexpr (kIs<T, std::shared_ptr>) {
    if (value == nullptr) return;
    auto own = std::make_shared<std::remove_const_t<typename T::element_type>>(*value);
    Visit(*own);
    value = std::move(own);
  } else if constexpr (kIs<T, Shared>) {
    if (value) Visit(value.Own());
  } else if constexpr (kIs<T, Boxed>) {
    Visit(value.Own());
  } else if constexpr (kIs<T, std::variant>) {
    std::visit([this](auto& alternative) { Visit(alternative); }, value);
  } else {
    VisitFields(value);
  }
}

}  // namespace fairlead::journal
