#include "kube/write/write_protocol.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/encode_parts.h"
#include "kube/write/claim_protocol.h"
#include "kube/write/extended_claim_protocol.h"
#include "kube/write/write_answers.h"
#include "scheduler/model/group_kind.h"

namespace fairlead::kube {
namespace {

using Answer = WriteAnswer;
using Next = Decision::Next;

class BindProtocol final : public WriteProtocol {
 public:
  explicit BindProtocol(model::BindPod bind)
      : bind_(std::move(bind)),
        what_(
            absl::StrCat("bind pod ", model::Key(bind_.ns, bind_.name), " to node ", bind_.node)) {}

  HttpRequest Next(absl::Time) override {
    return verify_ ? GetRequest(PodPath(bind_.ns, bind_.name)) : ToRequest(EncodeBind(bind_));
  }

  Decision OnAnswer(const Answer& answer) override {
    if (verify_) return OnPod(answer);
    if (HasCode(answer, 409)) {
      conflict_ = Describe(what_, answer);
      verify_ = true;
      return Continue();
    }
    if (IsUnknown(answer)) unknown_ = true;
    return DecideGenerally(what_, answer);
  }

 private:
  // The pod after a 409, which says nothing about the reason.
  Decision OnPod(const Answer& answer) {
    Decision decision = DecideGenerally(what_, answer);
    decision.next = Next::kDone;
    if (HasCode(answer, 404)) return decision;
    // A read that failed says nothing about the binding, and the 409 refused it.
    decision.status = absl::FailedPreconditionError(conflict_);
    if (!IsSuccess(answer)) return decision;
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kPod, answer->content_type, answer->body);
    if (!object.ok()) return decision;
    const model::Pod& pod = std::get<model::Pod>(*object);
    if (pod.meta.uid != bind_.uid) {
      decision.status = absl::FailedPreconditionError(
          absl::StrCat(what_, ": another pod has this name now: uid ", pod.meta.uid));
    } else if (pod.node_name == bind_.node) {
      decision.status = absl::OkStatus();
    } else if (!pod.node_name.empty()) {
      decision.status = absl::FailedPreconditionError(
          absl::StrCat(what_, ": it is bound to node ", pod.node_name));
    }
    return decision;
  }

  model::BindPod bind_;
  std::string what_;
  bool verify_ = false;
  std::string conflict_;  // the server's message, after a 409
};

class EvictProtocol final : public WriteProtocol {
 public:
  explicit EvictProtocol(model::EvictPod evict)
      : evict_(std::move(evict)),
        what_(absl::StrCat("evict pod ", model::Key(evict_.ns, evict_.name))) {}

  HttpRequest Next(absl::Time now) override {
    return ToRequest(done_ ? EncodeDisruptionTarget(evict_, now) : EncodeEvict(evict_));
  }

  Decision OnAnswer(const Answer& answer) override {
    Decision decision = DecideGenerally(what_, answer);
    if (done_) {
      decision.status = absl::OkStatus();
      return decision;
    }
    if (IsUnknown(answer)) {
      unknown_ = true;
    } else if (unknown_ && (HasCode(answer, 404) || HasCode(answer, 409))) {
      decision.status = absl::OkStatus();
    } else if (HasCode(answer, 429) || IsSuccess(answer)) {
      // Flow control answers in plain text; a Status comes from the eviction itself.
      const ApiStatus said = DecodeStatus(answer->content_type, answer->body);
      if (said.code == 429 || said.code >= 500) {
        decision = Done(absl::ResourceExhaustedError(
            absl::StrCat(what_, ": ", said.message, said.causes.empty() ? "" : " ", said.causes)));
      } else if (IsSuccess(answer)) {
        done_ = true;
        decision.next = Next::kFollowUp;
      }
    }
    return decision;
  }

