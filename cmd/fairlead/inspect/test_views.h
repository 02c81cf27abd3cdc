// A view made by hand, for the tests of code that shows one.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "core/view.h"
#include "scheduler/model/resources.h"
#include "scheduler/verdict/text.h"

namespace fairlead::cmd::testing {

inline constexpr int64_t kGiB = int64_t{1} << 30;

inline absl::Time At(int64_t minutes) {
  return absl::FromUnixSeconds(1'772'409'600) + absl::Minutes(minutes);  // a Monday, midnight
}

// GPUs in devices; -1 is unlimited.
inline core::QueueRow MakeQueue(const std::string& name, const std::string& parent, int depth,
                                int64_t allocated, int64_t quota, int64_t limit) {
  const auto milli = [](int64_t devices) { return devices < 0 ? devices : devices * 1000; };
  core::QueueRow row;
  row.name = name;
  row.parent = parent;
  row.depth = depth;
  row.leaf = depth > 0;
  row.resources = {{"nvidia.com/gpu", milli(quota), milli(limit), milli(allocated),
                    milli(allocated), milli(allocated + 2)},
                   {"cpu", -1, -1, 0, allocated * 2000, 0},
                   {"memory", -1, -1, 0, allocated * kGiB, 0}};
  row.running_pods = allocated;
  return row;
}

inline core::NodeRow MakeNode(const std::string& name, const std::string& status, int64_t used,
                              int64_t price_micro_usd) {
  core::NodeRow row;
  row.name = name;
  row.instance_type = price_micro_usd > 0 ? "g5.xlarge" : "";
  row.zone = "us-east-1a";
  row.status = status;
  row.node_request = price_micro_usd > 0 ? name : "";
  row.capacity_type = price_micro_usd > 0 ? "on-demand" : "";
  row.price_micro_usd_per_hour = price_micro_usd;
  row.allocatable = {{"cpu", 4000}, {"memory", 16 * kGiB}, {"nvidia.com/gpu", 1000}, {"pods", 58}};
  row.used = {{"cpu", used * 2000}, {"nvidia.com/gpu", used * 1000}};
  row.pods = used;
  return row;
}

inline core::WaitingRow LimitRow() {
  core::WaitingRow row;
  row.workload = "research/sweep-09-0";
  row.queue = "research";
  row.priority = 50;
  row.since = At(540);
  row.pods = {"research/sweep-09-0"};
  verdict::Verdict& v = row.verdict;
  v.code = verdict::Code::kQueueLimitReached;
  v.queue = "research";
  v.position = 1;
  v.queue_block = verdict::QueueBlock{"research", "nvidia.com/gpu", 8000, 8000, 1000};
  v.unblockers = {
      {verdict::ResolvableBy::kQueueChange, "raise the GPU limit of queue research to 9"},
      {verdict::ResolvableBy::kTime, "wait until a pod of queue research ends"}};
  v.pods_waiting = 1;
  row.message = verdict::Message(v);
  return row;
}

inline core::WaitingRow NodesRow() {
  core::WaitingRow row;
  row.workload = "serving/chat";
  row.is_group = true;
  row.queue = "production-inference";
  row.priority = 125;
  row.since = At(598);
  row.pods = {"serving/chat-0", "serving/chat-1"};
  verdict::Verdict& v = row.verdict;
  v.code = verdict::Code::kNodesRequested;
  v.scope = verdict::Scope::kGang;
  v.queue = "production-inference";
  v.position = 2;
  v.node_requests = {"fl-1", "fl-2"};
  v.expected_at = At(603);
  v.failed_predicates = {
      {"NodeResourcesFit", "Insufficient nvidia.com/gpu", 3, {{"nvidia.com/gpu", 1000}}},
      {"TaintToleration", "had untolerated taint", 1, {}}};
  v.pods_waiting = 2;
  v.min_member = 2;
  row.message = verdict::Message(v);
  return row;
}

inline core::View SampleView() {
  core::View view;
  view.at = At(600);
  view.queues = {MakeQueue("gpu-platform", "", 0, 8, 12, -1),
                 MakeQueue("research", "gpu-platform", 1, 8, 4, 8),
                 MakeQueue("production-inference", "gpu-platform", 1, 0, 8, 12)};
  view.queues[1].waiting_workloads = 1;
  view.queues[2].waiting_workloads = 1;
  view.nodes = {MakeNode("cpu-1", "Ready", 0, 0), MakeNode("fl-1", "Ordered", 0, 1'006'000),
                MakeNode("fl-2", "Starting", 0, 1'006'000),
                MakeNode("fl-3", "Ready", 1, 1'006'000)};
  view.nodes[0].allocatable = {{"cpu", 8000}, {"pods", 110}};
  view.nodes[1].promised = 1;
  view.nodes[3].unneeded_since = At(597);
  view.nodes[3].capacity_type = "spot";
  view.waiting = {LimitRow(), NodesRow()};
  view.running = {{"research/sweep-01-0", "research/sweep-01-0", "research", "fl-3", "Running"}};
  view.price_micro_usd_per_hour = 3'018'000;
  view.gpus_held = 3;
  return view;
}

}  // namespace fairlead::cmd::testing
