// SPDX-License-Identifier: Apache-2.0
// A small model without a network. It has tables like those of a generated program for any pp, dp and tp, and
// an engine whose step is an exact function of weights, moments and batch, the same in every layout.
#pragma once
#include <rankc/runtime/call_names.hpp>
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/hash.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

namespace fake_calls {
struct multiply {};
struct all_reduce {};
struct add {};
}  // namespace fake_calls

/// The tables of a model with a tied embedding, and the storage they refer to.
struct fake_program {
  int pp = 1, dp = 1, tp = 1, vocab = 256;
  dtype type = dtype::f64;
  std::vector<std::vector<parameter>> parameters;
  std::vector<layout> layouts;
  std::vector<rank_row> ranks;
  static constexpr lane_row lanes[]{{"compute", true}, {"reduce", false}, {"to_next", false}};
  static constexpr call_row calls[]{{"add", call_kind::pass, 1, 0, 1e6, 0},
                                    {"multiply", call_kind::product, 2, 2e9, 2e6, 0.5},
                                    {"all_reduce", call_kind::communication, 1, 0, 8e6, 0}};
  description about{};

  static constexpr int width = 8;

  fake_program(int pp_, int dp_, int tp_, dtype type_ = dtype::f64, int vocab_ = 256)
      : pp(pp_), dp(dp_), tp(tp_), vocab(vocab_), type(type_), parameters(static_cast<std::size_t>(pp_)) {
    add(0, "wte", vocab / tp, width, 0, fill::uniform, 0.02);
    add(0, "layers.0.norm1", width, 1, -1, fill::ones, 0);
    add(pp - 1, "layers.1.wo", width, width / tp, 1, fill::uniform, 0.01);
    add(pp - 1, "layers.1.b1", 4 * width / tp, 1, 0, fill::zeros, 0);
    if (pp > 1) add(pp - 1, "wte", vocab / tp, width, 0, fill::uniform, 0.02, true);
    for (const auto& held : parameters) {
      layout& l = layouts.emplace_back();
      l.arena_bytes = 1000 + held.size();
      l.parameter_count = end_of(held);
      l.parameters = held;
      l.lanes = lanes;
      l.calls = calls;
    }
    layouts.front().reads_tokens = true;
    layouts.back().reads_targets = true;
    for (int p = 0; p < pp; ++p)
      for (int d = 0; d < dp; ++d)
        for (int t = 0; t < tp; ++t) ranks.push_back({.pp = p, .dp = d, .tp = t, .links = {}});
    about = {.interface_version = interface_version,
             .name = "fake",
             .plan_hash = 0xABCDEF,
             .type = type,
             .pp = pp,
             .dp = dp,
             .tp = tp,
             .microbatches = 2,
             .rows = 4 / dp,
             .seq = 4,
             .vocab = vocab,
             .vocab_used = vocab,
             .flops_per_token = 1e6,
             .peak_flops = 0,
             .train = {.lr = 1e-2,
                       .weight_decay = 0.1,
                       .clip = 1,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .eps = 1e-8,
                       .warmup_steps = 3,
                       .decay_steps = 10,
                       .min_lr = 1e-3},
             .layouts = layouts,
             .ranks = ranks,
             .communicators = {},
             .text = "a fake plan",
             .json = "{\"fake\":1}\n"};
  }
  fake_program(const fake_program&) = delete;

  /// Keeps the logits of the last microbatch after a forward.
  void leave_logits() {
    layouts.back().logits = {.where = {},
                             .rows = about.rows * about.seq,
                             .columns = vocab / tp,
                             .stride = vocab / tp,
                             .microbatch = 1};
  }

  /// Adds router losses, and experts with a capacity limit.
  void add_routers() {
    layouts.back().routers = {
        .where = {}, .rows = 3, .experts = 2, .balance = 0.5, .z = 0.25, .limited = true};
  }

  /// Makes the pipeline bidirectional: rank p also holds the stages of rank pp - 1 - p, and the later of the
  /// two ranks has the copies.
  void mirror() {
    const auto before = parameters;
    for (std::size_t p = 0; p < before.size(); ++p) {
      parameters[p].clear();
      for (const std::size_t from : {p, before.size() - 1 - p})
        for (const parameter& held : before[from])
          if (!held.copy)
            add(static_cast<int>(p), held.name, held.rows, held.cols, held.shard_dim, held.init, held.std,
                p > before.size() - 1 - p);
      layouts[p].parameter_count = end_of(parameters[p]);
      layouts[p].parameters = parameters[p];
    }
  }

