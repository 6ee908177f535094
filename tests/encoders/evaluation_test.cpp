// SPDX-License-Identifier: Apache-2.0
// The evaluation of a model without tokens is the mean over all samples, each counted once.
#include <doctest/doctest.h>

#include <cmath>

#include "../../runtime/trainer/mean_loss.hpp"
#include "run.hpp"

namespace encoders_evaluation_test {

using namespace rankc::runtime;

TEST_CASE("an evaluation is the mean of the samples' losses") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one") continue;
    CAPTURE(program.job);
    run r(program);
    const std::vector<input_row> rows = inputs_of(r.about);
    const auto read = [&](std::uint64_t s, const sample_view& to) {
      for (std::size_t k = 0; k < rows.size(); ++k)
        for (std::size_t i = 0; i < count_of_sample(r.about, rows[k]); ++i) {
          const std::uint64_t drawn = (97 * s + 31 * k + i + 1) * 2654435761u >> 8;
          to.inputs[k][i] = rows[k].type == input_type::index ? static_cast<double>(drawn % 12)
                                                              : static_cast<double>(drawn % 1000) / 1000;
        }
    };
    const std::uint64_t samples = static_cast<std::uint64_t>(r.about.global_batch()) + 3;
    double sum = 0;
    for (std::uint64_t s = 0; s < samples; ++s) {
      set_batch(*r.engine, read_batch(r.about, [&](std::uint64_t, const sample_view& to) { read(s, to); }));
      sum += r.engine->evaluate();
    }
    const double found =
        mean_loss(*r.engine, read, samples, [&](std::uint64_t) { return r.engine->evaluate(); });
    CHECK(std::abs(found - sum / static_cast<double>(samples)) <= 1e-12);
    ++programs;
  }
  CHECK(programs == 2);
}

}  // namespace encoders_evaluation_test
