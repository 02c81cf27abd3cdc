// A cloud with groups of machines behind CloudGroups, in virtual time. Every call goes through
// `transport`, which tests replace to delay, lose, repeat or refuse answers.
//
// A group with open places lists a machine for each `listed_after` an increase; the machine runs
// `runs_after` that. A machine that is deleted is listed as such for `ends_after`.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {

class FakeCloud final : public CloudGroups {
 public:
  struct Group {
    CloudGroup told;
    int64_t target = 0;
    std::map<std::string, CloudInstance> machines;
    model::Node node;
    double price = 1;
    absl::Duration listed_after = absl::Seconds(5), runs_after = absl::Seconds(60);
    absl::Duration ends_after = absl::Seconds(3);
    bool creates = true;     // false: places stay open
    std::string error_code;  // of new machines
    int32_t error_class = kOutOfResources;
    // What the server says instead.
    std::optional<int64_t> wrong_target;
    std::optional<std::vector<CloudInstance>> wrong_list;
  };
  using Work = std::function<absl::Status()>;
  using Reply = std::function<void(const absl::Status&)>;
  using Transport = std::function<void(const std::string& call, const Work& work, Reply reply)>;

  explicit FakeCloud(VirtualTime* time) : time_(time) {
    transport = [this](const std::string&, const Work& work, const Reply& reply) {
      time_->After(absl::Milliseconds(10), [work, reply] { reply(work()); });
    };
  }

  Group& AddGroup(const std::string& id, int64_t min_size = 0, int64_t max_size = 10) {
    Group& group = groups[id];
    group.told = {id, min_size, max_size, ""};
    group.node.allocatable = {{"cpu", 4000}, {"memory", int64_t{16} << 30}, {"pods", 58}};
    group.node.meta.name = absl::StrCat("template-of-", id);
    group.node.meta.labels = {{model::kInstanceTypeLabel, "m5.xlarge"},
                              {model::kZoneLabel, "z1"},
                              {model::kHostnameLabel, "template"}};
    return group;
  }
  // Of no order of ours, and already counted in the target size.
  std::string AddMachine(const std::string& group, InstanceState state = InstanceState::kRunning) {
    const std::string id = NewId();
    groups[group].machines[id] = {id, state};
    ++groups[group].target;
    return id;
  }
  // A machine disappears, and its group does not replace it.
  void Vanish(const std::string& id) {
    for (auto& [name, group] : groups) {
      if (group.machines.erase(id) > 0) --group.target;
    }
  }
  [[nodiscard]] bool Has(const std::string& id) const {
    for (const auto& [name, group] : groups) {
      if (group.machines.contains(id)) return true;
    }
    return false;
  }
  // "increase g 2", "delete g i-1", ...; calls that write, in order.
  std::vector<std::string> writes;
  std::vector<Increase> increases;   // that were asked for
  std::map<std::string, int> calls;  // by name
  std::map<std::string, Group> groups;
  std::vector<CloudGroup> more_groups;  // listed after the others
  std::string gpu_label = "cloud/gpu";
  bool has_prices = true;
  Transport transport;

