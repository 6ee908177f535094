// SPDX-License-Identifier: Apache-2.0
// If rankc differs from a row of the table, the reason is stated next to the row's number.
#include "expected.hpp"

#include "gathers.hpp"

#include <rankc/schedule/gather.hpp>

namespace audit {

namespace {

using rankc::action;
using rankc::action_kind;

class accountant {
 public:
  accountant(const drawn& of, int pp, const std::vector<formula>& rows, const number_types& types)
      : d_(of.plan.dims),
        plan_(of.plan),
        t_(of.plan.actions),
        of_(of),
        pp_(pp),
        layers_(layers_of(of, pp)),
        out_(rows, types,
             {{"t", d_.tp},
              {"h", of.model.hidden},
              {"N", tokens()},
              {"Np", tokens() / (d_.sequence_parallel ? d_.tp : 1)}}) {}

  account run() {
    for (const layer& l : layers_) {
      if (d_.tp > 1) add_tensor_parallel(l);
      if (d_.cp > 1 && l.role == layer_role::block) add_context_parallel(l);
      if (d_.ep > 1 && l.role == layer_role::block)
        is_apart_ ? add_sums_over_experts(l) : add_expert_parallel(l);
      if (d_.ep > 1 && d_.etp > 1 && l.role == layer_role::block) add_columns(l);
    }
    each_action([&](const action& a) { add_messages(a); });
    if (shards_ > 1 || (d_.ep > 1 && expert_shards_ > 1))
      rankc::reshards_after_layer(d_) ? add_shards_by_layers() : add_shards_by_stages();
    add_sums();
    add_scalars();
    return out_.all();
  }

 private:
  fraction tokens() const { return static_cast<std::int64_t>(plan_.rows) * plan_.recipe.seq / d_.cp; }
  void add(int id, fraction times = 1, const with& w = {}) { out_.add(id, times, w); }

  void each_action(auto visit) const {
    for (int i = t_.begin[static_cast<std::size_t>(pp_)]; i < t_.begin[static_cast<std::size_t>(pp_) + 1];
         ++i)
      visit(t_.actions[static_cast<std::size_t>(i)]);
  }
  /// The number of forwards of a stage on this rank.
  std::int64_t microbatches(int stage) const {
    std::int64_t n = 0;
    each_action([&](const action& a) { n += a.kind == action_kind::F && a.stage == stage; });
    return n;
  }

  void add_tensor_parallel(const layer& l) {
    const std::int64_t m = microbatches(l.stage);
    const bool sp = d_.sequence_parallel, full = l.recomputes && plan_.recipe.recompute.full;
    if (l.role == layer_role::embedding) {
      if (!sp) return add(10, m);
      add(11, m);
      add(12, m);
    } else if (l.role == layer_role::head) {
      if (sp) {
        add(14, m);
        add(15, m);
      }  // the head keeps its gathered input, so row 16 does not apply
      else
        add(13, m);
      add(17, m);
      add(19, m);
    } else if (sp) {
      // The experts need no conversion over tp, because each rank sends its shard of the tokens to them.
      const fraction times = m * (d_.ep > 1 ? fraction(1, 2) : fraction(1));
      add(3, times);
      add(4, times);
      // Recomputed norms repeat the all-gather that converts their result. The experts' half does not: its
      // backward reads the slots, which are saved.
      const bool norms = l.recomputes && plan_.recipe.recompute.norms;
      add(full || norms ? 7 : 5, m * fraction(1, 2));
      if (d_.ep == 1) add(full || (norms && !of_.model.experts) ? 7 : 5, m * fraction(1, 2));
      add(8, times);
      if (full)
        add(4, m * fraction(1, 2), {.phase = "backward"});  // all conversions of forward but the block's last
    } else {
      add(1, m);
      add(2, m);
      if (full) add(1, m * fraction(1, 2), {.phase = "backward"});
    }
    if (l.role == layer_role::block && of_.model.experts && d_.ep == 1) add_logits(l, m);
  }
  /// With every expert split over tp, all tp ranks route alike. The router's logits take the same collectives
  /// as the head's input.
  void add_logits(const layer& l, std::int64_t m) {
    with logits{.given = {{"h", of_.model.experts}}};
    if (!d_.sequence_parallel) return add(13, m, logits);
    add(14, m, logits);
    add(15, m, logits);
    logits.phase = "backward";
    if (l.recomputes && plan_.recipe.recompute.full) add(14, m, logits);
  }

