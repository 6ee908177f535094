// SPDX-License-Identifier: Apache-2.0
// Collectives over two ranks on two GPUs: every element, in f32 and bf16, at odd counts and addresses.
#include "../../../../../runtime/core/cuda/device/check.hpp"
#include "../../../../../runtime/core/cuda/communication/check_collectives.hpp"
#include "../../../../../runtime/core/cuda/communication/peer_groups.hpp"
#include "../regions.hpp"

#include <rankc/runtime/calls.hpp>
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/contract/device_memory.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>

namespace rankc::runtime::cuda::test {
namespace {

constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// The sizes of a rank's piece in each exchange. An exchange has two pieces, and begins at an address that
/// wide loads cannot use.
constexpr std::size_t pieces[] = {1, 7, 1024, 40001};
constexpr std::size_t exchanged = 2 * (1 + 7 + 1024 + 40001) + std::size(pieces);

/// With the weights a_r of rank r, per exchange: gradients = the sum; first moment = both ranks' first
/// pieces; second moment = this rank's piece of the sum, then the maximum of the second pieces.
template <class T, int lane, over axis>
void exchange(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "exchange");
  for (const at copy : {l.gradients, l.second_moment})
    REQUIRE(cudaMemcpyAsync(r.at<T>(copy), r.at<T>(l.weights), exchanged * sizeof(T),
                            cudaMemcpyDeviceToDevice, r[compute].stream) == cudaSuccess);
  record(r[compute], {0});
  wait(r[lane], {0});
  std::size_t first = 1;
  for (const std::size_t n : pieces) {
    const std::size_t here = first * sizeof(T), second = here + n * sizeof(T);
    all_reduce<T>(r[lane], axis, {0, "sum"}, l.gradients + here, 2 * n);
    all_gather<T>(r[lane], axis, {1, "gather"}, l.first_moment + here, l.weights + here, n);
    reduce_scatter<T>(r[lane], axis, {2, "scatter"}, l.second_moment + here, l.weights + here, n);
    all_reduce<T>(r[lane], axis, {3, "most"}, l.second_moment + second, n, reduction::max);
    first += 2 * n + 1;
  }
}

template <class T>
void check_elements(const std::string& what, const std::vector<T>& got, std::size_t first,
                    const std::vector<double>& wanted) {
  CAPTURE(what);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (value(got[first + i]) == wanted[i]) continue;
    FAIL_CHECK("element " << i << " of " << wanted.size() << " is " << value(got[first + i]) << ", wanted "
                          << wanted[i]);
    return;
  }
}

/// Two numbers have one sum, rounded once: the results are exact.
template <class T, int lane, over axis>
void check_exchange(const placement& way = {}) {
  tables t(1, 2);
  enlarge(t, (exchanged * sizeof(T) + 3) / 4);
  t.connect("all", {0, 1}, {lane, lane}, axis);
  void (*const bodies[])(rank&) = {exchange<T, lane, axis>};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies}, way);
  for (int time = 0; time < 3; ++time) {
    std::vector<T> a[2];
    for (int rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < exchanged; ++i)
        a[rank].push_back(number<T>(std::sin(static_cast<double>(i) + 1000.0 * rank + time)));
      put(*e, rank, region::weights, a[rank]);
    }
    e->step(nothing);
    for (int rank = 0; rank < 2; ++rank) {
      const auto sums = take<T>(*e, rank, region::gradients, exchanged);
      const auto gathered = take<T>(*e, rank, region::first_moment, exchanged);
      const auto rest = take<T>(*e, rank, region::second_moment, exchanged);
      std::size_t first = 1;
      for (const std::size_t n : pieces) {
        std::vector<double> sum, both, most;
        for (std::size_t i = first; i < first + 2 * n; ++i)
          sum.push_back(value(number<T>(value(a[0][i]) + value(a[1][i]))));
        for (const auto& of : a)
          for (std::size_t i = first; i < first + n; ++i) both.push_back(value(of[i]));
        for (std::size_t i = first + n; i < first + 2 * n; ++i)
          most.push_back(std::max(value(a[0][i]), value(a[1][i])));
        const auto mine = sum.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : n);
        const std::string what = "rank " + std::to_string(rank) + ", pieces of " + std::to_string(n) + ", ";
        check_elements(what + "sum", sums, first, sum);
        check_elements(what + "gather", gathered, first, both);
        check_elements(what + "scatter", rest, first, {mine, mine + static_cast<std::ptrdiff_t>(n)});
        check_elements(what + "maximum", rest, first + n, most);
        first += 2 * n + 1;
      }
    }
  }
}

/// The tensors of a layer, of which each of two ranks keeps half. The kept halves are contiguous, and so are
/// the gathered tensors.
constexpr std::size_t halves[] = {2048, 8388608, 2097152, 2097152, 8388608, 2048, 29360128};
constexpr std::size_t kept = std::accumulate(std::begin(halves), std::end(halves), std::size_t{0});
template <std::size_t N>
constexpr std::array<shard_range, N> side_by_side(const std::size_t (&counts)[N]) {
  std::array<shard_range, N> all{};
  std::size_t first = 0;
  for (std::size_t i = 0; i < N; first += counts[i++]) all[i] = {2 * first, first, counts[i]};
  return all;
}
constexpr auto shards = side_by_side(halves);

