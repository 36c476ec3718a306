// The parts of DLPack 1.x that importing and exporting an array needs
// (https://dmlc.github.io/dlpack).
#pragma once
#include <cstdint>

namespace edgegrad {

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

enum DLCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6
};
enum DLDeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

constexpr std::uint64_t kReadOnlyFlag = 1;

// The table of C functions a type may offer as `__dlpack_c_exchange_api__`; the one used here fills
// in a DLTensor without creating a capsule.
struct DLPackExchangeAPI {
  DLPackVersion version;
  const DLPackExchangeAPI* prev_api;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
  void* current_work_stream;
};

}  // namespace edgegrad
