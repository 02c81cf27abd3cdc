#include "autoscale-hook/catalog/csv_import.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "autoscale-hook/catalog/catalog.h"
#include "base/status_macros.h"
#include "document/csv.h"
#include "document/json.h"
#include "re2/re2.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {
namespace {

constexpr int64_t kMicroPerDollar = 1'000'000;
constexpr int64_t kMibPerGib = 1024;
// As the built-in catalogue: kubelet, system, DaemonSets.
constexpr int64_t kReservedCpuMilli = 200, kReservedMib = 2 * kMibPerGib;
constexpr size_t kMostNotes = 12;

// Names of GPUs as price lists have them, and as NVIDIA's feature discovery labels nodes.
struct GpuName {
  const char* listed;
  const char* label;
};
constexpr GpuName kGpuNames[] = {
    {"A10", "NVIDIA-A10"},
    {"A100", "NVIDIA-A100-SXM4-40GB"},
    {"A100-80GB", "NVIDIA-A100-SXM4-80GB"},
    {"A100-80GB-SXM", "NVIDIA-A100-SXM4-80GB"},
    {"A10G", "NVIDIA-A10G"},
    {"A6000", "NVIDIA-RTX-A6000"},
    {"B200", "NVIDIA-B200"},
    {"GH200", "NVIDIA-GH200-480GB"},
    {"H100", "NVIDIA-H100-80GB-HBM3"},
    {"H100-MEGA", "NVIDIA-H100-80GB-HBM3"},
    {"H100-SXM", "NVIDIA-H100-80GB-HBM3"},
    {"H200", "NVIDIA-H200"},
    {"H200-SXM", "NVIDIA-H200"},
    {"K80", "Tesla-K80"},
    {"L4", "NVIDIA-L4"},
    {"L40S", "NVIDIA-L40S"},
    {"P100", "Tesla-P100-PCIE-16GB"},
    {"P4", "Tesla-P4"},
    {"RTXPRO6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"},
    {"T4", "Tesla-T4"},
    {"V100", "Tesla-V100-SXM2-16GB"},
    {"V100-32GB", "Tesla-V100-SXM2-32GB"},
};

// Types of Google Cloud that have GPUs built in, by the beginning of their names. The number of
// GPUs ends the name ("a2-highgpu-8g"); of g2-standard it follows the CPUs. Source:
// cloud.google.com/compute/docs/accelerator-optimized-machines.
struct BuiltIn {
  const char* prefix;
  const char* gpu;
};
constexpr BuiltIn kBuiltIn[] = {{"a2-highgpu-", "A100"},       {"a2-megagpu-", "A100"},
                                {"a2-ultragpu-", "A100-80GB"}, {"a3-highgpu-", "H100"},
                                {"a3-megagpu-", "H100-MEGA"},  {"a3-ultragpu-", "H200"},
                                {"a4-highgpu-", "B200"},       {"g2-standard-", "L4"}};

struct Gpu {
  std::string name;
  int64_t count = 0;
};

std::optional<Gpu> BuiltInGpu(absl::string_view type) {
  for (const BuiltIn& family : kBuiltIn) {
    if (!absl::ConsumePrefix(&type, family.prefix)) continue;
    int64_t number = 0;
    const bool counted = absl::ConsumeSuffix(&type, "g");
    if (!absl::SimpleAtoi(type, &number) || number <= 0) return std::nullopt;
    if (counted) return Gpu{family.gpu, number};
    return Gpu{family.gpu, number >= 96 ? 8 : number >= 48 ? 4 : number == 24 ? 2 : 1};
  }
  return std::nullopt;
}

const char* LabelOf(absl::string_view listed) {
  for (const GpuName& name : kGpuNames) {
    if (listed == name.listed) return name.label;
  }
  return nullptr;
}

struct Prices {
  std::optional<int64_t> on_demand, spot;  // micro-dollars an hour
};

struct Type {
  std::string arch = "amd64";
  int64_t cpu_milli = 0, memory_mib = 0;
  Gpu gpu;
  int64_t gpu_memory_mib = 0;
  std::set<std::string> zones;
  Prices prices;
};

// What was left out, and why: each reason once, with how often.
class LeftOut {
 public:
  void Add(const std::string& reason, const std::string& example) {
    Entry& entry = reasons_[reason];
    if (entry.count++ == 0) entry.example = example;
  }
  [[nodiscard]] std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    for (const auto& [reason, entry] : reasons_) {
      if (notes.size() == kMostNotes) {
        notes.push_back(absl::StrCat(reasons_.size() - kMostNotes, " more reasons"));
        break;
      }
      notes.push_back(
          absl::StrCat("left out: ", reason, " (", entry.count, "; ", entry.example, ")"));
    }
    return notes;
  }

