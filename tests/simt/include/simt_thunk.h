// Turns `&kernel<float, int>` into a function that takes an array of argument addresses, and into
// a table of its parameters.
#pragma once
#include <type_traits>
#include <utility>

#include "simt_abi.h"

namespace simt {

template <typename T> constexpr char element_kind() {
  if constexpr (std::is_void_v<T>) return 'v';
  if constexpr (std::is_same_v<T, bool>) return '?';
  if constexpr (std::is_floating_point_v<T>) return 'f';
  if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
  return 'x';
}

template <typename T> constexpr uint32_t element_size() {
  if constexpr (std::is_void_v<T>)
    return 1;
  else
    return sizeof(T);
}

template <typename T> constexpr const char* type_text() { return __PRETTY_FUNCTION__; }

template <typename T> constexpr simt_parameter parameter() {
  using Pointee = std::remove_pointer_t<T>;
  using Element = std::remove_cv_t<Pointee>;
  constexpr bool is_pointer = std::is_pointer_v<T>;
  return {type_text<T>(),
          sizeof(T),
          element_size<Element>(),
          is_pointer,
          is_pointer && std::is_const_v<Pointee>,
          element_kind<Element>()};
}

#define SIMT_UNCHECKED __attribute__((no_sanitize("thread"), no_sanitize("undefined")))

template <typename F, F* kernel> struct Entry;

template <typename... Args, void (*kernel)(Args...)> struct Entry<void(Args...), kernel> {
  static constexpr int kCount = sizeof...(Args);
  // One more than needed: an array of no elements is not C++.
  static constexpr simt_parameter kParameters[kCount + 1] = {parameter<Args>()..., {}};

  template <size_t... I> SIMT_UNCHECKED static void call(void** args, std::index_sequence<I...>) {
    kernel(*reinterpret_cast<std::remove_cv_t<Args>*>(args[I])...);
  }
  SIMT_UNCHECKED static void thunk(void** args) {
    call(args, std::make_index_sequence<sizeof...(Args)>());
  }
};

template <typename F, F* kernel> constexpr simt_kernel describe(const char* name) {
  using E = Entry<F, kernel>;
  return {name, &E::thunk, E::kCount, E::kParameters};
}

}  // namespace simt

// The name comes last in the text because a template argument list contains commas.
#define SIMT_KERNEL(name, ...) \
  ::simt::describe<std::remove_pointer_t<decltype(&__VA_ARGS__)>, &__VA_ARGS__>(name)
