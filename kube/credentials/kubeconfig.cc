#include "kube/credentials/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "document/yaml.h"
#include "kube/credentials/credentials.h"

namespace fairlead::kube {
namespace {

constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kExecGroup[] = "client.authentication.k8s.io/";

struct File {
  std::string path;
  Json root;  // an object, or null
};

// The body of one named cluster, user or context, and the prefix of errors about it.
struct Entry {
  const Json* body;    // of a file that outlives it
  std::string where;   // "/x/config: user \"admin\""
  std::string folder;  // of the file, for relative paths
};

absl::Status Invalid(const Entry& entry, absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(entry.where, ": field ", field, ": ", problem));
}

// The field of an object; null if it is absent or null.
const Json* Field(const Json& object, absl::string_view name) {
  const Json* field = object.Find(name);
  return field == nullptr || field->is_null() ? nullptr : field;
}
const Json* Field(const Entry& entry, absl::string_view name) { return Field(*entry.body, name); }

absl::StatusOr<File> ParseFile(const std::string& path) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, "kubeconfig"));
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> documents,
                            LoadYaml(text, {.file_name = path, .aliases = true, .quotes = false}));
  if (documents.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no kubeconfig: two documents"));
  }
  File file{path, documents.empty() ? Json() : std::move(documents[0])};
  if (file.root.is_null()) return file;  // for kubectl an empty file has no entries
  if (!file.root.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no kubeconfig: not a map"));
  }
  const Json* kind = file.root.Find("kind");
  if (kind != nullptr && kind->text() != "Config") {
    return absl::InvalidArgumentError(absl::StrCat(path, ": field kind: is not Config"));
  }
  return file;
}

// A string field; empty if it is absent or null.
absl::StatusOr<std::string> String(const Entry& entry, const char* field) {
  const Json* value = Field(entry, field);
  if (value == nullptr) return std::string();
  if (!value->is_text()) return Invalid(entry, field, "is not a string");
  // The number would lose its spelling: 0123 is the number 123.
  if (value->type() == Json::Type::kNumber) {
    return Invalid(entry, field, "is a number, not a string: put it in quotes");
  }
  return value->text();
}

absl::StatusOr<bool> Bool(const Entry& entry, const char* field) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, String(entry, field));
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return Invalid(entry, field, "is neither true nor false");
}

// Decoded base64; `field` is the one with the data.
absl::StatusOr<std::string> Data(const Entry& entry, const char* field) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, String(entry, field));
  std::string data;
  if (!absl::Base64Unescape(text, &data)) return Invalid(entry, field, "is not base64");
  return data;
}

// Made absolute with the folder of the file.
absl::StatusOr<std::string> Path(const Entry& entry, const char* field) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, String(entry, field));
  if (text.empty() || text.front() == '/') return text;
  return absl::StrCat(entry.folder, "/", text);
}

absl::Status Refuse(const Entry& entry, const char* field, absl::string_view advice) {
  const Json* value = Field(entry, field);
  if (value == nullptr ||
      (value->text().empty() && value->items().empty() && value->fields().empty())) {
    return absl::OkStatus();
  }
  return Invalid(entry, field, absl::StrCat("is not supported: ", advice));
}

// The entry `name` of the list `list` in the first file that has one; its body is field `kind`.
absl::StatusOr<Entry> Find(const std::vector<File>& files, const char* list, const char* kind,
                           const std::string& name) {
  for (const File& file : files) {
    const Json* entries = Field(file.root, list);
    if (entries == nullptr) continue;
    if (!entries->is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path, ": field ", list, ": is not a list"));
    }
    std::optional<Entry> found;
    for (const Json& item : entries->items()) {
      const Json* own_name = Field(item, "name");
      if (own_name == nullptr || !own_name->is_text()) {
        return absl::InvalidArgumentError(
            absl::StrCat(file.path, ": field ", list, ": an entry has no name"));
      }
      if (own_name->text() != name) continue;
      const std::string where = absl::StrCat(file.path, ": ", kind, " \"", name, "\"");
      if (found.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(where, ": is there twice"));
      }
      const Json* body = Field(item, kind);
      if (body == nullptr || !body->is_object()) {
        return absl::InvalidArgumentError(absl::StrCat(where, ": field ", kind, ": is not a map"));
      }
      const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
      found = Entry{body, where, folder.empty() ? "." : folder.string()};
    }
    if (found.has_value()) return *std::move(found);
  }
  std::vector<std::string> paths;
  for (const File& file : files) paths.push_back(file.path);
  return absl::NotFoundError(
      absl::StrCat(absl::StrJoin(paths, ":"), ": there is no ", kind, " \"", name, "\""));
}

