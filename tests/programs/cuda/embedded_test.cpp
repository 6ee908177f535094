// SPDX-License-Identifier: Apache-2.0
// Ranks on GPUs that an application steps, on its streams, in its memory and over its communicators, give the
// losses and weights of a trainer's ranks. The application's resources stay unchanged.
#include <rankc/runtime/cuda/embedded.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "../run.hpp"

namespace {

using namespace rankc::runtime;
using namespace rankc::cuda;

/// An application's allocator, which counts the bytes that are allocated now and at most.
class counted final : public std::pmr::memory_resource {
 public:
  explicit counted(bool pinned) : pinned_(pinned) {}
  std::atomic<std::size_t> out = 0, most = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* made = nullptr;
    const cudaError_t status = pinned_
                                   ? cudaHostAlloc(&made, bytes, cudaHostAllocPortable | cudaHostAllocMapped)
                                   : cudaMalloc(&made, bytes);
    if (status != cudaSuccess) return nullptr;
    most = std::max<std::size_t>(most, out += bytes);
    return made;
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t) override {
    out -= bytes;
    if (pinned_) cudaFreeHost(p);
    else cudaFree(p);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  bool pinned_;
};

struct outcome {
  std::vector<double> losses;                // three steps, then an evaluation
  std::vector<std::vector<double>> weights;  // by rank
};

outcome of_engine(const registered& program) {
  run r(program);
  outcome out;
  for (int step = 0; step < 3; ++step) out.losses.push_back(r.step().loss);
  out.losses.push_back(r.engine->evaluate());
  for (int rank = 0; rank < r.about.world(); ++rank) {
    std::vector<double>& all = out.weights.emplace_back(layout_of(r.about, rank).parameter_count);
    r.engine->read(rank, region::weights, 0, all.size(), all.data());
  }
  return out;
}

/// Communicators by rank and number, as an application might make them.
std::vector<std::vector<ncclComm_t>> make_communicators(const description& about) {
  std::vector<std::vector<ncclComm_t>> all(static_cast<std::size_t>(about.world()),
                                           std::vector<ncclComm_t>(about.communicators.size()));
  for (std::size_t g = 0; g < about.communicators.size(); ++g) {
    const std::span<const int> ranks = about.communicators[g].ranks;
    ncclUniqueId id;
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 16;
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      cudaSetDevice(ranks[place]);
      REQUIRE(ncclCommInitRankConfig(&all[static_cast<std::size_t>(ranks[place])][g],
                                     static_cast<int>(ranks.size()), id, static_cast<int>(place),
                                     &config) == ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
  }
  return all;
}

struct given {
  std::vector<double> weights;  // the rank's weights
  std::vector<batch> batches;   // the batches of three steps
};

status one_rank(const program& p, const surroundings& s, const given& from, outcome& out) {
  const description& about = p.about;
  embedded here;
  if (status st = embed(p, s, here); !st.ok()) return st;
  if (status st = here.write(region::weights, 0, from.weights); !st.ok()) return st;
  const std::size_t size = about.tokens_of_microbatch();
  const auto& t = about.train;
  for (int step = 0; step < 3; ++step) {
    const batch& b = from.batches[static_cast<std::size_t>(step)];
    for (int m = 0; m < about.microbatches; ++m) {
      const std::size_t first =
          static_cast<std::size_t>(m * about.dp + about.ranks[static_cast<std::size_t>(s.rank)].dp) * size;
      if (status st = here.set_batch(m, std::span(b.tokens).subspan(first, size),
                                     std::span(b.targets).subspan(first, size));
          !st.ok())
        return st;
    }
    step_output o{};
    if (status st = here.step({3e-4, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, step + 1}, o); !st.ok())
      return st;
    if (s.rank == reporter_of(about)) out.losses.push_back(o.loss);
    CHECK(here.has_loss() == std::isfinite(o.loss));
  }
  double loss = 0;
  if (status st = here.evaluate(loss); !st.ok()) return st;
  if (s.rank == reporter_of(about)) out.losses.push_back(loss);
  std::vector<double>& weights = out.weights[static_cast<std::size_t>(s.rank)];
  weights.resize(from.weights.size());
  return here.read(region::weights, 0, weights);
}

outcome of_embedded(const registered& registered_program) {
  const program& p = *std::get<const rankc::cuda::program*>(registered_program.program);
  const description& about = p.about;
  const auto world = static_cast<std::size_t>(about.world());
  std::vector<given> from(world);
  {
    run beginning(registered_program);
    for (int step = 0; step < 3; ++step)
      for (given& each : from)
        each.batches.push_back(
            read_batch(about, beginning.data,
                       static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(about.global_batch())));
    for (std::size_t r = 0; r < world; ++r) {
      from[r].weights.resize(layout_of(about, static_cast<int>(r)).parameter_count);
      beginning.engine->read(static_cast<int>(r), region::weights, 0, from[r].weights.size(),
                             from[r].weights.data());
    }
  }
  const auto communicators = make_communicators(about);
  counted on_device(false), pinned(true);
  outcome out;
  out.weights.resize(world);
  std::vector<std::string> said(world);
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < world; ++r)
      threads.emplace_back([&, r] {
        cudaSetDevice(0);  // the application's current device
        cudaStream_t stream = nullptr;
        cudaSetDevice(static_cast<int>(r));
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaSetDevice(0);
        said[r] = one_rank(p,
                           {.rank = static_cast<int>(r),
                            .device = static_cast<int>(r),
                            .stream = stream,
                            .communicators = communicators[r],
                            .device_memory = &on_device,
                            .pinned_memory = &pinned},
                           from[r], out)
                      .text;
        int device = -1;
        cudaGetDevice(&device);
        CHECK(device == 0);
        CHECK(cudaStreamQuery(stream) == cudaSuccess);
      });
  }
  for (const std::string& text : said) CHECK(text == "");
  std::size_t arenas = 0;
  for (std::size_t r = 0; r < world; ++r) arenas += layout_of(about, static_cast<int>(r)).arena_bytes;
  CHECK(on_device.most >= arenas);
  CHECK(on_device.out == 0);
  CHECK(pinned.out == 0);
  for (const auto& of_rank : communicators)
    for (const ncclComm_t each : of_rank)
      if (each != nullptr) CHECK(ncclCommDestroy(each) == ncclSuccess);
  return out;
}

