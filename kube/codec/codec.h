// Bytes to model values and back. Only code behind this header knows the wire formats of the API
// server.
//
// Core kinds (Pod, Node, PriorityClass, PodDisruptionBudget, Service and controllers) come as
// application/vnd.kubernetes.protobuf or JSON, by the response's content type; custom kinds, those
// of resource.k8s.io and those of storage always as JSON. Unknown fields are skipped: we never
// write a decoded object back; all writes are patches, subresource posts or objects of our own
// kinds.
//
// A *malformed message* is an error of the call (InvalidArgument). A *well-formed object with
// invalid content* (a quantity, an annotation) decodes, with the reason in its `invalid` field, so
// that it does not affect other objects.
//
// Thread-safety: pure functions. Complexity: one pass over the bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::kube {

using model::MetaOf;
using model::Object;

// What makes no sense in the object's content; empty: nothing. Null if its kind has no such field.
const std::string* InvalidOf(const Object& object);

struct ListPage {
  std::vector<Object> items;
  std::string resource_version;
  std::string continue_token;  // empty: last page
};

// meta.v1.Status, the body of an error answer, decoded from protobuf or JSON.
struct ApiStatus {
  int code = 0;
  std::string reason;  // "Expired", "Conflict", "AlreadyExists", ...
  std::string message;
  std::string causes;  // messages of details.causes, joined with "; "
  absl::Duration retry_after = absl::ZeroDuration();
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kError;
  std::optional<Object> object;     // kAdded, kModified, kDeleted
  std::string resource_version;     // of the object or the bookmark
  bool initial_events_end = false;  // bookmark annotated k8s.io/initial-events-end
  ApiStatus error;                  // kError
};

absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view content_type,
                                    absl::string_view body);
absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view content_type,
                                    absl::string_view body);
// Best effort: for a body that is no Status, code 0 and the body's beginning as message.
ApiStatus DecodeStatus(absl::string_view content_type, absl::string_view body);

// Splits a watch stream into events, for any chunking: a 4-byte big-endian length before each frame
// for protobuf, one line per event for JSON. A frame above 16 MiB is an error.
class WatchDecoder {
 public:
  WatchDecoder(model::Kind kind, absl::string_view content_type);
  // Appends the complete events to `out`. After an error the stream is unusable.
  absl::Status Feed(absl::string_view bytes, std::vector<WatchEvent>& out);

 private:
  model::Kind kind_;
  bool protobuf_;
  std::string buffer_;
};

// Reads any number of YAML or JSON documents of the kinds of model::Kind, as `kubectl apply -f`
// does; for the simulator, the tests and the command line. Returns other kinds by name in
// `skipped`. Errors name the file-relative line and column.
struct Manifests {
  std::vector<Object> objects;
  std::vector<std::string> skipped;  // "apps/v1 Deployment default/web"
};
absl::StatusOr<Manifests> DecodeManifests(absl::string_view yaml);

// ---- writes
// -------------------------------------------------------------------------------

// A write as an HTTP request, independent of the transport.
struct EncodedWrite {
  std::string method, path, content_type, body;
};

// `request_time` stamps conditions and events. Action kinds that need several requests
// (SetNodeTaint, TerminateNode, LaunchNode) are not encoded here but by their executors.
EncodedWrite EncodeBind(const model::BindPod& action);
EncodedWrite EncodeEvict(const model::EvictPod& action);
// Writes our reason and message into the condition DisruptionTarget that the eviction has set.
EncodedWrite EncodeDisruptionTarget(const model::EvictPod& action, absl::Time request_time);
EncodedWrite EncodePodUnschedulable(const model::SetPodUnschedulable& action,
                                    absl::Time request_time);
EncodedWrite EncodeNominatedNode(const model::NominateNode& action);
// How to patch the status of a custom kind. A JSON patch has two properties that a merge patch
// lacks. Its `test` is a precondition, whereas the server ignores metadata.uid in a merge patch of
// /status. And `add` replaces a field of ours whole, whereas a merge would keep members of the
// former value. The server refuses it with 422 if the uid differs. A JSON patch cannot create a
// missing /status: our CRDs default it to {}, other CRDs may not, so there are two shapes.
enum class StatusShape {
  kFields,  // patches each of our fields; 422 if the object has no status
  kWhole,   // sets a status of our fields alone; 422 if the object has one
};
// Changes only the entry of the action's pool in schedulingConditions. A `test` checks that the
// other entries are as the action says (422 if not).
EncodedWrite EncodePodGroupSchedulability(const model::SetPodGroupSchedulability& action,
                                          absl::Time request_time,
                                          StatusShape shape = StatusShape::kFields);
