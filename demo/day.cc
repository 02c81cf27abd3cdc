#include "demo/day.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/run/guest_handlers.h"
#include "cmd/fairlead/settings/config_file.h"
#include "demo/day_clock.h"
#include "demo/day_cloud.h"
#include "demo/day_manifests.h"
#include "demo/day_objects.h"
#include "demo/day_watcher.h"

namespace fairlead::demo {

struct DayStop::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool requested = false;
  std::function<void()> callback;
};

DayStop::DayStop() : state_(std::make_unique<State>()) {}
DayStop::~DayStop() = default;

void DayStop::Request() {
  std::function<void()> callback;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->requested = true;
    state_->changed.notify_all();
    callback = state_->callback;
  }
  if (callback) callback();
}

bool DayStop::requested() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->requested;
}

bool DayStop::SleepFor(absl::Duration duration) const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  return !state_->changed.wait_for(lock, absl::ToChronoNanoseconds(duration),
                                   [&] { return state_->requested; });
}

void DayStop::OnRequest(std::function<void()> callback) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->callback = std::move(callback);
}

namespace {

constexpr absl::Duration kSyncTimeout = absl::Seconds(30);
constexpr absl::Duration kLead = absl::Seconds(1);  // from the first observation to the first step
// The shortest boot of a machine, in real time. The pods of one step are created one after the
// other, and their machines must not be ready before the last pod exists.
constexpr absl::Duration kBootFloor = absl::Seconds(1);
constexpr absl::Duration kPoll = absl::Milliseconds(20);

// The first folder "crds" beside or above the scenario.
std::string FindCrds(const std::string& directory) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(directory, error);
  for (; at.has_relative_path(); at = at.parent_path()) {
    if (std::filesystem::is_directory(at / "crds", error)) return (at / "crds").string();
  }
  return "";
}

absl::Status Ask(const DayOptions& options, const std::string& cluster, const DayPlan& plan,
                 size_t missing) {
  std::cout << "This day is played on " << cluster
            << ".\nIt creates, and deletes at its end: " << PlanText(plan)
            << ", nodes and node requests as they are needed";
  if (missing > 0) std::cout << ", " << missing << " CustomResourceDefinitions";
  std::cout << ".\n";
  if (options.yes) return absl::OkStatus();
  if (isatty(STDIN_FILENO) != 1) {
    return absl::CancelledError("nothing was written: stdin is not a terminal; pass --yes");
  }
  std::cout << "Continue? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was written");
}

class Day {
 public:
  Day(const DayOptions& options, DayStop& stop) : options_(options), stop_(stop) {}

  absl::Status Run() {
    FAIRLEAD_RETURN_IF_ERROR(Read());
    FAIRLEAD_ASSIGN_OR_RETURN(connection_, cmd::Connection::Open(options_.cluster));
    cmd::ApiClient client(&connection_->transport());
    FAIRLEAD_RETURN_IF_ERROR(client.GetPath("/version").status());
    DayObjects objects(
        &client, [this](absl::Duration d) { return stop_.SleepFor(d); },
        [](absl::Duration d) { absl::SleepFor(d); });
    FAIRLEAD_RETURN_IF_ERROR(objects.CheckFree(plan_));
    FAIRLEAD_RETURN_IF_ERROR(
        Ask(options_, connection_->Describe(), plan_, objects.missing_definitions().size()));
    absl::Status played = objects.Prepare(plan_);
    if (played.ok()) played = Play(objects);
    if (stop_.requested()) played.Update(absl::AbortedError("the day was interrupted"));
    std::cout << "cleaning up ..." << std::endl;
    const absl::Status cleaned = objects.Cleanup();
    if (!cleaned.ok()) {
      std::cerr << "not everything could be deleted: " << cleaned.message() << std::endl;
    }
    played.Update(cleaned);
    return played;
  }

 private:
  absl::Status Read() {
    FAIRLEAD_ASSIGN_OR_RETURN(scenario_, sim::ReadScenario(options_.scenario_directory));
    FAIRLEAD_ASSIGN_OR_RETURN(
        settings_, cmd::LoadSettings(scenario_.configuration_file, scenario_.catalog_file,
                                     cmd::ReadTextFile, options_.plugins));
    scenario_.hook.ApplyTo(settings_->configuration.options.hook);
    clock_.speed =
        options_.speed > 0 ? options_.speed : std::min(scenario_.accelerate, kDefaultSpeedLimit);
    const std::string crds =
        options_.crds.empty() ? FindCrds(options_.scenario_directory) : options_.crds;
    FAIRLEAD_ASSIGN_OR_RETURN(plan_, PlanDay(scenario_, crds, clock_.speed));
    const std::string expect = absl::StrCat(scenario_.directory, "/expect.yaml");
    if (std::filesystem::exists(expect)) {
      FAIRLEAD_ASSIGN_OR_RETURN(expectation_, sim::ReadExpectation(expect));
    }
    return absl::OkStatus();
  }

