// SPDX-License-Identifier: Apache-2.0
// The engine of one rank that uses an application's thread, stream, memory and communicators.
#include <rankc/runtime/cuda/embedded.hpp>

#include "../../check_calls.hpp"
#include "access.hpp"
#include "../communication/adopted.hpp"
#include "batches.hpp"
#include "../device/buffer.hpp"
#include "../device/check.hpp"
#include "../device/teardown.hpp"

#include <limits>
#include <optional>

namespace rankc::runtime::cuda {
namespace {

/// Makes a device current for the calling thread during its lifetime. Failed calls of the thread that free
/// resources are reported to the application's log.
class device_of_thread {
 public:
  device_of_thread(int device, const log_lines& log) : log_(log) {
    check(device, cudaGetDevice(&before_));
    check(device, cudaSetDevice(device));
  }
  ~device_of_thread() { check_teardown(cudaSetDevice(before_), "cudaSetDevice"); }
  device_of_thread(const device_of_thread&) = delete;

 private:
  static void check(int device, cudaError_t status) {
    if (status != cudaSuccess) throw unusable(1, device, status);
  }

  const teardown_log log_;
  int before_ = 0;
};

class embedded_rank final : public engine {
 public:
  embedded_rank(const program& p, const surroundings& s)
      : log_(s.log),
        program_(p),
        context_(s.device, p.about, s.rank, {own_or_cudas(s.device_memory), s.pinned_memory}),
        communicators_(context_, s.communicators),
        batches_(p.about, context_),
        driver_(context_, p, batches_.of(context_.of().row->dp, context_.of().row->cp), report_, s.stream) {
    context_.of().steps_done = -1;
    context_.set_input({.lr = 0, .weight_decay = 0, .clip = 1, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1});
    for (const auto what :
         {job::what::check_collectives, job::what::try_alone, job::what::try_together, job::what::capture})
      driver_.run({what});
    context_.of().steps_done = 0;
  }
  ~embedded_rank() override {
    if (broken_) communicators_.abandon();
    after_.log.emplace(log_);
    check_teardown(cudaGetDevice(&after_.device), "cudaGetDevice");
    check_teardown(cudaSetDevice(context_.device()), "cudaSetDevice");
  }

  const description& about() const override { return program_.about; }

  void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override {
    batches_.set(dp, microbatch, tokens, targets);
  }
  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) override {
    batches_.set_document_starts(dp, microbatch, starts);
  }
  void set_inputs(int dp, int microbatch, std::span<const named_array> inputs) override {
    batches_.set_inputs(dp, microbatch, inputs);
  }

  step_output step(const step_input& input) override {
    if (!about().trains) throw forwards_alone(about());
    context_.set_input(input);
    run(kind::train);
    return output_of(loss(), driver_.norm_squared());
  }

  step_output traced_step(const step_input&, std::vector<traced>&) override { throw no_times_of_embedded(); }

  double evaluate() override {
    run(kind::evaluate);
    return loss();
  }

  bool holds(int index) const override { return index == context_.of().index; }
  void read(int index, region what, std::size_t first, std::size_t count, double* to) override {
    const device_of_thread on(context_.device(), log_);
    cuda::read(held(index), what, first, count, to);
  }
  void write(int index, region what, std::size_t first, std::size_t count, const double* from) override {
    const device_of_thread on(context_.device(), log_);
    if (holds(index)) cuda::write(context_, what, first, count, from);
  }
  void logits(int index, std::size_t token, double* to) override {
    const device_of_thread on(context_.device(), log_);
    cuda::logits(held(index), token, to);
  }
  void routers(int index, int microbatch, double* to) override {
    place_of_routers(about(), index, microbatch);
    cuda::routers(held(index), microbatch, to);
  }
  std::size_t arena_bytes(int index) const override { return layout_of(about(), index).arena_bytes; }

 private:
  /// NCCL's allocator would need settings of the process, so the default is CUDA's.
  static std::pmr::memory_resource* own_or_cudas(std::pmr::memory_resource* given) {
    return given != nullptr ? given : device_memory();
  }

  void run(kind which) {
    const device_of_thread on(context_.device(), log_);
    if (broken_)
      throw failure(70, "RC5128: the program failed in an earlier step and cannot go on; embed it again");
    broken_ = true;
    driver_.run({job::what::step, which});
    broken_ = false;
  }

  double loss() const {
    const bool has_it = context_.of().row->pp == about().loss_at();
    return has_it ? static_cast<double>(driver_.loss()) : std::numeric_limits<double>::quiet_NaN();
  }

  context& held(int index) {
    if (holds(index)) return context_;
    throw not_embedded(index);
  }

  /// Makes the previous device current again, after the members below have been destroyed.
  struct current_device {
    std::optional<teardown_log> log;
    int device = 0;
    ~current_device() { check_teardown(cudaSetDevice(device), "cudaSetDevice"); }
  };

  const log_lines log_;
  current_device after_;
  const program program_;
  report report_;
  context context_;
  adopted communicators_;
  batches batches_;
  driver driver_;
  bool broken_ = false;
};

}  // namespace

status embed(const program& p, const surroundings& s, embedded& into) noexcept {
  return status_of([&] {
    check(p);
    layout_of(p.about, s.rank);  // throws for a rank that does not exist
    check_calls<rank>(p, s.rank);
    const device_of_thread on(s.device, s.log);
    into = embedded(std::make_unique<embedded_rank>(p, s), s.rank, s.log);
    if (s.log)
      s.log((std::string("rank ") + std::to_string(s.rank) + " of the plan " + p.about.name + " has taken " +
             std::to_string(layout_of(p.about, s.rank).arena_bytes) + " bytes of GPU " +
             std::to_string(s.device) + " for its arena")
                .c_str());
  });
}

}  // namespace rankc::runtime::cuda
