// Names with an optional domain, as the API server validates keys of labels and names of resources
// (k8s.io/apimachinery/pkg/util/validation, IsQualifiedName). Thread-safety: pure functions.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::model {

// RFC 1123: lower-case letters, digits and '-', at most 63, not '-' at an end.
bool IsDnsLabel(absl::string_view text);
// Such parts with dots between them, of any length each and 253 together: the names of most
// objects.
bool IsDnsSubdomain(absl::string_view text);

// "name" or "example.com/name": the name of at most 63 letters, digits, '-', '_' and '.', the
// domain a DNS subdomain.
bool IsQualifiedName(absl::string_view name);

// Empty, or as the name of a qualified name.
bool IsLabelValue(absl::string_view value);

// The name of a resource that Kubernetes does not define itself: with a domain, which is not
// kubernetes.io or below it (k8s.io/component-helpers, IsExtendedResourceName).
bool IsExtendedResourceName(absl::string_view name);

}  // namespace fairlead::model
