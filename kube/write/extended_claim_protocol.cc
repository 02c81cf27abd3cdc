#include "kube/write/extended_claim_protocol.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/extended_claim.h"
#include "kube/write/write_answers.h"

namespace fairlead::kube {
namespace {

// How often a claim may vanish between the refusal to make it and the look at it.
constexpr int kVanished = 4;

class ExtendedClaimProtocol final : public WriteProtocol {
 public:
  explicit ExtendedClaimProtocol(model::SetExtendedClaim action)
      : wanted_(std::move(action)),
        what_(absl::StrCat("claim for the extended resources of pod ",
                           model::Key(wanted_.ns, wanted_.name))),
        step_(wanted_.claim.empty() ? Step::kTell : Step::kReadPod) {}

  HttpRequest Next(absl::Time) override {
    switch (step_) {
      case Step::kReadPod:
        return Json(GetRequest(PodPath(wanted_.ns, wanted_.name)));
      case Step::kMake:
        return ToRequest(EncodeExtendedClaim(wanted_, requests_.requests));
      case Step::kLook:
        return Json(
            GetRequest(NamespacedPath(model::Kind::kResourceClaim, wanted_.ns, wanted_.claim)));
      case Step::kTell:
        break;
    }
    return ToRequest(EncodeExtendedClaimStatus(wanted_, requests_.mappings));
  }

  Decision OnAnswer(const WriteAnswer& answer) override {
    switch (step_) {
      case Step::kReadPod:
        return OnPod(answer);
      case Step::kMake:
        return OnMade(answer);
      case Step::kLook:
        return OnClaim(answer);
      case Step::kTell:
        break;
    }
    return OnTold(answer);
  }

 private:
  enum class Step { kReadPod, kMake, kLook, kTell };

  static HttpRequest Json(HttpRequest request) {
    request.accept = kJson;
    return request;
  }

  template <typename... Why>
  [[nodiscard]] Decision Refuse(const Why&... why) const {
    return Done(absl::FailedPreconditionError(absl::StrCat(what_, ": ", why...)));
  }

  Decision GoTo(Step step) {
    step_ = step;
    return Continue();
  }

  Decision OnPod(const WriteAnswer& answer) {
    if (!IsSuccess(answer)) return DecideGenerally(what_, answer);
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kPod, answer->content_type, answer->body);
    const auto containers = DecodeContainers(answer->body);
    if (!object.ok() || !containers.ok()) {
      return Refuse("the pod cannot be read: ",
                    object.ok() ? containers.status().message() : object.status().message());
    }
    const auto& pod = std::get<model::Pod>(*object);
    if (pod.meta.uid != wanted_.uid) {
      return Refuse("another pod has this name now: uid ", pod.meta.uid);
    }
    requests_ = MakeExtendedRequests(*containers, wanted_.resources);
    if (requests_.requests.empty()) return Refuse("no container requests any");
    return GoTo(Step::kMake);
  }

  Decision OnMade(const WriteAnswer& answer) {
    if (IsSuccess(answer)) return GoTo(Step::kTell);
    if (IsUnknown(answer)) unknown_ = true;
    Decision decision = DecideCreation(what_, answer);
    if (absl::IsAlreadyExists(decision.status)) return GoTo(Step::kLook);
    return decision;
  }

  Decision OnClaim(const WriteAnswer& answer) {
    if (HasCode(answer, 404)) {
      if (++vanished_ > kVanished) {
        return Done(absl::AbortedError(absl::StrCat(what_, ": it is there and not there")));
      }
      return GoTo(Step::kMake);
    }
    if (!IsSuccess(answer)) return DecideGenerally(what_, answer);
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kResourceClaim, answer->content_type, answer->body);
    if (!object.ok()) return Refuse(object.status().message());
    const auto& claim = std::get<model::ResourceClaim>(*object);
    if (!claim.IsOfPod(wanted_.uid))
      return Refuse("ResourceClaim ", wanted_.claim, " is not of this pod");
    return GoTo(Step::kTell);
  }

  Decision OnTold(const WriteAnswer& answer) {
    Decision decision = DecideGenerally(what_, answer);
    if (!IsSuccess(answer)) {
      if (IsUnknown(answer)) unknown_ = true;
      return decision;
    }
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kPod, answer->content_type, answer->body);
    if (object.ok() && std::get<model::Pod>(*object).extended_claim != wanted_.claim) {
      return Refuse(
          "the API server does not keep status.extendedResourceClaimStatus of the pod (is its "
          "feature gate DRAExtendedResource off?)");
    }
    return decision;
  }

  const model::SetExtendedClaim wanted_;
  const std::string what_;
  Step step_;
  ExtendedRequests requests_;
  int vanished_ = 0;
};

}  // namespace

std::unique_ptr<WriteProtocol> MakeExtendedClaimProtocol(model::SetExtendedClaim action) {
  return std::make_unique<ExtendedClaimProtocol>(std::move(action));
}

}  // namespace fairlead::kube
