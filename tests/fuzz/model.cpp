// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <set>
#include <stdexcept>

namespace fuzz {

namespace {

constexpr op_row bare_gelu = [] {
  op_row row = ops::gelu;
  row.dual = nullptr;
  return row;
}();

value declare(trace& t, const parameter& p) {
  const auto with = [&](std::initializer_list<dim> shape, std::initializer_list<shard> by) {
    if (!p.handle) return t.parameter(p.name, shape, by, p.start, p.std);
    return t.parameter(parameter_handle{p.name, shape, by, p.start, p.std, "", p.handle});
  };
  const std::vector<dim>& d = p.shape;
  const shard by{axis::tp, p.sharded_by};
  if (d.size() == 1) return p.sharded_by.empty() ? with({d[0]}, {}) : with({d[0]}, {by});
  return p.sharded_by.empty() ? with({d[0], d[1]}, {}) : with({d[0], d[1]}, {by});
}

/// The layer's weights, each declared at its first use.
class declared {
 public:
  declared(trace& t, const layer& of) : trace_(t), layer_(of), made_(of.parameters.size()) {}
  value operator[](int i) {
    value& w = made_.at(static_cast<std::size_t>(i));
    if (!w.in) w = declare(trace_, layer_.parameters[static_cast<std::size_t>(i)]);
    return w;
  }

 private:
  trace& trace_;
  const layer& layer_;
  std::vector<value> made_;
};

value swap(value x, int moved) {
  const dim d = x.in->of(x).shape[1];
  const bool of_heads = d.unit > 1;
  const int size = of_heads ? d.unit : d.size, count = d.size / size;
  const auto part = [&](int n) { return dim{d.name, n * count, of_heads ? n : 1, d.unit_name}; };
  const auto [first, second] = split(x, part(moved), part(size - moved));
  return concat(second, first, d);
}

value take(const step& s, trace& t, const std::vector<value>& v, declared& w, const layer_context& c) {
  const auto in = [&](std::size_t i) { return v.at(static_cast<std::size_t>(s.in.at(i))); };
  const int seq = s.seq ? s.seq : c.seq;
  switch (s.kind) {
    case step_kind::rms_norm:
      return rms_norm(in(0), w[s.weights.at(0)], s.number);
    case step_kind::layer_norm: {
      const value gain = w[s.weights.at(0)], shift = w[s.weights.at(1)];
      return layer_norm(in(0), gain, shift, s.number);
    }
    case step_kind::linear:
      return linear(in(0), w[s.weights.at(0)]);
    case step_kind::bias:
      return bias(in(0), w[s.weights.at(0)]);
    case step_kind::gelu:
      return gelu(in(0));
    case step_kind::swiglu:
      return swiglu(in(0), in(1));
    case step_kind::add:
      return in(0) + in(1);
    case step_kind::mul:
      return in(0) * in(1);
    case step_kind::scale:
      return scale(in(0), s.number);
    case step_kind::sigmoid:
      return sigmoid(in(0));
    case step_kind::softmax:
      return softmax(in(0));
    case step_kind::head_norm:
      return head_norm(in(0), w[s.weights.at(0)], s.number);
    case step_kind::swap:
      return swap(in(0), s.pieces);
    case step_kind::rope:
      return rope(in(0), seq, s.number, s.scaling);
    case step_kind::attention: {
      const value keys = all_gather(in(1), axis::cp, c.tokens.name),
                  values = all_gather(in(2), axis::cp, c.tokens.name);
      return attention(in(0), keys, values, c.rows * s.pieces, seq / s.pieces);
    }
    case step_kind::position:
      return position(in(0), w[s.weights.at(0)], seq);
    case step_kind::embedding:
      return embedding(in(0), w[s.weights.at(0)]);
    case step_kind::enter_tp:
      return enter_tp(in(0), c);
    case step_kind::leave_tp:
      return leave_tp(in(0), c);
    case step_kind::cross_entropy:
      return cross_entropy(in(0), c.input("targets"), axis::tp, s.number * c.loss_scale);
    case step_kind::experts:
      return models::add_experts(t, in(0), s.with, 2, s.number, c);
    case step_kind::bare_gelu:
      return t.apply(bare_gelu, {in(0)});
  }
  throw std::logic_error("a step of no kind");
}

}  // namespace

std::string_view lasting(const std::string& text) {
  static std::set<std::string> all;
  return *all.insert(text).first;
}

value layer::forward(trace& t, value x, const layer_context& c) const {
  std::vector<value> values{x};
  declared weights(t, *this);
  for (const step& s : steps) values.push_back(take(s, t, values, weights, c));
  return values.at(static_cast<std::size_t>(result));
}

int model::blocks() const {
  int n = 0;
  for (const entry& e : entries) n += e.repeated ? e.count : 0;
  return n;
}

}  // namespace fuzz
