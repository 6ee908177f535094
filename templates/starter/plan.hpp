// The plan: a model, the ranks it is spread over, a pipeline schedule, a recipe and the machines. A plan that
// breaks a rule does not compile, and the compiler's error says which rule, with the numbers and what to do.
#pragma once
#include <rankc/rankc.hpp>

namespace plans {
using namespace rankc;

// A byte-level GPT: 256 tokens. Also there: models::llama.
inline constexpr auto model = models::gpt2{.layers = 4, .hidden = 128, .heads = 4, .ffn = 512, .vocab = 256};

// Two pipeline stages. More ranks: raise world, and let one of dp_replicate, tp and pp be `infer`.
inline constexpr parallel_dims dims{.world = 2, .pp = 2};

// seq in tokens, global_batch in sequences per step. It must divide into the microbatches.
// The learning rate rises, and falls along half a cosine; also there: lr::constant, lr::linear, lr::wsd.
inline constexpr training recipe{.seq = 128, .global_batch = 16, .precision = f32, .lr = 1e-3,
                                 .lr_schedule = {lr::warm_up(50), lr::cosine(350, 1e-4)}};

// Also there: schedules::gpipe, others as <rankc/schedules/NAME.hpp>, and clusters::h200<Nodes>.
inline constexpr plan first{.model = model,
                            .dims = dims,
                            .schedule = schedules::one_f_one_b{.microbatches = 4},
                            .recipe = recipe,
                            .cluster = clusters::cpu};
static_assert(valid<first>);

}  // namespace plans
