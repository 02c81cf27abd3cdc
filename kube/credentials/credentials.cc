#include "kube/credentials/credentials.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/credentials/exec_credential.h"
#include "kube/credentials/quiet_thread.h"

namespace fairlead::kube {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

bool NamesFiles(const ClientConfig& config) {
  const UserConfig& user = config.user;
  return !user.token_file.empty() ||
         (user.certificate_pem.empty() && !user.certificate_file.empty()) ||
         (user.key_pem.empty() && !user.key_file.empty()) ||
         (config.server.ca_pem.empty() && !config.server.ca_file.empty());
}

// Certificate and bundle of a user with a token from a plugin: runs both loaders.
class ExecAndFilesLoader final : public CredentialLoader {
 public:
  ExecAndFilesLoader(const ClientConfig& config, std::unique_ptr<CredentialLoader> exec)
      : files_(config), exec_(std::move(exec)) {}

  absl::StatusOr<LoadedCredentials> Load() override {
    FAIRLEAD_ASSIGN_OR_RETURN(LoadedCredentials files, files_.Load());
    FAIRLEAD_ASSIGN_OR_RETURN(LoadedCredentials loaded, exec_->Load());
    loaded.credentials.ca_pem = std::move(files.credentials.ca_pem);
    if (loaded.credentials.certificate_pem.empty()) {
      loaded.credentials.certificate_pem = std::move(files.credentials.certificate_pem);
      loaded.credentials.key_pem = std::move(files.credentials.key_pem);
    }
    return loaded;
  }
  void Abort() override { exec_->Abort(); }

 private:
  FileCredentialLoader files_;
  const std::unique_ptr<CredentialLoader> exec_;
};

}  // namespace

absl::StatusOr<std::string> BearerHeader(absl::string_view token, absl::string_view what) {
  token = absl::StripAsciiWhitespace(token);
  if (token.empty()) return absl::UnauthenticatedError(absl::StrCat(what, " is empty"));
  const bool fit = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!fit) {
    return absl::UnauthenticatedError(
        absl::StrCat(what, " holds characters that no HTTP header can carry"));
  }
  return absl::StrCat("Bearer ", token);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
    return error == ENOENT ? absl::NotFoundError(status.message())
                           : absl::UnavailableError(status.message());
  }
  std::string content;
  absl::Status failure;
  char buffer[16384];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      failure = absl::UnavailableError(
          absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path)).message());
    }
    if (n <= 0) break;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > kMaxFileBytes) {
      failure = absl::UnavailableError(absl::StrCat(what, " ", path, ": larger than 16 MiB"));
      break;
    }
  }
  close(fd);
  if (!failure.ok()) return failure;
  return content;
}

CachedCredentials::~CachedCredentials() {
  std::vector<Done> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  loader_->Abort();
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  waiting.swap(waiting_);
  for (const Done& done : waiting) done(absl::CancelledError("the credential source is closing"));
}

CredentialsPtr CachedCredentials::Current() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (clock_.Steady() >= recheck_at_ && clock_.Steady() >= failure_until_) return nullptr;
  return UsableLocked();
}

CredentialsPtr CachedCredentials::UsableLocked() const {
  return kept_ != nullptr && clock_.Now() < use_until_ ? kept_ : nullptr;
}

void CachedCredentials::Load(CredentialsPtr rejected, Done done) {
  absl::StatusOr<CredentialsPtr> at_hand = CredentialsPtr();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const absl::Duration now = clock_.Steady();
    const CredentialsPtr usable = UsableLocked();
    // Another caller may have replaced the rejected credentials in the meantime.
    const bool forced = rejected != nullptr && usable == rejected;
    if (now < failure_until_) {
      at_hand = usable != nullptr ? absl::StatusOr<CredentialsPtr>(usable) : failure_;
    } else if (waiting_.empty() && !loading_ && usable != nullptr && now < recheck_at_ &&
               (!forced || now < next_forced_load_)) {
      at_hand = usable;
    } else {
      if (forced) next_forced_load_ = now + kRetryInterval;
      waiting_.push_back(std::move(done));
      if (!thread_.joinable()) thread_ = StartQuietThread([this] { ThreadMain(); });
      wake_.notify_all();
      return;
    }
  }
  done(std::move(at_hand));
}

