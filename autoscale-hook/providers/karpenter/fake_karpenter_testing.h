// A stand-in for Karpenter and its API server, in virtual time. It does what Karpenter's
// documentation and tests say of claims that others create:
//   - 2 s after its creation a claim is launched: condition Launched, providerID. 30 s later its
//     node registers, and 30 s after that it is initialised.
//   - A claim that cannot be launched for want of capacity is deleted at once. Any other failure is
//     kept as condition Launched=Unknown, and the claim is deleted after 5 minutes.
//   - A claim that is deleted stays, with deletionTimestamp, until its machine is gone (10 s).
//
// Ownership: does not own time and calls. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/karpenter/claim_api.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {

class FakeKarpenter final : public ClaimApi {
 public:
  FakeKarpenter(VirtualTime* time, BackEndCalls* calls) : time_(time), calls_(calls) {}

  struct Claim {
    Json body;  // as created
    std::string uid, type, request, provider_id;
    bool deleting = false, registered = false, initialized = false;
    std::string reason, message;  // of Launched=Unknown
    std::string status_override;  // JSON of the status instead, for hostile input
  };

  void Create(const std::string& name, std::string body, Done done) override {
    calls_->Call(/*writes=*/true,
                 [this, name, body = std::move(body)] {
                   ++creates;
                   return Add(name, *Json::Parse(body));
                 },
                 std::move(done));
  }
  void Delete(const std::string& name, const std::string& uid, Done done) override {
    calls_->Call(/*writes=*/true,
                 [this, name, uid]() -> absl::Status {
                   ++deletes;
                   auto it = claims.find(name);
                   if (it == claims.end()) return absl::NotFoundError(name);
                   if (it->second.uid != uid) return absl::FailedPreconditionError("another uid");
                   BeginDeletion(name);
                   return absl::OkStatus();
                 },
                 std::move(done));
  }
  void List(const std::string& continuation, PageDone done) override {
    auto page = std::make_shared<absl::StatusOr<ClaimPage>>(absl::UnknownError("not listed"));
    calls_->Call(/*writes=*/false,
                 [this, continuation, page] {
                   ++lists;
                   *page = DecodeClaimPage(PageText(continuation));
                   return absl::OkStatus();
                 },
                 [page, done = std::move(done)](const absl::Status& status) {
                   done(status.ok() ? std::move(*page) : absl::StatusOr<ClaimPage>(status));
                 });
  }

  void LastWarning(const std::string& name, const std::string& /*uid*/, TextDone done) override {
    auto text = std::make_shared<std::string>();
    calls_->Call(/*writes=*/false,
                 [this, name, text]() -> absl::Status {
                   if (events_are_forbidden) return absl::PermissionDeniedError("events");
                   if (auto it = warnings.find(name); it != warnings.end()) *text = it->second;
                   return absl::OkStatus();
                 },
                 [text, done = std::move(done)](const absl::Status& status) {
                   done(status.ok() ? absl::StatusOr<std::string>(*text) : status);
                 });
  }

  // As a user would, or Karpenter itself.
  void BeginDeletion(const std::string& name) {
    Claim& claim = claims.at(name);
    if (claim.deleting) return;
    claim.deleting = true;
    const absl::Duration drain = absl::Seconds(claim.provider_id.empty() ? 1 : 10);
    After(drain, name, [this, name](Claim& gone) {
      machines.erase(gone.provider_id);
      claims.erase(name);
    });
  }
  absl::Status Add(const std::string& name, const Json& body) {
    if (claims.contains(name)) return absl::AlreadyExistsError("it exists");
    Claim& claim = claims[name];
    claim.body = body;
    claim.uid = absl::StrCat("claim-uid-", ++made_);
    claim.request = body.TextAt({"metadata", "labels", model::kNodeRequestLabel});
    if (const Json* requirements = body.At({"spec", "requirements"}); requirements != nullptr) {
      claim.type = requirements->items().at(0).Find("values")->items().at(0).text();
    }
    if (claim.type.empty()) return absl::OkStatus();
    After(absl::Seconds(claim.type == kLateType ? 240 : 2), name,
          [this, name](Claim& due) { Launch(name, due); });
    return absl::OkStatus();
  }

