// A stand-in for a controller: does its round a few times per second, on a thread of its own, until
// it goes. What the round uses has to be made before it and to outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fairlead::integration {

class Rounds {
 public:
  explicit Rounds(std::function<void()> round)
      : thread_([this, round = std::move(round)] {
          while (!stop_) {
            round();
            absl::SleepFor(absl::Milliseconds(100));
          }
        }) {}
  ~Rounds() {
    stop_ = true;
    thread_.join();
  }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace fairlead::integration
