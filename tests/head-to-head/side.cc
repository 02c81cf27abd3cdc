#include "tests/head-to-head/side.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/integration/waiting.h"

namespace fairlead::head_to_head {
namespace {

constexpr char kClasses[] = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";
constexpr char kKarpenterPools[] = "/apis/karpenter.sh/v1/nodepools";

std::string NodePoolText(int gpu_cap) {
  return absl::StrCat(
      R"({"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},"spec":{)",
      gpu_cap > 0 ? absl::StrCat(R"("limits":{"nvidia.com/gpu":")", gpu_cap, R"("},)") : "",
      R"("template":{"spec":{"expireAfter":"Never","requirements":[
          {"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]}],
          "nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"}}},
        "disruption":{"consolidationPolicy":"WhenEmpty","consolidateAfter":")",
      kEmptySeconds, R"(s","budgets":[{"nodes":"100%"}]}}})");
}

}  // namespace

const std::vector<SideKind>& SideKinds() {
  static const auto* const kinds = new std::vector<SideKind>{
      {"kube-scheduler + Karpenter", false, "", true, true},
      {"Fairlead, hook off + Karpenter", true, "", true, true},
      {"Fairlead, nodes by Karpenter's NodeClaims", true, "karpenter", true, false},
      {"Fairlead alone", true, "kwok", false, false}};
  return *kinds;
}

const std::vector<integration::SoldType>& SoldTypes() {
  static const auto* const types =
      new std::vector<integration::SoldType>{{"cpu-8", 0, 8, 32, 400},
                                             {"cpu-32", 0, 32, 128, 1600},
                                             {"gpu-1", 1, 8, 64, 3000},
                                             {"gpu-4", 4, 32, 256, 11800},
                                             {"gpu-8", 8, 64, 512, 23000}};
  return *types;
}

std::unique_ptr<Side> Side::Start(const SideKind& kind, const Scenario& scenario,
                                  std::string& why_not) {
  std::unique_ptr<Side> side(new Side(kind, scenario));
  if (!side->Run(why_not)) return nullptr;
  return side;
}

Side::~Side() {
  programs_.clear();
  api_.reset();
  integration::Plane::Shutdown();
}

void Side::Add(const std::string& name, std::vector<std::string> command,
               integration::Plane& plane) {
  programs_[name] =
      std::make_unique<integration::ChildProcess>(std::move(command), plane.NewFile(name + ".log"));
}

bool Side::Run(std::string& why_not) {
  integration::Plane* const plane = integration::Plane::Get();
  if (plane == nullptr) {
    why_not = integration::Plane::why_not();
    return false;
  }
  if (!plane->HasKarpenter() || !plane->HasKubeScheduler()) {
    why_not = "skipped: this control plane has no Karpenter, or no kube-scheduler";
    return false;
  }
  api_ = std::make_unique<integration::Api>(plane->config());
  if (!scenario_.out_of_stock.empty()) {
    out_of_stock_file_ = plane->NewFile("out-of-stock.txt");
    SetOutOfStock(scenario_.out_of_stock);
  }
  Add("kwok", plane->Kwok(), *plane);
  if (kind_.karpenter) RunKarpenter(*plane);
  if (kind_.fairlead) {
    RunFairlead(*plane);
  } else {
    RunKubeScheduler(*plane);
  }
  return true;
}

void Side::SetOutOfStock(const std::vector<std::string>& types) {
  // Renamed, because a program may be reading it.
  const std::string next = out_of_stock_file_ + ".next";
  std::ofstream(next) << absl::StrJoin(types, "\n") << "\n";
  std::filesystem::rename(next, out_of_stock_file_);
}

void Side::RunKarpenter(integration::Plane& plane) {
  const std::string types = plane.NewFile("types.json");
  std::ofstream(types) << integration::KarpenterTypes(SoldTypes());
  Add("karpenter", plane.Karpenter(types, {out_of_stock_file_, kUnavailableSeconds}), plane);
  integration::Eventually("node classes are served", [&] { return api_->Get(kClasses).ok(); });
  api_->Call("POST", kClasses,
             absl::StrCat(R"({"apiVersion":"karpenter.kwok.sh/v1alpha1","kind":"KWOKNodeClass",
               "metadata":{"name":"default"},"spec":{"nodeRegistrationDelay":")",
                          kRegisterSeconds, R"(s"}})"));
  if (kind_.karpenter_decides) api_->Call("POST", kKarpenterPools, NodePoolText(scenario_.gpu_cap));
}

void Side::RunFairlead(integration::Plane& plane) {
  const std::string types = plane.NewFile("catalogue.yaml");
  std::ofstream(types) << integration::CatalogueText(SoldTypes());
  std::string text =
      "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n"
      "leaderElection: {leaderElect: false}\n";
  if (!kind_.provider.empty()) {
    absl::StrAppend(&text, "hook:\n  provider: ", kind_.provider, "\n  catalogFile: ", types,
                    "\n  unneededAfter: ", kEmptySeconds,
                    "s\n  backoffInitial: ", kUnavailableSeconds, "s\n");
    if (scenario_.gpu_cap > 0) {
      absl::StrAppend(&text, "  clusterGPULimit: ", scenario_.gpu_cap, "\n");
    }
  }
  if (kind_.provider == "kwok") {
    absl::StrAppend(&text, "kwok:\n  bootDelay: ", kRegisterSeconds, "s\n");
    if (!out_of_stock_file_.empty()) {
      absl::StrAppend(&text, "  outOfStockFile: ", out_of_stock_file_, "\n");
    }
  } else if (kind_.provider == "karpenter") {
    absl::StrAppend(&text,
                    "karpenter: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, "
                    "name: default}}\n");
  }
  const std::string configuration = plane.NewFile("fairlead.yaml");
  std::ofstream(configuration) << text;
  Add("fairlead",
      {FAIRLEAD_BINARY, "run", "--kubeconfig", plane.kubeconfig(), "--config", configuration},
      plane);
}

void Side::RunKubeScheduler(integration::Plane& plane) {
  const std::string configuration = plane.NewFile("kube-scheduler.yaml");
  std::ofstream(configuration) << absl::StrCat(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
      "clientConnection: {kubeconfig: \"",
      plane.kubeconfig(), "\", qps: 1000, burst: 2000}\nleaderElection: {leaderElect: false}\n");
  Add("kube-scheduler", plane.KubeScheduler(configuration), plane);
}

std::map<std::string, double> Side::CpuSeconds() const {
  std::map<std::string, double> seconds;
  for (const auto& [name, program] : programs_) {
    if (name == "kwok") continue;
    std::ifstream in(absl::StrCat("/proc/", program->pid(), "/stat"));
    std::ostringstream text;
    text << in.rdbuf();
    // After the command in parentheses: utime and stime are the 12th and 13th field (proc(5)).
    const std::string all = text.str();
    const size_t end = all.rfind(')');
    if (end == std::string::npos) continue;
    const std::vector<std::string> fields = absl::StrSplit(all.substr(end + 2), ' ');
    int64_t user = 0, system = 0;
    if (fields.size() > 12 && absl::SimpleAtoi(fields[11], &user) &&
        absl::SimpleAtoi(fields[12], &system)) {
      seconds[name] =
          static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }
  return seconds;
}

}  // namespace fairlead::head_to_head
