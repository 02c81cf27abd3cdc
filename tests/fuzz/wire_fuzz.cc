// libFuzzer target: every decoder of kube/codec/codec.h on arbitrary bytes. The first byte chooses
// decoder (its lowest three bits) and kind (the others). It checks that there is no crash and no
// undefined behaviour, that errors have one code, and that a watch stream means the same whole and
// in pieces.
//
// driver.cc runs it as a test. With clang: cmake -DCMAKE_CXX_COMPILER=clang++-19
// -DFAIRLEAD_LIBFUZZER=ON -DFAIRLEAD_SANITIZE=address,undefined,fuzzer-no-link, then bin/wire_fuzz.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace {

using fairlead::kube::WatchDecoder;
using fairlead::kube::WatchEvent;

void Require(bool condition) {
  if (!condition) std::abort();
}

void RequireInvalidArgument(const absl::Status& status) {
  Require(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
}

void FeedInPieces(fairlead::model::Kind kind, absl::string_view type, absl::string_view bytes) {
  std::vector<WatchEvent> whole;
  const absl::Status status = WatchDecoder(kind, type).Feed(bytes, whole);
  RequireInvalidArgument(status);
  WatchDecoder decoder(kind, type);
  std::vector<WatchEvent> pieces;
  absl::Status last;
  for (size_t at = 0; at < bytes.size() && last.ok(); at += 3) {
    last = decoder.Feed(bytes.substr(at, 3), pieces);
  }
  if (status.ok()) Require(last.ok() && whole.size() == pieces.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace kube = fairlead::kube;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  static_assert(std::size(fairlead::model::kAllKinds) <= 32);
  const fairlead::model::Kind kind =
      fairlead::model::kAllKinds[(data[0] >> 3) % std::size(fairlead::model::kAllKinds)];
  switch (data[0] & 7) {
    case 0:
      RequireInvalidArgument(kube::DecodeObject(kind, kube::kProtobuf, bytes).status());
      break;
    case 1:
      RequireInvalidArgument(kube::DecodeList(kind, kube::kProtobuf, bytes).status());
      break;
    case 2:
      FeedInPieces(kind, kube::kProtobuf, bytes);
      break;
    case 3:
      RequireInvalidArgument(kube::DecodeObject(kind, kube::kJson, bytes).status());
      break;
    case 4:
      RequireInvalidArgument(kube::DecodeList(kind, kube::kJson, bytes).status());
      break;
    case 5:
      FeedInPieces(kind, kube::kJson, bytes);
      break;
    case 6:
      RequireInvalidArgument(kube::DecodeManifests(bytes).status());
      break;
    default:
      static_cast<void>(kube::DecodeStatus(kube::kJson, bytes));
      static_cast<void>(kube::DecodeStatus(kube::kProtobuf, bytes));
      break;
  }
  return 0;
}
