// Starts the control plane, and ends it with the run, whatever the tests did. Without a control
// plane nothing runs, as one line says; the exit code is then kSkipped.
#include <iostream>

#include "gtest/gtest.h"
#include "tests/integration/plane.h"

namespace {

constexpr int kSkipped = 77;  // the value for ctest in CMakeLists.txt

class PlaneEnvironment final : public ::testing::Environment {
 public:
  void TearDown() override { fairlead::integration::Plane::Shutdown(); }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!::testing::GTEST_FLAG(list_tests) && fairlead::integration::Plane::Get() == nullptr) {
    std::cerr << fairlead::integration::Plane::why_not() << std::endl;
    return fairlead::integration::Plane::Given() ? 1 : kSkipped;
  }
  ::testing::AddGlobalTestEnvironment(new PlaneEnvironment);  // GoogleTest owns it
  return RUN_ALL_TESTS();
}
