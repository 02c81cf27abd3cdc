#include "scheduler/state/selecting_terms.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead::state {
namespace {

template <typename Term>
void Erase(std::vector<const Term*>& from, const Term* term) {
  from.erase(std::remove(from.begin(), from.end(), term), from.end());
}

}  // namespace

const model::SelectorRequirement* SelectingTerms::FiledBy(const model::PodAffinityTerm& term) {
  for (const model::SelectorRequirement& requirement : term.selector.requirements) {
    if (requirement.op == model::SelectorOperator::kIn) return &requirement;
  }
  return nullptr;
}

bool SelectingTerms::Add(const std::string& ns, const model::PodAffinityTerm& term) {
  const auto [it, added] = terms_.try_emplace({ns, term}, 0);
  ++it->second;
  if (!added) return false;
  const model::SelectorRequirement* filed_by = FiledBy(it->first.second);
  if (filed_by == nullptr) {
    others_.push_back(&it->first);
    return true;
  }
  for (const std::string& value : filed_by->values) {
    Terms& terms = by_label_[filed_by->key][value];
    if (terms.empty() || terms.back() != &it->first) terms.push_back(&it->first);
  }
  return true;
}

void SelectingTerms::Remove(const std::string& ns, const model::PodAffinityTerm& term) {
  const auto it = terms_.find(Term{ns, term});
  FAIRLEAD_CHECK(it != terms_.end(), "a term goes that was never there");
  if (--it->second > 0) return;
  const model::SelectorRequirement* filed_by = FiledBy(it->first.second);
  if (filed_by == nullptr) {
    Erase(others_, &it->first);
  } else {
    const auto by_value = by_label_.find(filed_by->key);
    for (const std::string& value : filed_by->values) {
      const auto terms = by_value->second.find(value);
      if (terms == by_value->second.end()) continue;  // the value is there twice
      Erase(terms->second, &it->first);
      if (terms->second.empty()) by_value->second.erase(terms);
    }
    if (by_value->second.empty()) by_label_.erase(by_value);
  }
  terms_.erase(it);
}

bool SelectingTerms::Select(const std::string& ns, const model::StringMap& labels) const {
  const auto selects = [&](const Term* term) {
    return model::Selects(term->second, term->first, ns, labels) != model::Selection::kNo;
  };
  if (std::any_of(others_.begin(), others_.end(), selects)) return true;
  if (by_label_.empty()) return false;
  for (const auto& [key, value] : labels) {
    const auto by_value = by_label_.find(key);
    if (by_value == by_label_.end()) continue;
    const auto terms = by_value->second.find(value);
    if (terms == by_value->second.end()) continue;
    if (std::any_of(terms->second.begin(), terms->second.end(), selects)) return true;
  }
  return false;
}

}  // namespace fairlead::state
