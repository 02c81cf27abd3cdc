// Names, marks and seeds that the program derives from other names by a hash: names of
// NodeRequests, hashes of verdicts. A journal whose names were replaced (journal/redaction.h) gives
// other hashes; a table in it says which names they stand for, so that the order of names, and with
// it every decision, stays the same. Without a port what was derived is used.
//
// Thread-safety: called by the thread that decides. Determinism: equal questions, equal answers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace fairlead {

class DerivedNames {
 public:
  virtual ~DerivedNames() = default;
  // What is used in the place of the derived name, or the derived seed.
  virtual std::string Name(const std::string& derived) = 0;
  virtual uint64_t Seed(uint64_t derived) = 0;
};

// `names` may be null.
inline std::string UsedName(DerivedNames* names, std::string derived) {
  return names == nullptr ? std::move(derived) : names->Name(derived);
}
inline uint64_t UsedSeed(DerivedNames* names, uint64_t derived) {
  return names == nullptr ? derived : names->Seed(derived);
}

}  // namespace fairlead
