// kube-scheduler's extension points and in-tree plugins, as far as a configuration file names them:
// which plugin runs at which points (k8s.io/kubernetes v1.36, pkg/scheduler/framework/plugins), and
// what of it Fairlead has.
//
// Thread-safety: pure functions over constants.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::framework {

// In the order in which they run.
enum class Point : uint8_t {
  kPreEnqueue,
  kQueueSort,
  kPreFilter,
  kFilter,
  kPostFilter,
  kPreScore,
  kScore,
  kReserve,
  kPermit,
  kPreBind,
  kBind,
  kPostBind,
};
inline constexpr size_t kPoints = 12;
// Their names in KubeSchedulerConfiguration, by Point.
inline constexpr std::array<const char*, kPoints> kPointNames = {
    "preEnqueue", "queueSort", "preFilter", "filter",  "postFilter", "preScore",
    "score",      "reserve",   "permit",    "preBind", "bind",       "postBind"};

// A set of points.
class PointSet {
 public:
  constexpr PointSet(std::initializer_list<Point> points) {  // NOLINT(google-explicit-constructor)
    for (const Point point : points) bits_ |= Bit(point);
  }
  [[nodiscard]] constexpr bool Has(Point point) const { return (bits_ & Bit(point)) != 0; }

 private:
  static constexpr uint32_t Bit(Point point) { return uint32_t{1} << static_cast<uint32_t>(point); }
  uint32_t bits_ = 0;
};

enum class Support : uint8_t {
  kPlugin,   // registered by scheduler/plugins under its name
  kBuiltIn,  // part of every profile: the engine or the core does it
  kLacking,
};

struct KnownPlugin {
  const char* name;
  PointSet points;
  Support support;
};

// Null: none of kube-scheduler's.
const KnownPlugin* FindKnownPlugin(absl::string_view name);
// Those that are part of every profile: no registry has them, and a configuration may name them.
std::vector<std::string> BuiltInPluginNames();
// Whether a plugin of that name may run there at all. Of Fairlead's own, and of those that a
// program registers, only their interfaces tell: true for every point that plugins may have.
bool Extends(absl::string_view name, Point point);

}  // namespace fairlead::framework