// Scheme and host, nothing that could hold a password, no query.
absl::StatusOr<std::string> ServerUrl(const Entry& entry) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string url, String(entry, "server"));
  if (url.empty()) return Invalid(entry, "server", "is missing");
  if (!absl::StrContains(url, "://")) url = absl::StrCat("https://", url);
  if (!absl::StartsWith(url, "https://") && !absl::StartsWith(url, "http://")) {
    return Invalid(entry, "server", "is neither an https:// nor an http:// address");
  }
  const bool printable = std::all_of(url.begin(), url.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  const size_t host = url.find("://") + 3;
  if (!printable || host == url.size() || url[host] == '/' ||
      url.find_first_of("@?#", host) != std::string::npos) {
    return Invalid(entry, "server", "must be scheme, host, port and path alone");
  }
  while (url.back() == '/') url.pop_back();
  return url;
}

absl::StatusOr<ServerConfig> ParseCluster(const Entry& entry) {
  ServerConfig server;
  FAIRLEAD_RETURN_IF_ERROR(Refuse(entry, "proxy-url", "the server must be reached directly"));
  FAIRLEAD_ASSIGN_OR_RETURN(server.url, ServerUrl(entry));
  FAIRLEAD_ASSIGN_OR_RETURN(server.ca_pem, Data(entry, "certificate-authority-data"));
  FAIRLEAD_ASSIGN_OR_RETURN(server.ca_file, Path(entry, "certificate-authority"));
  FAIRLEAD_ASSIGN_OR_RETURN(server.tls_server_name, String(entry, "tls-server-name"));
  FAIRLEAD_ASSIGN_OR_RETURN(server.insecure_skip_tls_verify,
                            Bool(entry, "insecure-skip-tls-verify"));
  if (server.insecure_skip_tls_verify && (!server.ca_pem.empty() || !server.ca_file.empty())) {
    return Invalid(entry, "insecure-skip-tls-verify",
                   "contradicts the certificate authority given beside it");
  }
  if (!server.ca_pem.empty()) server.ca_file.clear();
  return server;
}

absl::StatusOr<std::vector<std::string>> StringList(const Entry& entry, const char* field) {
  std::vector<std::string> result;
  const Json* list = Field(entry, field);
  if (list == nullptr) return result;
  if (!list->is_array()) return Invalid(entry, field, "is not a list");
  for (const Json& item : list->items()) {
    if (item.type() != Json::Type::kString) {
      return Invalid(entry, field, "holds something that is no string");
    }
    result.push_back(item.text());
  }
  return result;
}

