// Imports arrays of every kind; see view() for the order in which the protocols are tried.
#include "array.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

#include "dlpack.h"

namespace edgegrad {
namespace {

constexpr const char* kNames[] = {"float16", "bfloat16",  "float32",    "float64",
                                  "int8",    "int16",     "int32",      "int64",
                                  "uint8",   "uint16",    "uint32",     "uint64",
                                  "bool",    "complex64", "complex128", "of another kind"};
constexpr int kSizes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16, 1};

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(
      nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
}

[[noreturn]] void reject_type(nb::handle object, const std::string& why = "") {
  throw nb::type_error(("type " + class_name(object) + why +
                        ", expected an array (NumPy, CuPy, PyTorch, JAX, or anything with DLPack, "
                        "the CUDA array interface or the buffer protocol)")
                           .c_str());
}

DType sized(char kind, std::int64_t bytes) {
  for (int i = 0; i < static_cast<int>(DType::other); ++i) {
    const DType t = static_cast<DType>(i);
    const char k = t == DType::bfloat16  ? 'V'
                   : t <= DType::float64 ? 'f'
                   : t <= DType::int64   ? 'i'
                   : t <= DType::uint64  ? 'u'
                   : t == DType::boolean ? 'b'
                                         : 'c';
    if (k == kind && kSizes[i] == bytes) return t;
  }
  return DType::other;
}

DType from_dlpack(DLDataType t) {
  if (t.lanes != 1) return DType::other;
  switch (t.code) {
    case kInt:
      return sized('i', t.bits / 8);
    case kUInt:
      return sized('u', t.bits / 8);
    case kFloat:
      return sized('f', t.bits / 8);
    case kBfloat:
      return sized('V', t.bits / 8);
    case kComplex:
      return sized('c', t.bits / 8);
    case kBool:
      return sized('b', t.bits / 8);
    default:
      return DType::other;
  }
}

// struct-module formats; sizes come from itemsize, since "l" means 4 or 8 bytes by prefix.
DType from_format(const char* format, std::int64_t bytes) {
  if (format == nullptr) return DType::uint8;
  const char order = *format;
  if (order == '@' || order == '=' || order == '<') ++format;
  if (*format == '\0') return DType::other;
  if (format[0] == 'Z' && format[1] != '\0') return sized('c', bytes);
  if (format[1] != '\0') return DType::other;  // big-endian, records, sub-arrays
  if (std::strchr("efd", *format) != nullptr) return sized('f', bytes);
  if (std::strchr("bhilqn", *format) != nullptr) return sized('i', bytes);
  if (std::strchr("BHILQN", *format) != nullptr) return sized('u', bytes);
  return *format == '?' ? DType::boolean : DType::other;
}

void set_ndim(ArrayView& a, int ndim) {
  if (ndim > kMaxDims)
    throw nb::value_error(
        (std::to_string(ndim) + " axes, expected at most " + std::to_string(kMaxDims)).c_str());
  a.ndim = ndim;
}

// Byte strides become element strides; null means C order.
template <typename Int> void
set_layout(ArrayView& a, const Int* shape, const Int* byte_strides, std::int64_t item) {
  if (item <= 0) throw nb::type_error("items of no size, expected numbers");
  std::int64_t packed = 1;
  for (int i = a.ndim - 1; i >= 0; --i) {
    a.shape[i] = static_cast<std::int64_t>(shape[i]);
    a.strides[i] = packed;
    packed *= a.shape[i];
    if (byte_strides == nullptr) continue;
    const auto bytes = static_cast<std::int64_t>(byte_strides[i]);
    if (a.shape[i] > 1 && bytes % item != 0)
      throw nb::value_error(("a stride of " + std::to_string(bytes) +
                             " bytes, expected a multiple of its item size, " +
                             std::to_string(item))
                                .c_str());
    a.strides[i] = bytes / item;
  }
}

void check_alignment(const ArrayView& a) {
  const int item = a.dtype == DType::complex64 || a.dtype == DType::complex128
                       ? item_size(a.dtype) / 2
                       : item_size(a.dtype);
  if (a.size() > 0 && reinterpret_cast<std::uintptr_t>(a.data) % item != 0)
    throw nb::value_error(("an address that is not a multiple of its item size, expected one that "
                           "is a multiple of " +
                           std::to_string(item) + " bytes")
                              .c_str());
}

void fill(ArrayView& a, const DLTensor& t) {
  if (t.dtype.bits % 8 != 0)
    throw nb::type_error("items narrower than a byte, expected whole bytes");
  a.data = t.data == nullptr ? nullptr : static_cast<char*>(t.data) + t.byte_offset;
  a.dtype = from_dlpack(t.dtype);
  a.device_type = t.device.device_type;
  a.device_id = t.device.device_id;
  if (a.device_type == kCudaHost) a.device_type = kCpu, a.device_id = 0;
  if (a.device_type == kCudaManaged) a.device_type = kCuda;
  set_ndim(a, t.ndim);
  set_layout<std::int64_t>(a, t.shape, nullptr, 1);
  if (t.strides != nullptr) std::copy(t.strides, t.strides + a.ndim, a.strides);
}

bool fill_from_buffer(ArrayView& a, nb::handle object) {
  Py_buffer& b = a.owner.buffer.emplace();
  if (PyObject_GetBuffer(object.ptr(), &b, PyBUF_RECORDS_RO) != 0) {
    a.owner.buffer.reset();
    PyErr_Clear();
    return false;
  }
  a.data = b.buf;
  a.readonly = b.readonly != 0;
  a.dtype = from_format(b.format, b.itemsize);
  set_ndim(a, b.ndim);
  set_layout<Py_ssize_t>(a, b.shape, b.strides, b.itemsize);
  return true;
}

// NumPy cannot export bfloat16 through its buffers; its 16-bit view can be.
bool fill_from_bfloat16(ArrayView& a, nb::handle object) {
  if (nb::cast<std::string>(object.attr("dtype").attr("name")) != "bfloat16") return false;
  if (!fill_from_buffer(a, object.attr("view")("uint16"))) return false;
  a.dtype = DType::bfloat16;
  return true;
}

// The C function table of an array type, or null; looked up once for every type. The types are held
// weakly: one of the user's own must not keep its module alive.
const DLPackExchangeAPI* exchange_api(PyTypeObject* type) {
  struct Known {
    PyObject* weak;
    const DLPackExchangeAPI* api;
  };
  static auto* cache = new std::unordered_map<PyTypeObject*, Known>();
  const nb::handle t(reinterpret_cast<PyObject*>(type));
  if (const auto known = cache->find(type); known != cache->end()) {
    const nb::object alive = nb::steal(PyObject_CallNoArgs(known->second.weak));
    if (alive.is(t)) return known->second.api;
    Py_DECREF(known->second.weak);  // its address has gone to another type
    cache->erase(known);
  }
  const DLPackExchangeAPI* api = nullptr;
  if (nb::object capsule = nb::getattr(t, "__dlpack_c_exchange_api__", nb::none());
      PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    api = static_cast<const DLPackExchangeAPI*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    while (api != nullptr && api->version.major != 1) api = api->prev_api;
    if (api != nullptr && api->dltensor_from_py_object_no_sync == nullptr) api = nullptr;
  }
  if (PyObject* weak = PyWeakref_NewRef(t.ptr(), nullptr); weak != nullptr) {
    cache->emplace(type, Known{weak, api});
  } else {
    PyErr_Clear();
  }
  return api;
}

// Torch keeps the sign of such views as z.conj().imag in a flag that no protocol carries.
void reject_lazy_sign(nb::handle object) {
  const nb::object is_neg = nb::getattr(object, "is_neg", nb::none());
  if (!is_neg.is_none() && nb::cast<bool>(is_neg()))
    throw nb::value_error("a sign that is not applied yet, expected a tensor after resolve_neg()");
}

bool fill_from_exchange_api(ArrayView& a, nb::handle object) {
  const DLPackExchangeAPI* api = exchange_api(Py_TYPE(object.ptr()));
  DLTensor t;
  if (api == nullptr) return false;
  if (api->dltensor_from_py_object_no_sync(object.ptr(), &t) != 0) {
    PyErr_Clear();  // such as a tensor that requires grad: the slower way below knows what to do
    return false;
  }
  // Device memory goes through __dlpack__, which orders the producer's stream before ours.
  if (t.device.device_type != kCpu) return false;
  reject_lazy_sign(object);
  fill(a, t);
  a.owner.object = nb::borrow(object);
  return true;
}

bool fill_from_cuda_interface(ArrayView& a, nb::handle object, std::uintptr_t stream) {
  const nb::object found = nb::getattr(object, "__cuda_array_interface__", nb::none());
  if (!nb::isinstance<nb::dict>(found)) return false;
  const nb::dict d = nb::cast<nb::dict>(found);
  // An interface without a stream (torch's) orders nothing; DLPack does.
  if (!d.contains("stream") && nb::hasattr(object, "__dlpack__")) return false;
  if (d.contains("mask") && !nb::object(d["mask"]).is_none()) reject_type(object, " with a mask");
  const auto typestr = nb::cast<std::string>(d["typestr"]);
  if (typestr.size() < 3 || typestr[0] == '>') reject_type(object, " with type string " + typestr);
  if (typestr[1] == 'V') return false;  // bfloat16 has no code here; DLPack says which it is
  const std::int64_t item = std::atoll(typestr.c_str() + 2);
  a.dtype = sized(typestr[1], item);
  const nb::tuple shape = nb::cast<nb::tuple>(d["shape"]);
  const nb::object strides = d.contains("strides") ? nb::object(d["strides"]) : nb::none();
  std::int64_t n[kMaxDims], s[kMaxDims];
  set_ndim(a, static_cast<int>(shape.size()));
  for (int i = 0; i < a.ndim; ++i) {
    n[i] = nb::cast<std::int64_t>(shape[i]);
    if (!strides.is_none()) s[i] = nb::cast<std::int64_t>(strides[i]);
  }
  set_layout<std::int64_t>(a, n, strides.is_none() ? nullptr : s, item);
  const nb::tuple data = nb::cast<nb::tuple>(d["data"]);
  a.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
  a.readonly = nb::cast<bool>(data[1]);
  const nb::object pending = d.contains("stream") ? nb::object(d["stream"]) : nb::none();
  const nb::module_ cuda = nb::module_::import_("edgegrad.backends.cuda");
  a.device_type = kCuda;
  a.device_id = nb::cast<int>(cuda.attr("device_of")(object, data[0], pending, stream));
  a.owner.object = nb::borrow(object);
  return true;
}

template <typename Tensor> Tensor* consume(nb::handle capsule, const char* name, const char* used) {
  if (!PyCapsule_IsValid(capsule.ptr(), name)) return nullptr;
  auto* tensor = static_cast<Tensor*>(PyCapsule_GetPointer(capsule.ptr(), name));
  PyCapsule_SetName(capsule.ptr(), used);
  return tensor;
}

nb::object call_dlpack(nb::handle object, std::uintptr_t stream) {
  const nb::object method = object.attr("__dlpack__");
  nb::dict kwargs;
  const nb::object place = nb::getattr(object, "__dlpack_device__", nb::none());
  if (!place.is_none()) {
    const nb::object device = place();
    // DLPack calls the legacy default stream 1; 0 is not allowed there.
    if (nb::cast<int>(device[0]) == kCuda) kwargs["stream"] = stream == 0 ? 1 : stream;
  }
  kwargs["max_version"] = nb::make_tuple(1, 1);
  try {
    return method(**kwargs);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  nb::del(kwargs["max_version"]);  // an exporter from before DLPack 1.0
  return method(**kwargs);
}

bool is_jax(nb::handle object) {
  const nb::object name =
      nb::getattr(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())), "__module__", nb::none());
  return nb::isinstance<nb::str>(name) && nb::cast<std::string>(name).rfind("jax", 0) == 0;
}

