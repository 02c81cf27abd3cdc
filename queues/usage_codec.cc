// UsageRecord to text and back. "fairlead-usage/1:" CHECKSUM ":" BASE64, where the checksum is the
// StableHash of the bytes and the bytes are, as LEB128 varints unless said otherwise:
//   last sample (zigzag, ms); columns, queues: count, then length and bytes of each name;
//   cells: count, then queue and column of each; held by cell; held capacity by column;
//   buckets: count, then each: start (zigzag, ms), length (ms), capacity by column, sum by cell.
// Varints are canonical: one text for one record.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "queues/usage_record.h"

namespace fairlead::queues {
namespace {

constexpr absl::string_view kMagic = "fairlead-usage/";
constexpr absl::string_view kVersion = "1";
constexpr size_t kMaxNameBytes = 512;
constexpr int kSumBits = 102;  // the largest amount for eight years; leaves bits for all buckets
constexpr int64_t kMaxTimeMs = int64_t{1} << 50;

class Writer {
 public:
  void Number(Uint128 value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(static_cast<uint8_t>(value) | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void Signed(int64_t value) {
    Number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Text(absl::string_view text) {
    Number(text.size());
    bytes_.append(text.data(), text.size());
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

absl::Status Corrupt(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("usage record: ", what));
}

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<Uint128> Number(Uint128 most) {
    Uint128 value = 0;
    for (int shift = 0; shift < 126; shift += 7) {
      if (bytes_.empty()) return Corrupt("ends within a number");
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<Uint128>(byte & 0x7F) << shift;
      if ((byte & 0x80) != 0) continue;
      if (byte == 0 && shift > 0) return Corrupt("a number is longer than it need be");
      if (value > most) return Corrupt("a number is out of range");
      return value;
    }
    return Corrupt("a number is too long");
  }
  absl::StatusOr<int64_t> Amount(int64_t most) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 value, Number(static_cast<Uint128>(most)));
    return static_cast<int64_t>(value);
  }
  // Each counted item takes at least one byte.
  absl::StatusOr<size_t> Count() {
    FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 value, Number(bytes_.size()));
    return static_cast<size_t>(value);
  }
  absl::StatusOr<int64_t> Time() {
    FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 value, Number(static_cast<Uint128>(2 * kMaxTimeMs)));
    const auto bits = static_cast<uint64_t>(value);
    return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
  }
  absl::StatusOr<std::string> Name() {
    FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 size, Number(kMaxNameBytes));
    if (size == 0 || size > bytes_.size()) return Corrupt("a name is empty or cut off");
    std::string name(bytes_.substr(0, static_cast<size_t>(size)));
    bytes_.remove_prefix(name.size());
    return name;
  }
  absl::StatusOr<std::vector<std::string>> Names() {
    FAIRLEAD_ASSIGN_OR_RETURN(const size_t count, Count());
    std::vector<std::string> names;
    absl::flat_hash_set<std::string> seen;
    for (size_t i = 0; i < count; ++i) {
      FAIRLEAD_ASSIGN_OR_RETURN(std::string name, Name());
      if (!seen.insert(name).second) return Corrupt("a name occurs twice");
      names.push_back(std::move(name));
    }
    return names;
  }
  [[nodiscard]] bool AtEnd() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
};

template <typename T>
void WriteRow(Writer& writer, const std::vector<T>& values, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    writer.Number(i < values.size() ? static_cast<Uint128>(values[i]) : 0);
  }
}

std::string Checksum(absl::string_view bytes) { return StableHash().Add(bytes).Hex(); }

absl::StatusOr<std::string> Unwrap(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kMagic)) {
    return absl::InvalidArgumentError("usage record: this is not one");
  }
  const size_t colon = text.find(':');
  const absl::string_view version = text.substr(0, colon);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "usage record: version '", absl::CEscape(version.substr(0, 20)), "' is not understood"));
  }
  text.remove_prefix(std::min(text.size(), colon == absl::string_view::npos ? colon : colon + 1));
  const size_t second = text.find(':');
  if (second == absl::string_view::npos) return Corrupt("ends before its data");
  std::string bytes;
  const absl::string_view base64 = text.substr(second + 1);
  if (!absl::Base64Unescape(base64, &bytes) || absl::Base64Escape(bytes) != base64) {
    return Corrupt("is not base64");
  }
  if (Checksum(bytes) != text.substr(0, second)) return Corrupt("the checksum is wrong");
  return bytes;
}

}  // namespace

class UsageCodec {
 public:
  static std::string Write(const UsageRecord& record,
                           const std::deque<UsageRecord::Bucket>& buckets) {
    Writer writer;
    writer.Signed(*record.last_ms_);
    writer.Number(record.columns_.size());
    for (const std::string& name : record.columns_) writer.Text(name);
    writer.Number(record.queues_.size());
    for (const UsageRecord::Queue& queue : record.queues_) writer.Text(queue.name);
    writer.Number(record.cells_.size());
    for (const UsageRecord::Cell& cell : record.cells_) {
      writer.Number(cell.queue);
      writer.Number(cell.column);
    }
    WriteRow(writer, record.held_, record.cells_.size());
    WriteRow(writer, record.held_capacity_, record.columns_.size());
    writer.Number(buckets.size());
    for (const UsageRecord::Bucket& bucket : buckets) {
      writer.Signed(bucket.start_ms);
      writer.Number(static_cast<Uint128>(bucket.end_ms - bucket.start_ms));
      WriteRow(writer, bucket.capacity, record.columns_.size());
      WriteRow(writer, bucket.amounts, record.cells_.size());
    }
    return absl::StrCat(kMagic, kVersion, ":", Checksum(writer.bytes()), ":",
                        absl::Base64Escape(writer.bytes()));
  }

