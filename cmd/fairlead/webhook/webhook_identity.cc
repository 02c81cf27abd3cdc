#include "cmd/fairlead/webhook/webhook_identity.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/api_client.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr char kAuthorityName[] = "fairlead-webhook-ca";
constexpr char kAuthorities[] = "ca.crt";
constexpr char kAuthorityKey[] = "ca.key";
constexpr char kCertificate[] = "tls.crt";
constexpr char kKey[] = "tls.key";
constexpr char kRegistration[] = "/apis/admissionregistration.k8s.io/v1/";

std::string Decoded(const Json& secret, absl::string_view key) {
  std::string text;
  return absl::Base64Unescape(secret.TextAt({"data", key}), &text) ? text : "";
}

bool LastsFor(absl::string_view certificate, absl::Time now, absl::Duration least) {
  const absl::StatusOr<absl::Time> expiry = server::ExpiryOf(certificate);
  return expiry.ok() && *expiry - now >= least;
}

// The patch of the webhooks that have another bundle; empty if there is none.
std::string BundlePatch(const Json& configuration, absl::string_view bundle) {
  const Json* const webhooks = configuration.Find("webhooks");
  if (webhooks == nullptr) return "";
  bool any = false;
  JsonWriter json;
  json.BeginArray();
  for (size_t i = 0; i < webhooks->items().size(); ++i) {
    const Json& webhook = webhooks->items()[i];
    if (webhook.TextAt({"clientConfig", "caBundle"}) == bundle) continue;
    any = true;
    const std::string path = absl::StrCat("/webhooks/", i);
    json.BeginObject().Field("op", "test").Field("path", absl::StrCat(path, "/name"));
    json.Field("value", webhook.TextAt({"name"})).EndObject();
    json.BeginObject().Field("op", "add");
    json.Field("path", absl::StrCat(path, "/clientConfig/caBundle")).Field("value", bundle);
    json.EndObject();
  }
  json.EndArray();
  return any ? json.Take() : "";
}

}  // namespace

WebhookIdentity::WebhookIdentity(const Ports& ports, std::string ns)
    : ports_(ports),
      ns_(std::move(ns)),
      names_({absl::StrCat(kWebhookService, ".", ns_, ".svc"),
              absl::StrCat(kWebhookService, ".", ns_), "localhost", "127.0.0.1", "::1"}) {}

absl::StatusOr<Json> WebhookIdentity::Call(kube::HttpRequest request) {
  request.timeout = kCallTimeout;
  const std::string what = absl::StrCat(request.method, " ", request.path);
  const absl::StatusOr<kube::HttpResponse> answer = ports_.transport->Call(std::move(request));
  const absl::Status status = StatusOfAnswer(answer);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
  }
  return Json::Parse(answer->body);
}

WebhookIdentity::Kept WebhookIdentity::KeptIn(const Json& secret) {
  Kept kept;
  kept.version = secret.TextAt({"metadata", "resourceVersion"});
  kept.authorities = Decoded(secret, kAuthorities);
  kept.authority_key = Decoded(secret, kAuthorityKey);
  kept.certificate = {Decoded(secret, kCertificate), Decoded(secret, kKey)};
  return kept;
}

absl::StatusOr<WebhookIdentity::Kept> WebhookIdentity::Read() {
  kube::HttpRequest request;
  request.path = absl::StrCat("/api/v1/namespaces/", ns_, "/secrets/", kWebhookSecret);
  const absl::StatusOr<Json> secret = Call(std::move(request));
  if (absl::IsNotFound(secret.status())) return Kept();
  if (!secret.ok()) return secret.status();
  return KeptIn(*secret);
}

