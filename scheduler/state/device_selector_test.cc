#include "scheduler/state/device_selector.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::state {
namespace {

using fairlead::testing::Random;
using ::testing::HasSubstr;

TEST(DeviceSelectorTest, WhatIsNotUnderstoodIsRefusedWithItsText) {
  struct Case {
    const char* text;
    const char* told;
  };
  const Case cases[] = {
      {"", "it ends too early"},
      {"gpu", "gpu"},
      {"device.driver == gpu", "gpu"},
      {"device.driver == \"a\" && ", "it ends too early"},
      {"device.driver == \"a", "\"a"},
      {"device", "device"},
      {"device.name == 'a'", "device.name"},
      {"device.driver = 'a'", "= 'a'"},
      {"device.driver == 'a' & true", "& true"},
      {"device.driver == 'a' device.driver", "device.driver"},
      {"(device.driver == 'a'", "it ends too early"},
      {"device.attributes[\"d\"].x == 1.5", "1.5"},
      {"device.attributes[\"d\"].x == 1u", "1u"},
      {"device.attributes[\"d\"].x + 1 == 2", "+ 1 == 2"},
      {"device.attributes[\"d\"].x - 1 == 2", "- 1 == 2"},
      {"device.attributes[\"d\"].x == 99999999999999999999", "99999999999999999999"},
      {"device.attributes[\"d\"].x.replace('a', 'b') == 'b'", "replace('a'"},
      {"device.attributes[\"d\"].x.startsWith() == 'b'", "startsWith()"},
      {"device.attributes[\"d\"].x.matches('(')", "matches('(')"},
      {"device.attributes[\"d\"].x.matches(device.driver)", "matches(device.driver)"},
      {"device.attributes[\"d\"].exists(x, x == 'a')", "x, x"},
      {"[1, 2].all(x, x > 0)", "x, x"},
      {"device.capacity['d'].x.compareTo(quantity('much')) >= 0", "quantity('much')"},
      {"device.attributes['d'].x.isLessThan(semver('v1'))", "semver('v1')"},
      {"has(device)", "device"},
      {"has(true)", "has(true)"},
      {"device.driver.name == 'a'", ".name == 'a'"},
      {"device.attributes['d'].x.y == 1", ".y == 1"},
      {"[1, 2][0] == 1", "[0] == 1"},
      {"device.driver == '\\u0041'", "'\\u0041'"},
      {"device.driver == \"\"\"a\"\"\"", "\"\"\"a"},
      {"true ? true", "it ends too early"},
  };
  for (const Case& c : cases) {
    const auto parsed = DeviceSelector::Parse(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(parsed.status().message(),
                HasSubstr(absl::StrCat("selector not understood: ", c.told)))
        << c.text;
  }
}

TEST(DeviceSelectorTest, NoTextIsTooLongOrNestedTooDeep) {
  const auto refused = [](const std::string& text) { return !DeviceSelector::Parse(text).ok(); };
  EXPECT_TRUE(refused(std::string(20000, ' ')));
  EXPECT_TRUE(refused(std::string(5000, '(') + "true" + std::string(5000, ')')));
  EXPECT_TRUE(refused(std::string(9000, '[')));
  std::string chain = "true", members = "device.attributes";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&members, "['a']");
  EXPECT_TRUE(refused(members));
  for (int i = 0; i < 100; ++i) chain += " == true";
  EXPECT_TRUE(refused(chain));
  // Many parts are not deep.
  std::string parts = "device.driver == 'd.io'";
  for (int i = 0; i < 300; ++i) parts += " && !(1 == 2)";
  const auto parsed = DeviceSelector::Parse(parts);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->Matches("d.io", {}));
}