 private:
  struct Entry {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, Entry> reasons_;
};

std::optional<int64_t> Highest(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a.has_value()) return b;
  return b.has_value() ? std::max(*a, *b) : a;
}

class Importer {
 public:
  Importer(const Csv& csv, std::string file, const CsvImportOptions& options)
      : csv_(csv),
        file_(std::move(file)),
        options_(options),
        types_wanted_(options.types, RE2::Quiet) {}

  absl::StatusOr<CsvImport> Import();

 private:
  using GpuPrice = std::tuple<std::string, std::string, int64_t>;  // zone, name, count

  absl::Status CheckColumns() const;
  absl::StatusOr<std::string> Region() const;
  // "" if the file has no such column.
  [[nodiscard]] std::string Cell(size_t row, const char* column) const {
    if (!csv_.Has(column)) return "";
    const absl::StatusOr<std::string> text = csv_.Text(row, column);
    return text.ok() ? *text : "";
  }
  [[nodiscard]] absl::StatusOr<int64_t> Number(size_t row, const char* column,
                                               int64_t units_per_one) const;
  // Absent for an empty cell. A price of zero is no price: lists have it where they know none.
  [[nodiscard]] absl::StatusOr<std::optional<int64_t>> Price(size_t row, const char* column) const;
  [[nodiscard]] absl::StatusOr<Prices> PricesOf(size_t row) const;
  [[nodiscard]] absl::StatusOr<Gpu> GpuOf(size_t row) const;
  absl::Status ReadGpuPrice(size_t row);
  absl::Status ReadType(size_t row);
  // Adds what the GPUs cost where the row has the machine alone; an error: that is not known.
  [[nodiscard]] absl::Status AddBuiltIn(const std::string& zone, Type& read) const;
  absl::Status CheckZones() const;
  [[nodiscard]] Json JsonOf(const std::string& name, const Type& type) const;

  const Csv& csv_;
  const std::string file_;
  const CsvImportOptions& options_;
  const RE2 types_wanted_;
  std::string region_;
  std::map<GpuPrice, Prices> gpu_prices_;
  std::map<std::string, Type> types_;
  LeftOut left_out_;
};

absl::Status Importer::CheckColumns() const {
  for (const char* column : {"InstanceType", "vCPUs", "MemoryGiB", "Price", "Region"}) {
    if (csv_.Has(column)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": has no column ", column,
                     "; a list has InstanceType, vCPUs, MemoryGiB, Price and Region"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Importer::Region() const {
  constexpr size_t kMostNamed = 8;
  std::set<std::string> regions;
  for (size_t row = 0; row < csv_.size(); ++row) regions.insert(Cell(row, "Region"));
  regions.erase("");
  const std::string& wanted = options_.region;
  if (wanted.empty() && regions.size() == 1) return *regions.begin();
  if (regions.contains(wanted)) return wanted;
  std::vector<std::string> named(regions.begin(), regions.end());
  if (named.size() > kMostNamed) named.resize(kMostNamed);
  return absl::InvalidArgumentError(
      absl::StrCat(file_,
                   wanted.empty() ? ": has several regions, name one (--region): "
                                  : absl::StrCat(": has no row of region ", wanted, ", but of "),
                   absl::StrJoin(named, ", "), regions.size() > named.size() ? ", ..." : ""));
}

absl::StatusOr<int64_t> Importer::Number(size_t row, const char* column,
                                         int64_t units_per_one) const {
  const absl::StatusOr<int64_t> value = model::ParseDecimal(Cell(row, column), units_per_one);
  if (value.ok() && *value > 0) return *value;
  return absl::InvalidArgumentError(absl::StrCat(column, " is no number above zero"));
}

absl::StatusOr<std::optional<int64_t>> Importer::Price(size_t row, const char* column) const {
  const std::string text = Cell(row, column);
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<int64_t> price = model::ParseDecimal(text, kMicroPerDollar);
  if (!price.ok() || *price < 0) {
    return absl::InvalidArgumentError(absl::StrCat(column, " is no price"));
  }
  return *price == 0 ? std::nullopt : std::optional<int64_t>(*price);
}

absl::StatusOr<Prices> Importer::PricesOf(size_t row) const {
  Prices prices;
  FAIRLEAD_ASSIGN_OR_RETURN(prices.on_demand, Price(row, "Price"));
  FAIRLEAD_ASSIGN_OR_RETURN(prices.spot, Price(row, "SpotPrice"));
  return prices;
}

absl::StatusOr<Gpu> Importer::GpuOf(size_t row) const {
  Gpu gpu;
  gpu.name = Cell(row, "AcceleratorName");
  if (gpu.name.empty()) return gpu;
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t milli, Number(row, "AcceleratorCount", 1000));
  if (milli % 1000 != 0) return absl::InvalidArgumentError("a part of a GPU");
  gpu.count = milli / 1000;
  if (LabelOf(gpu.name) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("accelerator ", gpu.name, " is not known"));
  }
  return gpu;
}

absl::Status Importer::ReadGpuPrice(size_t row) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Gpu gpu, GpuOf(row));
  FAIRLEAD_ASSIGN_OR_RETURN(
      gpu_prices_[GpuPrice(Cell(row, "AvailabilityZone"), gpu.name, gpu.count)], PricesOf(row));
  return absl::OkStatus();
}