absl::Status ParseExecEnv(const Entry& exec, ExecConfig& config) {
  const Json* list = Field(exec, "env");
  if (list == nullptr) return absl::OkStatus();
  if (!list->is_array()) return Invalid(exec, "env", "is not a list");
  for (const Json& item : list->items()) {
    if (!item.is_object()) return Invalid(exec, "env", "holds something that is no name and value");
    const Entry variable{&item, absl::StrCat(exec.where, ": env"), exec.folder};
    FAIRLEAD_ASSIGN_OR_RETURN(std::string name, String(variable, "name"));
    FAIRLEAD_ASSIGN_OR_RETURN(std::string value, String(variable, "value"));
    if (name.empty() || absl::StrContains(name, "=")) {
      return Invalid(exec, "env", "holds a variable without a proper name");
    }
    config.env.emplace_back(std::move(name), std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecConfig> ParseExec(const Entry& user, const Entry& cluster) {
  const Entry exec{Field(user, "exec"), absl::StrCat(user.where, ": exec"), user.folder};
  if (!exec.body->is_object()) return Invalid(user, "exec", "is not a map");
  ExecConfig config;
  FAIRLEAD_ASSIGN_OR_RETURN(config.api_version, String(exec, "apiVersion"));
  if (config.api_version != absl::StrCat(kExecGroup, "v1") &&
      config.api_version != absl::StrCat(kExecGroup, "v1beta1")) {
    return Invalid(exec, "apiVersion",
                   absl::StrCat("is neither ", kExecGroup, "v1 nor ", kExecGroup, "v1beta1"));
  }
  FAIRLEAD_ASSIGN_OR_RETURN(config.command, String(exec, "command"));
  if (config.command.empty()) return Invalid(exec, "command", "is missing");
  // A bare name is looked up in PATH; any other relative name is relative to the file.
  if (absl::StrContains(config.command, "/")) {
    FAIRLEAD_ASSIGN_OR_RETURN(config.command, Path(exec, "command"));
  }
  FAIRLEAD_ASSIGN_OR_RETURN(config.args, StringList(exec, "args"));
  FAIRLEAD_RETURN_IF_ERROR(ParseExecEnv(exec, config));
  FAIRLEAD_ASSIGN_OR_RETURN(config.install_hint, String(exec, "installHint"));
  FAIRLEAD_ASSIGN_OR_RETURN(config.provide_cluster_info, Bool(exec, "provideClusterInfo"));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string interactive, String(exec, "interactiveMode"));
  if (interactive == "Always") {
    return Invalid(exec, "interactiveMode", "is Always, but Fairlead runs without a terminal");
  }
  if (config.provide_cluster_info) {
    if (const Json* extensions = Field(cluster, "extensions"); extensions != nullptr) {
      for (const Json& extension : extensions->items()) {
        if (extension.TextAt({"name"}) == absl::StrCat(kExecGroup, "exec")) {
          return Invalid(cluster, "extensions",
                         "a configuration for the credential plugin is not supported");
        }
      }
    }
  }
  return config;
}

absl::StatusOr<UserConfig> ParseUser(const Entry& entry, const Entry& cluster) {
  UserConfig user;
  FAIRLEAD_RETURN_IF_ERROR(
      Refuse(entry, "auth-provider", "use exec with the plugin of the same provider"));
  for (const char* field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    FAIRLEAD_RETURN_IF_ERROR(
        Refuse(entry, field, "impersonation would hide the account that acts"));
  }
  FAIRLEAD_ASSIGN_OR_RETURN(user.token, String(entry, "token"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.token_file, Path(entry, "tokenFile"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.username, String(entry, "username"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.password, String(entry, "password"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.certificate_pem, Data(entry, "client-certificate-data"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.certificate_file, Path(entry, "client-certificate"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.key_pem, Data(entry, "client-key-data"));
  FAIRLEAD_ASSIGN_OR_RETURN(user.key_file, Path(entry, "client-key"));
  if (!user.certificate_pem.empty()) user.certificate_file.clear();
  if (!user.key_pem.empty()) user.key_file.clear();
  const bool has_certificate = !user.certificate_pem.empty() || !user.certificate_file.empty();
  const bool has_key = !user.key_pem.empty() || !user.key_file.empty();
  if (has_certificate != has_key) {
    return Invalid(entry, has_certificate ? "client-key" : "client-certificate",
                   "is missing: certificate and key go together");
  }
  const bool has_token = !user.token.empty() || !user.token_file.empty();
  if (has_token && !user.username.empty()) {
    return Invalid(entry, "username", "there is a token beside it; only one can be sent");
  }
  if (user.username.empty() && !user.password.empty()) {
    return Invalid(entry, "password", "there is no username to it");
  }
  if (Field(entry, "exec") != nullptr) {
    FAIRLEAD_ASSIGN_OR_RETURN(ExecConfig config, ParseExec(entry, cluster));
    // client-go also runs no plugin for a user that has an Authorization header.
    if (!has_token && user.username.empty()) user.exec = std::move(config);
  }
  return user;
}

absl::StatusOr<std::string> CurrentContext(const std::vector<File>& files) {
  for (const File& file : files) {
    if (!file.root.is_object()) continue;
    const Entry top{&file.root, file.path, ""};
    FAIRLEAD_ASSIGN_OR_RETURN(std::string context, String(top, "current-context"));
    if (!context.empty()) return context;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      files.front().path, ": field current-context: is missing, and no context was named"));
}

absl::StatusOr<ClientConfig> Resolve(const std::vector<File>& files, std::string context) {
  if (context.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(context, CurrentContext(files));
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const Entry chosen, Find(files, "contexts", "context", context));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string cluster_name, String(chosen, "cluster"));
  if (cluster_name.empty()) return Invalid(chosen, "cluster", "is missing");
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string user_name, String(chosen, "user"));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string default_namespace, String(chosen, "namespace"));

  ClientConfig config;
  config.origin = absl::StrCat(files.front().path, " context \"", context, "\"");
  if (!default_namespace.empty()) config.default_namespace = default_namespace;
  FAIRLEAD_ASSIGN_OR_RETURN(const Entry cluster, Find(files, "clusters", "cluster", cluster_name));
  FAIRLEAD_ASSIGN_OR_RETURN(config.server, ParseCluster(cluster));
  if (!user_name.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Entry user, Find(files, "users", "user", user_name));
    FAIRLEAD_ASSIGN_OR_RETURN(config.user, ParseUser(user, cluster));
  }
  return config;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

Environment ProcessEnvironment() {
  return [](absl::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<ClientConfig> LoadKubeconfig(const std::vector<std::string>& files,
                                            absl::string_view context) {
  std::vector<File> parsed;
  absl::Status missing = absl::NotFoundError("kubeconfig: no file is named");
  for (const std::string& path : files) {
    absl::StatusOr<File> file = ParseFile(path);
    if (absl::IsNotFound(file.status())) {
      missing = file.status();
      continue;
    }
    if (!file.ok()) return file.status();
    parsed.push_back(*std::move(file));
  }
  if (parsed.empty()) return missing;
  return Resolve(parsed, std::string(context));
}

absl::StatusOr<ClientConfig> InClusterConfig(const Environment& environment,
                                             absl::string_view root) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  int port_number = 0;
  if (host.empty() || !absl::SimpleAtoi(port, &port_number)) {
    return absl::FailedPreconditionError(
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  const std::string folder = absl::StrCat(root, kServiceAccountFolder);
  ClientConfig config;
  config.origin = "in-cluster";
  const bool is_ipv6 = absl::StrContains(host, ":");
  config.server.url = is_ipv6 ? absl::StrCat("https://[", host, "]:", port_number)
                              : absl::StrCat("https://", host, ":", port_number);
  config.server.ca_file = absl::StrCat(folder, "/ca.crt");
  config.user.token_file = absl::StrCat(folder, "/token");
  for (const std::string& path : {config.server.ca_file, config.user.token_file}) {
    if (!Exists(path)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": is missing: the pod runs without a service account token"));
    }
  }
  absl::StatusOr<std::string> own_namespace =
      ReadSmallFile(absl::StrCat(folder, "/namespace"), "namespace");
  if (own_namespace.ok() && !absl::StripAsciiWhitespace(*own_namespace).empty()) {
    config.default_namespace = std::string(absl::StripAsciiWhitespace(*own_namespace));
  }
  return config;
}

absl::StatusOr<ClientConfig> LoadClientConfig(absl::string_view explicit_file,
                                              absl::string_view context,
                                              const Environment& environment,
                                              absl::string_view root) {
  if (!explicit_file.empty()) return LoadKubeconfig({std::string(explicit_file)}, context);
  const std::string list = environment("KUBECONFIG").value_or("");
  const std::vector<std::string> files = absl::StrSplit(list, ':', absl::SkipEmpty());
  if (!files.empty()) return LoadKubeconfig(files, context);
  const std::string home = environment("HOME").value_or("");
  const std::string usual = absl::StrCat(home, "/.kube/config");
  if (!home.empty() && Exists(usual)) return LoadKubeconfig({usual}, context);
  return InClusterConfig(environment, root);
}

}  // namespace fairlead::kube