  /// The number of rows in the slab that a rank reserves for each peer.
  std::int64_t slab_rows() const {
    const std::int64_t picks = of_.model.picks,
                       most = std::min<std::int64_t>(picks, of_.model.experts / d_.ep);
    const std::int64_t own = tokens().over / (d_.sequence_parallel ? d_.tp : 1);
    return (own * most + picks - 1) / picks * picks;
  }

  /// The etp ranks of an expert group gather the slots that each received, and reduce-scatter their partial
  /// results; backward does the reverse. They gather offsets, too. Full recomputation repeats all three.
  void add_columns(const layer& l) {
    const std::int64_t m = microbatches(l.stage);
    const bool full = l.recomputes && plan_.recipe.recompute.full;
    for (const auto& [id, kind] : {std::pair(41, "gather_slots"), {42, "scatter_slots"}}) {
      with of{.axis = "etp",
              .kind = kind,
              .given = {{"et", d_.etp}, {"R", slab_rows() * d_.ep * of_.model.hidden}}};
      add(id, m, of);
      of.phase = "backward";
      add(id, full ? 2 * m : m, of);
    }
    with offsets{.axis = "etp",
                 .kind = "gather_offsets",
                 .type = "i32",
                 .given = {{"et", d_.etp}, {"R", 2 * of_.model.experts}}};
    add(41, m, offsets);
    offsets.phase = "backward";
    if (full) add(41, m, offsets);
  }

  /// If the ep ranks share their tokens, each makes partial results, and in backward partial gradients of the
  /// rows and of the router's logits. The sums are those of one of tensor parallelism's two regions; the
  /// logits' sum is that of the head's input.
  void add_sums_over_experts(const layer& l) {
    const std::int64_t m = microbatches(l.stage), own = tokens().over / (d_.sequence_parallel ? d_.tp : 1);
    with of{.axis = "ep", .given = {{"t", d_.ep}, {"N", own}}};
    add(1, m * fraction(1, 2), of);
    add(2, m * fraction(1, 2), of);
    of.given["h"] = of_.model.experts;
    add(13, m, of);
  }

  /// Slots are sent to their experts and back, in forward and backward, in slabs with room for the most that
  /// a rank may send to a peer. Rows 39 and 40 of the formulas have counts and weights; here the slots'
  /// offsets are sent instead. Full recomputation repeats both.
  void add_expert_parallel(const layer& l) {
    const std::int64_t m = microbatches(l.stage), slab = slab_rows();
    with of{
        .axis = "ep",
        .given = {{"e", d_.ep}, {"E", of_.model.experts}, {"C", fraction(slab * d_.ep, of_.model.experts)}}};
    for (const char* kind : {"to_experts", "from_experts"}) {
      of.kind = kind;
      add(37, m * fraction(1, 2), of);
      add(38, m * fraction(1, 2), of);
      of.phase = "backward";
      if (l.recomputes && plan_.recipe.recompute.full) add(37, m * fraction(1, 2), of);
      of.phase.clear();
    }
    with offsets{.axis = "ep",
                 .kind = "share_offsets",
                 .type = "i32",
                 .given = {{"e", d_.ep}, {"Np", 2}, {"k", of_.model.experts}}};
    add(40, m, offsets);
    offsets.phase = "backward";
    if (l.recomputes && plan_.recipe.recompute.full) add(40, m, offsets);
  }

