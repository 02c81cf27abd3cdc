// A scripted API server and an owner's thread, for tests of the parts that read on it. Header only;
// never part of the product.
#pragma once

#include <memory>

#include "base/clock.h"
#include "cmd/fairlead/app/task_queue.h"
#include "gtest/gtest.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd::testing {

class ReaderTest : public ::testing::Test {
 protected:
  using Reply = kube::FakeTransport::Reply;

  // Delivers answers, and requests that they lead to, until nothing is on its way.
  void Run() {
    do {
      tasks_->RunAll();
    } while (transport_.Pump() > 0);
  }

  FakeClock clock_{absl::FromUnixSeconds(1'772'409'600)};
  kube::FakeTransport transport_{clock_};
  std::shared_ptr<TaskQueue> tasks_ = std::make_shared<TaskQueue>([] {});
};

}  // namespace fairlead::cmd::testing
