// One reflector against a small API server that loses, cuts, compacts, refuses and forgets at
// random. The events must always describe a possible history. Once the server works, they must add
// up to its objects.
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "kube/transport/backoff.h"
#include "kube/watch/reflector.h"
#include "kube/watch/runtime_test_util.h"

namespace fairlead::kube {
namespace {

using Reply = FakeTransport::Reply;
using Id = FakeTransport::Id;

class RandomServer {
 public:
  RandomServer(FakeTransport& api, uint64_t seed) : api_(api), seed_(seed) {
    api.When([](const HttpRequest&) { return true; },
             [this](const HttpRequest& request) { return Answer(request); });
  }

  uint64_t Draw(uint64_t n) { return JitterBits(seed_, draws_++) % n; }

  void Mutate() {
    const std::string name = absl::StrCat("p", Draw(6));
    ++version_;
    const auto found = objects_.find(name);
    if (found == objects_.end()) {
      objects_[name] = {absl::StrCat("u", version_), version_};
      log_.push_back({version_, "ADDED", name, objects_[name].uid});
    } else if (Draw(3) == 0) {
      log_.push_back({version_, "DELETED", name, found->second.uid});
      objects_.erase(found);
    } else {
      found->second.version = version_;
      log_.push_back({version_, "MODIFIED", name, found->second.uid});
    }
  }
  void Compact() { compacted_ = version_ - static_cast<int64_t>(Draw(4)); }
  void SetFaults(bool on) { faults_ = on; }
  void SetWatchList(bool on) { watch_list_ = on; }

  // Sends each open stream its outstanding events, or a part of them, or ends it.
  void Serve() {
    for (const FakeTransport::Exchange& exchange : api_.exchanges()) {
      if (!exchange.stream || exchange.done) continue;
      const auto found = streams_.find(exchange.request.path + "#" + absl::StrCat(exchange.id));
      int64_t& position = found == streams_.end() ? Adopt(exchange) : found->second;
      if (position < 0) continue;
      std::string bytes;
      for (const Change& change : log_) {
        if (change.version <= position) continue;
        if (faults_ && Draw(8) == 0) break;
        absl::StrAppend(&bytes, WatchLine(change.type, PodJson(change.name, change.uid,
                                                               absl::StrCat(change.version))));
        position = change.version;
      }
      if (Draw(3) == 0 || !faults_) absl::StrAppend(&bytes, BookmarkLine(absl::StrCat(position)));
      if (faults_ && Draw(10) == 0) {
        absl::StrAppend(&bytes, WatchLine("ERROR", StatusJson(410, "Expired", "compacted")));
      }
      // Cut in the middle of an event.
      if (faults_ && !bytes.empty() && Draw(6) == 0) {
        bytes.resize(Draw(bytes.size()));
        api_.Data(exchange.id, bytes);
        api_.End(exchange.id, absl::UnavailableError("reset"));
        position = -1;
        continue;
      }
      if (!bytes.empty()) api_.Data(exchange.id, bytes);
      if (faults_ && Draw(6) == 0) {
        api_.End(exchange.id);
        position = -1;
      }
    }
  }

  std::map<std::string, std::string> Truth() const {
    std::map<std::string, std::string> truth;
    for (const auto& [name, object] : objects_) {
      truth[name] = absl::StrCat(object.uid, "@", object.version);
    }
    return truth;
  }

 private:
  struct Stored {
    std::string uid;
    int64_t version = 0;
  };
  struct Change {
    int64_t version;
    std::string type, name, uid;
  };

  static std::string Parameter(absl::string_view path, absl::string_view key) {
    for (absl::string_view part : absl::StrSplit(path.substr(path.find('?') + 1), '&')) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (pair.first == key) return std::string(pair.second);
    }
    return "";
  }

  Reply Answer(const HttpRequest& request) {
    if (faults_) {
      switch (Draw(12)) {
        case 0:
          return Reply::Failure(absl::UnavailableError("refused"));
        case 1:
          return ErrorReply(503, "ServiceUnavailable", "x", absl::Seconds(Draw(5)));
        case 2:
          return ErrorReply(410, "Expired", "too old");
        case 3:
          return Reply::Json(200, "");  // an empty stream, or an invalid list
        default:
          break;
      }
    }
    if (Parameter(request.path, "watch").empty()) return List(request.path);
    if (!Parameter(request.path, "sendInitialEvents").empty()) {
      if (!watch_list_) return ErrorReply(422, "Invalid", "sendInitialEvents: Forbidden");
      Reply reply = Reply::Watch();
      for (const auto& [name, object] : objects_) {
        reply.response.body +=
            WatchLine("ADDED", PodJson(name, object.uid, absl::StrCat(object.version)));
      }
      reply.response.body += BookmarkLine(absl::StrCat(version_), true);
      next_position_ = version_;
      return reply;
    }
    int64_t from = 0;
    EXPECT_TRUE(absl::SimpleAtoi(Parameter(request.path, "resourceVersion"), &from));
    if (from < compacted_) {
      Reply reply = Reply::Watch();
      reply.response.body = WatchLine("ERROR", StatusJson(410, "Expired", "too old"));
      next_position_ = -1;
      return reply;
    }
    next_position_ = from;
    return Reply::Watch();
  }

