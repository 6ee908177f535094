// SPDX-License-Identifier: Apache-2.0
// Storage of a layer's values, from their lives: handed in, saved for backward, or temporary; what can be computed in
// place; and the offset of each in the slot or in the workspace.
#include <rankc/codegen/intervals.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "node.hpp"

namespace rankc::codegen {

namespace {

struct life {
  int first_forward = -1, last_forward = -1, first_backward = -1, last_backward = -1;
  bool for_input = false, for_weights = false;  // in either half of backward
};

class storage {
 public:
  storage(layer_program p, target t, bool splits, dtype type) : p_(std::move(p)), target_(t), splits_(splits), type_(type) {}

  body run() {
    out_.constants = p_.constants;
    out_.ropes = p_.ropes;
    classify();
    share_in_place(p_.forward, true);
    share_in_place(p_.backward, false);
    make_buffers();
    out_.forward = finish(p_.forward, out_.forward_temp);
    out_.backward = finish(p_.backward, out_.backward_temp);
    if (splits_)
      for (const kernel& k : out_.backward) (k.for_weights ? out_.backward_weight : out_.backward_input).push_back(k);
    return std::move(out_);
  }

 private:
  void count_uses() {
    lives_.assign(p_.alias.size(), {});
    auto walk = [&](const nodes& list, int life::*first, int life::*last, bool backward) {
      for (std::size_t i = 0; i < list.size(); ++i)
        for (std::size_t p = 0; p < list[i].ports.size(); ++p) {
          const operand& o = list[i].ports[p].at;
          if (o.where != space::temp || list[i].row->ports[p].as == use::scratch) continue;
          life& u = lives_[root(o.index)];
          if (u.*first < 0) u.*first = static_cast<int>(i);
          u.*last = static_cast<int>(i);
          if (backward) (list[i].for_weights ? u.for_weights : u.for_input) = true;
        }
    };
    walk(p_.forward, &life::first_forward, &life::last_forward, false);
    walk(p_.backward, &life::first_backward, &life::last_backward, true);
  }

  void classify() {
    shared_.resize(p_.alias.size());
    for (std::size_t i = 0; i < shared_.size(); ++i) shared_[i] = static_cast<int>(i);
    count_uses();
    where_.assign(p_.alias.size(), space::temp);
    for (std::size_t v = 0; v < lives_.size(); ++v)
      if ((lives_[v].first_forward >= 0 && lives_[v].first_backward >= 0) || (lives_[v].for_input && lives_[v].for_weights))
        where_[v] = space::saved;
    if (p_.x >= 0) {
      where_[p_.x] = space::x;
      where_[p_.dx] = space::dx;
      out_.x_bytes = p_.bytes[p_.x];
    }
    if (p_.y >= 0) {
      where_[p_.y] = space::y;
      where_[p_.dy] = space::dy;
      out_.y_bytes = p_.bytes[p_.y];
    }
  }

  /// The value whose memory a value uses.
  int root(int v) const {
    while (shared_[v] != v) v = shared_[v];
    return v;
  }

  /// Ports (output, input) of which the first may lie where the second does.
  static std::vector<std::pair<std::size_t, std::size_t>> may_replace(const node& n) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      for (std::string_view name : n.row->ports[p].may_replace)
        if (!name.empty()) pairs.emplace_back(p, n.row->find(name));
    return pairs;
  }
  /// Where a node may write over an input that nothing needs afterwards, let it.
  void share_in_place(const nodes& list, bool forward) {
    for (std::size_t i = 0; i < list.size(); ++i)
      for (const auto& [out, in] : may_replace(list[i])) {
        const operand &o = list[i].ports[out].at, &n = list[i].ports[in].at;
        if (o.where != space::temp || n.where != space::temp) continue;
        const int to = root(o.index), from = root(n.index);
        const life &a = lives_[to], &b = lives_[from];
        const bool dies_here = (forward ? b.last_forward : b.last_backward) == static_cast<int>(i);
        const bool starts_here = (forward ? a.first_forward : a.first_backward) == static_cast<int>(i);
        if (to == from || !dies_here || !starts_here || p_.bytes[to] != p_.bytes[from]) continue;
        if (where_[from] == space::temp) {
          shared_[from] = to;  // the input is made where the output will be
        } else if (where_[from] == space::saved && !forward && a.first_forward < 0 &&
                   (where_[to] == space::temp || where_[to] == space::saved)) {
          shared_[to] = from;  // the output is made over a saved value's last use
        } else {
          continue;
        }
        count_uses();
        break;
      }
  }

  void make_buffers() {
    index_.assign(shared_.size(), -1);
    for (std::size_t v = 0; v < shared_.size(); ++v) {
      const life& u = lives_[v];
      if (root(static_cast<int>(v)) != static_cast<int>(v) || (u.first_forward < 0 && u.first_backward < 0)) continue;
      if (where_[v] != space::saved && where_[v] != space::temp) continue;
      index_[v] = static_cast<int>(out_.buffers.size());
      const dtype type = p_.wide[v] && type_ == dtype::bf16 ? dtype::f32 : type_;
      out_.buffers.push_back({p_.names[v], p_.bytes[v], p_.shapes[v], type, 0});
      if (where_[v] == space::saved) {
        out_.buffers.back().offset = out_.saved_bytes;
        out_.saved_bytes += aligned(p_.bytes[v]);
      }
    }
  }

