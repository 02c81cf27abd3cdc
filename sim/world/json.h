// The JSON DOM of the simulated API server: patches of RFC 6902 and 7386 come with it. Only
// sim/world sees this header, because it costs a second to compile.
#pragma once

#include <nlohmann/json.hpp>

namespace fairlead::sim::world {

// Objects keep their keys sorted, so that text made of them is the same in every run.
using Json = nlohmann::json;

}  // namespace fairlead::sim::world