void CachedCredentials::KeepLocked(absl::StatusOr<LoadedCredentials> loaded) {
  const absl::Duration now = clock_.Steady();
  if (loaded.ok() && loaded->expires <= clock_.Now()) {
    loaded = absl::UnauthenticatedError("the credentials just loaded have expired already");
  }
  if (!loaded.ok()) {
    failure_ = loaded.status();
    failure_until_ = now + kRetryInterval;
    return;
  }
  failure_until_ = -absl::InfiniteDuration();
  const absl::Duration lifetime = loaded->expires - clock_.Now();
  use_until_ = loaded->expires - std::min(kExpiryMargin, lifetime / 10);
  recheck_at_ = now + loaded->recheck_after;
  // Equal content gives the identical object, by which callers see that nothing is newer.
  if (kept_ == nullptr || *kept_ != loaded->credentials) {
    kept_ = std::make_shared<const Credentials>(std::move(loaded->credentials));
  }
}

void CachedCredentials::ThreadMain() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;  // the destructor answers the waiting callers
    loading_ = true;
    lock.unlock();
    absl::StatusOr<LoadedCredentials> loaded = loader_->Load();
    lock.lock();
    loading_ = false;
    if (stopping_) return;
    KeepLocked(std::move(loaded));
    const CredentialsPtr usable = UsableLocked();
    absl::StatusOr<CredentialsPtr> result = usable;
    if (usable == nullptr) result = failure_;
    std::vector<Done> waiting;
    waiting.swap(waiting_);
    lock.unlock();
    for (const Done& done : waiting) done(result);
    lock.lock();
  }
}

absl::StatusOr<LoadedCredentials> FileCredentialLoader::Load() {
  const UserConfig& user = config_.user;
  LoadedCredentials loaded;
  Credentials& credentials = loaded.credentials;
  credentials.certificate_pem = user.certificate_pem;
  credentials.key_pem = user.key_pem;
  if (credentials.certificate_pem.empty() && !user.certificate_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(credentials.certificate_pem,
                              ReadSmallFile(user.certificate_file, "client certificate"));
  }
  if (credentials.key_pem.empty() && !user.key_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(credentials.key_pem, ReadSmallFile(user.key_file, "client key"));
  }
  if (config_.server.ca_pem.empty() && !config_.server.ca_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(credentials.ca_pem,
                              ReadSmallFile(config_.server.ca_file, "certificate authority"));
  }
  if (!user.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadSmallFile(user.token_file, "token file");
    if (token.ok()) token = BearerHeader(*token, absl::StrCat("token file ", user.token_file));
    if (!token.ok() && !user.token.empty()) token = BearerHeader(user.token, "token");
    if (!token.ok()) return absl::UnauthenticatedError(token.status().message());
    credentials.authorization = *std::move(token);
  } else if (!user.token.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(credentials.authorization, BearerHeader(user.token, "token"));
  } else if (!user.username.empty()) {
    credentials.authorization =
        absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(user.username, ":", user.password)));
  }
  if (NamesFiles(config_)) loaded.recheck_after = kRereadInterval;
  return loaded;
}

std::unique_ptr<CredentialSource> NewCredentialSource(const ClientConfig& config,
                                                      const Clock& clock) {
  std::unique_ptr<CredentialLoader> loader;
  if (config.user.exec.has_value()) {
    loader = std::make_unique<ExecAndFilesLoader>(
        config, std::make_unique<ExecCredentialLoader>(*config.user.exec, config.server));
  } else {
    loader = std::make_unique<FileCredentialLoader>(config);
    if (!NamesFiles(config)) {
      absl::StatusOr<LoadedCredentials> constant = loader->Load();
      if (constant.ok()) {
        return std::make_unique<StaticCredentials>(std::move(constant->credentials));
      }
    }
  }
  return std::make_unique<CachedCredentials>(std::move(loader), clock);
}

}  // namespace fairlead::kube