  // Two objects per page, from the state at the request of the first page.
  Reply List(const std::string& path) {
    const std::string token = Parameter(path, "continue");
    size_t first = 0;
    if (token.empty()) {
      listed_ = objects_;
      listed_version_ = version_;
    } else {
      EXPECT_TRUE(absl::SimpleAtoi(token, &first));
    }
    const size_t limit = Parameter(path, "limit").empty() ? listed_.size() : 2;
    std::vector<std::string> page;
    size_t index = 0;
    for (const auto& [name, object] : listed_) {
      if (index >= first && index < first + limit) {
        page.push_back(PodJson(name, object.uid, absl::StrCat(object.version)));
      }
      ++index;
    }
    const bool last = first + limit >= listed_.size();
    return Reply::Json(200, PodListJson(absl::StrCat(listed_version_),
                                        last ? "" : absl::StrCat(first + limit), page));
  }

  // A stream continues from where its answer ended; the requests come one at a time.
  int64_t& Adopt(const FakeTransport::Exchange& exchange) {
    int64_t& position = streams_[exchange.request.path + "#" + absl::StrCat(exchange.id)];
    position = next_position_;
    return position;
  }

  FakeTransport& api_;
  uint64_t seed_, draws_ = 0;
  bool faults_ = true, watch_list_ = true;
  int64_t version_ = 10, compacted_ = 0, listed_version_ = 0, next_position_ = -1;
  std::map<std::string, Stored> objects_, listed_;
  std::vector<Change> log_;
  std::map<std::string, int64_t> streams_;
};

// Applies events and checks that each is possible after the ones before.
struct Picture {
  std::map<std::string, std::pair<std::string, int64_t>> objects;
  int synced = 0;

  void Apply(const model::ClusterEvent& event) {
    if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
      const model::ObjectMeta& meta = MetaOf(upsert->object);
      int64_t version = 0;
      ASSERT_TRUE(absl::SimpleAtoi(meta.resource_version, &version));
      const auto found = objects.find(meta.name);
      if (found != objects.end()) {
        ASSERT_EQ(found->second.first, meta.uid) << "a new uid needs a Delete first";
        ASSERT_GT(version, found->second.second) << "backwards, or twice the same";
      }
      objects[meta.name] = {meta.uid, version};
    } else if (const auto* deletion = std::get_if<model::Delete>(&event)) {
      ASSERT_EQ(deletion->kind, model::Kind::kPod);
      // The queue merged the Upsert of an object that was created and deleted between two drains.
      const auto found = objects.find(deletion->name);
      if (found == objects.end()) return;
      ASSERT_EQ(found->second.first, deletion->uid);
      objects.erase(found);
    } else if (!std::holds_alternative<model::Progress>(event)) {
      ASSERT_TRUE(std::holds_alternative<model::Synced>(event));
      ASSERT_EQ(++synced, 1);
    }
  }
};

TEST(ReflectorPropertyTest, AddsUpToWhatTheServerHas) {
  int64_t snapshots = 0, watches = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    FakeClock clock(absl::UnixEpoch());
    FakeTransport api(clock);
    RandomServer server(api, seed);
    server.SetWatchList(seed % 3 != 0);
    EventQueue queue;
    ServerFeatures features;
    ReflectorOptions options;
    options.seed = seed;
    Reflector reflector(api, api, clock, queue, features, options);
    Picture picture;
    const auto drain = [&] {
      for (const model::ClusterEvent& event : DrainNow(queue)) picture.Apply(event);
    };
    reflector.Start();
    for (int i = 0; i < 300; ++i) {
      if (server.Draw(2) == 0) server.Mutate();
      if (server.Draw(30) == 0) server.Compact();
      server.Serve();
      api.Advance(absl::Milliseconds(server.Draw(3000)));
      drain();
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
    server.SetFaults(false);
    for (int i = 0; i < 60; ++i) {
      api.Advance(absl::Seconds(20));
      server.Serve();
      api.Pump();
      drain();
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
    std::map<std::string, std::string> seen;
    for (const auto& [name, object] : picture.objects) {
      seen[name] = absl::StrCat(object.first, "@", object.second);
    }
    ASSERT_EQ(seen, server.Truth()) << reflector.GetStats().last_error;
    ASSERT_EQ(picture.synced, 1);
    snapshots += reflector.GetStats().snapshots;
    watches += reflector.GetStats().watches;
  }
  // The test has exercised the faults.
  EXPECT_GT(snapshots, 300);
  EXPECT_GT(watches, 1000);
}

}  // namespace
}  // namespace fairlead::kube
