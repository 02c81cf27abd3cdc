// Shared by the tests of this module: a client over scripted transports. Header only; never part of
// the product.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "extenders/client.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::extenders::testing {

using kube::FakeTransport;
using Reply = FakeTransport::Reply;

inline constexpr char kPodText[] =
    R"({"kind":"Pod","metadata":{"name":"p","namespace":"ns","uid":"u1"},"spec":{"x": 1.50}})";
inline constexpr char kPodPath[] = "/api/v1/namespaces/ns/pods/p";
inline constexpr char kNodesPath[] = "/api/v1/nodes";

// The text of a node as the fake API server lists it.
inline std::string NodeText(const std::string& name) {
  return absl::StrCat(R"({"metadata":{"labels":{"name":"no"},"name":")", name,
                      R"("},"spec":{},"status":{"cpu": "1e3"}})");
}
inline std::string NodeListText(const std::vector<std::string>& names) {
  return absl::StrCat(R"({"kind":"NodeList","metadata":{"resourceVersion":"7"},"items":[)",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const std::string& name) {
                                      absl::StrAppend(out, NodeText(name));
                                    }),
                      "]}");
}

// An extender that filters at "http://x:PORT/s/f" and knows the nodes.
inline model::ExtenderConfig CachingFilter(int port = 1) {
  model::ExtenderConfig config;
  config.url_prefix = absl::StrCat("http://x:", port, "/s");
  config.filter_verb = "f";
  config.node_cache_capable = true;
  return config;
}
// The same, and it scores at "/s/p".
inline model::ExtenderConfig CachingScorer(int port = 1, int64_t weight = 1) {
  model::ExtenderConfig config = CachingFilter(port);
  config.filter_verb.clear();
  config.prioritize_verb = "p";
  config.weight = weight;
  return config;
}

class ClientFixture : public ::testing::Test {
 protected:
  ClientFixture() {
    api_.On("GET", kPodPath, Reply::Json(200, kPodText));
    api_.On("GET", kNodesPath, Reply::Json(200, NodeListText({"a", "b", "c"})));
  }

  void Start(std::vector<model::ExtenderConfig> configs) {
    std::vector<Extender> extenders;
    for (model::ExtenderConfig& config : configs) {
      auto transport = std::make_unique<FakeTransport>(clock_);
      transports_.push_back(transport.get());
      extenders.push_back({std::move(config), std::move(transport)});
    }
    client_ = std::make_unique<Client>(std::move(extenders), &api_, &clock_);
  }
  FakeTransport& extender(size_t i = 0) { return *transports_[i]; }
  // What the extender answers to everything with that verb.
  void OnVerb(size_t i, const std::string& verb, Reply reply) {
    extender(i).On("POST", absl::StrCat("/s/", verb), std::move(reply));
  }
  void OnFilter(size_t i, std::string body) { OnVerb(i, "f", Reply::Json(200, std::move(body))); }
  void OnScore(size_t i, std::string body) { OnVerb(i, "p", Reply::Json(200, std::move(body))); }

  // Asks the first `count` extenders, all by default.
  void Ask(std::vector<std::string> nodes = {"a", "b", "c"}, std::optional<size_t> count = {}) {
    model::AskExtenders action{.ns = "ns", .name = "p", .uid = "u1", .extenders = {}, .nodes = {}};
    for (size_t i = 0; i < count.value_or(transports_.size()); ++i) {
      action.extenders.push_back(static_cast<int32_t>(i));
    }
    action.nodes = std::move(nodes);
    client_->Ask(std::move(action), [this](Answer answer) { answers_.push_back(answer); });
  }
  // Until nothing happens any more.
  void Pump() {
    for (size_t done = 1; done > 0;) {
      done = api_.Pump();
      for (FakeTransport* transport : transports_) done += transport->Pump();
    }
  }
  // One ask and its answer.
  Answer Result(std::vector<std::string> nodes = {"a", "b", "c"}) {
    Ask(std::move(nodes));
    Pump();
    EXPECT_EQ(answers_.size(), 1u);
    return answers_.empty() ? Answer() : answers_.front();
  }
  // Bodies that the extender was sent, in order.
  std::vector<std::string> Bodies(size_t i = 0) {
    std::vector<std::string> bodies;
    for (const auto& exchange : extender(i).exchanges()) bodies.push_back(exchange.request.body);
    return bodies;
  }
  // "a:10 b:- c:!": points of the admitted nodes; "-" refused, "!" unresolvable.
  static std::string Short(const Answer& answer) {
    return absl::StrJoin(answer.answers.list(), " ",
                         [](std::string* out, const model::NodeAnswer& node) {
                           absl::StrAppend(out, node.node, ":");
                           if (node.admitted) return absl::StrAppend(out, node.score);
                           absl::StrAppend(out, node.unresolvable ? "!" : "-");
                         });
  }
  static std::string ReasonOf(const Answer& answer, const std::string& node) {
    const model::NodeAnswer* found = answer.answers.Find(node);
    return found == nullptr ? "there is no answer" : found->reason;
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport api_{clock_};
  std::vector<FakeTransport*> transports_;  // the client owns them
  std::vector<Answer> answers_;             // outlives the client, which may still answer
  std::unique_ptr<Client> client_;
};

}  // namespace fairlead::extenders::testing