EncodedWrite EncodeCreatePodGroup(const model::PodGroup& group);
// What of it follows its owner, of the version that it names.
EncodedWrite EncodePodGroupUpdate(const model::PodGroup& group);
EncodedWrite EncodePodGroupOf(const model::SetPodGroup& action);
EncodedWrite EncodePodGroupAnnotations(const model::SetPodGroupAnnotations& action);
// Each list takes the place of the former one; an empty one removes it.
EncodedWrite EncodeKaiStatus(const model::SetKaiStatus& action,
                             StatusShape shape = StatusShape::kFields);
EncodedWrite EncodeConditions(const model::SetConditions& action, absl::Time request_time);
EncodedWrite EncodePodGroupScheduled(const model::SetPodGroupScheduled& action,
                                     absl::Time request_time);
// A server-side apply that creates the ConfigMap or takes over our one key of it.
EncodedWrite EncodeStoreUsage(const model::StoreUsage& action);
std::string UsageMapPath(absl::string_view ns, absl::string_view name);
// The value under our key of such a ConfigMap; empty if none. InvalidArgument if it is no JSON
// object.
absl::StatusOr<std::string> DecodeStoredUsage(absl::string_view body);
EncodedWrite EncodeCreateNodeRequest(const model::NodeRequest& request);
EncodedWrite EncodeNodeRequestStatus(const model::NodeRequest& request,
                                     StatusShape shape = StatusShape::kFields);
// Removes our finalizer and keeps the others; 422 if the list has changed. No method if our
// finalizer is not in the list.
EncodedWrite EncodeNodeRequestFinalizer(const model::DeleteNodeRequest& action);
EncodedWrite EncodeDeleteNodeRequest(const model::DeleteNodeRequest& action);
EncodedWrite EncodeCreateNode(const model::Node& node);  // with its status
EncodedWrite EncodeNodeStatus(const model::Node& node);  // allocatable, capacity, condition Ready
EncodedWrite EncodeDeleteNode(absl::string_view name, absl::string_view uid);
// The whole list of taints with the node's resourceVersion as precondition.
EncodedWrite EncodeNodeTaints(const model::Node& node);
// Shared GPUs: the pod that holds one, and the config maps by which KAI informs its containers.
EncodedWrite EncodeGpuReservation(const model::CreateGpuReservation& action);
EncodedWrite EncodeDeletePod(const model::DeletePod& action);
EncodedWrite EncodeConfigMap(const model::ApplyConfigMap& action);
// Prepares a claim before its pods are bound: first the finalizer that keeps it, on the main
// resource, then its status. Both have uid and resourceVersion as preconditions (409 if the version
// differs). Entries of reservedFor are merged by uid, so entries of other pods stay. The status has
// no allocation unless `allocate` is set.
EncodedWrite EncodeClaimFinalizers(const model::ReserveClaim& action);
EncodedWrite EncodeReserveClaim(const model::ReserveClaim& action, absl::Time request_time);
EncodedWrite EncodeDeallocateClaim(const model::DeallocateClaim& action);
// The JSON of a claim's status with its devices on a node; "{}" if it has none.
std::string EncodeClaimStatus(const model::ResourceClaim& claim, absl::string_view node);
// The two writes about storage; both have uid and resourceVersion as preconditions (409 if the
// version differs).
EncodedWrite EncodeBindVolume(const model::BindVolume& action);
EncodedWrite EncodeSelectVolumeNode(const model::SelectVolumeNode& action);
// An event, and how often and when it was observed since. `first_time` is when that was first: with
// the event it makes the object's name, so a repeated POST of one observation makes no second
// event. `reporting_controller` is for events without a reporter; `host` is this process's
// identity. The series is a patch of the event of that name; `count` includes the first
// observation, so it is at least 2.
EncodedWrite EncodeEvent(const model::EmitEvent& event, absl::string_view reporting_controller,
                         absl::string_view host, absl::Time first_time);
EncodedWrite EncodeEventSeries(const model::EmitEvent& event, absl::Time first_time, int64_t count,
                               absl::Time last_time);

// Collection path of a kind, for lists and watches: "/api/v1/pods".
std::string CollectionPath(model::Kind kind);
// True for the kinds that the server can send as protobuf.
constexpr bool HasProtobuf(model::Kind kind) { return model::TraitsOf(kind).has_protobuf; }

}  // namespace fairlead::kube
