// Shared by the tests of reflectors, executor and leases: JSON as the API server sends it, and
// events as short lines of text. For tests only.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"
#include "kube/transport/fake_transport.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::kube {

inline std::string PodJson(absl::string_view name, absl::string_view uid, absl::string_view version,
                           absl::string_view node = "") {
  return absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":")",
                      name, R"(","uid":")", uid, R"(","resourceVersion":")", version,
                      R"("},"spec":{)",
                      node.empty() ? "" : absl::StrCat(R"("nodeName":")", node, R"(",)"),
                      R"("containers":[{"name":"c"}]},"status":{"phase":"Pending"}})");
}

inline std::string QueueJson(absl::string_view name, absl::string_view uid,
                             absl::string_view version) {
  return absl::StrCat(R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":{"name":")",
                      name, R"(","uid":")", uid, R"(","resourceVersion":")", version,
                      R"("},"spec":{}})");
}

inline std::string StatusJson(int code, absl::string_view reason, absl::string_view message) {
  return absl::StrCat(
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")", message,
      R"(","reason":")", reason, R"(","code":)", code, "}");
}

inline std::string WatchLine(absl::string_view type, absl::string_view object) {
  return absl::StrCat(R"({"type":")", type, R"(","object":)", object, "}\n");
}

inline std::string BookmarkLine(absl::string_view version, bool initial_events_end = false) {
  return WatchLine(
      "BOOKMARK",
      absl::StrCat(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":")", version, "\"",
          initial_events_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "",
          R"(},"spec":{"containers":null},"status":{}})"));
}

inline std::string PodListJson(absl::string_view version, absl::string_view continue_token,
                               const std::vector<std::string>& pods) {
  std::string items;
  for (const std::string& pod : pods) absl::StrAppend(&items, items.empty() ? "" : ",", pod);
  return absl::StrCat(
      R"({"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":")", version, "\"",
      continue_token.empty() ? "" : absl::StrCat(R"(,"continue":")", continue_token, "\""),
      R"(},"items":[)", items, "]}");
}

inline FakeTransport::Reply ErrorReply(int code, absl::string_view reason,
                                       absl::string_view message,
                                       absl::Duration retry_after = absl::ZeroDuration()) {
  FakeTransport::Reply reply = FakeTransport::Reply::Json(code, StatusJson(code, reason, message));
  reply.response.retry_after = retry_after;
  return reply;
}

// "+ns/a u1@5", "-ns/a u1", "synced", "7 OK", "7 ABORTED", "usage of 3".
inline std::string Describe(const model::ClusterEvent& event) {
  struct Teller {
    std::string operator()(const model::Upsert& upsert) const {
      const model::ObjectMeta& meta = MetaOf(upsert.object);
      return absl::StrCat("+", model::Key(meta), " ", meta.uid, "@", meta.resource_version);
    }
    std::string operator()(const model::Delete& deletion) const {
      return absl::StrCat("-", model::Key(deletion.ns, deletion.name), " ", deletion.uid);
    }
    std::string operator()(const model::Synced&) const { return "synced"; }
    std::string operator()(const model::ActionResult& result) const {
      return absl::StrCat(result.action_id, " ", absl::StatusCodeToString(result.status.code()));
    }
    std::string operator()(const model::Progress& progress) const {
      return absl::StrCat("progress ", progress.resource_version);
    }
    std::string operator()(const model::UsageReport& report) const {
      return absl::StrCat("usage of ", report.parts.size());
    }
  };
  return std::visit(Teller{}, event);
}

inline std::vector<model::ClusterEvent> DrainNow(EventQueue& queue) {
  std::vector<model::ClusterEvent> events;
  queue.DrainInto(events, absl::ZeroDuration());
  return events;
}

inline std::vector<std::string> Told(EventQueue& queue) {
  std::vector<std::string> lines;
  for (const model::ClusterEvent& event : DrainNow(queue)) {
    // Omits progress, which comes with every list and bookmark.
    if (!std::holds_alternative<model::Progress>(event)) lines.push_back(Describe(event));
  }
  return lines;
}

}  // namespace fairlead::kube
