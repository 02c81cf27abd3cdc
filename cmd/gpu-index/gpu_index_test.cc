#include <cstdlib>

#include "cmd/gpu-index/announce.h"
#include "cmd/gpu-index/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::gpu_index {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Uuids = std::vector<std::string>;

// ---- which GPU
// -------------------------------------------------------------------------------------

struct Choice {
  const char* name;
  const char* visible;  // NVIDIA_VISIBLE_DEVICES
  absl::StatusOr<Uuids> seen;
  const char* device;  // or "" and
  const char* why;     // a part of the message
  friend void PrintTo(const Choice& choice, std::ostream* out) { *out << choice.name; }
};

const absl::Status& NoNvml() {
  static const auto& status = *new absl::Status(absl::NotFoundError("NVML cannot be loaded"));
  return status;
}

class ChoiceTest : public ::testing::TestWithParam<Choice> {};

INSTANTIATE_TEST_SUITE_P(
    Of, ChoiceTest,
    ::testing::Values(
        Choice{"NoNvmlAndAWord", "all", NoNvml(), "", "NVML cannot be loaded"},
        Choice{"NoNvmlAndNothing", "", NoNvml(), "", "not set"},
        Choice{"NoNvmlAndANumber", "3", NoNvml(), "", "NVIDIA_VISIBLE_DEVICES is 3"},
        Choice{"NoNvmlAndTwo", "GPU-a,GPU-b", NoNvml(), "", "GPU-a,GPU-b"},
        Choice{"NothingSeen", "void", Uuids{}, "", "sees no GPU"},
        Choice{"AnotherSeen", "GPU-a", Uuids{"GPU-b"}, "", "GPU-b"},
        Choice{"SeveralSeenAndNoHint", "all", Uuids{"GPU-a", "GPU-b"}, "", "sees 2 GPUs"},
        Choice{"SeveralSeenAndAWrongNumber", "2", Uuids{"GPU-a", "GPU-b"}, "", "sees 2 GPUs"},
        Choice{"ASlice", "MIG-1", Uuids{"GPU-a"}, "", "MIG"},
        Choice{"NoNvmlAndAUuid", "GPU-a", NoNvml(), "GPU-a", ""},
        Choice{"OneSeen", "void", Uuids{"GPU-a"}, "GPU-a", ""},
        Choice{"OneSeenWhateverItsNumber", "3", Uuids{"GPU-a"}, "GPU-a", ""},
        Choice{"OneOfSeveral", "GPU-b", Uuids{"GPU-a", "GPU-b"}, "GPU-b", ""},
        Choice{"TheNumberOfOneOfSeveral", "1", Uuids{"GPU-a", "GPU-b"}, "GPU-b", ""}),
    [](const ::testing::TestParamInfo<Choice>& choice) { return choice.param.name; });

TEST_P(ChoiceTest, IsTheOneOrSaysWhyNot) {
  const Choice& choice = GetParam();
  const absl::StatusOr<std::string> device = ChooseDevice(choice.visible, choice.seen);
  if (*choice.device != '\0') {
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(*device, choice.device);
  } else {
    ASSERT_FALSE(device.ok()) << *device;
    EXPECT_THAT(device.status().message(), HasSubstr(choice.why));
  }
}

// ---- a library, loaded like the real one
// -----------------------------------------------------------

TEST(NvmlTest, AMissingLibraryIsNamedWithWhatToDo) {
  const auto nvml = LoadNvml("libno-such-nvml.so.1");
  ASSERT_TRUE(absl::IsNotFound(nvml.status())) << nvml.status();
  EXPECT_THAT(nvml.status().message(), HasSubstr("libno-such-nvml.so.1"));
  EXPECT_THAT(nvml.status().message(), HasSubstr("runtimeClassName"));
}

TEST(NvmlTest, ALibraryThatIsNoNvmlIsRefusedByTheFunctionItLacks) {
  const auto nvml = LoadNvml("libm.so.6");
  EXPECT_TRUE(absl::IsFailedPrecondition(nvml.status())) << nvml.status();
  EXPECT_THAT(nvml.status().message(), HasSubstr("nvmlInit_v2"));
}

TEST(NvmlTest, AnErrorOfNvmlIsSaidInItsWords) {
  setenv("FAKE_NVML_GPUS", "error", 1);
  auto nvml = LoadNvml(FAIRLEAD_FAKE_NVML);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto uuids = (*nvml)->Uuids();
  EXPECT_TRUE(absl::IsUnavailable(uuids.status())) << uuids.status();
  EXPECT_THAT(uuids.status().message(), HasSubstr("Driver Not Loaded"));
}

TEST(NvmlTest, TheGpusAreReadThroughTheLibrary) {
  setenv("FAKE_NVML_GPUS", "GPU-0f,GPU-1e", 1);
  auto nvml = LoadNvml(FAIRLEAD_FAKE_NVML);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto uuids = (*nvml)->Uuids();
  ASSERT_TRUE(uuids.ok()) << uuids.status();
  EXPECT_THAT(*uuids, ElementsAre("GPU-0f", "GPU-1e"));
}

// ---- the annotation
// --------------------------------------------------------------------------------

class AnnounceTest : public ::testing::Test {
 protected:
  absl::Status With(const kube::FakeTransport::Reply& reply) {
    transport_.On("PATCH", "/api/v1/namespaces/reserved/pods/gpu-1", reply);
    return Announce(transport_, {"reserved", "gpu-1"}, "GPU-a");
  }
  FakeClock clock_{absl::UnixEpoch()};
  kube::FakeTransport transport_{clock_};
};

TEST_F(AnnounceTest, WhatMayPassIsToldApartFromAFinalNo) {
  using Reply = kube::FakeTransport::Reply;
  EXPECT_TRUE(absl::IsUnavailable(With(Reply::Failure(absl::UnavailableError("no route")))));
  EXPECT_TRUE(absl::IsUnavailable(With(Reply::Json(503, "{}"))));
  EXPECT_TRUE(absl::IsUnavailable(With(Reply::Json(429, "{}"))));
  const absl::Status no =
      With(Reply::Json(403, R"({"kind":"Status","code":403,"message":"may not patch pods"})"));
  EXPECT_TRUE(absl::IsFailedPrecondition(no)) << no;
  EXPECT_THAT(no.message(), HasSubstr("may not patch pods"));
}

TEST_F(AnnounceTest, TheAnnotationIsMergedIntoItsOwnPod) {
  ASSERT_TRUE(With(kube::FakeTransport::Reply::Json(200, "{}")).ok());
  ASSERT_EQ(transport_.exchanges().size(), 1u);
  const kube::HttpRequest& request = transport_.exchanges()[0].request;
  EXPECT_EQ(request.content_type, kube::kMergePatch);
  EXPECT_EQ(request.body,
            R"({"metadata":{"annotations":{"run.ai/reserve_for_gpu_index":"GPU-a"}}})");
}

}  // namespace
}  // namespace fairlead::gpu_index