  /// The nodes as kernels with their operands in storage, and the temporaries of the list placed in the workspace.
  std::vector<kernel> finish(const nodes& list, std::size_t& temp_bytes) {
    std::vector<kernel> done;
    std::vector<lifetime> lives;
    std::vector<int> of_buffer;
    auto live = [&](int b, int i) {
      auto it = std::find(of_buffer.begin(), of_buffer.end(), b);
      if (it == of_buffer.end()) {
        of_buffer.push_back(b);
        lives.push_back({i, i, out_.buffers[b].bytes});
      } else {
        lives[it - of_buffer.begin()].last = i;
      }
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      kernel& k = done.emplace_back(call_of(list[i]));
      for (const auto* side : {&k.writes, &k.reads})
        for (const operand& o : *side)
          if (o.where == space::temp) live(o.index, static_cast<int>(i));
    }
    temp_bytes = place_intervals(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) out_.buffers[of_buffer[i]].offset = lives[i].offset;
    return done;
  }

  kernel call_of(const node& n) {
    kernel k{.row = n.row, .function = std::string(kernel_of(*n.row, target_).name), .writes = {}, .reads = {}, .in_place = {}, .sizes = sizes_of(n, target_),
             .accumulate = n.accumulate, .collective_ = n.collective_, .wide = n.wide, .for_weights = n.for_weights};
    std::vector<int> place;  // of each port, among what is written or read
    for (std::size_t p = 0; p < n.ports.size(); ++p) {
      std::vector<operand>& side = n.row->ports[p].is_read() ? k.reads : k.writes;
      place.push_back(static_cast<int>(side.size()));
      if (n.row->ports[p].as == use::scratch) {
        side.push_back({space::temp, static_cast<int>(out_.buffers.size())});
        out_.buffers.push_back({p_.scope.take(std::string(n.row->name) + "_scratch"), n.scratch_bytes, "scores", std::nullopt, 0});
        continue;
      }
      side.push_back(stored(n.ports[p].at));
      for (operand more : n.ports[p].rest) {
        more.implied = true;
        side.push_back(more);
      }
    }
    for (const auto& [out, in] : may_replace(n)) k.in_place.emplace_back(place[out], place[in]);
    return k;
  }
  operand stored(operand o) const {
    if (o.where != space::temp) return o;
    const int v = root(o.index);
    o.where = where_[v];
    o.index = index_[v] < 0 ? 0 : index_[v];
    return o;
  }

  layer_program p_;
  const target target_;
  const bool splits_;
  const dtype type_;
  body out_;
  std::vector<life> lives_;
  std::vector<space> where_;
  std::vector<int> shared_, index_;
};

layer_parameter local_parameter(const weight_info& w, const parallel_dims& d) {
  layer_parameter p{.name = std::string(w.name), .id = {}, .ndim = w.holds.ndim, .start = w.start, .std = w.std, .trainable = w.trainable};
  int* sizes[]{&p.rows, &p.cols};
  for (int i = 0; i < w.holds.ndim; ++i) {
    *sizes[i] = w.holds.shape[i].size;
    if (w.holds[axis::tp] == V(i) && d.tp > 1) {
      *sizes[i] /= d.tp;
      p.shard_dim = i;
    }
  }
  p.sum_over_tp = w.has_gradient && w.gradient[axis::tp] == P && d.tp > 1;
  p.sum_over_dp = w.has_gradient && w.gradient[axis::dp_replicate] == P && d.dp_replicate > 1;
  return p;
}

/// The parameters of a layer.
std::vector<layer_parameter> local_parameters(const layer_kind& layer, const plan_data& plan) {
  std::vector<layer_parameter> parameters;
  name_scope ids({"parameters", "at"});
  for (const weight_info& w : layer.ops.weights) {
    layer_parameter& p = parameters.emplace_back(local_parameter(w, plan.dims));
    p.id = ids.take(w.name);
    for (const layer_kind& other : plan.kinds)
      for (const weight_info& o : other.ops.weights)
        p.shared |= &other != &layer && is_same_parameter(o, w);
  }
  return parameters;
}

}  // namespace

body lower_layer(const layer_kind& layer, const std::string& name, const plan_data& plan, dtype type, target target, bool splits) {
  std::vector<layer_parameter> parameters = local_parameters(layer, plan);
  layer_program p = select_nodes(layer, name, parameters, plan, type, target);
  if (splits) split_backward(p);
  add_in_place(p);
  fuse_forward(p, parameters, target);
  if (target == target::cuda) pack_linears(p, parameters, type);
  fuse_backward(p, parameters, target);
  if (plan.actions.inference) p.backward.clear();
  body b = storage(std::move(p), target, splits, type).run();
  b.name = name;
  b.parameters = std::move(parameters);
  return b;
}

}  // namespace rankc::codegen
