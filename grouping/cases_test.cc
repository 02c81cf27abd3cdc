// Runs the cases of grouping/cases: pods and their owners as YAML, and what becomes of them.
// cases/README.md has the fields.
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "document/fields.h"
#include "gmock/gmock.h"
#include "grouping/grouping.h"
#include "grouping/grouping_testing.h"
#include "gtest/gtest.h"

namespace fairlead::grouping::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFolder[] = "grouping/cases";

struct Case {
  std::string file;
  Json fields;
};

std::vector<Case> LoadCases() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const std::string& file : files) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    const absl::StatusOr<Json> root = FieldReader(file).Parse(text.str());
    EXPECT_TRUE(root.ok()) << root.status();
    if (!root.ok()) continue;
    for (const Json& item : root->items()) cases.push_back({file, item});
  }
  return cases;
}

const Json& Field(const Json& fields, absl::string_view name) {
  static const Json& none = *new Json();
  const Json* found = fields.Find(name);
  return found == nullptr ? none : *found;
}

absl::StatusOr<KindTable> TableOf(const Json& fields) {
  const Json* kinds = fields.Find("kinds");
  if (kinds == nullptr) return KindTable::BuiltIn();
  return KindTable::Read(*kinds, "kinds", "kinds");
}

// "apiVersion Kind name: what" -> the failure.
void AddFailures(const Json& list, absl::StatusCode code, FakeObjects& objects) {
  for (const Json& item : list.items()) {
    const std::vector<std::string> words = absl::StrSplit(item.text(), ' ');
    ASSERT_EQ(words.size(), 3U) << item.text();
    objects.Fail({words[0], words[1], "team", words[2], ""},
                 absl::Status(code, absl::StrCat(item.text(), " cannot be read")));
  }
}

void RunCase(const Case& tested) {
  FakeObjects objects;
  for (const Json& object : Field(tested.fields, "objects").items()) objects.Add(object);
  for (const Json& name : Field(tested.fields, "priorityClasses").items()) {
    objects.AddPriorityClass(name.text());
  }
  AddFailures(Field(tested.fields, "gone"), absl::StatusCode::kNotFound, objects);
  AddFailures(Field(tested.fields, "forbidden"), absl::StatusCode::kPermissionDenied, objects);
  const absl::StatusOr<KindTable> table = TableOf(tested.fields);
  ASSERT_TRUE(table.ok()) << table.status();
  const Json result = ResultJson(GroupOf(PodOf(Field(tested.fields, "pod")), *table, objects));
  const Json& expected = Field(tested.fields, "expect");
  ASSERT_EQ(expected.fields().size(), 1U) << "expect has one field";
  if (const Json* error = expected.Find("error"); error != nullptr) {
    EXPECT_THAT(result.TextAt({"error"}), HasSubstr(error->text())) << result.Yaml();
    EXPECT_NE(error->text(), "");
    return;
  }
  EXPECT_EQ(Sorted(result).Yaml(), Sorted(expected).Yaml());
}

const std::set<std::string>& FieldsOfCases() {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "name", "pod", "objects", "kinds", "priorityClasses", "gone", "forbidden", "expect"};
  return names;
}

TEST(GroupingCases, EveryCaseHolds) {
  const std::vector<Case> cases = LoadCases();
  ASSERT_GT(cases.size(), 50U);
  for (const Case& tested : cases) {
    SCOPED_TRACE(absl::StrCat(tested.file, ":", tested.fields.place().line, ": ",
                              tested.fields.TextAt({"name"})));
    for (const auto& [key, value] : tested.fields.fields()) {
      EXPECT_TRUE(FieldsOfCases().contains(key)) << key;
    }
    RunCase(tested);
  }
}

// A row that no case reads may be wrong in any way.
TEST(GroupingCases, EveryBuiltInKindHasACase) {
  std::set<std::string> seen;
  for (const Case& tested : LoadCases()) {
    for (const Json& object : Field(tested.fields, "objects").items()) {
      seen.insert(absl::StrCat(GroupOfVersion(object.TextAt({"apiVersion"})), " ",
                               object.TextAt({"kind"})));
      seen.insert(absl::StrCat("* ", object.TextAt({"kind"})));
    }
    const Json* owners = tested.fields.At({"pod", "metadata", "ownerReferences"});
    if (owners == nullptr) {
      seen.insert(" Pod");
    } else {
      for (const Json& owner : owners->items()) {
        seen.insert(absl::StrCat(GroupOfVersion(owner.TextAt({"apiVersion"})), " ",
                                 owner.TextAt({"kind"})));
      }
    }
  }
  std::vector<std::string> unseen;
  for (const KindRow& row : KindTable::BuiltIn().rows()) {
    if (row.kind == "*") continue;
    const std::string key = absl::StrCat(row.group, " ", row.kind);
    if (!seen.contains(key)) unseen.push_back(key);
  }
  EXPECT_THAT(unseen, IsEmpty());
}

