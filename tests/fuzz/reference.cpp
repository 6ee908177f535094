// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>

namespace fuzz {

namespace {

using rankc::op;
using rankc::trace;

struct matrix {
  std::size_t rows = 0, cols = 0;
  std::vector<double> at;
  matrix() = default;
  matrix(std::size_t r, std::size_t c) : rows(r), cols(c), at(r * c) {}
  double& operator()(std::size_t r, std::size_t c) { return at[r * cols + c]; }
  double operator()(std::size_t r, std::size_t c) const { return at[r * cols + c]; }
};

matrix map(const matrix& x, auto f) {
  matrix y = x;
  for (double& v : y.at) v = f(v);
  return y;
}

matrix zip(const matrix& a, const matrix& b, auto f) {
  if (a.at.size() != b.at.size()) throw std::runtime_error("two operands of different sizes");
  matrix y = a;
  for (std::size_t i = 0; i < y.at.size(); ++i) y.at[i] = f(a.at[i], b.at[i]);
  return y;
}

matrix by_feature(const matrix& x, auto f) {
  matrix y = x;
  for (std::size_t n = 0; n < x.rows; ++n)
    for (std::size_t c = 0; c < x.cols; ++c) y(n, c) = f(n, c, x(n, c));
  return y;
}

matrix linear(const matrix& x, std::span<const double> w) {
  matrix y(x.rows, w.size() / x.cols);
  for (std::size_t n = 0; n < x.rows; ++n)
    for (std::size_t o = 0; o < y.cols; ++o)
      for (std::size_t i = 0; i < x.cols; ++i) y(n, o) += x(n, i) * w[o * x.cols + i];
  return y;
}

matrix norm(const matrix& x, std::span<const double> gain, std::span<const double> shift, double eps) {
  matrix y = x;
  for (std::size_t n = 0; n < x.rows; ++n) {
    double mean = 0, squares = 0;
    const double width = static_cast<double>(x.cols);
    for (std::size_t c = 0; c < x.cols && !shift.empty(); ++c) mean += x(n, c) / width;
    for (std::size_t c = 0; c < x.cols; ++c) squares += (x(n, c) - mean) * (x(n, c) - mean) / width;
    for (std::size_t c = 0; c < x.cols; ++c)
      y(n, c) = (x(n, c) - mean) / std::sqrt(squares + eps) * gain[c] + (shift.empty() ? 0 : shift[c]);
  }
  return y;
}

/// Apply f to each head's rows separately.
matrix of_heads(matrix x, std::size_t head, auto f) {
  const std::size_t rows = x.rows, cols = x.cols;
  x.rows = rows * (cols / head);
  x.cols = head;
  x = f(x);
  x.rows = rows;
  x.cols = x.at.size() / rows;
  return x;
}

matrix softmax(const matrix& x) {
  return by_feature(x, [&](std::size_t n, std::size_t c, double) {
    double sum = 0;
    for (std::size_t other = 0; other < x.cols; ++other) sum += std::exp(x(n, other) - x(n, c));
    return 1 / sum;
  });
}

matrix columns(const matrix& x, std::size_t first, std::size_t count) {
  matrix y(x.rows, count);
  for (std::size_t n = 0; n < x.rows; ++n)
    for (std::size_t c = 0; c < count; ++c) y(n, c) = x(n, first + c);
  return y;
}

matrix concat(const matrix& a, const matrix& b, std::size_t heads) {
  matrix y(a.rows, a.cols + b.cols);
  const std::size_t left = a.cols / heads, right = b.cols / heads;
  for (std::size_t n = 0; n < y.rows; ++n)
    for (std::size_t h = 0, c = 0; h < heads; ++h) {
      for (std::size_t i = 0; i < left; ++i) y(n, c++) = a(n, h * left + i);
      for (std::size_t i = 0; i < right; ++i) y(n, c++) = b(n, h * right + i);
    }
  return y;
}

/// The rotation frequency of pair j of a head. Source: transformers' modeling_rope_utils.
double frequency_of(double j, double head, double theta, const rankc::rope_scaling& s) {
  const double plain = std::pow(theta, -2 * j / head), length = 2 * M_PI / plain;
  const double longest = s.original_positions / s.low_freq_factor,
               shortest = s.original_positions / s.high_freq_factor;
  if (s.by == rankc::rope_scaling::none || (s.by == rankc::rope_scaling::llama3 && length < shortest))
    return plain;
  if (s.by == rankc::rope_scaling::linear || length > longest) return plain / s.factor;
  const double smooth =
      (s.original_positions / length - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * plain / s.factor + smooth * plain;
}

matrix rope(const matrix& x, std::size_t head, std::size_t seq, double theta, const rankc::rope_scaling& s) {
  matrix y = x;
  for (std::size_t n = 0; n < x.rows; ++n)
    for (std::size_t first = 0; first < x.cols; first += head)
      for (std::size_t j = 0; j < head / 2; ++j) {
        const double angle = static_cast<double>(n % seq) *
                             frequency_of(static_cast<double>(j), static_cast<double>(head), theta, s);
        const double a = x(n, first + j), b = x(n, first + head / 2 + j);
        y(n, first + j) = a * std::cos(angle) - b * std::sin(angle);
        y(n, first + head / 2 + j) = b * std::cos(angle) + a * std::sin(angle);
      }
  return y;
}

matrix attention(const matrix& q, const matrix& k, const matrix& v, std::size_t head, std::size_t rows,
                 std::size_t seq, double& largest) {
  if (rows * seq != q.rows)
    throw std::runtime_error("attention over " + std::to_string(rows * seq) + " tokens of " +
                             std::to_string(q.rows));
  matrix y(q.rows, q.cols);
  const std::size_t heads = q.cols / head, each = heads / (k.cols / head);
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t n = 0; n < q.rows; ++n) {
      const std::size_t first = n / seq * seq, kh = h / each;
      std::vector<double> score(n - first + 1);
      for (std::size_t m = first; m <= n; ++m)
        for (std::size_t c = 0; c < head; ++c)
          score[m - first] += q(n, h * head + c) * k(m, kh * head + c) / std::sqrt(static_cast<double>(head));
      const double top = *std::max_element(score.begin(), score.end());
      double sum = 0;
      for (double s : score) largest = std::max(largest, std::abs(s));
      for (double& s : score) sum += s = std::exp(s - top);
      for (std::size_t m = first; m <= n; ++m)
        for (std::size_t c = 0; c < head; ++c)
          y(n, h * head + c) += score[m - first] / sum * v(m, kh * head + c);
    }
  return y;
}

matrix embedding(const matrix& ids, std::span<const double> table, std::size_t width) {
  matrix y(ids.rows, width);
  for (std::size_t n = 0; n < ids.rows; ++n) {
    const auto id = static_cast<std::size_t>(ids(n, 0));
    if ((id + 1) * width > table.size())
      throw std::runtime_error("token " + std::to_string(id) + " of a table with fewer rows");
    for (std::size_t c = 0; c < width; ++c) y(n, c) = table[id * width + c];
  }
  return y;
}

/// The columns of each row's largest elements in descending order; ties go to the first.
matrix choice(const matrix& scores, std::size_t picks) {
  matrix chosen(scores.rows, picks);
  for (std::size_t n = 0; n < scores.rows; ++n) {
    std::vector<std::size_t> order(scores.cols);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores(n, a) > scores(n, b); });
    for (std::size_t k = 0; k < picks; ++k) chosen(n, k) = static_cast<double>(order[k]);
  }
  return chosen;
}

