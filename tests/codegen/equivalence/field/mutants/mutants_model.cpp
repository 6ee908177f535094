// SPDX-License-Identifier: Apache-2.0
// Faults in the model that a program is compared with: the program is correct, but for another model.
#include "mutants.hpp"

#include <algorithm>

namespace field {

namespace {

using rankc::codegen::specification;

struct model_mutator {
  specification& s;
  std::mt19937& random;

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  template <class T>
  T& one_of(std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  specification::layer& layer = one_with_ops();
  specification::op& op = one_of(layer.ops);
  specification::layer& one_with_ops() {
    std::vector<specification::layer*> all;
    for (specification::layer& l : s.layers)
      if (!l.ops.empty()) all.push_back(&l);
    return *one_of(all);
  }
  std::string text() const { return layer.name + ": " + op.row; }
  const specification::tensor& tensor(int value) const {
    return layer.values[static_cast<std::size_t>(value)];
  }
};

/// Read another earlier value of the layer with the same shape.
fault read_another(model_mutator& m) {
  if (m.op.in.empty()) return {};
  int& in = m.one_of(m.op.in);
  std::vector<int> others;
  const auto offer = [&](int v) {
    if (v >= 0 && v != in && m.tensor(v).shape == m.tensor(in).shape && m.tensor(v).unit == m.tensor(in).unit)
      others.push_back(v);
  };
  for (const specification::op& o : m.layer.ops) {
    if (&o == &m.op) break;
    for (int v : o.out) offer(v);
  }
  for (const specification::parameter& p : m.layer.parameters) offer(p.value);
  if (others.empty()) return {};
  in = m.one_of(others);
  return {"model: operand", m.text()};
}
fault exchange_operands(model_mutator& m) {
  if (m.op.in.size() < 2) return {};
  int &a = m.one_of(m.op.in), &b = m.one_of(m.op.in);
  if (a == b || m.tensor(a).shape != m.tensor(b).shape) return {};
  std::swap(a, b);
  return {"model: operands exchanged", m.text()};
}
fault change_attention(model_mutator& m) {
  if (m.below(2)) m.op.attention.window += 1;
  else m.op.attention.softcap += 0.5;
  return {"model: attention", m.text()};
}
/// Change the number of an op, or a window, softcap or scale of attention that has one.
fault change_number(model_mutator& m) {
  if (!m.op.attention.is_plain()) return change_attention(m);
  if (m.op.number == 0) return {};
  m.op.number *= m.below(2) ? 2 : -1;
  return {"model: number", m.text()};
}
fault change_seq(model_mutator& m) {
  if (m.op.seq < 2) return {};
  if (m.op.rows > 0 && m.op.seq % 2 == 0) {
    m.op.rows *= 2;
    m.op.seq /= 2;
  } else m.op.seq -= 1;
  return {"model: seq", m.text()};
}
fault take_another_row(model_mutator& m) {
  for (const auto& pair :
       {std::pair{"add", "mul"}, {"gelu", "sigmoid"}, {"sigmoid", "softmax"}, {"swiglu", "add"}})
    for (const auto& [from, to] : {pair, std::pair{pair.second, pair.first}})
      if (m.op.row == from && m.below(2)) {
        m.op.row = to;
        return {"model: another row", m.layer.name + ": " + from + " as " + to};
      }
  return {};
}
/// Exchange two parameters of the model in one use of a layer.
fault exchange_parameters(model_mutator& m) {
  specification::use& u = m.one_of(m.s.uses);
  const specification::layer& l = m.s.layers[static_cast<std::size_t>(u.layer)];
  if (u.parameters.size() < 2) return {};
  const auto a = static_cast<std::size_t>(m.below(static_cast<int>(u.parameters.size()))),
             b = static_cast<std::size_t>(m.below(static_cast<int>(u.parameters.size())));
  const auto shape = [&](std::size_t k) {
    return l.values[static_cast<std::size_t>(l.parameters[k].value)].shape;
  };
  if (a == b || shape(a) != shape(b)) return {};
  std::swap(u.parameters[a], u.parameters[b]);
  return {"model: parameters exchanged", u.name + ": " + u.parameters[a] + " and " + u.parameters[b]};
}
fault leave_out_layer(model_mutator& m) {
  if (m.s.uses.size() < 3) return {};
  const int k = 1 + m.below(static_cast<int>(m.s.uses.size()) - 2);
  const std::string name = m.s.uses[static_cast<std::size_t>(k)].name;
  m.s.uses.erase(m.s.uses.begin() + k);
  return {"model: a layer less", name};
}
fault freeze(model_mutator& m) {
  if (m.layer.parameters.empty()) return {};
  specification::parameter& p = m.one_of(m.layer.parameters);
  p.trainable = !p.trainable;
  return {"model: trainable", m.layer.name + ": " + p.name};
}

}  // namespace

fault make_fault(specification& s, fault_form form, std::mt19937& random) {
  using model_fault = fault (*)(model_mutator&);
  constexpr model_fault fields[]{change_number, change_seq, freeze},
      structures[]{read_another, exchange_operands, take_another_row, exchange_parameters, leave_out_layer};
  const auto draw_from = [&](const auto& kinds) { return kinds[random() % std::size(kinds)]; };
  const model_fault kind = form == fault_form::field ? draw_from(fields) : draw_from(structures);
  fault made;
  for (int tries = 0; tries < 30 && made.kind.empty(); ++tries) {  // most ops offer nothing to most kinds
    model_mutator m{s, random};
    made = kind(m);
  }
  return made;
}

}  // namespace field
