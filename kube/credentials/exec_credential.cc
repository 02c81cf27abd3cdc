#include "kube/credentials/exec_credential.h"

#include <fcntl.h>
#include <poll.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "base/strings.h"

extern char** environ;

namespace fairlead::kube {
namespace {

constexpr size_t kMaxOutputBytes = size_t{1} << 20;

// Closes on scope exit.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

std::vector<std::string> PluginEnvironment(const ExecConfig& exec, const std::string& exec_info) {
  std::vector<std::string> result;
  const auto configured = [&exec](absl::string_view name) {
    return std::any_of(exec.env.begin(), exec.env.end(),
                       [name](const auto& entry) { return entry.first == name; });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const absl::string_view name = variable.substr(0, variable.find('='));
    if (KeepsVariable(name) && !configured(name)) result.emplace_back(variable);
  }
  for (const auto& [name, value] : exec.env) result.push_back(absl::StrCat(name, "=", value));
  result.push_back(absl::StrCat("KUBERNETES_EXEC_INFO=", exec_info));
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program with its standard output in `output`; an errno on failure.
int Spawn(std::vector<std::string> argv, std::vector<std::string> environment, int output,
          pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // Our threads block signals, and the program ignores SIGPIPE; the plugin must inherit neither.
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const std::string file = argv.front();
  const int error = posix_spawnp(pid, file.c_str(), &actions, &attributes, Pointers(argv).data(),
                                 Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// A started plugin. Its destructor kills it with its children and reaps it.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ <= 0) return;
    // The group exists until its leader is reaped, so no other group can have this number.
    kill(-pid_, SIGKILL);
    Collect();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The wait status.
  int Collect() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

// Appends the available output. False at the end of the output.
absl::StatusOr<bool> ReadSome(int fd, std::string& output) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    output.append(buffer, static_cast<size_t>(n));
    if (output.size() > kMaxOutputBytes) {
      return absl::UnauthenticatedError("its output is larger than 1 MiB");
    }
  }
}

// Reads the output until the program has ended. A grandchild may hold the pipe open for ever, so
// the end of the program decides, not the end of the pipe.
absl::Status ReadUntilExit(int pid_fd, int output_fd, int abort_fd, absl::Duration timeout,
                           std::string& output) {
  // Always real time, because this waits for a process of the machine.
  const RealClock clock;
  const absl::Duration deadline = clock.Steady() + timeout;
  pollfd fds[3] = {{pid_fd, POLLIN, 0}, {abort_fd, POLLIN, 0}, {output_fd, POLLIN, 0}};
  for (;;) {
    const absl::Duration left = deadline - clock.Steady();
    if (left <= absl::ZeroDuration()) {
      return absl::UnauthenticatedError(
          absl::StrCat("it did not end within ", absl::FormatDuration(timeout)));
    }
    const int64_t left_ms = absl::ToInt64Milliseconds(left) + 1;
    const int ready = poll(fds, 3, static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (ready <= 0) continue;
    if (fds[1].revents != 0) return absl::CancelledError("the credential source is closing");
    const bool ended = fds[0].revents != 0;  // checked before the read: then all its output is
                                             // available
    FAIRLEAD_ASSIGN_OR_RETURN(const bool open, ReadSome(output_fd, output));
    if (ended) return absl::OkStatus();
    if (!open) fds[2].fd = -1;  // poll ignores it: the program may continue without output
  }
}

absl::StatusOr<std::string> RunPlugin(const ExecConfig& exec, const std::string& exec_info,
                                      absl::Duration timeout, int abort_fd) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  UniqueFd reader(pipe_fds[0]);
  UniqueFd writer(pipe_fds[1]);
  fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> argv = {exec.command};
  argv.insert(argv.end(), exec.args.begin(), exec.args.end());
  pid_t pid = -1;
  const int error = Spawn(std::move(argv), PluginEnvironment(exec, exec_info), writer.get(), &pid);
  if (error != 0) {
    const std::string hint = exec.install_hint.empty() ? "" : absl::StrCat(". ", exec.install_hint);
    return absl::UnauthenticatedError(
        absl::StrCat("it cannot be started: ", absl::ErrnoToStatus(error, "").message(), hint));
  }
  Child child(pid);
  writer.Reset();
  // The C library's wrapper is declared without C linkage in some versions.
  const UniqueFd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pid_fd.get() < 0) return absl::ErrnoToStatus(errno, "pidfd_open");
  std::string output;
  FAIRLEAD_RETURN_IF_ERROR(ReadUntilExit(pid_fd.get(), reader.get(), abort_fd, timeout, output));
  const int status = child.Collect();
  if (WIFSIGNALED(status)) {
    return absl::UnauthenticatedError(absl::StrCat("signal ", WTERMSIG(status), " ended it"));
  }
  if (WEXITSTATUS(status) != 0) {
    return absl::UnauthenticatedError(
        absl::StrCat("it ended with exit code ", WEXITSTATUS(status)));
  }
  return output;
}

// Absent and empty are equivalent.
std::string StringField(simdjson::dom::object object, std::string_view key) {
  std::string_view value;
  return object[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

}  // namespace

bool KeepsVariable(absl::string_view name) {
  for (const absl::string_view kept :
       {"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}) {
    if (name == kept) return true;
  }
  for (const absl::string_view prefix :
       {"LC_", "XDG_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "OCI_"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

std::string ExecInfo(const ExecConfig& exec, const ServerConfig& server) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", exec.api_version).Field("kind", "ExecCredential");
  json.Key("spec").BeginObject().Key("interactive").Bool(false);
  if (exec.provide_cluster_info) {
    json.Key("cluster").BeginObject().Field("server", server.url);
    json.FieldUnlessEmpty("tls-server-name", server.tls_server_name);
    if (server.insecure_skip_tls_verify) json.Key("insecure-skip-tls-verify").Bool(true);
    json.FieldUnlessEmpty("certificate-authority-data", absl::Base64Escape(server.ca_pem));
    json.EndObject();
  }
  return json.EndObject().EndObject().Take();
}

absl::StatusOr<LoadedCredentials> ParseExecCredential(absl::string_view json,
                                                      absl::string_view api_version) {
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  const simdjson::padded_string padded(json.data(), json.size());
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) {
    return absl::UnauthenticatedError("its output is no JSON object");
  }
  if (StringField(root, "kind") != "ExecCredential") {
    return absl::UnauthenticatedError("its output: field kind is not ExecCredential");
  }
  if (StringField(root, "apiVersion") != ToStd(api_version)) {
    return absl::UnauthenticatedError(
        absl::StrCat("its output: field apiVersion is not ", api_version));
  }
  simdjson::dom::object status;
  if (root["status"].get(status) != simdjson::SUCCESS) {
    return absl::UnauthenticatedError("its output: field status is missing");
  }
  LoadedCredentials loaded;
  const std::string token = StringField(status, "token");
  loaded.credentials.certificate_pem = StringField(status, "clientCertificateData");
  loaded.credentials.key_pem = StringField(status, "clientKeyData");
  if (loaded.credentials.certificate_pem.empty() != loaded.credentials.key_pem.empty()) {
    return absl::UnauthenticatedError(
        "its output: status.clientCertificateData and status.clientKeyData go together");
  }
  if (!token.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(loaded.credentials.authorization,
                              BearerHeader(token, "its output: field status.token"));
  } else if (loaded.credentials.certificate_pem.empty()) {
    return absl::UnauthenticatedError(
        "its output: status has neither a token nor a client certificate");
  }
  const std::string expires = StringField(status, "expirationTimestamp");
  std::string reason;
  if (!expires.empty() && !absl::ParseTime(absl::RFC3339_full, expires, &loaded.expires, &reason)) {
    return absl::UnauthenticatedError(
        "its output: field status.expirationTimestamp is no RFC 3339 time");
  }
  return loaded;
}

ExecCredentialLoader::ExecCredentialLoader(ExecConfig exec, const ServerConfig& server,
                                           absl::Duration timeout)
    : exec_(std::move(exec)),
      exec_info_(ExecInfo(exec_, server)),
      timeout_(timeout),
      abort_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  FAIRLEAD_CHECK(abort_fd_ >= 0, "no descriptor left for an eventfd");
}

ExecCredentialLoader::~ExecCredentialLoader() { close(abort_fd_); }

absl::StatusOr<LoadedCredentials> ExecCredentialLoader::Load() {
  absl::StatusOr<std::string> output = RunPlugin(exec_, exec_info_, timeout_, abort_fd_);
  absl::StatusOr<LoadedCredentials> loaded =
      output.ok() ? ParseExecCredential(*output, exec_.api_version) : output.status();
  if (loaded.ok()) return loaded;
  return absl::Status(
      absl::IsCancelled(loaded.status()) ? absl::StatusCode::kCancelled
                                         : absl::StatusCode::kUnauthenticated,
      absl::StrCat("credential plugin ", exec_.command, ": ", loaded.status().message()));
}

void ExecCredentialLoader::Abort() {
  const uint64_t one = 1;
  // The byte is never read, so the descriptor stays readable: later loads end at once, too.
  (void)!write(abort_fd_, &one, sizeof(one));
}

}  // namespace fairlead::kube