 private:
  static std::size_t end_of(const std::vector<parameter>& held) {
    if (held.empty()) return 0;
    const parameter& last = held.back();
    return last.element + static_cast<std::size_t>(last.rows * last.cols) + 3;  // padding
  }
  void add(int stage, const char* name, int rows, int cols, int dim, fill init, double std,
           bool copy = false) {
    auto& held = parameters[static_cast<std::size_t>(stage)];
    held.push_back({.name = name,
                    .rows = rows,
                    .cols = cols,
                    .shard_dim = dim,
                    .element = end_of(held),
                    .init = init,
                    .std = std,
                    .matrix = cols > 1,
                    .copy = copy});
  }
};

class fake_engine : public engine {
 public:
  explicit fake_engine(const fake_program& program) : program_(program), regions_(program.ranks.size()) {
    for (std::size_t r = 0; r < regions_.size(); ++r)
      for (auto& values : regions_[r]) values.assign(layout_of(r).parameter_count, untouched);
    for (std::size_t r = 0; r < regions_.size(); ++r)
      for (const region w : {region::first_moment, region::second_moment})
        of(r, w).assign(layout_of(r).parameter_count, 0);
    batch_.resize(static_cast<std::size_t>(program.about.microbatches * program.dp));
  }

  static constexpr double untouched = -77;
  int signal_at = 0, signal = 0,
      signals = 1;  // the step in which this process gets a signal, and the number of signals
  int fail_at = 0, nan_at = 0, infinite_norm_at = 0, exit_code = 70;  // the step that fails; 0: none
  int skipped_at = 0;                                                 // the step in which no label counts
  int spoilt_at = 0;  // the step after which the last rank's first weight is corrupted
  bool nan_in_evaluation = false;
  std::vector<step_input>* inputs = nullptr;        // receives the input of each step
  std::vector<std::vector<int>>* firsts = nullptr;  // receives the first token of each sample of each step
  std::vector<std::vector<std::int32_t>>* batches = nullptr;  // receives tokens, targets and starts of steps

  const description& about() const override { return program_.about; }

