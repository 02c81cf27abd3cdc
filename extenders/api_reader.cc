#include "extenders/api_reader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "extenders/call_queue.h"
#include "extenders/wire.h"
#include "kube/transport/url.h"

namespace fairlead::extenders {
namespace {

constexpr absl::Duration kPodTimeout = absl::Seconds(10);
constexpr absl::Duration kNodesTimeout = absl::Seconds(30);

// The body of an answer 200.
absl::StatusOr<std::string> BodyOf(absl::StatusOr<kube::HttpResponse> answer,
                                   absl::string_view what) {
  if (absl::IsCancelled(answer.status())) return answer.status();
  if (!answer.ok()) {
    return absl::UnavailableError(absl::StrCat(what, ": ", answer.status().message()));
  }
  if (answer->status == 200) return std::move(answer->body);
  const std::string message = absl::StrCat(what, ": status ", answer->status);
  return answer->status == 404 ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

absl::StatusOr<std::string> PodOf(absl::StatusOr<kube::HttpResponse> answer,
                                  const std::string& what, const std::string& uid) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string body, BodyOf(std::move(answer), what));
  const absl::StatusOr<std::string> found = ReadUid(body);
  if (!found.ok()) {
    return absl::UnavailableError(absl::StrCat(what, ": ", found.status().message()));
  }
  if (*found != uid) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": metadata.uid is ", *found, ", not ", uid));
  }
  return body;
}

absl::StatusOr<NodeTextsPtr> NodesOf(absl::StatusOr<kube::HttpResponse> answer) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string body, BodyOf(std::move(answer), "list of nodes"));
  auto nodes = std::make_shared<NodeTexts>();
  const absl::Status read = ReadItems(body, [&](absl::string_view name, std::string text) {
    nodes->insert_or_assign(std::string(name), std::move(text));
  });
  if (!read.ok()) return absl::UnavailableError(absl::StrCat("list of nodes: ", read.message()));
  return nodes;
}

}  // namespace

void ApiReader::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  api_ = nullptr;
}

void ApiReader::ReadPod(const std::string& ns, const std::string& name, const std::string& uid,
                        PodDone done) {
  kube::HttpRequest request;
  request.path =
      absl::StrCat("/api/v1/namespaces/", kube::QueryEscape(ns), "/pods/", kube::QueryEscape(name));
  request.timeout = kPodTimeout;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (api_ != nullptr) {
      api_->Send(std::move(request),
                 [what = absl::StrCat("pod ", ns, "/", name), uid,
                  done = std::move(done)](absl::StatusOr<kube::HttpResponse> answer) {
                   done(PodOf(std::move(answer), what, uid));
                 });
      return;
    }
  }
  done(Closed());
}

void ApiReader::ReadNodes(NodesDone done) {
  absl::StatusOr<NodeTextsPtr> known = Closed();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (api_ != nullptr) {
      const absl::Duration now = clock_->Steady();
      if (nodes_ == nullptr || now - listed_at_ > kNodeListAge) {
        nodes_ = nullptr;  // two lists are never kept
        waiting_.push_back(std::move(done));
        if (waiting_.size() > 1) return;
        requested_at_ = now;
        kube::HttpRequest request;
        request.path = "/api/v1/nodes?resourceVersion=0";
        request.timeout = kNodesTimeout;
        api_->Send(std::move(request),
                   [self = shared_from_this()](const absl::StatusOr<kube::HttpResponse>& answer) {
                     self->OnNodes(answer);
                   });
        return;
      }
      known = nodes_;
    }
  }
  done(std::move(known));
}

void ApiReader::OnNodes(const absl::StatusOr<kube::HttpResponse>& answer) {
  absl::StatusOr<NodeTextsPtr> nodes = NodesOf(answer);
  std::vector<NodesDone> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting.swap(waiting_);
    if (nodes.ok()) {
      nodes_ = *nodes;
      listed_at_ = requested_at_;
    }
  }
  for (const NodesDone& done : waiting) done(nodes);
}

}  // namespace fairlead::extenders
