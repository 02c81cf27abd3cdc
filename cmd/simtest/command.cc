#include "cmd/simtest/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cmd/simtest/shrink.h"
#include "cmd/simtest/simulation.h"
#include "cmd/simtest/workers.h"
#include "sim/world/plan.h"
#include "sim/world/plan_random.h"

namespace fairlead::simtest {
namespace {

constexpr char kAbout[] =
    R"(Runs the whole program, two replicas of it, in simulated worlds and checks that the
invariants hold after every step. A world is made of a seed; a failing one is shrunk
to the few operations that it takes, and replays exactly.

  fairlead-simtest --seeds 1..500                 500 worlds with all kinds of faults
  fairlead-simtest --seeds 17 --trace             one world, everything that happens
  fairlead-simtest --seeds 1..99 --fault network,crash
  fairlead-simtest --seeds 1..99 --fault all,-clock --without liveness
  fairlead-simtest --seeds 1..6 --each-family     these worlds for each kind of fault alone
  fairlead-simtest --seeds 17 --shrink            the smallest plan that still fails
  fairlead-simtest --plan failed.plan --trace     a plan from a file)";

struct Arguments {
  uint64_t first = 1, last = 100;
  std::string plan_file, save;
  std::vector<std::string> families;
  RunOptions options;
  int jobs = 1;
  bool shrink = false, keep_going = false, trace = false, print = false, each_family = false;
  absl::Duration limit = absl::Seconds(60);
  int64_t max_tries = 400;
  absl::Duration shrink_limit = absl::Minutes(5);
  // For the command that replays.
  std::string fault_text = "all", without_text;
};

struct Totals {
  int64_t seeds = 0, failures = 0, steps = 0, lifetimes = 0, commits = 0;
  absl::Duration virtual_time;
};

bool ParseSeeds(const std::string& text, uint64_t& first, uint64_t& last) {
  const std::vector<std::string> ends = absl::StrSplit(text, "..");
  if (ends.size() > 2 || !absl::SimpleAtoi(ends[0], &first)) return false;
  last = first;
  return ends.size() == 1 || (absl::SimpleAtoi(ends[1], &last) && last >= first);
}

void PrintFailure(const Arguments& arguments, const sim::world::Plan& plan,
                  const RunResult& result) {
  const Failure& failure = *result.failure;
  absl::PrintF("FAILED seed %d at %s: %s: %s\n", plan.seed, absl::FormatDuration(failure.at),
               failure.invariant, failure.text);
  std::string flags;
  if (arguments.fault_text != "all") absl::StrAppend(&flags, " --fault ", arguments.fault_text);
  if (!arguments.without_text.empty()) {
    absl::StrAppend(&flags, " --without ", arguments.without_text);
  }
  if (arguments.plan_file.empty()) {
    absl::PrintF("  replay: fairlead-simtest --seeds %d%s --trace\n", plan.seed, flags);
  }
  std::fflush(stdout);
}

void ShrinkAndPrint(const Arguments& arguments, const sim::world::Plan& plan,
                    const RunResult& result) {
  const std::string invariant = result.failure->invariant;
  const absl::Time until = absl::Now() + arguments.shrink_limit;
  RunOptions options = arguments.options;
  options.trace = nullptr;
  const sim::world::Plan small = Shrink(
      plan,
      [&](const sim::world::Plan& candidate) {
        const RunResult tried = RunInChild(candidate, options, arguments.limit);
        return tried.failure.has_value() && tried.failure->invariant == invariant;
      },
      [&](int64_t tries) { return tries < arguments.max_tries && absl::Now() < until; });
  const RunResult last = RunInChild(small, options, arguments.limit);
  absl::PrintF("  shrunk from %d to %d operations", plan.operations.size(),
               small.operations.size());
  if (last.failure.has_value()) absl::PrintF("; %s", last.failure->text);
  absl::PrintF(":\n%s", sim::world::PrintPlan(small));
  if (!arguments.save.empty()) {
    std::ofstream(arguments.save) << sim::world::PrintPlan(small);
    absl::PrintF("  replay: fairlead-simtest --plan %s --trace\n", arguments.save);
  } else {
    absl::PrintF("  replay: save these lines as FILE; fairlead-simtest --plan FILE --trace\n");
  }
  std::fflush(stdout);
}

void Count(Totals& totals, const RunResult& result) {
  ++totals.seeds;
  totals.failures += result.failure.has_value() ? 1 : 0;
  totals.steps += result.steps;
  totals.lifetimes += result.lifetimes;
  totals.commits += result.commits;
  totals.virtual_time += result.virtual_time;
}

void PrintTotals(const Totals& totals, absl::Duration took) {
  const double seconds = std::max(0.001, absl::ToDoubleSeconds(took));
  absl::PrintF(
      "%d seeds, %d failures, %.0f steps/s, %.0f lifetimes/s, %s of virtual time in %.1f s\n",
      totals.seeds, totals.failures, static_cast<double>(totals.steps) / seconds,
      static_cast<double>(totals.lifetimes) / seconds, absl::FormatDuration(totals.virtual_time),
      seconds);
}

int RunOne(Arguments& arguments, const sim::world::Plan& plan) {
  const absl::Time start = absl::Now();
  if (arguments.print) absl::PrintF("%s", sim::world::PrintPlan(plan));
  if (arguments.trace) {
    arguments.options.trace = [](absl::string_view line) { absl::PrintF("%s\n", line); };
  }
  std::fflush(stdout);
  // With a trace in this process, so that a debugger stops where it fails.
  const RunResult result = arguments.trace ? RunPlan(plan, arguments.options)
                                           : RunInChild(plan, arguments.options, arguments.limit);
  Totals totals;
  Count(totals, result);
  if (result.failure.has_value()) {
    PrintFailure(arguments, plan, result);
    if (arguments.shrink) ShrinkAndPrint(arguments, plan, result);
  }
  PrintTotals(totals, absl::Now() - start);
  return result.failure.has_value() ? 1 : 0;
}

int RunMany(const Arguments& arguments) {
  const absl::Time start = absl::Now();
  absl::Time told = start;
  Totals totals;
  const auto make = [&](uint64_t seed) { return sim::world::RandomPlan(seed, arguments.families); };
  std::optional<Report> failed;
  RunSeeds(arguments.first, arguments.last, arguments.jobs, arguments.options, arguments.limit,
           make, [&](const Report& report) {
             Count(totals, report.result);
             if (report.result.failure.has_value()) {
               PrintFailure(arguments, make(report.seed), report.result);
               if (!failed.has_value()) failed = report;
             }
             if (absl::Now() - told > absl::Seconds(10)) {
               told = absl::Now();
               absl::FPrintF(stderr, "%d of %d seeds, %d failures\n", totals.seeds,
                             arguments.last - arguments.first + 1, totals.failures);
             }
             return arguments.keep_going || !report.result.failure.has_value();
           });
  if (failed.has_value() && arguments.shrink) {
    ShrinkAndPrint(arguments, make(failed->seed), failed->result);
  }
  PrintTotals(totals, absl::Now() - start);
  return totals.failures > 0 ? 1 : 0;
}

// Worlds for which one family is named have its corners.
int RunEachFamily(const Arguments& arguments) {
  int worst = 0;
  for (const std::string& family : arguments.families) {
    Arguments alone = arguments;
    alone.families = {family};
    alone.fault_text = family;
    absl::PrintF("%s: ", family);
    std::fflush(stdout);
    worst = std::max(worst, RunMany(alone));
  }
  return worst;
}

}  // namespace

