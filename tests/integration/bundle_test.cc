// `fairlead bundle` of a real API server: what is in it, by another program, and what a user
// without rights is told.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "document/json.h"
#include "tests/integration/fixture.h"
#include "tests/integration/plane.h"

namespace fairlead::integration {
namespace {

class BundleTest : public IntegrationTest {
 protected:
  // Its output.
  static std::string Run(std::vector<std::string> words, int code) {
    ChildProcess process(std::move(words), Plane::Get()->NewFile("bundle.txt"));
    EXPECT_EQ(process.Wait(absl::Seconds(60)), code) << process.Log();
    return process.Log();
  }
  // The manifest; the files are in `folder`.
  static Json Bundle(const std::string& kubeconfig, const std::vector<std::string>& flags,
                     const std::string& folder) {
    const std::string file = Plane::Get()->NewFile("bundle.tar.gz");
    std::vector<std::string> words = {
        FAIRLEAD_BINARY, "bundle", "--kubeconfig", kubeconfig, "-o", file, "--format", "json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const absl::StatusOr<Json> manifest = Json::Parse(Run(words, 0));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    std::filesystem::create_directories(folder);
    Run({"/bin/tar", "-xzf", file, "-C", folder}, 0);
    return manifest.ok() ? *manifest : Json::Object();
  }
};

TEST_F(BundleTest, HasTheClusterWithoutItsNames) {
  Plane& plane = *Plane::Get();
  MakeQueue("acme-team", -1, 3);
  const std::string journals = plane.NewFile("journals");
  ChildProcess& process = Start({.hook = true, .journal = journals});
  MakePod({.name = "jane-train", .queue = "acme-team"});
  ASSERT_TRUE(Bound({"jane-train"}));
  process.Signal(SIGTERM);
  ASSERT_EQ(process.Wait(absl::Seconds(30)), 0);
  const std::string folder = plane.NewFile("bundle");
  const std::string log = plane.NewFile("acme.log");
  std::ofstream(log) << "level=info msg=stopped node=acme-7 cycle=1234\nacme says jane\n";
  const Json manifest = Bundle(plane.kubeconfig(), {"--journal", journals, "--log", log}, folder);
  EXPECT_EQ(manifest.TextAt({"redacted"}), "true");
  const std::string there = manifest.Compact();
  for (const char* file : {"queues.json", "pods.json", "nodes.json", "crds.json", "server.json",
                           "log.txt", "present.journal.gz", "last.journal.gz"}) {
    EXPECT_TRUE(absl::StrContains(there, file)) << there;
  }
  const std::string found = Run({"/bin/grep", "-rlE", "acme|jane", folder}, 1);
  EXPECT_EQ(found, "");
  for (const char* journal : {"present.journal.gz", "last.journal.gz"}) {
    const std::string path = absl::StrCat(folder, "/fairlead-bundle/", journal);
    EXPECT_TRUE(absl::StrContains(Run({FAIRLEAD_BINARY, "replay", path}, 0),
                                  "Every decision is the same."));
    EXPECT_EQ(Run({"/bin/sh", "-c", absl::StrCat("zcat ", path, " | grep -aE 'acme|jane'")}, 1),
              "");
  }
}

TEST_F(BundleTest, AFileThatExistsStays) {
  const std::string file = Plane::Get()->NewFile("report.tar.gz");
  std::ofstream(file) << "mine";
  const std::string log =
      Run({FAIRLEAD_BINARY, "bundle", "--kubeconfig", Plane::Get()->kubeconfig(), "-o", file}, 2);
  EXPECT_TRUE(absl::StrContains(log, "is not overwritten")) << log;
  EXPECT_EQ(Run({"/bin/cat", file}, 0), "mine");
}

TEST_F(BundleTest, NamesTheRightsThatAreMissing) {
  const std::string folder = Plane::Get()->NewFile("bundle");
  const Json manifest = Bundle(InstallRights(), {}, folder);
  const std::string text = manifest.Compact();
  EXPECT_TRUE(absl::StrContains(
      text, "needs the right to list customresourcedefinitions.apiextensions.k8s.io"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "queues.json")) << text;
}

}  // namespace
}  // namespace fairlead::integration