/// The choices within capacity, -1 for the dropped: an expert takes the first `most` picks of each group of
/// positions.
matrix limited(const matrix& chosen, std::size_t group, std::size_t most, std::int64_t& dropped) {
  return by_feature(chosen, [&](std::size_t n, std::size_t k, double expert) {
    std::size_t before = 0;
    for (std::size_t m = n / group * group; m <= n; ++m)
      for (std::size_t j = 0; j < (m < n ? chosen.cols : k); ++j) before += chosen(m, j) == expert;
    dropped += before >= most;
    return before < most ? expert : -1;
  });
}

matrix taken(const matrix& scores, const matrix& chosen) {
  return by_feature(chosen, [&](std::size_t n, std::size_t, double expert) {
    return scores(n, static_cast<std::size_t>(expert));
  });
}

matrix normalize(const matrix& x, double total) {
  return by_feature(x, [&](std::size_t n, std::size_t, double own) {
    double sum = 0;
    for (std::size_t c = 0; c < x.cols; ++c) sum += x(n, c);
    return total * own / sum;
  });
}

/// Each row, repeated once per pick.
matrix for_each_pick(const matrix& x, std::size_t picks) {
  matrix y(x.rows * picks, x.cols);
  return by_feature(y, [&](std::size_t slot, std::size_t c, double) { return x(slot / picks, c); });
}

/// Each row times its expert's (rows, cols) matrix, or its transpose. Experts' matrices are contiguous.
matrix by_expert(const matrix& x, const matrix& chosen, std::span<const double> w, std::size_t rows,
                 std::size_t cols, bool transposed) {
  matrix y(x.rows, transposed ? rows : cols);
  for (std::size_t slot = 0; slot < x.rows; ++slot) {
    if (chosen.at[slot] < 0) continue;
    const std::size_t first = static_cast<std::size_t>(chosen.at[slot]) * rows * cols;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c)
        y(slot, transposed ? r : c) += x(slot, transposed ? c : r) * w[first + r * cols + c];
  }
  return y;
}