int RunCommand(int argc, char** argv) {
  CLI::App app{kAbout, "fairlead-simtest"};
  Arguments arguments;
  std::string seeds = "1..100";
  int limit_s = 60, shrink_limit_s = 300;
  app.add_option("--seeds", seeds, "worlds to run: N or FIRST..LAST")->capture_default_str();
  app.add_option("--fault", arguments.fault_text,
                 absl::StrCat("families of faults, by commas: all, none, -NAME, ",
                              absl::StrJoin(sim::world::FaultFamilies(), ", ")))
      ->capture_default_str();
  app.add_option("--without", arguments.without_text,
                 absl::StrCat("invariants that are not checked, by commas: ",
                              absl::StrJoin(InvariantNames(), ", ")));
  app.add_option("--plan", arguments.plan_file, "run this plan instead of seeds");
  app.add_option("--save", arguments.save, "where the shrunk plan goes");
  app.add_option("--jobs", arguments.jobs, "processes")->check(CLI::Range(1, 256));
  app.add_option("--limit", limit_s, "seconds of CPU time that one world may take")
      ->capture_default_str();
  app.add_option("--recount-every", arguments.options.recount_every,
                 "decisions between two recounts of what the program has counted")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--tries", arguments.max_tries, "runs that shrinking may take")
      ->capture_default_str();
  app.add_option("--shrink-limit", shrink_limit_s, "seconds that shrinking may take")
      ->capture_default_str();
  app.add_flag("--shrink", arguments.shrink, "shrink the first failing plan");
  app.add_flag("--keep-going", arguments.keep_going, "run all seeds although one failed");
  app.add_flag("--each-family", arguments.each_family,
               "run all seeds once for each family of --fault, with no other fault");
  app.add_flag("--trace", arguments.trace, "one seed or plan: print everything that happens");
  app.add_flag("--print-plan", arguments.print, "one seed or plan: print its operations");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  arguments.limit = absl::Seconds(limit_s);
  arguments.shrink_limit = absl::Seconds(shrink_limit_s);
  const auto families = sim::world::ParseFamilies(arguments.fault_text);
  if (!families.ok() || !ParseSeeds(seeds, arguments.first, arguments.last)) {
    absl::FPrintF(stderr, "fairlead-simtest: %s\n",
                  families.ok() ? "--seeds takes N or FIRST..LAST" : families.status().message());
    return 2;
  }
  arguments.families = *families;
  for (const absl::string_view name :
       absl::StrSplit(arguments.without_text, ',', absl::SkipEmpty())) {
    arguments.options.without.insert(std::string(name));
  }
  if (!arguments.plan_file.empty()) {
    std::ifstream file(arguments.plan_file);
    std::stringstream text;
    text << file.rdbuf();
    const auto plan = sim::world::ParsePlan(text.str());
    if (!file || !plan.ok()) {
      absl::FPrintF(stderr, "fairlead-simtest: %s: %s\n", arguments.plan_file,
                    file ? plan.status().message() : "cannot be read");
      return 2;
    }
    return RunOne(arguments, *plan);
  }
  if (arguments.each_family) return RunEachFamily(arguments);
  if (arguments.first == arguments.last) {
    return RunOne(arguments, sim::world::RandomPlan(arguments.first, arguments.families));
  }
  return RunMany(arguments);
}

}  // namespace fairlead::simtest