// Tenants write selectors. What remains of one that was read is harmless, too.
TEST(DeviceSelectorTest, SurvivesMutatedText) {
  const std::vector<std::string> seeds = {
      R"(device.driver == "d.io" && !(device.attributes['d.io'].index in [1, -3]))",
      R"(has(device.attributes["d.io"].model) ? 'a\'b'.size() > 2 : "x" in device.capacity['y'])",
      R"(device.attributes["d.io"]["v"].isGreaterThan(semver('1.2.3-rc.1+b')) || (true))",
      R"(device.capacity['d.io'].memory.compareTo(quantity("40Gi")) >= 0 && r'\d'.matches(r'^\\d{2,}$'))",
  };
  const std::string letters = "()[]{}'\"\\.,!&|?:<>=-+*01azdevice\x01\xff \n";
  Random random(20261127);
  SCOPED_TRACE(random.Describe());
  const auto below = [&](size_t n) {
    return static_cast<size_t>(random.Between(0, static_cast<int64_t>(n) - 1));
  };
  model::Device device;
  device.attributes["index"].value = int64_t{-3};
  device.attributes["v"].value = model::DeviceVersion{"1.2.3"};
  device.capacity["memory"] = INT64_MAX;
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seeds[below(seeds.size())];
    for (int64_t n = random.Between(0, 4); n > 0; --n) {
      const size_t at = below(text.size() + 1);
      switch (random.Between(0, 3)) {
        case 0:
          text.insert(at, 1, letters[below(letters.size())]);
          break;
        case 1:
          text.erase(at, below(4));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size() + 1), below(30)));
          break;
        default:
          if (at < text.size()) text[at] = letters[below(letters.size())];
      }
    }
    const auto parsed = DeviceSelector::Parse(text);
    if (!parsed.ok()) continue;
    ++read;
    const bool matches = parsed->Matches("d.io", device);
    EXPECT_EQ(DeviceSelector(*parsed).Matches("d.io", device), matches) << text;
  }
  EXPECT_GT(read, 1000);
}