 private:
  model::EvictPod evict_;
  std::string what_;
};

// One request that may be repeated safely.
class SimpleProtocol final : public WriteProtocol {
 public:
  enum class Shape { kCreate, kDelete, kApply, kUpdate };
  using Encode = std::function<EncodedWrite(absl::Time)>;
  SimpleProtocol(std::string what, Shape shape, Encode encode)
      : what_(std::move(what)), shape_(shape), encode_(std::move(encode)) {}

  HttpRequest Next(absl::Time now) override { return ToRequest(encode_(now)); }

  Decision OnAnswer(const Answer& answer) override {
    Decision decision =
        shape_ == Shape::kCreate ? DecideCreation(what_, answer) : DecideGenerally(what_, answer);
    if (IsUnknown(answer)) unknown_ = true;
    if (HasCode(answer, 404) && shape_ == Shape::kDelete && unknown_) {
      decision.status = absl::OkStatus();
    }
    return decision;
  }

 private:
  std::string what_;
  Shape shape_;
  Encode encode_;
};

// A patch with the uid as precondition, which may be repeated safely.
class PatchProtocol final : public WriteProtocol {
 public:
  using Encode = std::function<EncodedWrite(absl::Time, StatusShape)>;
  struct Target {
    model::Kind kind;
    std::string path, uid;
    bool custom_status;  // whether there are two shapes
    // Reads the object after a refusal. True if the patch assumed a state that is not true; it will
    // be encoded again.
    std::function<bool(const Object&)> correct = nullptr;
  };
  PatchProtocol(std::string what, Target target, Encode encode)
      : what_(std::move(what)), target_(std::move(target)), encode_(std::move(encode)) {}

  HttpRequest Next(absl::Time now) override {
    if (verify_) return GetRequest(target_.path);
    const bool whole = refusals_ % 2 == 1;
    return ToRequest(encode_(now, whole ? StatusShape::kWhole : StatusShape::kFields));
  }

  Decision OnAnswer(const Answer& answer) override {
    if (verify_) return OnObject(answer);
    Decision decision = DecideGenerally(what_, answer);
    if (IsUnknown(answer)) unknown_ = true;
    if (!HasCode(answer, 422)) return decision;
    ++refusals_;
    // The shapes are refused with different messages, and only one of them tells what is wrong.
    const std::string text(decision.status.message());
    if (text != refusal_) absl::StrAppend(&refusal_, refusal_.empty() ? "" : "; ", text);
    verify_ = true;
    return Continue();
  }

 private:
  Decision OnObject(const Answer& answer) {
    if (!IsSuccess(answer)) {
      Decision decision = DecideGenerally(what_, answer);
      // A read that failed has changed nothing; an earlier patch may have.
      if (absl::IsUnavailable(decision.status) && !unknown_) {
        decision.status = absl::AbortedError(decision.status.message());
      }
      return decision;
    }
    const absl::StatusOr<Object> object =
        DecodeObject(target_.kind, answer->content_type, answer->body);
    if (!object.ok()) return Retry(absl::AbortedError(object.status().message()));
    const std::string& uid = MetaOf(*object).uid;
    if (!target_.uid.empty() && uid != target_.uid) {
      return Done(absl::FailedPreconditionError(
          absl::StrCat(what_, ": another object has this name now: uid ", uid)));
    }
    if (target_.correct != nullptr && target_.correct(*object)) {
      if (++corrections_ > kStatusConflicts) return Done(absl::AbortedError(refusal_));
      --refusals_;  // the shape was not the reason
    } else if (refusals_ >= (target_.custom_status ? kStatusShapes : 1)) {
      return Done(absl::InvalidArgumentError(refusal_));
    }
    verify_ = false;
    return Continue();
  }

  const std::string what_;
  const Target target_;
  const Encode encode_;
  bool verify_ = false;
  int refusals_ = 0;
  int corrections_ = 0;
  std::string refusal_;  // the server's words
};

// Removes our finalizer from the request, then deletes it. A request that is being deleted is gone
// after the first step.
class EndRequestProtocol final : public WriteProtocol {
 public:
  explicit EndRequestProtocol(model::DeleteNodeRequest end)
      : end_(std::move(end)), what_(absl::StrCat("delete node request ", end_.name)) {
    released_ = EncodeNodeRequestFinalizer(end_).method.empty();
  }

