#include "grouping/table_yaml.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "document/fields.h"

namespace fairlead::grouping {
namespace {

// Handlers for the values of the table. Each form of a value is a mapping with one key that names
// it, and perhaps more keys.
class RowReader : public FieldReader {
 public:
  using FieldReader::FieldReader;

  absl::Status ReadRow(const Json& node, const std::string& field, KindRow& out) const;

 private:
  Handler Flag(bool* out) const {
    return [=, this](const Json& node, const std::string& field) {
      if (node.type() != Json::Type::kBool) return Error(node, field, "must be true or false");
      *out = node.text() == "true";
      return absl::OkStatus();
    };
  }
  Handler PathTo(Path* out) const {
    return [=, this](const Json& node, const std::string& field) -> absl::Status {
      std::string text;
      FAIRLEAD_RETURN_IF_ERROR(Text(&text)(node, field));
      absl::StatusOr<Path> path = Path::Parse(text);
      if (!path.ok()) return Error(node, field, path.status().message());
      *out = *std::move(path);
      return absl::OkStatus();
    };
  }
  template <typename T>
  Handler By(absl::Status (RowReader::*read)(const Json&, const std::string&, T&) const,
             T* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return (this->*read)(node, field, *out);
    };
  }
  template <typename T>
  Handler By(absl::Status (RowReader::*read)(const Json&, const std::string&, T&) const,
             std::optional<T>* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return (this->*read)(node, field, out->emplace());
    };
  }
  template <typename T>
  Handler ListBy(absl::Status (RowReader::*read)(const Json&, const std::string&, T&) const,
                 std::vector<T>* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return List(node, field, [&](const Json& item, const std::string& at) {
        return (this->*read)(item, at, out->emplace_back());
      });
    };
  }

  [[nodiscard]] std::map<std::string, Handler> TextForms(grouping::Text& out) const;
  absl::Status ReadText(const Json& node, const std::string& field, grouping::Text& out) const;
  absl::Status ReadTexts(const Json& node, const std::string& field, Texts& out) const;
  absl::Status ReadCondition(const Json& node, const std::string& field, Condition& out) const;
  absl::Status ReadNumber(const Json& node, const std::string& field, Number& out) const;
  absl::Status ReadOperands(const Json& node, const std::string& field, Number& out) const;
  absl::Status ReadPer(const Json& node, const std::string& field, KindRow& out) const;
  absl::Status ReadRelated(const Json& node, const std::string& field, RelatedRow& out) const;
  absl::Status ReadSuspend(const Json& node, const std::string& field, SuspendRow& out) const;
  absl::Status ReadTopology(const Json& node, const std::string& field, TopologyRow& out) const;
  absl::Status ReadParts(const Json& node, const std::string& field, PartsRow& out) const;
  absl::Status ReadSubGroup(const Json& node, const std::string& field, SubGroupRow& out) const;
};

using From = grouping::Text::From;

// ---- texts --------------------------------------------------------------------------------------

std::map<std::string, FieldReader::Handler> RowReader::TextForms(grouping::Text& out) const {
  const auto keyed = [&out, this](From from) -> Handler {
    return [&out, from, this](const Json& value, const std::string& at) {
      out.from = from;
      return Text(&out.name)(value, at);
    };
  };
  return {{"path",
           [&out, this](const Json& value, const std::string& at) {
             out.from = From::kPath;
             return PathTo(&out.path)(value, at);
           }},
          {"label", keyed(From::kLabel)},
          {"annotation", keyed(From::kAnnotation)},
          {"ownerAnnotation", keyed(From::kOwnerAnnotation)},
          {"of", PathTo(&out.path)},
          {"podLabel", keyed(From::kPodLabel)},
          {"podAnnotation", keyed(From::kPodAnnotation)},
          {"key", [&out, this](const Json& value, const std::string& at) {
             out.from = From::kKey;
             bool key = false;
             FAIRLEAD_RETURN_IF_ERROR(Flag(&key)(value, at));
             return key ? absl::OkStatus() : Error(value, at, "must be true");
           }}};
}

// How many of the keys that name a form of a text the mapping has.
size_t CountForms(const Json& node) {
  size_t forms = 0;
  for (const char* form :
       {"path", "label", "annotation", "ownerAnnotation", "podLabel", "podAnnotation", "key"}) {
    if (node.Find(form) != nullptr) ++forms;
  }
  return forms;
}

constexpr char kOneTextForm[] =
    "must have one of path, label, annotation, ownerAnnotation, podLabel, podAnnotation, key";
constexpr char kOfNeedsMetadata[] = "is for label and annotation only";

