#include "journal/redaction.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "journal/redactor.h"

namespace fairlead::journal {
namespace {

// Each but the last has learned something that contradicts what it had made.
constexpr int64_t kMostPasses = 20;

// What the loop of the original derives, in the order in which it does.
class Derivations final : public DerivedNames {
 public:
  std::string Name(const std::string& derived) override {
    names_.push_back(derived);
    return derived;
  }
  uint64_t Seed(uint64_t derived) override {
    seeds_.push_back(derived);
    return derived;
  }
  void Clear() {
    names_.clear();
    seeds_.clear();
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<uint64_t>& seeds() const { return seeds_; }

 private:
  std::vector<std::string> names_;
  std::vector<uint64_t> seeds_;
};

// The same of the loop that has other names: it gets what the other loop has derived at that place.
class FollowedDerivations final : public DerivedNames {
 public:
  FollowedDerivations(const Derivations* leader, Redactor* redactor)
      : leader_(leader), redactor_(redactor) {}

  std::string Name(const std::string& derived) override {
    if (names_ >= leader_->names().size()) {
      lost_ = true;
      return derived;
    }
    std::string used = redactor_->Of(leader_->names()[names_++]);
    const auto [place, is_new] = known_names_.emplace(derived, used);
    if (is_new) {
      news_.names.emplace_back(derived, used);
    } else if (place->second != used) {
      lost_ = true;
    }
    return place->second;
  }
  uint64_t Seed(uint64_t derived) override {
    if (seeds_ >= leader_->seeds().size()) {
      lost_ = true;
      return derived;
    }
    const uint64_t used = leader_->seeds()[seeds_++];
    if (known_seeds_.emplace(derived, used).second) news_.seeds.emplace_back(derived, used);
    return known_seeds_[derived];
  }
  // A record has been played: what it has brought. True in `lost`: the loops derive other things.
  Derived TakeNews(bool& lost) {
    lost = lost_ || names_ != leader_->names().size() || seeds_ != leader_->seeds().size();
    names_ = seeds_ = 0;
    return std::exchange(news_, {});
  }

 private:
  const Derivations* leader_;
  Redactor* redactor_;
  size_t names_ = 0, seeds_ = 0;
  bool lost_ = false;
  absl::flat_hash_map<std::string, std::string> known_names_;
  absl::flat_hash_map<uint64_t, uint64_t> known_seeds_;
  Derived news_;
};

// Whether sentences of the action are in later inputs: objects are read without their events,
// conditions of pods without their messages.
bool SentencesComeBack(const model::Action& action) {
  return !std::holds_alternative<model::EmitEvent>(action.what) &&
         !std::holds_alternative<model::EvictPod>(action.what) &&
         !std::holds_alternative<model::SetSuspended>(action.what) &&
         !std::holds_alternative<model::SetPodUnschedulable>(action.what) &&
         !std::holds_alternative<model::StoreUsage>(action.what);
}

// Sentences, JSON and other texts that are no name.
bool IsProse(absl::string_view text) {
  return absl::StrContains(text, ' ') || absl::StartsWith(text, "{") ||
         absl::StartsWith(text, "fairlead-usage/");
}

// Texts of the same form, of which some words differ: the pairs; none if the form differs.
std::optional<std::vector<std::pair<std::string, std::string>>> WordsThatDiffer(
    absl::string_view a, absl::string_view b) {
  const std::vector<TextPart> left = PartsOf(a), right = PartsOf(b);
  if (left.size() != right.size()) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].text == right[i].text) continue;
    if (!left[i].is_word || !right[i].is_word) return std::nullopt;
    pairs.emplace_back(left[i].text, right[i].text);
  }
  return pairs;
}

class Pass {
 public:
  Pass(const RedactionOptions& options, Redactor* redactor, RedactionFiles* files,
       RedactionTotals* totals)
      : redactor_(redactor),
        files_(files),
        totals_(totals),
        followed_(std::make_shared<FollowedDerivations>(derived_.get(), redactor)),
        original_(options.read, derived_),
        other_(options.read, followed_) {}

  absl::Status Take(size_t journal, absl::string_view bytes) {
    FAIRLEAD_ASSIGN_OR_RETURN(Record record, Decode(bytes));
    ++totals_->records;
    derived_->Clear();
    if (const auto* stepped = std::get_if<Stepped>(&record)) {
      FAIRLEAD_RETURN_IF_ERROR(Step(*stepped, record));
    } else {
      FAIRLEAD_RETURN_IF_ERROR(original_.Tell(record));
      redactor_->Redact(record);
      if (!redactor_->problem().empty()) return Refused(redactor_->problem());
      FAIRLEAD_RETURN_IF_ERROR(other_.Tell(record));
    }
    bool lost = false;
    const Derived news = followed_->TakeNews(lost);
    if (lost) return Refused("other names are derived");
    if (!news.names.empty() || !news.seeds.empty()) {
      FAIRLEAD_RETURN_IF_ERROR(files_->Write(journal, Encode(news)));
    }
    return Write(journal, record);
  }
  // What was learned contradicts what was made.
  [[nodiscard]] bool is_void() const { return void_; }

 private:
  absl::Status Refused(absl::string_view why) const {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", totals_->steps, ": without its names it decides otherwise: ", why));
  }

  absl::Status Write(size_t journal, const Record& record) {
    if (const std::string leak = redactor_->LeakIn(record); !leak.empty()) {
      return absl::InternalError(absl::StrCat("a text of ", leak.size(),
                                              " bytes was not redacted: record ", totals_->records,
                                              ", kind ", record.index()));
    }
    return files_->Write(journal, Encode(record));
  }