  HttpRequest Next(absl::Time) override {
    return ToRequest(released_ ? EncodeDeleteNodeRequest(end_) : EncodeNodeRequestFinalizer(end_));
  }

  Decision OnAnswer(const Answer& answer) override {
    if (HasCode(answer, 404)) return Done(absl::OkStatus());
    Decision decision = DecideGenerally(what_, answer);
    if (released_ || !IsSuccess(answer)) return decision;
    released_ = true;
    return Continue();
  }

 private:
  model::DeleteNodeRequest end_;
  std::string what_;
  bool released_ = false;
};

class TaintProtocol final : public WriteProtocol {
 public:
  explicit TaintProtocol(model::SetNodeTaint set)
      : set_(std::move(set)),
        what_(absl::StrCat(set_.present ? "add taint " : "remove taint ", set_.taint.key,
                           set_.present ? " to node " : " from node ", set_.node)) {}

  HttpRequest Next(absl::Time) override {
    return node_.has_value() ? ToRequest(EncodeNodeTaints(*node_))
                             : GetRequest(ObjectPath(model::Kind::kNode, set_.node));
  }

  Decision OnAnswer(const Answer& answer) override {
    if (node_.has_value()) return OnPatched(answer);
    Decision decision = DecideGenerally(what_, answer);
    if (!IsSuccess(answer)) {
      // A read that failed has changed nothing; an earlier patch may have.
      if (absl::IsUnavailable(decision.status) && !unknown_) {
        decision.status = absl::AbortedError(decision.status.message());
      }
      return decision;
    }
    absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kNode, answer->content_type, answer->body);
    if (!object.ok()) return Retry(absl::AbortedError(object.status().message()));
    return OnNode(std::move(std::get<model::Node>(*object)));
  }

 private:
  Decision OnNode(model::Node node) {
    if (node.meta.uid != set_.uid) {
      return Done(absl::FailedPreconditionError(
          absl::StrCat(what_, ": another node has this name now: uid ", node.meta.uid)));
    }
    if (!Recompute(node.taints)) return Done(absl::OkStatus());
    node_ = std::move(node);
    return Continue();
  }

  // A taint's identity is its key and effect. False if nothing has to change.
  bool Recompute(std::vector<model::Taint>& taints) const {
    const auto same = [this](const model::Taint& taint) {
      return taint.key == set_.taint.key && taint.effect == set_.taint.effect;
    };
    const auto found = std::find_if(taints.begin(), taints.end(), same);
    if (!set_.present) {
      if (found == taints.end()) return false;
      taints.erase(std::remove_if(taints.begin(), taints.end(), same), taints.end());
      return true;
    }
    if (found == taints.end()) {
      taints.push_back(set_.taint);
      return true;
    }
    if (found->value == set_.taint.value) return false;
    found->value = set_.taint.value;
    return true;
  }

  Decision OnPatched(const Answer& answer) {
    node_.reset();  // the next step begins with a new read
    Decision decision = DecideGenerally(what_, answer);
    if (IsUnknown(answer)) unknown_ = true;
    if (!HasCode(answer, 409)) return decision;
    decision.status = absl::AbortedError(decision.status.message());
    decision.next = ++conflicts_ < kTaintConflicts ? Next::kContinue : Next::kDone;
    return decision;
  }

  model::SetNodeTaint set_;
  std::string what_;
  std::optional<model::Node> node_;  // the node to be written
  int conflicts_ = 0;
};

// What is patched by an action about a group of the kind.
template <typename T>
PatchProtocol::Target GroupTarget(model::Kind kind, const T& action) {
  return {kind, NamespacedPath(kind, action.ns, action.name), action.uid, false};
}

std::unique_ptr<WriteProtocol> Simple(std::string what, SimpleProtocol::Shape shape,
                                      SimpleProtocol::Encode encode) {
  return std::make_unique<SimpleProtocol>(std::move(what), shape, std::move(encode));
}

