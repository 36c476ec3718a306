// The function that compiled JAX programs call on a CPU. It hands XLA's buffers to Python as arrays
// without a copy and calls the explicit operator there.
//
// Built on first use against the headers that come with jaxlib (native.py); knows Python's C API
// and XLA's, nothing else.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;

constexpr int kMaxDims = 8;

// The part of DLPack 1.x by which edgegrad views arrays fastest; as in src/host/dlpack.h.
struct DLTensor {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct ExchangeAPI {
  std::uint32_t major, minor;
  const ExchangeAPI* prev_api;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
  void* current_work_stream;
};

// An array in a buffer of XLA's, for the time of a call.
struct Buffer {
  PyObject_HEAD DLTensor tensor;
  std::int64_t shape[kMaxDims];
};

int describe(void* object, DLTensor* out) {
  auto* buffer = static_cast<Buffer*>(object);
  *out = buffer->tensor;
  out->shape = buffer->shape;
  return 0;
}

const ExchangeAPI kExchange = {1, 3, nullptr, nullptr, nullptr, nullptr, &describe, nullptr};

PyTypeObject* buffer_type = nullptr;
PyObject* runner = nullptr;  // Python: (kernel, token, arrays) -> None

bool set_type(ffi::DataType type, DLTensor& t) {
  enum Code : std::uint8_t { kInt = 0, kFloat = 2, kBfloat = 4, kBool = 6 };
  const auto is = [&t](Code code, int bits) {
    t.code = code;
    t.bits = static_cast<std::uint8_t>(bits);
    t.lanes = 1;
    return true;
  };
  switch (type) {
    case ffi::DataType::F16:
      return is(kFloat, 16);
    case ffi::DataType::BF16:
      return is(kBfloat, 16);
    case ffi::DataType::F32:
      return is(kFloat, 32);
    case ffi::DataType::F64:
      return is(kFloat, 64);
    case ffi::DataType::S32:
      return is(kInt, 32);
    case ffi::DataType::S64:
      return is(kInt, 64);
    case ffi::DataType::PRED:
      return is(kBool, 8);
    default:
      return false;
  }
}

// One array of a call: the whole buffer, or under vmap one element of the axes put in front.
struct Operand {
  ffi::AnyBuffer buffer;

  // Number of the element at the place `at` of the axes in front, which have size 1 or all.
  std::int64_t element(const std::vector<std::int64_t>& at) const {
    const auto n = buffer.dimensions();
    std::int64_t found = 0;
    for (std::size_t i = 0; i < at.size(); ++i) found = found * n[i] + (n[i] > 1 ? at[i] : 0);
    return found;
  }

  PyObject* array(const std::vector<std::int64_t>& at) const {
    auto* made = PyObject_New(Buffer, buffer_type);
    if (made == nullptr) return nullptr;
    DLTensor& t = made->tensor;
    t = {};
    const auto n = buffer.dimensions();
    t.ndim = static_cast<int>(n.size() - at.size());
    if (!set_type(buffer.element_type(), t) || t.ndim > kMaxDims) {
      Py_DECREF(made);
      PyErr_SetString(PyExc_TypeError, "an array of another kind than operators have");
      return nullptr;
    }
    std::int64_t bytes = t.bits / 8;
    for (int i = 0; i < t.ndim; ++i) bytes *= made->shape[i] = n[at.size() + i];
    t.device_type = 1;  // CPU
    t.data = static_cast<char*>(buffer.untyped_data()) + element(at) * bytes;
    return reinterpret_cast<PyObject*>(made);
  }
};

bool call(std::int64_t kernel, std::int32_t token, const std::vector<Operand>& operands,
          const std::vector<std::int64_t>& at) {
  PyObject* arrays = PyTuple_New(static_cast<Py_ssize_t>(operands.size()));
  for (std::size_t i = 0; arrays != nullptr && i < operands.size(); ++i) {
    PyObject* array = operands[i].array(at);
    if (array == nullptr)
      Py_CLEAR(arrays);
    else
      PyTuple_SET_ITEM(arrays, static_cast<Py_ssize_t>(i), array);
  }
  if (arrays == nullptr) return false;
  PyObject* result =
      PyObject_CallFunction(runner, "LiN", static_cast<long long>(kernel), token, arrays);
  Py_XDECREF(result);
  return result != nullptr;
}

// The pending Python error as one line.
std::string message() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
  const char* utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  std::string found = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (utf8 != nullptr) found += std::string(": ") + utf8;
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return found;
}

// Calls for every element of the axes that vmap put in front, which `whole` has the sizes of.
bool call_all(std::int64_t kernel, const Operand& token, const std::vector<Operand>& operands,
              ffi::Span<const std::int64_t> whole) {
  for (const std::int64_t size : whole)
    if (size == 0) return true;
  std::vector<std::int64_t> at(whole.size(), 0);
  const auto* tokens = static_cast<const std::int32_t*>(token.buffer.untyped_data());
  while (true) {
    if (!call(kernel, tokens[token.element(at)], operands, at)) return false;
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == whole[axis - 1]) at[--axis] = 0;
    if (axis == 0) return true;
  }
}

// `rank` is that of the first result without the axes in front.
ffi::Error
run(std::int64_t kernel, std::int64_t rank, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  std::vector<Operand> operands;
  operands.reserve(args.size() + rets.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    auto buffer = args.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) return buffer.error();
    operands.push_back({*buffer});
  }
  const Operand token = operands[0];
  operands.erase(operands.begin());
  for (std::size_t i = 0; i < rets.size(); ++i) {
    auto buffer = rets.get<ffi::AnyBuffer>(i);
    if (!buffer.has_value()) return buffer.error();
    operands.push_back({**buffer});
  }
  const auto shape = operands[args.size() - 1].buffer.dimensions();
  const auto in_front = shape.first(shape.size() - static_cast<std::size_t>(rank));
  const PyGILState_STATE state = PyGILState_Ensure();
  std::string failure;
  if (!call_all(kernel, token, operands, in_front)) failure = message();
  PyGILState_Release(state);
  return failure.empty() ? ffi::Error::Success() : ffi::Error::Internal(failure);
}

XLA_FFI_DEFINE_HANDLER(handler, run,
                       ffi::Ffi::Bind()
                           .Attr<std::int64_t>("kernel")
                           .Attr<std::int64_t>("rank")
                           .RemainingArgs()
                           .RemainingRets());

PyObject* set_runner(PyObject*, PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(runner, function);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"set_runner", set_runner, METH_O, nullptr}, {}};

PyType_Slot slots[] = {{0, nullptr}};
PyType_Spec spec = {"edgegrad.jax.Buffer", sizeof(Buffer), 0, Py_TPFLAGS_DEFAULT, slots};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "handler", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_handler() {
  PyObject* module = PyModule_Create(&definition);
  buffer_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  PyObject* api =
      PyCapsule_New(const_cast<ExchangeAPI*>(&kExchange), "dlpack_exchange_api", nullptr);
  PyObject* entry = PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
  if (module == nullptr || buffer_type == nullptr || api == nullptr || entry == nullptr)
    return nullptr;
  auto* type = reinterpret_cast<PyObject*>(buffer_type);
  if (PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", api) < 0) return nullptr;
  if (PyModule_AddObject(module, "entry", entry) < 0) return nullptr;
  return module;
}
