#include "scheduler/model/qualified_name.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

TEST(QualifiedNameTest, NamesWithAndWithoutADomain) {
  const std::string longest(63, 'n');
  for (const std::string& name : {std::string("a"), std::string("A-b_c.9"), longest,
                                  std::string("example.com/a"), "0.e-x.io/" + longest}) {
    EXPECT_TRUE(IsQualifiedName(name)) << name;
  }
  for (const std::string& name :
       {std::string(""), std::string("-a"), std::string("a."), std::string("a b"), longest + "n",
        std::string("/a"), std::string("a/"), std::string("a/b/c"), std::string("Example.com/a"),
        std::string("a..b/c"), std::string("a.-b/c"), std::string("a_b/c"),
        absl::StrCat(std::string(254, 'd'), "/a")}) {
    EXPECT_FALSE(IsQualifiedName(name)) << name;
  }
}

TEST(QualifiedNameTest, LabelsAndSubdomainsOfDns) {
  const std::string longest(63, 'n');
  for (const std::string& name :
       {std::string("a"), std::string("0"), std::string("a-0"), longest}) {
    EXPECT_TRUE(IsDnsLabel(name)) << name;
    EXPECT_TRUE(IsDnsSubdomain(name)) << name;
  }
  for (const std::string& name : {std::string(""), std::string("A"), std::string("-a"),
                                  std::string("a-"), std::string("a_b"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(IsDnsLabel(name)) << name;
    EXPECT_FALSE(IsDnsSubdomain(name)) << name;
  }
  for (const std::string& name : {std::string("a.b-c.0"), longest + "n", std::string(253, 'n')}) {
    EXPECT_FALSE(IsDnsLabel(name)) << name;
    EXPECT_TRUE(IsDnsSubdomain(name)) << name;
  }
  for (const std::string& name : {std::string("a..b"), std::string("a.-b"), std::string(".a"),
                                  std::string("a."), std::string(254, 'n')}) {
    EXPECT_FALSE(IsDnsSubdomain(name)) << name;
  }
}

TEST(QualifiedNameTest, ResourcesThatKubernetesDoesNotDefine) {
  for (const char* name : {"nvidia.com/gpu", "example.com/A", "mykubernetes.io/x"}) {
    EXPECT_TRUE(IsExtendedResourceName(name)) << name;
  }
  for (const char* name : {"cpu", "kubernetes.io/x", "node.kubernetes.io/x", "requests.a.io/x",
                           "a.io/", "/x", "A.io/x", ""}) {
    EXPECT_FALSE(IsExtendedResourceName(name)) << name;
  }
}

}  // namespace
}  // namespace fairlead::model
