#include "cmd/fairlead/traces/step_tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/app_testing.h"

namespace fairlead::cmd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tracing::Span;

std::string ShownValue(const tracing::Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) return absl::StrCat(*number);
  return std::get<bool>(attribute.value) ? "true" : "false";
}

// "" if it has none.
std::string ValueOf(const Span& span, absl::string_view key) {
  for (const tracing::Attribute& attribute : span.attributes) {
    if (attribute.key == key) return ShownValue(attribute);
  }
  return "";
}

std::vector<std::string> NamesOf(const std::vector<Span>& spans) {
  std::vector<std::string> names;
  names.reserve(spans.size());
  for (const Span& span : spans) names.emplace_back(span.name);
  return names;
}

// A tracer by itself, whose steps the test makes up.
class StepTracerTest : public ::testing::Test {
 protected:
  StepTracerTest() { Make({}); }
  void Make(StepTracerOptions options) {
    tracer_ = std::make_unique<StepTracer>(
        &clock_, options, [this](Span span) { spans_.push_back(std::move(span)); });
  }
  static model::Action Bind(uint64_t id) {
    return {id, model::BindPod{"ns", absl::StrCat("p", id), "u", "n", {}}};
  }
  // 3 ms of deciding, 1 ms of handing on, and 2 ms until the tracer is told.
  void Step(std::vector<model::Action> actions) {
    const absl::Duration began = clock_.Steady();
    clock_.Advance(absl::Milliseconds(6));
    tracer_->OnHandedOn(*loop_, {std::move(actions)},
                        {began, began + absl::Milliseconds(3), began + absl::Milliseconds(4)});
  }
  void Answer(uint64_t id, absl::Status status = absl::OkStatus()) {
    tracer_->OnAnswer({.action_id = id, .status = std::move(status)});
  }
  std::vector<Span> Take() { return std::exchange(spans_, {}); }

  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::vector<Span> spans_;
  const std::unique_ptr<core::DecisionLoop> loop_ =
      *core::DecisionLoop::Make(core::KwokOptions(), &hook::Catalog::BuiltIn());
  std::unique_ptr<StepTracer> tracer_;
};