struct Maker {
  using Result = std::unique_ptr<WriteProtocol>;
  using Shape = SimpleProtocol::Shape;

  // An extender makes the binding: no request of ours.
  Result operator()(const model::BindPod& a) const {
    if (a.extender >= 0) return nullptr;
    return std::make_unique<BindProtocol>(a);
  }
  Result operator()(const model::EvictPod& a) const { return std::make_unique<EvictProtocol>(a); }
  Result operator()(const model::SetNodeTaint& a) const {
    return std::make_unique<TaintProtocol>(a);
  }
  Result operator()(const model::SetPodUnschedulable& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("status of pod ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{model::Kind::kPod, PodPath(a.ns, a.name), a.uid, false},
        [a](absl::Time now, StatusShape) { return EncodePodUnschedulable(a, now); });
  }
  Result operator()(const model::NominateNode& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("nominated node of pod ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{model::Kind::kPod, PodPath(a.ns, a.name), a.uid, false},
        [a](absl::Time, StatusShape) { return EncodeNominatedNode(a); });
  }
  Result operator()(const model::SetPodGroupSchedulability& a) const {
    if (a.native) {
      return std::make_unique<PatchProtocol>(
          absl::StrCat("verdict of pod group ", model::Key(a.ns, a.name)),
          GroupTarget(model::Kind::kNativePodGroup, a), [a](absl::Time now, StatusShape shape) {
            return EncodePodGroupSchedulability(a, now, shape);
          });
    }
    const auto write = std::make_shared<model::SetPodGroupSchedulability>(a);
    const auto correct = [write](const Object& object) {
      const auto& found = std::get<model::PodGroup>(object).scheduling_conditions;
      if (found == write->conditions) return false;
      write->conditions = found;
      return true;
    };
    return std::make_unique<PatchProtocol>(
        absl::StrCat("status of pod group ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{model::Kind::kPodGroup,
                              NamespacedPath(model::Kind::kPodGroup, a.ns, a.name), a.uid, true,
                              correct},
        [write](absl::Time now, StatusShape shape) {
          return EncodePodGroupSchedulability(*write, now, shape);
        });
  }
  Result operator()(const model::SetPodGroupAnnotations& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("annotations of pod group ", model::Key(a.ns, a.name)),
        GroupTarget(model::PodGroupKind(a.native), a),
        [a](absl::Time, StatusShape) { return EncodePodGroupAnnotations(a); });
  }
  Result operator()(const model::SetPodGroupScheduled& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("condition of pod group ", model::Key(a.ns, a.name)),
        GroupTarget(model::Kind::kNativePodGroup, a),
        [a](absl::Time now, StatusShape) { return EncodePodGroupScheduled(a, now); });
  }
  Result operator()(const model::SetConditions& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("conditions of ", model::KindTitle(a.kind), " ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{a.kind, PathOf(a.kind, a.ns, a.name), a.uid, false},
        [a](absl::Time now, StatusShape) { return EncodeConditions(a, now); });
  }
  Result operator()(const model::SetKaiStatus& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("counts of ", model::KindTitle(a.kind), " ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{a.kind, PathOf(a.kind, a.ns, a.name), a.uid, true},
        [a](absl::Time, StatusShape shape) { return EncodeKaiStatus(a, shape); });
  }
  Result operator()(const model::CreateNodeRequest& a) const {
    return Simple(absl::StrCat("create node request ", a.request->meta.name), Shape::kCreate,
                  [a](absl::Time) { return EncodeCreateNodeRequest(a.request); });
  }
  Result operator()(const model::UpdateNodeRequestStatus& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("status of node request ", a.request->meta.name),
        PatchProtocol::Target{model::Kind::kNodeRequest,
                              ObjectPath(model::Kind::kNodeRequest, a.request->meta.name),
                              a.request->meta.uid, true},
        [a](absl::Time, StatusShape shape) { return EncodeNodeRequestStatus(a.request, shape); });
  }
  Result operator()(const model::DeleteNodeRequest& a) const {
    return std::make_unique<EndRequestProtocol>(a);
  }
  Result operator()(const model::StoreUsage& a) const {
    return Simple(absl::StrCat("store usage in config map ", model::Key(a.ns, a.name)),
                  Shape::kApply, [a](absl::Time) { return EncodeStoreUsage(a); });
  }
  Result operator()(const model::CreateGpuReservation& a) const {
    return Simple(absl::StrCat("create reservation pod ", model::Key(a.ns, a.name)), Shape::kCreate,
                  [a](absl::Time) { return EncodeGpuReservation(a); });
  }
  Result operator()(const model::DeletePod& a) const {
    return Simple(absl::StrCat("delete pod ", model::Key(a.ns, a.name)), Shape::kDelete,
                  [a](absl::Time) { return EncodeDeletePod(a); });
  }
  Result operator()(const model::ApplyConfigMap& a) const {
    return Simple(absl::StrCat("config map ", model::Key(a.ns, a.name)), Shape::kApply,
                  [a](absl::Time) { return EncodeConfigMap(a); });
  }
  Result operator()(const model::ReserveClaim& a) const { return MakeClaimProtocol(a); }
  Result operator()(const model::SetExtendedClaim& a) const { return MakeExtendedClaimProtocol(a); }
  Result operator()(const model::DeallocateClaim& a) const {
    return Simple(absl::StrCat("deallocate claim ", model::Key(a.ns, a.name)), Shape::kUpdate,
                  [a](absl::Time) { return EncodeDeallocateClaim(a); });
  }
  Result operator()(const model::BindVolume& a) const {
    return Simple(
        absl::StrCat("bind volume ", a.volume, " to claim ", model::Key(a.claim_ns, a.claim_name)),
        Shape::kUpdate, [a](absl::Time) { return EncodeBindVolume(a); });
  }
  Result operator()(const model::SelectVolumeNode& a) const {
    return Simple(
        absl::StrCat("select node ", a.node, " for volume claim ", model::Key(a.ns, a.name)),
        Shape::kUpdate, [a](absl::Time) { return EncodeSelectVolumeNode(a); });
  }
  Result operator()(const model::WritePodGroup& a) const {
    const model::ObjectMeta& meta = a.group->meta;
    if (meta.uid.empty()) {
      return Simple(absl::StrCat("create pod group ", model::Key(meta)), Shape::kCreate,
                    [a](absl::Time) { return EncodeCreatePodGroup(a.group); });
    }
    return std::make_unique<PatchProtocol>(
        absl::StrCat("update pod group ", model::Key(meta)),
        GroupTarget(model::Kind::kPodGroup, meta),
        [a](absl::Time, StatusShape) { return EncodePodGroupUpdate(a.group); });
  }
  Result operator()(const model::SetPodGroup& a) const {
    return std::make_unique<PatchProtocol>(
        absl::StrCat("pod group of pod ", model::Key(a.ns, a.name)),
        PatchProtocol::Target{model::Kind::kPod, NamespacedPath(model::Kind::kPod, a.ns, a.name),
                              a.uid, false},
        [a](absl::Time, StatusShape) { return EncodePodGroupOf(a); });
  }
  Result operator()(const model::ReadObject&) const { return nullptr; }
  Result operator()(const model::SetSuspended&) const { return nullptr; }
  Result operator()(const model::ListSuspended&) const { return nullptr; }
  Result operator()(const model::AskExtenders&) const { return nullptr; }
  Result operator()(const model::CallPlugin&) const { return nullptr; }
  Result operator()(const model::EmitEvent&) const { return nullptr; }
  Result operator()(const model::LaunchNode&) const { return nullptr; }
  Result operator()(const model::TerminateNode&) const { return nullptr; }
};

}  // namespace

std::unique_ptr<WriteProtocol> MakeWriteProtocol(const model::Action& action) {
  return std::visit(Maker(), action.what);
}

}  // namespace fairlead::kube
