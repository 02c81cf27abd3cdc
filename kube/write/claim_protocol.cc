#include "kube/write/claim_protocol.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/codec/encode_parts.h"
#include "kube/write/write_answers.h"

namespace fairlead::kube {
namespace {

// The order in which devices are written has no meaning.
bool SameDevices(const std::vector<model::AllocatedDevice>& a,
                 const std::vector<model::AllocatedDevice>& b) {
  using Id = std::tuple<std::string, std::string, std::string, std::string>;
  const auto ids = [](const std::vector<model::AllocatedDevice>& devices) {
    std::vector<Id> out;
    out.reserve(devices.size());
    for (const model::AllocatedDevice& d : devices) {
      out.emplace_back(d.request, d.driver, d.pool, d.device);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  return ids(a) == ids(b);
}

class ClaimProtocol final : public WriteProtocol {
 public:
  explicit ClaimProtocol(model::ReserveClaim action)
      : wanted_(std::move(action)),
        write_(wanted_),
        what_(absl::StrCat("reserve claim ", model::Key(wanted_.ns, wanted_.name))) {}

  HttpRequest Next(absl::Time now) override {
    if (look_) {
      HttpRequest request =
          GetRequest(NamespacedPath(model::Kind::kResourceClaim, wanted_.ns, wanted_.name));
      request.accept = kJson;
      return request;
    }
    return ToRequest(NeedsFinalizer() ? EncodeClaimFinalizers(write_)
                                      : EncodeReserveClaim(write_, now));
  }

  Decision OnAnswer(const WriteAnswer& answer) override {
    if (look_) return OnClaim(answer);
    Decision decision = DecideGenerally(what_, answer);
    if (IsSuccess(answer)) return OnWritten(*answer);
    if (HasCode(answer, 409)) {
      conflict_ = std::string(decision.status.message());
      if (++conflicts_ > kClaimConflicts) return Done(absl::AbortedError(conflict_));
      look_ = true;
      return Continue();
    }
    if (IsUnknown(answer)) {
      // A superfluous finalizer does no harm: only the status is in doubt.
      if (!NeedsFinalizer()) unknown_ = true;
      look_ = true;
    }
    return decision;
  }

 private:
  bool NeedsFinalizer() const {
    const std::vector<std::string>& finalizers = write_.finalizers;
    return write_.allocate && std::find(finalizers.begin(), finalizers.end(),
                                        model::kClaimFinalizer) == finalizers.end();
  }

  Decision OnWritten(const HttpResponse& response) {
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kResourceClaim, response.content_type, response.body);
    if (!object.ok()) {
      look_ = true;
      return Continue();
    }
    const auto& claim = std::get<model::ResourceClaim>(*object);
    if (!NeedsFinalizer()) return Succeeded(claim);
    write_.resource_version = claim.meta.resource_version;
    write_.finalizers = claim.finalizers;
    if (NeedsFinalizer()) {
      return Done(absl::FailedPreconditionError(
          absl::StrCat(what_, ": it does not keep the finalizer ", model::kClaimFinalizer)));
    }
    return Continue();
  }

  // Only an answer with the claim decides an unknown outcome.
  Decision OnClaim(const WriteAnswer& answer) {
    if (!IsSuccess(answer)) {
      Decision decision = DecideGenerally(what_, answer);
      if (HasCode(answer, 404)) return decision;
      if (unknown_) {
        decision.status = absl::UnavailableError(decision.status.message());
      } else if (absl::IsUnavailable(decision.status)) {
        decision.status = absl::AbortedError(decision.status.message());
      }
      return decision;
    }
    const absl::StatusOr<Object> object =
        DecodeObject(model::Kind::kResourceClaim, answer->content_type, answer->body);
    if (!object.ok()) {
      return Retry(unknown_ ? absl::UnavailableError(object.status().message())
                            : absl::AbortedError(object.status().message()));
    }
    return Look(std::get<model::ResourceClaim>(*object));
  }

  Decision Look(const model::ResourceClaim& claim) {
    const auto refuse = [&](const auto&... why) {
      return Done(absl::FailedPreconditionError(absl::StrCat(what_, ": ", why...)));
    };
    if (claim.meta.uid != wanted_.uid) {
      return refuse("another claim has this name now: uid ", claim.meta.uid);
    }
    if (claim.meta.deletion.has_value()) return refuse("it is being deleted");
    if (claim.allocated && !SameDevices(claim.devices, wanted_.allocation.devices)) {
      return refuse("it has been allocated otherwise meanwhile");
    }
    if (!claim.allocated && !wanted_.allocate) return refuse("it is no longer allocated");
    write_ = wanted_;
    write_.resource_version = claim.meta.resource_version;
    write_.finalizers = claim.finalizers;
    write_.allocate = !claim.allocated;
    write_.pods.erase(std::remove_if(write_.pods.begin(), write_.pods.end(),
                                     [&](const model::ReserveClaim::Consumer& pod) {
                                       return claim.IsReservedFor(pod.uid);
                                     }),
                      write_.pods.end());
    if (claim.allocated && write_.pods.empty()) return Succeeded(claim);
    const auto reserved = static_cast<int64_t>(claim.reserved_for.size() + write_.pods.size());
    if (reserved > model::kMaxClaimConsumers) {
      return refuse("it is reserved for ", claim.reserved_for.size(), " pods already, of at most ",
                    model::kMaxClaimConsumers);
    }
    look_ = false;
    return Continue();
  }

  static Decision Succeeded(const model::ResourceClaim& claim) {
    Decision decision;
    decision.resource_version = claim.meta.resource_version;
    return decision;
  }

  const model::ReserveClaim wanted_;
  model::ReserveClaim write_;  // the remaining write, with the version to write to
  const std::string what_;
  bool look_ = false;
  int conflicts_ = 0;
  std::string conflict_;
};

}  // namespace

std::unique_ptr<WriteProtocol> MakeClaimProtocol(model::ReserveClaim action) {
  return std::make_unique<ClaimProtocol>(std::move(action));
}

}  // namespace fairlead::kube
