// `fairlead migrate check`: what of a KAI installation will be the same under Fairlead, what will
// differ, and what has to be done before the schedulers change places.
//
// The findings are an interface in JSON (docs/commands.md): names stay, new ones may come.
// Thread-safety: pure functions. Complexity: linear in the objects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/fairlead/migrate/kai_installation.h"
#include "document/json.h"

namespace fairlead::cmd {

enum class Matter : uint8_t { kDoFirst, kDiffers, kSame };
const char* MatterName(Matter matter);  // "doFirst", "differs", "same"

struct Finding {
  Matter matter = Matter::kSame;
  std::string subject;  // "Deployments of KAI", "SchedulingShard default"
  std::string what;     // one sentence without its full stop
  std::string to_do;    // an imperative; empty: nothing
};

// With `controllers`, KAI's other controllers are to be stopped, too (MigrateOptions).
// By matter, then in the order of the examination.
std::vector<Finding> ExamineKai(const KaiInstallation& kai, bool controllers);
[[nodiscard]] bool IsReady(const std::vector<Finding>& findings);

// {"kind":"MigrationCheck","ready":bool,"findings":[{"matter","subject","what","toDo"}]}
Json FindingsJson(const std::vector<Finding>& findings);
std::string FindingsText(const std::vector<Finding>& findings);

}  // namespace fairlead::cmd
