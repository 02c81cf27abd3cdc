// The catalogue of each provider: its own, if it has told one, else the configured one.
//
// Ownership: the configured catalogue outlives it; those of providers are shared. A pointer to a
// type is valid until the next Set. Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "autoscale-hook/catalog/catalog.h"

namespace fairlead::hook {

class Catalogs {
 public:
  // `default_provider`: that of pools and requests that name none.
  explicit Catalogs(const Catalog* configured, std::string default_provider = "")
      : configured_(configured), default_provider_(std::move(default_provider)) {}

  void Set(absl::string_view provider, std::shared_ptr<const Catalog> catalog) {
    told_[std::string(provider)] = std::move(catalog);
  }
  // Takes the catalogues that providers have told another one.
  void Continue(Catalogs& former) { told_ = std::move(former.told_); }

  // Providers tell no reservations.
  [[nodiscard]] bool has_reservations() const { return configured_->has_reservations(); }
  [[nodiscard]] const Catalog& Of(absl::string_view provider) const {
    const auto told =
        told_.find(provider.empty() ? absl::string_view(default_provider_) : provider);
    return told == told_.end() ? *configured_ : *told->second;
  }
  [[nodiscard]] const Catalog& Of(const model::NodeRequest& request) const {
    return Of(request.provider);
  }

 private:
  const Catalog* configured_;
  std::string default_provider_;
  std::map<std::string, std::shared_ptr<const Catalog>, std::less<>> told_;
};

}  // namespace fairlead::hook
