// Shared by all integration tests: a clean cluster, the real `fairlead run` as a process, and
// helpers to create and read objects.
//
// Before and after each test there is no queue, pod, pod group, node or node request; a test sees
// nothing of another. Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/model/node.h"
#include "tests/integration/api.h"
#include "tests/integration/child_process.h"
#include "tests/integration/plane.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {

inline constexpr char kPods[] = "/api/v1/namespaces/default/pods";
inline constexpr char kNodes[] = "/api/v1/nodes";
inline constexpr char kGroups[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups";
inline constexpr char kQueues[] = "/apis/scheduling.run.ai/v2/queues";
inline constexpr char kRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests";
inline constexpr char kPools[] = "/apis/fairlead.dev/v1alpha1/nodepools";
inline constexpr char kLease[] =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead";

// How to run `fairlead run`; they become a user's configuration file.
struct Settings {
  std::string identity = "fairlead-a";
  std::string kubeconfig = {};  // empty: straight to the API server
  bool hook = false;
  std::string provider = "kwok";
  std::string boot_delay = "300ms";  // of nodes
  std::string more_of_hook = {};     // fields of the hook, as YAML, each indented with its line end
  std::string unneeded_after = "10m";
  // Of the lease, its renewal and its retries, in seconds; empty: no election.
  std::vector<int> election = {};
  std::string more = {};             // fields of the configuration, as YAML, each with its line end
  std::string journal = {};          // a folder; empty: none is recorded
  std::string home = "kube-system";  // the program's namespace
  std::vector<std::string> flags = {};  // more of `fairlead run`
};

struct PodSpec {
  std::string name, queue = "team";
  int gpus = 1;
  std::string group = {};
  std::string scheduler = "fairlead";
  std::string more_labels = {};    // JSON fields of metadata.labels, with a comma at the end
  std::string more_metadata = {};  // JSON fields of metadata, with a comma at the end
  std::string more_spec = {};      // the same of spec
};

// Makes the Node, and writes what a kubelet says of it when it is ready. The first answer that is
// an error, else the last one.
Answer RegisterNode(Api& api, model::Node node);

class IntegrationTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Api& api() { return *api_; }

  // Deletes what owns other objects. Without a policy a Job would stay until its pods were
  // orphaned.
  void DeleteOwner(const std::string& path);
  // Deletes all objects of it, whatever finalizers they have.
  void Empty(const std::string& collection);

  // Runs and is connected, but may not have decided anything yet. Its audit log is in its output,
  // too.
  ChildProcess& Start(const Settings& settings);
  // `text` is in the log of the process.
  static ::testing::AssertionResult Says(ChildProcess& process, const std::string& text);

  // Installs the rights of these folders of manifests/ and their account as a user does, until the
  // test ends; returns a kubeconfig of that account.
  std::string InstallRights(const std::vector<std::string>& folders = {"base"});

  // Creates the CustomResourceDefinitions of a YAML file that are not there yet, for good.
  void Define(const std::string& file);
  // Also waits until the collection is served.
  void Define(const std::string& file, const std::string& collection);

  // GPUs of quota and limit; -1: unlimited.
  void MakeQueue(const std::string& name, int quota, int limit);
  // In the place of one of that name; until the test ends.
  void MakePriorityClass(const std::string& name, int value);
  // Ready at once.
  void MakeNode(const std::string& name, int gpus);
  static std::string GroupText(const std::string& name, int members,
                               const std::string& queue = "team");
  Json MakeGroup(const std::string& name, int members) {
    return api().Create(kGroups, GroupText(name, members));
  }
  Json MakePod(const PodSpec& pod);
  // Binds as another scheduler would. Returns the HTTP status.
  int BindPod(const std::string& name, const std::string& node);

  Json Pod(const std::string& name) { return api().Get(Path(kPods, name)).body; }
  std::string NodeOf(const std::string& pod) { return Pod(pod).TextAt({"spec", "nodeName"}); }
  // The pod's verdict annotation; empty if it has none.
  std::string VerdictOf(const std::string& pod);
  Json GroupVerdict(const std::string& group);
  ::testing::AssertionResult Bound(const std::vector<std::string>& pods);
  // GPUs of bound pods never exceed the GPUs of their node.
  void ExpectNoNodeOvercommitted();

  static std::string Path(const std::string& collection, const std::string& name) {
    return collection + "/" + name;
  }

 private:
  void Clean();

  std::unique_ptr<Api> api_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  std::vector<std::string> installed_;
};

// The objects of a YAML file.
std::vector<Json> ObjectsOf(const std::string& file);
// For JSON fields of metadata: the owner, as the pod's controller; with a comma at the end.
std::string OwnedBy(const Json& owner);

// {"type":..., "status":...} of an object's status.
const Json* FindCondition(const Json& object, absl::string_view type);

}  // namespace fairlead::integration
