// The words in which a provider of groups tells problems: what has its groups differs.
//
// Thread-safety: plain values.
#pragma once

#include <string>

namespace fairlead::hook {

struct GroupWords {
  std::string provider;  // Provider::name
  // What has the groups, as the subject of a sentence: "the server".
  std::string source;
  // Why a group without a template is not offered, and what to do.
  std::string no_template;
  // Where no price came from, and what to do: "the server tells none".
  std::string no_price;
  std::string give_price;
  // What to do about a group that is no longer there and still has machines.
  std::string restore;
};

}  // namespace fairlead::hook