absl::Status RowReader::ReadText(const Json& node, const std::string& field,
                                 grouping::Text& out) const {
  if (node.is_text()) return Text(&out.name)(node, field);
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field, TextForms(out)));
  if (CountForms(node) != 1) return Error(node, field, kOneTextForm);
  const Json* of = node.Find("of");
  if (of != nullptr && out.from != From::kLabel && out.from != From::kAnnotation) {
    return Error(*of, absl::StrCat(field, ".of"), kOfNeedsMetadata);
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadTexts(const Json& node, const std::string& field, Texts& out) const {
  if (!node.is_array()) return ReadText(node, field, out.list.emplace_back());
  return ListBy(&RowReader::ReadText, &out.list)(node, field);
}

// ---- conditions ---------------------------------------------------------------------------------

absl::Status RowReader::ReadCondition(const Json& node, const std::string& field,
                                      Condition& out) const {
  const auto all_or_any = [&](Condition::Form form) -> Handler {
    return [&out, form, this](const Json& value, const std::string& at) {
      out.form = form;
      return ListBy(&RowReader::ReadCondition, &out.of)(value, at);
    };
  };
  std::map<std::string, Handler> handlers = TextForms(out.text);
  handlers["equals"] = [&](const Json& value, const std::string& at) {
    out.form = Condition::Form::kEquals;
    return Text(&out.value)(value, at);
  };
  handlers["exists"] = [&](const Json& value, const std::string& at) {
    out.form = Condition::Form::kExists;
    return ReadText(value, at, out.text);
  };
  handlers["not"] = [&](const Json& value, const std::string& at) {
    out.form = Condition::Form::kNot;
    return ReadCondition(value, at, out.of.emplace_back());
  };
  handlers["all"] = all_or_any(Condition::Form::kAll);
  handlers["any"] = all_or_any(Condition::Form::kAny);
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field, handlers));
  size_t forms = 0;
  for (const char* form : {"equals", "exists", "not", "all", "any"}) {
    if (node.Find(form) != nullptr) ++forms;
  }
  if (forms != 1) return Error(node, field, "must have one of equals, exists, not, all, any");
  const bool compares = out.form == Condition::Form::kEquals;
  if (CountForms(node) != (compares ? 1U : 0U)) {
    return Error(
        node, field,
        compares ? kOneTextForm : "has a text of its own, which belongs with equals or in exists");
  }
  return absl::OkStatus();
}

// ---- numbers ------------------------------------------------------------------------------------

struct Operation {
  const char* name;
  Number::Form form;
};
constexpr Operation kOperations[] = {
    {"sum", Number::Form::kSum},     {"product", Number::Form::kProduct},
    {"least", Number::Form::kLeast}, {"difference", Number::Form::kDifference},
    {"first", Number::Form::kFirst}, {"greatest", Number::Form::kGreatest},
    {"count", Number::Form::kCount}, {"sumOver", Number::Form::kSumOver},
    {"if", Number::Form::kIf},       {"firstPositive", Number::Form::kFirstPositive},
};

absl::Status RowReader::ReadNumber(const Json& node, const std::string& field, Number& out) const {
  if (node.is_text()) {
    FAIRLEAD_RETURN_IF_ERROR(Integer(&out.constant, 0)(node, field));
    if (out.constant <= kMostPods) return absl::OkStatus();
    return Error(node, field, absl::StrCat("must be ", kMostPods, " at most"));
  }
  if (!node.is_object()) return Error(node, field, "must be a number or a mapping");
  size_t operations = 0;
  for (const Operation& operation : kOperations) {
    if (node.Find(operation.name) == nullptr) continue;
    ++operations;
    out.form = operation.form;
  }
  if (operations > 1) return Error(node, field, "must have one form");
  if (operations == 1) return ReadOperands(node, field, out);
  out.form = Number::Form::kText;
  std::map<std::string, Handler> handlers = TextForms(out.text);
  int64_t otherwise = 0;
  handlers["default"] = Integer(&otherwise, 0);
  handlers["atMost"] = [&](const Json& value, const std::string& at) {
    return ReadNumber(value, at, out.of.emplace_back());
  };
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field, handlers));
  if (CountForms(node) != 1) return Error(node, field, kOneTextForm);
  if (node.Find("default") != nullptr) out.otherwise = otherwise;
  return absl::OkStatus();
}