  void set_batch(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) override {
    const auto count = static_cast<std::size_t>(program_.about.rows * program_.about.seq);
    std::vector<std::int32_t>& to = batch_[static_cast<std::size_t>(microbatch * program_.dp + dp)];
    to.assign(tokens, tokens + count);
    to.insert(to.end(), targets, targets + count);
  }
  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) override {
    const auto count = static_cast<std::ptrdiff_t>(program_.about.tokens_of_microbatch());
    std::vector<std::int32_t>& to = batch_[static_cast<std::size_t>(microbatch * program_.dp + dp)];
    to.resize(2 * static_cast<std::size_t>(count));
    to.insert(to.end(), starts, starts + count);
  }
  void set_inputs(int, int, std::span<const named_array>) override {}

  step_output step(const step_input& in) override {
    if (in.step == fail_at)
      throw failure::reported(exit_code, "rank 1, step " + std::to_string(in.step) + ", 1F0: broken");
    if (inputs != nullptr) inputs->push_back(in);
    if (firsts != nullptr) firsts->push_back(first_tokens());
    if (batches != nullptr) batches->insert(batches->end(), batch_.begin(), batch_.end());
    for (int i = 0; in.step == signal_at && i < signals; ++i) std::raise(signal);
    if (in.step == skipped_at) return {0, 0, true};
    const double loss = loss_of_batch();
    for (std::size_t r = 0; r < regions_.size(); ++r)
      for (const parameter& p : layout_of(r).parameters)
        for (std::size_t i = p.element; i < p.element + static_cast<std::size_t>(p.rows * p.cols); ++i)
          update(of(r, region::weights)[i], of(r, region::first_moment)[i], of(r, region::second_moment)[i],
                 loss, in);
    if (in.step == spoilt_at) of(regions_.size() - 1, region::weights)[0] += 1;
    return {in.step == nan_at ? std::numeric_limits<double>::quiet_NaN() : loss,
            in.step == infinite_norm_at ? std::numeric_limits<double>::infinity() : 2 * loss};
  }

  step_output traced_step(const step_input& in, std::vector<traced>& into) override {
    for (int r = 0; r < program_.about.world(); ++r) {
      into.push_back({r, 0, "0F0", 1.5, 3});
      into.push_back({r, 2, "F0: stage 0 -> 1", 3, 3.25});
    }
    return step(in);
  }

  /// Times two calls of a millisecond each, and one of two milliseconds on another lane.
  step_output step_by_calls(const step_input& in, std::vector<traced>& into) override {
    for (int r = 0; r < program_.about.world(); ++r) {
      into.push_back({r, 0, type_text<fake_calls::multiply>(), 0, 1000});
      into.push_back({r, 0, type_text<fake_calls::multiply>(), 1500, 2500});
      into.push_back({r, 1, type_text<fake_calls::all_reduce>(), 2000, 4000});
    }
    return step(in);
  }

  double evaluate() override {
    return nan_in_evaluation ? std::numeric_limits<double>::quiet_NaN() : loss_of_batch() + router_losses();
  }

  /// Statistics of a microbatch: picks 3 : 1, scores 3 : 2. The squared log-sum-exp of a token is its id. The
  /// dropped picks of a sequence are its first token modulo 3.
  void routers(int, int microbatch, double* to) override {
    const auto seq = static_cast<std::size_t>(program_.about.seq);
    double tokens = 0, squares = 0, dropped = 0;
    for (int dp = 0; dp < program_.dp; ++dp) {
      const auto& part = batch_[static_cast<std::size_t>(microbatch * program_.dp + dp)];
      for (std::size_t i = 0; i < program_.about.tokens_of_microbatch(); ++i, ++tokens) {
        squares += part[i];
        if (i % seq == 0) dropped += part[i] % 3;
      }
    }
    const double all[]{0.75 * tokens, 0.25 * tokens, 0.6 * tokens, 0.4 * tokens, squares, dropped};
    std::copy(std::begin(all), std::end(all), to);
  }
  /// The router losses of an evaluation. The balance of these statistics is 2 * (0.75 * 0.6 + 0.25 * 0.4),
  /// and z is the mean token.
  double router_losses() const {
    const routers_place& kept = program_.layouts.back().routers;
    const std::size_t count = program_.about.tokens_of_microbatch();
    double sum = 0;
    for (const auto& part : batch_)
      for (std::size_t i = 0; i < count; ++i) sum += part[i];
    return kept.balance * 1.1 + kept.z * sum / static_cast<double>(batch_.size() * count);
  }

  /// A token determines the logits of the next one: its successor is the most likely, then the two after
  /// that.
  void logits(int rank, std::size_t token, double* to) override {
    place_of_logits(program_.about, rank, token);
    const rank_row& at = program_.ranks[static_cast<std::size_t>(rank)];
    const int columns = program_.vocab / program_.tp,
              last = batch_[static_cast<std::size_t>(program_.dp + at.dp)][token];
    for (int i = 0; i < columns; ++i) {
      const int ahead = (at.tp * columns + i - last + program_.vocab) % program_.vocab;
      to[i] = ahead >= 1 && ahead <= 3 ? 4 - ahead : -1e3;
    }
  }

  /// The first token of each sample of the batch, in the order of samples.
  std::vector<int> first_tokens() const {
    std::vector<int> out;
    for (const auto& part : batch_)
      for (int row = 0; row < program_.about.rows; ++row)
        out.push_back(part[static_cast<std::size_t>(row * program_.about.seq)]);
    return out;
  }

  /// One weight, and a sum over samples that does not depend on their distribution over ranks.
  double loss_of_batch() const {
    std::uint64_t sum = 0;
    for (const auto& part : batch_)
      for (std::size_t i = 0; i < part.size(); ++i)
        sum += splitmix64(static_cast<std::uint64_t>(part[i]) * 8 + i % 4) % 1000;
    return static_cast<double>(sum) * 1e-5 + regions_[0][0][0];
  }

  void read(int rank, region w, std::size_t first, std::size_t count, double* to) override {
    if (!program_.about.trains && w != region::weights) throw forwards_alone(program_.about);
    const auto& from = of(static_cast<std::size_t>(rank), w);
    if (first + count > from.size()) throw std::out_of_range("read past the region");
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), count, to);
  }
  void write(int rank, region w, std::size_t first, std::size_t count, const double* from) override {
    if (!program_.about.trains && w != region::weights) throw forwards_alone(program_.about);
    auto& to = of(static_cast<std::size_t>(rank), w);
    if (first + count > to.size()) throw std::out_of_range("write past the region");
    for (std::size_t i = 0; i < count; ++i) to[first + i] = rounded(from[i]);
  }
  std::size_t arena_bytes(int rank) const override {
    return layout_of(static_cast<std::size_t>(rank)).arena_bytes;
  }

  std::vector<double>& of(std::size_t rank, region w) { return regions_[rank][static_cast<std::size_t>(w)]; }

 private:
  const layout& layout_of(std::size_t rank) const {
    return program_.layouts[static_cast<std::size_t>(program_.ranks[rank].pp)];
  }
  double rounded(double x) const { return program_.type == dtype::f32 ? static_cast<float>(x) : x; }
  void update(double& w, double& m, double& v, double loss, const step_input& in) const {
    const double g = loss * 0.1 + w;
    m = rounded(in.beta1 * m + (1 - in.beta1) * g);
    v = rounded(in.beta2 * v + (1 - in.beta2) * g * g);
    w = rounded(w -
                in.lr * (m / (std::sqrt(v) + in.eps) / static_cast<double>(in.step) + in.weight_decay * w));
  }

  const fake_program& program_;
  std::vector<std::array<std::vector<double>, 4>> regions_;
  std::vector<std::vector<std::int32_t>> batch_;  // [microbatch * dp + dp rank]: tokens, targets, starts
};

}  // namespace rankc::runtime
