// Invariant checks. A failed check is a bug of ours, never a user's input: it prints the place, the
// condition, the message and the id of the decision being made, and aborts.
//
// Thread-safety: the decision id is per thread; everything else is stateless.
#pragma once

#include <string>

namespace fairlead {

// Names the decision that this thread is making, for the message of a failed check ("cycle 1234").
// Restores the former name when it goes out of scope.
class ScopedDecisionId {
 public:
  explicit ScopedDecisionId(std::string id);
  ~ScopedDecisionId();
  ScopedDecisionId(const ScopedDecisionId&) = delete;
  ScopedDecisionId& operator=(const ScopedDecisionId&) = delete;

 private:
  std::string former_;
};

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace fairlead

#define FAIRLEAD_CHECK(condition, message)                                \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::fairlead::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
