// SPDX-License-Identifier: Apache-2.0
// RC2xx that need no trace of a layer: sizes, stages, batches. RC202 is of traced shapes.
#include "reject.hpp"

inline constexpr models::gpt2 gpt{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};

template <const auto& Model, parallel_dims Dims = parallel_dims{}, training Recipe = recipe,
          schedules::gpipe Schedule = one_microbatch>
using modelled = plan<Model, Dims, Schedule, Recipe, clusters::cpu>;

using rc201_more_stages_than_layers = modelled<gpt, parallel_dims{.world = fault(4, 2), .pp = fault(4, 2)}>;
static_assert(valid<rc201_more_stages_than_layers>);  // error: RC201: layers=2 cannot fill 4 stages; pp can be at most 2

inline constexpr models::gpt2 no_layers{.layers = fault(0, 1), .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};
using rc201_no_layers = modelled<no_layers>;
static_assert(valid<rc201_no_layers>);  // error: RC201: layers=0 cannot fill 1 stages; at least 1 repeated layers are needed

inline constexpr models::llama llama_for_tp3{.layers = 1, .hidden = 48, .heads = 6, .kv_heads = fault(2, 3), .ffn = 66, .vocab = 66};
using rc202_heads_over_tp = modelled<llama_for_tp3, parallel_dims{.world = 3, .tp = 3}>;
static_assert(valid<rc202_heads_over_tp>);  // error: RC202: kv_heads=2 does not divide by tp=3; divisors of 2 are 1, 2, multiples of 3 are 3

inline constexpr models::gpt2 gpt_vocab{.layers = 1, .hidden = 32, .heads = 4, .ffn = 64, .vocab = fault(257, 258), .vocab_used = 257};
using rc202_vocab_over_tp = modelled<gpt_vocab, parallel_dims{.world = 2, .tp = 2}>;
static_assert(valid<rc202_vocab_over_tp>);  // error: RC202: vocab=257 does not divide by tp=2; divisors of 257 are 1, 257, multiples of 2 are 256 and 258

using rc202_tokens_over_tp = modelled<gpt, parallel_dims{.world = 4, .tp = 4, .sequence_parallel = true},
                                      training{.seq = fault(7, 8), .global_batch = 1}>;
static_assert(valid<rc202_tokens_over_tp>);  // error: RC202: tokens=7 does not divide by tp=4; divisors of 7 are 1, 7, multiples of 4 are 4 and 8

inline constexpr models::gpt2 ragged_heads{.layers = 1, .hidden = 32, .heads = fault(5, 8), .ffn = 64, .vocab = 64};
using rc203_hidden_over_heads = modelled<ragged_heads>;
static_assert(valid<rc203_hidden_over_heads>);  // error: RC203: hidden=32 does not divide into heads=5; heads can be 1, 2, 4, 8, 16, 32

inline constexpr models::llama ragged_groups{.layers = 1, .hidden = 32, .heads = 4, .kv_heads = fault(3, 2), .ffn = 64, .vocab = 64};
using rc204_heads_over_kv_heads = modelled<ragged_groups>;
static_assert(valid<rc204_heads_over_kv_heads>);  // error: RC204: heads=4 is not a multiple of kv_heads=3; kv_heads can be 1, 2, 4

inline constexpr models::llama odd_heads{.layers = 1, .hidden = fault(28, 32), .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
using rc205_odd_head_dim = modelled<odd_heads>;
static_assert(valid<rc205_odd_head_dim>);  // error: RC205: head_dim=7 is odd, but rotary positions turn pairs of elements; hidden can be a multiple of 2 * heads: 32

inline constexpr models::gpt2 no_ffn{.layers = 1, .hidden = 32, .heads = 4, .ffn = fault(0, 1), .vocab = 64};
using rc206_size_zero = modelled<no_ffn>;
static_assert(valid<rc206_size_zero>);  // error: RC206: ffn=0; a size is at least 1

inline constexpr models::gpt2 used_up{.layers = 1, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64, .vocab_used = fault(65, 64)};
using rc207_more_used_than_there_are = modelled<used_up>;
static_assert(valid<rc207_more_used_than_there_are>);  // error: RC207: vocab_used=65 of vocab=64 tokens; it can be 1 to 64, or 0 for all

using rc220_no_tokens = modelled<gpt, parallel_dims{}, training{.seq = fault(0, 8), .global_batch = 4}>;
static_assert(valid<rc220_no_tokens>);  // error: RC220: seq=0 and global_batch=4 must both be at least 1

using rc221_batch_over_microbatches =
    modelled<gpt, parallel_dims{.world = 2, .dp_replicate = 2}, training{.seq = 8, .global_batch = fault(8, 12)}, schedules::gpipe{.microbatches = 3}>;
static_assert(valid<rc221_batch_over_microbatches>);  // error: RC221: global_batch=8 does not divide into 3 microbatches on 2 data-parallel ranks; take a multiple of 6: 12

using rc222_too_many_tokens = modelled<gpt, parallel_dims{}, training{.seq = fault(1'048'576, 8), .global_batch = 2048}>;
static_assert(valid<rc222_too_many_tokens>);  // error: RC222: a microbatch has 2147483648 tokens; they are counted up to 2147483647: take more microbatches than 1
