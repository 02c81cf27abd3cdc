#include "cmd/fairlead/bundle/bundle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/bundle/tar_writer.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/inspect/show.h"

namespace fairlead::cmd {
namespace {

constexpr absl::string_view kFolder = "fairlead-bundle/";

std::string ListText(const std::vector<Json>& items, size_t count) {
  Json list = Json::Array();
  for (size_t i = 0; i < count; ++i) list.Add(items[i]);
  Json json = Json::Object();
  return json.Set("items", std::move(list)).Pretty();
}

}  // namespace

void Bundle::Add(std::string path, std::string content, absl::string_view what) {
  const auto bytes = static_cast<int64_t>(content.size());
  if (bytes > left_) {
    return Lack(what, absl::StrCat("its ", bytes, " bytes do not fit any more; raise --max-size"));
  }
  left_ -= bytes;
  rows_.push_back(
      {.path = path, .what = std::string(what), .why = "", .detail = "", .bytes = bytes});
  files_.push_back({std::move(path), std::move(content)});
}

void Bundle::AddList(std::string path, const Json& items, absl::string_view what) {
  size_t count = items.items().size();
  std::string content = ListText(items.items(), count);
  while (count > 0 && static_cast<int64_t>(content.size()) > left_) {
    count /= 2;
    content = ListText(items.items(), count);
  }
  const size_t rows = rows_.size();
  Add(std::move(path), std::move(content), what);
  if (rows_.size() == rows || rows_.back().path.empty()) return;
  rows_.back().items = static_cast<int64_t>(count);
  rows_.back().left_out = static_cast<int64_t>(items.items().size() - count);
}

void Bundle::Lack(absl::string_view what, absl::string_view why, absl::string_view detail) {
  rows_.push_back({.path = "",
                   .what = std::string(what),
                   .why = std::string(why),
                   .detail = std::string(detail)});
}

Json Bundle::Manifest(bool details) const {
  Json json = Json::Object();
  json.Set("kind", "FairleadBundle").Set("version", kVersion).Set("at", Rfc3339(at_));
  json.Set("redacted", Json::Bool(redacted_));
  Json files = Json::Array(), missing = Json::Array();
  for (const Row& row : rows_) {
    Json item = Json::Object();
    if (row.path.empty()) {
      item.Set("what", row.what).Set("why", row.why);
      if (details && !row.detail.empty()) item.Set("detail", row.detail);
      missing.Add(std::move(item));
      continue;
    }
    item.Set("file", row.path).Set("what", row.what).Set("bytes", Json::Int(row.bytes));
    if (row.items >= 0) item.Set("items", Json::Int(row.items));
    if (row.left_out > 0) item.Set("itemsLeftOut", Json::Int(row.left_out));
    files.Add(std::move(item));
  }
  return json.Set("files", std::move(files)).Set("missing", std::move(missing));
}

absl::StatusOr<std::string> Bundle::Archive() const {
  TarWriter tar(at_);
  FAIRLEAD_RETURN_IF_ERROR(
      tar.Add(absl::StrCat(kFolder, "manifest.json"), Manifest(!redacted_).Pretty()));
  for (const File& file : files_) {
    FAIRLEAD_RETURN_IF_ERROR(tar.Add(absl::StrCat(kFolder, file.path), file.content));
  }
  return Gzip(tar.Finish());
}

}  // namespace fairlead::cmd
