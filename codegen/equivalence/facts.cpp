// SPDX-License-Identifier: Apache-2.0
// The table of facts. Axes: t and u tokens of a step, p positions of the queries of t, j those of the keys of u, h and k heads, v vocabulary, s positions; i, o, w, l, r features.
#include "facts.hpp"

namespace rankc::codegen::algebra {

namespace {

constexpr line lines[]{
    // ---- sums and copies
    {"zeros", "y(t w)", "y = 0"},
    {"clear", "y(w)", "y = 0"},
    {"copy", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"replicate", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"all_reduce", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"all_reduce_max", "y(t w) x(t w)", "y = 1 * x"},
    {"all_gather", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"reduce_scatter", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"all_to_all", "y(t w) x(t w)", "y = 1 * x", "", "", "x = dy"},
    {"shift", "first(t w) second(t w) x(t w) y(t w)", "first = 1 * x; second = 1 * y", "", "", "x = dfirst; y = dsecond"},
    {"shift_back", "first(t w) second(t w) x(t w) y(t w)", "first = 1 * x; second = 1 * y", "", "", "x = dfirst; y = dsecond"},
    {"add", "y(t w)^a,b a(t w) b(t w)", "y = a + b", "", "", "a = dy; b = dy"},
    {"scale", "y(t w)^x x(t w)", "y = number * x", "", "", "x = scale(dy)"},

    // ---- products with a weight
    {"linear", "y(t o) x(t i) w(o i)", "y = sum(i) x' w'", "", "", "x = linear_dx(dy, w); w = linear_dw(dy, x)"},
    {"linear_dx", "+dx(t i) dy(t o) w(o i)", "dx = sum(o) dy' w'"},
    {"linear_dw", "+dw(o i) dy(t o) x(t i)", "dw = sum(t) dy' x'"},
    {"bias", "y(t w)^x x(t w) b(w)", "y = x + b", "", "", "x = dy; b = bias_grad(dy)"},
    {"bias_grad", "+db(w) dy(t w)", "db = sum(t) dy'"},

    // ---- norms of rows, and of each head
    {"layer_norm", "y(t w) statistics(t 2) x(t w) gain(w) shift(w)", "y = x gain shift; statistics = x", "whole(w)", "number",
     "x = layer_norm_dx(dy, x, statistics, gain); gain shift = layer_norm_dw(dy, x, statistics)"},
    {"layer_norm_dx", "dx(t w)^dy dy(t w) x(t w) statistics(t 2) gain(w)", "dx = dy' x statistics gain", "whole(w)"},
    {"layer_norm_dw", "+dgain(w) +dshift(w) dy(t w) x(t w) statistics(t 2)", "dgain = sum(t) dy' x statistics; dshift = sum(t) dy'"},
    {"rms_norm", "y(t w) statistics(t 1) x(t w) gain(w)", "y = x gain'; statistics = x", "whole(w)", "number",
     "x = rms_norm_dx(dy, x, statistics, gain); gain = rms_norm_dw(dy, x, statistics)"},
    {"rms_norm_dx", "dx(t w)^dy dy(t w) x(t w) statistics(t 1) gain(w)", "dx = dy' x statistics gain", "whole(w)"},
    {"rms_norm_dw", "+dgain(w) dy(t w) x(t w) statistics(t 1)", "dgain = sum(t) dy' x statistics"},
    {"head_norm", "y(t h*d) statistics(t h) x(t h*d) gain(d)", "y = x gain'; statistics = x", "", "number",
     "x = head_norm_dx(dy, x, statistics, gain); gain = head_norm_dw(dy, x, statistics)"},
    {"head_norm_dx", "dx(t h*d)^dy dy(t h*d) x(t h*d) statistics(t h) gain(d)", "dx = dy' x statistics gain"},
    {"head_norm_dw", "+dgain(d) dy(t h*d) x(t h*d) statistics(t h)", "dgain = sum(t h) dy' x statistics"},

    // ---- an element at a time, and softmax
    {"gelu", "y(t w) x(t w)", "y = x", "", "", "x = gelu_grad(dy, x)"},
    {"gelu_grad", "dx(t w)^dy dy(t w) x(t w)", "dx = dy' x"},
    {"swiglu", "y(t w) gate(t w):s up(t w):s", "y = gate up'", "", "", "gate up = swiglu_grad(dy, gate, up)"},
    {"swiglu_grad", "dgate(t w):s dup(t w):s dy(t w) gate(t w):s up(t w):s", "dgate = dy' gate up'; dup = dy' gate"},
    {"mul", "y(t w)^a,b a(t w) b(t w)", "y = a' b'", "commutative", "", "a b = mul_grad(dy, a, b)"},
    {"mul_grad", "da(t w)^dy db(t w) dy(t w) a(t w) b(t w)", "da = mul(dy, b); db = mul(dy, a)"},
    {"sigmoid", "y(t w)^x x(t w)", "y = x", "", "", "x = sigmoid_grad(dy, y)"},
    {"sigmoid_grad", "dx(t w)^dy dy(t w) y(t w)", "dx = dy' y"},
    {"softmax", "y(t w)^x x(t w)", "y = x", "whole(w)", "", "x = softmax_dx(dy, y)"},
    {"softmax_dx", "dx(t w)^dy dy(t w) y(t w)", "dx = dy' y", "whole(w)"},

    // ---- features taken apart and put together
    {"split", "first(t l) second(t r) x(t w)", "first = x'; second = x'", "whole(w l r)", "parts", "x = concat(dfirst, dsecond)"},
    {"split_heads", "first(t h*l) second(t h*r) x(t h*w)", "first = x'; second = x'", "", "parts", "x = concat_heads(dfirst, dsecond)"},
    {"concat", "y(t w) first(t l) second(t r)", "y = first + second", "whole(w l r)", "parts", "first second = split(dy)"},
    {"concat_heads", "y(t h*w) first(t h*l) second(t h*r)", "y = first + second", "", "parts", "first second = split_heads(dy)"},

    // ---- routers and experts: l picks of each token, of r experts; i and f are the rows and columns of an expert's matrix;
    // g segments of slots
    {"softmax_top", "weights(t l) chosen(t l) logits(t e)", "weights = logits; chosen = logits", "whole(l e)", "parts",
     "logits = softmax_top_grad(dweights, logits, chosen)"},
    {"softmax_top_grad", "dlogits(t e) dweights(t l) logits(t e) chosen(t l)", "dlogits = dweights' logits chosen", "whole(l e)"},
    {"sigmoid_top", "weights(t l) chosen(t l) logits(t e)", "weights = logits; chosen = logits", "whole(l e)", "parts",
     "logits = sigmoid_top_grad(dweights, logits, chosen)"},
    {"sigmoid_top_grad", "dlogits(t e) dweights(t l) logits(t e) chosen(t l)", "dlogits = dweights' logits chosen", "whole(l e)"},
    {"softmax_scores", "scores(t e) logits(t e)", "scores = logits", "whole(e)"},
    {"sigmoid_scores", "scores(t e) logits(t e)", "scores = logits"},
    {"keep_groups", "y(t g*e) kept(t l) scores(t g*e)", "y = scores; kept = scores", "whole(g e l)", "parts number"},
    {"biased_keep_groups", "y(t g*e) kept(t l) scores(t g*e) bias(g*e)", "y = scores bias; kept = scores bias", "whole(g e l)", "parts number"},
    {"softmax_top_by", "weights(t l) chosen(t l) logits(t e) scores(t e)", "weights = logits scores; chosen = scores", "whole(l e)", "parts",
     "logits = softmax_top_grad(dweights, logits, chosen)"},
    {"sigmoid_top_by", "weights(t l) chosen(t l) logits(t e) scores(t e)", "weights = logits scores; chosen = scores", "whole(l e)", "parts",
     "logits = sigmoid_top_grad(dweights, logits, chosen)"},
    {"biased_softmax_top_by", "weights(t l) chosen(t l) logits(t e) scores(t e) bias(e)", "weights = logits scores bias; chosen = scores bias",
     "whole(l e)", "parts", "logits = softmax_top_grad(dweights, logits, chosen); bias = count_choices(chosen)"},
    {"biased_sigmoid_top_by", "weights(t l) chosen(t l) logits(t e) scores(t e) bias(e)", "weights = logits scores bias; chosen = scores bias",
     "whole(l e)", "parts", "logits = sigmoid_top_grad(dweights, logits, chosen); bias = count_choices(chosen)"},
    {"count_choices", "+dbias(e) chosen(t l)", "dbias = sum(t) chosen", "whole(l e)"},
    {"normalize", "y(t w) x(t w)", "y = x", "whole(w)", "number", "x = normalize_grad(dy, x)"},
    {"normalize_grad", "dx(t w) dy(t w) x(t w)", "dx = dy' x", "whole(w)", "number"},
    {"arrange", "places(t l) offsets(2 r) chosen(t l)", "places = chosen; offsets = sum(t) chosen", "arranges whole(l r)", "parts"},
    {"arrange_limited", "places(t l) offsets(2 r) chosen(t l)", "places = chosen; offsets = sum(t) chosen", "arranges sequences whole(l r)",
     "parts seq number"},
    {"dispatch", "slots(t*l w) x(t w) places(t l)", "slots = x' places", "whole(l) by(places)", "", "x = collect(dslots, places)"},
    {"collect", "y(t w) slots(t*l w) places(t l)", "y = slots' places", "whole(l) by(places)"},
    {"combine", "y(t w) slots(t*l w) weights(t l) places(t l)", "y = slots' weights' places", "whole(l) by(places)", "",
     "slots weights = combine_grad(dy, slots, weights, places)"},
    {"combine_grad", "dslots(t*l w) dweights(t l) dy(t w) slots(t*l w) weights(t l) places(t l)",
     "dslots = dy' weights' places; dweights = sum(w) dy' slots' places", "whole(l) by(places)"},
    {"expert_up", "y(t*l f) x(t*l i) w(r*i f) offsets(2 g)", "y = sum(i) x' w' offsets", "segments by(offsets)", "",
     "x = expert_down(dy, w, offsets); w = expert_dw(x, dy, offsets)"},
    {"expert_down", "y(t*l i) x(t*l f) w(r*i f) offsets(2 g)", "y = sum(f) x' w' offsets", "segments by(offsets)", "",
     "x = expert_up(dy, w, offsets); w = expert_dw(dy, x, offsets)"},
    {"expert_dw", "+dw(r*i f) x(t*l i) y(t*l f) offsets(2 g)", "dw = sum(t) x' y' offsets", "segments by(offsets)"},
    {"to_experts", "received(u*l w) slots(t*l w) offsets(2 r)", "received = 1 * slots", "", "", "slots = from_experts(dreceived, offsets)"},
    {"from_experts", "slots(t*l w) received(u*l w) offsets(2 r)", "slots = 1 * received", "", "", "received = to_experts(dslots, offsets)"},
    {"share_offsets", "shared(2 g) offsets(2 r)", "shared = 1 * offsets"},
    {"gather_slots", "gathered(v*l w) received(u*l w)", "gathered = 1 * received", "", "", "received = scatter_slots(dgathered)"},
    {"scatter_slots", "received(u*l w) gathered(v*l w)", "received = 1 * gathered", "", "", "gathered = gather_slots(dreceived)"},
    {"gather_offsets", "gathered(2 s) shared(2 g)", "gathered = 1 * shared"},

    // ---- what routers did: m groups of tokens, l sums of each of r experts
    {"softmax_statistics", "own(m l*r) logits(t r)", "own = sum(t) logits", "grouped whole(l r)", "seq number",
     "logits = softmax_statistics_grad(down, logits)"},
    {"softmax_statistics_grad", "dlogits(t r) down(m l*r) logits(t r)", "dlogits = down' logits", "grouped whole(l r)", "seq"},
    {"sigmoid_statistics", "own(m l*r) logits(t r)", "own = sum(t) logits", "grouped whole(l r)", "seq number",
     "logits = sigmoid_statistics_grad(down, logits)"},
    {"sigmoid_statistics_grad", "dlogits(t r) down(m l*r) logits(t r)", "dlogits = down' logits", "grouped whole(l r)", "seq"},
    {"dropped_statistics", "own(m l*r) places(t i)", "own = sum(t) places", "grouped counts whole(l r i)", "seq"},
    {"push", "y(m o) s(m i) own(m l)", "y = s + own", "whole(o i l)", "", "s own = push_grad(dy)"},
    {"push_grad", "ds(m i) down(m l) dy(m o)", "ds = dy'; down = dy'", "whole(i l o)"},
    {"all_reduce_batch", "y(t w) x(t w)", "y = 1 * x"},
    {"balance_loss", "+loss() whole(m l*r) s(m l*r)", "loss = sum(m) whole s'", "whole(l r)", "number", "s = balance_loss_grad(whole)"},
    {"balance_loss_grad", "ds(m l*r) whole(m l*r)", "ds = whole", "whole(l r)", "number"},
    {"layer_balance_loss", "+loss() whole(m l*r) s(m l*r)", "loss = sum(m) whole s'", "whole(l r)", "number",
     "s = layer_balance_loss_grad(whole)"},
    {"layer_balance_loss_grad", "ds(m l*r) whole(m l*r)", "ds = whole", "whole(l r)", "number"},
    {"z_loss", "+loss() whole(m l*r) s(m l*r)", "loss = sum(m) whole s'", "whole(l r)", "number", "s = z_loss_grad(whole)"},
    {"z_loss_grad", "ds(m l*r) whole(m l*r)", "ds = whole", "whole(l r)", "number"},

    // ---- positions and attention
    {"rope", "y(t h*d):s^x x(t h*d):s table(s d)", "y = x' table", "listed whole(d)", "seq", "x = rope_grad(dy, table)"},
    {"rope_grad", "dx(t h*d):s^dy dy(t h*d):s table(s d)", "dx = dy' table", "listed whole(d)", "seq"},
    {"position", "y(t w)^x x(t w) table(s w)", "y = x + table", "positions whole(s)", "seq", "x = dy; table = position_grad(dy)"},
    {"position_grad", "+dtable(s w) dy(t w)", "dtable = sum(t) dy'", "positions whole(s)", "seq"},
    {"attention", "o(t h*d) lse(t h) q(t h*d):q k(t k*d):k v(t k*d):k", "o = q k v'; lse = q k", "sequences groups", "seq",
     "q k v = attention_grad(do, q, k, v, o, lse)"},
    {"attention_grad", "dq(t h*d):q dk(t k*d):k dv(t k*d):k d_o(t h*d) q(t h*d):q k(t k*d):k v(t k*d):k o(t h*d) lse(t h)",
     "dq = d_o' q k v o lse; dk = d_o' q k v o lse; dv = d_o' q k v o lse", "sequences groups", "seq"},

    // ---- the same of a rank's chunks of sequences
    {"chunk_position", "y(t w)^x x(t w) table(s w)", "y = x + table", "chunks positions like position whole(s)", "seq"},
    {"chunk_position_grad", "+dtable(s w) dy(t w)", "dtable = sum(t) dy'", "chunks positions like position_grad whole(s)", "seq"},
    {"chunk_attention", "o(t h*d) lse(t h) q(t h*d):q k(u k*d):k v(u k*d):k", "o = q k v'; lse = q k", "chunks like attention groups", "seq"},
    {"chunk_attention_grad", "dq(t h*d):q dk(u k*d):k dv(u k*d):k d_o(t h*d) q(t h*d):q k(u k*d):k v(u k*d):k o(t h*d) lse(t h)",
     "dq = d_o' q k v o lse; dk = sum(p) d_o' q k v o lse; dv = sum(p) d_o' q k v o lse", "chunks like attention_grad groups", "seq"},

    // ---- the same of one rank's keys, in parts
    {"ring_attention", "o(t h*d) lse(t h) q(t h*d) k(u k*d) v(u k*d)", "o = parts(j) q k v; lse = parts(j) q k",
     "ring like attention groups", "seq"},
    {"merge_attention", "o(t h*d)^o_before lse(t h)^lse_before o_before(t h*d) lse_before(t h) o_more(t h*d) lse_more(t h)",
     "o = merge(lse_before lse_more) o_before o_more; lse = merge(lse_before lse_more) lse_before lse_more", "shares"},
    {"ring_attention_grad", "dq(t h*d) dk(u k*d) dv(u k*d) d_o(t h*d) q(t h*d) k(u k*d) v(u k*d) o(t h*d) lse(t h)",
     "dq = sum(j) d_o' q k v o lse; dk = sum(p) d_o' q k v o lse; dv = sum(p) d_o' q k v o lse", "ring like attention_grad groups", "seq"},

    // ---- tables looked up by ids, and the loss
    {"embedding", "y(t w) ids(t) table(v w)", "y = sum(v) ids table'", "first(v)", "", "table = embedding_grad(dy, ids)"},
    {"embedding_grad", "+dtable(v w) dy(t w) ids(t)", "dtable = sum(t) dy' ids", "first(v)"},
    {"row_max", "top(t 1) logits(t v)", "top = max(v) logits"},
    {"exp_sums", "sums(t 2) logits(t v) top(t 1) targets(t)", "sums = sum(v) logits top targets", "first(v)", "",
     "logits = exp_sums_grad(dsums, logits, top, targets)"},
    {"exp_sums_grad", "dlogits(t v)^logits dsums(t 2) logits(t v) top(t 1) targets(t)", "dlogits = dsums' logits top targets", "first(v)"},
    {"cross_entropy", "+loss() sums(t 2)", "loss = sum(t) sums", "", "number", "sums = cross_entropy_grad(sums)"},
    {"cross_entropy_grad", "dsums(t 2) sums(t 2)", "dsums = sums", "", "number"},

    // ---- two or more in one kernel
    {"linear_bias", "y(t o) x(t i) w(o i) b(o)", "u = linear(x, w); y = bias(u, b)"},
    {"linear_add", "y(t o)^residual x(t i) w(o i) residual(t o)", "u = linear(x, w); y = add(u, residual)"},
    {"linear_bias_add", "y(t o)^residual x(t i) w(o i) b(o) residual(t o)", "u = linear(x, w); s = bias(u, b); y = add(s, residual)"},
    {"expert_down_add", "y(t*l i)^residual x(t*l f) w(r*i f) offsets(2 g) residual(t*l i)",
     "u = expert_down(x, w, offsets); y = add(u, residual)"},
    {"expert_down_two", "y(t*l i) x(t*l f) w(r*i f) x2(t*l f) w2(r*i f) offsets(2 g)",
     "u = expert_down(x, w, offsets); v = expert_down(x2, w2, offsets); y = add(u, v)"},
    {"linear_gelu", "y(t o) before(t o) x(t i) w(o i)", "before = linear(x, w); y = gelu(before)"},
    {"linear_bias_gelu", "y(t o) before(t o) x(t i) w(o i) b(o)", "u = linear(x, w); before = bias(u, b); y = gelu(before)"},
    {"linear_dx_gelu", "dx(t i) dy(t o) w(o i) before(t i)", "u = linear_dx(dy, w); dx = gelu_grad(u, before)"},
    {"linear_dx_gelu_bias", "dx(t i) +db(i) dy(t o) w(o i) before(t i)",
     "u = linear_dx(dy, w); dx = gelu_grad(u, before); db = bias_grad(dx)"},
    {"linear_dw_bias", "+dw(o i) +db(o) dy(t o) x(t i)", "dw = linear_dw(dy, x); db = bias_grad(dy)"},
    {"bias_add", "y(t w)^x,residual x(t w) b(w) residual(t w)", "u = bias(x, b); y = add(u, residual)"},
    {"add_layer_norm", "sum(t w)^x,residual y(t w) statistics(t 2) x(t w) residual(t w) gain(w) shift(w)",
     "sum = add(x, residual); y statistics = layer_norm(sum, gain, shift)"},
    {"bias_add_layer_norm", "sum(t w)^x,residual y(t w) statistics(t 2) x(t w) b(w) residual(t w) gain(w) shift(w)",
     "u = bias(x, b); sum = add(u, residual); y statistics = layer_norm(sum, gain, shift)"},
    {"add_rms_norm", "sum(t w)^x,residual y(t w) statistics(t 1) x(t w) residual(t w) gain(w)",
     "sum = add(x, residual); y statistics = rms_norm(sum, gain)"},
    {"layer_norm_grad", "dx(t w)^dy +dgain(w) +dshift(w) dy(t w) x(t w) statistics(t 2) gain(w)",
     "dx = layer_norm_dx(dy, x, statistics, gain); dgain dshift = layer_norm_dw(dy, x, statistics)"},
    {"layer_norm_grad_add", "dx(t w)^residual,dy +dgain(w) +dshift(w) dy(t w) x(t w) statistics(t 2) gain(w) residual(t w)",
     "u = layer_norm_dx(dy, x, statistics, gain); dgain dshift = layer_norm_dw(dy, x, statistics); dx = add(u, residual)"},
    {"rms_norm_grad", "dx(t w)^dy +dgain(w) dy(t w) x(t w) statistics(t 1) gain(w)",
     "dx = rms_norm_dx(dy, x, statistics, gain); dgain = rms_norm_dw(dy, x, statistics)"},
    {"rms_norm_grad_add", "dx(t w)^residual,dy +dgain(w) dy(t w) x(t w) statistics(t 1) gain(w) residual(t w)",
     "u = rms_norm_dx(dy, x, statistics, gain); dgain = rms_norm_dw(dy, x, statistics); dx = add(u, residual)"},
    {"head_norm_grad", "dx(t h*d)^dy +dgain(d) dy(t h*d) x(t h*d) statistics(t h) gain(d)",
     "dx = head_norm_dx(dy, x, statistics, gain); dgain = head_norm_dw(dy, x, statistics)"},
    {"softmax_sums", "top(t 1) sums(t 2) logits(t v) targets(t)", "top = row_max(logits); sums = exp_sums(logits, top, targets)"},
    {"softmax_grad", "dlogits(t v)^logits sums(t 2) logits(t v) top(t 1) targets(t)",
     "u = cross_entropy_grad(sums); dlogits = exp_sums_grad(u, logits, top, targets)"},
};

}  // namespace

std::span<const line> table() { return lines; }

}  // namespace rankc::codegen::algebra
