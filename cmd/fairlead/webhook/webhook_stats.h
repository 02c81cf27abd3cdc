// What became of the requests to the webhooks since the start. Thread-safety: a plain value.
#pragma once

#include <cstdint>

namespace fairlead::cmd {

struct WebhookStats {
  uint64_t admitted = 0, defaulted = 0;
  uint64_t invalid = 0, forbidden = 0;  // refused
  uint64_t unauthorized = 0;            // rights could not be asked about
  uint64_t failed = 0;                  // no review, or nothing is known yet
};

}  // namespace fairlead::cmd
