// The one control plane of a run: etcd and kube-apiserver, started by fairlead-control-plane, with
// the project's CRDs, the API server's own PodGroups (an alpha API), and no controllers. Its API
// server can be stopped and started again.
//
// FAIRLEAD_CONTROL_PLANE names the launcher; otherwise scripts/control-plane.sh builds it if
// KUBEBUILDER_ASSETS names the folder of the programs. FAIRLEAD_AUDIT_LOG names a file for the API
// server's audit log, which tests/install/rights_test.py reads. Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/credentials/client_config.h"
#include "tests/integration/child_process.h"

namespace fairlead::integration {

class Plane {
 public:
  // Null if there is no launcher, or it does not start; why_not() tells which.
  static Plane* Get();
  // Whether there is a launcher.
  static bool Given();
  static const std::string& why_not();
  // Ends it and removes its files. The next Get starts another one.
  static void Shutdown();

  ~Plane();

  [[nodiscard]] const kube::ClientConfig& config() const { return config_; }
  [[nodiscard]] int port() const { return port_; }
  // A new file beside the control plane's own, for a test to write.
  [[nodiscard]] std::string NewFile(const std::string& name);
  // A kubeconfig that goes through another port on loopback.
  [[nodiscard]] std::string KubeconfigThrough(int port);
  // One for a user with this token.
  [[nodiscard]] std::string KubeconfigWith(const std::string& token);
  // How to start kube-controller-manager with these controllers alone.
  [[nodiscard]] std::vector<std::string> ControllerManager(const std::string& controllers) const;
  // How to start kube-scheduler with this configuration file.
  [[nodiscard]] std::vector<std::string> KubeScheduler(const std::string& config) const;
  // How to ask kube-scheduler's plugins about the worlds of a file (tests/differential): an answer
  // a line on its output.
  [[nodiscard]] std::vector<std::string> SchedulerOracle(const std::string& worlds) const;
  // How to start kwok, as the kubelet of nodes with the annotation kwok.x-k8s.io/node.
  [[nodiscard]] std::vector<std::string> Kwok() const;
  // Of Karpenter's kwok cloud provider. `file` lists the instance types that cannot be had, one per
  // line, and may change while Karpenter runs; empty: there is none. After a launch that failed,
  // Karpenter plans without the type for `unavailable_seconds`.
  struct Stock {
    std::string file;
    int unavailable_seconds = 180;
  };
  // How to start Karpenter with its kwok cloud provider, which sells these instance types.
  [[nodiscard]] std::vector<std::string> Karpenter(const std::string& types_file,
                                                   const Stock& stock) const;
  [[nodiscard]] std::vector<std::string> Karpenter(const std::string& types_file) const {
    return Karpenter(types_file, Stock());
  }
  // False: it is not among the control plane's programs.
  [[nodiscard]] bool HasKubeScheduler() { return Has("kube-scheduler", "--version"); }
  [[nodiscard]] bool HasSchedulerOracle();
  [[nodiscard]] bool HasKarpenter() { return Has("karpenter", "--help"); }
  // Fairlead's plugin is compiled into it: it is the launcher's own.
  [[nodiscard]] bool KubeSchedulerHasPlugin() const { return Program("kube-scheduler").size() > 1; }
  [[nodiscard]] std::string kubeconfig() const { return folder_ + "/kubeconfig"; }

  // Kills kube-apiserver; its connections break.
  void StopApiServer();
  // Same port, same data. Returns when it is ready.
  void StartApiServer();

 private:
  Plane() = default;
  bool Start(const std::string& launcher);
  // The program of KUBEBUILDER_ASSETS if it is there, otherwise the launcher's own.
  [[nodiscard]] std::vector<std::string> Program(const std::string& name) const;
  // It answers that flag with success.
  bool Has(const std::string& program, const std::string& flag);

  std::string folder_, program_;
  std::unique_ptr<ChildProcess> launcher_;
  kube::ClientConfig config_;
  int port_ = 0, files_ = 0, stops_ = 0;
  std::map<std::string, bool> has_;  // by program
};

}  // namespace fairlead::integration