absl::Status Importer::AddBuiltIn(const std::string& zone, Type& read) const {
  const auto price = gpu_prices_.find(GpuPrice(zone, read.gpu.name, read.gpu.count));
  if (price == gpu_prices_.end() || !price->second.on_demand.has_value() ||
      !read.prices.on_demand.has_value()) {
    return absl::InvalidArgumentError("no price of the GPUs in it");
  }
  *read.prices.on_demand += *price->second.on_demand;
  if (read.prices.spot.has_value() && price->second.spot.has_value()) {
    *read.prices.spot += *price->second.spot;
  } else {
    read.prices.spot.reset();
  }
  return absl::OkStatus();
}

absl::Status Importer::ReadType(size_t row) {
  const std::string name = Cell(row, "InstanceType"), zone = Cell(row, "AvailabilityZone");
  static const RE2 kName("[A-Za-z0-9][A-Za-z0-9._-]*");
  if (!RE2::FullMatch(name, kName)) return absl::InvalidArgumentError("a name that is none");
  Type read;
  FAIRLEAD_ASSIGN_OR_RETURN(read.cpu_milli, Number(row, "vCPUs", 1000));
  FAIRLEAD_ASSIGN_OR_RETURN(read.memory_mib, Number(row, "MemoryGiB", kMibPerGib));
  if (read.cpu_milli <= kReservedCpuMilli) {
    return absl::InvalidArgumentError("leaves no CPU for pods");
  }
  const std::string arch = Cell(row, "Arch");
  if (!arch.empty() && arch != "x86_64" && arch != "amd64" && arch != "arm64") {
    return absl::InvalidArgumentError(absl::StrCat("architecture ", arch));
  }
  if (arch == "arm64") read.arch = arch;
  FAIRLEAD_ASSIGN_OR_RETURN(read.prices, PricesOf(row));
  FAIRLEAD_ASSIGN_OR_RETURN(read.gpu, GpuOf(row));
  if (read.gpu.count == 0 && !gpu_prices_.empty()) {
    if (const std::optional<Gpu> gpu = BuiltInGpu(name); gpu.has_value()) {
      read.gpu = *gpu;
      FAIRLEAD_RETURN_IF_ERROR(AddBuiltIn(zone, read));
    }
  }
  if (options_.gpus_only && read.gpu.count == 0) return absl::OkStatus();
  static const RE2 kGpuMemory(R"(SizeInMiB['"]?\s*:\s*(\d+))");
  RE2::PartialMatch(Cell(row, "GpuInfo"), kGpuMemory, &read.gpu_memory_mib);
  Type& type = types_.try_emplace(name, read).first->second;
  type.prices.on_demand = Highest(type.prices.on_demand, read.prices.on_demand);
  type.prices.spot = Highest(type.prices.spot, read.prices.spot);
  if (!zone.empty()) type.zones.insert(zone);
  return absl::OkStatus();
}

// AWS lists zones by ids, which name another zone in each account.
absl::Status Importer::CheckZones() const {
  if (!options_.zones.empty()) return absl::OkStatus();
  static const RE2 kZoneId("[a-z]+[0-9]-az[0-9]+");
  for (const auto& [name, type] : types_) {
    const std::string zone = type.zones.empty() ? "" : *type.zones.begin();
    if (!zone.empty() && !RE2::FullMatch(zone, kZoneId)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": ",
        zone.empty() ? "names no zones" : absl::StrCat("has ids of zones (", zone, ")"),
        ", but nodes are labelled with names (topology.kubernetes.io/zone): give --zones"));
  }
  return absl::OkStatus();
}

