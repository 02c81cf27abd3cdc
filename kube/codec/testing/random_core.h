// Random pods and nodes as upstream's messages, the expected model values, and their JSON: the
// oracle of the codec tests. The conversions are written from the API's documentation,
// independently of the decoders. Amounts come from a table of (text, value), and requests are
// computed per resource by walking through the pod's life.
//
// Thread-safety: one Random per thread. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "kube/codec/testing/core_subset.pb.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::kube::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 .. bound-1, without the standard library's distributions, whose results vary by
  // implementation.
  size_t Below(size_t bound) { return static_cast<size_t>(engine_() % bound); }
  bool OneIn(size_t n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

core::Pod RandomPod(Random& random);
core::Node RandomNode(Random& random);

// Valid objects only: `invalid` is never set.
model::Pod ExpectedPod(const core::Pod& pod);
model::Node ExpectedNode(const core::Node& node);

// As the API server would write them, in upstream's spelling.
std::string PodJson(const core::Pod& pod);
std::string NodeJson(const core::Node& node);

// "k8s\0" and runtime.Unknown around a serialised message.
std::string Envelope(const std::string& api_version, const std::string& kind,
                     const std::string& raw);
// One watch frame with its length.
std::string Frame(const std::string& type, const std::string& enveloped);

// gtest expectations, field by field.
void ExpectSamePod(const model::Pod& got, const model::Pod& want);
void ExpectSameNode(const model::Node& got, const model::Node& want);

}  // namespace fairlead::kube::testing
