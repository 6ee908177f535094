// SPDX-License-Identifier: Apache-2.0
// Storage of a layer's values, from their lives: handed in, saved for backward, or temporary; what can be computed in
// place; and the offset of each in the slot or in the workspace.
#include <rankc/codegen/intervals.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "kernels.hpp"

namespace rankc::codegen {

namespace {

struct use {
  int first_forward = -1, last_forward = -1, first_backward = -1, last_backward = -1;
  bool for_input = false, for_weights = false;  // in either half of backward
};

class storage {
 public:
  storage(value_program p, bool splits, dtype type) : p_(std::move(p)), splits_(splits), type_(type) {}

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
    uses_.assign(p_.alias.size(), {});
    auto walk = [&](const std::vector<value_call>& list, int use::*first, int use::*last, bool backward) {
      for (std::size_t i = 0; i < list.size(); ++i)
        for (const auto* side : {&list[i].writes, &list[i].reads})
          for (const operand& o : *side) {
            if (o.where != space::temp) continue;
            use& u = uses_[root(o.index)];
            if (u.*first < 0) u.*first = static_cast<int>(i);
            u.*last = static_cast<int>(i);
            if (backward) (list[i].call.for_weights ? u.for_weights : u.for_input) = true;
          }
    };
    walk(p_.forward, &use::first_forward, &use::last_forward, false);
    walk(p_.backward, &use::first_backward, &use::last_backward, true);
  }

  void classify() {
    shared_.resize(p_.alias.size());
    for (std::size_t i = 0; i < shared_.size(); ++i) shared_[i] = static_cast<int>(i);
    count_uses();
    where_.assign(p_.alias.size(), space::temp);
    for (std::size_t v = 0; v < uses_.size(); ++v)
      if ((uses_[v].first_forward >= 0 && uses_[v].first_backward >= 0) || (uses_[v].for_input && uses_[v].for_weights))
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

  /// Where a call may write over an input that nothing needs afterwards, let it.
  void share_in_place(std::vector<value_call>& list, bool forward) {
    for (std::size_t i = 0; i < list.size(); ++i)
      for (auto [out, in] : list[i].in_place) {
        const operand &o = list[i].writes[out], &n = list[i].reads[in];
        if (o.where != space::temp || n.where != space::temp) continue;
        const int to = root(o.index), from = root(n.index);
        const use &a = uses_[to], &b = uses_[from];
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
      const use& u = uses_[v];
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

  /// The calls with their operands in storage, and the temporaries of the list placed in the workspace.
  std::vector<kernel> finish(std::vector<value_call>& list, std::size_t& temp_bytes) {
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
      value_call& c = list[i];
      c.call.in_place = c.in_place;
      for (std::size_t w = 0; w < c.writes.size(); ++w)  // what is one value before storage is changed in place
        for (std::size_t r = 0; r < c.reads.size(); ++r)
          if (c.writes[w].where == c.reads[r].where && c.writes[w].index == c.reads[r].index)
            c.call.in_place.emplace_back(static_cast<int>(w), static_cast<int>(r));
      for (auto* side : {&c.writes, &c.reads})
        for (operand& o : *side) {
          if (o.where != space::temp) continue;
          const int v = root(o.index);
          o.where = where_[v];
          o.index = index_[v] < 0 ? 0 : index_[v];
          if (o.where == space::temp) live(o.index, static_cast<int>(i));
        }
      if (c.scratch_bytes) {
        c.writes.push_back({space::temp, static_cast<int>(out_.buffers.size())});
        out_.buffers.push_back({p_.scope.take(c.call.function + "_scratch"), c.scratch_bytes, "scores", std::nullopt, 0});
        live(c.writes.back().index, static_cast<int>(i));
      }
      c.call.writes = c.writes;
      c.call.reads = c.reads;
      done.push_back(c.call);
    }
    temp_bytes = place_intervals(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) out_.buffers[of_buffer[i]].offset = lives[i].offset;
    return done;
  }

  value_program p_;
  const bool splits_;
  const dtype type_;
  body out_;
  std::vector<use> uses_;
  std::vector<space> where_;
  std::vector<int> shared_, index_;
};

layer_parameter local_parameter(const weight_info& w, const parallel_dims& d) {
  layer_parameter p{.name = std::string(w.name), .id = {}, .ndim = w.holds.ndim, .start = w.start, .std = w.std};
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

/// The parameters of a layer. One that is tied starts as the layer says that it is of.
std::vector<layer_parameter> local_parameters(const layer_kind& layer, const plan_data& plan) {
  std::vector<layer_parameter> parameters;
  name_scope ids({"parameters", "at"});
  for (const weight_info& w : layer.ops.weights) {
    layer_parameter& p = parameters.emplace_back(local_parameter(w, plan.dims));
    p.id = ids.take(w.name);
    for (const layer_kind& other : plan.kinds)
      for (const weight_info& o : other.ops.weights) {
        if (&other == &layer || o.name != w.name || layer.repeated || other.repeated || (!o.tied && !w.tied)) continue;
        p.shared = true;
        if (!o.tied) p.start = o.start, p.std = o.std;
      }
  }
  return parameters;
}

}  // namespace

body lower_layer(const layer_kind& layer, const std::string& name, const plan_data& plan, dtype type, target target, bool splits) {
  std::vector<layer_parameter> parameters = local_parameters(layer, plan);
  value_program p = select_kernels(layer, name, parameters, plan, type, target);
  if (splits) split_backward(p);
  fuse_gradient_sums(p);
  if (target == target::cuda) {
    fuse_linear_bias(p);
    pack_linears(p, parameters, type);
    fuse_kernels(p, parameters);
  }
  if (plan.actions.inference) p.backward.clear();
  body b = storage(std::move(p), splits, type).run();
  b.name = name;
  b.parameters = std::move(parameters);
  return b;
}

}  // namespace rankc::codegen
