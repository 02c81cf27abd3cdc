// The fields that manifests of a change may have. Decoders skip unknown fields, for a server may be
// newer than we are; in a file that a person wrote to ask a question, a misspelt limit must not
// pass for none.
//
// Checked whole: Queue, NodePool, Topology, PodGroup (of scheduling.run.ai) and PriorityClass, as
// crds/ and the Kubernetes API have them. Of a Pod: its spec, its containers and their resources;
// of other kinds: metadata. A status is not looked at.
//
// Thread-safety: pure functions. Complexity: O(fields of the document x fields of the kind).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "document/json.h"

namespace fairlead::cmd {

struct UnknownField {
  std::string path;     // "spec.resources.gpu.limt"
  std::string nearest;  // the field that was meant; empty: none is near
  TextPlace place;
};

// The unknown fields of one object, in the order of the document.
std::vector<UnknownField> UnknownFields(const Json& object);

// The fields that are known of spec: "spec.taints[].key", "spec.labels.*" (any key). With ".**" at
// the end: whatever it has. Empty: the kind is not checked. For tests.
std::vector<std::string> KnownFields(absl::string_view api_version, absl::string_view kind);

}  // namespace fairlead::cmd