/// The sum of each token's picks, weighted.
matrix weighted(const matrix& slots, const matrix& weights) {
  matrix y(weights.rows, slots.cols);
  for (std::size_t slot = 0; slot < slots.rows; ++slot)
    for (std::size_t c = 0; c < slots.cols; ++c)
      y(slot / weights.cols, c) += weights.at[slot] * slots(slot, c);
  return y;
}

/// The sum over tokens of -log of the target's probability, times `scale`.
matrix cross_entropy(const matrix& logits, const matrix& targets, double scale) {
  matrix y(1, 1);
  for (std::size_t n = 0; n < logits.rows; ++n) {
    const auto target = static_cast<std::size_t>(targets(n, 0));
    if (target >= logits.cols)
      throw std::runtime_error("target " + std::to_string(target) + " beyond the logits");
    double top = logits(n, 0), sum = 0;
    for (std::size_t c = 0; c < logits.cols; ++c) top = std::max(top, logits(n, c));
    for (std::size_t c = 0; c < logits.cols; ++c) sum += std::exp(logits(n, c) - top);
    y.at[0] += scale * (std::log(sum) + top - logits(n, target));
  }
  return y;
}

/// One microbatch through one layer.
class layer_run {
 public:
  layer_run(const trace& t, const tensors& weights, std::string prefix, double& largest,
            std::int64_t& dropped)
      : t_(t),
        weights_(weights),
        prefix_(std::move(prefix)),
        largest_(largest),
        dropped_(dropped),
        v_(t.values.size()) {}

  matrix run(const matrix& x, const matrix& targets) {
    for (std::size_t i = 0; i < t_.values.size(); ++i)
      if (t_.values[i].holds == rankc::element::index) v_[i] = targets;
    targets_ = targets;
    v_[static_cast<std::size_t>(t_.input)] = x;
    for (std::size_t i = 0; i < t_.forward_ops; ++i) {
      const op& o = t_.ops[i];
      see(v_[static_cast<std::size_t>(o.out[0])] = apply(o));
      if (takes_apart(o)) v_[static_cast<std::size_t>(o.out[1])] = part(o, false);
      if (o.kind->name.ends_with("_top"))
        v_[static_cast<std::size_t>(o.out[1])] =
            choice(in(o, 0), static_cast<std::size_t>(o.with.first.size));
      if (o.kind->name.starts_with("arrange"))
        v_[static_cast<std::size_t>(o.out[1])] = v_[static_cast<std::size_t>(o.out[0])];
    }
    return v_[static_cast<std::size_t>(t_.result)];
  }

 private:
  void see(const matrix& x) const {
    for (double v : x.at) largest_ = std::abs(v) <= largest_ ? largest_ : std::abs(v);  // NaN stays NaN
  }
  const matrix& in(const op& o, int i) const { return v_[static_cast<std::size_t>(o.in[i])]; }
  std::span<const double> weight(const op& o, int i = 0) const {
    for (int v : o.in)
      if (const int w = v < 0 ? -1 : t_.find_parameter(v); w >= 0 && i-- == 0)
        return weights_.at(prefix_ + t_.weights[static_cast<std::size_t>(w)].name.text());
    return {};
  }
  std::size_t head(const op& o) const {
    return static_cast<std::size_t>(t_.values[static_cast<std::size_t>(o.in[0])].shape[1].unit);
  }

  static bool takes_apart(const op& o) { return o.kind->name.starts_with("split"); }
  matrix part(const op& o, bool is_first) const {
    const auto heads = static_cast<std::size_t>(o.kind->name == "split_heads" ? o.with.whole.count() : 1);
    const std::size_t whole = in(o, 0).cols / heads,
                      left = static_cast<std::size_t>(o.with.first.size) / heads;
    return of_heads(in(o, 0), whole, [&](const matrix& x) {
      return is_first ? columns(x, 0, left) : columns(x, left, whole - left);
    });
  }

