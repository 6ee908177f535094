// SPDX-License-Identifier: Apache-2.0
// The rows of the table of ops, each by its kernel or by the plain rows that it is.
#include "rows.hpp"

namespace field {

static constexpr row table[]{
    {"linear", "y = x w", products::linear, "", "linear_dx d_x = d_y w; linear_dw d_w = d_y x"},
    {"linear_dx", "dx = dy w", products::linear_dx},
    {"linear_dw", "dw = dy x", products::linear_dw},
    {"bias", "y = x b", products::bias, "", "copy d_x = d_y; bias_grad d_b = d_y", "y:x"},
    {"bias_grad", "db = dy", products::bias_grad},

    {"embedding", "y = ids table", tables::embedding, "", "embedding_grad d_table = d_y ids"},
    {"embedding_grad", "dtable = dy ids", tables::embedding_grad},
    {"position", "y = x table", tables::position, "", "copy d_x = d_y; position_grad d_table = d_y", "y:x"},
    {"position_grad", "dtable = dy", tables::position_grad},
    {"rope", "y = x table", tables::rope, "", "rope_grad d_x = d_y table", "y:x", "y x"},
    {"rope_grad", "dx = dy table", tables::rope_grad, "", "", "dx:dy", "dx dy"},

    {"add", "y = a b", elements::add, "", "copy d_a = d_y; copy d_b = d_y", "y:a y:b"},
    {"mul", "y = a b", elements::mul, "", "mul_grad d_a d_b = d_y a b", "y:a y:b"},
    {"mul_grad", "da db = dy a b", elements::mul_grad, "", "", "da:dy"},
    {"scale", "y = x", elements::scale, "", "scale d_x = d_y", "y:x"},
    {"copy", "y = x", elements::copy},
    {"clear", "y =", elements::clear},
    {"zeros", "y =", elements::clear},
    {"gelu", "y = x", elements::gelu, "", "gelu_grad d_x = d_y x"},
    {"gelu_grad", "dx = dy x", elements::gelu_grad, "", "", "dx:dy"},
    {"sigmoid", "y = x", elements::sigmoid, "", "sigmoid_grad d_x = d_y y", "y:x"},
    {"sigmoid_grad", "dx = dy y", elements::sigmoid_grad, "", "", "dx:dy"},
    {"swiglu", "y = gate up", elements::swiglu, "", "swiglu_grad d_gate d_up = d_y gate up", "", "gate up"},
    {"swiglu_grad", "dgate dup = dy gate up", elements::swiglu_grad, "", "", "", "dgate dup gate up"},
    {"split", "first second = x", elements::split, "", "concat d_x = d_first d_second"},
    {"split_heads", "first second = x", elements::split_heads, "", "concat_heads d_x = d_first d_second"},
    {"concat", "y = first second", elements::concat, "", "split d_first d_second = d_y"},
    {"concat_heads", "y = first second", elements::concat_heads, "", "split_heads d_first d_second = d_y"},

    // Conversions: on one device nothing happens. Programs have collectives of them.
    {"replicate", "y = x", elements::copy, "", "copy d_x = d_y"},
    {"all_reduce", "y = x", elements::copy, "", "copy d_x = d_y"},
    {"all_reduce_max", "y = x", elements::copy},
    {"all_gather", "y = x", elements::copy, "", "copy d_x = d_y"},
    {"reduce_scatter", "y = x", elements::copy, "", "copy d_x = d_y"},

    {"layer_norm", "y statistics = x gain shift", norms::layer_norm, "",
     "layer_norm_dx d_x = d_y x statistics gain; layer_norm_dw d_gain d_shift = d_y x statistics"},
    {"layer_norm_dx", "dx = dy x statistics gain", norms::norm_dx, "", "", "dx:dy"},
    {"layer_norm_dw", "dgain dshift = dy x statistics", norms::layer_norm_dw},
    {"rms_norm", "y statistics = x gain", norms::rms_norm, "",
     "rms_norm_dx d_x = d_y x statistics gain; rms_norm_dw d_gain = d_y x statistics"},
    {"rms_norm_dx", "dx = dy x statistics gain", norms::norm_dx, "", "", "dx:dy"},
    {"rms_norm_dw", "dgain = dy x statistics", norms::rms_norm_dw},
    {"head_norm", "y statistics = x gain", norms::rms_norm, "",
     "head_norm_dx d_x = d_y x statistics gain; head_norm_dw d_gain = d_y x statistics"},
    {"head_norm_dx", "dx = dy x statistics gain", norms::norm_dx, "", "", "dx:dy"},
    {"head_norm_dw", "dgain = dy x statistics", norms::rms_norm_dw},
    {"softmax", "y = x", norms::softmax, "", "softmax_dx d_x = d_y y", "y:x"},
    {"softmax_dx", "dx = dy y", norms::softmax_dx, "", "", "dx:dy"},

    {"attention", "o lse = q k v", attentions::attention, "", "attention_grad d_q d_k d_v = d_o q k v o lse", "",
     "q k v"},
    {"attention_grad", "dq dk dv = d_o q k v o lse", attentions::attention_grad, "", "", "", "dq dk dv q k v"},

    {"row_max", "top = logits", losses::row_max},  // what it shifts cancels: no gradient
    {"exp_sums", "sums = logits top targets", losses::exp_sums, "",
     "exp_sums_grad d_logits = d_sums logits top targets"},
    {"exp_sums_grad", "dlogits = dsums logits top targets", losses::exp_sums_grad, "", "", "dlogits:logits"},
    {"cross_entropy", "loss = sums", losses::cross_entropy, "", "cross_entropy_grad d_sums = sums"},
    {"cross_entropy_grad", "dsums = sums", losses::cross_entropy_grad},

    {"linear_bias", "y = x w b", nullptr, "linear t = x w; bias y = t b"},
    {"linear_add", "y = x w residual", nullptr, "linear t = x w; add y = t residual", "", "y:residual"},
    {"linear_bias_add", "y = x w b residual", nullptr, "linear t = x w; bias u = t b; add y = u residual", "",
     "y:residual"},
    {"linear_gelu", "y before = x w", nullptr, "linear before = x w; gelu y = before"},
    {"linear_bias_gelu", "y before = x w b", nullptr, "linear t = x w; bias before = t b; gelu y = before"},
    {"linear_dx_gelu", "dx = dy w before", nullptr, "linear_dx t = dy w; gelu_grad dx = t before"},
    {"linear_dx_gelu_bias", "dx db = dy w before", nullptr,
     "linear_dx t = dy w; gelu_grad dx = t before; bias_grad db = dx"},
    {"linear_dw_bias", "dw db = dy x", nullptr, "linear_dw dw = dy x; bias_grad db = dy"},
    {"bias_add", "y = x b residual", nullptr, "bias t = x b; add y = t residual", "", "y:x y:residual"},
    {"add_layer_norm", "sum y statistics = x residual gain shift", nullptr,
     "add sum = x residual; layer_norm y statistics = sum gain shift", "", "sum:x sum:residual"},
    {"bias_add_layer_norm", "sum y statistics = x b residual gain shift", nullptr,
     "bias t = x b; add sum = t residual; layer_norm y statistics = sum gain shift", "", "sum:x sum:residual"},
    {"add_rms_norm", "sum y statistics = x residual gain", nullptr,
     "add sum = x residual; rms_norm y statistics = sum gain", "",
     "sum:x sum:residual"},
    {"layer_norm_grad", "dx dgain dshift = dy x statistics gain", nullptr,
     "layer_norm_dx dx = dy x statistics gain; layer_norm_dw dgain dshift = dy x statistics", "", "dx:dy"},
    {"layer_norm_grad_add", "dx dgain dshift = dy x statistics gain residual", nullptr,
     "layer_norm_dx t = dy x statistics gain; layer_norm_dw dgain dshift = dy x statistics; add dx = t residual", "",
     "dx:dy dx:residual"},
    {"rms_norm_grad", "dx dgain = dy x statistics gain", nullptr,
     "rms_norm_dx dx = dy x statistics gain; rms_norm_dw dgain = dy x statistics", "", "dx:dy"},
    {"rms_norm_grad_add", "dx dgain = dy x statistics gain residual", nullptr,
     "rms_norm_dx t = dy x statistics gain; rms_norm_dw dgain = dy x statistics; add dx = t residual", "",
     "dx:dy dx:residual"},
    {"head_norm_grad", "dx dgain = dy x statistics gain", nullptr,
     "head_norm_dx dx = dy x statistics gain; head_norm_dw dgain = dy x statistics", "", "dx:dy"},
    {"softmax_sums", "top sums = logits targets", nullptr, "row_max top = logits; exp_sums sums = logits top targets"},
    {"softmax_grad", "dlogits = sums logits top targets", nullptr,
     "cross_entropy_grad t = sums; exp_sums_grad dlogits = t logits top targets", "", "dlogits:logits"}};

std::span<const row> all_rows() { return table; }

}  // namespace field
