#include "cmd/fairlead/migrate/migrate_plan.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cmd/fairlead/settings/config_file.h"
#include "document/json_pointer.h"

namespace fairlead::cmd {
namespace {

constexpr char kSchedulerNames[] = "schedulerNames:";

MigrationStep Stop(const KaiDeployment& deployment) {
  MigrationStep step;
  step.title = absl::StrCat("stop KAI's ", KaiComponentName(deployment.component));
  step.object = {"apps/v1", "Deployment", deployment.ns, deployment.name};
  step.pointer = "/spec/replicas";
  step.from = Json::Int(deployment.replicas);
  step.to = Json::Int(0);
  step.pods = deployment.selector;
  step.drains_bind_requests = deployment.component == KaiComponent::kScheduler;
  return step;
}

MigrationStep Ignore(const KaiWebhook& webhook) {
  MigrationStep step;
  step.title = absl::StrCat("let webhook ", webhook.name, " pass without an answer");
  step.object = {
      "admissionregistration.k8s.io/v1",
      webhook.validating ? "ValidatingWebhookConfiguration" : "MutatingWebhookConfiguration", "",
      webhook.configuration};
  step.pointer = absl::StrCat("/webhooks/", webhook.index, "/failurePolicy");
  step.from = Json::String("Fail");
  step.to = Json::String("Ignore");
  return step;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& text) {
  FAIRLEAD_ASSIGN_OR_RETURN(const core::Configuration read,
                            ParseConfiguration(text, "fairlead.yaml"));
  return read.options.state.scheduler_names;
}

absl::Status ByHand(absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("Fairlead's configuration: schedulerNames ", why, "; change it by hand"));
}

std::string Bare(absl::string_view item) {
  item = absl::StripAsciiWhitespace(item);
  if (item.size() >= 2 && item.front() == item.back() &&
      (item.front() == '"' || item.front() == '\'')) {
    item = item.substr(1, item.size() - 2);
  }
  return std::string(item);
}

// The list in its text: either in brackets on the line of the key, or a line per item.
struct NameList {
  std::vector<std::string> lines;  // of the file
  size_t key = 0;                  // the line of the key
  size_t open = 0, close = 0;      // of the brackets, on that line; both 0: lines
  std::vector<size_t> items;       // lines of items
};

absl::StatusOr<NameList> FindNames(const std::string& text) {
  NameList list;
  list.lines = absl::StrSplit(text, '\n');
  const auto key = absl::c_find_if(
      list.lines, [](const std::string& line) { return absl::StartsWith(line, kSchedulerNames); });
  if (key == list.lines.end()) return ByHand("is not in the file");
  list.key = static_cast<size_t>(key - list.lines.begin());
  absl::string_view value = *key;
  value.remove_prefix(std::string(kSchedulerNames).size());
  value = absl::StripAsciiWhitespace(value);
  if (absl::StartsWith(value, "[")) {
    list.open = key->find('[');
    list.close = key->find(']');
    if (list.close == std::string::npos) return ByHand("is on several lines");
    return list;
  }
  if (!value.empty() && !absl::StartsWith(value, "#")) return ByHand("is no plain list");
  for (size_t i = list.key + 1; i < list.lines.size(); ++i) {
    const absl::string_view line = absl::StripAsciiWhitespace(list.lines[i]);
    if (absl::StartsWith(line, "- ")) {
      list.items.push_back(i);
    } else if (!line.empty() && !absl::StartsWith(line, "#")) {
      break;
    }
  }
  if (list.items.empty()) return ByHand("has no items");
  return list;
}

// The new text has exactly these names, whatever was changed in it.
absl::StatusOr<std::string> Checked(const NameList& list, const std::vector<std::string>& wanted) {
  std::string text = absl::StrJoin(list.lines, "\n");
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(text));
  if (names != wanted) return ByHand("cannot be changed in place");
  return text;
}

MigrationStep ReadStep(const Json& item) {
  MigrationStep step;
  step.title = item.TextAt({"title"});
  step.object = {item.TextAt({"apiVersion"}), item.TextAt({"kind"}), item.TextAt({"namespace"}),
                 item.TextAt({"name"})};
  step.pointer = item.TextAt({"pointer"});
  if (const Json* const from = item.Find("from")) step.from = *from;
  if (const Json* const to = item.Find("to")) step.to = *to;
  step.pods = item.TextAt({"pods"});
  step.served = item.TextAt({"served"});
  return step;
}