// The same objects always give the same group, and an object that is not there is asked for, one
// after the other, until the group is known.
TEST(GroupingCases, ObjectsAreAskedForUntilTheGroupIsKnown) {
  size_t asked = 0;
  for (const Case& tested : LoadCases()) {
    if (Field(tested.fields, "expect").Find("group") == nullptr) continue;
    SCOPED_TRACE(tested.fields.TextAt({"name"}));
    FakeObjects all, known;
    for (const Json& object : Field(tested.fields, "objects").items()) all.Add(object);
    for (const Json& name : Field(tested.fields, "priorityClasses").items()) {
      all.AddPriorityClass(name.text());
      known.AddPriorityClass(name.text());
    }
    const absl::StatusOr<KindTable> table = TableOf(tested.fields);
    ASSERT_TRUE(table.ok()) << table.status();
    const model::Pod pod = PodOf(Field(tested.fields, "pod"));
    absl::StatusOr<Grouping> result = GroupOf(pod, *table, known);
    for (size_t i = 0; i <= kMostOwners && result.ok(); ++i) {
      if (result->kind != Grouping::Kind::kNeeds) break;
      const absl::StatusOr<const Json*> found = all.Find(result->needs);
      ASSERT_TRUE(found.ok() && *found != nullptr) << result->needs.Text();
      known.Add(**found);
      ++asked;
      result = GroupOf(pod, *table, known);
    }
    EXPECT_EQ(Sorted(ResultJson(result)).Yaml(), Sorted(Field(tested.fields, "expect")).Yaml());
  }
  EXPECT_GT(asked, 20U);
}

// ---- what tenants may write
// ----------------------------------------------------------------------

const std::vector<Json>& HostileValues() {
  static const std::vector<Json>& values = *new std::vector<Json>{
      Json(),
      Json::Bool(true),
      Json::Int(-1),
      Json::Int(0),
      Json::Int(100001),
      Json::Number("9223372036854775808"),
      Json::Number("1e400"),
      Json::Number("0.5"),
      Json::String(""),
      Json::String("-9223372036854775808"),
      Json::String(std::string(70000, 'x')),
      Json::String("\xff\xfe../\n"),
      Json::Array(),
      Json::Array().Add(Json::Array()),
      Json::Object(),
  };
  return values;
}

// Calls with each version of the object in which one value is another.
void ForEachMutation(Json& at, const std::function<void()>& call) {
  for (const Json& value : HostileValues()) {
    const Json former = std::exchange(at, value);
    call();
    at = former;
  }
  const size_t count = at.is_object() ? at.fields().size() : at.items().size();
  for (size_t i = 0; i < count; ++i) {
    Json* part = at.is_object() ? at.Find(at.fields()[i].first) : &at.items()[i];
    ForEachMutation(*part, call);
  }
}

void ExpectSound(const Grouping& grouping) {
  const model::PodGroup& group = grouping.group;
  if (grouping.kind != Grouping::Kind::kGroup) return;
  EXPECT_FALSE(group.meta.name.empty());
  EXPECT_LE(group.meta.name.size(), 253U);
  EXPECT_NE(group.min_member.has_value(), group.min_sub_group.has_value());
  EXPECT_GE(group.min_member.value_or(1), 1);
  EXPECT_LE(group.min_member.value_or(1), kMostPods);
  std::set<std::string> names = {""};
  for (const model::SubGroup& sub_group : group.sub_groups) {
    EXPECT_TRUE(names.insert(sub_group.name).second) << sub_group.name;
    EXPECT_GE(sub_group.min_member.value_or(0), 0);
    EXPECT_LE(sub_group.min_member.value_or(0), kMostPods);
  }
  for (const model::SubGroup& sub_group : group.sub_groups) {
    EXPECT_TRUE(names.contains(sub_group.parent)) << sub_group.parent;
  }
  EXPECT_TRUE(names.contains(grouping.sub_group)) << grouping.sub_group;
}

// Every value of every object of every case, replaced by each hostile one: there is a sound group,
// or an error that names what is wrong in few words.
TEST(GroupingCases, AnyValueOfAnOwnerGivesASoundGroupOrAnError) {
  size_t errors = 0, groups = 0;
  for (const Case& tested : LoadCases()) {
    SCOPED_TRACE(tested.fields.TextAt({"name"}));
    const absl::StatusOr<KindTable> table = TableOf(tested.fields);
    ASSERT_TRUE(table.ok()) << table.status();
    const model::Pod pod = PodOf(Field(tested.fields, "pod"));
    std::vector<Json> objects = Field(tested.fields, "objects").items();
    // The port finds an object by its name, whatever it contains.
    for (Json& mutated : objects) {
      const Json original = mutated;
      ForEachMutation(mutated, [&] {
        FakeObjects port;
        for (const Json& object : objects) port.Add(&object == &mutated ? original : object);
        port.Replace(original, mutated);
        const absl::StatusOr<Grouping> result = GroupOf(pod, *table, port);
        if (result.ok()) {
          ++groups;
          ExpectSound(*result);
          return;
        }
        ++errors;
        EXPECT_FALSE(result.status().message().empty());
        EXPECT_LT(result.status().message().size(), 1024U);
      });
    }
  }
  EXPECT_GT(errors, 1000U);
  EXPECT_GT(groups, 1000U);
}

}  // namespace
}  // namespace fairlead::grouping::testing
