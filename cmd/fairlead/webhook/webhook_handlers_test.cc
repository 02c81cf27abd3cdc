#include "cmd/fairlead/webhook/webhook_handlers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "admission/names.h"
#include "document/json.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;

std::string ReviewOf(const std::string& resource, const std::string& object,
                     const std::string& operation = "CREATE", const std::string& old = "null") {
  const bool queue = resource == "queues";
  return absl::StrCat(
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",)",
      R"("kind":{"kind":")", queue ? "Queue" : "Pod", R"("},"resource":{"group":")",
      queue ? "scheduling.run.ai" : "", R"(","resource":")", resource,
      R"("},"namespace":"team","operation":")", operation,
      R"(","userInfo":{"username":"ann","groups":["dev"]},"object":)", object, R"(,"oldObject":)",
      old, "}}");
}

constexpr char kReviewedPod[] =
    R"({"metadata":{"name":"web","labels":{"kai.scheduler/queue":"research"}},"spec":{"schedulerName":"fairlead"}})";
constexpr char kBadQueue[] =
    R"({"metadata":{"name":"q"},"spec":{"resources":{"gpu":{"quota":8,"limit":4}}}})";

class WebhookHandlersTest : public ::testing::Test {
 protected:
  WebhookHandlersTest() { policy_.scheduler_names = {"fairlead"}; }

  void Fill() {
    model::Queue queue;
    queue.meta.name = "research";
    if (restricted_) queue.meta.annotations.Set(admission::kRestrictedAnnotation, "true");
    cache_.OnEvent(model::Upsert{queue});
    model::Namespace ns;
    ns.meta.name = "team";
    ns.meta.labels.Set(admission::kDefaultQueueLabel, "research");
    cache_.OnEvent(model::Upsert{ns});
    cache_.OnEvent(model::Synced{model::Kind::kQueue});
    cache_.OnEvent(model::Synced{model::Kind::kNamespace});
  }
  void Start() {
    handlers_ = std::make_unique<WebhookHandlers>(
        WebhookHandlers::Ports{&cache_, &transport_, &clock_, &logger_}, policy_);
  }
  Json Answer(const server::Response& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    absl::StatusOr<Json> review = Json::Parse(response.body);
    EXPECT_TRUE(review.ok()) << response.body;
    EXPECT_EQ(review->TextAt({"response", "uid"}), "u1");
    return *std::move(review);
  }
  void Rights(FakeTransport::Reply reply) {
    transport_.On("POST", admission::kAccessReviewPath, std::move(reply));
  }
  static FakeTransport::Reply Says(bool allowed) {
    return FakeTransport::Reply::Json(
        201, absl::StrCat(R"({"status":{"allowed":)", allowed ? "true" : "false", "}}"));
  }
  size_t Asked() { return transport_.Sent("POST", admission::kAccessReviewPath).size(); }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport transport_{clock_};
  std::vector<std::string> log_;
  Logger logger_{&clock_, LogLevel::kInfo,
                 [this](absl::string_view line) { log_.emplace_back(line); }};
  WebhookCache cache_;
  admission::Policy policy_;
  bool restricted_ = false;
  std::unique_ptr<WebhookHandlers> handlers_;
};

TEST_F(WebhookHandlersTest, NothingIsSaidBeforeTheClusterIsRead) {
  Start();
  EXPECT_EQ(handlers_->Validate(ReviewOf("queues", kBadQueue)).status, 503);
  EXPECT_EQ(handlers_->Default(ReviewOf("pods", kReviewedPod)).status, 503);
  Fill();
  EXPECT_EQ(handlers_->Validate("{}").status, 400);
  EXPECT_EQ(handlers_->Default("x").status, 400);
  EXPECT_EQ(handlers_->GetStats().failed, 4u);
}

TEST_F(WebhookHandlersTest, ARefusalNamesTheField) {
  Fill();
  Start();
  const Json review = Answer(handlers_->Validate(ReviewOf("queues", kBadQueue)));
  EXPECT_EQ(review.TextAt({"response", "allowed"}), "false");
  EXPECT_EQ(review.TextAt({"response", "status", "message"}),
            "Queue q: spec.resources.gpu.quota: GPU quota 8 is above its limit 4");
  EXPECT_EQ(handlers_->GetStats().invalid, 1u);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(log_[0], "user=ann"));
  EXPECT_EQ(Asked(), 0u);
}

TEST_F(WebhookHandlersTest, TheQueueOfTheNamespaceIsTheDefault) {
  Fill();
  Start();
  const Json review = Answer(handlers_->Default(
      ReviewOf("pods", R"({"metadata":{"name":"web"},"spec":{"schedulerName":"fairlead"}})")));
  std::string patch;
  ASSERT_TRUE(absl::Base64Unescape(review.TextAt({"response", "patch"}), &patch));
  EXPECT_EQ(
      patch,
      R"([{"op":"add","path":"/metadata/labels","value":{"kai.scheduler/queue":"research"}}])");
  EXPECT_EQ(Answer(handlers_->Default(ReviewOf("pods", kReviewedPod))).At({"response", "patch"}),
            nullptr);
  EXPECT_EQ(handlers_->GetStats().defaulted, 1u);
}