bool SameField(const MigrationStep& a, const MigrationStep& b) {
  return a.object.api_version == b.object.api_version && a.object.kind == b.object.kind &&
         a.object.ns == b.object.ns && a.object.name == b.object.name && a.pointer == b.pointer;
}

bool Equal(const Json& a, const Json& b) { return a.Compact() == b.Compact(); }

std::string Shown(const Json& value) {
  constexpr size_t kLongest = 40;
  const std::string text = value.Compact();
  return text.size() <= kLongest ? text : "(text)";
}

}  // namespace

absl::StatusOr<std::string> WithSchedulerName(const std::string& text, const std::string& name) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(text));
  if (absl::c_linear_search(names, name)) return text;
  names.push_back(name);
  FAIRLEAD_ASSIGN_OR_RETURN(NameList list, FindNames(text));
  if (list.close > 0) {
    std::string& line = list.lines[list.key];
    const absl::string_view inside = absl::StripAsciiWhitespace(
        absl::string_view(line).substr(list.open + 1, list.close - list.open - 1));
    line.insert(list.close, absl::StrCat(inside.empty() ? "" : ", ", name));
  } else {
    const std::string& last = list.lines[list.items.back()];
    list.lines.insert(list.lines.begin() + static_cast<std::ptrdiff_t>(list.items.back()) + 1,
                      absl::StrCat(last.substr(0, last.find('-')), "- ", name));
  }
  return Checked(list, names);
}

absl::StatusOr<std::string> WithoutSchedulerName(const std::string& text, const std::string& name) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(text));
  if (!absl::c_linear_search(names, name)) return text;
  std::erase(names, name);
  if (names.empty()) return ByHand("would be empty");
  FAIRLEAD_ASSIGN_OR_RETURN(NameList list, FindNames(text));
  if (list.close > 0) {
    std::string& line = list.lines[list.key];
    std::vector<std::string> kept;
    for (const absl::string_view item :
         absl::StrSplit(line.substr(list.open + 1, list.close - list.open - 1), ',')) {
      if (Bare(item) != name) kept.emplace_back(absl::StripAsciiWhitespace(item));
    }
    line.replace(list.open + 1, list.close - list.open - 1, absl::StrJoin(kept, ", "));
  } else {
    for (auto item = list.items.rbegin(); item != list.items.rend(); ++item) {
      absl::string_view line = absl::StripAsciiWhitespace(list.lines[*item]);
      absl::ConsumePrefix(&line, "- ");
      if (Bare(line) == name) {
        list.lines.erase(list.lines.begin() + static_cast<std::ptrdiff_t>(*item));
      }
    }
  }
  return Checked(list, names);
}

