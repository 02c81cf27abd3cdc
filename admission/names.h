// Names of admission that other programs see; scheduler/model/api_names.h has the others.
#pragma once

namespace fairlead::admission {

// Annotation of Queues: "true" if only users that may `use` the queue, or a queue below it, may
// submit to it.
inline constexpr char kRestrictedAnnotation[] = "fairlead.dev/restricted";
// Label of Namespaces: the queue of pods that name none.
inline constexpr char kDefaultQueueLabel[] = "fairlead.dev/default-queue";

}  // namespace fairlead::admission