  cmd::AppOptions MakeAppOptions() const {
    cmd::AppOptions app;
    app.core = settings_->configuration.options;
    app.core.hook.provider = "kwok";
    app.core.hook.known_providers = {"kwok"};
    app.core.hook = Accelerated(app.core.hook, clock_.speed);
    app.core.hook.enabled = true;
    app.leader_election = settings_->configuration.leader_election;
    app.leader_election.ns = kDayLeaseNamespace;
    app.identity = absl::StrCat("fairlead-day-", getpid());
    const sim::CloudOptions& cloud = scenario_.cloud;
    app.kwok.boot_delay = std::max(clock_.ToReal(cloud.boot_delay), kBootFloor);
    for (const auto& [type, delay] : cloud.boot_delay_by_type) {
      app.kwok.boot_delay_by_type[type] = std::max(clock_.ToReal(delay), kBootFloor);
    }
    app.kwok.ready_delay = clock_.ToReal(cloud.ready_delay);
    app.kwok.retry_delay = absl::Milliseconds(200);
    return app;
  }

  // From the first decision to the report.
  absl::Status Play(DayObjects& objects) {
    std::ofstream log_file;
    if (!options_.log_file.empty()) log_file.open(options_.log_file);
    cmd::Logger logger(&connection_->clock(), cmd::LogLevel::kDebug,
                       [&log_file](absl::string_view line) {
                         log_file.write(line.data(), static_cast<std::streamsize>(line.size()));
                         log_file.flush();
                       });
    std::optional<Screen> screen;
    if (!options_.plain && Screen::Usable()) screen.emplace();
    DayWatcher watcher(
        scenario_, &settings_->catalog, settings_->configuration.options.hook.unneeded_after,
        expectation_.has_value() ? &*expectation_ : nullptr,
        screen.has_value() ? &*screen : nullptr, screen.has_value() ? nullptr : &std::cout);
    // Ends before the application, which answers.
    std::unique_ptr<guests::Service> guests;
    cmd::Application application(
        {&connection_->transport(), &connection_->transport(), &connection_->clock(), nullptr,
         nullptr, nullptr, nullptr,
         [&guests](const std::vector<core::GuestGrant>& grants) {
           if (guests != nullptr) guests->Publish(grants);
         }},
        MakeAppOptions(), &settings_->catalog, &logger, &watcher,
        [this](std::unique_ptr<hook::Provider> provider, hook::Scheduler* scheduler) {
          auto faulty = std::make_unique<FaultyProvider>(
              std::move(provider), scheduler, [this] { return connection_->clock().Now(); },
              clock_.ToReal(scenario_.cloud.boot_delay));
          cloud_ = faulty.get();
          return faulty;
        });
    FAIRLEAD_ASSIGN_OR_RETURN(
        guests, cmd::ServeGuests(settings_->configuration.guests_bind_address, application));
    stop_.OnRequest([&application] { application.Stop(); });
    absl::Status ran;
    std::thread thread([&] {
      ran = application.Run();
      if (!ran.ok()) stop_.Request();
    });
    absl::Status played = WaitForScheduler(watcher);
    clock_.real_start = connection_->clock().Now();
    clock_.scenario_start = FirstInterestingTime();
    watcher.Start(clock_);
    if (played.ok()) played = PlayTimeline(objects, application, watcher);
    application.Stop();
    thread.join();
    guests.reset();
    stop_.OnRequest(nullptr);
    watcher.Finish(std::min(scenario_.end, clock_.ToScenario(connection_->clock().Now())));
    screen.reset();
    if (!ran.ok()) return ran;
    FAIRLEAD_RETURN_IF_ERROR(played);
    return Tell(watcher);
  }

  [[nodiscard]] absl::Time FirstInterestingTime() const {
    if (scenario_.timeline.empty()) return scenario_.start;
    const absl::Time first = scenario_.start + scenario_.timeline.front().at;
    return std::max(scenario_.start, first - kLead * clock_.speed);
  }

  absl::Status WaitForScheduler(const DayWatcher& watcher) {
    const absl::Duration give_up = connection_->clock().Steady() + kSyncTimeout;
    while (!watcher.Decided()) {
      if (!stop_.SleepFor(kPoll))
        return absl::OkStatus();  // Request, which stopped it, reports
                                  // why
      if (connection_->clock().Steady() < give_up) continue;
      const std::string lease =
          absl::StrCat(kDayLeaseNamespace, "/", settings_->configuration.leader_election.name);
      return absl::DeadlineExceededError(
          absl::StrCat("the scheduler was not ready within ", absl::FormatDuration(kSyncTimeout),
                       "; is another Fairlead leading in this cluster (Lease ", lease, ")?"));
    }
    return absl::OkStatus();
  }

