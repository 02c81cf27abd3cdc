// Scheduler extenders in the Application: what is asked when, and what becomes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "cmd/fairlead/app/app_testing.h"

namespace fairlead::cmd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPod[] = "/api/v1/namespaces/ns/pods/p";
constexpr char kFilter[] = "/s/filter";
constexpr char kBind[] = "/s/bind";

// A transport that another one owns.
class Borrowed final : public kube::HttpTransport {
 public:
  explicit Borrowed(kube::HttpTransport* owner) : owner_(owner) {}
  Id Send(kube::HttpRequest request, Done done) override {
    return owner_->Send(std::move(request), std::move(done));
  }
  Id Stream(kube::HttpRequest request, std::shared_ptr<kube::StreamObserver> observer) override {
    return owner_->Stream(std::move(request), std::move(observer));
  }
  void Cancel(Id id) override { owner_->Cancel(id); }

 private:
  kube::HttpTransport* const owner_;
};

class AppExtendersTest : public AppTest {
 protected:
  AppExtendersTest() {
    options_.core.extenders = {Extender("filter")};
    connect_extender_ = [this](const model::ExtenderConfig& config)
        -> absl::StatusOr<std::unique_ptr<kube::HttpTransport>> {
      if (config.url_prefix == "http://no") return absl::InvalidArgumentError("no such file");
      return std::make_unique<Borrowed>(&transport_);
    };
    transport_.On("GET", kPod,
                  Reply::Json(200, R"({"metadata":{"name":"p","namespace":"ns","uid":"u-p"}})"));
    Say(R"({"NodeNames":["n1"]})");
    ServeWatches();
  }
  static model::ExtenderConfig Extender(const std::string& verb) {
    model::ExtenderConfig extender;
    extender.url_prefix = "http://extender/s";
    extender.filter_verb = verb;
    extender.node_cache_capable = true;
    return extender;
  }
  void Say(const std::string& answer) { transport_.On("POST", kFilter, Reply::Json(200, answer)); }
  [[nodiscard]] size_t Asked() const { return transport_.Sent("POST", kFilter).size(); }
};

TEST_F(AppExtendersTest, ThePodIsBoundWhenItsNodeIsAdmitted) {
  transport_.On("POST", kFilter, Reply::Hold());
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(Asked(), 1u);
  EXPECT_THAT(transport_.Sent("POST", kFilter)[0]->request.body,
              HasSubstr(R"("NodeNames":["n1"])"));
  EXPECT_EQ(Bindings(), 0u);
  transport_.Respond(*transport_.FindOpen("POST", kFilter),
                     {200, kube::kJson, absl::ZeroDuration(), R"({"NodeNames":["n1"]})"});
  EXPECT_TRUE(Pass(absl::Seconds(1)));
  EXPECT_EQ(Bindings(), 1u);
}

TEST_F(AppExtendersTest, AStandbyAsksNothing) {
  HeldByAnother();
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_EQ(Asked(), 0u);
}

TEST_F(AppExtendersTest, TheExtenderBinds) {
  options_.core.extenders[0].bind_verb = "bind";
  transport_.On("POST", kBind, Reply::Json(200, "{}"));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 0u);
  ASSERT_EQ(transport_.Sent("POST", kBind).size(), 1u);
  EXPECT_THAT(transport_.Sent("POST", kBind)[0]->request.body, HasSubstr(R"("PodUID":"u-p")"));
}

TEST_F(AppExtendersTest, IfAnIgnorableExtenderFailsToBindFairleadBinds) {
  options_.core.extenders[0].bind_verb = "bind";
  transport_.On("POST", kBind, Reply::Json(200, R"({"Error":"not today"})"));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(2)));
  EXPECT_EQ(Bindings(), 0u);
  EXPECT_THAT(log_, HasSubstr("not today"));
  core::Options next = options_.core;
  next.extenders[0].ignorable = true;
  EXPECT_TRUE(app_->Reconfigure(next, nullptr).ok());
  EXPECT_TRUE(Pass(absl::Seconds(10)));
  EXPECT_EQ(Bindings(), 1u);
}

// The next leader must not read before that binding is done or impossible.
TEST_F(AppExtendersTest, TheLeaseIsNotGivenBackWhileItsBindingIsUnanswered) {
  options_.core.extenders[0].bind_verb = "bind";
  transport_.On("POST", kBind, Reply::Hold());
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(transport_.Sent("POST", kBind).size(), 1u);
  app_->Stop();
  EXPECT_FALSE(app_->Turn(absl::Hours(1)));
  EXPECT_TRUE(app_->End().ok());
  EXPECT_THAT(log_, HasSubstr("the lease is not released"));
}

TEST_F(AppExtendersTest, WithoutAConnectionItDoesNotStart) {
  options_.core.extenders[0].url_prefix = "http://no";
  Application app({&transport_, &transport_, &clock_, nullptr, connect_extender_}, options_,
                  &hook::Catalog::BuiltIn(), &logger_);
  const absl::Status begun = app.Begin();
  EXPECT_TRUE(absl::IsInvalidArgument(begun));
  EXPECT_EQ(begun.message(), "extenders[0]: no such file");
}

TEST_F(AppExtendersTest, AnotherConfigurationHasOtherExtenders) {
  Say(R"({"NodeNames":[],"FailedNodes":{"n1":"no port"}})");
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_GE(Asked(), 1u);
  EXPECT_EQ(Bindings(), 0u);
  core::Options next = options_.core;
  next.extenders[0].url_prefix = "http://no";
  EXPECT_FALSE(app_->Reconfigure(next, nullptr).ok());
  next.extenders.clear();
  EXPECT_TRUE(app_->Reconfigure(next, nullptr).ok());
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_EQ(Bindings(), 1u);
}

}  // namespace
}  // namespace fairlead::cmd::testing