  /// Keys and values are gathered, or heads exchanged, and saved; full recomputation repeats that. Chunks
  /// sent around a ring are not saved: backward sends them around again, and once more if attention is
  /// recomputed. With Ulysses groups, a rank has fewer heads and, by the same factor, more tokens.
  void add_context_parallel(const layer& l) {
    if (d_.ulysses > 1) add_heads(l);
    if (d_.ulysses < d_.cp)
      add_keys_and_values(l, microbatches(l.stage), l.recomputes && plan_.recipe.recompute.full);
  }
  void add_heads(const layer& l) {
    const std::int64_t m = microbatches(l.stage);
    with heads{.axis = d_.ulysses < d_.cp ? "ulysses" : "cp",
               .given = {{"c", d_.ulysses},
                         {"Nc", tokens()},
                         {"a", of_.model.heads},
                         {"g", of_.model.kv_heads},
                         {"dh", of_.model.hidden / of_.model.heads}}};
    add(28, m, heads);
    add(29, m, heads);
    heads.phase = "backward";
    if (l.recomputes && plan_.recipe.recompute.full) return add(28, m, heads);
    // If attention alone is recomputed, so is the exchange of its result: one of the four exchanges, with
    // keys and values counted as large as queries.
    heads.given["g"] = of_.model.heads;
    if (l.recomputes && plan_.recipe.recompute.attention) add(28, m * fraction(1, 4), heads);
  }
  void add_keys_and_values(const layer& l, std::int64_t m, bool again) {
    with of{.given = {
                {"c", d_.cp / d_.ulysses},
                {"KV",
                 tokens() * fraction(2 * (of_.model.hidden / of_.model.heads * of_.model.kv_heads), d_.tp)}}};
    if (d_.cp_attention == rankc::cp_attention::ring) {
      of.kind = "shift_back";
      add(23, m, of);
      of.kind = "shift";
      add(22, m, of);
      of.phase = "backward";
      if (again || (l.recomputes && plan_.recipe.recompute.attention)) add(22, m, of);
      return;
    }
    add(25, m, of);
    add(26, m, of);
    if (again) add(27, m, of);
  }

  /// The messages at both sides of an action whose neighbouring stages are on other ranks.
  void add_messages(const action& a) {
    if (a.kind != action_kind::F && a.kind != action_kind::B && a.kind != action_kind::I) return;
    const bool forward = a.kind == action_kind::F;
    const auto add_side = [&](int other, const char* kind) {
      if (other < 0 || other >= t_.stages() || t_.rank_of(other, a.microbatch) == pp_) return;
      add(forward ? 44 : 45, 1, {.kind = kind});
    };
    add_side(forward ? a.stage - 1 : a.stage + 1, "receive");
    add_side(forward ? a.stage + 1 : a.stage - 1, "send");
  }

  /// The weights of one all-gather or reduce-scatter: a layer's own, its experts', or the table that
  /// embedding and head share. Rows are padded to shards.
  enum class part { own, experts, shared };
  static part part_of(const tensor& w) {
    if (w.is_shared) return part::shared;
    return w.is_spread ? part::experts : part::own;
  }
  int shards_of(part p) const { return p == part::experts ? expert_shards_ : shards_; }
  struct unit {
    std::int64_t elements = 0, tensors = 0;
  };
  unit unit_of(const layer& l, part p) const {
    unit u;
    for (const tensor& w : l.tensors)
      if (part_of(w) == p) {
        u.elements += w.shard_rows(shards_of(p)) * shards_of(p) * w.cols;
        ++u.tensors;
      }
    return u;
  }
  void add_unit(int id, const layer& l, part p, const std::string& phase) {
    const unit u = unit_of(l, p);
    if (u.tensors && shards_of(p) > 1)
      add(id, 1,
          {.axis = p == part::experts ? "efsdp" : "dp_shard",
           .phase = phase,
           .given = {{"d", shards_of(p)}, {"P_l", u.elements}},
           .tensors = u.tensors});
  }
  void add_units(int id, const layer& l, const std::string& phase, bool with_shared = true) {
    add_unit(id, l, part::own, phase);
    add_unit(id, l, part::experts, phase);
    if (with_shared) add_unit(id, l, part::shared, phase);
  }