/// Gradients = the weights of both ranks; second moment = their sums, reduce-scattered.
template <class T>
void share(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "share");
  const runtime::vector<T, kept> own{l.weights}, sums{l.second_moment};
  const runtime::vector<T, 2 * kept> whole{l.gradients};
  record(r[compute], {0});
  wait(r[reduce], {0});
  runtime::calls::run(r[reduce],
                      runtime::calls::gather_shards{
                          .over = over::dp, .to = whole, .from = own, .of = shards, .site = {0, "gather"}});
  runtime::calls::run(r[reduce],
                      runtime::calls::scatter_sums{
                          .over = over::dp, .to = sums, .from = whole, .of = shards, .site = {1, "scatter"}});
}

/// An element of a rank, with so few bits that the sum of two is exact.
float own_element(int rank, std::size_t i) {
  return static_cast<float>((i * 2654435761u + 40503u * static_cast<unsigned>(rank)) >> 8 & 63);
}

template <class T>
void check_shards() {
  tables t(1, 2);
  enlarge(t, 2 * kept);
  t.connect("dp", {0, 1}, {reduce, reduce}, over::dp);
  void (*const bodies[])(rank&) = {share<T>};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<T> own(kept);
    for (std::size_t i = 0; i < kept; ++i) own[i] = number<T>(own_element(rank, i));
    put(*e, rank, region::weights, own);
  }
  for (int time = 0; time < 2; ++time) e->step(nothing);  // the second step runs as a graph
  for (int rank = 0; rank < 2; ++rank) {
    const auto whole = take<T>(*e, rank, region::gradients, 2 * kept);
    const auto sums = take<T>(*e, rank, region::second_moment, kept);
    std::size_t wrong_gathered = 0, wrong_sums = 0;
    for (const shard_range& s : shards)
      for (std::size_t i = 0; i < s.count; ++i) {
        for (std::size_t of = 0; of < 2; ++of)
          wrong_gathered +=
              value(whole[s.gathered + of * s.count + i]) != own_element(static_cast<int>(of), s.kept + i);
        const float half = own_element(rank, s.kept + i);
        wrong_sums += value(sums[s.kept + i]) != 2 * half;
      }
    CHECK(wrong_gathered == 0);
    CHECK(wrong_sums == 0);
  }
}

TEST_CASE("the tensors of a layer are gathered, and their sums dealt out, one beside another in f32") {
  check_shards<float>();
}
TEST_CASE("the tensors of a layer are gathered, and their sums dealt out, one beside another in bf16") {
  check_shards<bf16>();
}

/// More tensors, and more numbers, than are rounded at once; some have odd sizes.
constexpr std::size_t odd_halves[] = {1, 8,  4099, 3,  17,       5, 64, 2,  7,       30000001,
                                      1, 12, 9,    33, 40000000, 6, 4,  11, 2097152, 13};
constexpr std::size_t odd_kept =
    std::accumulate(std::begin(odd_halves), std::end(odd_halves), std::size_t{0});
static_assert(2 * odd_kept * sizeof(bf16) > rounded_bytes);
constexpr auto odd_shards = side_by_side(odd_halves);

/// Gradients = the sums of the weights, reduce-scattered in bf16; then first moment = the sums of the first
/// weights, all-reduced in bf16.
constexpr std::size_t summed = 100'003;
void share_rounded(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "share");
  const runtime::vector<float, odd_kept> sums{l.gradients};
  const runtime::vector<float, 2 * odd_kept> whole{l.weights};
  REQUIRE(cudaMemcpyAsync(r.at<float>(l.first_moment), r.at<float>(l.weights), summed * sizeof(float),
                          cudaMemcpyDeviceToDevice, r[compute].stream) == cudaSuccess);
  record(r[compute], {0});
  wait(r[reduce], {0});
  runtime::calls::run(
      r[reduce], runtime::calls::scatter_sums_in_bf16{
                     .over = over::dp, .to = sums, .from = whole, .of = odd_shards, .site = {0, "scatter"}});
  runtime::calls::run(
      r[reduce],
      runtime::calls::all_reduce_in_bf16{
          .over = over::dp, .data = runtime::vector<float, summed>{l.first_moment}, .site = {1, "sum"}});
}

