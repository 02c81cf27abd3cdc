// One version of one object. It never changes: store, history, pages of lists and watches share it,
// and each encoding of it is made at most once.
//
// Ownership: owns its JSON. Thread-safety: none, one thread (the encodings are made when first
// asked for).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

class ApiObject {
 public:
  // `json` has its metadata, resourceVersion included.
  ApiObject(const ResourceRow& row, Json json, uint64_t version)
      : row_(row), json_(std::move(json)), version_(version) {}
  ApiObject(const ApiObject&) = delete;
  ApiObject& operator=(const ApiObject&) = delete;

  [[nodiscard]] const ResourceRow& row() const { return row_; }
  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] uint64_t version() const { return version_; }
  // The object as JSON text, and as a protobuf message without its envelope.
  [[nodiscard]] const std::string& Text() const;
  [[nodiscard]] const std::string& Message() const;

 private:
  const ResourceRow& row_;
  const Json json_;
  const uint64_t version_;
  mutable std::string text_, message_;
};

using ObjectPtr = std::shared_ptr<const ApiObject>;

// "ns/name", "name": the order of keys is etcd's.
std::string ObjectKey(const ResourceRow& row, absl::string_view ns, absl::string_view name);
std::string ObjectKey(const ResourceRow& row, const Json& object);

}  // namespace fairlead::sim::world
