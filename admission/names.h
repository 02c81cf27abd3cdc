// Names of admission that other programs see; scheduler/model/api_names.h has the others.
#pragma once

namespace fairlead::admission {

// On a Queue: "true" if only users that may `use` it, or a queue below it, may submit to it.
inline constexpr char kRestrictedAnnotation[] = "fairlead.dev/restricted";
// On a Namespace: the queue of its pods that name none.
inline constexpr char kDefaultQueueLabel[] = "fairlead.dev/default-queue";

}  // namespace fairlead::admission
