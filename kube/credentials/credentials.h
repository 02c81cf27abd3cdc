// Our identity at the API server, as a port of the transport: the Authorization header, the client
// certificate and the bundle of authorities, which rotate while the program runs.
//
// NewCredentialSource picks the source for a configuration. Constant values stay in memory. Token,
// certificate and bundle files are read again at most every minute, by path (the kubelet swaps a
// symbolic link). Exec plugins run when their credentials expire or were rejected; files named
// beside a plugin are read when it runs.
//
// Errors name the file or plugin and the field, never a value.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/credentials/client_config.h"

namespace fairlead::kube {

struct Credentials {
  std::string authorization;             // "Bearer ..."; empty: no such header
  std::string certificate_pem, key_pem;  // both or none
  std::string ca_pem;                    // bundle from ServerConfig::ca_file; else empty

  friend bool operator==(const Credentials&, const Credentials&) = default;
};
using CredentialsPtr = std::shared_ptr<const Credentials>;

// Thread-safety: both methods may be called from any thread, and never block.
class CredentialSource {
 public:
  using Done = std::function<void(absl::StatusOr<CredentialsPtr>)>;
  virtual ~CredentialSource() = default;

  // The current credentials; null if they have to be loaded first.
  virtual CredentialsPtr Current() = 0;
  // Loads credentials. `rejected` is what the server answered with 401, null otherwise; the result
  // may equal it, if nothing is newer. Calls `done` once, in the caller's thread or in one of the
  // source; with Cancelled if the source is destroyed before.
  virtual void Load(CredentialsPtr rejected, Done done) = 0;
};

// Constant credentials. Also for tests.
class StaticCredentials final : public CredentialSource {
 public:
  explicit StaticCredentials(Credentials credentials)
      : credentials_(std::make_shared<const Credentials>(std::move(credentials))) {}
  CredentialsPtr Current() override { return credentials_; }
  void Load(CredentialsPtr /*rejected*/, Done done) override { done(credentials_); }

 private:
  const CredentialsPtr credentials_;
};

struct LoadedCredentials {
  Credentials credentials;
  // Unusable after this wall time: the issuer sets the expiry.
  absl::Time expires = absl::InfiniteFuture();
  // Loaded again after this; the old ones are kept if that fails.
  absl::Duration recheck_after = absl::InfiniteDuration();
};

// The slow part. Thread-safety: one thread at a time calls Load; any thread calls Abort.
class CredentialLoader {
 public:
  virtual ~CredentialLoader() = default;
  virtual absl::StatusOr<LoadedCredentials> Load() = 0;
  // Makes a running Load return soon, and later ones at once.
  virtual void Abort() {}
};

// Runs a loader on its own thread, one load at a time for any number of callers, and caches the
// result. The thread starts with the first load.
class CachedCredentials final : public CredentialSource {
 public:
  // Credentials are renewed this long before they expire, or a tenth of the lifetime if that is
  // less.
  static constexpr absl::Duration kExpiryMargin = absl::Seconds(10);
  // A failure is cached for this long. So is the result of a load for rejected credentials: a
  // server that rejects every request must not make us run a plugin per call.
  static constexpr absl::Duration kRetryInterval = absl::Seconds(5);

  // The clock must outlive the source.
  CachedCredentials(std::unique_ptr<CredentialLoader> loader, const Clock& clock)
      : loader_(std::move(loader)), clock_(clock) {}
  ~CachedCredentials() override;

  CredentialsPtr Current() override;
  void Load(CredentialsPtr rejected, Done done) override;

 private:
  CredentialsPtr UsableLocked() const;
  void KeepLocked(absl::StatusOr<LoadedCredentials> loaded);
  void ThreadMain();

  const std::unique_ptr<CredentialLoader> loader_;
  const Clock& clock_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable wake_;
  bool stopping_ = false;
  CredentialsPtr kept_;
  absl::Time use_until_ = absl::InfinitePast();
  absl::Duration recheck_at_ = absl::ZeroDuration();  // Clock::Steady
  absl::Status failure_;                              // of the last load
  absl::Duration failure_until_ = -absl::InfiniteDuration();
  absl::Duration next_forced_load_ = -absl::InfiniteDuration();
  std::vector<Done> waiting_;
  bool loading_ = false;
  std::thread thread_;
};

// Reads token, certificate, key and bundle from the files that the configuration names; passes
// inline values on.
class FileCredentialLoader final : public CredentialLoader {
 public:
  static constexpr absl::Duration kRereadInterval = absl::Minutes(1);
  explicit FileCredentialLoader(ClientConfig config) : config_(std::move(config)) {}
  absl::StatusOr<LoadedCredentials> Load() override;

 private:
  const ClientConfig config_;
};

// The clock must outlive the source.
std::unique_ptr<CredentialSource> NewCredentialSource(const ClientConfig& config,
                                                      const Clock& clock);

// ---- for loaders -------------------------------------------------------------------------------

// "Bearer <token>". Space around the token is dropped; a token that no header can contain is an
// error. `what` names it in the error.
absl::StatusOr<std::string> BearerHeader(absl::string_view token, absl::string_view what);
// A whole file of at most 16 MiB. Errors name `what` and the path: NotFound, or Unavailable.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what);

}  // namespace fairlead::kube
