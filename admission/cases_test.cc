// The cases of admission/testdata, which are text: README.md there has their fields.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "admission/access.h"
#include "admission/defaults.h"
#include "admission/validate.h"
#include "base/testing/random.h"
#include "document/yaml.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace fairlead::admission {
namespace {

constexpr char kFolder[] = "admission/testdata";

std::vector<Json> CasesOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  absl::StatusOr<std::vector<Json>> cases = LoadYaml(text.str(), {.file_name = file.string()});
  EXPECT_TRUE(cases.ok()) << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<Json>();
}

Json Field(const Json& test, absl::string_view name) {
  const Json* const value = test.Find(name);
  return value == nullptr ? Json() : *value;
}

// As the API server would send it, by way of its text.
std::string ReviewText(const Json& test) {
  const bool deletes = test.TextAt({"operation"}) == "DELETE";
  const Json object = Field(test, deletes ? "old" : "object");
  const std::string version = object.TextAt({"apiVersion"});
  const size_t slash = version.find('/');
  Json resource = Json::Object();
  resource.Set("group", slash == std::string::npos ? "" : version.substr(0, slash));
  resource.Set("version", version.substr(slash == std::string::npos ? 0 : slash + 1));
  const std::string kind = object.TextAt({"kind"});
  resource.Set("resource", absl::StrCat(absl::AsciiStrToLower(kind), "s"));
  Json of_kind = Json::Object();
  of_kind.Set("kind", kind);
  Json request = Json::Object();
  const std::string operation = test.TextAt({"operation"});
  request.Set("uid", "u1").Set("operation", operation.empty() ? "CREATE" : operation);
  request.Set("resource", std::move(resource)).Set("kind", std::move(of_kind));
  request.Set("namespace", object.TextAt({"metadata", "namespace"}));
  request.Set("name", object.TextAt({"metadata", "name"}));
  request.Set("object", Field(test, "object")).Set("oldObject", Field(test, "old"));
  Json review = Json::Object();
  review.Set("apiVersion", "admission.k8s.io/v1").Set("kind", "AdmissionReview");
  review.Set("request", std::move(request));
  return review.Compact();
}

Cluster ClusterOf(const Json& test) {
  Cluster cluster;
  const Json queues = Field(test, "queues");
  for (const Json& item : queues.items()) {
    auto object = kube::DecodeObject(model::Kind::kQueue, kube::kJson, item.Compact());
    EXPECT_TRUE(object.ok()) << object.status();
    if (!object.ok()) continue;
    const auto& queue = std::get<model::Queue>(*object);
    cluster.queues[queue.meta.name] = std::make_shared<const model::Queue>(queue);
  }
  const Json defaults = Field(test, "defaultQueues");
  for (const auto& [ns, queue] : defaults.fields()) cluster.default_queues[ns] = queue.text();
  return cluster;
}

Policy PolicyOf(const Json& test) {
  Policy policy;
  policy.scheduler_names = {"fairlead", "kai-scheduler"};
  policy.guests = {"guest-scheduler"};
  policy.default_queue = "default-queue";
  policy.queue_authorization = test.TextAt({"policy", "queueAuthorization"}) == "true";
  return policy;
}

void ExpectParts(const Json& parts, const std::vector<std::string>& texts) {
  EXPECT_EQ(parts.items().size(), texts.size()) << absl::StrJoin(texts, "\n");
  for (size_t i = 0; i < std::min(parts.items().size(), texts.size()); ++i) {
    EXPECT_TRUE(absl::StrContains(texts[i], parts.items()[i].text())) << texts[i] << "\nlacks\n"
                                                                      << parts.items()[i].text();
  }
}

void Judge(const Json& test) {
  static const std::set<std::string> kFields = {"case",   "operation", "object",   "old",
                                                "policy", "queues",    "refused",  "defaultQueues",
                                                "patch",  "warnings",  "authorize"};
  for (const auto& [field, value] : test.fields()) {
    EXPECT_TRUE(kFields.contains(field)) << field;
  }
  const absl::StatusOr<Request> request = ReadReview(ReviewText(test));
  ASSERT_TRUE(request.ok()) << request.status();
  const Cluster cluster = ClusterOf(test);
  const Policy policy = PolicyOf(test);
  const Response response = Validate(*request, cluster, policy);
  const Json refused = Field(test, "refused");
  EXPECT_EQ(response.allowed, refused.items().empty()) << response.message;
  for (const Json& part : refused.items()) {
    EXPECT_TRUE(absl::StrContains(response.message, part.text())) << response.message << "\nlacks\n"
                                                                  << part.text();
  }
  ExpectParts(Field(test, "warnings"), response.warnings);
  EXPECT_EQ(Default(*request, cluster, policy).patch.Compact(), Field(test, "patch").Compact());
  std::vector<std::string> asked = QueuesToAuthorize(*request, cluster, policy);
  for (std::string& queue : asked) {
    if (!IsFromLabel(*request, queue)) queue += " (not from a label)";
  }
  EXPECT_EQ(absl::StrJoin(asked, ", "), test.TextAt({"authorize"}));
}