TEST_CASE("sums of two ranks that are sent in bf16: each part is rounded, and their sum, wherever it lies") {
  constexpr lane_row rounding[]{{"compute", true}, {"reduce", false, true}};
  tables t(1, 2);
  enlarge(t, 2 * odd_kept);
  for (layout& l : t.layouts) l.lanes = rounding;
  t.connect("dp", {0, 1}, {reduce, reduce}, over::dp);
  void (*const bodies[])(rank&) = {share_rounded};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  const auto part = [](int rank, std::size_t i) { return 1.00097656f * own_element(rank, i); };
  const auto sum = [&](std::size_t i) {
    return value(number<bf16>(value(number<bf16>(part(0, i))) + value(number<bf16>(part(1, i)))));
  };
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<float> own(2 * odd_kept);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = part(rank, i);
    put(*e, rank, region::weights, own);
  }
  for (int time = 0; time < 2; ++time) e->step(nothing);  // the second step runs as a graph
  for (int rank = 0; rank < 2; ++rank) {
    const auto sums = take<float>(*e, rank, region::gradients, odd_kept);
    std::size_t wrong = 0;
    for (const shard_range& s : odd_shards)
      for (std::size_t i = 0; i < s.count; ++i)
        wrong += value(sums[s.kept + i]) != sum(s.gathered + static_cast<std::size_t>(rank) * s.count + i);
    CHECK(wrong == 0);
    const auto all = take<float>(*e, rank, region::first_moment, summed);
    wrong = 0;
    for (std::size_t i = 0; i < summed; ++i) wrong += value(all[i]) != sum(i);
    CHECK(wrong == 0);
  }
}

// Ranks on one GPU use the tests' communicators, which can be told to give wrong results.
TEST_CASE("a collective that gives wrong numbers is found before the first step" *
          doctest::skip(std::getenv("RANKC_RANKS_ON_ONE_GPU") == nullptr)) {
  tables t(1, 2);
  enlarge(t, 1 << 16);
  t.connect("dp", {0, 1}, {reduce, reduce}, over::dp);
  void (*const bodies[])(rank&) = {exchange<float, reduce, over::dp>};
  setenv("RANKC_WRONG_ALL_REDUCE", "1", 1);
  std::string told;
  try {
    install({.about = t.about, .train = bodies, .evaluate = bodies});
  } catch (const failure& f) {
    CHECK(f.code == 70);
    told = f.what();
  }
  unsetenv("RANKC_WRONG_ALL_REDUCE");
  CHECK_MESSAGE(told.find("RC5118: all_reduce over dp by NCCL ") != std::string::npos, told);
}

/// The result of the check on two ranks whose GPUs map each other, without NCCL. The first rank may use its
/// own memory in place of the peer's.
std::string told_of_peers(bool takes_its_own) {
  tables t(1, 2);
  enlarge(t, 1 << 16);
  t.connect("tp", {0, 1}, {compute, compute}, over::tp);
  unsigned* stop = nullptr;
  REQUIRE(cudaHostAlloc(&stop, sizeof(unsigned), cudaHostAllocPortable | cudaHostAllocMapped) == cudaSuccess);
  *stop = 0;
  std::string told[2];
  {
    std::vector<std::unique_ptr<context>> ranks;
    for (int i = 0; i < 2; ++i)
      ranks.emplace_back(std::make_unique<context>(i, t.about, i))->of().stop = stop;
    const peer_groups groups(t.about, ranks);
    for (const auto& each : ranks) each->of().find_link(0)->place = each->of().index;
    lane_link& link = *ranks[0]->of().find_link(0);
    REQUIRE(link.mapped != nullptr);
    peer_group seen = *link.mapped;
    if (takes_its_own) seen.arenas[1] = seen.arenas[0];
    link.mapped = &seen;
    // A thread for each rank: a kernel's first launch may wait for earlier kernels, which wait for the other
    // rank.
    const auto try_out = [&](std::size_t i) {
      try {
        check(ranks[i]->of(), cudaSetDevice(ranks[i]->device()), "cudaSetDevice");
        collective_check numbers(*ranks[i]);
        numbers.enqueue();
        check(ranks[i]->of(), cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        numbers.judge();
      } catch (const failure& f) {
        CHECK(f.code == 70);
        told[i] = f.what();
        *stop = 1;  // releases the other rank
      }
    };
    std::jthread other(try_out, std::size_t{1});
    try_out(0);
  }
  cudaFreeHost(stop);
  return told[0] + told[1];
}
TEST_CASE("kernels that read other memory than the other GPU's are found before the first step, too") {
  CHECK(told_of_peers(false) == "");
  const std::string told = told_of_peers(true);
  CHECK_MESSAGE(told.find("RC5117: all_gather over tp by kernels") != std::string::npos, told);
}

TEST_CASE("collectives over two ranks in f32") { check_exchange<float, reduce, over::dp>(); }
TEST_CASE("collectives over two ranks in bf16") { check_exchange<bf16, reduce, over::dp>(); }
TEST_CASE("collectives that computation waits for, by kernels that read the other GPU's memory and by NCCL") {
  for (const bool maps_peers : {true, false}) {
    CAPTURE(maps_peers);
    check_exchange<float, compute, over::tp>({.maps_peers = maps_peers});
    check_exchange<bf16, compute, over::tp>({.maps_peers = maps_peers});
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
