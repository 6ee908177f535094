// SPDX-License-Identifier: Apache-2.0
// Draws models and recipes. Most are correct; a few percent have a fault of each kind, and their plans must
// be refused.
#include "layer_builder.hpp"
#include "plan.hpp"

#include <algorithm>
#include <set>

namespace fuzz {

namespace {

struct names {
  std::string_view hidden = "hidden", vocab = "vocab", heads = "heads", kv_heads = "kv_heads",
                   head = "head_dim", ffn = "ffn";
};

names draw_names(draws& d, bool is_plain) {
  if (is_plain) return {};
  return {d.one_of<std::string_view>({"hidden", "x", "int", "model-width", "tokens"}),
          d.one_of<std::string_view>({"vocab", "vocab", "words", "tp"}),
          d.one_of<std::string_view>({"heads", "h", "long", "rows"}),
          d.one_of<std::string_view>({"kv_heads", "kv heads", "h"}),
          d.one_of<std::string_view>({"head_dim", "seq", "dim"}),
          d.one_of<std::string_view>({"ffn", "up-dim", "tp", "double", "4x"})};
}

/// The lists from which sizes are drawn: any sizes, or mostly sizes with which GEMMs take fp8 operands.
struct size_lists {
  std::vector<int> hidden, widths, units, counts, narrow, seqs, batches;
};
const size_lists& lists_of(bool rounded) {
  static const size_lists any{.hidden = {4, 6, 8, 8, 10, 12, 12, 7, 5, 16, 3},
                              .widths = {12, 12, 24, 24, 36, 16, 8, 20, 7},
                              .units = {2, 2, 4, 4, 6, 8, 1, 3},
                              .counts = {2, 4, 4, 6, 12, 12, 3, 1},
                              .narrow = {4, 6, 8, 12},
                              .seqs = {1, 2, 3, 4, 4, 4, 6, 8, 8, 5},
                              .batches = {12, 12, 12, 24, 24, 24, 6, 8, 30, 10, 7, 36, 2, 1}};
  static const size_lists in_sixteens{.hidden = {16, 16, 32, 48},
                                      .widths = {16, 32, 48, 64, 12},
                                      .units = {8, 16, 16, 4},
                                      .counts = {2, 4, 4, 6},
                                      .narrow = {16, 32, 12},
                                      .seqs = {16, 16, 8},
                                      .batches = {12, 12, 8, 16, 6, 4, 2}};
  return rounded ? in_sixteens : any;
}

palette draw_palette(draws& d, const names& n, int seq, const size_lists& sizes) {
  palette p;
  p.seq = seq;
  p.hidden = {n.hidden, d.one_in(sizes.hidden)};
  p.vocab = {n.vocab, d.one_of({12, 12, 24, 24, 36, 16, 32, 13, 30})};
  for (int i = d.between(1, 3); i > 0; --i)
    p.widths.push_back({d.chance(70) ? n.ffn : "other", d.one_in(sizes.widths)});
  const int unit = d.one_in(sizes.units), count = d.one_in(sizes.counts);
  p.heads.push_back({n.heads, count * unit, unit, n.head});
  for (const int fewer : {2, 3, 4})
    if (count % fewer == 0 && d.chance(50))
      p.heads.push_back({d.chance(60) ? n.kv_heads : n.heads, count / fewer * unit, unit, n.head});
  for (int s = 1; s <= seq; ++s)
    if (seq % s == 0) p.seqs.push_back(s);
  return p;
}

std::string_view draw_layer_name(draws& d, bool is_plain) {
  if (is_plain || d.chance(50))
    return d.one_of<std::string_view>({"block", "block", "mixer", "mlp", "narrow"});
  return d.one_of<std::string_view>(
      {"my-block",    "int",  "x",        "std",        "rank",  "2nd",    "layers.0", "stage_0",
       "embedding",   "main", "memory_0", "pipeline_0", "rankc", "train",  "program",  "about",
       "block layer", "head", "forward",  "real",       "at",    "layouts"});
}

/// The number of repetitions of a layer; rarely below 1, which is refused.
int draw_repetitions(draws& d) {
  return d.below(100) ? d.one_of({1, 2, 2, 3, 3, 4, 4, 6}) : d.between(-1, 0);
}

/// The layers between embedding and head: 'r' is a repeat, 's' a standalone layer.
std::string_view draw_pattern(draws& d) {
  return d.one_of<std::string_view>(
      {"r", "r", "r", "r", "r", "rr", "rr", "rsr", "rsr", "srs", "srs", "rrr", "", "s", "rs", "sr", "ss"});
}

training draw_recipe(draws& d, const size_lists& sizes) {
  training t{.seq = d.one_in(sizes.seqs), .global_batch = d.one_in(sizes.batches), .precision = f64};
  t.lr = d.one_of({1e-3, 3e-4, 1e-2, 1e-4});
  t.weight_decay = d.one_of({0.1, 0.0, 0.01, 0.5});
  t.clip = d.one_of({1.0, 0.0, 0.1, 10.0, 1e-3});
  adamw by;
  by.beta1 = d.one_of({0.9, 0.9, 0.0, 0.5, 0.99});
  by.beta2 = d.one_of({0.95, 0.999, 0.5, 0.9});
  by.eps = d.one_of({1e-8, 1e-8, 1e-6, 1e-5});
  t.deterministic = d.chance(10);
  if (d.chance(2))
    d.one_of({&by.beta1, &by.beta2, &t.clip, &by.eps, &t.lr, &t.weight_decay})[0] =
        d.one_of({-1.0, 1.0, 2.0, 1e308 * 10});
  t.optimizer = by;
  return t;
}

/// SGD in about 30 % of the plans, with momentum out of range in a few of these.
void draw_optimizer(draws& d, training& t) {
  if (!d.chance(30)) return;
  const bool is_sgd = d.chance(97);
  sgd by{.momentum = d.one_of({0.0, 0.9, 0.9, 0.5})};
  by.nesterov = by.momentum != 0 && d.chance(40);
  if (d.chance(3)) by.momentum = d.one_of({-0.5, 1.0, 0.0});
  if (is_sgd) t.optimizer = by;
}

/// Rename parameters of standalone layers that are not one tensor; a few clashes remain.
void tell_apart(draws& d, fuzz::model& m) {
  std::set<std::string_view> taken;
  for (entry& e : m.entries) {
    if (e.repeated) continue;
    for (parameter& p : e.layer.parameters)
      for (int n = 2; !p.handle && taken.count(p.name) && !d.chance(1); ++n)
        p.name = lasting(std::string(p.name) + "_" + std::to_string(n));
    for (const parameter& p : e.layer.parameters) taken.insert(p.name);
  }
}

/// Give a parameter the handle and the initial values of an earlier one.
void share(parameter& later, parameter& earlier, int& handles) {
  if (!earlier.handle) earlier.handle = ++handles;
  later.name = earlier.name;
  later.start = earlier.start;
  later.std = earlier.std;
  later.handle = earlier.handle;
}

/// Tie the head's table to the embedding's.
void hand_on_table(fuzz::model& m) {
  const auto table = [](fuzz::layer& l) -> parameter& {
    return *std::find_if(l.parameters.begin(), l.parameters.end(),
                         [](const parameter& p) { return p.name == "wte"; });
  };
  int handles = 0;
  share(table(m.entries.back().layer), table(m.entries.front().layer), handles);
}

/// Tie parameters of a standalone layer to those of an earlier one.
void tie(draws& d, fuzz::model& m) {
  int handles = 1;  // the table has handle 1
  for (std::size_t e = 2; e < m.entries.size(); ++e) {
    const std::size_t from = static_cast<std::size_t>(d.below(static_cast<int>(e)));
    if (m.entries[e].repeated || m.entries[from].repeated) continue;
    for (parameter& p : m.entries[e].layer.parameters)
      for (parameter& q : m.entries[from].layer.parameters)
        if (!p.handle && p.shape == q.shape && p.sharded_by == q.sharded_by && d.chance(40)) {
          share(p, q, handles);
          break;
        }
  }
}

/// Make one step wrong or unusual.
void draw_fault(draws& d, fuzz::model& m) {
  fuzz::layer& l = m.entries[static_cast<std::size_t>(d.below(static_cast<int>(m.entries.size())))].layer;
  if (l.steps.empty()) return;
  step& s = l.steps[static_cast<std::size_t>(d.below(static_cast<int>(l.steps.size())))];
  switch (d.below(8)) {
    case 0:
      if (s.in[0] > 0) s.in[0] = d.below(s.in[0] + 1);
      break;
    case 1:
      if (!l.parameters.empty()) d.one_of({&l.parameters[0], &l.parameters.back()})->sharded_by = "hidden";
      break;
    case 2:
      s.seq = d.between(1, 9);
      break;
    case 3:
      s.pieces = d.between(2, 3);
      break;
    case 4:
      if (s.kind == step_kind::gelu) s.kind = step_kind::bare_gelu;
      break;
    case 5:
      l.result = d.below(l.result + 1);
      break;
    case 6:
      m.vocab_used = m.vocab + 5;
      break;
    default:
      if (s.kind == step_kind::linear) s.kind = step_kind::bias;
      break;
  }
}

}  // namespace

void draw_model(plan& p) {
  draws d(p.seed, p.index / plans_per_model, "model");
  const size_lists& lists = lists_of(p.rounded);
  p.recipe = draw_recipe(d, lists);
  if (p.rounded)
    p.recipe.linears = draws(p.seed, p.index / plans_per_model, "linears").one_of({fp8, fp8_rows});
  draws of_optimizer(p.seed, p.index / plans_per_model, "optimizer");
  draw_optimizer(of_optimizer, p.recipe);
  const bool is_plain = d.chance(75);
  const names n = draw_names(d, is_plain);
  const palette sizes = draw_palette(d, n, p.recipe.seq, lists);
  fuzz::model& m = p.model;
  m.vocab = sizes.vocab.size;
  m.vocab_used = d.chance(30) ? d.between(2, m.vocab) : 0;
  const auto build = [&](std::string_view name) { return layer_builder(d, sizes, name, is_plain); };

  const bool is_whole = d.chance(6);
  layer_builder first = build("embedding");
  const int embedded = first.embedding("wte", is_whole);
  m.entries.push_back({first.finish(embedded)});
  dim width = sizes.hidden;
  for (const char kind : draw_pattern(d)) {
    if (kind == 'r' && m.entries.size() > 1 && m.entries.back().repeated && d.chance(15)) {
      m.entries.push_back(m.entries.back());  // the same layer again
      continue;
    }
    layer_builder next = build(draw_layer_name(d, is_plain));
    if (kind == 's' && d.chance(50)) {
      const dim to =
          d.chance(60) ? dim{width.name, d.one_in(lists.narrow)} : dim{"narrow", d.one_in(lists.narrow)};
      const int y = next.project(0, width, to);
      m.entries.push_back({next.finish(y)});
      width = to;
    } else {
      const int y = next.block(0, width);
      m.entries.push_back({next.finish(y), kind == 'r' ? draw_repetitions(d) : 1, kind == 'r'});
    }
  }
  const bool is_tied = width == sizes.hidden && d.chance(40);
  layer_builder last = build("head");
  const int loss = last.head(0, width, is_tied ? "wte" : "lm_head", is_whole, d.chance(3) ? 2.0 : 1.0);
  m.entries.push_back({last.finish(loss)});
  if (is_tied) hand_on_table(m);

  tell_apart(d, m);
  if (d.chance(25)) tie(d, m);
  if (d.chance(6)) draw_fault(d, m);
  if (d.chance(20)) {
    m.offers_sizes = true;
    m.sizes = {.layers = m.blocks(),
               .hidden = sizes.hidden.size,
               .vocab = m.vocab,
               .vocab_used = m.vocab_used,
               .tied_embeddings = is_tied};
    for (const entry& e : m.entries)
      for (const step& s : e.layer.steps)
        if (s.kind == step_kind::experts) {
          m.sizes.experts = s.with.count;
          m.sizes.top_k = s.with.picks;
        }
  }
  std::vector<int> counts;
  for (int k = 1; k <= p.recipe.global_batch; ++k)
    if (p.recipe.global_batch % k == 0) counts.push_back(k);
  p.one_rank_microbatches = d.one_in(counts);
}

}  // namespace fuzz
