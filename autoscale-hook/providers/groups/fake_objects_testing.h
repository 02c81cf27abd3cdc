// An API server's objects behind ObjectApi, in virtual time. Every call goes through `transport`,
// which tests replace to delay, lose, repeat or refuse answers.
//
// It keeps resourceVersion (one counter), uid, generation and creationTimestamp, does merge patches
// with their preconditions, sets deletionTimestamp on what has finalizers, and serves PATH/scale of
// every object with spec.replicas. Controllers are callbacks `on_change`, after each write.
// Thread-safety: one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/groups/object_api.h"

namespace fairlead::hook {

class FakeObjects final : public ObjectApi {
 public:
  using Work = std::function<absl::Status()>;
  using Reply = std::function<void(const absl::Status&)>;
  // `call`: "GET", "LIST", "POST", "PATCH", "DELETE", a space, and the path.
  using Transport = std::function<void(const std::string& call, const Work& work, Reply reply)>;

  explicit FakeObjects(VirtualTime* time) : time_(time) {
    transport = [this](const std::string&, const Work& work, const Reply& reply) {
      time_->After(absl::Milliseconds(10), [work, reply] { reply(work()); });
    };
  }

  std::map<std::string, Json> objects;  // by path
  std::vector<std::string> writes;      // "PATCH /apis/.. {..}", those that were carried out
  std::map<std::string, int> calls;     // by method
  Transport transport;
  std::function<void(const std::string& path)> on_change = [](const std::string&) {};
  // Instead of the object that a patch leaves.
  std::function<void(const std::string& path, Json& answer)> on_answer = [](const std::string&,
                                                                            Json&) {};

