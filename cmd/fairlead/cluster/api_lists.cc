#include "cmd/fairlead/cluster/api_lists.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "kube/transport/url.h"

namespace fairlead::cmd {

kube::HttpRequest ListRequest(model::Kind kind, const ListQuery& query) {
  kube::HttpRequest request;
  request.path = kube::CollectionPath(kind);
  std::string selector = query.field_selector;
  if (const absl::string_view own = model::TraitsOf(kind).field_selector; !own.empty()) {
    absl::StrAppend(&selector, selector.empty() ? "" : ",", own);
  }
  if (!selector.empty()) kube::AddQuery(request.path, "fieldSelector", selector);
  if (query.limit > 0) kube::AddQuery(request.path, "limit", absl::StrCat(query.limit));
  if (!query.continue_token.empty()) {
    kube::AddQuery(request.path, "continue", query.continue_token);
  }
  if (kube::HasProtobuf(kind)) request.accept = absl::StrCat(kube::kProtobuf, ",", kube::kJson);
  return request;
}

absl::StatusOr<kube::ListPage> ListPageOf(model::Kind kind,
                                          const absl::StatusOr<kube::HttpResponse>& answer) {
  FAIRLEAD_RETURN_IF_ERROR(StatusOfAnswer(answer));
  return kube::DecodeList(kind, answer->content_type, answer->body);
}

}  // namespace fairlead::cmd
