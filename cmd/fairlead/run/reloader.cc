#include "cmd/fairlead/run/reloader.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace fairlead::cmd {

void Reloader::Check(bool asked) {
  std::optional<absl::StatusOr<Settings>> read = watch_.Poll();
  if (!read.has_value()) {
    if (asked) logger_->Info("configuration unchanged");
    return;
  }
  if (!read->ok()) return Fail(read->status());
  for (const std::string& field : watch_.UnchangeableChanges(**read)) {
    logger_->Warning("a change takes effect only after a restart", {{"field", field}});
  }
  core::Options options = (*read)->configuration.options;
  if (adjust_) adjust_(options);
  for (const std::string& warning : (*read)->configuration.warnings) logger_->Warning(warning);
  auto catalog = std::make_shared<const hook::Catalog>(std::move((*read)->catalog));
  application_->Post([this, options = std::move(options), catalog = std::move(catalog)] {
    const absl::Status taken = application_->Reconfigure(options, catalog);
    if (!taken.ok()) return Fail(taken);
    ++ok_;
    stale_ = false;
    logger_->Info("configuration read again");
  });
}

void Reloader::Fail(const absl::Status& why) {
  ++failed_;
  stale_ = true;
  logger_->Error("the new configuration cannot be used; the former one stays in force",
                 {{"problem", why.message()}});
}

}  // namespace fairlead::cmd
