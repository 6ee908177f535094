// SPDX-License-Identifier: Apache-2.0
// The choice of a GEMM's algorithm: each candidate is correct, and an algorithm that is given is used.
#include "../bench.hpp"

#include "../../../../../runtime/core/cuda/linear/linear_shapes.hpp"
#include "../../../../../runtime/core/cuda/linear/product_choices.hpp"

#include <memory>

namespace rankc::runtime::cuda::test::tuning_test {
namespace {

constexpr int tokens = 512, in = 768, out = 1024;
constexpr std::size_t x_count = std::size_t{tokens} * in, w_count = std::size_t{out} * in,
                      y_count = std::size_t{tokens} * out;

/// All algorithms that tuning tries for a shape with a plan.
std::vector<cublasLtMatmulAlgo_t> all_of(const lane& on, const linear_plan& plan,
                                         const product_shape& shape) {
  std::vector<cublasLtMatmulAlgo_t> all = proposals(on, plan, shape);
  for (const auto& more : {other_variants, other_orders})
    for (std::size_t i = 0, first = all.size(); i < first; ++i)
      for (const cublasLtMatmulAlgo_t& a : more(on, plan, all[i])) all.push_back(a);
  return all;
}

/// Compare each algorithm's d with the first one's, which other tests compare with sums in f64.
template <class T>
void check_all(bench& b, product_shape shape, const product_operands& with, std::size_t count,
               double relative, double absolute) {
  shape.alignment = 256;
  product(b.on(), "product", shape, with);
  const linear_plan& plan = *b.on().plans->by_shape.at(shape);
  const auto algorithms = all_of(b.on(), plan, shape);
  CHECK(algorithms.size() > 8);
  const at d{static_cast<std::size_t>(static_cast<std::byte*>(with.d) - b.of().arena)};
  numbers wanted;
  int ran = 0;
  for (const cublasLtMatmulAlgo_t& a : algorithms) {
    REQUIRE(cudaMemset(with.d, 0, count * sizeof(T)) == cudaSuccess);
    if (enqueue(b.on(), plan, a, shape, with) != CUBLAS_STATUS_SUCCESS) continue;
    const numbers got = b.take<T>(d, count);
    if (ran++ == 0) wanted = got;
    check_close("d", got, wanted, relative, absolute);
  }
  CHECK(ran > 8);
}

TEST_CASE("every algorithm that may be chosen gives the same product") {
  bench b;
  const at x = b.put<bf16>(random_numbers<bf16>(x_count, 1.0, 1)),
           w = b.put<bf16>(random_numbers<bf16>(w_count, 1.0, 2)),
           dy = b.put<bf16>(random_numbers<bf16>(y_count, 1.0, 3)),
           bias = b.put<bf16>(random_numbers<bf16>(out, 1.0, 4)), y = b.room<bf16>(y_count),
           before = b.room<bf16>(y_count), dx = b.room<bf16>(x_count), dw = b.room<float>(w_count);
  const lane& on = b.on();
  const double unit = 4 * half_unit<bf16>;  // two results rounded once each
  check_all<bf16>(b, forward_shape<bf16>(tokens, in, out),
                  {.d = on.at<bf16>(y), .a = on.at<bf16>(w), .b = on.at<bf16>(x)}, y_count, unit, 1e-2);
  check_all<bf16>(b, forward_shape<bf16>(tokens, in, out, false, CUBLASLT_EPILOGUE_GELU_AUX_BIAS),
                  {.d = on.at<bf16>(y),
                   .a = on.at<bf16>(w),
                   .b = on.at<bf16>(x),
                   .bias = on.at<bf16>(bias),
                   .aux = on.at<bf16>(before)},
                  y_count, unit, 1e-2);
  check_all<bf16>(b, input_gradient_shape<bf16>(tokens, in, out),
                  {.d = on.at<bf16>(dx), .a = on.at<bf16>(w), .b = on.at<bf16>(dy)}, x_count, unit, 1e-2);
  check_all<float>(b, weight_gradient_shape<bf16>(tokens, in, out, true),
                   {.d = on.at<float>(dw), .a = on.at<bf16>(x), .b = on.at<bf16>(dy), .c = on.at<float>(dw)},
                   w_count, 1e-5, 1e-3);
}

/// The choices of a rank that has read `lines`, after a forward.
std::shared_ptr<product_choices> choices_after(const std::string& lines, bool deterministic = false) {
  const lone_rank alone(std::size_t{8} << 20, deterministic);
  const auto choices = std::make_shared<product_choices>();
  choices->take(lines, "the test");
  context owner(0, alone.about, 0, {}, choices);
  REQUIRE(cudaMemset(owner.of().arena, 0, std::size_t{8} << 20) == cudaSuccess);
  const at x{0}, w{2 * x_count}, y{2 * (x_count + w_count)};
  linear<bf16>(owner.of()[0], y, x, w, tokens, in, out);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return choices;
}

TEST_CASE("a choice that was told is taken and not timed again") {
  const std::string made = choices_after("")->text();
  CHECK(std::count(made.begin(), made.end(), '\n') == 1);
  CHECK(choices_after(made)->text() == made);
  CHECK(choices_after(made)->made() == made);
}

TEST_CASE("a choice told for another GPU, and any told to a deterministic program, is not taken") {
  const std::string made = choices_after("")->text();
  const std::string elsewhere = "Some GPU" + made.substr(made.find('\t'));
  const std::string both = choices_after(elsewhere)->text();
  CHECK(std::count(both.begin(), both.end(), '\n') == 2);
  CHECK(both.find(elsewhere) != std::string::npos);
  CHECK(choices_after("", true)->text().empty());
  CHECK(choices_after(made, true)->made().empty());
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::tuning_test
