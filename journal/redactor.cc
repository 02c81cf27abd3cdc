#include "journal/redactor.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autoscale-hook/machines/announced.h"
#include "journal/usage_names.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/devices.h"

namespace fairlead::journal {
namespace {

// Before a name that a tenant chose.
constexpr const char* kPrefixes[] = {model::kTopologyOfLabel, model::kGpuModelPrefix,
                                     model::kDeviceClassResourcePrefix};
// Of CEL, and of what a selector of devices may use.
constexpr absl::string_view kExpressionWords[] = {
    "device",     "attributes", "capacity",  "driver",     "allowMultipleAllocations",
    "true",       "false",      "null",      "in",         "has",
    "size",       "matches",    "contains",  "startsWith", "endsWith",
    "exists",     "all",        "map",       "filter",     "quantity",
    "isQuantity", "compareTo",  "semver",    "isSemver",   "isGreaterThan",
    "isLessThan", "lowerAscii", "split",     "join",       "cel",
    "bind",       "int",        "string",    "double",     "bool",
    "type",       "includes",   "asInteger", "sign"};

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

std::string Escaped(absl::string_view name) {
  std::string text;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& kept) : kept_(kept), renaming_(FixedWords()) {}

void Redactor::Collect(const std::string& text) {
  std::string copy = text;
  Text(copy);
}

void Redactor::Assign() {
  renaming_.Assign();
  collecting_ = false;
}

void Redactor::BeginAgain() {
  replaced_.clear();
  made_.clear();
  told_.clear();
}

std::string Redactor::Of(const std::string& text) {
  std::string renamed = text;
  Text(renamed);
  return renamed;
}

std::string Redactor::Guess(const std::string& text) {
  std::string problem = problem_;
  std::string renamed = Renamed(text);
  problem_ = std::move(problem);
  const auto known = replaced_.find(text);
  return known == replaced_.end() ? renamed : known->second;
}

bool Redactor::Learn(const std::string& text, const std::string& other) {
  learned_[text] = other;
  made_.insert(other);
  std::string& stands = replaced_[text];
  const bool contradicts = stands != other && told_.contains(text);
  stands = other;
  return contradicts;
}

bool Redactor::LearnWord(absl::string_view word, absl::string_view other) {
  return renaming_.Override(word, other);
}

std::string Redactor::LeakIn(const Record& record) const {
  for (const std::string& text : OutlineOf(record).texts) {
    if (!text.empty() && !made_.contains(text) && !kept_.Has(text)) return text;
  }
  return "";
}

void Redactor::Problem(absl::string_view what, absl::string_view why) {
  if (problem_.empty()) problem_ = absl::StrCat(what, ": ", why);
}

void Redactor::Kept(const std::string& text) {
  if (!collecting_) made_.insert(text);
}

void Redactor::Text(std::string& text) {
  if (text.empty()) return;
  if (collecting_) {
    static_cast<void>(Renamed(text));
    return;
  }
  if (telling_) told_.insert(text);
  const auto former = replaced_.find(text);
  if (former != replaced_.end()) {
    text = former->second;
    return;
  }
  const auto learned = learned_.find(text);
  std::string renamed = learned == learned_.end() ? Renamed(text) : learned->second;
  // Sentences of actions are many, and mostly occur once.
  if (telling_ || !absl::StrContains(text, " ")) {
    made_.insert(renamed);
    replaced_.emplace(text, renamed);
  }
  text = std::move(renamed);
}

// "namespace/name" is renamed part by part, so that a name that is kept is kept in it, too.
std::string Redactor::Renamed(absl::string_view text) {
  if (text.empty() || kept_.Has(text)) return std::string(text);
  for (const absl::string_view prefix : kPrefixes) {
    absl::string_view rest = text;
    if (absl::ConsumePrefix(&rest, prefix)) return absl::StrCat(prefix, Renamed(rest));
  }
  if (const size_t slash = text.find('/'); slash != absl::string_view::npos) {
    return absl::StrCat(Renamed(text.substr(0, slash)), "/", Renamed(text.substr(slash + 1)));
  }
  if (collecting_) {
    renaming_.Collect(text);
    return "";
  }
  std::string renamed;
  if (!renaming_.Of(text, renamed)) Problem("a text", "it was not in the journal at first");
  return renamed;
}

template <typename T>
void Redactor::VisitBut(T& value, std::string& version) {
  std::string taken = std::exchange(version, "");
  VisitFields(value);
  Number(taken);
  version = std::move(taken);
}

void Redactor::Number(std::string& text) { IsDigits(text) ? Kept(text) : Text(text); }

void Redactor::Special(absl::Status& status) {
  if (status.ok()) return;
  std::string message(status.message());
  Text(message);
  status = absl::Status(status.code(), message);
}

void Redactor::Special(model::StringMap& map) {
  model::StringMap renamed;
  for (const auto& [key, value] : map) {
    std::string new_key = key, new_value = value;
    LabelValue(key, new_value);
    Text(new_key);
    renamed.Set(new_key, new_value);
  }
  map = std::move(renamed);
}

void Redactor::LabelValue(absl::string_view key, std::string& value) {
  if (kept_.IsAmountKey(key) && KeptWords::IsAmount(value)) return Kept(value);
  if (key == model::kVerdictAnnotation) {
    std::string hash = model::VerdictHashOf(value);
    if (hash.empty()) return Text(value);
    Text(hash);
    value = absl::StrCat("{\"hash\":\"", hash, "\"}");
    return Kept(value);
  }
  if (key != hook::kAnnouncedAnnotation) return Text(value);
  // "cpu=4000,example.com/fpga=1"
  std::string renamed;
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (!IsDigits(field.second)) return Text(value);
    absl::StrAppend(&renamed, renamed.empty() ? "" : ",", Renamed(field.first), "=", field.second);
  }
  value = std::move(renamed);
  Kept(value);
}

void Redactor::Special(model::ObjectMeta& meta) { VisitBut(meta, meta.resource_version); }

void Redactor::Special(model::NodeAnswers& answers) {
  std::vector<model::NodeAnswer> list = answers.list();
  Visit(list);
  answers = model::NodeAnswers(std::move(list));
}

// A pattern of names of types becomes the list of those that it matches.
void Redactor::Special(model::TypePattern& pattern) {
  if (!pattern.IsSet() || collecting_) return;
  std::string text;
  for (const std::string& type : kept_.instance_types()) {
    if (!pattern.Matches(type)) continue;
    absl::StrAppend(&text, text.empty() ? "^(" : "|", Escaped(Renamed(type)));
  }
  text = text.empty() ? "^-$" : absl::StrCat(text, ")$");
  absl::StatusOr<model::TypePattern> made = model::TypePattern::Make(text);
  if (!made.ok()) {
    return Problem(
        model::kTypeRegexpAnnotation,
        absl::StrCat("a pattern that matches too many types: ", made.status().message()));
  }
  pattern = *std::move(made);
  Kept(text);
}

void Redactor::Special(model::SelectorRequirement& requirement) {
  const bool compares = requirement.op == model::SelectorOperator::kGt ||
                        requirement.op == model::SelectorOperator::kLt;
  if (compares && collecting_) kept_.AddNumberKey(requirement.key);
  const bool was_sorted = std::is_sorted(requirement.values.begin(), requirement.values.end());
  for (std::string& value : requirement.values) LabelValue(requirement.key, value);
  if (was_sorted) std::sort(requirement.values.begin(), requirement.values.end());
  Text(requirement.key);
}

void Redactor::Special(model::PodGroup& group) {
  VisitFields(static_cast<model::PodGroupSpec&>(group));
  Visit(group.meta);
  Visit(group.schedulability_hash);
  Visit(group.scheduling_conditions);
}

void Redactor::Special(model::NativePodGroup& group) {
  Special(static_cast<model::PodGroup&>(group));
  Visit(group.scheduled_status);
  Visit(group.scheduled_reason);
  Visit(group.scheduled_message);
}

void Redactor::Special(model::SchedulingCondition& condition) {
  VisitBut(condition, condition.transition_id);
}

void Redactor::Special(model::InstanceWishes& wishes) {
  std::vector<std::string> models = std::exchange(wishes.gpu_models, {});
  VisitFields(wishes);
  for (std::string& gpu : models) kept_.IsHardware(gpu) ? Kept(gpu) : Text(gpu);
  wishes.gpu_models = std::move(models);
}

void Redactor::Special(model::Node& node) {
  if (collecting_) {
    for (const auto& [key, value] : node.meta.labels) {
      if (KeptWords::IsHardwareKey(key)) kept_.AddHardware(value);
      if (key == model::kInstanceTypeLabel) kept_.AddInstanceType(value);
    }
  }
  VisitFields(node);
}

void Redactor::Special(hook::InstanceType& type) {
  if (collecting_) {
    kept_.AddInstanceType(type.name);
    kept_.AddHardware(type.gpu_model);
    for (const std::string& zone : type.zones) kept_.AddHardware(zone);
  }
  VisitFields(type);
}

void Redactor::Special(model::DeviceVersion& version) {
  const bool is_plain = std::all_of(version.text.begin(), version.text.end(), [](char c) {
    return c == '.' || absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  is_plain ? Kept(version.text) : Text(version.text);
}

void Redactor::Special(model::DeviceClass& device_class) {
  std::vector<std::string> selectors = std::exchange(device_class.selectors, {});
  VisitFields(device_class);
  Expressions(selectors);
  device_class.selectors = std::move(selectors);
}

void Redactor::Special(model::DeviceRequest& request) {
  std::vector<std::string> selectors = std::exchange(request.selectors, {});
  VisitFields(request);
  Expressions(selectors);
  request.selectors = std::move(selectors);
}

void Redactor::Expressions(std::vector<std::string>& selectors) {
  for (std::string& selector : selectors) {
    selector = Expression(selector);
    Kept(selector);
  }
}

std::string Redactor::Expression(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() == '"' || text.front() == '\'') {
      const size_t end = std::min(text.find(text.front(), 1), text.size() - 1);
      const absl::string_view literal = text.substr(1, end - 1);
      absl::StrAppend(&out, text.substr(0, 1),
                      KeptWords::IsAmount(literal) ? std::string(literal) : Renamed(literal),
                      text.substr(0, 1));
      text.remove_prefix(end + 1);
      continue;
    }
    const absl::string_view part = PartsOf(text.substr(0, text.find_first_of("\"'"))).front().text;
    const bool stays = std::find(std::begin(kExpressionWords), std::end(kExpressionWords), part) !=
                           std::end(kExpressionWords) ||
                       KeptWords::IsAmount(part);
    absl::StrAppend(&out, stays ? std::string(part) : Renamed(part));
    text.remove_prefix(part.size());
  }
  return out;
}

void Redactor::Special(model::ActionResult& result) {
  const std::shared_ptr<const std::string> object = std::exchange(result.object, nullptr);
  VisitBut(result, result.resource_version);
  if (object == nullptr) return;
  const absl::StatusOr<Json> json = Json::Parse(*object);
  std::string text = json.ok() ? GroupingObject(*json).Compact() : std::string("{}");
  Kept(text);
  result.object = std::make_shared<const std::string>(std::move(text));
}

void Redactor::Special(model::Suspendable& object) { VisitBut(object, object.resource_version); }

void Redactor::Special(model::Progress& progress) { VisitBut(progress, progress.resource_version); }

void Redactor::Special(PodsListed& record) { VisitBut(record, record.version); }

void Redactor::Special(UsageRestored& record) {
  if (record.text.empty()) return;
  std::string text = RenamedUsage(record.text, [this](std::string& name) { Text(name); });
  record.text = text.empty() ? "-" : std::move(text);  // as unreadable as it was
  Kept(record.text);
}

void Redactor::Special(Start& start) {
  const std::string version = std::exchange(start.version, "");
  std::vector<std::string> documents = std::exchange(start.documents, {});
  VisitFields(start);
  for (std::string& document : documents) {
    const absl::StatusOr<Json> json = Json::Parse(document);
    if (!json.ok()) return Problem("the configuration", json.status().message());
    document = Configuration(*json).Compact();
    Kept(document);
  }
  start.documents = std::move(documents);
  start.version = version;
  Kept(version);
}

}  // namespace fairlead::journal
