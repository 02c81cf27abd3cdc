#include "cmd/fairlead/app/node_list_reader.h"

#include "cmd/fairlead/cluster/api_lists.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {

void NodeListReader::Poll(uint64_t number) {
  if (number <= number_) return;
  number_ = number;
  continue_token_.clear();
  nodes_.clear();
  ReadPage();
}

void NodeListReader::ReadPage() {
  kube::HttpRequest request =
      ListRequest(model::Kind::kNode, {.limit = kPageSize, .continue_token = continue_token_});
  request.timeout = kTimeout;
  calls_.Send(std::move(request),
              [this, number = number_](const absl::StatusOr<kube::HttpResponse>& answer) {
                OnAnswer(number, answer);
              });
}

void NodeListReader::OnAnswer(uint64_t number, const absl::StatusOr<kube::HttpResponse>& answer) {
  if (number != number_) return;
  absl::StatusOr<kube::ListPage> page = ListPageOf(model::Kind::kNode, answer);
  if (!page.ok()) return done_(number, page.status());
  for (const kube::Object& object : page->items) {
    const auto& node = std::get<model::Node>(object);
    const std::string request(node.meta.labels.Get(model::kNodeRequestLabel));
    if (request.empty() && node.provider_id.empty()) continue;
    nodes_.push_back({node.meta.name, node.meta.uid, request, node.provider_id});
  }
  continue_token_ = std::move(page->continue_token);
  if (!continue_token_.empty()) return ReadPage();
  done_(number, std::move(nodes_));
}

}  // namespace fairlead::cmd