bool fill_from_dlpack(ArrayView& a, nb::handle object, std::uintptr_t stream) {
  if (!nb::hasattr(object, "__dlpack__")) return false;
  nb::object source = nb::borrow(object);
  const nb::object requires_grad = nb::getattr(object, "requires_grad", nb::none());
  if (nb::isinstance<nb::bool_>(requires_grad)) {
    reject_lazy_sign(object);
    // A view of its own: torch may give the tensor itself other memory.
    source = object.attr("detach")();
  }
  const nb::object capsule = call_dlpack(source, stream);
  if (auto* v = consume<DLManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                  "used_dltensor_versioned")) {
    a.owner.versioned = v;
    if (v->version.major != 1)
      throw nb::type_error(
          ("DLPack version " + std::to_string(v->version.major) + ", expected version 1").c_str());
    a.readonly = (v->flags & kReadOnlyFlag) != 0;
    fill(a, v->dl_tensor);
  } else if (auto* t = consume<DLManagedTensor>(capsule, "dltensor", "used_dltensor")) {
    a.owner.legacy = t;
    fill(a, t->dl_tensor);
    a.readonly = is_jax(object);  // immutable, but old capsules have no place to say so
  } else {
    reject_type(object, " whose __dlpack__ gave no unused DLPack capsule");
  }
  return true;
}

