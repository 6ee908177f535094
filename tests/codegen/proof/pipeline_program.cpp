// SPDX-License-Identifier: Apache-2.0
#include "pipeline_program.hpp"

#include "rank_builder.hpp"

#include <rankc/runtime/program.hpp>

#include <map>
#include <string>
#include <tuple>

namespace rankc::codegen::testing {

namespace {

enum stream { compute, reduce, to_next, from_prev, to_prev, from_next, overlap, n_streams };

/// The state that all ranks share.
struct world {
  pipeline_shape shape;
  program result;
  int values = 0;
  std::map<std::string, int> messages;
  std::map<std::string, int> communicators;
  std::map<std::tuple<char, int, int, int, int>, int> boundaries;

  int rank(int p, int d, int t) const { return (p * shape.dp + d) * shape.tp + t; }
  int message(const std::string& name) { return messages.try_emplace(name, messages.size()).first->second; }
  int communicator(const std::string& name, std::vector<int> ranks) {
    const auto [it, fresh] = communicators.try_emplace(name, communicators.size());
    if (fresh) result.communicators.push_back({name, std::move(ranks)});
    return it->second;
  }
  /// The value that stage p sends to the next stage (F) or to the one before (B).
  int boundary(char action, int microbatch, int p, int d, int t) {
    const auto [it, fresh] = boundaries.try_emplace({action, microbatch, p, d, t}, values);
    if (fresh) ++values;
    return it->second;
  }
};

struct stage_rank {
  world& all;
  const int p, d, t;
  const pipeline_shape& shape = all.shape;
  rank_builder rank{stream::n_streams};
  std::vector<access> weights, gradients, moments, saved;  // saved: (slots, layers + 1)
  access in[2], out[2], gradient_in[2], gradient_out[2], tokens, loss, norm, sum, flow[2];
  int slots = 0, backwards = 0;

  bool first() const { return p == 0; }
  bool last() const { return p == shape.pp - 1; }
  std::string at(char action, int mb) const { return std::to_string(p) + action + std::to_string(mb) + ": "; }
  access& keep(int mb, int l) { return saved[(mb % slots) * (shape.layers + 1) + l]; }
  access fresh(access& a) {
    a.value = all.values++;
    return a;
  }

  void begin() {
    slots = shape.one_f_one_b ? std::min(shape.microbatches, shape.pp - p) : shape.microbatches;
    op o{.kind = op_kind::begin, .name = "begin"};
    for (int l = 0; l < shape.layers; ++l) {
      weights.push_back(rank.allocate(3));
      gradients.push_back(rank.allocate(3));
      moments.push_back(rank.allocate(3));
      o.writes.push_back(fresh(weights[l]));
      o.writes.push_back(fresh(moments[l]));
    }
    for (int s = 0; s < slots * (shape.layers + 1); ++s) saved.push_back(rank.allocate(2));
    for (auto* slot : {in, out, gradient_in, gradient_out, flow})
      for (int i = 0; i < 2; ++i) slot[i] = rank.allocate(2);
    sum = flow[0];
    sum.begin += rank_builder::block;  // overlaps both, with another lifetime
    sum.end = flow[1].end - rank_builder::block;
    tokens = rank.allocate(1);
    loss = rank.allocate(1);
    norm = rank.allocate(1);
    o.writes.push_back(fresh(tokens));
    rank.issue(o);
  }

  void compute(const std::string& name, std::vector<access> reads, std::vector<access> writes) {
    rank.issue(
        {.kind = op_kind::compute, .name = name, .reads = std::move(reads), .writes = std::move(writes)});
  }

  /// In place; no op for a group of one.
  void all_reduce(const std::string& name, stream s, const std::string& group, std::vector<int> ranks,
                  access& a) {
    if (ranks.size() == 1) return;
    op o{.kind = op_kind::collective, .name = name, .stream = static_cast<int>(s), .reads = {a}};
    o.writes = {fresh(a)};
    o.communicator = all.communicator(group, std::move(ranks));
    o.bytes = a.end - a.begin;
    o.message = all.message(name);
    rank.issue(std::move(o));
  }
  void tensor_sum(const std::string& name, access& a) {
    all_reduce(name, stream::compute, tensor_group(), tensor_ranks(), a);
  }

  /// Transfer between stages `from` and `to`; this rank has one of the two.
  void transfer(char action, int mb, int from, int to, stream s, access& a) {
    const auto edge = std::to_string(from) + " -> " + std::to_string(to);
    op o{.kind = p == from ? op_kind::send : op_kind::receive, .stream = static_cast<int>(s)};
    o.name = action + std::to_string(mb) + ": stage " + edge;
    o.peer = all.rank(p == from ? to : from, d, t);
    o.communicator = all.communicator(edge + " of " + std::to_string(d) + " " + std::to_string(t),
                                      {all.rank(from, d, t), all.rank(to, d, t)});
    o.bytes = a.end - a.begin;
    o.message = all.message(o.name);
    a.value = all.boundary(action, mb, from, d, t);
    (p == from ? o.reads : o.writes) = {a};
    rank.issue(std::move(o));
  }