TEST(DeviceSelectorTest, ComparesWhatADeviceSays) {
  model::Device device;
  device.name = "0";
  device.attributes["model"].value = std::string("A100");
  device.attributes["other.io/index"].value = int64_t{3};
  device.attributes["ecc"].value = true;
  device.attributes["driver"].value = model::DeviceVersion{"12.4.1-rc.2+build"};
  device.attributes["odd"].value = model::DeviceVersion{"12.4"};
  device.capacity["memory"] = int64_t{40} << 30;
  device.for_several = true;
  struct Case {
    const char* text;
    bool matches;
  };
  const Case cases[] = {
      {"device.driver == \"d.io\"", true},
      {"device.driver=='d.io'", true},
      {"device.driver != \"d.io\"", false},
      {"device.driver > \"a\"", true},
      {"device.driver in ['a', 'd.io']", true},
      {"device.driver in []", false},
      {"device.allowMultipleAllocations", true},
      {"device.allowMultipleAllocations == false", false},
      {"true", true},
      {"'true'", false},
      {"((device.driver == 'd.io'))", true},
      {"device.attributes[\"d.io\"].model == \"A100\"", true},
      {"device.attributes[\"d.io\"].model != \"A100\"", false},
      {"device.attributes[\"d.io\"][\"model\"] == \"A100\"", true},
      {"device.attributes['other.io'].index >= 3", true},
      {"device.attributes[\"other.io\"].index > 3", false},
      {"device.attributes[\"other.io\"].index in [1, 3]", true},
      {"device.attributes[\"other.io\"].index == -3", false},
      {"device.attributes[\"d.io\"].index == 3", false},  // another domain's
      {"device.attributes[\"d.io\"].ecc", true},
      {"!device.attributes[\"d.io\"].ecc", false},
      {"!!device.attributes[\"d.io\"].ecc", true},
      {"device.attributes[\"d.io\"].ecc == false", false},
      {"device.attributes[\"d.io\"].ecc ? device.driver == 'd.io' : false", true},
      // Of another type: not equal, and in no order.
      {"device.attributes[\"d.io\"].model == 100", false},
      {"device.attributes[\"d.io\"].model != 100", true},
      {"device.attributes[\"d.io\"].model > 100", false},
      {"!(device.attributes[\"d.io\"].model > 100)", false},
      {"device.attributes[\"d.io\"].model", false},
      // What is not there is an error, which decides nothing.
      {"device.attributes[\"d.io\"].absent != \"x\"", false},
      {"!(device.attributes[\"d.io\"].absent == \"x\")", false},
      {"device.attributes[\"d.io\"].absent == 1 || device.driver == 'd.io'", true},
      {"device.driver == 'd.io' || device.attributes[\"d.io\"].absent == 1", true},
      {"device.attributes[\"d.io\"].absent == 1 || false", false},
      {"!(device.attributes[\"d.io\"].absent == 1 && false)", true},
      {"!(device.attributes[\"d.io\"].absent == 1 && true)", false},
      {"device.attributes[\"d.io\"].absent in [1]", false},
      {"[device.attributes[\"d.io\"].absent] == [1]", false},
      {"device.attributes[\"d.io\"].absent ? true : true", false},
      {"has(device.attributes[\"d.io\"].model)", true},
      {"has(device.attributes[\"d.io\"].absent)", false},
      {"!has(device.attributes[\"e.io\"].model)", true},
      {"'model' in device.attributes['d.io'] && 'memory' in device.capacity['d.io']", true},
      {"'d.io' in device.attributes && 'other.io' in device.attributes", true},
      {"'e.io' in device.attributes || 'other.io' in device.capacity", false},
      {"device.attributes['d.io'] == device.attributes['d.io']", false},
      // Texts.
      {"device.attributes['d.io'].model.startsWith('A') && 'A100'.endsWith('00')", true},
      {"device.attributes['d.io'].model.contains('B')", false},
      {"device.attributes['d.io'].model.matches('^A[0-9]+$')", true},
      {"device.attributes['d.io'].model.matches(r'\\d{3}')", true},
      {"device.attributes['d.io'].model.matches('\\\\d{4}')", false},
      {"device.attributes['d.io'].model.lowerAscii().matches('a100') && 'a'.upperAscii() == 'A'",
       true},
      {"device.attributes['d.io'].model.size() == 4 && size('\xc3\xa9') == 1 && size([1, 2]) == 2",
       true},
      {"device.attributes['d.io'].ecc.startsWith('t')", false},
      {"device.attributes['d.io'].model.startsWith(1)", false},
      {"'a\\'b\\\\' == \"a'b\\\\\"", true},
      {"device.attributes[\"d.io\"].model == \"A && B\"", false},
      // Quantities and versions.
      {"device.capacity[\"d.io\"].memory.compareTo(quantity(\"40Gi\")) >= 0", true},
      {"device.capacity[\"d.io\"].memory.compareTo(quantity(\"40Gi\")) > 0", false},
      {"device.capacity[\"d.io\"].memory.isGreaterThan(quantity(\"39Gi\"))", true},
      {"device.capacity[\"d.io\"].memory.isLessThan(quantity(\"40Gi\"))", false},
      {"device.capacity[\"d.io\"].memory == quantity(\"40Gi\")", true},
      {"device.capacity[\"d.io\"].memory == '40Gi'", false},
      {"device.capacity[\"d.io\"].memory > quantity('1')", false},
      {"device.capacity[\"d.io\"].cores.compareTo(quantity(\"1\")) >= 0", false},
      {"device.attributes['d.io'].driver.isGreaterThan(semver('12.4.1-rc.1'))", true},
      {"device.attributes['d.io'].driver.isGreaterThan(semver('12.4.1'))", false},
      {"device.attributes['d.io'].driver == semver('12.4.1-rc.2')", true},
      {"device.attributes['d.io'].driver.major() == 12 && device.attributes['d.io'].driver.minor() "
       "== 4",
       true},
      {"device.attributes['d.io'].driver.patch() == 1", true},
      {"device.attributes['d.io'].driver == '12.4.1-rc.2+build'", false},
      {"device.attributes['d.io'].odd == semver('12.4.0')", false},
      {"device.attributes['d.io'].driver.compareTo(quantity('1')) == 0", false},
      {"semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))", true},
      {"semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta'))", true},
      {"semver('1.0.0-beta.2').isLessThan(semver('1.0.0-beta.11'))", true},
      {"semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", true},
      {"semver('1.10.0').isGreaterThan(semver('1.9.9'))", true},
      // Precedence, and the order of what binds.
      {"true || false && false", true},
      {"(true || false) && false", false},
      {"!false && true", true},
      {"1 < 2 == true", true},
      {"false ? false : true ? true : false", true},
  };
  for (const Case& c : cases) {
    const auto parsed = DeviceSelector::Parse(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_EQ(parsed->Matches("d.io", device), c.matches) << c.text;
  }
}

}  // namespace
}  // namespace fairlead::state