  absl::Status Step(const Stepped& recorded, Record& record) {
    if (!original_.has_started()) return original_.Tell(record);
    ++totals_->steps;
    const core::StepResult before = original_.Step(recorded.now);
    const core::StepResult after = other_.Step(recorded.now);
    if (before.actions.size() != after.actions.size() || before.decided != after.decided) {
      return Refused(
          absl::StrCat(after.actions.size(), " actions instead of ", before.actions.size()));
    }
    Stepped stepped{recorded.now, {}, recorded.decided};
    for (size_t i = 0; i < after.actions.size(); ++i) {
      if (!Compare(before.actions[i], after.actions[i])) {
        return Refused(absl::StrCat("action ", i + 1, " of ", after.actions.size()));
      }
      stepped.actions.push_back(HashOf(after.actions[i]));
    }
    totals_->actions += static_cast<int64_t>(after.actions.size());
    record = std::move(stepped);
    return absl::OkStatus();
  }

  bool Compare(const model::Action& before, const model::Action& after) {
    model::Action renamed = before;
    redactor_->Redact(renamed);
    const Outline original = OutlineOf(before), expected = OutlineOf(renamed);
    const Outline decided = OutlineOf(after);
    if (expected.shape != decided.shape || expected.texts.size() != decided.texts.size()) {
      return false;
    }
    const bool learns = SentencesComeBack(before);
    for (size_t i = 0; i < decided.texts.size(); ++i) {
      const std::string& there = decided.texts[i];
      if (there == expected.texts[i]) continue;
      if (!Learn(original.texts, expected.texts[i], there, learns)) return false;
    }
    return true;
  }

  // `expected` is what became of one of `texts`, and the other loop says `there` instead.
  bool Learn(const std::vector<std::string>& texts, const std::string& expected,
             const std::string& there, bool learns_sentences) {
    std::string text;
    for (const std::string& each : texts) {
      if (redactor_->Guess(each) == expected) text = each;
    }
    const bool is_prose = IsProse(text) && IsProse(there);
    if (is_prose && !learns_sentences) return true;
    // A sentence; or a word that the program has made itself.
    if (is_prose || (text == there && !text.empty())) {
      if (redactor_->Learn(text, there)) void_ = true;
      return true;
    }
    // Names with the hash of a name in them.
    const auto words = WordsThatDiffer(expected, there);
    const std::vector<TextPart> parts = PartsOf(text);
    if (!words.has_value() || parts.size() != PartsOf(expected).size()) return false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const absl::string_view made = PartsOf(expected)[i].text, said = PartsOf(there)[i].text;
      if (made == said) continue;
      if (!redactor_->LearnWord(parts[i].text, said)) return false;
      void_ = true;
    }
    return true;
  }

  Redactor* redactor_;
  RedactionFiles* files_;
  RedactionTotals* totals_;
  const std::shared_ptr<Derivations> derived_ = std::make_shared<Derivations>();
  const std::shared_ptr<FollowedDerivations> followed_;
  LoopDriver original_, other_;
  bool void_ = false;
};

// The first pass.
absl::Status CollectAll(const RedactionOptions& options, Redactor& redactor,
                        RedactionFiles& files) {
  const auto derived = std::make_shared<Derivations>();
  LoopDriver original(options.read, derived);
  int64_t steps = 0;
  const auto take = [&](size_t, absl::string_view bytes) -> absl::Status {
    FAIRLEAD_ASSIGN_OR_RETURN(Record record, Decode(bytes));
    if (std::holds_alternative<Derived>(record)) {
      return absl::InvalidArgumentError("it is redacted already");
    }
    const auto* stepped = std::get_if<Stepped>(&record);
    derived->Clear();
    if (stepped == nullptr || !original.has_started()) {
      FAIRLEAD_RETURN_IF_ERROR(original.Tell(record));
      redactor.Collect(record);
    } else {
      ++steps;
      core::StepResult result = original.Step(stepped->now);
      bool same = result.actions.size() == stepped->actions.size();
      for (size_t i = 0; same && i < result.actions.size(); ++i) {
        same = HashOf(result.actions[i]) == stepped->actions[i];
      }
      if (!same) {
        return absl::FailedPreconditionError(absl::StrCat(
            "step ", steps, ": it does not replay here: `fairlead replay` says how it differs"));
      }
      for (model::Action& action : result.actions) redactor.Collect(action);
    }
    for (const std::string& name : derived->names()) redactor.Collect(name);
    return absl::OkStatus();
  };
  return files.ReadAll(take);
}

}  // namespace

absl::StatusOr<RedactionTotals> Redact(const RedactionOptions& options, RedactionFiles& files) {
  Redactor redactor(options.kept);
  FAIRLEAD_RETURN_IF_ERROR(CollectAll(options, redactor, files));
  if (options.collect != nullptr) options.collect(redactor);
  redactor.Assign();
  RedactionTotals totals;
  for (int64_t passes = 1; passes <= kMostPasses; ++passes) {
    totals = {};
    totals.passes = passes;
    redactor.BeginAgain();
    FAIRLEAD_RETURN_IF_ERROR(files.Begin());
    Pass pass(options, &redactor, &files, &totals);
    const absl::Status played = files.ReadAll(
        [&](size_t journal, absl::string_view record) { return pass.Take(journal, record); });
    if (pass.is_void()) continue;
    FAIRLEAD_RETURN_IF_ERROR(played);
    totals.words = redactor.words();
    if (options.replace != nullptr) options.replace(redactor);
    if (!redactor.problem().empty()) return absl::InternalError(redactor.problem());
    return totals;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "what it decides without its names differs again after ", kMostPasses, " attempts"));
}

}  // namespace fairlead::journal
