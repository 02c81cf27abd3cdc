// Rows of the table of kinds as YAML: what is read, and what is refused. What rows mean is in the
// cases.
#include "grouping/table.h"

#include <string>

#include "document/fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::grouping::testing {
namespace {

using ::testing::HasSubstr;

absl::Status Read(const std::string& rows) {
  const absl::StatusOr<Json> root = FieldReader("f.yaml").Parse(rows);
  if (!root.ok()) return root.status();
  return KindTable::Read(*root, "f.yaml", "kinds").status();
}

void ExpectRefused(const std::string& rows, const std::string& message) {
  const absl::Status read = Read(rows);
  EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument) << rows;
  EXPECT_THAT(read.message(), HasSubstr(message)) << rows;
}

TEST(KindTableTest, TheBuiltInRowsEndWithTheRowForEveryKind) {
  const KindRow& last = KindTable::BuiltIn().rows().back();
  EXPECT_EQ(last.group, "*");
  EXPECT_EQ(last.kind, "*");
  EXPECT_FALSE(last.when.has_value());
}

TEST(KindTableTest, EveryFormOfANumberIsRead) {
  EXPECT_EQ(
      Read("[{group: g, kind: K, minMember: {sum: [1, {product: [2, {path: a.b, default: 3}]}, "
           "{least: [1, 2]}, {greatest: [1, 2]}, {difference: [3, 1]}, {first: [{label: l}, 1]}, "
           "{firstPositive: [{path: a, atMost: 4}]}, {count: a.list}, "
           "{sumOver: a.list, each: {path: n}, when: {exists: {path: n}}}, "
           "{if: {all: [{path: a, equals: b}]}, then: 1, else: 2}]}}]"),
      absl::OkStatus());
}

TEST(KindTableTest, RowsAreStrict) {
  ExpectRefused("[{kind: K}]", "f.yaml:1:2: kinds[0].group: is missing");
  ExpectRefused("[{group: g}]", "kinds[0].kind: is missing");
  ExpectRefused("[{group: g, kind: K, minMembers: 1}]", "kinds[0].minMembers: unknown field");
  ExpectRefused("[{group: g, kind: K, per: podd}]", "kinds[0].per: must be owner, pod, podName");
  ExpectRefused("[{group: g, kind: K, per: {infix: a}}]", "kinds[0].per.podLabel: is missing");
  ExpectRefused("[{group: g, kind: K, read: false}]", "what is not read must be per: pod");
  ExpectRefused("[{group: g, kind: K, suspend: spec..suspend}]",
                "kinds[0].suspend: \"spec..suspend\" is not a path of fields");
  ExpectRefused("[{group: g, kind: K, suspend: true}]",
                "kinds[0].suspend: must be a path, a mapping, or false");
  ExpectRefused("[{group: g, kind: K, suspend: {when: {exists: {path: a}}}}]",
                "kinds[0].suspend.path: is missing");
  ExpectRefused("[{group: g, kind: K, minSubGroup: 1}]",
                "kinds[0].minSubGroup: there are no subGroups");
  ExpectRefused(
      "[{group: g, kind: K, per: pod, subGroups: [{name: a, minMember: 1, podLabels: {l: "
      "v}}]}]",
      "a row without a group has neither subGroups nor from");
  ExpectRefused("[{group: g, kind: K}, {group: g, kind: K, per: pod}]",
                "kinds[1]: a row above is of \"g\" K too, and has no condition");
  ExpectRefused("{group: g}", "kinds: must be a list");
  ExpectRefused("[{group: g, kind: K, from: {kind: L}}]", "kinds[0].from.apiVersion: is missing");
}

TEST(KindTableTest, NumbersAreStrict) {
  const auto refused = [](const std::string& number, const std::string& message) {
    ExpectRefused("[{group: g, kind: K, minMember: " + number + "}]", message);
  };
  refused("-1", "kinds[0].minMember: must be a whole number of at least 0");
  refused("100001", "kinds[0].minMember: must be 100000 at most");
  refused("[1]", "kinds[0].minMember: must be a number or a mapping");
  refused("{sum: [1], product: [1]}", "kinds[0].minMember: must have one form");
  refused("{sum: []}", "kinds[0].minMember.sum: must not be empty");
  refused("{sum: [1], default: 1}", "kinds[0].minMember: must have one field");
  refused("{if: {exists: {path: a}}, then: 1}", "kinds[0].minMember.else: is missing");
  refused("{sumOver: a}", "kinds[0].minMember.each: is missing");
  refused("{default: 1}", "kinds[0].minMember: must have one of path, label");
  refused("{path: a, label: b}", "kinds[0].minMember: must have one of path, label");
  refused("{minimum: 1}", "kinds[0].minMember.minimum: unknown field");
}

TEST(KindTableTest, ConditionsAndTextsAreStrict) {
  const auto refused = [](const std::string& condition, const std::string& message) {
    ExpectRefused("[{group: g, kind: K, when: " + condition + "}]", message);
  };
  refused("{path: a}", "kinds[0].when: must have one of equals, exists, not, all, any");
  refused("{equals: a}", "kinds[0].when: must have one of path, label");
  refused("{path: a, exists: {path: b}}", "has a text of its own");
  refused("{exists: {path: a, of: b}}",
          "kinds[0].when.exists.of: is for label and annotation only");
  refused("{exists: {key: false}}", "kinds[0].when.exists.key: must be true");
  refused("{all: {path: a, equals: b}}", "kinds[0].when.all: must be a list");
}

TEST(KindTableTest, SubGroupsAreStrict) {
  const auto refused = [](const std::string& sub_group, const std::string& message) {
    ExpectRefused("[{group: g, kind: K, subGroups: [" + sub_group + "]}]", message);
  };
  refused("{minMember: 1, podLabels: {a: b}}", "kinds[0].subGroups[0].name: is missing");
  refused("{name: n, minMember: 1}", "must have one of podLabels, podNames, encloses");
  refused("{name: n, podLabels: {a: b}}", "kinds[0].subGroups[0].minMember: is missing");
  refused("{name: n, minMember: 1, podLabels: {a: b}, podNames: c}", "exclude each other");
  refused("{name: n, minMember: 1, encloses: c}", "has neither minMember nor parts");
  refused("{name: n, podLabels: {a: b}, parts: {podLabel: l}}", "must have one of count, size");
  refused("{name: n, podLabels: {a: b}, parts: {podLabel: l, size: 2}}", "size and of go together");
  refused("{name: n, podLabels: {a: b}, parts: {podLabel: l, count: 2}}", "minMember is missing");
  refused("{name: n, minMember: 1, podLabels: {a: b}, topology: {required: c}}",
          "kinds[0].subGroups[0].topology.name: is missing");
}

}  // namespace
}  // namespace fairlead::grouping::testing
