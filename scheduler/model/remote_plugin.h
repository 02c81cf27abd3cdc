// Plugins in other programs (proto/fairlead/plugin/v1): how to reach one, and a call of it.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/node_judgement.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::model {

struct RemotePluginConfig {
  std::string name;     // what profiles call it
  std::string address;  // "host:port", "unix:///path", or another name that gRPC resolves
  std::string ca_file;  // of the server's certificate; empty: plain text
  absl::Duration timeout = absl::Seconds(5);  // of each call but Permit
  absl::Duration permit_timeout = absl::Seconds(60);
  bool ignorable = false;   // if it does not answer, pods pass
  bool node_usage = false;  // it is told what pods on the nodes request
  // What it says about nodes holds for so long.
  absl::Duration max_age = absl::Minutes(1);
  // Labels of pods that it is told. Pods without any of them pass; none: it is asked about all
  // pods.
  std::vector<std::string> pod_labels;
  friend bool operator==(const RemotePluginConfig&, const RemotePluginConfig&) = default;
};

enum class RemotePoint : uint8_t { kPermit, kPreBind, kPostBind, kUnreserve, kEvaluateNodes };

struct RemoteCall {
  std::string plugin;
  RemotePoint point = RemotePoint::kPermit;
  uint64_t number = 0;  // of the plugin, in the order of calling
  std::string ns, name, uid, node;
  StringMap labels;
  std::string queue, pod_group;
  std::shared_ptr<const NodeQuestion> question;  // of kEvaluateNodes, which is about no pod
};

}  // namespace fairlead::model
