// SPDX-License-Identifier: Apache-2.0
#include "training_run.hpp"

#include <rankc/trainer/data.hpp>
#include <rankc/trainer/hash.hpp>

#include <algorithm>

namespace fuzz {

using rankc::runtime::region;

namespace {

constexpr const char* source = "rand:77";
constexpr std::uint64_t weights_seed = 5;
constexpr double spread = 0.2;  // around zeros or ones, so that each element matters

}  // namespace

batch batch_of(int vocab_used, int seq, int global_batch, std::int64_t step) {
  const rankc::runtime::dataset data(rankc::runtime::parse_data_spec(source), vocab_used, seq);
  const auto n = static_cast<std::size_t>(seq);
  batch b{std::vector<std::int32_t>(n * static_cast<std::size_t>(global_batch)), {}};
  b.targets = b.tokens;
  for (std::size_t i = 0; i < static_cast<std::size_t>(global_batch); ++i)
    data.sample(static_cast<std::uint64_t>(step * global_batch) + i, b.tokens.data() + i * n,
                b.targets.data() + i * n);
  return b;
}

training_run::training_run(const program& p)
    : about_(*p.about), engine_(p.install()), parameters_(rankc::runtime::global_parameters(*p.about)) {
  for (const auto& tensor : parameters_)
    rankc::runtime::write(*engine_, tensor, region::weights,
                          [&](std::size_t first, std::span<double> values) {
                            const bool is_random = tensor.init == rankc::runtime::fill::uniform;
                            rankc::runtime::hash_uniform(tensor.name, is_random ? tensor.std : spread,
                                                         weights_seed, first, values.size(), values.data());
                            for (double& v : values) v += tensor.init == rankc::runtime::fill::ones;
                          });
  load(0);
}

void training_run::load(std::int64_t step) {
  const rankc::runtime::dataset data(rankc::runtime::parse_data_spec(source), about_.vocab_used, about_.seq);
  rankc::runtime::set_batch(*engine_, data, static_cast<std::uint64_t>(step * about_.global_batch()));
}

rankc::runtime::step_output training_run::step() {
  load(steps_);
  const auto& t = about_.train;
  return engine_->step({t.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++steps_, t.momentum,
                        t.nesterov, t.rounding_seed});
}

tensors training_run::read(region r) const {
  tensors out;
  for (const auto& p : parameters_) {
    if (!p.trained && r != region::weights) continue;
    std::vector<double>& values = out[p.name];
    values.resize(p.count());
    rankc::runtime::read(*engine_, p, r, [&](std::size_t first, std::span<const double> v) {
      std::copy(v.begin(), v.end(), values.begin() + static_cast<std::ptrdiff_t>(first));
    });
  }
  return out;
}

void training_run::write(const rankc::runtime::global_parameter& p, std::size_t element, double value) {
  for (const auto& s : p.holders) engine_->write(s.rank, region::weights, s.element + element, 1, &value);
}

void training_run::write(const rankc::runtime::global_parameter& p, const std::vector<double>& values) {
  for (const auto& s : p.holders)
    engine_->write(s.rank, region::weights, s.element, values.size(), values.data());
}

std::string training_run::unequal_copies() const {
  for (const auto& p : parameters_) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> seen;
    for (const auto& s : p.holders) {
      std::vector<double> values(s.rows * s.columns);
      engine_->read(s.rank, region::weights, s.element, values.size(), values.data());
      const auto [known, is_new] = seen.try_emplace({s.row, s.column}, values);
      if (!is_new && known->second != values) return p.name;
    }
  }
  return {};
}

}  // namespace fuzz
