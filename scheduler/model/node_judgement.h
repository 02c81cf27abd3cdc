// What a plugin in another program is asked about nodes, by class of pods, and what it answers
// (proto/fairlead/plugin/v1, EvaluateNodes).
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/node.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

// A change of the plugin's copy of the nodes, and the classes that it is asked about.
struct NodeQuestion {
  struct SnapshotNode {
    Node node;
    ResourceList requested;  // of the pods on it; empty if the plugin does not read that
    uint32_t number = 0;     // from 1; no other node of the copy has it
  };
  struct AskedClass {
    uint64_t number = 0;  // of the class
    std::string ns;
    StringMap labels;
    ResourceList requests;
    bool all_nodes = false;  // false: about the nodes of this question
  };
  // The copy that the changes belong to; 0: the plugin's is to be replaced.
  uint64_t base_version = 0;
  uint64_t version = 0;
  std::vector<SnapshotNode> nodes;  // new or changed
  std::vector<std::string> gone;
  std::vector<AskedClass> classes;
};

// One of a node for a class. Nodes that the plugin was asked about and does not mention are
// admitted, with score 0.
struct NodeJudgement {
  std::string node;
  std::string refusal;  // empty: admitted
  int64_t score = 0;    // 0..100
};

// Nodes that are refused for the same reason, by number.
struct NodeRefusal {
  std::string reason;  // empty: admitted
  std::vector<uint32_t> nodes;
};

struct NodeJudgements {
  // Its copy of the nodes is another one: all of them are to be sent.
  bool needs_snapshot = false;
  struct OfClass {
    uint64_t number = 0;
    std::vector<NodeJudgement> nodes;
    // By number, of nodes that are not in `nodes`. Scores 0..100; beyond the end: 0.
    std::vector<uint32_t> scores = {};
    std::vector<NodeRefusal> refusals = {};
  };
  std::vector<OfClass> classes;
};

}  // namespace fairlead::model
