// What can be bought in the worlds of the simulation. Thread-safety: none beyond its first call.
#pragma once

#include "autoscale-hook/catalog.h"

namespace fairlead::simtest {

const hook::Catalog& WorldCatalog();

}  // namespace fairlead::simtest
