#include "cmd/fairlead/app/node_pods_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/cluster/api_lists.h"

namespace fairlead::cmd {

void NodePodsReader::Poll(const std::set<std::string>& nodes, absl::Time now) {
  std::erase_if(rows_, [&](const auto& row) { return !nodes.contains(row.first); });
  for (const std::string& node : nodes) {
    const auto [at, added] = rows_.try_emplace(node);
    Row& row = at->second;
    if (added) row.next = now + kDelay;
    if (row.reading != 0 || now < row.next || in_flight_ >= kAtOnce) continue;
    row.next = now + kPause;
    row.reading = ++last_id_;
    Read(node, row.reading);
  }
}

absl::Time NodePodsReader::wake_at() const {
  absl::Time at = absl::InfiniteFuture();
  if (in_flight_ >= kAtOnce) return at;  // an answer comes first
  for (const auto& [node, row] : rows_) {
    if (row.reading == 0) at = std::min(at, row.next);
  }
  return at;
}

void NodePodsReader::Read(const std::string& node, uint64_t id) {
  ++in_flight_;
  kube::HttpRequest request = ListRequest(
      model::Kind::kPod,
      {.field_selector = absl::StrCat("spec.nodeName=", node, ",status.phase!=Succeeded")});
  request.timeout = kPause;
  calls_.Send(std::move(request),
              [this, node, id](const absl::StatusOr<kube::HttpResponse>& answer) {
                OnAnswer(node, id, answer);
              });
}

void NodePodsReader::OnAnswer(const std::string& node, uint64_t id,
                              const absl::StatusOr<kube::HttpResponse>& answer) {
  --in_flight_;
  const auto row = rows_.find(node);
  // The node may have been forgotten and awaited again since: its taint may be a later one.
  if (row == rows_.end() || row->second.reading != id) return;
  row->second.reading = 0;
  absl::StatusOr<kube::ListPage> page = ListPageOf(model::Kind::kPod, answer);
  if (page.ok() && !page->continue_token.empty()) {
    page = absl::DataLossError("the API server sent a part of the list");
  }
  if (!page.ok()) return failed_(node, page.status());
  std::vector<model::Pod> pods;
  for (kube::Object& object : page->items) pods.push_back(std::move(std::get<model::Pod>(object)));
  found_(node, page->resource_version, pods);
}

}  // namespace fairlead::cmd
