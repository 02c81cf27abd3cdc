// Plugins in other programs in the Application: which calls go out, and what becomes of the
// answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/fairlead/app/app_testing.h"
#include "core/configuration.h"

namespace fairlead::cmd::testing {
namespace {

using model::RemotePoint;
using ::testing::HasSubstr;

// Keeps the calls until the test answers them.
struct Calls {
  struct Open {
    model::RemoteCall call;
    remote_plugins::Caller::Done done;
  };
  std::vector<Open> open;
  int connected = 0;  // clients that are there
};

class FakeCaller final : public remote_plugins::Caller {
 public:
  explicit FakeCaller(Calls* calls) : calls_(calls) { ++calls_->connected; }
  ~FakeCaller() override { --calls_->connected; }
  void Call(const model::RemoteCall& call, Done done) override {
    calls_->open.push_back({call, std::move(done)});
  }

 private:
  Calls* const calls_;
};

class AppPluginsTest : public AppTest {
 protected:
  AppPluginsTest() {
    Use("h:1");
    connect_plugins_ = [this](const std::vector<model::RemotePluginConfig>& plugins)
        -> absl::StatusOr<std::unique_ptr<remote_plugins::Caller>> {
      if (plugins[0].address == "no") return absl::InvalidArgumentError("no certificate");
      return std::make_unique<FakeCaller>(&calls_);
    };
    ServeWatches();
  }
  void Use(const std::string& address) {
    const auto read = core::ReadConfiguration(
        {absl::StrCat(R"({"apiVersion":"config.fairlead.dev/v1alpha1",)",
                      R"("kind":"FairleadConfiguration","remotePlugins":[{"name":"Licences",)",
                      R"("address":")", address, R"("}]})"),
         R"({"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",)"
         R"("profiles":[{"schedulerName":"fairlead","plugins":{"permit":{"enabled":[)"
         R"({"name":"Licences"}]}}}]})"});
    ASSERT_TRUE(read.ok()) << read.status();
    options_.core.remote_plugins = read->options.remote_plugins;
    options_.core.plugins = read->options.plugins;
    options_.core.profiles = read->options.profiles;
  }
  void Answer(const absl::Status& status, const std::string& refusal = "") {
    ASSERT_FALSE(calls_.open.empty());
    Calls::Open call = std::move(calls_.open.front());
    calls_.open.erase(calls_.open.begin());
    call.done({status, refusal});
  }

  Calls calls_;
};

TEST_F(AppPluginsTest, ThePodIsBoundWhenItHasItsPermit) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(calls_.open.size(), 1u);
  EXPECT_EQ(calls_.open[0].call.plugin, "Licences");
  EXPECT_EQ(calls_.open[0].call.point, RemotePoint::kPermit);
  EXPECT_EQ(calls_.open[0].call.name, "p");
  EXPECT_EQ(Bindings(), 0u);
  Answer(absl::OkStatus());
  EXPECT_TRUE(Pass(absl::Seconds(1)));
  EXPECT_EQ(Bindings(), 1u);
}

TEST_F(AppPluginsTest, ARefusalIsTold) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  Answer(absl::OkStatus(), "no licence is left");
  EXPECT_TRUE(Pass(absl::Milliseconds(500)));
  EXPECT_EQ(Bindings(), 0u);
  const auto events = transport_.Sent("POST", "/apis/events.k8s.io/v1/namespaces/ns/events");
  bool told = false;
  for (const auto& event : events) {
    told = told || absl::StrContains(event->request.body, "Licences: no licence is left");
  }
  EXPECT_TRUE(told);
  ASSERT_EQ(calls_.open.size(), 1u);
  EXPECT_EQ(calls_.open[0].call.point, RemotePoint::kUnreserve);
}

TEST_F(AppPluginsTest, AnotherConfigurationHasOtherPlugins) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(calls_.open.size(), 1u);
  Use("no");
  EXPECT_THAT(std::string(app_->Reconfigure(options_.core, nullptr).message()),
              HasSubstr("no certificate"));
  Use("h:2");
  EXPECT_TRUE(app_->Reconfigure(options_.core, nullptr).ok());
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_EQ(calls_.connected, 1);
  // The former loop's question is answered late: that permits nothing.
  Answer(absl::OkStatus());
  EXPECT_TRUE(Pass(absl::Seconds(1)));
  EXPECT_EQ(Bindings(), 0u);
  Answer(absl::OkStatus());
  EXPECT_TRUE(Pass(absl::Seconds(1)));
  EXPECT_EQ(Bindings(), 1u);
}

TEST_F(AppPluginsTest, WithoutAConnectionItDoesNotStart) {
  Application app({&transport_, &transport_, &clock_}, options_, &hook::Catalog::BuiltIn(),
                  &logger_);
  EXPECT_EQ(app.Begin().message(), "remotePlugins: there is no connection to any here");
}

}  // namespace
}  // namespace fairlead::cmd::testing