  void forward(int mb) {
    const auto name = at('F', mb);
    if (!first()) transfer('F', mb, p - 1, p, stream::from_prev, in[mb % 2]);
    compute(name + "enter", {first() ? tokens : in[mb % 2]}, {fresh(keep(mb, 0))});
    for (int l = 0; l < shape.layers; ++l) {
      const auto layer = name + "layer " + std::to_string(l);
      compute(layer, {keep(mb, l), weights[l]}, {fresh(sum)});
      tensor_sum(layer + " sum", sum);
      access& to = l + 1 < shape.layers || last() ? keep(mb, l + 1) : out[mb % 2];
      if (&to == &out[mb % 2]) to.value = all.boundary('F', mb, p, d, t);
      else fresh(to);
      compute(layer + " residual", {sum, keep(mb, l)}, {to});
    }
    if (!last()) return transfer('F', mb, p, p + 1, stream::to_next, out[mb % 2]);
    std::vector<access> reads{keep(mb, shape.layers), tokens};
    if (mb > 0) reads.push_back(loss);
    compute(name + "loss", reads, {fresh(loss)});
  }

  void backward(int mb) {
    const auto name = at('B', mb);
    if (!last()) transfer('B', mb, p + 1, p, stream::from_next, gradient_in[mb % 2]);
    access* dy = &gradient_in[mb % 2];
    if (last()) compute(name + "loss", {keep(mb, shape.layers), tokens}, {fresh(*(dy = &flow[1]))});
    const bool final = ++backwards == shape.microbatches;
    for (int l = shape.layers - 1; l >= 0; --l) {
      const auto layer = name + "layer " + std::to_string(l);
      const bool crosses = l == 0 && !first();
      access& inside = dy == &flow[0] ? flow[1] : flow[0];
      access& dx = crosses ? gradient_out[mb % 2] : inside;
      if (crosses && shape.tp == 1) dx.value = all.boundary('B', mb, p, d, t);
      else fresh(dx);
      compute(layer + " dgrad", {weights[l], *dy}, {dx});
      tensor_sum(layer + " sum", dx);
      std::vector<access> reads{keep(mb, l), *dy};
      if (backwards > 1) reads.push_back(gradients[l]);
      compute(layer + " wgrad", reads, {fresh(gradients[l])});
      if (crosses && shape.tp > 1) {
        const access unscaled = dx;
        dx.value = all.boundary('B', mb, p, d, t);
        compute(layer + " scale", {unscaled}, {dx});
      }
      if (final) data_sum("reduce layer " + std::to_string(l), gradients[l]);
      dy = &dx;
    }
    if (!first()) transfer('B', mb, p, p - 1, stream::to_prev, gradient_out[mb % 2]);
  }

  std::string data_group() const { return "dp " + std::to_string(p) + " " + std::to_string(t); }
  std::vector<int> data_ranks() const {
    std::vector<int> ranks;
    for (int i = 0; i < shape.dp; ++i) ranks.push_back(all.rank(p, i, t));
    return ranks;
  }
  void data_sum(const std::string& name, access& a) {
    all_reduce(name, stream::reduce, data_group(), data_ranks(), a);
  }

  std::string tensor_group() const { return "tp " + std::to_string(p) + " " + std::to_string(d); }
  std::vector<int> tensor_ranks() const {
    std::vector<int> ranks;
    for (int i = 0; i < shape.tp; ++i) ranks.push_back(all.rank(p, d, i));
    return ranks;
  }
  std::string model_group() const { return "pp " + std::to_string(d) + " " + std::to_string(t); }
  std::vector<int> model_ranks() const {
    std::vector<int> ranks;
    for (int i = 0; i < shape.pp; ++i) ranks.push_back(all.rank(i, d, t));
    return ranks;
  }

  void finish() {
    if (last()) data_sum("reduce loss", loss);
    compute("norm", gradients, {fresh(norm)});
    all_reduce("norm over tp", stream::compute, tensor_group(), tensor_ranks(), norm);
    all_reduce("norm over pp", stream::compute, model_group(), model_ranks(), norm);
    for (int l = 0; l < shape.layers; ++l) {
      const access weight = weights[l], moment = moments[l];
      compute("adamw " + std::to_string(l), {weight, moment, gradients[l], norm},
              {fresh(weights[l]), fresh(moments[l])});
    }
    op o{.kind = op_kind::end, .name = "end"};
    o.reads = weights;
    o.reads.insert(o.reads.end(), moments.begin(), moments.end());
    if (last()) o.reads.push_back(loss);
    rank.issue(std::move(o));
  }

  void run() {
    const int m = shape.microbatches, warm_up = shape.one_f_one_b ? std::min(m, shape.pp - 1 - p) : m;
    begin();
    for (int mb = 0; mb < warm_up; ++mb) forward(mb);
    for (int mb = 0; mb < m; ++mb) {
      if (warm_up + mb < m) forward(warm_up + mb);
      backward(mb);
    }
    finish();
  }
};

}  // namespace

program pipeline_program(const pipeline_shape& shape) {
  world all{.shape = shape};
  all.result.plan = "pipeline";
  all.result.streams = stream::n_streams;
  for (int p = 0; p < shape.pp; ++p)
    for (int d = 0; d < shape.dp; ++d)
      for (int t = 0; t < shape.tp; ++t) {
        stage_rank one{.all = all, .p = p, .d = d, .t = t};
        one.run();
        all.result.ranks.push_back(one.rank.finish());
      }
  return std::move(all.result);
}

}  // namespace rankc::codegen::testing