absl::StatusOr<std::vector<MigrationStep>> PlanMigration(const KaiInstallation& kai,
                                                         const MigrateOptions& options) {
  std::vector<MigrationStep> steps;
  const auto stop = [&](KaiComponent component) {
    for (const KaiDeployment& deployment : kai.deployments) {
      if (deployment.component == component && deployment.replicas > 0) {
        steps.push_back(Stop(deployment));
      }
    }
  };
  stop(KaiComponent::kOperator);
  stop(KaiComponent::kNodeScaleAdjuster);
  stop(KaiComponent::kScheduler);
  if (options.controllers) {
    for (const KaiWebhook& webhook : kai.webhooks) {
      const bool stops = absl::c_any_of(kai.deployments, [&](const KaiDeployment& deployment) {
        return (deployment.component == KaiComponent::kQueueController ||
                deployment.component == KaiComponent::kPodGroupController) &&
               deployment.ns == webhook.service_ns && deployment.name == webhook.service;
      });
      if (stops && webhook.fails) steps.push_back(Ignore(webhook));
    }
    stop(KaiComponent::kBinder);
    stop(KaiComponent::kPodGrouper);
    stop(KaiComponent::kPodGroupController);
    stop(KaiComponent::kQueueController);
  }
  const FairleadInstallation& fairlead = kai.fairlead;
  if (!absl::c_linear_search(fairlead.scheduler_names, kai.scheduler_name)) {
    MigrationStep step;
    step.title = absl::StrCat("let Fairlead serve ", kai.scheduler_name);
    step.object = {"v1", "ConfigMap", fairlead.ns, fairlead.config_map};
    step.pointer = absl::StrCat("/data/", EscapePointerStep(fairlead.key));
    step.from = Json::String(fairlead.text);
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text,
                              WithSchedulerName(fairlead.text, kai.scheduler_name));
    step.to = Json::String(text);
    step.served = kai.scheduler_name;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<MigrationStep> MergeRecord(std::vector<MigrationStep> recorded,
                                       const std::vector<MigrationStep>& steps) {
  for (const MigrationStep& step : steps) {
    const auto known = absl::c_find_if(
        recorded, [&](const MigrationStep& other) { return SameField(step, other); });
    if (known == recorded.end()) {
      recorded.push_back(step);
    } else {
      *known = step;  // it is due: the field has been set since to what is its former value now
    }
  }
  return recorded;
}

Json RecordManifest(const std::string& ns, const std::vector<MigrationStep>& steps) {
  Json list = Json::Array();
  for (const MigrationStep& step : steps) {
    Json item = Json::Object();
    item.Set("title", step.title).Set("apiVersion", step.object.api_version);
    item.Set("kind", step.object.kind).SetUnlessEmpty("namespace", step.object.ns);
    item.Set("name", step.object.name).Set("pointer", step.pointer);
    item.Set("from", step.from).Set("to", step.to);
    item.SetUnlessEmpty("pods", step.pods).SetUnlessEmpty("served", step.served);
    list.Add(std::move(item));
  }
  Json metadata = Json::Object();
  metadata.Set("name", kMigrationRecord).Set("namespace", ns);
  Json data = Json::Object();
  data.Set("steps", list.Pretty());
  Json map = Json::Object();
  map.Set("apiVersion", "v1").Set("kind", "ConfigMap").Set("metadata", std::move(metadata));
  map.Set("data", std::move(data));
  return map;
}

absl::StatusOr<std::vector<MigrationStep>> ReadRecord(const Json& config_map) {
  const absl::StatusOr<Json> list = Json::Parse(config_map.TextAt({"data", "steps"}));
  std::vector<MigrationStep> steps;
  for (const Json& item : list.ok() ? list->items() : std::vector<Json>()) {
    steps.push_back(ReadStep(item));
    const MigrationStep& step = steps.back();
    if (step.object.kind.empty() || step.object.name.empty() || step.pointer.empty() ||
        step.from.is_null() || step.to.is_null()) {
      steps.clear();
      break;
    }
  }
  if (!steps.empty()) return steps;
  return absl::FailedPreconditionError(
      absl::StrCat("ConfigMap ", config_map.TextAt({"metadata", "namespace"}), "/",
                   kMigrationRecord, ": data.steps cannot be read; restore KAI by hand"));
}

std::vector<MigrationStep> UndoSteps(const std::vector<MigrationStep>& recorded) {
  std::vector<MigrationStep> steps(recorded.rbegin(), recorded.rend());
  for (MigrationStep& step : steps) {
    std::swap(step.from, step.to);
    step.title = absl::StrCat("undo: ", step.title);
    step.pods.clear();
    step.drains_bind_requests = false;
  }
  // Fairlead lets the name go before KAI's scheduler gets it, in whatever order they were recorded.
  absl::c_stable_partition(steps, [](const MigrationStep& step) { return !step.served.empty(); });
  return steps;
}

const Json* ValueAt(const Json& object, absl::string_view pointer) {
  const Json* at = &object;
  absl::ConsumePrefix(&pointer, "/");
  for (const absl::string_view part : absl::StrSplit(pointer, '/')) {
    if (at == nullptr) return nullptr;
    const std::string key = UnescapePointerStep(part);
    size_t index = 0;
    if (at->is_array()) {
      const bool there = absl::SimpleAtoi(key, &index) && index < at->items().size();
      at = there ? &at->items()[index] : nullptr;
    } else {
      at = at->Find(key);
    }
  }
  return at;
}

StepState StateOf(const MigrationStep& step, const Json& object) {
  const Json* const value = ValueAt(object, step.pointer);
  if (value == nullptr) return StepState::kChanged;
  if (Equal(*value, step.to)) return StepState::kDone;
  return Equal(*value, step.from) ? StepState::kDue : StepState::kChanged;
}

Json PatchOf(const MigrationStep& step) {
  Json patch = Json::Array();
  for (const auto& [operation, value] :
       {std::pair("test", &step.from), std::pair("replace", &step.to)}) {
    Json item = Json::Object();
    item.Set("op", operation).Set("path", step.pointer).Set("value", *value);
    patch.Add(std::move(item));
  }
  return patch;
}

std::string StepText(const MigrationStep& step) {
  return absl::StrCat(step.title, ": ", step.object.Text(), " ", step.pointer, ": ",
                      Shown(step.from), " -> ", Shown(step.to));
}

}  // namespace fairlead::cmd