  // Creates or replaces. `text` is JSON.
  Json& Put(const std::string& path, const std::string& text) {
    absl::StatusOr<Json> parsed = Json::Parse(text);
    EXPECT_TRUE(parsed.ok()) << text;
    Json& object = objects[path] = parsed.ok() ? *std::move(parsed) : Json::Object();
    if (object.Find("metadata") == nullptr) object.Set("metadata", Json::Object());
    Json& meta = *object.Find("metadata");
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    meta.Set("name", parts.back());
    if (parts.size() > 3 && parts[parts.size() - 4] == "namespaces") {
      meta.Set("namespace", parts[parts.size() - 3]);
    }
    meta.Set("uid", absl::StrCat("uid-", ++last_uid_));
    meta.Set("generation", Json::Int(1));
    meta.Set("creationTimestamp",
             absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", kBegin + time_->now(), absl::UTCTimeZone()));
    Stamp(object);
    on_change(path);
    return objects[path];
  }
  // A change by another program, or by a controller. `patch` is a JSON merge patch.
  void Change(const std::string& path, const std::string& patch) {
    const auto place = objects.find(path);
    ASSERT_NE(place, objects.end()) << path;
    absl::StatusOr<Json> parsed = Json::Parse(patch);
    ASSERT_TRUE(parsed.ok()) << patch;
    Apply(place->second, *parsed);
    on_change(path);
  }
  void Erase(const std::string& path) {
    objects.erase(path);
    on_change(path);
  }
  // As by kubectl delete.
  void BeginDeletion(const std::string& path) {
    const auto place = objects.find(path);
    if (place == objects.end()) return;
    if (place->second.At({"metadata", "finalizers"}) == nullptr) return Erase(path);
    place->second.Find("metadata")->Set("deletionTimestamp", "2026-01-01T00:00:00Z");
    Stamp(place->second);
    on_change(path);
  }
  [[nodiscard]] std::string TextOf(const std::string& path,
                                   std::initializer_list<absl::string_view> field) const {
    const auto place = objects.find(path);
    return place == objects.end() ? "" : place->second.TextAt(field);
  }

  void Get(const std::string& path, JsonDone done) override {
    Ask("GET", path, std::move(done), [this, path]() -> absl::StatusOr<Json> {
      const auto place = objects.find(ObjectOf(path));
      if (place == objects.end()) return absl::NotFoundError(path + " not found");
      return IsScale(path) ? ScaleOf(place->second) : place->second;
    });
  }
  void List(const std::string& path, const std::string& selector, JsonDone done) override {
    Ask("LIST", path, std::move(done), [this, path, selector]() -> absl::StatusOr<Json> {
      if (missing_collections.contains(path)) return absl::NotFoundError(path + " not found");
      Json items = Json::Array();
      for (const auto& [at, object] : objects) {
        if (IsIn(at, path) && Matches(object, selector)) items.Add(object);
      }
      return items;
    });
  }
  void Patch(const std::string& path, std::string body, JsonDone done) override {
    Ask("PATCH", path, std::move(done), [this, path, body]() -> absl::StatusOr<Json> {
      const auto place = objects.find(ObjectOf(path));
      if (place == objects.end()) return absl::NotFoundError(path + " not found");
      absl::StatusOr<Json> patch = Json::Parse(body);
      if (!patch.ok()) return patch.status();
      const std::string version = patch->TextAt({"metadata", "resourceVersion"});
      if (!version.empty() && version != place->second.TextAt({"metadata", "resourceVersion"})) {
        return absl::AbortedError("the object has been modified");
      }
      writes.push_back(absl::StrCat("PATCH ", path, " ", body));
      Apply(place->second, *patch);
      Json answer = IsScale(path) ? ScaleOf(place->second) : place->second;
      on_answer(path, answer);
      on_change(ObjectOf(path));
      return answer;
    });
  }
  void Create(const std::string& path, std::string body, JsonDone done) override {
    Ask("POST", path, std::move(done), [this, path, body]() -> absl::StatusOr<Json> {
      const absl::StatusOr<Json> object = Json::Parse(body);
      if (!object.ok()) return object.status();
      const std::string at = absl::StrCat(path, "/", object->TextAt({"metadata", "name"}));
      if (objects.contains(at)) return absl::AlreadyExistsError(at + " already exists");
      writes.push_back(absl::StrCat("POST ", at));
      return Put(at, body);
    });
  }
  void Delete(const std::string& path, const std::string& uid, const std::string& version,
              Done done) override {
    ++calls["DELETE"];
    transport(
        "DELETE " + path,
        [this, path, uid, version] {
          const auto place = objects.find(path);
          if (place == objects.end()) return absl::NotFoundError(path + " not found");
          if (place->second.TextAt({"metadata", "uid"}) != uid) {
            return absl::AbortedError("another uid");
          }
          if (!version.empty() &&
              version != place->second.TextAt({"metadata", "resourceVersion"})) {
            return absl::AbortedError("the object has been modified");
          }
          writes.push_back("DELETE " + path);
          BeginDeletion(path);
          return absl::OkStatus();
        },
        std::move(done));
  }

  std::set<std::string> missing_collections;

 private:
  static bool IsScale(const std::string& path) { return absl::EndsWith(path, "/scale"); }
  static std::string ObjectOf(const std::string& path) {
    return IsScale(path) ? path.substr(0, path.rfind('/')) : path;
  }
  // As the API server makes it: without a zero, and without the generation.
  static Json ScaleOf(const Json& object) {
    Json scale = Json::Object();
    scale.Set("metadata", Json::Object()).Set("spec", Json::Object());
    for (const char* field : {"name", "uid", "resourceVersion"}) {
      scale.Find("metadata")->Set(field, object.TextAt({"metadata", field}));
    }
    int64_t replicas = 0;
    (void)absl::SimpleAtoi(object.TextAt({"spec", "replicas"}), &replicas);
    if (replicas != 0) scale.Find("spec")->Set("replicas", Json::Int(replicas));
    if (const Json* made = object.At({"status", "replicas"})) {
      scale.Set("status", Json::Object());
      scale.Find("status")->Set("replicas", *made);
    }
    return scale;
  }
  void Stamp(Json& object) {
    object.Find("metadata")->Set("resourceVersion", absl::StrCat(++last_version_));
  }
  void Apply(Json& object, Json patch) {
    if (Json* meta = patch.Find("metadata")) {
      if (meta->Find("resourceVersion") != nullptr) meta->Set("resourceVersion", "");
    }
    const Json* before = object.Find("spec");
    const std::string spec = before == nullptr ? "" : before->Compact();
    Merge(object, patch);
    const Json* after = object.Find("spec");
    if ((after == nullptr ? "" : after->Compact()) != spec) {
      int64_t generation = 0;
      (void)absl::SimpleAtoi(object.TextAt({"metadata", "generation"}), &generation);
      object.Find("metadata")->Set("generation", Json::Int(generation + 1));
    }
    Stamp(object);
  }
  static void Merge(Json& target, const Json& patch) {
    for (const auto& [key, value] : patch.fields()) {
      if (value.is_null()) {
        Json without = Json::Object();
        for (const auto& [had, kept] : target.fields()) {
          if (had != key) without.Set(had, kept);
        }
        target = without;
      } else if (value.is_object()) {
        const Json* const had = target.Find(key);
        if (had == nullptr || !had->is_object()) target.Set(key, Json::Object());
        Merge(*target.Find(key), value);
      } else {
        target.Set(key, value);
      }
    }
  }
  // "/apis/g/v/things" has those of all namespaces.
  static bool IsIn(const std::string& path, const std::string& collection) {
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    if (parts.size() < 2) return false;
    const std::string folder = path.substr(0, path.rfind('/'));
    if (folder == collection) return true;
    const size_t at = folder.find("/namespaces/");
    if (at == std::string::npos) return false;
    return absl::StrCat(folder.substr(0, at), folder.substr(folder.rfind('/'))) == collection;
  }
  static bool Matches(const Json& object, const std::string& selector) {
    for (const absl::string_view part : absl::StrSplit(selector, ',', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> entry =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      const Json* const value = object.At({"metadata", "labels", entry.first});
      if (value == nullptr) return false;
      if (absl::StrContains(part, '=') && value->text() != entry.second) return false;
    }
    return true;
  }
  void Ask(const std::string& method, const std::string& path, JsonDone done,
           std::function<absl::StatusOr<Json>()> work) {
    ++calls[method];
    const auto result = std::make_shared<absl::StatusOr<Json>>(absl::UnknownError("not asked"));
    transport(
        absl::StrCat(method, " ", path),
        [result, work] {
          *result = work();
          return result->status();
        },
        [result, done](const absl::Status& status) { status.ok() ? done(*result) : done(status); });
  }

  // When virtual time is zero.
  static constexpr absl::Time kBegin = absl::FromUnixSeconds(1'767'225'600);

  VirtualTime* time_;
  int64_t last_version_ = 100;
  int last_uid_ = 0;
};

// What the next calls of a FakeObjects do instead; a base of fixtures.
class ScriptedCalls {
 protected:
  using Behaviour = std::function<void(const FakeObjects::Work&, const FakeObjects::Reply&)>;

  // Before the first call. Both outlive it.
  void Script(FakeObjects& objects, VirtualTime& time) {
    objects.transport = [this, &time](const std::string& call, const FakeObjects::Work& work,
                                      const FakeObjects::Reply& reply) {
      for (auto& [prefix, queue] : behaviours_) {
        if (!absl::StartsWith(call, prefix) || queue.empty()) continue;
        const Behaviour behaviour = queue.front();
        queue.pop_front();
        return behaviour(work, reply);
      }
      time.After(absl::Milliseconds(10), [work, reply] { reply(work()); });
    };
  }
  // Of those that begin so ("PATCH /apis/...").
  void NextCalls(const std::string& prefix, const Behaviour& behaviour, int times = 1) {
    for (int i = 0; i < times; ++i) behaviours_[prefix].push_back(behaviour);
  }
  static Behaviour Fails(const absl::Status& status) {
    return [status](const FakeObjects::Work&, const FakeObjects::Reply& reply) { reply(status); };
  }
  static Behaviour LosesReply() {
    return [](const FakeObjects::Work& work, const FakeObjects::Reply& reply) {
      (void)work();
      reply(absl::UnavailableError("connection reset"));
    };
  }
  // Another program changes the object first.
  static Behaviour After(std::function<void()> change) {
    return [change = std::move(change)](const FakeObjects::Work& work,
                                        const FakeObjects::Reply& reply) {
      change();
      reply(work());
    };
  }

 private:
  std::map<std::string, std::deque<Behaviour>> behaviours_;
};

}  // namespace fairlead::hook