bool is_ndarray(nb::handle object) {
  static PyObject* type = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return PyType_IsSubtype(Py_TYPE(object.ptr()), reinterpret_cast<PyTypeObject*>(type)) != 0;
}

}  // namespace

Owner::Owner(Owner&& other) noexcept
    : object(std::move(other.object)),
      buffer(other.buffer),
      legacy(other.legacy),
      versioned(other.versioned) {
  other.buffer.reset();
  other.legacy = nullptr;
  other.versioned = nullptr;
}

Owner::~Owner() {
  if (buffer) PyBuffer_Release(&*buffer);
  if (legacy != nullptr && legacy->deleter != nullptr) legacy->deleter(legacy);
  if (versioned != nullptr && versioned->deleter != nullptr) versioned->deleter(versioned);
}

int item_size(DType dtype) { return kSizes[static_cast<int>(dtype)]; }

std::int64_t ArrayView::size() const {
  std::int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}

bool ArrayView::rows_contiguous() const {
  return ndim == 0 || size() == 0 || shape[ndim - 1] == 1 || strides[ndim - 1] == 1;
}

bool ArrayView::joins_to_rows() const {
  if (ndim < 1 || !rows_contiguous()) return false;
  std::int64_t run = ndim > 1 ? shape[ndim - 1] : 1;
  for (int i = ndim - 2; i > 0; run *= shape[i--])
    if (size() > 0 && shape[i] > 1 && strides[i] != run) return false;
  return true;
}

