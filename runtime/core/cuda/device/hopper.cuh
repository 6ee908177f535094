// SPDX-License-Identifier: Apache-2.0
// Wrappers for instructions of compute capability 9.0: pairs of blocks (clusters), barriers in shared memory
// that count bytes (mbarrier), the copy engine that fills shared memory from a tensor map (TMA), and matrix
// products by a warpgroup of 128 threads (wgmma). Addresses of shared memory are 32-bit numbers here.
// Source: PTX ISA 9.0, sections on mbarrier, cp.async.bulk.tensor and wgmma.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace rankc::runtime::cuda::hopper {

using shared_address = std::uint32_t;
__device__ inline shared_address address_of(const void* shared) {
  return static_cast<shared_address>(__cvta_generic_to_shared(shared));
}

/// This block's number in its cluster.
__device__ inline int place_in_cluster() {
  int place;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(place));
  return place;
}
__device__ inline void meet_in_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/// True for one thread of the warp, always the same.
__device__ inline bool elected() {
  unsigned is;
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, one;\n"
      "}"
      : "=r"(is));
  return is != 0;
}

/// A barrier's phase ends after `arrivals` arrivals and after the copies of all bytes that they expect.
__device__ inline void make_barrier(shared_address barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(shared_address barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives at the barrier with this address in a block of the cluster.
__device__ inline void arrive_in(int place, shared_address barrier) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(barrier),
      "r"(place)
      : "memory");
}
__device__ inline void arrive_expecting(shared_address barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Waits until the phase of this parity has ended. A new barrier is in phase 0; the previous phase, of parity
/// 1, counts as ended.
__device__ inline void wait(shared_address barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Copies the box whose first element is (row, column) to `to`. The copy reports its bytes to the barrier.
__device__ inline void copy_box(shared_address to, const CUtensorMap& from, int row, int column,
                                shared_address barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(to),
      "l"(&from), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}
/// Copies the box to both blocks of a cluster of two, at the same addresses, and reports to the barriers of
/// both.
__device__ inline void copy_box_to_both(shared_address to, const CUtensorMap& from, int row, int column,
                                        shared_address barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, "
      "%4}], "
      "[%2], %5;" ::"r"(to),
      "l"(&from), "r"(barrier), "r"(column), "r"(row), "h"(static_cast<unsigned short>(3))
      : "memory");
}
/// Copies `bytes`, a multiple of 16, between addresses that are multiples of 16.
__device__ inline void copy_line(shared_address to, const void* from, int bytes, shared_address barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Sets 16 bytes of shared memory to 0.
__device__ inline void clear_piece(shared_address at) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
}

/// Makes this thread's stores to shared memory visible to the tensor cores after a later barrier.
__device__ inline void publish_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Set the registers of each thread of the warpgroup.
template <int Registers>
__device__ void give_back_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// The contiguous dim of a factor in shared memory: the summed dim, or the result's rows or columns.
enum class major { sum, result };

/// The descriptor of a factor in boxes of 64 rows of 128 bytes with swizzled 16-byte pieces, as the copy
/// engine writes them. 1024 bytes are 8 rows. With `major::result` the 128 bytes run along the result's rows
/// or columns, and the next 64 of them are in the next box.
struct description {
  std::uint32_t low, high;
};
__device__ inline description described(shared_address at) {
  constexpr std::uint32_t box = 8192 >> 4, eight_rows = 1024 >> 4, swizzle_128 = 1;
  return {(at & 0x3ffffu) >> 4 | box << 16, eight_rows | swizzle_128 << 30};
}
__device__ inline description further(description d, int bytes) { return {d.low + (bytes >> 4), d.high}; }

/// The distance from 16 terms to the next 16, in bytes.
template <major Major>
inline constexpr int next_terms = Major == major::sum ? 32 : 16 * 128;

/// A thread's part of 64 x 128 sums. Warp w has the rows 16 w .. 16 w + 15. For every 8 columns starting at
/// c, elements 4 c / 8 and the next are row lane / 4 at columns c + 2 (lane % 4) and the next. The two
/// elements after them are the same columns of row lane / 4 + 8.
using sums = float[64];

#define RANKC_SUMS(i)                                                                                   \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),           \
      "+f"(d[i + 6]), "+f"(d[i + 7]), "+f"(d[i + 8]), "+f"(d[i + 9]), "+f"(d[i + 10]), "+f"(d[i + 11]), \
      "+f"(d[i + 12]), "+f"(d[i + 13]), "+f"(d[i + 14]), "+f"(d[i + 15])

/// Starts sums += a b for 16 terms; commit and wait must follow.
template <major A, major B>
__device__ __forceinline__ void multiply(sums& d, description a, description b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      ".reg .b64 a, b;\n"
      "mov.b64 a, {%64, %65};\n"
      "mov.b64 b, {%66, %67};\n"
      "setp.eq.b32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "a, b, add, 1, 1, %68, %69;\n"
      "}"
      : RANKC_SUMS(0), RANKC_SUMS(16), RANKC_SUMS(32), RANKC_SUMS(48)
      : "r"(a.low), "r"(a.high), "r"(b.low), "r"(b.high), "n"(A == major::result), "n"(B == major::result));
}

/// A thread's part of 64 x 64 sums, in the same order.
using narrow_sums = float[32];

/// sums = a b, or += with `add`.
template <major A, major B>
__device__ __forceinline__ void multiply(narrow_sums& d, description a, description b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      ".reg .b64 a, b;\n"
      "mov.b64 a, {%32, %33};\n"
      "mov.b64 b, {%34, %35};\n"
      "setp.ne.b32 add, %36, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "a, b, add, 1, 1, %37, %38;\n"
      "}"
      : RANKC_SUMS(0), RANKC_SUMS(16)
      : "r"(a.low), "r"(a.high), "r"(b.low), "r"(b.high), "r"(static_cast<int>(add)), "n"(A == major::result),
        "n"(B == major::result));
}

/// The product with a from registers, in the layout of 16 columns of sums: terms of two rows at a time.
template <major B>
__device__ __forceinline__ void multiply(narrow_sums& d, const unsigned* a, description b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      ".reg .b64 b;\n"
      "mov.b64 b, {%36, %37};\n"
      "setp.ne.b32 add, %38, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, b, add, 1, 1, %39;\n"
      "}"
      : RANKC_SUMS(0), RANKC_SUMS(16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.low), "r"(b.high), "r"(static_cast<int>(add)),
        "n"(B == major::result));
}
#undef RANKC_SUMS

/// Call before the first product, and after other code has written the sums.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `Left` commits are in flight.
template <int Left>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

/// Tells the compiler that the products of these sums are done.
template <int N>
__device__ void settle(float (&d)[N]) {
#pragma unroll
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
}

/// Waits until all products are done, so that the sums can be read.
__device__ inline void finish_products(sums& d) {
  wait_for_products<0>();
  settle(d);
}

/// Stores the warp's four 8 x 8 matrices of 16-bit elements, one register each, to rows of 16 bytes. Lane l
/// has the address of row l % 8 of matrix l / 8.
__device__ inline void store_matrices(shared_address row, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

}  // namespace rankc::runtime::cuda::hopper
