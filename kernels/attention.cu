// What attention needs beside its walks over edges: merges of pieces, and sums over nodes or teams.
// Threads and items as in rows.cuh; see common/attention.cuh for the formulas.
#include "common/attention.cuh"

namespace edgegrad {

// Output and softmax of long rows from their pieces, in order. threadIdx.y owns a head of a row
// (all heads if they are averaged), threadIdx.x a column of it.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
attention_merge_fwd(T* __restrict__ output, index_t output_row, accum_t<T>* __restrict__ stats,
                    index_t stats_plane, index_t stats_row, const accum_t<T>* __restrict__ partials,
                    const index_t* __restrict__ piece_row, const index_t* __restrict__ first_piece,
                    index_t n_long, index_t n_pieces, int heads, int width, int concat) {
  using A = accum_t<T>;
  const A* pairs = partials + n_pieces * heads * width;
  const int per_row = concat ? heads : 1;
  for (index_t i = first_item(); i < n_long * per_row; i += item_stride()) {
    const HeadItem at = head_item(i, per_row);
    const index_t first = first_piece[at.unit], last = first_piece[at.unit + 1];
    const index_t row = piece_row[first];
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
      A total = A(0);
      for (int h = at.head; h < at.head + heads / per_row; ++h) {
        auto softmax = SoftmaxPart<A>::none();
        A sum = A(0);
#pragma unroll 1  // or registers spill
        for (index_t piece = first; piece < last; ++piece) {
          const index_t from = piece * heads + h;
          const auto joined = join<A>(softmax, {pairs[2 * from], pairs[2 * from + 1]});
          sum = sum * joined.scale_a + partials[from * width + c] * joined.scale_b;
          softmax = joined.part;
        }
        total += sum * softmax.inverse() / (concat ? A(1) : static_cast<A>(heads));
        if (stats && c == 0) {
          stats[row * stats_row + h] = softmax.max;
          stats[stats_plane + row * stats_row + h] = softmax.sum;
        }
      }
      output[row * output_row + (concat ? static_cast<index_t>(at.head) * width : 0) + c] =
          narrow<T>(total);
    }
  }
}

// Mean and destination gradient of long rows, `width` numbers per head.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kBackwardBlocks)
attention_merge_dst(void* __restrict__ grad_dst, index_t grad_dst_row, int grad_dst_is_wide,
                    DstFields<accum_t<T>>* __restrict__ fields,
                    const accum_t<T>* __restrict__ partials, const index_t* __restrict__ piece_row,
                    const index_t* __restrict__ first_piece, index_t n_long, index_t n_pieces,
                    int heads, int width) {
  using A = accum_t<T>;
  const Gradient<T> gradient{grad_dst, grad_dst_row, grad_dst_is_wide};
  const index_t n = n_pieces * heads;
  const A *without = partials + n * width, *means = partials + 2 * n * width;
  for (index_t i = first_item(); i < n_long * heads; i += item_stride()) {
    const HeadItem at = head_item(i, heads);
    const index_t first = first_piece[at.unit], last = first_piece[at.unit + 1];
    const index_t row = piece_row[first];
    A mean = A(0);
    for (index_t piece = first; piece < last; ++piece) mean += means[piece * heads + at.head];
    if (threadIdx.x == 0) fields[row * heads + at.head].mean = mean;
    for (int c = threadIdx.x; grad_dst && c < width; c += blockDim.x) {
      A with = A(0), all = A(0);
      for (index_t piece = first; piece < last; ++piece) {
        const index_t from = (piece * heads + at.head) * width + c;
        with += partials[from];
        all += without[from];
      }
      gradient.store(row, static_cast<index_t>(at.head) * width + c, with - mean * all);
    }
  }
}

// scores[n, h] = <weights[h], rows[n, h]>
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
attention_scores(accum_t<T>* __restrict__ scores, const T* __restrict__ rows, index_t row,
                 const void* __restrict__ weights, int weights_are_float, index_t first_weight,
                 index_t n_rows, int heads, int width) {
  using A = accum_t<T>;
  const unsigned mask = team_mask(blockDim.x);
  for (index_t i = first_item(); i < n_rows * heads; i += item_stride()) {
    const HeadItem at = head_item(i, heads);
    const index_t column = static_cast<index_t>(at.head) * width;
    A sum = A(0);
    for (int c = threadIdx.x; c < width; c += blockDim.x)
      sum += widen(rows[at.unit * row + column + c]) *
             load_companion<T>(weights, weights_are_float, first_weight + column + c);
    sum = team_sum(sum, blockDim.x, mask);
    if (threadIdx.x == 0) scores[i] = sum;
  }
}

// From the gradient of every destination's score: grad_dst[n, h] = slopes[n, h] weights[h], and of
// each team the sum over its rows of slopes times rows. A team's items are all of one head.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
attention_dst_scores(void* __restrict__ grad_dst, index_t grad_dst_row, int grad_dst_is_wide,
                     accum_t<T>* __restrict__ weight_sums, const accum_t<T>* __restrict__ slopes,
                     const T* __restrict__ rows, index_t row, const void* __restrict__ weights,
                     int weights_are_float, index_t first_weight, index_t n_rows, int heads,
                     int width) {
  using A = accum_t<T>;
  const Gradient<T> gradient{grad_dst, grad_dst_row, grad_dst_is_wide};
  const index_t team = first_item();
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    A sum = A(0);
    for (index_t i = team; i < n_rows * heads; i += item_stride()) {
      const HeadItem at = head_item(i, heads);
      const index_t column = static_cast<index_t>(at.head) * width + c;
      // Where nothing comes back the row may hold anything.
      if (weight_sums && slopes[i] != A(0)) sum += slopes[i] * widen(rows[at.unit * row + column]);
      if (grad_dst)
        gradient.store(
            at.unit, column,
            slopes[i] * load_companion<T>(weights, weights_are_float, first_weight + column));
    }
    if (weight_sums) weight_sums[team * width + c] = sum;
  }
}

// weights[first + h * width + c] = sum over the teams of head h of sums[team, c], in eight strands
// that are added in a fixed order. Launch: blockDim (32, kBlockThreads / 32), a column per thread.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
attention_weights(void* __restrict__ weights, int is_float, index_t first,
                  const accum_t<T>* __restrict__ sums, index_t n_teams, int heads, int width) {
  using A = accum_t<T>;
  constexpr int kStrands = kBlockThreads / 32;
  __shared__ A strands[kStrands][33];
  const index_t size = static_cast<index_t>(heads) * width, tiles = (size + 31) / 32;
  for (index_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const index_t i = tile * 32 + threadIdx.x;
    A sum = A(0);
    if (i < size)
      for (index_t t = i / width + static_cast<index_t>(threadIdx.y) * heads; t < n_teams;
           t += static_cast<index_t>(kStrands) * heads)
        sum += sums[t * width + i % width];
    strands[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
      for (int s = 1; s < kStrands; ++s) sum += strands[s][threadIdx.x];
      store_companion<T>(weights, is_float, first + i, sum);
    }
    __syncthreads();
  }
}

}  // namespace edgegrad
