// fairlead-conformance: runs the cases of KAI's own table tests through the engine. See README.md.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/conformance/deviations_text.h"
#include "tests/conformance/engine_session.h"
#include "tests/conformance/suite.h"

namespace {

using fairlead::conformance::Outcome;

constexpr char kUsage[] =
    "usage: fairlead-conformance DIR... [--json FILE] [--filter SUBSTRING] [--verbose]\n"
    "                            [--deviations FILE] [--in-process]\n"
    "\n"
    "Runs every case of the *.json files of the folders (or files) through the engine.\n"
    "  --json FILE        also writes the result of each case by its name\n"
    "  --filter TEXT      only cases that have TEXT in their source, name or file\n"
    "  --verbose          tells of every case what was done\n"
    "  --deviations FILE  instead of the built-in list\n"
    "  --in-process       no process for each case: for debuggers\n"
    "Exits with 0 if no case failed or no folder is there, 1 if one failed or there is none, 2 on\n"
    "a wrong call.\n";

struct Arguments {
  std::vector<std::string> paths;
  std::string json_file, deviations_file;
  bool verbose = false;
  fairlead::conformance::SuiteOptions suite;
};

bool Read(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::string* value = word == "--json"         ? &out.json_file
                         : word == "--filter"     ? &out.suite.filter
                         : word == "--deviations" ? &out.deviations_file
                                                  : nullptr;
    if (value != nullptr) {
      if (++i == argc) return false;
      *value = argv[i];
    } else if (word == "--verbose") {
      out.verbose = true;
    } else if (word == "--in-process") {
      out.suite.isolate = false;
    } else if (word[0] == '-') {
      return false;
    } else {
      out.paths.push_back(word);
    }
  }
  return !out.paths.empty();
}

int Fail(absl::string_view why) {
  std::cerr << "fairlead-conformance: " << why << "\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  Arguments arguments;
  if (!Read(argc, argv, arguments)) {
    std::cerr << kUsage;
    return 2;
  }
  std::string text = fairlead::conformance::kDeviationsText;
  if (!arguments.deviations_file.empty()) {
    std::ifstream in(arguments.deviations_file);
    std::stringstream content;
    content << in.rdbuf();
    if (!in) return Fail(arguments.deviations_file + " cannot be read");
    text = content.str();
  }
  auto deviations = fairlead::conformance::ReadDeviations(text);
  if (!deviations.ok()) return Fail(deviations.status().message());
  arguments.suite.deviations = *std::move(deviations);
  arguments.suite.run_session = fairlead::conformance::RunEngineSession;

  const auto result = fairlead::conformance::RunSuite(arguments.paths, arguments.suite);
  std::cout << fairlead::conformance::ToText(result, arguments.verbose) << std::flush;
  if (!arguments.json_file.empty()) {
    std::ofstream out(arguments.json_file);
    out << fairlead::conformance::ToJson(result) << std::flush;
    if (!out) return Fail(arguments.json_file + " cannot be written");
  }
  if (!result.cases.empty()) return result.Count(Outcome::kFailed) == 0 ? 0 : 1;
  if (result.skipped.size() == arguments.paths.size()) return 0;
  std::cerr << "fairlead-conformance: there is no such case\n";
  return 1;
}
