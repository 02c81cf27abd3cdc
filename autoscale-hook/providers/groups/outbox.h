// What the provider tells others: answers, reports, offers, problems. They are collected while
// its state changes and are given out afterwards, so that a callback may call the provider again.
//
// Thread-safety: none. Complexity: O(1) per entry; a problem costs O(log n) of the problems that
// last.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/providers/groups/group_words.h"
#include "autoscale-hook/providers/provider.h"

namespace fairlead::hook {

class Outbox {
 public:
  explicit Outbox(GroupWords words) : words_(std::move(words)) {}

  // The provider's name is that of its answers, reports and problems.
  [[nodiscard]] const GroupWords& words() const { return words_; }
  void Answer(ProviderDone done, ProviderAnswer answer);
  void Report(MachineReport report);
  void Offer(std::shared_ptr<const Catalog> offers);
  // Told once, and again if its text changes. `key` names what is wrong, for Solved().
  void Problem(const std::string& key, const absl::Status& problem);
  void Solved(const std::string& key) { told_.erase(key); }
  // All problems whose key begins so.
  void SolvedAll(const std::string& prefix);

  // Gives out everything, also what comes meanwhile.
  void Flush(ProviderListener* listener);
  void Clear() { entries_.clear(); }

 private:
  const GroupWords words_;
  std::deque<std::function<void(ProviderListener*)>> entries_;
  std::map<std::string, std::string> told_;
  bool flushing_ = false;
};

}  // namespace fairlead::hook