absl::StatusOr<bool> WebhookIdentity::Renew(Kept& kept) const {
  const absl::Time now = ports_.clock->Now();
  // An authority is right if it can issue a certificate that is of it.
  const auto issue = [&]() -> absl::StatusOr<server::CertificateWithKey> {
    return server::IssueCertificate({kept.authorities, kept.authority_key}, names_, now, kLifetime);
  };
  const auto right = [&](const server::CertificateWithKey& certificate) {
    return server::CheckCertificate(certificate, kept.authorities, names_).ok();
  };
  const bool lasts = LastsFor(kept.authorities, now, kRenewAuthorityBefore);
  if (lasts && right(kept.certificate) &&
      LastsFor(kept.certificate.certificate_pem, now, kRenewBefore)) {
    return false;
  }
  if (lasts) {
    const absl::StatusOr<server::CertificateWithKey> issued = issue();
    if (issued.ok() && right(*issued)) {
      kept.certificate = *issued;
      return true;
    }
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const server::CertificateWithKey authority,
                            server::MakeAuthority(kAuthorityName, now, kAuthorityLifetime));
  const absl::StatusOr<std::string> former = server::FirstCertificate(kept.authorities);
  kept.authorities = absl::StrCat(authority.certificate_pem, former.value_or(""));
  kept.authority_key = authority.key_pem;
  FAIRLEAD_ASSIGN_OR_RETURN(kept.certificate, issue());
  return true;
}

absl::Status WebhookIdentity::Write(const Kept& kept) {
  const std::string collection = absl::StrCat("/api/v1/namespaces/", ns_, "/secrets");
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "Secret").Field("type", "Opaque");
  json.Key("metadata").BeginObject().Field("name", kWebhookSecret).Field("namespace", ns_);
  json.FieldUnlessEmpty("resourceVersion", kept.version);
  json.Key("labels").BeginObject().Field("app.kubernetes.io/name", "fairlead").EndObject();
  json.EndObject().Key("data").BeginObject();
  json.Field(kAuthorities, absl::Base64Escape(kept.authorities));
  json.Field(kAuthorityKey, absl::Base64Escape(kept.authority_key));
  json.Field(kCertificate, absl::Base64Escape(kept.certificate.certificate_pem));
  json.Field(kKey, absl::Base64Escape(kept.certificate.key_pem)).EndObject().EndObject();
  kube::HttpRequest request;
  const bool made = kept.version.empty();
  request.method = made ? "POST" : "PATCH";
  request.path = made ? collection : absl::StrCat(collection, "/", kWebhookSecret);
  // With the version in it a merge patch of another version is a conflict.
  request.content_type = made ? kube::kJson : kube::kMergePatch;
  request.body = json.Take();
  return Call(std::move(request)).status();
}

absl::Status WebhookIdentity::WriteBundle(const char* resource, const std::string& bundle) {
  kube::HttpRequest request;
  request.path = absl::StrCat(kRegistration, resource, "/", kWebhookConfiguration);
  kube::HttpRequest patch = request;
  FAIRLEAD_ASSIGN_OR_RETURN(const Json configuration, Call(std::move(request)));
  patch.method = "PATCH";
  patch.content_type = kube::kJsonPatch;
  patch.body = BundlePatch(configuration, absl::Base64Escape(bundle));
  return patch.body.empty() ? absl::OkStatus() : Call(std::move(patch)).status();
}

absl::Status WebhookIdentity::Reconcile() {
  FAIRLEAD_ASSIGN_OR_RETURN(Kept kept, Read());
  FAIRLEAD_ASSIGN_OR_RETURN(const bool renewed, Renew(kept));
  if (renewed) {
    const absl::Status written = Write(kept);
    if (absl::IsAlreadyExists(written) || absl::IsAborted(written)) {
      // Another replica was faster: its certificate is that of all replicas.
      FAIRLEAD_ASSIGN_OR_RETURN(kept, Read());
      Kept checked = kept;
      FAIRLEAD_ASSIGN_OR_RETURN(const bool unusable, Renew(checked));
      if (unusable) return absl::AbortedError("the Secret changes all the time");
    } else if (!written.ok()) {
      return written;
    }
  }
  absl::Status told;
  for (const char* resource :
       {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}) {
    const absl::Status bundle = WriteBundle(resource, kept.authorities);
    if (told.ok()) told = bundle;
  }
  const absl::Status shown =
      ports_.shown->Set(kept.certificate.certificate_pem, kept.certificate.key_pem);
  return shown.ok() ? told : shown;
}

}  // namespace fairlead::cmd
