// All plugins of this module, by name.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

// AlreadyExists if one of the names is taken.
absl::Status RegisterAll(framework::Registry& registry);

// The registry of this module alone. Never null; thread-safe.
framework::RegistryPtr BuiltIn();
// With those that a program brings. AlreadyExists, with the name, if one of them is taken: by a
// plugin of this module, by one of kube-scheduler's, which keep their meaning in configurations, or
// by another of them. InvalidArgument as Registry::Register.
absl::StatusOr<framework::RegistryPtr> WithBuiltIn(const std::vector<framework::NamedPlugin>& own);

}  // namespace fairlead::plugins
