// What a journal consists of: the inputs of a core::DecisionLoop in their order, and hashes of what
// it decided. One record is one input.
//
// Thread-safety: plain values, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/machines/machine_report.h"
#include "autoscale-hook/machines/node_lists.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::journal {

// A loop begins. The first record.
struct Start {
  uint64_t shape = 0;                             // RecordShape() of the writer
  std::string version = {};                       // of the program
  std::vector<std::string> documents = {};        // core::Options::documents
  std::vector<std::string> scheduler_names = {};  // as in force: flags may have changed them
  std::string usage_ns = {}, usage_name = {};     // of core::UsageStoreOptions
  std::vector<hook::InstanceType> types = {};     // of the catalogue
  bool continues = false;  // with what the hook of the former loop had learned
  // As in force, likewise: core::Shard::label_value, and hook::HookOptions::request_prefix.
  std::optional<std::string> shard = {};
  std::string request_prefix = "fl-";
};
struct Applied {
  model::ClusterEvent event;
};
struct Led {};
struct PodsListed {
  std::string node, version;
  std::vector<model::Pod> pods;
};
struct Machine {
  hook::MachineReport report;
};
struct Offers {
  std::string provider;
  std::optional<std::vector<hook::InstanceType>> types;  // absent: no catalogue of its own
};
struct NodesListed {
  uint64_t number = 0;
  absl::Status status;
  std::vector<hook::ListedNode> nodes;
};
struct UsageRestored {
  std::string text;
};
struct Stale {
  std::vector<model::Kind> kinds;
};
struct Guest {
  model::Pod pod;
  std::string reserved_on;
  absl::Time now;
};
// A decision. `actions`: HashOf() each.
struct Stepped {
  absl::Time now;
  std::vector<uint64_t> actions;
  bool decided = false;
};

// Of a redacted journal: what stands for names and seeds that a loop derives from the names in it
// (base/derived_names.h). It comes before the input for which they are derived.
struct Derived {
  std::vector<std::pair<std::string, std::string>> names;  // derived, used
  std::vector<std::pair<uint64_t, uint64_t>> seeds;
};

using Record = std::variant<Start, Applied, Led, PodsListed, Machine, Offers, NodesListed,
                            UsageRestored, Stale, Guest, Stepped, Derived>;

std::string Encode(const Record& record);
// An event without a copy of it.
std::string EncodeApplied(const model::ClusterEvent& event);
// InvalidArgument: the bytes are no record.
absl::StatusOr<Record> Decode(absl::string_view bytes);

// Of all declarations of records: bytes of another shape cannot be read.
uint64_t RecordShape();
// Of everything in the action but nothing else. Equal on every machine.
uint64_t HashOf(const model::Action& action);

// A value without its texts, as bytes, and its texts in the order of their fields.
struct Outline {
  std::string shape;
  std::vector<std::string> texts;
};
Outline OutlineOf(const model::Action& action);
Outline OutlineOf(const Record& record);

}  // namespace fairlead::journal
