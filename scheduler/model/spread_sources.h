// Service, ReplicationController (v1), ReplicaSet and StatefulSet (apps/v1), as far as the default
// constraints of topology spread read them: whose pods they are. Not read while no profile has
// default constraints (core::Reads).
//
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
// Thread-safety: plain values.
#pragma once

#include <string>
#include <variant>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/selector.h"

namespace fairlead::model {

// In all of them `invalid` says what is wrong with the selector. Such an object counts as one
// without a selector.
struct Service {
  ObjectMeta meta;
  StringMap selector;  // empty: it selects no pod, or says nothing about those that it selects
  std::string invalid;
};

struct ReplicationController {
  ObjectMeta meta;
  StringMap selector;
  std::string invalid;
};

struct ReplicaSet {
  ObjectMeta meta;
  LabelSelector selector;
  std::string invalid;
};

struct StatefulSet {
  ObjectMeta meta;
  LabelSelector selector;
  std::string invalid;
};

// The kinds of IsSpreadSource() (kind.h).
using SpreadSource = std::variant<Service, ReplicationController, ReplicaSet, StatefulSet>;

}  // namespace fairlead::model
