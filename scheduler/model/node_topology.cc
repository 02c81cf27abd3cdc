#include "scheduler/model/node_topology.h"

#include "base/json_writer.h"
#include "scheduler/model/quantity.h"

namespace fairlead::model {

std::string FormatNumaZones(const std::vector<ZoneAmounts>& zones) {
  if (zones.empty()) return "";
  JsonWriter json;
  json.BeginArray();
  for (const ZoneAmounts& zone : zones) {
    json.BeginObject().Field("zone", zone.zone).Key("amount").BeginObject();
    for (const auto& [name, amount] : zone.amounts) {
      json.Field(name, FormatQuantity(name, amount));
    }
    json.EndObject().EndObject();
  }
  json.EndArray();
  return json.Take();
}

}  // namespace fairlead::model