bool ArrayView::self_overlapping() const {
  // Axes sorted by stride: each must step over everything the smaller ones span.
  std::int64_t stride[kMaxDims], extent[kMaxDims];
  int n = 0;
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] == 1) continue;
    int at = n++;
    for (; at > 0 && stride[at - 1] > std::abs(strides[i]); --at) {
      stride[at] = stride[at - 1];
      extent[at] = extent[at - 1];
    }
    stride[at] = std::abs(strides[i]);
    extent[at] = shape[i];
  }
  std::int64_t span = 1;
  for (int i = 0; i < n; ++i) {
    if (stride[i] < span) return true;
    span += stride[i] * (extent[i] - 1);
  }
  return false;
}

bool ArrayView::writable() const { return !readonly && !self_overlapping(); }

bool overlap(const ArrayView& a, const ArrayView& b) {
  if (a.size() == 0 || b.size() == 0 || a.device_type != b.device_type) return false;
  const auto range = [](const ArrayView& v) {
    std::int64_t low = 0, high = 0;
    for (int i = 0; i < v.ndim; ++i) {
      const std::int64_t reach = v.strides[i] * (v.shape[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto base = reinterpret_cast<std::intptr_t>(v.data);
    const int item = item_size(v.dtype);
    return std::make_pair(base + low * item, base + (high + 1) * item);
  };
  const auto [a0, a1] = range(a);
  const auto [b0, b1] = range(b);
  if (a1 <= b0 || b1 <= a0) return false;
  // Column blocks of one buffer interleave without touching: compare them within the row pitch.
  if (a.ndim == 2 && b.ndim == 2 && a.rows_contiguous() && b.rows_contiguous()) {
    // A single row has no pitch of its own: any stride may stand there.
    const ArrayView& pitched = a.shape[0] > 1 ? a : b;
    const ArrayView& other = a.shape[0] > 1 ? b : a;
    const std::int64_t pitch = std::abs(pitched.strides[0]) * item_size(pitched.dtype);
    const bool alike =
        other.shape[0] == 1 || pitch == std::abs(other.strides[0]) * item_size(other.dtype);
    const std::int64_t wa = a.shape[1] * item_size(a.dtype), wb = b.shape[1] * item_size(b.dtype);
    if (alike && wa + wb <= pitch) {
      const std::int64_t gap = ((b0 - a0) % pitch + pitch) % pitch;
      return gap < wa || pitch - gap < wb;
    }
  }
  return true;
}

// NumPy and torch, the common cases, come first and cost a fraction of a microsecond. Buffers come
// before the CUDA interface, since JAX arrays on the host are slow to say that they have none.
nb::object view(nb::handle object, std::uintptr_t stream, bool keep) {
  if (nb::isinstance<ArrayView>(object)) return nb::borrow(object);
  ArrayView a;
  if (is_ndarray(object)) {
    // Arrays of a subclass may hold more than their memory says.
    if (nb::hasattr(object, "mask")) reject_type(object, " with a mask");
    if (!fill_from_buffer(a, object) && !fill_from_bfloat16(a, object))
      reject_type(object, " of dtype " + nb::cast<std::string>(nb::str(object.attr("dtype"))));
  } else {
    // What the exchange API lends belongs to the tensor, whose memory may be replaced later.
    const bool found = (!keep && fill_from_exchange_api(a, object)) ||
                       (PyObject_CheckBuffer(object.ptr()) && fill_from_buffer(a, object)) ||
                       fill_from_cuda_interface(a, object, stream) ||
                       fill_from_dlpack(a, object, stream);
    if (!found) reject_type(object);
  }
  check_alignment(a);
  return nb::cast(std::move(a));
}

namespace {

nb::tuple to_tuple(const std::int64_t* values, int n) {
  nb::object result = nb::steal(PyTuple_New(n));
  for (int i = 0; i < n; ++i) PyTuple_SetItem(result.ptr(), i, PyLong_FromLongLong(values[i]));
  return nb::cast<nb::tuple>(result);
}

std::string device_name(const ArrayView& a) {
  if (a.device_type == kCpu) return "cpu";
  if (a.device_type == kCuda) return "cuda:" + std::to_string(a.device_id);
  return "DLPack type " + std::to_string(a.device_type);
}

nb::object interned(const std::string& text) {
  return nb::steal(PyUnicode_InternFromString(text.c_str()));
}

nb::object dtype_object(const ArrayView& a) {
  static PyObject* names[static_cast<int>(DType::other) + 1] = {};
  PyObject*& name = names[static_cast<int>(a.dtype)];
  if (name == nullptr) name = interned(kNames[static_cast<int>(a.dtype)]).release().ptr();
  return nb::borrow(name);
}

nb::object device_object(const ArrayView& a) {
  static PyObject* cpu = interned("cpu").release().ptr();
  return a.device_type == kCpu ? nb::borrow(cpu) : interned(device_name(a));
}

nb::dict array_interface(nb::handle self) {
  const ArrayView& a = nb::cast<const ArrayView&>(self);
  static const char* kinds = "fVffiiiiuuuubcc";
  if (a.dtype == DType::other) throw nb::attribute_error("no type string");
  nb::dict d;
  d["shape"] = to_tuple(a.shape, a.ndim);
  d["typestr"] = std::string(item_size(a.dtype) == 1 ? "|" : "<") +
                 kinds[static_cast<int>(a.dtype)] + std::to_string(item_size(a.dtype));
  std::int64_t bytes[kMaxDims];
  for (int i = 0; i < a.ndim; ++i) bytes[i] = a.strides[i] * item_size(a.dtype);
  d["strides"] = to_tuple(bytes, a.ndim);
  d["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(a.data), a.readonly);
  d["version"] = 3;
  return d;
}

// A view into a view, which it keeps alive.
ArrayView part_of(nb::handle self) {
  const ArrayView& a = nb::cast<const ArrayView&>(self);
  ArrayView part;
  part.data = a.data;
  part.ndim = a.ndim;
  std::copy(a.shape, a.shape + a.ndim, part.shape);
  std::copy(a.strides, a.strides + a.ndim, part.strides);
  part.dtype = a.dtype;
  part.device_type = a.device_type;
  part.device_id = a.device_id;
  part.readonly = a.readonly;
  part.owner.object = nb::borrow(self);
  return part;
}

ArrayView columns(nb::handle self, std::int64_t begin, std::int64_t width) {
  ArrayView part = part_of(self);
  const int last = part.ndim - 1;
  part.shape[last] = width;
  // The address of nothing stays where it is, inside its memory.
  if (part.size() > 0)
    part.data = static_cast<char*>(part.data) + begin * part.strides[last] * item_size(part.dtype);
  return part;
}

ArrayView as_column(nb::handle self) {
  ArrayView part = part_of(self);
  part.ndim = 2;
  part.shape[1] = part.strides[1] = 1;
  return part;
}

nb::object exporter(nb::handle self) {
  const ArrayView& a = nb::cast<const ArrayView&>(self);
  if (a.dtype == DType::other) throw nb::type_error("items of another kind, expected numbers");
  const DLDataType t = [&] {
    const auto bits = static_cast<std::uint8_t>(8 * item_size(a.dtype));
    static const std::uint8_t codes[] = {kFloat, kBfloat, kFloat, kFloat,   kInt,
                                         kInt,   kInt,    kInt,   kUInt,    kUInt,
                                         kUInt,  kUInt,   kBool,  kComplex, kComplex};
    return DLDataType{codes[static_cast<int>(a.dtype)], bits, 1};
  }();
  std::size_t shape[kMaxDims];
  std::copy(a.shape, a.shape + a.ndim, shape);
  const nb::dlpack::dtype dtype{t.code, t.bits, t.lanes};
  if (a.readonly)
    return nb::cast(nb::ndarray<nb::array_api, nb::ro>(a.data, a.ndim, shape, self, a.strides,
                                                       dtype, a.device_type, a.device_id));
  return nb::cast(nb::ndarray<nb::array_api>(a.data, a.ndim, shape, self, a.strides, dtype,
                                             a.device_type, a.device_id));
}

constexpr std::int64_t kAbsent = -1;   // of an axis in brackets that this call's arrays lack
constexpr std::int64_t kUnknown = -2;  // of an axis that no array has had yet

std::int64_t known_size(const nb::dict& sizes, PyObject* axis) {
  PyObject* size = PyDict_GetItemWithError(sizes.ptr(), axis);
  return size == nullptr ? kUnknown : PyLong_AsLongLong(size);
}

void set_size(const nb::dict& sizes, PyObject* axis, std::int64_t size) {
  const nb::object n = nb::steal(PyLong_FromLongLong(size));
  PyDict_SetItem(sizes.ptr(), axis, n.ptr());
}

// The first array with an axis in brackets decides for the others of the call whether they have it.
bool fits(const ArrayView& a, const nb::tuple& axes, const nb::dict& sizes) {
  const auto n = static_cast<Py_ssize_t>(axes.size());
  Py_ssize_t left = n;  // axes the array must have
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* axis = PyTuple_GetItem(axes.ptr(), i);
    if (PyUnicode_ReadChar(axis, 0) != '[') continue;
    std::int64_t size = known_size(sizes, axis);
    if (size == kUnknown && left != a.ndim) set_size(sizes, axis, size = kAbsent);
    if (size == kAbsent) --left;
  }
  if (left != a.ndim) return false;
  for (Py_ssize_t i = 0, at = 0; i < n; ++i) {
    PyObject* axis = PyTuple_GetItem(axes.ptr(), i);
    const std::int64_t size = known_size(sizes, axis);
    if (size == kAbsent) continue;
    if (size == kUnknown)
      set_size(sizes, axis, a.shape[at]);
    else if (size != a.shape[at])
      return false;
    ++at;
  }
  return true;
}

// All that an array must be, at once; what is amiss is found out afterwards, for the message.
bool suits(const ArrayView& a, nb::handle device, const nb::tuple& axes, const nb::dict& sizes,
           bool written) {
  return device_object(a).equal(device) && fits(a, axes, sizes) && a.rows_contiguous() &&
         (!written || a.writable());
}

nb::object first_overlap(const nb::list& outputs, const nb::list& inputs) {
  const auto at = [](const nb::list& from, std::size_t i) -> const ArrayView& {
    return nb::cast<const ArrayView&>(from[i]);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(at(outputs, i), at(outputs, j))) return nb::make_tuple(outputs[i], outputs[j]);
    for (std::size_t j = 0; j < inputs.size(); ++j)
      if (overlap(at(outputs, i), at(inputs, j))) return nb::make_tuple(outputs[i], inputs[j]);
  }
  return nb::none();
}

// The same memory as rows x columns, kept alive by the view it was made of.
nb::object joined_rows(nb::handle self) {
  if (!nb::cast<const ArrayView&>(self).joins_to_rows()) return nb::none();
  ArrayView rows = part_of(self);
  std::int64_t width = 1;
  for (int i = 1; i < rows.ndim; ++i) width *= rows.shape[i];
  rows.ndim = 2;
  rows.shape[1] = width;
  rows.strides[1] = 1;
  return nb::cast(std::move(rows));
}

}  // namespace

void bind_array(nb::module_& m) {
  nb::class_<ArrayView>(m, "ArrayView", nb::is_final(),
                        "A view of an array: address, shape, strides in elements, dtype, device. "
                        "Exports itself by DLPack and the array interfaces.")
      .def_prop_ro("ptr",
                   [](const ArrayView& a) { return reinterpret_cast<std::uintptr_t>(a.data); })
      .def_prop_ro("shape", [](const ArrayView& a) { return to_tuple(a.shape, a.ndim); })
      .def_prop_ro("strides", [](const ArrayView& a) { return to_tuple(a.strides, a.ndim); })
      .def_ro("ndim", &ArrayView::ndim)
      .def_prop_ro("size", &ArrayView::size)
      .def_prop_ro("itemsize", [](const ArrayView& a) { return item_size(a.dtype); })
      .def_prop_ro("nbytes", [](const ArrayView& a) { return a.size() * item_size(a.dtype); })
      .def_prop_ro("dtype", &dtype_object, nb::sig("def dtype(self, /) -> str"))
      .def_prop_ro("device", &device_object, nb::sig("def device(self, /) -> str"))
      .def_ro("readonly", &ArrayView::readonly)
      .def("fits", &fits, nb::arg("axes"), nb::arg("sizes"),
           "Whether every axis has the size known by its name; a size not known yet is added. An "
           "axis in brackets may be missing, in all arrays alike: its size is then -1.")
      .def("suits", &suits, nb::arg("device"), nb::arg("axes"), nb::arg("sizes"),
           nb::arg("written"),
           nb::sig("def suits(self, device: str, axes: tuple, sizes: dict, written: bool) -> bool"),
           "Whether it is on that device, fits, and has rows without gaps that can be written.")
      .def_prop_ro("rows_contiguous", &ArrayView::rows_contiguous)
      .def_prop_ro("self_overlapping", &ArrayView::self_overlapping)
      .def_prop_ro("writable", &ArrayView::writable)
      .def("rows", &joined_rows, nb::sig("def rows(self, /) -> ArrayView | None"),
           "The same memory as (rows, columns), trailing axes joined; None where they do not join.")
      .def_prop_ro("__array_interface__",
                   [](nb::handle self) {
                     const ArrayView& a = nb::cast<const ArrayView&>(self);
                     if (a.device_type != kCpu || a.dtype == DType::bfloat16)
                       throw nb::attribute_error("__array_interface__");
                     return array_interface(self);
                   })
      .def_prop_ro("__cuda_array_interface__",
                   [](nb::handle self) {
                     const ArrayView& a = nb::cast<const ArrayView&>(self);
                     if (a.device_type != kCuda || a.dtype == DType::bfloat16)
                       throw nb::attribute_error("__cuda_array_interface__");
                     return array_interface(self);
                   })
      .def("__dlpack__",
           [](nb::handle self, const nb::kwargs& kwargs) {
             return exporter(self).attr("__dlpack__")(**kwargs);
           })
      .def("__dlpack_device__",
           [](const ArrayView& a) { return nb::make_tuple(a.device_type, a.device_id); })
      .def("columns", &columns, nb::arg("begin"), nb::arg("width"),
           "The view of `width` columns (places of the last axis) from `begin` on.")
      .def("as_column", &as_column, "The view of a one-axis array as one column.")
      .def("__len__", [](const ArrayView& a) { return a.ndim > 0 ? a.shape[0] : 0; })
      .def("__repr__", [](const ArrayView& a) {
        std::string s = "ArrayView(" + std::string(kNames[static_cast<int>(a.dtype)]) + " (";
        for (int i = 0; i < a.ndim; ++i)
          s += std::to_string(a.shape[i]) + (i + 1 < a.ndim ? ", " : "");
        return s + ") on " + device_name(a) + ")";
      });
  m.def("view", &view, nb::arg("object").none(), nb::arg("stream") = 0, nb::arg("keep") = false,
        nb::sig("def view(object: object, stream: int = 0, keep: bool = False) -> ArrayView"),
        "View an array of any kind without copying it.");
  m.def("overlap", &overlap, nb::arg("a"), nb::arg("b"));
  m.def("first_overlap", &first_overlap, nb::arg("outputs"), nb::arg("inputs"),
        nb::sig(
            "def first_overlap(outputs: list, inputs: list) -> tuple[ArrayView, ArrayView] | None"),
        "The first output that shares memory with an earlier output or an input, and that one.");
}

}  // namespace edgegrad