// By file and case.
std::vector<std::pair<std::string, Json>> AllCases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::string, Json>> cases;
  for (const std::filesystem::path& file : files) {
    for (Json& test : CasesOf(file)) {
      cases.emplace_back(absl::StrCat(file.string(), ": ", test.TextAt({"case"})), std::move(test));
    }
  }
  return cases;
}

TEST(AdmissionCases, AllFiles) {
  const auto cases = AllCases();
  EXPECT_GE(cases.size(), 40u);
  for (const auto& [name, test] : cases) {
    SCOPED_TRACE(name);
    Judge(test);
  }
}

// The bytes of the cases' reviews, some of them changed: there is an answer or an error.
TEST(AdmissionCases, MutatedReviews) {
  constexpr int kTimes = 30;
  testing::Random random;
  SCOPED_TRACE(random.Describe());
  const auto below = [&random](size_t n) {
    return static_cast<size_t>(random.Between(0, static_cast<int64_t>(n) - 1));
  };
  for (const auto& [name, test] : AllCases()) {
    const Cluster cluster = ClusterOf(test);
    const Policy policy = PolicyOf(test);
    for (int i = 0; i < kTimes; ++i) {
      std::string text = ReviewText(test);
      for (size_t changes = 1 + below(3); changes > 0; --changes) {
        const size_t at = below(text.size());
        static constexpr absl::string_view kBytes = "{}[]\",:0-e\\\x01\xff";
        if (below(3) == 0) {
          text.erase(at, 1 + below(8));
        } else {
          text[at] = kBytes[below(kBytes.size())];
        }
        if (text.empty()) break;
      }
      const absl::StatusOr<Request> request = ReadReview(text);
      if (!request.ok()) continue;
      const Response response = Validate(*request, cluster, policy);
      EXPECT_TRUE(Json::Parse(WriteReview(request->uid, response)).ok()) << text;
      Default(*request, cluster, policy);
      for (const std::string& queue : QueuesToAuthorize(*request, cluster, policy)) {
        IsFromLabel(*request, queue);
      }
    }
  }
}

// Whatever is sent, there is an answer.
TEST(AdmissionCases, HostileObjects) {
  const char* const objects[] = {
      "{}",
      R"({"metadata":[]})",
      R"({"metadata":{"labels":[1],"annotations":"x"},"spec":3})",
      R"({"kind":"Node","spec":{}})",
      R"({"metadata":{"annotations":{"gpu-fraction":{}}}})",
      R"({"spec":{"schedulerName":"fairlead","containers":{"a":[]}}})",
      R"({"spec":{"resources":{"other":{"a":1,"b":[]}},"parentQueue":7}})",
      R"({"spec":{"subGroups":[null,1,{"name":[]}],"levels":"x"}})"};
  for (const char* const kind : {"pods", "queues", "podgroups", "nodepools", "noderequests"}) {
    for (const char* const object : objects) {
      for (const char* const operation : {"CREATE", "UPDATE", "DELETE", "CONNECT"}) {
        Request request;
        request.resource = kind;
        request.group = absl::string_view(kind) == "pods" ? ""
                        : absl::StartsWith(kind, "node")  ? "fairlead.dev"
                                                          : "scheduling.run.ai";
        request.kind = "K";
        request.operation = absl::string_view(operation) == "CREATE"   ? Operation::kCreate
                            : absl::string_view(operation) == "UPDATE" ? Operation::kUpdate
                                                                       : Operation::kOther;
        request.object = *Json::Parse(object);
        request.old_object = *Json::Parse("{\"spec\":[]}");
        Policy policy = PolicyOf(Json::Object());
        policy.scheduler_names.emplace_back("");
        policy.queue_authorization = true;
        const Response response = Validate(request, {}, policy);
        EXPECT_FALSE(WriteReview("u", response).empty());
        EXPECT_EQ(response.allowed, response.message.empty());
        Default(request, {}, policy);
        request.ns = "team";
        QueuesToAuthorize(request, {}, policy);
      }
    }
  }
}

TEST(AdmissionPaths, ValuesAreFoundByPath) {
  const Json object = *Json::Parse(
      R"({"spec":{"levels":[{"a":1},{"a":2}]},"metadata":{"annotations":{"x.y/z":"v"}}})");
  EXPECT_EQ(ValueAt(object, "spec.levels[1].a")->text(), "2");
  EXPECT_EQ(ValueAt(object, "metadata.annotations[x.y/z]")->text(), "v");
  EXPECT_EQ(ValueAt(object, "")->Compact(), object.Compact());
  for (const char* const path :
       {"spec.levels[2].a", "spec.levels[x]", "spec.none.a", "[", "[0", "a..b", "."}) {
    EXPECT_EQ(ValueAt(object, path), nullptr) << path;
  }
}

}  // namespace
}  // namespace fairlead::admission