TEST_F(WebhookHandlersTest, WhoMayNotUseTheQueueIsRefused) {
  policy_.queue_authorization = true;
  Fill();
  Start();
  Rights(Says(false));
  const Json review = Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod)));
  EXPECT_EQ(review.TextAt({"response", "allowed"}), "false");
  EXPECT_EQ(review.TextAt({"response", "status", "code"}), "403");
  EXPECT_TRUE(absl::StrContains(review.TextAt({"response", "status", "message"}),
                                "user \"ann\" lacks the verb \"use\""));
  ASSERT_EQ(Asked(), 1u);
  const Json asked = *Json::Parse(transport_.exchanges().back().request.body);
  EXPECT_EQ(asked.TextAt({"spec", "resourceAttributes", "name"}), "research");
  EXPECT_EQ(asked.TextAt({"spec", "resourceAttributes", "namespace"}), "team");
  // A refusal is not remembered: the right may have been granted.
  Rights(Says(true));
  EXPECT_EQ(
      Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod))).TextAt({"response", "allowed"}),
      "true");
  EXPECT_EQ(Asked(), 2u);
}

TEST_F(WebhookHandlersTest, WhoWritesAnOwnerIsAskedAboutItsQueue) {
  restricted_ = true;
  Fill();
  Start();
  Rights(Says(false));
  const std::string job =
      R"({"metadata":{"name":"train","labels":{"kai.scheduler/queue":"research"}}})";
  const Json review = Answer(handlers_->Validate(ReviewOf("jobs", job)));
  EXPECT_EQ(review.TextAt({"response", "status", "code"}), "403");
  EXPECT_EQ(Asked(), 1u);
  EXPECT_EQ(Answer(handlers_->Validate(ReviewOf("jobs", job, "UPDATE", job)))
                .TextAt({"response", "allowed"}),
            "true");
  EXPECT_EQ(Asked(), 1u);
}

// Fairlead may use every queue, so its own right says nothing about users.
TEST_F(WebhookHandlersTest, AGroupOfOwnersGoesToARestrictedQueueByTheirLabelAlone) {
  restricted_ = true;
  Fill();
  Start();
  Rights(Says(true));
  const auto review = [this](const std::string& labels) {
    std::string text = ReviewOf(
        "podgroups", absl::StrCat(R"({"metadata":{"name":"pg-train","labels":{)", labels,
                                  R"(},"annotations":{"fairlead.dev/follows-owner":"true"}},)",
                                  R"("spec":{"minMember":1,"queue":"research"}})"));
    absl::StrReplaceAll({{R"("group":"","resource":"podgroups")",
                          R"("group":"scheduling.run.ai","resource":"podgroups")"}},
                        &text);
    return Answer(handlers_->Validate(text));
  };
  const Json refused = review("");
  EXPECT_EQ(refused.TextAt({"response", "status", "code"}), "403");
  EXPECT_EQ(refused.TextAt({"response", "status", "message"}),
            "PodGroup pg-train: spec.queue: the use of queue \"research\" is restricted, so the "
            "owners of its pods must name it by label kai.scheduler/queue");
  EXPECT_EQ(handlers_->GetStats().forbidden, 1u);
  EXPECT_EQ(Asked(), 0u);
  EXPECT_EQ(review(R"("kai.scheduler/queue":"research")").TextAt({"response", "allowed"}), "true");
  EXPECT_EQ(Asked(), 1u);
}

TEST_F(WebhookHandlersTest, APermissionIsBelievedForSomeSeconds) {
  restricted_ = true;
  Fill();
  Start();
  Rights(Says(true));
  for (int i = 0; i < 5; ++i) Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod)));
  EXPECT_EQ(Asked(), 1u);
  clock_.Advance(WebhookHandlers::kAllowedLasts);
  Rights(Says(false));
  EXPECT_EQ(
      Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod))).TextAt({"response", "allowed"}),
      "false");
  EXPECT_EQ(handlers_->GetStats().forbidden, 1u);
}

TEST_F(WebhookHandlersTest, OnlyRestrictedQueuesAreAskedAbout) {
  Fill();
  Start();
  Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod)));
  EXPECT_EQ(Asked(), 0u);
}

TEST_F(WebhookHandlersTest, ALateAnswerAdmitsUnlessConfiguredOtherwise) {
  restricted_ = true;
  Fill();
  for (const bool closed : {false, true}) {
    policy_.authorization_fails_closed = closed;
    Start();
    for (const auto& reply :
         {FakeTransport::Reply::Hold(), FakeTransport::Reply::Json(500, "{}"),
          FakeTransport::Reply::Json(200, "x"),
          FakeTransport::Reply::Failure(absl::UnavailableError("no connection"))}) {
      Rights(reply);
      const absl::Duration before = clock_.Steady();
      const Json review = Answer(handlers_->Validate(ReviewOf("pods", kReviewedPod)));
      EXPECT_EQ(review.TextAt({"response", "allowed"}), closed ? "false" : "true");
      EXPECT_LE(clock_.Steady() - before, WebhookHandlers::kAccessWait);
      const Json* const warnings = review.At({"response", "warnings"});
      EXPECT_EQ(warnings == nullptr ? 0u : warnings->items().size(), closed ? 0u : 1u);
    }
    EXPECT_EQ(handlers_->GetStats().unauthorized, 4u);
  }
}

TEST_F(WebhookHandlersTest, PodsOfOthersAreNeverAskedAbout) {
  policy_.queue_authorization = true;
  policy_.authorization_fails_closed = true;
  Fill();
  Start();
  Rights(Says(false));
  const std::string other =
      R"({"metadata":{"name":"w","annotations":{"gpu-fraction":"9"}},"spec":{"schedulerName":"x"}})";
  EXPECT_EQ(Answer(handlers_->Validate(ReviewOf("pods", other))).TextAt({"response", "allowed"}),
            "true");
  EXPECT_EQ(Answer(handlers_->Validate(ReviewOf("pods", "null", "DELETE", kReviewedPod)))
                .TextAt({"response", "allowed"}),
            "true");
  EXPECT_EQ(Asked(), 0u);
}

}  // namespace
}  // namespace fairlead::cmd
