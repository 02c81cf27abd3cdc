#include "tests/integration/plane.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "kube/credentials/kubeconfig.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {
namespace {

constexpr char kSource[] = FAIRLEAD_SOURCE_DIR;

struct Global {
  bool tried = false, given = false;
  std::unique_ptr<Plane> plane;
  std::string why_not;
};
Global& TheGlobal() {
  static auto* const global = new Global;
  return *global;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The path that scripts/control-plane.sh prints; empty if it cannot.
std::string BuiltLauncher() {
  FILE* const pipe = popen(absl::StrCat("'", kSource, "/scripts/control-plane.sh'").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[4096];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  return pclose(pipe) == 0 ? std::string(absl::StripAsciiWhitespace(output)) : "";
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

Plane* Plane::Get() {
  Global& global = TheGlobal();
  if (global.tried) return global.plane.get();
  global.tried = true;
  std::string launcher = Variable("FAIRLEAD_CONTROL_PLANE");
  if (launcher.empty() && !Variable("KUBEBUILDER_ASSETS").empty()) launcher = BuiltLauncher();
  if (launcher.empty()) {
    global.why_not =
        "skipped: no control plane: set FAIRLEAD_CONTROL_PLANE to what scripts/control-plane.sh "
        "prints, or "
        "KUBEBUILDER_ASSETS";
    return nullptr;
  }
  global.given = true;
  std::unique_ptr<Plane> plane(new Plane);
  if (!plane->Start(launcher)) {
    global.why_not = absl::StrCat(launcher, " did not start:\n", plane->launcher_->Log());
    return nullptr;
  }
  global.plane = std::move(plane);
  return global.plane.get();
}

bool Plane::Given() { return TheGlobal().given; }

const std::string& Plane::why_not() { return TheGlobal().why_not; }

void Plane::Shutdown() {
  TheGlobal().plane.reset();
  TheGlobal().tried = false;
}

bool Plane::Start(const std::string& launcher) {
  program_ = launcher;
  folder_ = (std::filesystem::temp_directory_path() / "fairlead-integration-XXXXXX").string();
  FAIRLEAD_CHECK(mkdtemp(folder_.data()) != nullptr, folder_);
  const std::string ready = folder_ + "/ready";
  std::vector<std::string> command = {
      launcher,
      "up",
      "--dir",
      folder_ + "/plane",
      "--kubeconfig",
      kubeconfig(),
      "--ready-file",
      ready,
      "--crds",
      absl::StrCat(kSource, "/crds"),
      "--apiserver-flag=--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,"
      "DRADeviceTaintRules=true",
      "--apiserver-flag=--runtime-config=scheduling.k8s.io/v1alpha2=true,"
      "resource.k8s.io/v1beta2=true"};
  if (const std::string log = Variable("FAIRLEAD_AUDIT_LOG"); !log.empty()) {
    std::filesystem::remove(log);
    command.push_back(absl::StrCat("--apiserver-flag=--audit-policy-file=", kSource,
                                   "/tests/install/audit.yaml"));
    command.push_back(absl::StrCat("--apiserver-flag=--audit-log-path=", log));
  }
  launcher_ = std::make_unique<ChildProcess>(command, folder_ + "/log");
  const bool up = static_cast<bool>(Eventually(
      "control plane", [&] { return std::filesystem::exists(ready) || !launcher_->Running(); },
      nullptr, absl::Minutes(2)));
  if (!up || !launcher_->Running()) return false;
  auto config = kube::LoadKubeconfig({kubeconfig()});
  if (!config.ok()) return false;
  config_ = *std::move(config);
  const std::string& url = config_.server.url;
  return absl::SimpleAtoi(absl::string_view(url).substr(url.rfind(':') + 1), &port_);
}

Plane::~Plane() {
  if (launcher_ != nullptr) {
    launcher_->Signal(SIGTERM);
    launcher_->Wait(kPatience);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string Plane::NewFile(const std::string& name) {
  return absl::StrCat(folder_, "/", ++files_, "-", name);
}

std::string Plane::KubeconfigThrough(int port) {
  const std::string path = NewFile("kubeconfig");
  std::ofstream(path) << absl::StrReplaceAll(
      ReadFile(kubeconfig()),
      {{absl::StrCat("127.0.0.1:", port_), absl::StrCat("127.0.0.1:", port)}});
  return path;
}

std::string Plane::KubeconfigWith(const std::string& token) {
  std::string text = ReadFile(kubeconfig());
  const std::string key = "    token: ";
  const size_t at = text.find(key);
  if (at != std::string::npos) {
    text.replace(at, text.find('\n', at) - at, absl::StrCat(key, token));
  }
  const std::string path = NewFile("kubeconfig");
  std::ofstream(path) << text;
  return path;
}

std::vector<std::string> Plane::Program(const std::string& name) const {
  const std::string given = absl::StrCat(Variable("KUBEBUILDER_ASSETS"), "/", name);
  if (std::filesystem::exists(given)) return {given};
  return {program_, name};
}

std::vector<std::string> Plane::SchedulerOracle(const std::string& worlds) const {
  return {"/bin/sh", "-c", R"(exec "$0" scheduler-oracle <"$1")", program_, worlds};
}

bool Plane::HasSchedulerOracle() {
  ChildProcess asked_nothing({program_, "scheduler-oracle"}, NewFile("oracle.log"));
  return asked_nothing.Wait(kPatience) == 0;
}

std::vector<std::string> Plane::KubeScheduler(const std::string& config) const {
  std::vector<std::string> command = Program("kube-scheduler");
  command.push_back("--config=" + config);
  command.emplace_back("--secure-port=0");
  return command;
}

bool Plane::Has(const std::string& program, const std::string& flag) {
  const auto [known, asks] = has_.try_emplace(program, false);
  if (asks) {
    std::vector<std::string> command = Program(program);
    command.push_back(flag);
    ChildProcess asked(command, NewFile("asked.log"));
    known->second = asked.Wait(kPatience) == 0;
  }
  return known->second;
}

std::vector<std::string> Plane::Kwok() const {
  std::vector<std::string> command = Program("kwok");
  const std::string stages = FAIRLEAD_SOURCE_DIR "/tests/control-plane/kwok/";
  for (const std::string& flag :
       {absl::StrCat("--kubeconfig=", kubeconfig()),
        std::string("--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"),
        // With leases, kwok takes no notice of a pod that is bound in the moment between the node's
        // creation and its lease.
        std::string("--node-lease-duration-seconds=0"), std::string("--cidr=10.64.0.0/10"),
        absl::StrCat("--config=", stages, "node.yaml"),
        absl::StrCat("--config=", stages, "pod.yaml")}) {
    command.push_back(flag);
  }
  return command;
}

std::vector<std::string> Plane::Karpenter(const std::string& types_file, const Stock& stock) const {
  std::vector<std::string> command = Program("karpenter");
  if (!stock.file.empty()) {
    command.insert(command.begin(),
                   {"/usr/bin/env", absl::StrCat("OUT_OF_STOCK_FILE=", stock.file),
                    absl::StrCat("UNAVAILABLE_FOR=", stock.unavailable_seconds, "s")});
  }
  command.push_back(absl::StrCat("--kubeconfig=", kubeconfig()));
  command.push_back(absl::StrCat("--instance-types-file-path=", types_file));
  command.emplace_back("--log-level=error");
  return command;
}

std::vector<std::string> Plane::ControllerManager(const std::string& controllers) const {
  std::vector<std::string> command = Program("kube-controller-manager");
  for (const std::string& flag :
       {absl::StrCat("--kubeconfig=", kubeconfig()), absl::StrCat("--controllers=", controllers),
        std::string("--leader-elect=false"), std::string("--secure-port=0"),
        std::string("--kube-api-qps=500"), std::string("--kube-api-burst=1000")}) {
    command.push_back(flag);
  }
  return command;
}

void Plane::StopApiServer() {
  ++stops_;
  launcher_->Signal(SIGUSR1);
  ASSERT_TRUE(Eventually("kube-apiserver stopped", [this] {
    return Count(launcher_->Log(), "kube-apiserver stopped") >= stops_;
  }));
}

void Plane::StartApiServer() {
  launcher_->Signal(SIGUSR2);
  ASSERT_TRUE(Eventually(
      "kube-apiserver started again",
      [this] { return std::filesystem::exists(folder_ + "/ready"); }, nullptr, absl::Minutes(1)));
}

}  // namespace fairlead::integration
