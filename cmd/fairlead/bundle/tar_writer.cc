#include "cmd/fairlead/bundle/tar_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::cmd {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameMax = 100;
constexpr uint64_t kSizeMax = uint64_t{1} << 33;

void Put(std::string& header, size_t at, absl::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<ptrdiff_t>(at));
}

}  // namespace

absl::Status TarWriter::Add(absl::string_view path, absl::string_view content) {
  if (path.empty() || path.size() > kNameMax || path.front() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\": no name of a file in an archive"));
  }
  if (content.size() >= kSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": too long for an archive"));
  }
  std::string header(kBlock, '\0');
  Put(header, 0, path);
  Put(header, 100, "0000640");
  Put(header, 108, "0000000");
  Put(header, 116, "0000000");
  Put(header, 124, absl::StrFormat("%011o", static_cast<uint64_t>(content.size())));
  const int64_t seconds = std::max<int64_t>(absl::ToUnixSeconds(modified_), 0);
  Put(header, 136, absl::StrFormat("%011o", static_cast<uint64_t>(seconds)));
  Put(header, 148, "        ");  // the checksum, while it is summed
  header[156] = '0';             // a plain file
  Put(header, 257, absl::string_view("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  Put(header, 148, absl::StrFormat("%06o", sum));
  header[154] = '\0';
  absl::StrAppend(&bytes_, header, content);
  bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return absl::OkStatus();
}

std::string TarWriter::Finish() {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

absl::StatusOr<std::string> Gzip(absl::string_view text) {
  constexpr int kLevel = 6, kGzipWindow = 15 + 16, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to compress with");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return absl::InternalError("the archive cannot be compressed");
  return out;
}

}  // namespace fairlead::cmd
