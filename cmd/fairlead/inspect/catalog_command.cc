// catalog: the instance types on offer; catalog import: such a file from a price list.
#include "cmd/fairlead/inspect/catalog_command.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/catalog/csv_import.h"
#include "base/status_macros.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/settings/config_file.h"
#include "cmd/fairlead/terminal/table.h"
#include "document/json.h"

namespace fairlead::cmd {
namespace {

constexpr double kMicroUsdPerUsd = 1e6;

std::string Price(const std::optional<int64_t>& micro_usd) {
  return micro_usd.has_value()
             ? absl::StrFormat("%.3f", static_cast<double>(*micro_usd) / kMicroUsdPerUsd)
             : "";
}

std::string PerGpu(const hook::InstanceType& type) {
  if (type.gpu_count == 0 || !type.on_demand_micro_usd.has_value()) return "";
  return absl::StrFormat("%.3f", static_cast<double>(*type.on_demand_micro_usd) / kMicroUsdPerUsd /
                                     static_cast<double>(type.gpu_count));
}

// "cr-1: 4 x 0.000", with the zone if it has one.
std::string Reserved(const hook::InstanceType& type) {
  std::vector<std::string> texts;
  for (const hook::Reservation& one : type.reservations) {
    texts.push_back(absl::StrCat(one.name, one.zone.empty() ? "" : " in ", one.zone, ": ",
                                 one.count, " x ", Price(one.price_micro_usd_per_hour)));
  }
  return absl::StrJoin(texts, ", ");
}

void PrintTable(const hook::Catalog& catalog, std::ostream& out) {
  Table table({"TYPE", "ARCH", ">CPU", ">MEMORY", ">GPUS", "MODEL", ">$/H", ">$/H PER GPU",
               ">$/H SPOT", "ZONES", "RESERVED"});
  for (const hook::InstanceType& type : catalog.types()) {
    table.AddRow({type.name, type.architecture,
                  absl::StrFormat("%g", static_cast<double>(type.cpu_milli) / 1000),
                  absl::StrFormat("%.4gGi", static_cast<double>(type.memory_bytes) / (1 << 30)),
                  type.gpu_count > 0 ? absl::StrCat(type.gpu_count) : "", type.gpu_model,
                  Price(type.on_demand_micro_usd), PerGpu(type), Price(type.spot_micro_usd),
                  absl::StrJoin(type.zones, ","), Reserved(type)});
  }
  out << table.Text();
}

Json JsonOf(const hook::Catalog& catalog) {
  Json list = Json::Object();
  list.SetUnlessEmpty("asOf", catalog.as_of());
  list.SetUnlessEmpty("source", catalog.source());
  Json items = Json::Array();
  for (const hook::InstanceType& type : catalog.types()) {
    Json item = Json::Object();
    item.Set("name", type.name);
    item.Set("architecture", type.architecture);
    item.Set("cpuMilli", Json::Int(type.cpu_milli));
    item.Set("memoryBytes", Json::Int(type.memory_bytes));
    if (type.gpu_count > 0) {
      item.Set("gpus", Json::Int(type.gpu_count));
      item.Set("gpuModel", type.gpu_model);
    }
    if (type.on_demand_micro_usd.has_value()) {
      item.Set("pricePerHourUSD", Json::Number(Price(type.on_demand_micro_usd)));
    }
    if (type.spot_micro_usd.has_value()) {
      item.Set("spotPricePerHourUSD", Json::Number(Price(type.spot_micro_usd)));
    }
    Json reservations = Json::Array();
    for (const hook::Reservation& one : type.reservations) {
      Json reservation = Json::Object();
      reservation.Set("name", one.name).SetUnlessEmpty("zone", one.zone);
      reservation.Set("count", Json::Int(one.count));
      reservation.Set("pricePerHourUSD", Json::Number(Price(one.price_micro_usd_per_hour)));
      reservations.Add(std::move(reservation));
    }
    if (!type.reservations.empty()) item.Set("reservations", std::move(reservations));
    Json zones = Json::Array();
    for (const std::string& zone : type.zones) zones.Add(Json::String(zone));
    item.Set("zones", std::move(zones));
    items.Add(std::move(item));
  }
  list.Set("items", std::move(items));
  return list;
}

}  // namespace

absl::Status RunCatalog(const CommonFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OutputFormat format, ParseOutputFormat(flags.output));
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Settings settings,
      LoadSettings(flags.configuration, flags.catalog, ReadTextFile, flags.plugins));
  const hook::Catalog& catalog = settings.catalog;
  if (format == OutputFormat::kTable) {
    PrintTable(catalog, out);
    const int64_t unpriced = std::count_if(
        catalog.types().begin(), catalog.types().end(), [](const hook::InstanceType& type) {
          return !type.on_demand_micro_usd.has_value() && !type.spot_micro_usd.has_value() &&
                 type.reservations.empty();
        });
    std::cerr << "note: " << catalog.types().size() << " types"
              << (unpriced > 0 ? absl::StrCat(", ", unpriced, " without a price, never provisioned")
                               : "")
              << "; prices: " << (catalog.source().empty() ? "unknown source" : catalog.source())
              << (catalog.as_of().empty() ? "" : absl::StrCat(", as of ", catalog.as_of())) << "\n";
    return absl::OkStatus();
  }
  const Json json = JsonOf(catalog);
  out << Render(json, format);
  return absl::OkStatus();
}

absl::Status RunCatalogImport(const CatalogImportFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.file));
  const size_t slash = flags.file.find_last_of('/');
  const std::string name = slash == std::string::npos ? flags.file : flags.file.substr(slash + 1);
  FAIRLEAD_ASSIGN_OR_RETURN(const hook::CsvImport import,
                            hook::ImportCatalogCsv(text, name, flags.options));
  out << import.yaml;
  for (const std::string& note : import.notes) std::cerr << "note: " << Printable(note) << "\n";
  std::cerr << "note: types: " << import.types << "\n";
  return absl::OkStatus();
}

}  // namespace fairlead::cmd
