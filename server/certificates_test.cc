#include "server/certificates.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/tls_certificate.h"

namespace fairlead::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class CertificatesTest : public ::testing::Test {
 protected:
  CertificateWithKey authority_ = *MakeAuthority("test authority", kNow, absl::Hours(24 * 365));
  CertificateWithKey served_ =
      *IssueCertificate(authority_, {"web.team.svc", "127.0.0.1", "::1"}, kNow, absl::Hours(48));
};

TEST_F(CertificatesTest, AreForTheirNamesAndOfTheirAuthority) {
  const auto check = [&](const std::vector<std::string>& names) {
    return CheckCertificate(served_, authority_.certificate_pem, names);
  };
  EXPECT_TRUE(check({"web.team.svc", "127.0.0.1", "::1"}).ok()) << check({"web.team.svc"});
  EXPECT_TRUE(absl::StrContains(check({"web.team.svc", "web"}).message(), "is not for web"));
  EXPECT_FALSE(check({"127.0.0.2"}).ok());
  const CertificateWithKey other = *MakeAuthority("test authority", kNow, absl::Hours(1));
  EXPECT_FALSE(CheckCertificate(served_, other.certificate_pem, {}).ok());
  EXPECT_FALSE(
      CheckCertificate({served_.certificate_pem, other.key_pem}, authority_.certificate_pem, {})
          .ok());
}

TEST_F(CertificatesTest, ExpireWhenTheyShould) {
  EXPECT_EQ(*ExpiryOf(served_.certificate_pem), kNow + absl::Hours(48));
  EXPECT_EQ(*ExpiryOf(authority_.certificate_pem), kNow + absl::Hours(24 * 365));
  const absl::Time late = absl::FromUnixSeconds(4'102'444'800);  // 2100, beyond UTCTime
  EXPECT_EQ(*ExpiryOf(MakeAuthority("x", late, absl::Hours(1))->certificate_pem),
            late + absl::Hours(1));
}

TEST_F(CertificatesTest, NoTwoAreEqual) {
  const auto again = IssueCertificate(authority_, {"web.team.svc"}, kNow, absl::Hours(48));
  EXPECT_NE(again->key_pem, served_.key_pem);
  EXPECT_NE(again->certificate_pem, served_.certificate_pem);
}

TEST_F(CertificatesTest, TheFirstOfABundleCounts) {
  const CertificateWithKey other = *MakeAuthority("other", kNow, absl::Hours(1));
  const std::string bundle = authority_.certificate_pem + other.certificate_pem;
  EXPECT_EQ(*FirstCertificate(bundle), authority_.certificate_pem);
  EXPECT_TRUE(CheckCertificate(served_, bundle, {}).ok());
}

TEST_F(CertificatesTest, TextThatIsNoneIsRefusedWithoutQuotingIt) {
  const std::string secret = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
  for (const std::string& text :
       {std::string(), std::string("x"), secret, authority_.certificate_pem.substr(0, 200)}) {
    EXPECT_FALSE(ExpiryOf(text).ok());
    EXPECT_FALSE(FirstCertificate(text).ok());
    const auto issued = IssueCertificate({text, secret}, {"a"}, kNow, absl::Hours(1));
    EXPECT_FALSE(issued.ok());
    EXPECT_FALSE(absl::StrContains(issued.status().message(), "hunter2"));
    EXPECT_FALSE(CheckCertificate({text, text}, authority_.certificate_pem, {}).ok());
    TlsCertificate shown;
    EXPECT_FALSE(shown.Set(text, served_.key_pem).ok());
    EXPECT_FALSE(shown.Set(served_.certificate_pem, text).ok());
    EXPECT_FALSE(shown.ready());
  }
  EXPECT_FALSE(IssueCertificate(authority_, {}, kNow, absl::Hours(1)).ok());
  // A name that would be another extension.
  EXPECT_FALSE(CheckCertificate(*IssueCertificate(authority_, {"a"}, kNow, absl::Hours(1)),
                                authority_.certificate_pem, {"b"})
                   .ok());
}

TEST_F(CertificatesTest, AWrongPairChangesNothing) {
  TlsCertificate shown;
  ASSERT_TRUE(
      shown.Set(served_.certificate_pem + authority_.certificate_pem, served_.key_pem).ok());
  const auto before = shown.Context();
  EXPECT_TRUE(absl::IsInvalidArgument(shown.Set(served_.certificate_pem, authority_.key_pem)));
  EXPECT_EQ(shown.Context(), before);
  EXPECT_FALSE(shown.Set(std::string(kMostPemBytes + 1, 'x'), served_.key_pem).ok());
}

}  // namespace
}  // namespace fairlead::server