  /// FSDP: gathers and reduce-scatters of each microbatch. Weights that are still gathered are not gathered
  /// again.
  void add_shards_by_layers() {
    for (const gather& g : gathers_of(of_, pp_, layers_))
      add_units(g.phase == "forward" ? 31 : 32, layers_[g.layer], g.phase);
    each_action([&](const action& a) {
      for (const layer& l : layers_)
        if (l.stage == a.stage && (a.kind == action_kind::B || a.kind == action_kind::W))
          add_units(33, l, "backward");
    });
  }

  /// ZeRO with whole weights. Weights are gathered before the first forward, or at each UNSHARD for the
  /// stage's next action; a shared table is gathered once. Gradients are reduce-scattered after the last
  /// backward; the formulas' row places that in the step.
  void add_shards_by_stages() {
    bool shared = true;
    for (const layer& l : layers_) {
      add_units(35, l, "backward", shared);
      if (shared) add_unit(36, l, part::shared, "forward");
      if (!says_unshard(t_)) add_units(36, l, "forward", false);
      shared &= unit_of(l, part::shared).tensors == 0;
    }
    for (int i = t_.begin[static_cast<std::size_t>(pp_)]; i < t_.begin[static_cast<std::size_t>(pp_) + 1];
         ++i) {
      if (t_.actions[static_cast<std::size_t>(i)].kind != action_kind::unshard) continue;
      const int stage = t_.actions[static_cast<std::size_t>(i)].stage;
      int next = i + 1;
      const auto is_of_stage = [&](const action& a) { return a.stage == stage && computes(a.kind); };
      while (!is_of_stage(t_.actions[static_cast<std::size_t>(next)])) ++next;
      const bool forward = t_.actions[static_cast<std::size_t>(next)].kind == action_kind::F;
      for (const layer& l : layers_)
        if (l.stage == stage) add_units(36, l, forward ? "forward" : "backward", false);
    }
  }

  /// All-reduces of gradients over replicas, tp and the two ranks with the tied table. A layer's gradients
  /// are one call. Under sequence parallelism, all gradients that are whole on tp are one call. A shared
  /// table's gradient has its own call. All are part of backward, in REDUCE_GRAD.
  void add_sums() {
    std::int64_t whole_on_tp = 0, table = 0;
    for (const layer& l : layers_) {
      std::int64_t own = 0, experts = 0;
      for (const tensor& w : l.tensors) {
        const std::int64_t elements = room(w.shard_rows(shards_of(part_of(w))) * w.cols);
        if (w.is_shared) table = elements;
        else if (w.is_spread) experts += elements;
        else (w.of_heads || (d_.sequence_parallel && !w.is_split) ? whole_on_tp : own) += elements;
      }
      add_sum(own);
      add_sum(experts, false, expert_shards_, expert_copies_);
    }
    if (whole_on_tp)
      add(30, 1,
          {.axis = "tp",
           .given = {{"d", d_.tp}, {"P_l", whole_on_tp}}});  // row 9, including biases and positions
    add_sum(whole_on_tp);
    add_sum(table, has_both_ends_elsewhere());
  }
  void add_sum(std::int64_t elements, bool is_of_table_elsewhere = false) {
    add_sum(elements, is_of_table_elsewhere, shards_, replicas_);
  }
  void add_sum(std::int64_t elements, bool is_of_table_elsewhere, int shards, int r) {
    if (elements == 0) return;
    if (r > 1 && shards == 1) add(30, 1, {.axis = "dp_replicate", .given = {{"d", r}, {"P_l", elements}}});
    if (r > 1 && shards > 1)
      add(34, 1, {.axis = "dp_replicate", .given = {{"r", r}, {"d", shards}, {"P_l", elements * shards}}});
    // The tied table, padded. In a bidirectional schedule two ranks hold each stage, like replicas.
    if (is_of_table_elsewhere)
      add(21, 1,
          {.axis = "tied",
           .phase = "backward",
           .given = {{"Vv", fraction(elements * d_.tp, of_.model.hidden)}}});
    else if (t_.bidirectional()) add(30, 1, {.axis = "tied", .given = {{"d", 2}, {"P_l", elements}}});
  }
  /// Whether the embedding and the head share a table and are on two ranks.
  bool has_both_ends_elsewhere() const {
    return of_.model.is_tied && !t_.bidirectional() && t_.rank_of_stage.front() != t_.rank_of_stage.back();
  }

