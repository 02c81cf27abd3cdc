// Who we are to the API server, as a port of the transport: the Authorization header, the client
// certificate and the bundle of authorities, all of which rotate while the program runs.
//
// NewCredentialSource picks the source for a configuration: constant values stay in memory; token,
// certificate and bundle files are read again at most every minute, by path (the kubelet swaps a
// symbolic link); exec plugins run when their credentials expire or were rejected, and files named
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

  // What may be used now; null if it has to be loaded first.
  virtual CredentialsPtr Current() = 0;
  // Loads. `rejected` is what the server answered with 401, null otherwise; the result may equal
  // it, if there is nothing newer. `done` is called once, in the caller's thread or in one of the
  // source; with Cancelled if the source is destroyed before.
  virtual void Load(CredentialsPtr rejected, Done done) = 0;
};

// The same always. Also for tests.
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
  // Not to be used after this (wall time: others say when they expire).
  absl::Time expires = absl::InfiniteFuture();
  // To be loaded again after this; kept if that fails.
  absl::Duration recheck_after = absl::InfiniteDuration();
};

// The part that takes time. Thread-safety: Load is called by one thread at a time; Abort by any.
class CredentialLoader {
 public:
  virtual ~CredentialLoader() = default;
  virtual absl::StatusOr<LoadedCredentials> Load() = 0;
  // Makes a running Load return soon, and later ones at once.
  virtual void Abort() {}
};

// Runs a loader on a thread of its own, one load at a time whatever the number of callers, and
// keeps what it gave. The thread starts with the first load.
class CachedCredentials final : public CredentialSource {
 public:
  // Expiry is anticipated by this much, or a tenth of the lifetime if that is less.
  static constexpr absl::Duration kExpiryMargin = absl::Seconds(10);
  // A failure stands for this long, and after a load for rejected credentials there is no other
  // one: a server that rejects everybody must not make us run a plugin for each call.
  static constexpr absl::Duration kRetryInterval = absl::Seconds(5);

  // The clock outlives the source.
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

// Token, certificate, key and bundle from files, where the configuration names files; what it has
// inline is passed on.
class FileCredentialLoader final : public CredentialLoader {
 public:
  static constexpr absl::Duration kRereadInterval = absl::Minutes(1);
  explicit FileCredentialLoader(ClientConfig config) : config_(std::move(config)) {}
  absl::StatusOr<LoadedCredentials> Load() override;

 private:
  const ClientConfig config_;
};

// The clock outlives the source.
std::unique_ptr<CredentialSource> NewCredentialSource(const ClientConfig& config,
                                                      const Clock& clock);

// ---- for loaders -------------------------------------------------------------------------------

// "Bearer <token>". Space around the token is dropped; one that no header can carry is an error.
// `what` names it in the error.
absl::StatusOr<std::string> BearerHeader(absl::string_view token, absl::string_view what);
// A whole file of at most 16 MiB. Errors name `what` and the path: NotFound, or Unavailable.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what);

}  // namespace fairlead::kube