  absl::Status PlayTimeline(DayObjects& objects, cmd::Application& application,
                            DayWatcher& watcher) {
    for (size_t i = 0; i < scenario_.timeline.size(); ++i) {
      const sim::ScenarioStep& step = scenario_.timeline[i];
      if (!WaitUntil(scenario_.start + step.at)) return absl::OkStatus();
      const absl::Time now = connection_->clock().Now();
      if (!step.note.empty()) watcher.Note(now, step.note);
      for (const Json& manifest : plan_.manifests[i]) {
        FAIRLEAD_RETURN_IF_ERROR(objects.Apply(manifest));
      }
      for (const sim::ObjectRef& reference : step.remove) {
        FAIRLEAD_ASSIGN_OR_RETURN(const cmd::ObjectId id, IdOfReference(reference, plan_));
        FAIRLEAD_RETURN_IF_ERROR(objects.Delete(id));
      }
      for (const auto& [reference, replicas] : step.scale) {
        FAIRLEAD_ASSIGN_OR_RETURN(const cmd::ObjectId id, IdOfReference(reference, plan_));
        FAIRLEAD_RETURN_IF_ERROR(objects.Scale(id, replicas));
      }
      for (const sim::ScriptedFault& fault : step.faults) {
        DoFault(fault, objects, application, watcher);
      }
    }
    WaitUntil(scenario_.end);
    return absl::OkStatus();
  }

  bool WaitUntil(absl::Time scenario_time) {
    const absl::Duration left = clock_.ToReal(scenario_time) - connection_->clock().Now();
    return stop_.SleepFor(std::max(left, absl::ZeroDuration()));
  }

  void DoFault(const sim::ScriptedFault& fault, DayObjects& objects, cmd::Application& application,
               DayWatcher& watcher) {
    using Kind = sim::ScriptedFault::Kind;
    const absl::Time now = connection_->clock().Now();
    switch (fault.kind) {
      case Kind::kStockout:
        return application.Post([this, fault, until = now + clock_.ToReal(fault.duration)] {
          cloud_->AddStockout(fault.instance_type, fault.zone, until);
        });
      case Kind::kNeverArrives:
        return application.Post([this, fault] { cloud_->LoseNextLaunches(fault.count); });
      case Kind::kLateBoot:
        return application.Post(
            [this, fault] { cloud_->DelayNextLaunches(fault.count, fault.factor); });
      case Kind::kLoseNode:
        if (absl::StrContains(fault.target, "/")) {
          return watcher.Note(now, absl::StrCat("the loss of the node of pod ", fault.target,
                                                " was left out: pods have other names here"));
        }
        if (const absl::Status lost = objects.Delete({"v1", "Node", "", fault.target});
            !lost.ok()) {
          watcher.Note(now,
                       absl::StrCat("node ", fault.target, " could not be lost: ", lost.message()));
        }
        return;
      case Kind::kBreakWatches:
      case Kind::kSlowApi:
      case Kind::kRestart:
        return watcher.Note(now, "a fault of the scenario was left out: only the simulator has it");
    }
  }

  absl::Status Tell(const DayWatcher& watcher) const {
    if (stop_.requested()) return absl::OkStatus();
    const sim::Report report = watcher.MakeReport();
    const bool logged = options_.plain || !Screen::Usable();
    std::cout << "\n"
              << (logged ? absl::StrCat(sim::ViewText(report.end), "\n", sim::BillText(report))
                         : sim::ReportText(report))
              << std::endl;
    if (expectation_.has_value()) TellMoments(watcher);
    const std::vector<std::string> unmet = watcher.Unmet();
    if (unmet.empty()) {
      if (expectation_.has_value()) std::cout << "The day went as expected." << std::endl;
      return absl::OkStatus();
    }
    return absl::AbortedError(absl::StrCat("the day did not go as ", scenario_.directory,
                                           "/expect.yaml says:\n  ", absl::StrJoin(unmet, "\n  ")));
  }

  void TellMoments(const DayWatcher& watcher) const {
    const std::vector<absl::Duration> missed = watcher.MomentsNotSeen();
    const size_t all = expectation_->checks.size();
    std::cout << all - missed.size() << " of " << all << " moments looked as expected";
    for (size_t i = 0; i < missed.size(); ++i) {
      std::cout << (i == 0 ? "; not seen: " : ", ")
                << absl::FormatTime("%H:%M", scenario_.start + missed[i], absl::UTCTimeZone());
    }
    std::cout << ".\n";
  }

  const DayOptions& options_;
  DayStop& stop_;
  sim::Scenario scenario_;
  std::optional<cmd::Settings> settings_;
  std::optional<sim::Expectation> expectation_;
  DayPlan plan_;
  DayClock clock_;
  std::unique_ptr<cmd::Connection> connection_;
  FaultyProvider* cloud_ = nullptr;  // owned by the application
};

}  // namespace

absl::Status RunDay(const DayOptions& options, DayStop& stop) { return Day(options, stop).Run(); }

}  // namespace fairlead::demo