absl::Status RowReader::ReadOperands(const Json& node, const std::string& field,
                                     Number& out) const {
  const auto condition = [&](const Json& value, const std::string& at) {
    return ReadCondition(value, at, out.condition.emplace_back());
  };
  const auto operand = [&](const Json& value, const std::string& at) {
    return ReadNumber(value, at, out.of.emplace_back());
  };
  switch (out.form) {
    case Number::Form::kCount:
      return Map(node, field, {{"count", PathTo(&out.path)}});
    case Number::Form::kSumOver:
      return Map(node, field,
                 {{"sumOver", PathTo(&out.path)}, {"each", operand}, {"when", condition}},
                 {"each"});
    case Number::Form::kIf: {
      // The order of the fields in the file does not matter.
      out.of.resize(2);
      return Map(node, field,
                 {{"if", condition},
                  {"then", By(&RowReader::ReadNumber, out.of.data())},
                  {"else", By(&RowReader::ReadNumber, out.of.data() + 1)}},
                 {"then", "else"});
    }
    default:
      break;
  }
  const std::string& name = node.fields().front().first;
  if (node.fields().size() != 1) return Error(node, field, "must have one field");
  FAIRLEAD_RETURN_IF_ERROR(ListBy(&RowReader::ReadNumber, &out.of)(node.fields().front().second,
                                                                   absl::StrCat(field, ".", name)));
  return out.of.empty() ? Error(node, absl::StrCat(field, ".", name), "must not be empty")
                        : absl::OkStatus();
}

// ---- rows ---------------------------------------------------------------------------------------

absl::Status RowReader::ReadSuspend(const Json& node, const std::string& field,
                                    SuspendRow& out) const {
  if (node.type() == Json::Type::kBool) {
    if (node.text() == "false") return absl::OkStatus();
    return Error(node, field, "must be a path, a mapping, or false");
  }
  if (node.is_text()) return PathTo(&out.path)(node, field);
  return Map(node, field,
             {{"path", PathTo(&out.path)}, {"when", By(&RowReader::ReadCondition, &out.when)}},
             {"path"});
}

absl::Status RowReader::ReadTopology(const Json& node, const std::string& field,
                                     TopologyRow& out) const {
  return Map(node, field,
             {{"name", By(&RowReader::ReadTexts, &out.topology)},
              {"required", By(&RowReader::ReadTexts, &out.required)},
              {"preferred", By(&RowReader::ReadTexts, &out.preferred)}},
             {"name"});
}