  void Refresh(Done done) override {
    Write("Refresh", [] { return absl::OkStatus(); }, std::move(done));
  }
  void Groups(Answer<std::vector<CloudGroup>> answer) override {
    Ask<std::vector<CloudGroup>>("NodeGroups", std::move(answer), [this] {
      std::vector<CloudGroup> list;
      for (const auto& [id, group] : groups) list.push_back(group.told);
      list.insert(list.end(), more_groups.begin(), more_groups.end());
      return list;
    });
  }
  void GpuLabel(Answer<std::string> answer) override {
    Ask<std::string>("GPULabel", std::move(answer), [this] { return gpu_label; });
  }
  void NodePrice(const CloudNode& node, Answer<double> answer) override {
    Ask<double>("PricingNodePrice", std::move(answer), [this, name = node.name] {
      if (!has_prices) return absl::StatusOr<double>(absl::UnimplementedError("no prices"));
      for (const auto& [id, group] : groups) {
        if (group.node.meta.name == name) return absl::StatusOr<double>(group.price);
      }
      return absl::StatusOr<double>(absl::NotFoundError(name));
    });
  }
  void TargetSize(const std::string& id, Answer<int64_t> answer) override {
    Ask<int64_t>("NodeGroupTargetSize", std::move(answer), [this, id] {
      const Group& group = groups[id];
      return group.wrong_target.value_or(group.target);
    });
  }
  void Nodes(const std::string& id, Answer<std::vector<CloudInstance>> answer) override {
    Ask<std::vector<CloudInstance>>("NodeGroupNodes", std::move(answer), [this, id] {
      const Group& group = groups[id];
      std::vector<CloudInstance> list;
      for (const auto& [name, machine] : group.machines) list.push_back(machine);
      return group.wrong_list.value_or(list);
    });
  }
  void TemplateNode(const std::string& id, Answer<model::Node> answer) override {
    Ask<model::Node>("NodeGroupTemplateNodeInfo", std::move(answer),
                     [this, id] { return groups[id].node; });
  }
  void IncreaseSize(const std::string& id, const Increase& increase, Done done) override {
    increases.push_back(increase);
    Write(
        "NodeGroupIncreaseSize",
        [this, id, delta = increase.delta] {
          writes.push_back(absl::StrCat("increase ", id, " ", delta));
          Group& group = groups[id];
          if (group.target + delta > group.told.max_size) return absl::UnknownError("too large");
          group.target += delta;
          time_->After(group.listed_after, [this, id] { Fill(id); });
          return absl::OkStatus();
        },
        std::move(done));
  }
  void DecreaseTargetSize(const std::string& id, int64_t delta, Done done) override {
    Write(
        "NodeGroupDecreaseTargetSize",
        [this, id, delta] {
          writes.push_back(absl::StrCat("decrease ", id, " ", delta));
          Group& group = groups[id];
          if (group.target - delta < Living(group)) return absl::UnknownError("nodes exist");
          group.target -= delta;
          return absl::OkStatus();
        },
        std::move(done));
  }
  void DeleteNodes(const std::string& id, const std::vector<CloudNode>& nodes, Done done) override {
    Write(
        "NodeGroupDeleteNodes",
        [this, id, nodes] {
          for (const CloudNode& node : nodes) {
            writes.push_back(absl::StrCat("delete ", id, " ", node.provider_id));
            if (const absl::Status status = Delete(id, node.provider_id); !status.ok()) {
              return status;
            }
          }
          return absl::OkStatus();
        },
        std::move(done));
  }
  // Lists machines for the open places.
  void Fill(const std::string& id) {
    Group& group = groups[id];
    while (group.creates && Living(group) < group.target) {
      const std::string name = NewId();
      group.machines[name] = {name, InstanceState::kCreating, group.error_code, "as asked",
                              group.error_class};
      if (!group.error_code.empty()) continue;
      time_->After(group.runs_after, [this, id, name] {
        const auto machine = groups[id].machines.find(name);
        if (machine == groups[id].machines.end()) return;
        if (machine->second.state == InstanceState::kCreating) {
          machine->second.state = InstanceState::kRunning;
        }
      });
    }
  }

 private:
  static int64_t Living(const Group& group) {
    int64_t living = 0;
    for (const auto& [id, machine] : group.machines) {
      if (machine.state != InstanceState::kDeleting) ++living;
    }
    return living;
  }
  std::string NewId() { return absl::StrFormat("cloud:///i-%04d", ++last_id_); }
  absl::Status Delete(const std::string& id, const std::string& machine) {
    Group& group = groups[id];
    const auto found = group.machines.find(machine);
    if (found == group.machines.end()) return absl::UnknownError("not of this group");
    if (found->second.state == InstanceState::kDeleting) return absl::OkStatus();
    --group.target;
    if (!found->second.error_code.empty()) {
      group.machines.erase(found);
      return absl::OkStatus();
    }
    found->second.state = InstanceState::kDeleting;
    time_->After(group.ends_after, [this, id, machine] { groups[id].machines.erase(machine); });
    return absl::OkStatus();
  }
  void Write(const std::string& call, const Work& work, Done done) {
    ++calls[call];
    transport(call, work, std::move(done));
  }
  template <typename T>
  void Ask(const std::string& call, Answer<T> answer, std::function<absl::StatusOr<T>()> work) {
    ++calls[call];
    const auto result = std::make_shared<absl::StatusOr<T>>(absl::UnknownError("not asked"));
    transport(
        call,
        [result, work] {
          *result = work();
          return result->status();
        },
        [result, answer](const absl::Status& status) {
          status.ok() ? answer(*result) : answer(status);
        });
  }

  VirtualTime* time_;
  int last_id_ = 0;
};

}  // namespace fairlead::hook
