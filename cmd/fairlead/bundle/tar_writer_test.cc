#include "cmd/fairlead/bundle/tar_writer.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

constexpr char kReader[] = R"(
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    for member in archive.getmembers():
        content = archive.extractfile(member).read()
        print(member.name, member.size, int(member.mtime), oct(member.mode), content[:4], member.isfile())
)";

// What python's tarfile says of it.
std::string ReadByPython(const std::string& archive) {
  const std::string file = absl::StrCat(::testing::TempDir(), "archive.tar.gz");
  const std::string script = absl::StrCat(::testing::TempDir(), "read_tar.py");
  std::ofstream(file, std::ios::binary) << archive;
  std::ofstream(script) << kReader;
  std::string out;
  FILE* pipe = popen(absl::StrCat("python3 ", script, " ", file, " 2>&1").c_str(), "r");
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out.push_back(static_cast<char>(c));
  pclose(pipe);
  return out;
}

TEST(TarWriterTest, AnotherProgramReadsIt) {
  TarWriter tar(absl::FromUnixSeconds(1'700'000'000));
  ASSERT_TRUE(tar.Add("a/empty.txt", "").ok());
  ASSERT_TRUE(tar.Add("a/block.txt", std::string(512, 'x')).ok());
  ASSERT_TRUE(tar.Add(std::string(100, 'n'), std::string("with\0zero", 9)).ok());
  const absl::StatusOr<std::string> archive = Gzip(tar.Finish());
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(ReadByPython(*archive),
            absl::StrCat("a/empty.txt 0 1700000000 0o640 b'' True\n",
                         "a/block.txt 512 1700000000 0o640 b'xxxx' True\n", std::string(100, 'n'),
                         " 9 1700000000 0o640 b'with' True\n"));
}

TEST(TarWriterTest, AnEmptyArchiveIsOne) {
  EXPECT_EQ(ReadByPython(*Gzip(TarWriter(absl::UnixEpoch()).Finish())), "");
}

TEST(TarWriterTest, RefusesNamesThatDoNotFit) {
  TarWriter tar(absl::UnixEpoch());
  EXPECT_FALSE(tar.Add("", "x").ok());
  EXPECT_FALSE(tar.Add("/etc/passwd", "x").ok());
  EXPECT_FALSE(tar.Add(std::string(101, 'n'), "x").ok());
}

}  // namespace
}  // namespace fairlead::cmd
