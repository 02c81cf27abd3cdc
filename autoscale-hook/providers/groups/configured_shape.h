// Groups whose machines the configuration describes (model::MachineShape): their template, price
// and labels. Of the providers scale-subresource and provisioning-request.
//
// Thread-safety: pure functions, if `known_type` is. Complexity: linear in the shape.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/group_reader.h"
#include "scheduler/model/machine_shape.h"
#include "scheduler/model/node.h"

namespace fairlead::hook {

// Returns a node of that name as it is when it can be used. FailedPrecondition: the catalogue has
// no type of the configured name.
absl::StatusOr<model::Node> TemplateOfShape(const model::MachineShape& shape,
                                            const KnownType& known_type, const std::string& name);
// Returns the group as the port lists it; its `debug` changes with the amounts, so that the
// template is read again when the catalogue changes.
CloudGroup GroupOfShape(const model::MachineShape& shape, const KnownType& known_type,
                        const std::string& id, int64_t min_size, int64_t max_size);
// Returns dollars per hour; Unimplemented: no price is configured.
absl::StatusOr<double> PriceOfShape(const model::MachineShape& shape);
// "a=b,c=d"
std::string SelectorText(const model::StringMap& labels);

}  // namespace fairlead::hook
