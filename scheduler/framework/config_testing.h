// A registry for tests of reading configuration. Header only; never part of the product.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "scheduler/framework/framework.h"

namespace fairlead::framework::testing {

inline absl::StatusOr<std::unique_ptr<Plugin>> NotMadeHere(absl::string_view) {
  return absl::UnimplementedError("not made here");
}

// The names of the default plugins.
inline Registry DefaultPlugins() {
  Registry registry;
  for (const ProfilePlugin& plugin : DefaultProfile().plugins) {
    EXPECT_TRUE(registry.Register(plugin.name, NotMadeHere).ok());
  }
  return registry;
}

}  // namespace fairlead::framework::testing