TEST_F(StepTracerTest, AnAnswerThatSaysNoIsAnError) {
  Step({{3, model::EvictPod{"ns", "p", "u", "Reclaimed", "for another"}}});
  Take();
  clock_.Advance(absl::Milliseconds(10));
  Answer(3, absl::ResourceExhaustedError(std::string(1000, 'b')));
  const std::vector<Span> spans = Take();
  ASSERT_THAT(NamesOf(spans), ElementsAre("evict"));
  EXPECT_EQ(spans[0].status, tracing::StatusCode::kError);
  EXPECT_EQ(spans[0].status_message, std::string(256, 'b'));
  EXPECT_EQ(ValueOf(spans[0], "fairlead.code"), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(ValueOf(spans[0], "fairlead.reason"), "Reclaimed");
  Answer(3);
  EXPECT_THAT(Take(), IsEmpty()) << "there is one answer";
}

TEST_F(StepTracerTest, AnswersToUnknownActionsAreNoSpans) {
  Answer(7);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(StepTracerTest, WhatIsGivenUpEndsAsAnError) {
  Step({Bind(1), Bind(2)});
  Answer(1);
  Take();
  tracer_->OnGivenUp();
  const std::vector<Span> spans = Take();
  ASSERT_THAT(NamesOf(spans), ElementsAre("bind"));
  EXPECT_EQ(spans[0].status, tracing::StatusCode::kError);
  EXPECT_EQ(ValueOf(spans[0], "k8s.pod.name"), "p2");
  Answer(2);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(StepTracerTest, ADecisionThatAsksForNothingHasNoTrace) {
  Step({});
  Step({{1, model::EmitEvent{}}});
  Answer(1);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(StepTracerTest, SpansOfActionsAreBounded) {
  std::vector<model::Action> actions;
  for (uint64_t i = 1; i <= StepTracer::kOpenMax + 3; ++i) actions.push_back(Bind(i));
  Step(std::move(actions));
  EXPECT_EQ(tracer_->dropped(), 3);
  Take();
  for (uint64_t i = 1; i <= StepTracer::kOpenMax + 3; ++i) Answer(i);
  EXPECT_EQ(Take().size(), StepTracer::kOpenMax);
  Step({Bind(100'000)});
  EXPECT_EQ(tracer_->dropped(), 3);
}

// Other pods, and pods of the same name that come later, have their own.
TEST_F(StepTracerTest, ASpanLinksToTheLastOneAboutTheSamePodOrRequest) {
  model::NodeRequest request;
  request.meta.name = "fl-1";
  model::SetPodUnschedulable told;
  told.ns = "ns";
  told.name = "p";
  told.uid = "u1";
  model::TerminateNode terminate;
  terminate.request_name = "fl-1";
  Step({{1, told}, {2, model::CreateNodeRequest{request}}});
  Step({{3, model::BindPod{"ns", "p", "u1", "n", {}}},
        {4, model::BindPod{"ns", "p", "u2", "n", {}}},
        {5, terminate}});
  Step({{6, model::EvictPod{"ns", "p", "u1", "Reclaimed", "for another"}}});
  Take();
  std::vector<Span> spans;
  for (uint64_t id = 1; id <= 6; ++id) {
    Answer(id);
    spans.push_back(Take().at(0));
  }
  const auto link_to = [](const Span& span) { return tracing::Link{span.trace, span.id}; };
  EXPECT_THAT(spans[0].links, IsEmpty());
  EXPECT_THAT(spans[1].links, IsEmpty());
  EXPECT_THAT(spans[2].links, ElementsAre(link_to(spans[0])));
  EXPECT_THAT(spans[3].links, IsEmpty());
  EXPECT_THAT(spans[4].links, ElementsAre(link_to(spans[1])));
  EXPECT_THAT(spans[5].links, ElementsAre(link_to(spans[2])));
}

TEST_F(StepTracerTest, TimesAreThoseOfTheParts) {
  const absl::Time began = clock_.Now();
  Step({Bind(1)});
  clock_.SetWallOffset(-absl::Hours(1));  // the wall clock jumps; a duration does not
  clock_.Advance(absl::Milliseconds(20));
  Answer(1);
  const std::vector<Span> spans = Take();
  ASSERT_THAT(NamesOf(spans), ElementsAre("step", "decide", "submit", "bind"));
  const auto ms = [began](absl::Time time) { return absl::ToInt64Milliseconds(time - began); };
  const int64_t expected[][2] = {{0, 4}, {0, 3}, {3, 4}, {3, 26}};
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(ms(spans[i].start), expected[i][0]) << spans[i].name;
    EXPECT_EQ(ms(spans[i].end), expected[i][1]) << spans[i].name;
  }
}

TEST_F(StepTracerTest, IdsAreUniqueAndNeverZero) {
  Make({.prefix = 0, .seed = 42});
  std::set<uint64_t> traces, ids;
  for (uint64_t i = 0; i < 1000; ++i) {
    Step({Bind(i)});
    Answer(i);
    const std::vector<Span> spans = Take();
    ASSERT_EQ(spans.size(), 4u);
    traces.insert(spans[0].trace.low);
    for (const Span& span : spans) {
      EXPECT_EQ(span.trace, spans[0].trace);
      EXPECT_NE(span.trace.high, 0u);
      EXPECT_EQ(span.parent, &span == spans.data() ? 0 : spans[0].id);
      EXPECT_NE(span.id, 0u);
      ids.insert(span.id);
    }
  }
  EXPECT_EQ(traces.size(), 1000u);
  EXPECT_EQ(ids.size(), 4000u);
}

// A trace is kept whole or not at all, and which one follows from its id.
TEST_F(StepTracerTest, SamplingFollowsTheIds) {
  const auto kept = [this](int64_t rate) {
    Make({.sampling_rate_per_million = rate, .prefix = 9, .seed = 7});
    std::set<uint64_t> traces;
    for (uint64_t i = 0; i < 1000; ++i) {
      Step({Bind(i)});
      Answer(i);
      const std::vector<Span> spans = Take();
      EXPECT_TRUE(spans.empty() || spans.size() == 4) << spans.size();
      if (!spans.empty()) traces.insert(spans[0].trace.low);
    }
    return traces;
  };
  EXPECT_THAT(kept(0), IsEmpty());
  EXPECT_EQ(kept(1'000'000).size(), 1000u);
  const std::set<uint64_t> half = kept(500'000);
  EXPECT_NEAR(static_cast<double>(half.size()), 500, 100);
  EXPECT_EQ(kept(500'000), half);
  for (const uint64_t trace : kept(100'000)) EXPECT_TRUE(half.contains(trace));
}

TEST_F(StepTracerTest, WhatWaitsIsCountedOnceASecond) {
  const auto counted = [this] {
    Step({Bind(1)});
    return !ValueOf(Take().at(0), "fairlead.waiting_workloads").empty();
  };
  EXPECT_TRUE(counted());
  EXPECT_FALSE(counted());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(counted());
}

TEST_F(StepTracerTest, AnActionIsNamedByItsSubject) {
  model::NodeRequest request;
  request.meta.name = "fl-1";
  Step({{1, model::CreateNodeRequest{request}},
        {2, model::TerminateNode{"fl-2", "kwok", "node-2", ""}},
        {3, model::NominateNode{"ns", "p", "u", "node-3"}}});
  for (uint64_t i = 1; i <= 3; ++i) Answer(i);
  std::vector<Span> spans = Take();
  spans.erase(spans.begin(), spans.begin() + 3);
  ASSERT_THAT(NamesOf(spans),
              ElementsAre("create_node_request", "terminate_node", "nominate_node"));
  EXPECT_EQ(ValueOf(spans[0], "fairlead.node_request"), "fl-1");
  EXPECT_EQ(ValueOf(spans[1], "fairlead.node_request"), "fl-2");
  EXPECT_EQ(ValueOf(spans[2], "k8s.node.name"), "node-3");
  EXPECT_EQ(ValueOf(spans[2], "fairlead.action"), "nominate node-3 for ns/p");
}

// ---- in the whole application
// --------------------------------------------------------------------

class TracedAppTest : public AppTest {
 protected:
  TracedAppTest() { observer_ = &tracer_; }
  std::vector<Span> Named(absl::string_view name) const {
    std::vector<Span> named;
    for (const Span& span : spans_) {
      if (span.name == name) named.push_back(span);
    }
    return named;
  }

  std::vector<Span> spans_;
  StepTracer tracer_{&clock_, {}, [this](Span span) { spans_.push_back(std::move(span)); }};
};

TEST_F(TracedAppTest, AStandbyHasNoTraces) {
  HeldByAnother();
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_THAT(NamesOf(spans_), IsEmpty());
}

TEST_F(TracedAppTest, FromABindingToItsDecision) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  const std::vector<Span> binds = Named("bind");
  ASSERT_EQ(binds.size(), 1u);
  EXPECT_EQ(ValueOf(binds[0], "k8s.namespace.name"), "ns");
  EXPECT_EQ(ValueOf(binds[0], "k8s.pod.name"), "p");
  EXPECT_EQ(ValueOf(binds[0], "k8s.pod.uid"), "u-p");
  EXPECT_EQ(ValueOf(binds[0], "k8s.node.name"), "n1");
  EXPECT_EQ(ValueOf(binds[0], "fairlead.code"), "OK");
  EXPECT_EQ(binds[0].kind, tracing::SpanKind::kClient);
  EXPECT_EQ(binds[0].status, tracing::StatusCode::kUnset);
  int found = 0;
  for (const Span& step : Named("step")) {
    if (!(step.trace == binds[0].trace)) continue;
    ++found;
    EXPECT_EQ(binds[0].parent, step.id);
    EXPECT_EQ(ValueOf(step, "fairlead.bindings"), "1");
    EXPECT_THAT(log_, ::testing::HasSubstr(absl::StrCat(
                          "msg=decision cycle=", ValueOf(step, "fairlead.decision"), " bound=1")));
  }
  EXPECT_EQ(found, 1);
}

// Also while the application ends.
TEST_F(TracedAppTest, ABindingThatIsAnsweredAtTheEnd) {
  options_.drain_timeout = absl::Seconds(20);
  transport_.On("POST", "/api/v1/namespaces/ns/pods/p/binding", Reply::Hold());
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(Bindings(), 1u);
  EXPECT_THAT(Named("bind"), IsEmpty());
  app_->Stop();
  EXPECT_FALSE(app_->Turn(absl::ZeroDuration()));
  ASSERT_TRUE(app_->EndTurn(absl::ZeroDuration()));
  const auto open = transport_.FindOpen("POST", "/api/v1/namespaces/ns/pods/p/binding");
  ASSERT_TRUE(open.has_value());
  transport_.Respond(*open, Reply::Json(201, "{}").response);
  transport_.Pump();
  app_->EndTurn(absl::ZeroDuration());
  ASSERT_EQ(Named("bind").size(), 1u);
  EXPECT_EQ(ValueOf(Named("bind")[0], "fairlead.code"), "OK");
}

}  // namespace
}  // namespace fairlead::cmd::testing
