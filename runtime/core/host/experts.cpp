// SPDX-License-Identifier: Apache-2.0
// Tokens in the slots of their experts, the experts' GEMMs, and the way back to tokens.
#include "gemm.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>

namespace rankc::runtime::host {

// Slots are sorted by expert, and for one expert by token.
template <class T>
void arrange(const lane& on, at places, at offsets, at chosen, int tokens, int picks, int segments) {
  const std::int32_t* choice = on.at<std::int32_t>(chosen);
  std::int32_t *place = on.at<std::int32_t>(places), *begin = on.at<std::int32_t>(offsets),
               *end = begin + segments;
  const std::size_t all = static_cast<std::size_t>(tokens) * picks;
  std::fill_n(end, segments, 0);
  for (std::size_t i = 0; i < all; ++i) ++end[choice[i]];
  std::int32_t before = 0;
  for (int s = 0; s < segments; ++s) {
    begin[s] = before;
    before += end[s];
    end[s] = begin[s];
  }
  for (std::size_t i = 0; i < all; ++i) place[i] = end[choice[i]]++;
}

// Each group and expert gets as many slots as it keeps choices. The slots of an expert are contiguous.
template <class T>
void arrange_limited(const lane& on, at places, at offsets, at scratch, at chosen, int groups, int group,
                     int picks, int experts, int most) {
  const std::int32_t* choice = on.at<std::int32_t>(chosen);
  std::int32_t *place = on.at<std::int32_t>(places), *begin = on.at<std::int32_t>(offsets),
               *end = begin + experts,
               *taken = on.at<std::int32_t>(scratch);  // (groups, experts)
  const std::size_t of_group = static_cast<std::size_t>(group) * picks;
  std::fill_n(taken, groups * experts, 0);
  std::fill_n(end, experts, 0);
  for (int g = 0; g < groups; ++g)
    for (std::size_t i = g * of_group; i < (g + 1) * of_group; ++i) {
      std::int32_t& so_far = taken[g * experts + choice[i]];
      if (so_far < most) {
        ++so_far;
        ++end[choice[i]];
      }
    }
  std::int32_t before = 0;
  for (int e = 0; e < experts; ++e) {
    begin[e] = before;
    before += end[e];
    end[e] = begin[e];
  }
  for (int g = 0; g < groups; ++g)
    for (std::size_t i = g * of_group; i < (g + 1) * of_group; ++i) {
      std::int32_t& left = taken[g * experts + choice[i]];
      place[i] = left > 0 ? end[choice[i]]++ : -1;
      left -= left > 0;
    }
}

// The slots of neighbouring experts are contiguous, so the rank's own slots are one range.
template <class T>
void own_slots(const lane& on, at own_places, at own_offsets, at places, at offsets, int tokens, int picks,
               int own, int first, int experts) {
  const std::int32_t *place = on.at<std::int32_t>(places), *begin = on.at<std::int32_t>(offsets) + first,
                     *end = begin + experts;
  std::int32_t *to = on.at<std::int32_t>(own_places), *own_begin = on.at<std::int32_t>(own_offsets);
  const std::int32_t from = begin[0], until = end[own - 1];
  for (int e = 0; e < own; ++e) {
    own_begin[e] = begin[e] - from;
    own_begin[own + e] = end[e] - from;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(tokens) * picks; ++i)
    to[i] = place[i] >= from && place[i] < until ? place[i] - from : -1;
}

template <class T>
void dispatch(const lane& on, at slots, at x, at places, int tokens, int picks, int width) {
  const std::int32_t* place = on.at<std::int32_t>(places);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n)
    for (int k = 0; k < picks; ++k)
      if (const int slot = place[n * picks + k]; slot >= 0)
        std::copy_n(on.at<T>(x) + n * width, width, on.at<T>(slots) + static_cast<std::size_t>(slot) * width);
}

template <class T>
void collect(const lane& on, at y, at slots, at places, int tokens, int picks, int width) {
  const std::int32_t* place = on.at<std::int32_t>(places);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(y) + n * width;
    std::fill_n(to, width, T(0));
    for (int k = 0; k < picks; ++k) {
      if (place[n * picks + k] < 0) continue;
      const T* from = on.at<T>(slots) + static_cast<std::size_t>(place[n * picks + k]) * width;
#pragma omp simd
      for (int c = 0; c < width; ++c) to[c] += from[c];
    }
  }
}

