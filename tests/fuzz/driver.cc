// Runs the target of wire_fuzz.cc without libFuzzer, as a test: a fixed number of mutations,
// seeded, of valid messages and of the files that the command line names. Prints the seed and, on a
// crash, the command that repeats it.
//
// wire_fuzz_test [--seed=N] [--runs=N] [FILE...]
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kube/codec/testing/random_core.h"
#include "scheduler/model/kind.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace testing = fairlead::kube::testing;
using testing::Random;

// The message of a crash; set before the run, read by the signal handler.
char crash_note[200];

void SayWhereAndDie(int signal) {
  static_cast<void>(!write(STDERR_FILENO, crash_note, std::strlen(crash_note)));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

using fairlead::model::Kind;

// The first byte of an input: decoder (0-7, as in wire_fuzz.cc) and kind.
char Selector(size_t decoder, Kind kind) {
  const auto* const at =
      std::find(std::begin(fairlead::model::kAllKinds), std::end(fairlead::model::kAllKinds), kind);
  return static_cast<char>((at - std::begin(fairlead::model::kAllKinds)) << 3 | decoder);
}

constexpr Kind kNode = Kind::kNode;
constexpr Kind kPod = Kind::kPod;

struct Document {
  Kind kind;
  const char* json;
};
// Kinds of which there is no random message.
constexpr Document kDocuments[] = {
    {Kind::kPersistentVolumeClaim,
     R"({"metadata":{"name":"c","annotations":{"volume.kubernetes.io/selected-node":"n"}},)"
     R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1.5Gi"}},)"
     R"("selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}})"},
    {Kind::kPersistentVolume,
     R"({"spec":{"capacity":{"storage":"10Gi"},"claimRef":{"name":"c"},"csi":{"driver":"d"},)"
     R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[)"
     R"({"key":"zone","operator":"Gt","values":["3"]}]}]}}},"status":{"phase":"Available"}})"},
    {Kind::kStorageClass,
     R"({"provisioner":"d","volumeBindingMode":"Immediate","allowedTopologies":[)"
     R"({"matchLabelExpressions":[{"key":"zone","values":["a"]}]}]})"},
    {Kind::kCsiNode, R"({"spec":{"drivers":[{"name":"d","allocatable":{"count":25}}]}})"},
    {Kind::kCsiDriver, R"({"spec":{"storageCapacity":true}})"},
    {Kind::kCsiStorageCapacity,
     R"({"storageClassName":"s","capacity":"10Gi","nodeTopology":{"matchLabels":{"a":"b"}}})"},
    {Kind::kVolumeAttachment,
     R"({"spec":{"attacher":"d","nodeName":"n","source":{"persistentVolumeName":"v"}}})"},
    {Kind::kService, R"({"metadata":{"name":"s"},"spec":{"selector":{"app":"web","tier":""}}})"},
    {Kind::kReplicaSet, R"({"spec":{"selector":{"matchLabels":{"app":"web"},"matchExpressions":[)"
                        R"({"key":"a","operator":"NotIn","values":["b"]}]}}})"},
};

std::vector<std::string> ValidInputs(Random& random, const std::vector<std::string>& files) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 40; ++i) {
    const auto pod = testing::RandomPod(random);
    const auto node = testing::RandomNode(random);
    const std::string pod_bytes = testing::Envelope("v1", "Pod", pod.SerializeAsString());
    const std::string node_bytes = testing::Envelope("v1", "Node", node.SerializeAsString());
    const std::string pod_json = testing::PodJson(pod);
    const std::string node_json = testing::NodeJson(node);
    inputs.push_back(Selector(0, kPod) + pod_bytes);
    inputs.push_back(Selector(0, kNode) + node_bytes);
    inputs.push_back(Selector(2, kPod) + testing::Frame("ADDED", pod_bytes) +
                     testing::Frame("MODIFIED", pod_bytes));
    inputs.push_back(Selector(2, kNode) + testing::Frame("DELETED", node_bytes));
    inputs.push_back(Selector(3, kPod) + pod_json);
    inputs.push_back(Selector(3, kNode) + node_json);
    inputs.push_back(Selector(4, kPod) + absl::StrCat(R"({"items":[)", pod_json, "]}"));
    inputs.push_back(Selector(5, kNode) +
                     absl::StrCat(R"({"type":"ADDED","object":)", node_json, "}\n"));
  }
  for (const Document& document : kDocuments) {
    inputs.push_back(Selector(3, document.kind) + std::string(document.json));
    inputs.push_back(Selector(4, document.kind) +
                     absl::StrCat(R"({"items":[)", document.json, "]}"));
  }
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    inputs.push_back(Selector(6, kNode) + text);
  }
  return inputs;
}

// One to four changes of the most productive kinds: bits, lengths, cuts, repeats, pieces of other
// inputs.
std::string Mutate(Random& random, std::string input, const std::vector<std::string>& others) {
  for (size_t changes = 1 + random.Below(4); changes > 0 && !input.empty(); --changes) {
    const size_t at = random.Below(input.size());
    const size_t length = random.Below(std::min<size_t>(input.size() - at, 40) + 1);
    switch (random.Below(7)) {
      case 0:
        input[at] = static_cast<char>(input[at] ^ 1 << random.Below(8));
        break;
      case 1:  // The largest of everything, as a varint too.
        input[at] = static_cast<char>(0xff);
        break;
      case 2:
        input[at] = static_cast<char>(random.Below(256));
        break;
      case 3:
        input.erase(at, length);
        break;
      case 4:
        input.insert(at, input.substr(at, length));
        break;
      case 5:
        input.resize(at);
        break;
      default: {
        const std::string& other = others[random.Below(others.size())];
        const size_t from = random.Below(other.size() + 1);
        input.insert(at, other.substr(from, random.Below(60)));
      }
    }
  }
  return input;
}

void Run(const std::string& input) {
  // A copy of exactly its size, so that AddressSanitizer sees a read past the end.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1;
  uint64_t runs = 20'000;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    bool valid = true;
    if (absl::ConsumePrefix(&argument, "--seed=")) {
      valid = absl::SimpleAtoi(argument, &seed);
    } else if (absl::ConsumePrefix(&argument, "--runs=")) {
      valid = absl::SimpleAtoi(argument, &runs);
    } else {
      files.emplace_back(argument);
    }
    if (!valid) {
      std::fprintf(stderr, "not a number: %s\n", argv[i]);
      return 2;
    }
  }
  std::signal(SIGABRT, SayWhereAndDie);
  Random random(seed);
  const std::vector<std::string> valid = ValidInputs(random, files);
  for (const std::string& input : valid) Run(input);
  for (uint64_t run = 0; run < runs; ++run) {
    std::snprintf(crash_note, sizeof crash_note, "wire_fuzz: failed with --seed=%llu in run %llu\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run));
    Run(Mutate(random, valid[random.Below(valid.size())], valid));
  }
  std::printf("wire_fuzz: seed %llu, %zu valid inputs, %llu mutations, no fault\n",
              static_cast<unsigned long long>(seed), valid.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}