  matrix apply(const op& o) const {
    const std::string_view k = o.kind->name;
    const auto rows = static_cast<std::size_t>(o.with.rows), seq = static_cast<std::size_t>(o.with.seq);
    const auto w = weight(o);
    if (k == "add") return zip(in(o, 0), in(o, 1), [](double a, double b) { return a + b; });
    if (k == "gelu")
      return map(in(o, 0), [](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      });
    // Slots are in the order of tokens and picks here, so the choice itself serves as places and offsets.
    if (k == "softmax_top")
      return taken(softmax(in(o, 0)), choice(in(o, 0), static_cast<std::size_t>(o.with.first.size)));
    if (k == "sigmoid_top")
      return taken(map(in(o, 0), [](double x) { return 1 / (1 + std::exp(-x)); }),
                   choice(in(o, 0), static_cast<std::size_t>(o.with.first.size)));
    if (k == "normalize") return normalize(in(o, 0), o.with.total);
    if (k == "arrange") return in(o, 0);
    if (k == "arrange_limited")
      return limited(in(o, 0), seq, static_cast<std::size_t>(o.with.most), dropped_);
    if (k.ends_with("_statistics") || k == "push" || k == "zeros" || k.ends_with("balance_loss") ||
        k == "z_loss")
      return {1, 1};  // statistics and losses of routers are left out
    if (k == "dispatch") return for_each_pick(in(o, 0), in(o, 1).cols);
    if (k == "expert_up" || k == "expert_down") {
      // The experts' matrices, one after the other.
      const rankc::type& all = t_.values[static_cast<std::size_t>(o.in[1])];
      return by_expert(in(o, 0), in(o, 2), w, static_cast<std::size_t>(all.shape[0].unit),
                       static_cast<std::size_t>(all.shape[1].size), k == "expert_down");
    }
    if (k == "combine") return weighted(in(o, 0), in(o, 1));
    if (k == "swiglu")
      return zip(in(o, 0), in(o, 1), [](double g, double u) { return g / (1 + std::exp(-g)) * u; });
    if (k == "mul") return zip(in(o, 0), in(o, 1), [](double a, double b) { return a * b; });
    if (k == "scale") return map(in(o, 0), [&](double x) { return o.with.factor * x; });
    if (k == "sigmoid") return map(in(o, 0), [](double x) { return 1 / (1 + std::exp(-x)); });
    if (k == "softmax") return softmax(in(o, 0));
    if (k == "head_norm")
      return of_heads(in(o, 0), head(o), [&](const matrix& x) { return norm(x, w, {}, o.with.eps); });
    if (takes_apart(o)) return part(o, true);
    if (k == "concat") return concat(in(o, 0), in(o, 1), 1);
    if (k == "concat_heads")
      return concat(in(o, 0), in(o, 1), static_cast<std::size_t>(o.with.whole.count()));
    if (k == "linear") return linear(in(o, 0), w);
    if (k == "bias")
      return by_feature(in(o, 0), [&](std::size_t, std::size_t c, double x) { return x + w[c]; });
    if (k == "position") {
      const std::size_t width = in(o, 0).cols;
      return by_feature(in(o, 0),
                        [&](std::size_t n, std::size_t c, double x) { return x + w[n % seq * width + c]; });
    }
    if (k == "rms_norm" || k == "layer_norm") return norm(in(o, 0), w, weight(o, 1), o.with.eps);
    if (k == "rope") return rope(in(o, 0), head(o), seq, o.with.theta, o.with.scaling);
    if (k == "attention") return attention(in(o, 0), in(o, 1), in(o, 2), head(o), rows, seq, largest_);
    if (k == "embedding")
      return embedding(in(o, 0), w,
                       static_cast<std::size_t>(t_.values[static_cast<std::size_t>(o.in[1])].shape[1].size));
    // The logits at its end determine the loss; intermediate values are passed through.
    if (k == "cross_entropy") return cross_entropy(in(o, 0), targets_, o.with.factor);
    if (k == "exp_sums" || k == "row_max" || k == "replicate" || k.starts_with("all_") ||
        k == "reduce_scatter")
      return in(o, 0);
    throw std::runtime_error("no definition of op '" + std::string(k) + "'");
  }

  const trace& t_;
  const tensors& weights_;
  const std::string prefix_;
  double& largest_;
  std::int64_t& dropped_;
  std::vector<matrix> v_;
  matrix targets_;
};

}  // namespace

reference_result evaluate_reference(const rankc::plan_data& plan, const tensors& weights, const batch& b) {
  const auto tokens = static_cast<std::size_t>(plan.rows * plan.recipe.seq);
  reference_result out;
  for (std::size_t first = 0; first < b.tokens.size(); first += tokens) {
    matrix x(tokens, 1), targets(tokens, 1);
    for (std::size_t n = 0; n < tokens; ++n) {
      x(n, 0) = b.tokens[first + n];
      targets(n, 0) = b.targets[first + n];
    }
    std::size_t number = 0;
    for (const rankc::layer_run& run : plan.runs)
      for (int i = 0; i < run.count; ++i) {
        const rankc::layer_kind& k = plan.kinds[static_cast<std::size_t>(run.kind)];
        std::int64_t dropped = 0;
        x = layer_run(k.ops, weights, k.repeated ? "layers." + std::to_string(number) + "." : "", out.largest,
                      dropped)
                .run(x, targets);
        if (!k.repeated) continue;
        out.dropped.resize(std::max(out.dropped.size(), ++number));
        out.dropped[number - 1] += dropped;
      }
    out.loss += x.at.at(0);
  }
  return out;
}

}  // namespace fuzz
