// Instance types of a public price list (CSV), as the text of a catalogue file.
//
// Read is the form of the SkyPilot catalogue (skypilot-org/skypilot-catalog, README.md, schema v5
// and later), which has a file of some twenty clouds each: a row for each type, zone and region,
// with the columns InstanceType, vCPUs, MemoryGiB, Price, Region, and if they are there
// AcceleratorName, AcceleratorCount, GpuInfo, SpotPrice, AvailabilityZone, Arch. Google Cloud's
// file has prices of GPUs in rows without a type: they are added to the types that have these GPUs
// built in.
//
// Taken are types with NVIDIA GPUs whose label (nvidia.com/gpu.product) is known here, and types
// without accelerators. A row that is wrong, or of anything else, is left out and counted; it never
// makes a price of zero. Of spot prices that differ by zone the highest counts, because a catalogue
// has one.
//
// Thread-safety: pure function. Complexity: O(rows log rows).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::hook {

struct CsvImportOptions {
  std::string region;  // empty: the one of the file, if it has one only
  std::vector<std::string>
      zones;          // as nodes are labelled, for every type; empty: those of the file
  std::string types;  // RE2, the whole name; empty: any
  bool gpus_only = false;
  std::string as_of;  // of the prices
};

struct CsvImport {
  std::string yaml;
  size_t types = 0;
  std::vector<std::string> notes;  // what was left out, for people
};

// `file`: its name, for errors and for the catalogue's source. InvalidArgument: it is no such list,
// no row is of the region, or its zones are not those that nodes are labelled with.
absl::StatusOr<CsvImport> ImportCatalogCsv(absl::string_view text, const std::string& file,
                                           const CsvImportOptions& options);

}  // namespace fairlead::hook
