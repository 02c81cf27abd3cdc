#include "tests/bench/control_plane.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kube/credentials/credentials.h"
#include "kube/credentials/kubeconfig.h"
#include "kube/transport/url.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {
namespace {

// Reads lines until "ready" or the end of the stream.
bool WaitForReady(int descriptor) {
  std::string text;
  char byte = 0;
  while (read(descriptor, &byte, 1) == 1) {
    if (byte != '\n') {
      text.push_back(byte);
      continue;
    }
    if (text == "ready") return true;
    text.clear();
  }
  return false;
}

std::string FileText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Start(const std::string& binary,
                                                                  const std::string& crds) {
  std::unique_ptr<ControlPlane> plane(new ControlPlane());
  std::string folder = (std::filesystem::temp_directory_path() / "fairlead-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError("cannot make a temporary folder");
  }
  plane->folder_ = folder;
  const std::string kubeconfig = folder + "/kubeconfig";
  const std::string log = folder + "/log";
  std::vector<std::string> arguments = {binary,         "up",           "--dir",
                                        folder + "/up", "--kubeconfig", kubeconfig};
  if (!crds.empty()) {
    arguments.emplace_back("--crds");
    arguments.push_back(crds);
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError("pipe2 failed");
  plane->process_ = fork();
  if (plane->process_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    const int errors = open(log.c_str(), O_CREAT | O_WRONLY, 0600);
    if (errors >= 0) dup2(errors, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  const bool ready = plane->process_ > 0 && WaitForReady(ends[0]);
  close(ends[0]);
  if (!ready) return absl::UnavailableError(absl::StrCat(binary, " up: ", FileText(log)));
  auto config = kube::LoadKubeconfig({kubeconfig});
  if (!config.ok()) return config.status();
  plane->config_ = *std::move(config);
  return plane;
}

ControlPlane::~ControlPlane() {
  if (process_ > 0) {
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

double ControlPlane::CpuSeconds() const {
  double seconds = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string text = FileText(entry.path().string() + "/stat");
    // After the command's name, which may have blanks: state, parent, ..., utime, stime.
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(absl::string_view(text).substr(name_end + 1), ' ', absl::SkipEmpty());
    int64_t parent = 0, user_ticks = 0, system_ticks = 0;
    if (fields.size() < 13 || !absl::SimpleAtoi(fields[1], &parent) || parent != process_ ||
        !absl::SimpleAtoi(fields[11], &user_ticks) ||
        !absl::SimpleAtoi(fields[12], &system_ticks)) {
      continue;
    }
    seconds +=
        static_cast<double>(user_ticks + system_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return seconds;
}

void ControlPlane::WaitUntilIdle() const {
  constexpr double kIdleShare = 0.1;  // of one CPU
  constexpr double kWindowSeconds = 0.5;
  const Stopwatch all;
  int quiet_windows = 0;
  while (quiet_windows < 2 && all.Seconds() < 30) {
    const double before = CpuSeconds();
    absl::SleepFor(absl::Seconds(kWindowSeconds));
    const bool quiet = CpuSeconds() - before < kIdleShare * kWindowSeconds;
    quiet_windows = quiet ? quiet_windows + 1 : 0;
  }
}

ApiClient::ApiClient(const kube::ClientConfig& config, int write_connections) {
  kube::CurlTransportOptions options;
  options.write_connections_max = write_connections;
  options.user_agent = "fairlead-bench";
  auto transport = kube::CurlTransport::Create(
      config.server, kube::NewCredentialSource(config, clock_), clock_, options);
  Require(transport.ok(), transport.status().ToString());
  transport_ = *std::move(transport);
}

int64_t ApiClient::SendAll(const std::vector<kube::EncodedWrite>& writes, int window) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable all_answered;
    size_t next = 0, answered = 0;
    int64_t good = 0;
    bool complained = false;
  } shared;
  std::function<void()> send_one;  // with the mutex held
  auto answered = [&](const absl::StatusOr<kube::HttpResponse>& answer) {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    ++shared.answered;
    if (answer.ok() && answer->status / 100 == 2) {
      ++shared.good;
    } else if (!shared.complained) {
      shared.complained = true;
      std::fprintf(stderr, "fairlead-bench: %s\n",
                   answer.ok() ? absl::StrCat(answer->status, " ", answer->body).c_str()
                               : answer.status().ToString().c_str());
    }
    if (shared.next < writes.size()) send_one();
    if (shared.answered == writes.size()) shared.all_answered.notify_all();
  };
  send_one = [&] {
    const kube::EncodedWrite& write = writes[shared.next++];
    kube::HttpRequest request;
    request.method = write.method;
    request.path = write.path;
    request.content_type = write.content_type;
    request.body = write.body;
    request.accept = kube::kProtobuf;
    if (write.content_type != kube::kProtobuf) request.accept = kube::kJson;
    request.traffic = kube::TrafficClass::kWrite;
    transport_->Send(std::move(request), answered);
  };
  std::unique_lock<std::mutex> lock(shared.mutex);
  for (int i = 0; i < window && shared.next < writes.size(); ++i) send_one();
  shared.all_answered.wait(lock, [&] { return shared.answered == writes.size(); });
  return shared.good;
}

absl::StatusOr<std::string> ApiClient::Get(const std::string& path, const std::string& accept) {
  kube::HttpRequest request;
  request.path = path;
  request.accept = accept;
  request.timeout = absl::Minutes(1);
  absl::StatusOr<kube::HttpResponse> answer = transport_->Call(std::move(request));
  if (!answer.ok()) return answer.status();
  if (answer->status != 200) {
    return absl::UnavailableError(absl::StrCat(path, ": ", answer->status, " ", answer->body));
  }
  return std::move(answer->body);
}

std::vector<kube::Object> ApiClient::List(model::Kind kind) {
  std::vector<kube::Object> all;
  std::string token;
  const char* accept = kube::HasProtobuf(kind) ? kube::kProtobuf : kube::kJson;
  do {
    std::string path = kube::CollectionPath(kind);
    kube::AddQuery(path, "limit", "500");
    if (!token.empty()) kube::AddQuery(path, "continue", token);
    const absl::StatusOr<std::string> body = Get(path, accept);
    Require(body.ok(), body.status().ToString());
    absl::StatusOr<kube::ListPage> page = kube::DecodeList(kind, accept, *body);
    Require(page.ok(), page.status().ToString());
    for (kube::Object& object : page->items) all.push_back(std::move(object));
    token = page->continue_token;
  } while (!token.empty());
  return all;
}

void ApiClient::CollectServerGarbage() {
  // What net/http/pprof of Go does before it writes a profile of the heap.
  const absl::StatusOr<std::string> profile = Get("/debug/pprof/heap?gc=1", "*/*");
  Require(profile.ok(), profile.status().ToString());
}

double ApiClient::WritesSoFar() {
  const absl::StatusOr<std::string> text = Get("/metrics", "text/plain");
  Require(text.ok(), text.status().ToString());
  double writes = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::StartsWith(line, "apiserver_request_total{")) continue;
    bool counts = false;
    for (absl::string_view resource : {"pods", "events", "podgroups"}) {
      counts = counts || absl::StrContains(line, absl::StrCat("resource=\"", resource, "\""));
    }
    if (!counts) continue;
    bool changes = false;
    for (absl::string_view verb : {"POST", "PUT", "PATCH", "APPLY", "DELETE"}) {
      changes = changes || absl::StrContains(line, absl::StrCat("verb=\"", verb, "\""));
    }
    double value = 0;
    const size_t blank = line.rfind(' ');
    if (changes && blank != absl::string_view::npos &&
        absl::SimpleAtod(line.substr(blank + 1), &value)) {
      writes += value;
    }
  }
  return writes;
}

}  // namespace fairlead::bench
