#include "cmd/simtest/workers.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace fairlead::simtest {
namespace {

// A world that uses no CPU, because it waits for something that never comes, has this many limits
// of real time.
constexpr int kIdleLimits = 20;

// A world takes some tens of MiB. More is a loop without an end, which must not take the machine.
void LimitMemory() {
  constexpr rlim_t kMost = rlim_t{2} << 30;
  const rlimit limit{kMost, kMost};
  if (kLimitsMemory) ::setrlimit(RLIMIT_AS, &limit);
}

// CPU time that the process has used; what it used when last seen, if it is gone.
absl::Duration CpuOf(pid_t pid, absl::Duration otherwise) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return otherwise;
  }
  return absl::DurationFromTimespec(used);
}

// A result as one line.
std::string Encode(uint64_t seed, const RunResult& result) {
  std::string line = absl::StrCat(
      seed, " ", result.steps, " ", result.lifetimes, " ", result.commits, " ", result.writes, " ",
      absl::ToInt64Milliseconds(result.virtual_time), " ", result.trace_hash);
  if (result.failure.has_value()) {
    absl::StrAppend(&line, " ", result.failure->invariant, " ",
                    absl::ToInt64Milliseconds(result.failure->at), " ",
                    absl::BytesToHexString(result.failure->text));
  }
  return line + "\n";
}

Report Decode(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  Report report;
  int64_t ms = 0;
  (void)(absl::SimpleAtoi(words[0], &report.seed) &&
         absl::SimpleAtoi(words[1], &report.result.steps) &&
         absl::SimpleAtoi(words[2], &report.result.lifetimes) &&
         absl::SimpleAtoi(words[3], &report.result.commits) &&
         absl::SimpleAtoi(words[4], &report.result.writes) && absl::SimpleAtoi(words[5], &ms) &&
         absl::SimpleAtoi(words[6], &report.result.trace_hash));
  report.result.virtual_time = absl::Milliseconds(ms);
  if (words.size() > 9) {
    int64_t at = 0;
    (void)absl::SimpleAtoi(words[8], &at);
    report.result.failure =
        Failure{words[7], absl::HexStringToBytes(words[9]), absl::Milliseconds(at)};
  }
  return report;
}

void WriteAll(int file, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0) ::_exit(3);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// A child that runs seeds first, first + stride, ... and tells each result.
class Child {
 public:
  Child(const std::vector<uint64_t>& seeds, const RunOptions& options,
        const std::function<sim::world::Plan(uint64_t)>& make)
      : seeds_(seeds) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      LimitMemory();
      // What is thrown ends the process here, whatever catches exceptions above.
      [&]() noexcept {
        for (const uint64_t seed : seeds_) {
          WriteAll(ends[1], Encode(seed, RunPlan(make(seed), options)));
        }
      }();
      ::_exit(0);
    }
    ::close(ends[1]);
    file_ = ends[0];
    NoteBegin();
  }
  ~Child() {
    if (file_ >= 0) ::close(file_);
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] bool done() const { return file_ < 0; }
  // Its present world has used `limit` of CPU time, however busy the machine is.
  [[nodiscard]] bool Exceeds(absl::Duration limit) const {
    return CpuOf(pid_, begun_cpu_) - begun_cpu_ > limit;
  }
  [[nodiscard]] bool Idles(absl::Duration limit) const {
    return absl::Now() - begun_ > kIdleLimits * limit;
  }
  // Seeds that it did not come to: its present one first.
  [[nodiscard]] std::vector<uint64_t> Rest() const {
    return {seeds_.begin() + static_cast<ptrdiff_t>(told_), seeds_.end()};
  }

  // What has come; at the end of its stream how it ended, if that was not well.
  std::vector<Report> Take() {
    std::vector<Report> reports;
    char buffer[65536];
    const ssize_t got = ::read(file_, buffer, sizeof(buffer));
    if (got > 0) {
      text_.append(buffer, static_cast<size_t>(got));
      for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
        reports.push_back(Decode(absl::string_view(text_).substr(0, end)));
        text_.erase(0, end + 1);
        ++told_;
        NoteBegin();
      }
      return reports;
    }
    ::close(file_);
    file_ = -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    if (told_ < seeds_.size()) {
      reports.push_back(Broken(
          "process", WIFSIGNALED(status)
                         ? absl::StrCat("the process ended by signal ", WTERMSIG(status), " (",
                                        ::strsignal(WTERMSIG(status)), ")")
                         : absl::StrCat("the process ended with code ", WEXITSTATUS(status))));
    }
    return reports;
  }
  // It takes too long.
  Report Stop(const std::string& why) {
    ::close(file_);
    file_ = -1;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return Broken("hang", why);
  }

 private:
  void NoteBegin() {
    begun_ = absl::Now();
    begun_cpu_ = CpuOf(pid_, begun_cpu_);
  }
  Report Broken(const std::string& invariant, const std::string& text) {
    Report report;
    report.seed = seeds_[told_++];
    report.result.failure = Failure{invariant, text, absl::ZeroDuration()};
    return report;
  }

  std::vector<uint64_t> seeds_;
  size_t told_ = 0;
  pid_t pid_ = -1;
  int file_ = -1;
  std::string text_;
  // When the present world began, and the CPU time of the process then.
  absl::Time begun_;
  absl::Duration begun_cpu_;
};

}  // namespace

void RunSeeds(uint64_t first, uint64_t last, int jobs, const RunOptions& options,
              absl::Duration limit, const std::function<sim::world::Plan(uint64_t)>& make,
              const std::function<bool(const Report&)>& report) {
  std::vector<std::unique_ptr<Child>> children;
  for (int job = 0; job < jobs; ++job) {
    std::vector<uint64_t> seeds;
    for (uint64_t seed = first + static_cast<uint64_t>(job); seed <= last;
         seed += static_cast<uint64_t>(jobs)) {
      seeds.push_back(seed);
    }
    if (!seeds.empty()) children.push_back(std::make_unique<Child>(seeds, options, make));
  }
  while (!children.empty()) {
    std::vector<pollfd> files;
    for (const auto& child : children) files.push_back({child->file(), POLLIN, 0});
    ::poll(files.data(), files.size(), 200);
    for (size_t i = 0; i < files.size(); ++i) {
      Child& child = *children[i];
      std::vector<Report> reports;
      if (files[i].revents != 0) {
        reports = child.Take();
      } else if (child.Exceeds(limit)) {
        reports.push_back(
            child.Stop(absl::StrCat("no end after ", absl::FormatDuration(limit), " of CPU time")));
      } else if (child.Idles(limit)) {
        reports.push_back(child.Stop("it waits, and uses no CPU time"));
      }
      for (Report& one : reports) {
        if (one.result.failure.has_value() &&
            options.without.contains(one.result.failure->invariant)) {
          one.result.failure.reset();
        }
        if (!report(one)) return;
      }
      const std::vector<uint64_t> rest = child.Rest();
      if (child.done() && !rest.empty()) {
        children[i] = std::make_unique<Child>(rest, options, make);
      }
    }
    children.erase(std::remove_if(children.begin(), children.end(),
                                  [](const auto& child) { return child->done(); }),
                   children.end());
  }
}

RunResult RunInChild(const sim::world::Plan& plan, const RunOptions& options,
                     absl::Duration limit) {
  RunResult result;
  RunSeeds(
      plan.seed, plan.seed, 1, options, limit, [&](uint64_t) { return plan; },
      [&](const Report& report) {
        result = report.result;
        return true;
      });
  return result;
}

}  // namespace fairlead::simtest
