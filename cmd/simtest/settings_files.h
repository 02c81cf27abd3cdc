// The files of the program in a world: its configuration and its catalogue, as texts that the real
// loader reads. Both replicas mount the same files.
//
// Versions that can be used (the caps, times and rates that the invariants know are the same in
// all):
//   configuration   base; spread (two profiles, one of them with kube-scheduler's scores), quiet
//   (no
//                   events), rounding, unshared (a profile without plugin GpuSharing; in plans
//                   alone)
//   catalogue       0, 1 (another size of one type), 2 (one type more)
// and that cannot: each of a configuration's would switch this scheduler off and its caps away, if
// it took effect.
//   configuration   empty half unknown-field bad-type unknown-provider missing
//   catalogue       empty half bad missing
//
// Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/options.h"
#include "sim/world/plan.h"

namespace fairlead::simtest {

inline constexpr int64_t kGpuCap = 32;
inline constexpr char kConfigurationFile[] = "/etc/fairlead/config.yaml";
inline constexpr char kCatalogueFile[] = "/etc/fairlead/catalogue.yaml";

class SettingsFiles {
 public:
  explicit SettingsFiles(const sim::world::Plan& plan) : plan_(plan) {}

  // Another version of a file; "": as it is.
  void Write(absl::string_view configuration, absl::string_view catalogue);
  // The last versions that could be used.
  void Restore();
  // Whether the program can take the files.
  [[nodiscard]] bool usable() const;
  [[nodiscard]] const std::string& configuration() const { return configuration_; }
  [[nodiscard]] const std::string& catalogue() const { return catalogue_; }

  // The text of a file; InvalidArgument if it is missing.
  [[nodiscard]] absl::StatusOr<std::string> Read(const std::string& path) const;

 private:
  const sim::world::Plan& plan_;
  std::string configuration_ = "base", catalogue_ = "0";
  std::string good_configuration_ = "base", good_catalogue_ = "0";
};

// What no file can say.
void AdjustOptions(const sim::world::Plan& plan, core::Options& options);

}  // namespace fairlead::simtest