std::string Dollars(int64_t micro) {
  std::string text = absl::StrCat(micro / kMicroPerDollar, ".");
  std::string digits = absl::StrCat(micro % kMicroPerDollar);
  digits.insert(0, 6 - digits.size(), '0');
  while (digits.size() > 2 && digits.back() == '0') digits.pop_back();
  return text + digits;
}

std::string MemoryText(int64_t mib) {
  return mib % kMibPerGib == 0 ? absl::StrCat(mib / kMibPerGib, "Gi") : absl::StrCat(mib, "Mi");
}

Json Texts(const std::vector<std::string>& texts) {
  Json list = Json::Array();
  for (const std::string& text : texts) list.Add(Json::String(text));
  return list;
}

Json Importer::JsonOf(const std::string& name, const Type& type) const {
  Json json = Json::Object();
  json.Set("name", name);
  if (type.arch != "amd64") json.Set("arch", type.arch);
  json.Set("cpu", type.cpu_milli % 1000 == 0 ? absl::StrCat(type.cpu_milli / 1000)
                                             : absl::StrCat(type.cpu_milli, "m"));
  json.Set("memory", MemoryText(type.memory_mib));
  if (type.memory_mib < 2 * kReservedMib) {
    Json reserved = Json::Object();
    reserved.Set("cpu", absl::StrCat(kReservedCpuMilli, "m"));
    reserved.Set("memory", absl::StrCat(type.memory_mib / 2, "Mi"));
    json.Set("reserved", std::move(reserved));
  }
  if (type.gpu.count > 0) {
    Json gpu = Json::Object();
    gpu.Set("model", LabelOf(type.gpu.name));
    gpu.Set("count", Json::Int(type.gpu.count));
    if (type.gpu_memory_mib > 0) gpu.Set("memory_mib", Json::Int(type.gpu_memory_mib));
    json.Set("gpu", std::move(gpu));
  }
  if (options_.zones.empty()) {
    json.Set("zones", Texts({type.zones.begin(), type.zones.end()}));
  }
  Json price = Json::Object();
  if (type.prices.on_demand.has_value()) {
    price.Set("on_demand", Json::Number(Dollars(*type.prices.on_demand)));
  }
  if (type.prices.spot.has_value()) price.Set("spot", Json::Number(Dollars(*type.prices.spot)));
  if (!price.fields().empty()) json.Set("price", std::move(price));
  return json;
}

absl::StatusOr<CsvImport> Importer::Import() {
  if (!types_wanted_.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--types: ", types_wanted_.error()));
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckColumns());
  FAIRLEAD_ASSIGN_OR_RETURN(region_, Region());
  for (const bool gpus : {true, false}) {  // a machine's price needs that of its GPUs
    for (size_t row = 0; row < csv_.size(); ++row) {
      const std::string name = Cell(row, "InstanceType");
      if (Cell(row, "Region") != region_ || name.empty() != gpus) continue;
      if (!gpus && !options_.types.empty() && !RE2::FullMatch(name, types_wanted_)) continue;
      const absl::Status read = gpus ? ReadGpuPrice(row) : ReadType(row);
      if (read.ok()) continue;
      left_out_.Add(std::string(read.message()), std::string(csv_.Bad(row, name).message()));
    }
  }
  if (types_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": no type of region ", region_, " is left",
        left_out_.Notes().empty() ? ""
                                  : absl::StrCat("; ", absl::StrJoin(left_out_.Notes(), "; "))));
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckZones());
  Json file = Json::Object();
  file.SetUnlessEmpty("as_of", options_.as_of);
  file.Set("source", absl::StrCat(file_, ", region ", region_));
  Json defaults = Json::Object(), reserved = Json::Object();
  if (!options_.zones.empty()) defaults.Set("zones", Texts(options_.zones));
  reserved.Set("cpu", absl::StrCat(kReservedCpuMilli, "m"));
  reserved.Set("memory", MemoryText(kReservedMib));
  defaults.Set("reserved", std::move(reserved));
  file.Set("defaults", std::move(defaults));
  Json types = Json::Array();
  for (const auto& [name, type] : types_) types.Add(JsonOf(name, type));
  file.Set("types", std::move(types));
  CsvImport import{file.Yaml(), types_.size(), left_out_.Notes()};
  // What is written can be read.
  FAIRLEAD_RETURN_IF_ERROR(Catalog::Parse(import.yaml, file_).status());
  return import;
}

}  // namespace

absl::StatusOr<CsvImport> ImportCatalogCsv(absl::string_view text, const std::string& file,
                                           const CsvImportOptions& options) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Csv csv, Csv::Parse(text, file));
  return Importer(csv, file, options).Import();
}

}  // namespace fairlead::hook
