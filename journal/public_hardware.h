// Whether a text is the public name of hardware: an instance type, a zone or a region of a public
// cloud, or a product name of a GPU. Such a name says nothing about the user of a cluster, and a
// report of a fault is of little use without it. Names that an administrator can choose (types of
// an own catalogue, zones of an own data centre) are not public.
//
// Public are: all names of the built-in catalogue; and texts of these forms, whose parts have no
// room for a word of a tenant:
//   type    AWS     m5.large, p4d.24xlarge, u-6tb1.metal: a known series, digits, at most four
//                   letters, "." and a known size
//           Google  n2-standard-4, a2-highgpu-1g: a known series, a known class, a number
//           Azure   Standard_NC24ads_A100_v4: at most two letters, digits, at most four letters
//   zone    words of geography, numbers and single letters: us-east-1a, europe-west4-b, eastus-2
//   GPU     a known vendor, and words of a letter or two with digits, or of a known list:
//           NVIDIA-A100-SXM4-80GB
//
// Sources: the names of types, regions and zones that AWS, Google and Azure document; the product
// names that NVIDIA's GPU feature discovery writes.
// Thread-safety: pure functions. Complexity: O(text). Errors: none; any text has an answer.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::journal {

bool IsPublicInstanceType(absl::string_view text);
bool IsPublicZone(absl::string_view text);
bool IsPublicGpu(absl::string_view text);
// Any of the three.
bool IsPublicHardware(absl::string_view text);

}  // namespace fairlead::journal