  static absl::Status Read(absl::string_view bytes, UsageRecord& record) {
    Reader reader(bytes);
    FAIRLEAD_ASSIGN_OR_RETURN(record.last_ms_, reader.Time());
    FAIRLEAD_RETURN_IF_ERROR(ReadTables(reader, record));
    FAIRLEAD_RETURN_IF_ERROR(ReadAmounts(reader, record.cells_.size(), record.held_));
    FAIRLEAD_RETURN_IF_ERROR(ReadAmounts(reader, record.columns_.size(), record.held_capacity_));
    FAIRLEAD_ASSIGN_OR_RETURN(const size_t buckets, reader.Count());
    if (buckets > UsageRecord::kMaxBuckets) return Corrupt("too many buckets");
    for (size_t i = 0; i < buckets; ++i) FAIRLEAD_RETURN_IF_ERROR(ReadBucket(reader, record));
    if (!reader.AtEnd()) return Corrupt("goes on after its end");
    record.SumClosed();
    return absl::OkStatus();
  }

 private:
  static absl::Status ReadTables(Reader& reader, UsageRecord& record) {
    FAIRLEAD_ASSIGN_OR_RETURN(record.columns_, reader.Names());
    FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<std::string> queues, reader.Names());
    for (const std::string& name : queues) record.QueueOf(name);
    FAIRLEAD_ASSIGN_OR_RETURN(const size_t cells, reader.Count());
    for (size_t i = 0; i < cells; ++i) {
      // A cell has a queue and a column, so neither list may be empty here.
      if (queues.empty() || record.columns_.empty()) return Corrupt("a cell belongs to nothing");
      FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 queue, reader.Number(queues.size() - 1));
      FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 column, reader.Number(record.columns_.size() - 1));
      if (record.CellOf(static_cast<uint32_t>(queue), static_cast<uint32_t>(column)) != i) {
        return Corrupt("a cell occurs twice");
      }
    }
    return absl::OkStatus();
  }

  static absl::Status ReadAmounts(Reader& reader, size_t size, std::vector<int64_t>& out) {
    for (size_t i = 0; i < size; ++i) {
      FAIRLEAD_ASSIGN_OR_RETURN(const int64_t amount,
                                reader.Amount(std::numeric_limits<int64_t>::max()));
      out.push_back(amount);
    }
    return absl::OkStatus();
  }

  static absl::Status ReadSums(Reader& reader, size_t size, std::vector<Uint128>& out) {
    for (size_t i = 0; i < size; ++i) {
      FAIRLEAD_ASSIGN_OR_RETURN(const Uint128 sum,
                                reader.Number(static_cast<Uint128>(1) << kSumBits));
      out.push_back(sum);
    }
    return absl::OkStatus();
  }

  static absl::Status ReadBucket(Reader& reader, UsageRecord& record) {
    UsageRecord::Bucket bucket;
    FAIRLEAD_ASSIGN_OR_RETURN(bucket.start_ms, reader.Time());
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t length, reader.Amount(kMaxTimeMs));
    bucket.end_ms = bucket.start_ms + length;
    const bool ordered =
        record.buckets_.empty() || record.buckets_.back().end_ms <= bucket.start_ms;
    if (length == 0 || !ordered || bucket.start_ms > *record.last_ms_) {
      return Corrupt("buckets are empty, out of order or in the future");
    }
    FAIRLEAD_RETURN_IF_ERROR(ReadSums(reader, record.columns_.size(), bucket.capacity));
    FAIRLEAD_RETURN_IF_ERROR(ReadSums(reader, record.cells_.size(), bucket.amounts));
    record.buckets_.push_back(std::move(bucket));
    return absl::OkStatus();
  }
};

absl::StatusOr<std::string> UsageRecord::Encode(size_t max_bytes) const {
  if (!last_ms_) return absl::FailedPreconditionError("usage record: nothing recorded yet");
  std::deque<Bucket> buckets = buckets_;
  for (;;) {
    std::string text = UsageCodec::Write(*this, buckets);
    if (text.size() <= max_bytes) return text;
    if (buckets.size() <= 2) {
      return absl::ResourceExhaustedError(
          absl::StrCat("usage record: ", text.size(), " bytes, of which ", max_bytes, " fit"));
    }
    buckets = MergePairs(buckets);
  }
}

absl::StatusOr<UsageRecord> UsageRecord::Decode(absl::string_view text,
                                                const UsageOptions& options) {
  FAIRLEAD_ASSIGN_OR_RETURN(UsageRecord record, Create(options));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string bytes, Unwrap(text));
  FAIRLEAD_RETURN_IF_ERROR(UsageCodec::Read(bytes, record));
  return record;
}

}  // namespace fairlead::queues
