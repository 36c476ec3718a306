// merge_pieces: adds up the partial sums of every long row, in piece order.
//
// output[row] = sum over its pieces p of partials[p], divided by its number of edges if `offsets`
// are given, or by sums[row] if those are (by 0: 0), and its square root if `root`. With
// `location`, a row is block location % n_blocks (of `width` columns) of the output row location /
// n_blocks. threadIdx.y owns a long row, threadIdx.x one column of it.
#include "common/rows.cuh"
#include "common/vec.cuh"

namespace edgegrad {

template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
merge_pieces(T* __restrict__ output, index_t output_row, index_t output_batch,
             const accum_t<T>* __restrict__ partials, const index_t* __restrict__ piece_row,
             const index_t* __restrict__ first_piece, index_t n_long, index_t n_pieces,
             const index_t* __restrict__ location, int n_blocks, const void* __restrict__ offsets,
             int wide_offsets, const void* __restrict__ sums, int sums_are_float, int root,
             int n_batch, index_t width) {
  using A = accum_t<T>;
  const NodeArray<T> y{output, output_row, output_batch};
  const auto edges = [&](index_t row) {
    return wide_offsets
               ? static_cast<const long long*>(offsets)[row + 1] -
                     static_cast<const long long*>(offsets)[row]
               : static_cast<const int*>(offsets)[row + 1] - static_cast<const int*>(offsets)[row];
  };
  for (index_t batch = blockIdx.z; batch < n_batch; batch += gridDim.z)
    for (index_t l = first_item(); l < n_long; l += item_stride()) {
      const index_t row = piece_row[first_piece[l]];
      const A divisor = sums      ? load_companion<T>(sums, sums_are_float, row)
                        : offsets ? static_cast<A>(edges(row))
                                  : A(1);
      const index_t block = location ? location[row] % n_blocks : 0;
      T* to = y.at(batch, location ? location[row] / n_blocks : row) + block * width;
      for (index_t c = blockIdx.y * blockDim.x + threadIdx.x; c < width;
           c += gridDim.y * blockDim.x) {
        A sum = A(0);
        for (index_t p = first_piece[l]; p < first_piece[l + 1]; ++p)
          sum += partials[(batch * n_pieces + p) * width + c];
        sum = divisor == A(0) ? A(0) : sum / divisor;
        to[c] = narrow<T>(root ? sqrt(sum) : sum);
      }
    }
}

}  // namespace edgegrad
