// A view of anybody's array: what a kernel needs to know of it, and what keeps its memory alive.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "dtype.h"

namespace nb = nanobind;

namespace edgegrad {

constexpr int kMaxDims = 6;

struct DLManagedTensorVersioned;
struct DLManagedTensor;

// Whatever must be let go with the view: a reference, a buffer export or a DLPack tensor.
class Owner {
 public:
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  Owner(Owner&& other) noexcept;
  Owner& operator=(Owner&&) = delete;
  ~Owner();

  nb::object object;                              // keeps the exporter alive
  std::optional<Py_buffer> buffer;                // an open buffer export
  DLManagedTensor* legacy = nullptr;              // a consumed "dltensor"
  DLManagedTensorVersioned* versioned = nullptr;  // a consumed "dltensor_versioned"
};

struct ArrayView {
  void* data = nullptr;
  int ndim = 0;
  std::int64_t shape[kMaxDims] = {};
  std::int64_t strides[kMaxDims] = {};  // in elements
  DType dtype = DType::other;
  int device_type = 1;  // DLPack's numbers: 1 host, 2 CUDA
  int device_id = 0;
  bool readonly = false;
  Owner owner;

  std::int64_t size() const;
  // The last axis is contiguous, so that a row is one run of memory.
  bool rows_contiguous() const;
  // All axes after the first are one run of memory, so that the array is rows x columns.
  bool joins_to_rows() const;
  // Two positions of the array share memory (a broadcast axis): legal to read, not to write.
  bool self_overlapping() const;
  bool writable() const;
  template <typename T> T* as() const { return static_cast<T*>(data); }
};

// Views `object` without copying. `stream` is the CUDA stream its memory will be used on; it is
// given to exporters that order their pending work before ours.
// Views that outlive a call `keep` the memory itself, whatever becomes of the object.
nb::object view(nb::handle object, std::uintptr_t stream, bool keep = false);

// True if writing one array could change the other.
bool overlap(const ArrayView& a, const ArrayView& b);

void bind_array(nb::module_& m);

}  // namespace edgegrad