  std::map<std::string, Claim> claims;
  std::map<std::string, std::string> machines;  // provider id -> request
  std::map<std::string, std::string> warnings;  // by claim
  bool events_are_forbidden = false;
  int creates = 0, deletes = 0, lists = 0;
  size_t page_size = 2;
  std::string extra_items;  // JSON items, each after a comma, on the last page

 private:
  void Launch(const std::string& name, Claim& claim) {
    if (claim.type == kNoneType) return BeginDeletion(name);
    if (claim.type == kNeverType) {
      claim.reason = "LaunchFailed";
      claim.message = "no answer of the cloud";
      return After(absl::Minutes(5), name, [this, name](Claim&) { BeginDeletion(name); });
    }
    claim.provider_id = absl::StrCat("aws:///z1/i-", made_, "-", name);
    machines[claim.provider_id] = claim.request;
    After(absl::Seconds(30), name, [this, name](Claim& up) {
      up.registered = true;
      After(absl::Seconds(30), name, [](Claim& ready) { ready.initialized = true; });
    });
  }
  // Nothing happens if the claim has gone, or is being deleted and was not then.
  void After(absl::Duration delay, const std::string& name, std::function<void(Claim&)> callback) {
    const Claim& now = claims.at(name);
    time_->After(delay, [this, name, uid = now.uid, deleting = now.deleting, callback] {
      auto it = claims.find(name);
      if (it == claims.end() || it->second.uid != uid) return;
      if (it->second.deleting == deleting) callback(it->second);
    });
  }
  std::string PageText(const std::string& continuation) {
    std::string snapshot = continuation.substr(0, continuation.find('/'));
    size_t offset = 0;
    if (continuation.empty()) {
      snapshot = absl::StrCat(++snapshots_made_);
      std::vector<std::string>& items = snapshots_[snapshot];
      for (const auto& [name, claim] : claims) {
        if (!claim.request.empty()) items.push_back(ItemText(claim));
      }
    } else {
      EXPECT_TRUE(absl::SimpleAtoi(continuation.substr(snapshot.size() + 1), &offset));
    }
    const std::vector<std::string>& items = snapshots_[snapshot];
    const size_t end = std::min(items.size(), offset + page_size);
    std::string text;
    for (; offset < end; ++offset) absl::StrAppend(&text, text.empty() ? "" : ",", items[offset]);
    std::string next;
    if (end < items.size()) next = absl::StrCat(snapshot, "/", end);
    if (next.empty()) {
      absl::StrAppend(&text,
                      text.empty() && !extra_items.empty() ? extra_items.substr(1) : extra_items);
      snapshots_.erase(snapshot);
    }
    return absl::StrCat(R"({"kind":"NodeClaimList","metadata":{"continue":")", next,
                        R"("},"items":[)", text, "]}");
  }
  static std::string ItemText(const Claim& claim) {
    Json item = claim.body;
    Json* meta = item.Find("metadata");
    meta->Set("uid", claim.uid);
    if (claim.deleting) meta->Set("deletionTimestamp", "2026-01-01T00:00:00Z");
    if (!claim.status_override.empty()) {
      return item.Set("status", *Json::Parse(claim.status_override)).Compact();
    }
    Json status = Json::Object();
    Json conditions = Json::Array();
    const auto add = [&conditions](const char* type, bool is_true, const std::string& reason,
                                   const std::string& message) {
      Json condition = Json::Object();
      condition.Set("type", type).Set("status", is_true ? "True" : "Unknown");
      condition.Set("reason", reason).SetUnlessEmpty("message", message);
      conditions.Add(std::move(condition));
    };
    const std::string waits = "AwaitingReconciliation";
    const bool launched = !claim.provider_id.empty();
    add("Launched", launched,
        launched               ? "Launched"
        : claim.reason.empty() ? waits
                               : claim.reason,
        claim.message);
    add("Registered", claim.registered, claim.registered ? "Registered" : "NodeNotFound", "");
    add("Initialized", claim.initialized, claim.initialized ? "Initialized" : waits, "");
    status.SetUnlessEmpty("providerID", claim.provider_id);
    status.Set("conditions", std::move(conditions));
    item.Set("status", std::move(status));
    return item.Compact();
  }

  VirtualTime* time_;
  BackEndCalls* calls_;
  int made_ = 0, snapshots_made_ = 0;
  std::map<std::string, std::vector<std::string>> snapshots_;
};

}  // namespace fairlead::hook
