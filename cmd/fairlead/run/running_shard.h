// One Application with what it has for itself: settings and their reloading, observers, journal,
// traces, guests. A process has one, or one for each of its shards (core/shard.h), each with a
// thread and a Lease of its own; what they share is in Host.
//
// Ownership: what Host names outlives it. Thread-safety: Run and what it does on the owner's
// thread; the rest from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/app/app_observers.h"
#include "cmd/fairlead/cluster/connection.h"
#include "cmd/fairlead/cluster/usage_database.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/logs/log_writer.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/run/dashboard_server.h"
#include "cmd/fairlead/run/live_view.h"
#include "cmd/fairlead/run/reloader.h"
#include "cmd/fairlead/run/run_scheduler.h"
#include "cmd/fairlead/settings/settings_watch.h"
#include "cmd/fairlead/traces/traces.h"
#include "guests/service.h"
#include "journal/recorder.h"

namespace fairlead::cmd {

class RunningShard {
 public:
  struct Host {
    const RunFlags* flags;
    Connection* connection;
    std::string identity;
    const Logger* logger;  // a shard among several has a copy that names it
    kube::HttpTransport* management_cluster = nullptr;
    UsageDatabase* usage_database = nullptr;
    LogWriter* audit = nullptr;
    AppObserver* events = nullptr;  // also told of this shard's; null: none
    bool has_dashboard = false;     // ServeDashboard is called with an address
  };
  // What belongs to one of several shards of a process; absent: the process has one, as configured.
  using LabelValue = std::optional<std::string>;

  // Reads the settings. Nothing runs yet.
  static absl::StatusOr<std::unique_ptr<RunningShard>> Make(const Host& host,
                                                            const LabelValue& label_value);
  ~RunningShard();
  RunningShard(const RunningShard&) = delete;
  RunningShard& operator=(const RunningShard&) = delete;

  // On the address, if there is one.
  absl::Status ServeDashboard(const std::optional<DashboardSettings>& settings);

  // As Application::Run.
  absl::Status Run();

  [[nodiscard]] const LabelValue& label_value() const { return label_value_; }
  Application& application() { return *application_; }
  Reloader& reloader() { return *reloader_; }
  [[nodiscard]] const Traces* traces() const { return traces_.get(); }

 private:
  RunningShard(const Host& host, const LabelValue& label_value, SettingsWatch watch,
               Settings settings);
  absl::Status Open();
  absl::Status OpenJournal();
  [[nodiscard]] AppOptions OptionsFor() const;
  [[nodiscard]] Application::Ports PortsFor();
  void ServeGuests();
  void LogStart(const AppOptions& options);

  const Host host_;
  const LabelValue label_value_;
  Settings settings_;
  Logger logger_;
  SettingsWatch watch_;
  std::unique_ptr<JournalFile> journal_file_;
  std::unique_ptr<journal::Recorder> recorder_;
  std::unique_ptr<Traces> traces_;
  LiveView live_view_;
  AppObservers observers_;
  std::unique_ptr<Application> application_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<DashboardServer> page_;
  std::unique_ptr<guests::Service> guests_;  // ends before the application, which answers
};

// What the flags say goes before what the file says. `label_value`: of the shard that is run.
void ApplyFlags(const RunFlags& flags, const RunningShard::LabelValue& label_value,
                core::Configuration& configuration);

}  // namespace fairlead::cmd