absl::Status RowReader::ReadParts(const Json& node, const std::string& field, PartsRow& out) const {
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field,
                               {{"count", By(&RowReader::ReadNumber, &out.count)},
                                {"size", By(&RowReader::ReadNumber, &out.size)},
                                {"of", By(&RowReader::ReadNumber, &out.of)},
                                {"minMember", By(&RowReader::ReadNumber, &out.min_member)},
                                {"infix", Text(&out.infix)},
                                {"podLabel", Text(&out.label)},
                                {"firstIndex", Integer(&out.first_index, 0)},
                                {"firstJoins", Flag(&out.first_joins)},
                                {"topology", By(&RowReader::ReadTopology, &out.topology)}},
                               {"podLabel"}));
  const bool sized = out.size.has_value();
  if (sized == (node.Find("count") != nullptr)) {
    return Error(node, field, "must have one of count, size");
  }
  if (sized != out.of.has_value()) return Error(node, field, "size and of go together");
  if (sized == out.min_member.has_value()) {
    return Error(node, field, sized ? "minMember is the size" : "minMember is missing");
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadSubGroup(const Json& node, const std::string& field,
                                     SubGroupRow& out) const {
  const auto labels = [&](const Json& value, const std::string& at) {
    return AnyMap(value, at,
                  [&](const std::string& key, const Json& text, const std::string& place) {
                    out.labels.emplace_back(key, grouping::Text{});
                    return ReadText(text, place, out.labels.back().second);
                  });
  };
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field,
                               {{"when", By(&RowReader::ReadCondition, &out.when)},
                                {"forEach", PathTo(&out.for_each)},
                                {"name", By(&RowReader::ReadTexts, &out.name)},
                                {"minMember", By(&RowReader::ReadNumber, &out.min_member)},
                                {"skipEmpty", Flag(&out.skip_empty)},
                                {"podLabels", labels},
                                {"podNames", PathTo(&out.pod_names)},
                                {"encloses", PathTo(&out.encloses)},
                                {"parts", By(&RowReader::ReadParts, &out.parts)},
                                {"topology", By(&RowReader::ReadTopology, &out.topology)}},
                               {"name"}));
  if (!out.labels.empty() && !out.pod_names.empty()) {
    return Error(node, field, "podLabels and podNames exclude each other");
  }
  const bool leaf = out.encloses.empty();
  if (leaf && out.labels.empty() && out.pod_names.empty()) {
    return Error(node, field, "must have one of podLabels, podNames, encloses");
  }
  if (leaf && !out.min_member.has_value() && !out.parts.has_value()) {
    return Error(node, absl::StrCat(field, ".minMember"), "is missing");
  }
  if (!leaf && (out.min_member.has_value() || out.parts.has_value())) {
    return Error(node, field, "a sub-group that encloses others has neither minMember nor parts");
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadPer(const Json& node, const std::string& field, KindRow& out) const {
  static constexpr std::pair<const char*, Per> kWords[] = {{"owner", Per::kOwner},
                                                           {"pod", Per::kPod},
                                                           {"podName", Per::kPodName},
                                                           {"nextOwner", Per::kNextOwner}};
  if (node.is_object()) {
    out.per = Per::kLabel;
    return Map(node, field,
               {{"podLabel", Text(&out.label)},
                {"infix", Text(&out.infix)},
                {"bareName", Flag(&out.bare)}},
               {"podLabel"});
  }
  for (const auto& [word, per] : kWords) {
    if (node.text() != word) continue;
    out.per = per;
    return absl::OkStatus();
  }
  return Error(node, field, "must be owner, pod, podName, nextOwner, or a mapping with podLabel");
}

absl::Status RowReader::ReadRelated(const Json& node, const std::string& field,
                                    RelatedRow& out) const {
  return Map(node, field,
             {{"apiVersion", Text(&out.api_version)},
              {"kind", Text(&out.kind)},
              {"name", By(&RowReader::ReadText, &out.name)}},
             {"apiVersion", "kind", "name"});
}

absl::Status RowReader::ReadRow(const Json& node, const std::string& field, KindRow& out) const {
  const auto required = [&](const Json& value, const std::string& at) {
    return List(value, at, [&](const Json& item, const std::string& place) {
      return PathTo(&out.required.emplace_back())(item, place);
    });
  };
  const auto group = [&](const Json& value, const std::string& at) {
    if (!value.is_text()) return Error(value, at, "must be text");
    out.group = value.text();
    return absl::OkStatus();
  };
  FAIRLEAD_RETURN_IF_ERROR(Map(node, field,
                               {{"group", group},
                                {"kind", Text(&out.kind)},
                                {"when", By(&RowReader::ReadCondition, &out.when)},
                                {"per", By(&RowReader::ReadPer, &out)},
                                {"read", Flag(&out.read)},
                                {"from", By(&RowReader::ReadRelated, &out.from)},
                                {"mostPods", By(&RowReader::ReadNumber, &out.most)},
                                {"minMember", By(&RowReader::ReadNumber, &out.min_member)},
                                {"minSubGroup", By(&RowReader::ReadNumber, &out.min_sub_group)},
                                {"priorityClass", By(&RowReader::ReadTexts, &out.priority_class)},
                                {"defaultPriorityClass", Text(&out.default_priority_class)},
                                {"queue", By(&RowReader::ReadTexts, &out.queue)},
                                {"topology", By(&RowReader::ReadTopology, &out.topology)},
                                {"required", required},
                                {"subGroups", ListBy(&RowReader::ReadSubGroup, &out.sub_groups)},
                                {"otherPodsJoin", Flag(&out.others_join)},
                                {"suspend", By(&RowReader::ReadSuspend, &out.suspend)}},
                               {"group", "kind"}));
  if (!out.read && out.per != Per::kPod) {
    return Error(node, field, "what is not read must be per: pod");
  }
  if (out.min_sub_group.has_value() && out.sub_groups.empty()) {
    return Error(node, absl::StrCat(field, ".minSubGroup"), "there are no subGroups");
  }
  const bool object_less = out.per == Per::kPod || out.per == Per::kNextOwner;
  if (object_less && (!out.sub_groups.empty() || out.from.has_value())) {
    return Error(node, field, "a row without a group has neither subGroups nor from");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<KindRow>> ReadKindRows(const Json& rows, absl::string_view file,
                                                  const std::string& field) {
  const RowReader reader(file);
  std::vector<KindRow> out;
  FAIRLEAD_RETURN_IF_ERROR(
      reader.List(rows, field, [&](const Json& item, const std::string& at) -> absl::Status {
        KindRow row;
        FAIRLEAD_RETURN_IF_ERROR(reader.ReadRow(item, at, row));
        for (const KindRow& former : out) {
          if (former.group != row.group || former.kind != row.kind || former.when.has_value()) {
            continue;
          }
          return reader.Error(item, at,
                              absl::StrCat("a row above is of ", Quoted(row.group), " ", row.kind,
                                           " too, and has no condition"));
        }
        out.push_back(std::move(row));
        return absl::OkStatus();
      }));
  return out;
}

}  // namespace fairlead::grouping