template <class T>
void combine(const lane& on, at y, at slots, at weights, at places, int tokens, int picks, int width) {
  const std::int32_t* place = on.at<std::int32_t>(places);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(y) + n * width;
    std::fill_n(to, width, T(0));
    for (int k = 0; k < picks; ++k) {
      if (place[n * picks + k] < 0) continue;
      const T weight = on.at<T>(weights)[n * picks + k];
      const T* from = on.at<T>(slots) + static_cast<std::size_t>(place[n * picks + k]) * width;
#pragma omp simd
      for (int c = 0; c < width; ++c) to[c] += weight * from[c];
    }
  }
}

template <class T>
void combine_grad(const lane& on, at dslots, at dweights, at dy, at slots, at weights, at places, int tokens,
                  int picks, int width) {
  const std::int32_t* place = on.at<std::int32_t>(places);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n)
    for (int k = 0; k < picks; ++k) {
      const std::size_t pick = n * picks + k, slot = static_cast<std::size_t>(place[pick]) * width;
      if (place[pick] < 0) {
        on.at<T>(dweights)[pick] = T(0);
        continue;
      }
      const T weight = on.at<T>(weights)[pick], *grad = on.at<T>(dy) + n * width,
              *from = on.at<T>(slots) + slot;
      T* to = on.at<T>(dslots) + slot;
      double dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int c = 0; c < width; ++c) {
        dot += static_cast<double>(grad[c] * from[c]);
        to[c] = weight * grad[c];
      }
      on.at<T>(dweights)[pick] = static_cast<T>(dot);
    }
}

namespace {

/// Calls f(expert, first slot, number of slots) for each segment that is not empty.
template <class F>
void each_segment(const lane& on, at offsets, int segments, int experts, F f) {
  const std::int32_t *begin = on.at<std::int32_t>(offsets), *end = begin + segments;
  for (int s = 0; s < segments; ++s)
    if (end[s] > begin[s]) f(s % experts, static_cast<std::size_t>(begin[s]), end[s] - begin[s]);
}

}  // namespace

template <class T>
void grouped_linear(const lane& on, at y, at x, at w, at offsets, int, int in, int out, int segments,
                    int experts) {
  each_segment(on, offsets, segments, experts, [&](int e, std::size_t first, int count) {
    gemm(form::plain, form::transposed, count, out, in, T(1), on.at<T>(x) + first * in, in,
         on.at<T>(w) + static_cast<std::size_t>(e) * out * in, in, T(0), on.at<T>(y) + first * out, out);
  });
}

template <class T>
void grouped_linear_dx(const lane& on, at dx, at dy, at w, at offsets, int, int in, int out, int segments,
                       int experts) {
  each_segment(on, offsets, segments, experts, [&](int e, std::size_t first, int count) {
    gemm(form::plain, form::plain, count, in, out, T(1), on.at<T>(dy) + first * out, out,
         on.at<T>(w) + static_cast<std::size_t>(e) * out * in, in, T(0), on.at<T>(dx) + first * in, in);
  });
}

template <class T>
void grouped_linear_dw(const lane& on, at dw, at dy, at x, at offsets, int, int in, int out, int segments,
                       int experts, bool accumulate) {
  if (!accumulate) std::fill_n(on.at<T>(dw), static_cast<std::size_t>(experts) * out * in, T(0));
  each_segment(on, offsets, segments, experts, [&](int e, std::size_t first, int count) {
    gemm(form::transposed, form::plain, out, in, count, T(1), on.at<T>(dy) + first * out, out,
         on.at<T>(x) + first * in, in, T(1), on.at<T>(dw) + static_cast<std::size_t>(e) * out * in, in);
  });
}

template decltype(arrange<float>) arrange<float>;
template decltype(arrange<double>) arrange<double>;
template decltype(arrange_limited<float>) arrange_limited<float>;
template decltype(arrange_limited<double>) arrange_limited<double>;
template decltype(own_slots<float>) own_slots<float>;
template decltype(own_slots<double>) own_slots<double>;
template decltype(dispatch<float>) dispatch<float>;
template decltype(dispatch<double>) dispatch<double>;
template decltype(collect<float>) collect<float>;
template decltype(collect<double>) collect<double>;
template decltype(combine<float>) combine<float>;
template decltype(combine<double>) combine<double>;
template decltype(combine_grad<float>) combine_grad<float>;
template decltype(combine_grad<double>) combine_grad<double>;
template decltype(grouped_linear_dx<float>) grouped_linear_dx<float>;
template decltype(grouped_linear_dx<double>) grouped_linear_dx<double>;
template decltype(grouped_linear<float>) grouped_linear<float>;
template decltype(grouped_linear<double>) grouped_linear<double>;
template decltype(grouped_linear_dw<float>) grouped_linear_dw<float>;
template decltype(grouped_linear_dw<double>) grouped_linear_dw<double>;

}  // namespace rankc::runtime::host
