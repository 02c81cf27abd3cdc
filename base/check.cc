#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fairlead {
namespace {

std::string& CurrentDecision() {
  thread_local std::string id;
  return id;
}

}  // namespace

ScopedDecisionId::ScopedDecisionId(std::string id)
    : former_(std::exchange(CurrentDecision(), std::move(id))) {}

ScopedDecisionId::~ScopedDecisionId() { CurrentDecision() = std::move(former_); }

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  const std::string& decision = CurrentDecision();
  std::fprintf(stderr, "%s:%d: invariant broken: %s: %s (decision: %s)\n", file, line, condition,
               message.c_str(), decision.empty() ? "none" : decision.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fairlead
