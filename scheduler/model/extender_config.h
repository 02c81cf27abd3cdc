// A scheduler extender as the configuration describes it: `extenders` of KubeSchedulerConfiguration
// (k8s.io/kube-scheduler/config/v1, Extender). scheduler/framework/config.h reads and validates it.
//
// Thread-safety: plain values; they hold secrets and are never printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::model {

struct ExtenderConfig {
  struct Tls {
    bool insecure = false;
    std::string server_name;
    std::string certificate_file, key_file, ca_file;
    std::string certificate_pem, key_pem, ca_pem;  // they win over the files
    friend bool operator==(const Tls&, const Tls&) = default;
  };
  struct ManagedResource {
    std::string name;
    bool ignored_by_scheduler = false;
    friend bool operator==(const ManagedResource&, const ManagedResource&) = default;
  };

  std::string url_prefix;  // "http://host:port/path", without a slash at the end
  // Appended to url_prefix; empty: the extender does not do that.
  std::string filter_verb, prioritize_verb, preempt_verb, bind_verb;
  int64_t weight = 0;         // of its scores; positive if it scores
  bool enable_https = false;  // without a ca: the server's certificate is not verified, as upstream
  Tls tls;
  absl::Duration http_timeout = absl::Seconds(5);  // of each call
  // It keeps nodes of its own, so that it is told names instead of whole nodes.
  bool node_cache_capable = false;
  // It is asked only about pods that request one of these; about all pods if there are none.
  std::vector<ManagedResource> managed_resources;
  bool ignorable = false;  // if it fails, pods are placed without it
  friend bool operator==(const ExtenderConfig&, const ExtenderConfig&) = default;
};

}  // namespace fairlead::model