void check_embedded(const char* job, const char* layout, const char* type) {
  const auto found = std::find_if(cuda_registry.begin(), cuda_registry.end(), [&](const registered& r) {
    return r.job == job && r.layout == layout && r.type == type;
  });
  REQUIRE(found != cuda_registry.end());
  CAPTURE(found->layout);
  const outcome expected = of_engine(*found), got = of_embedded(*found);
  REQUIRE(got.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    CHECK(std::abs(got.losses[i] - expected.losses[i]) <= 1e-6 * expected.losses[i]);
  double worst = 0;
  std::size_t elements = 0;
  for (std::size_t r = 0; r < got.weights.size(); ++r)
    for (std::size_t i = 0; i < got.weights[r].size(); ++i, ++elements)
      worst = std::max(worst, std::abs(got.weights[r][i] - expected.weights[r][i]));
  CHECK(elements > 1000);
  CHECK(worst <= 1e-5);
  MESSAGE(layout << ": " << elements << " weights, largest difference " << worst);
}

}  // namespace

TEST_CASE("1 GPU: an embedded rank") {
  check_embedded("gpt2_8", "one", "f32");
  const program& p = *std::get<const rankc::cuda::program*>(cuda_registry.front().program);
  embedded here;
  const status st = embed(p, {.rank = 99}, here);
  CHECK(st.code == 1);
  CHECK(std::string(st.text).find("rank 99 is not one of") != std::string::npos);
}

TEST_CASE("2 GPUs: embedded ranks over an application's communicators") {
  for (const char* layout : {"dp2", "tp2_sp", "pp2_1f1b", "pp2_zbv"})
    check_embedded("gpt2_16", layout, "f32");
  const auto two = std::find_if(cuda_registry.begin(), cuda_registry.end(),
                                [](const registered& r) { return r.layout == "dp2"; });
  embedded here;
  const status st = embed(*std::get<const rankc::cuda::program*>(two->program), {}, here);
  CHECK(st.code == 1);
  CHECK(std::string(st.text).find("is not among those that the application gives") != std::string::npos);
}
