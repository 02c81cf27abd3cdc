// LIST requests to the API server and their answers, one page at a time, for callers that need no
// watch. Reflectors have their own (kube/watch). Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "scheduler/model/kind.h"

namespace fairlead::cmd {

struct ListQuery {
  std::string field_selector = {};  // on top of the kind's own; empty: none
  int limit = 0;                    // objects per page; 0: all in one page
  std::string continue_token = {};  // of the former page; empty: the first page
};

// Without a resourceVersion: the first page is a quorum read, and later pages show the same moment.
kube::HttpRequest ListRequest(model::Kind kind, const ListQuery& query);

// Errors: those of StatusOfAnswer, and InvalidArgument for a body that cannot be decoded.
absl::StatusOr<kube::ListPage> ListPageOf(model::Kind kind,
                                          const absl::StatusOr<kube::HttpResponse>& answer);

}  // namespace fairlead::cmd
