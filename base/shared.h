// Values on the heap that take eight bytes where they are held.
//
// Shared<T>: its copies have one value in common, and the first of them to change it gets one of
// its own. Boxed<T>: each copy has its own value; a default value is nothing but a null pointer, so
// it suits fields that few objects have, and values that are too large for a variant.
//
// Ownership: as said. Thread-safety: as std::string; copies of a Shared may be on several threads.
// Complexity: a copy of a Shared is O(1), one of a Boxed that of its value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace fairlead {

template <typename T>
class Shared {
 public:
  Shared() = default;        // holds nothing
  Shared(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as a smart pointer
  explicit Shared(T value) : box_(new Box{{1}, std::move(value)}) {}
  Shared(const Shared& other) : box_(other.box_) {
    if (box_ != nullptr) box_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  Shared& operator=(const Shared& other) {
    if (this == &other) return *this;
    Shared copy(other);
    std::swap(box_, copy.box_);
    return *this;
  }
  Shared& operator=(Shared&& other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~Shared() {
    if (box_ == nullptr) return;
    if (IsAlone() || box_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete box_;
  }

  explicit operator bool() const { return box_ != nullptr; }
  friend bool operator==(const Shared& shared, std::nullptr_t) { return shared.box_ == nullptr; }
  // It has to hold something.
  const T& operator*() const { return box_->value; }
  const T* operator->() const { return &box_->value; }
  // No other copy has this value.
  [[nodiscard]] bool IsAlone() const { return holders() == 1; }
  // The copies that have this value.
  [[nodiscard]] uint32_t holders() const { return box_->holders.load(std::memory_order_acquire); }
  // Both hold the same copy, or nothing.
  [[nodiscard]] bool IsSameAs(const Shared& other) const { return box_ == other.box_; }
  // To be changed: a value that others have too is copied, nothing becomes a default value.
  T& Own() {
    if (box_ == nullptr) {
      *this = Shared(T());
    } else if (!IsAlone()) {
      *this = Shared(box_->value);
    }
    return box_->value;
  }

 private:
  struct Box {
    std::atomic<uint32_t> holders;
    T value;
  };
  Box* box_ = nullptr;
};

template <typename T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value)  // NOLINT(google-explicit-constructor): it is a T
      : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other)
      : value_(other.value_ == nullptr ? nullptr : std::make_unique<T>(*other.value_)) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) *this = Boxed(other);
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  const T& operator*() const { return value_ == nullptr ? Default() : *value_; }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }  // NOLINT(google-explicit-constructor)
  // To be changed.
  T& Own() {
    if (value_ == nullptr) value_ = std::make_unique<T>();
    return *value_;
  }
  void Set(T value) {
    if (value == Default()) {
      value_ = nullptr;
    } else {
      Own() = std::move(value);
    }
  }
  // A default value takes no memory from now on.
  void Shrink() {
    if (value_ != nullptr && *value_ == Default()) value_ = nullptr;
  }
  friend bool operator==(const Boxed& a, const Boxed& b) {
    return a.value_ == b.value_ || *a == *b;  // most hold nothing
  }

 private:
  static const T& Default() {
    static const T& value = *new T();
    return value;
  }
  std::unique_ptr<T> value_;
};

}  // namespace fairlead