  void add_scalars() {
    bool split = false, spread = false, any = false, has_loss = false;
    for (const layer& l : layers_) {
      for (const tensor& w : l.tensors) {
        const bool counts =
            !l.is_copy && !(w.is_shared && l.role == layer_role::head && counts_table_elsewhere());
        split |= counts && w.is_split;
        spread |= counts && w.is_spread;
        any |= counts;
      }
      has_loss |= l.role == layer_role::head;
    }
    if (spread && expert_copies_ < replicas_)
      add(49, 1, {.axis = "dp_replicate", .given = {{"n", replicas_}}});
    if (spread && is_apart_) add(49, 1, {.axis = "ep", .given = {{"n", d_.ep}}});
    if (split) add(49, 1, {.axis = "tp", .given = {{"n", d_.tp}}});
    if (any && shards_ > 1) add(49, 1, {.axis = "dp_shard", .given = {{"n", shards_}}});
    if (d_.pp > 1) add(49, 1, {.axis = "pp", .given = {{"n", d_.pp}}});
    if (!has_loss) return;
    // The number of tokens is a constant; the loss alone is summed.
    for (const auto& [axis, n] :
         {std::pair("dp_replicate", replicas_), {"dp_shard", shards_}, {"tied", t_.bidirectional() ? 2 : 1}})
      if (n > 1) add(50, 1, {.axis = axis, .given = {{"n", n}}});
  }
  /// The embedding's rank counts the tied table in the norm, not the head's.
  bool counts_table_elsewhere() const { return t_.rank_of_stage.front() != pp_; }

  const rankc::parallel_dims& d_;
  // Shards and replicas of dense weights: `cp_weights` decides where the cp ranks count.
  const int shards_ = d_.dp_shard * (d_.cp_weights == rankc::cp_weights::shard ? d_.cp : 1),
            replicas_ = d_.dp_replicate * (d_.cp_weights == rankc::cp_weights::shard ? 1 : d_.cp);
  // Experts are spread over the ranks of one replica, so that replicas hold copies, or over those of all
  // replicas.
  const bool is_over_replicas_ = d_.expert_layout == rankc::expert_layout::folded_over_replicas;
  // With independent ep, each ep rank has some experts, and the other ranks of the replica shard these.
  const bool is_apart_ = d_.ep > 1 && d_.expert_layout == rankc::expert_layout::independent;
  const int expert_copies_ = is_over_replicas_ ? 1 : d_.dp_replicate,
            expert_shards_ = (is_over_replicas_ ? d_.dp_replicate : 1) * d_.dp_shard * d_.cp * d_.tp /
                             ((is_apart_ ? 1 : d_.ep) * d_.etp);
  const rankc::plan_data& plan_;
  const rankc::action_table& t_;
  const drawn& of_;
  const int pp_;
  const std::vector<layer> layers_;
  ledger out_;
};

}  // namespace

account expected(const drawn& of, int pp, const std::vector<formula>& rows, const number_types& types) {
  return accountant(of, pp, rows, types).run();
}

}  // namespace audit
