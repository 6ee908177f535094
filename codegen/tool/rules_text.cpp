// SPDX-License-Identifier: Apache-2.0
#include "rules_text.hpp"

namespace rankc::tool {

namespace {

constexpr rule_text texts[]{
    {101, "the degrees multiply to the world size",
     "The product of pp, dp_replicate, dp_shard, cp and tp is world; times ep where expert_layout is "
     "independent.",
     "Every rank has exactly one coordinate on every axis. A smaller product leaves ranks without work, and "
     "a larger one gives work to ranks that do not exist.",
     "parallel_dims{.world = 8, .tp = 2, .pp = 2}",
     "Multiply one degree by what is missing, here dp_replicate = 2, or let it be computed: .dp_replicate = "
     "infer."},
    {102, "an inferred degree is a whole number",
     "With one of pp, dp_replicate, dp_shard, cp and tp `infer` (or ep where expert_layout is independent), "
     "the product of the others divides world.",
     "The inferred degree is world divided by that product; a fraction of a rank does not exist.",
     "parallel_dims{.world = 8, .dp_replicate = infer, .tp = 3}",
     "Take degrees that divide the world: tp = 1, 2, 4 or 8; or another world: 6 or 9."},
    {103, "every axis above 1 is lowered in this version",
     "Between groups of ranks that exchange heads, keys and values pass around a ring. With expert_layout = "
     "independent, experts are not sharded along their columns, and cp_weights is shard.",
     "They can be declared, so that plans keep their spelling, but no pass lowers them yet. A plan that used "
     "them would compile to something else than it says. Groups that exchange heads and gather keys and "
     "values are among them. Where ep is above 1, tp shards the tokens (sequence_parallel), with "
     "expert_layout=independent etp is 1 and cp_weights is shard, and else with cp_weights=replicate experts "
     "are spread over all ranks of a stage; where ep is 1, tp shards the columns of experts, and etp is 1 or "
     "tp.",
     "parallel_dims{.world = 4, .cp = 4, .ulysses = 2}",
     "Use dp_replicate, dp_shard, cp, tp, ep, etp, pp and ulysses, this one for all of cp or with a ring: "
     "parallel_dims{.world = 4, .cp = 4, .ulysses = 2, .cp_attention = cp_attention::ring}."},
    {104, "a degree is at least 1", "world and every degree are at least 1, or `infer`.",
     "An axis of size 1 shards nothing; size 0 would mean no ranks at all.",
     "parallel_dims{.world = 4, .tp = 0, .pp = 4}", "Write 1, or leave the axis out: 1 is the default."},
    {105, "at most one degree is inferred",
     "Of all degrees one at most is `infer`: ep, etp and ulysses too, which take all of their ranks that "
     "they can.",
     "The world size is one equation and determines one unknown.",
     "parallel_dims{.world = 8, .dp_replicate = infer, .pp = infer}", "Say all degrees but one."},
    {106, "sequence parallelism needs tensor parallelism", "sequence_parallel = true comes with tp > 1.",
     "It shards the tokens between tensor-parallel regions over the ranks of the tp group. With one rank "
     "there is nothing to shard, and the flag most likely means that tp was forgotten.",
     "parallel_dims{.world = 2, .pp = 2, .sequence_parallel = true}",
     "Set tp > 1, or leave sequence_parallel out."},
    {107, "a context-parallel group is a ring of Ulysses groups", "ulysses divides cp; cp = ring * ulysses.",
     "The ranks of a Ulysses group exchange heads for tokens, and the rings pass keys and values between "
     "such groups. All rings have the same length, so that one program serves every rank.",
     "parallel_dims{.world = 6, .cp = 6, .ulysses = 4}",
     "Take a divisor of cp, here ulysses = 1, 2, 3 or 6; or another cp."},
    {108, "experts are spread over whole groups of ranks",
     "ep * etp divides dp_shard * cp * tp where expert_layout is folded, dp_replicate * dp_shard * cp * tp "
     "where it is folded_over_replicas, and etp divides cp * tp where it is independent.",
     "Experts use the ranks that the dense layers use, in another order. A rank that is in no expert group "
     "would have dense layers and no experts.",
     "parallel_dims{.world = 8, .dp_replicate = 4, .dp_shard = 2, .ep = 8}",
     "Take an ep that divides, here 1 or 2, more dp_shard, or experts over the replicas: .expert_layout = "
     "expert_layout::folded_over_replicas."},
    {109, "an axis has the same groups in both views",
     "An axis that the dense and the expert view both have has one size and one stride.",
     "The two views are two ways to number the same ranks. An axis that meant other ranks in one of them "
     "would send a stage's activations or a gradient to ranks that wait for something else.",
     "no plan: both views are built from one list of axes, and this rule proves it",
     "A plan that meets this sentence has found a fault of rankc; please report it."},
    {110, "the cluster has a place for every rank",
     "world is at most nodes times ranks_per_node of the cluster.",
     "A rank is one GPU, or one thread of a machine without. The cluster's memory and speed are promises for "
     "each of them, and hold for none that does not exist.",
     "plan{.dims = parallel_dims{.world = 16, .dp_replicate = 16}, .cluster = clusters::h200<1>, ...}",
     "Take a larger cluster, here clusters::h200<2>, or a smaller world."},
    {111, "a warning: splitting every expert costs",
     "etp above 1 splits the matrices of each expert; with ep = 1 and a dense model it splits nothing.",
     "The products get smaller and slower, and every expert layer ends with an all-reduce. The same ranks "
     "hold whole experts with a larger ep.",
     "parallel_dims{.world = 8, .tp = 8, .ep = 2, .etp = 4}",
     "Take ep = 8 and etp = 1 where the model has as many experts."},
    {112, "a warning: groups that exchange activations leave a node",
     "The groups of tp, ulysses and ep lie within nodes of ranks_per_node ranks, which are filled in order.",
     "Their messages are on the critical path of every layer. Between nodes a rank sends at the speed of its "
     "network adapter, within one at that of NVLink.",
     "parallel_dims{.world = 16, .tp = 16} on clusters::h200<2>",
     "Take what the sentence offers, here tp = 8 with dp_replicate = 2; or keep it, if memory asks for it."},
    {113, "a warning: independent experts compute dense layers again",
     "In expert_layout::independent, ep is an axis of the world of its own, and its ranks have the same "
     "data.",
     "Each of the ep ranks computes the same dense layers. In the folded layout they have data of their own: "
     "the same world trains on ep times the samples.",
     "parallel_dims{.world = 8, .dp_shard = 4, .ep = 2, .expert_layout = expert_layout::independent}",
     "Take the folded equivalent: parallel_dims{.world = 8, .dp_shard = 8, .ep = 2}."},
    {114, "weights are gathered ahead",
     "prefetch is at least 0: the number of layers (reshard::after_layer) or stages (reshard::after_stage) "
     "whose weights are gathered while one is computed.",
     "Each of them takes memory. With 0 a layer waits for its weights; with 1 their all-gather overlaps the "
     "layer before it.",
     "parallel_dims{.world = 2, .dp_shard = 2, .prefetch = -1}",
     "Leave it out for 1; write 0 where memory is short, 2 where a small layer hides too little of a "
     "gather."},
    {120, "a plan has a cluster", "The member .cluster is given.",
     "It says on how many ranks of which memory and speed the plan runs; nothing can be assumed of it.",
     "plan{.model = ..., .dims = ..., .schedule = ..., .recipe = ...}",
     "Write .cluster = clusters::cpu for threads of one machine, clusters::h200<1> for a node of eight "
     "H200s, or cluster{.nodes = 1, .ranks_per_node = 8, .memory = 80'000'000'000, .flops = 989e12} with "
     "numbers of your own."},
    {121, "a cluster's numbers are possible",
     "nodes and ranks_per_node are at least 1; memory, flops, within_node and between_nodes are finite and "
     "at least 0.",
     "Memory limits are judged and schedules are timed by them. A 0 says that a number is not known: then it "
     "is not used.",
     "cluster{.nodes = 0, .ranks_per_node = 8, .memory = 0, .flops = 0}",
     "Write the number of nodes and of ranks in each; leave the others at 0 where they are not known."},
    {201, "every pipeline stage has a layer",
     "The number of repeated layers is at least pp times the stages per rank. The first and the last stage "
     "may do without, where a layer stands alone before or after them, as the embedding and the head do.",
     "A stage without a layer would cost two messages per microbatch and compute nothing.",
     "models::gpt2{.layers = 2, ...} on parallel_dims{.world = 8, .pp = 8}",
     "Take pp of at most the number of layers, and use the ranks for dp_replicate or tp. Layers are split "
     "such that the rank that does most does as little as it can, embedding and head counted, or as "
     "stage_layers says (RC217)."},
    {202, "what is sharded divides into equal shards of whole units",
     "A dim that an axis shards has a count that the degree divides. heads and kv_heads are counted in heads "
     "and divide by tp * ulysses; the ffn of experts divides by etp.",
     "All ranks run the same program on shards of the same shape; a half head has no attention. Key-value "
     "heads are not replicated in this version, so that tp * ulysses is kv_heads at most.",
     "models::gpt2{.hidden = 96, .heads = 3, ...} on parallel_dims{.world = 2, .tp = 2}",
     "Take a tp that divides heads, ffn, vocab and, with sequence_parallel, the tokens; or pad the "
     "vocabulary and say the real size in vocab_used."},
    {203, "hidden divides into whole heads",
     "heads divides hidden, where the model has no head_dim of its own.",
     "Each head has hidden / heads elements then.", "models::gpt2{.hidden = 100, .heads = 3, ...}",
     "Take a divisor of hidden: for 100 that is 1, 2, 4, 5, 10, 20, 25, 50 or 100."},
    {204, "key-value heads serve equal numbers of query heads", "kv_heads divides heads.",
     "In grouped-query attention, heads / kv_heads query heads share one key and one value head.",
     "models::llama{.heads = 8, .kv_heads = 3, ...}", "Take a divisor of heads: for 8 that is 1, 2, 4 or 8."},
    {205, "rotary positions rotate pairs of elements",
     "head_dim, or hidden / heads, is even in models with rotary positions.",
     "A rotation acts on two elements of a head at a time; with an odd size one would be left over.",
     "models::llama{.hidden = 60, .heads = 4, ...}",
     "Change head_dim, or hidden or heads so that hidden / heads is even."},
    {206, "every size of a model is at least 1", "hidden, heads, kv_heads, ffn and vocab are at least 1.",
     "A tensor without elements has no mean and no gradient; a missing size is 0 and means the same.",
     "models::gpt2{.layers = 2, .hidden = 64, .heads = 4, .vocab = 64}   // no ffn",
     "Give every size; most often ffn is 4 * hidden."},
    {207, "the used part of a vocabulary is a part of it", "vocab_used is 1 to vocab, or 0 for all of it.",
     "vocab may be padded, so that it divides; vocab_used says how many of its tokens exist.",
     "models::gpt2{.vocab = 64, .vocab_used = 65, ...}",
     "Make vocab as large as vocab_used, or larger: the next multiple that tp divides."},
    {208, "expert parallelism has experts to place", "ep above 1 comes with a model of experts.",
     "Without experts there is nothing for the ranks of an ep group to shard.",
     "parallel_dims{.world = 8, .dp_shard = 8, .ep = 4} for a model with experts = 0",
     "Take ep = 1; the ranks stay data-parallel."},
    {209, "every ep rank has the same number of experts", "ep divides experts.",
     "All ranks run the same program; ranks with fewer experts would wait for the others.",
     "experts = 6 on parallel_dims{.world = 8, .dp_shard = 8, .ep = 4}",
     "Take ep = 1, 2, 3 or 6, or another number of experts."},
    {210, "every op's types fit",
     "Each op of a layer, and each dual that its backward is made of, has a typing rule over shapes and, on "
     "every axis, placements: R replicated, I invariant, V sharded along a dim, P a pending sum.",
     "A missing reduction, a nonlinear function of a pending sum or a bias added before the reduction would "
     "run and give a wrong gradient on more than one rank. The sentence names the op, the axis, what was "
     "found and what was expected.",
     "x + row_parallel_linear(h)   // a pending sum (P) added to a replicated value (R)",
     "Do what the sentence offers: most often all_reduce or reduce_scatter the pending sum first."},
    {211, "a repeated layer keeps the type of its input",
     "The result of a layer under repeat{n, layer} has the shape and the placements of its input.",
     "The layer is traced once and used n times: what comes out of one goes into the next.",
     "repeat{4, layer_that_returns_a_pending_sum{}}",
     "End the layer as it begins; put what changes the type before or after the repeat."},
    {212, "the model ends with a loss",
     "The result of the last layer is one number. A loss that another layer makes is added to it by "
     "add_loss.",
     "Backward starts from the loss; the gradients of anything else are not defined.",
     "a model whose head returns logits",
     "End the last layer with cross_entropy(logits, c.input(\"targets\"), ...)."},
    {213, "a layer uses its input",
     "The result of every layer but the first depends on the layer's input, and is rows of features or a "
     "loss.",
     "Where it does not, no gradient reaches the layers before it, and they stay as they began.",
     "a block that returns linear(positions, w) and drops x",
     "Use the input, most often by adding it: x + f(x)."},
    {214, "a parameter that layers share is used alike",
     "Layers with the same parameter_handle share one parameter. These layers are not repeated, and use it "
     "on values of one placement.",
     "They read and update the same elements, and their gradients are one sum. Between two pipeline stages "
     "one message a step keeps them equal.",
     "repeat{4, block{gain}} where gain is a parameter_handle",
     "Declare the parameter by its name, parameter(\"gain\", ...), so that each layer has one of its own."},
    {215, "a token goes to experts that exist", "top_k is at most experts.",
     "A token's top_k experts are different ones.", "experts = 8 with top_k = 9",
     "Take top_k of at most experts; 1, 2 and 8 are usual."},
    {216, "a sequence divides among the ranks that share it",
     "seq is a multiple of cp * lcm(2, tp) where rings share it in zig-zag order, of cp * tp where only "
     "Ulysses does; without sequence parallelism tp counts as 1.",
     "A ring rank has one chunk from the front of a sequence and its counterpart from the back, so causal "
     "attention costs the same on every rank; each chunk is sharded over tp between its regions.",
     "seq = 1000 on parallel_dims{.world = 16, .cp = 4, .tp = 4, .sequence_parallel = true}",
     "Take the next multiple of 16, 1008; or pad the sequences."},
    {217, "stage_layers gives every layer a stage",
     "stage_layers has one number for each of the pp * stages_per_rank stages, and they sum to layers. Each "
     "is at least 1, or 0 on the first stage, which has the embedding, and on the last, which has the head.",
     "A layer without a stage is not computed, and a stage without a layer only passes messages on.",
     "plan{.dims = parallel_dims{.world = 4, .pp = 4}, ..., .stage_layers = stage_layers{5, 4, 4, 4}}, of 16 "
     "layers",
     "Take stage_layers{5, 4, 4, 3}, or leave it out: the layers are then split by what they cost."},
    {219, "a note: tied embeddings are on two stages",
     "With pp above 1, the first and the last stage both hold a table that the embedding and the head share.",
     "Their gradients are summed over the two stages once a step, so that the copies stay equal.",
     "a model with tied_embeddings on parallel_dims{.world = 4, .pp = 4}",
     "Nothing is to be done where memory allows it; rankc plans the communicator. Else untie them."},
    {220, "sequences and batches are not empty",
     "seq, global_batch and, where it is given, microbatch are at least 1.",
     "A step without tokens has no mean loss.", "training{.seq = 0, .global_batch = 8}",
     "Give both: seq in tokens, global_batch in sequences per step."},
    {221, "the batch divides into microbatches",
     "global_batch is a multiple of microbatches times the data-parallel ranks, dp_replicate * dp_shard; "
     "where microbatch is given, it is their product.",
     "Every microbatch on every rank has the same number of sequences, so that one program with constant "
     "shapes serves all and the mean of their gradients is the gradient of the mean.",
     "training{.global_batch = 10, ...} with 4 microbatches on parallel_dims{.world = 2, .dp_replicate = 2}",
     "Take a multiple of 8: 8 or 16; or other microbatches."},
    {222, "the tokens of a step can be counted", "The global batch has at most 2,147,483,647 tokens.",
     "Shapes are 32-bit numbers, those of the one device that a plan is compared with too; a larger count "
     "would wrap around.",
     "training{.seq = 1048576, .global_batch = 4096}", "Take a smaller global batch: 2047 sequences."},
    {223, "token ids are rows of the table",
     "Tables that token ids are looked up in, and logits that they are targets of, have a row or column for "
     "each token that is used, or for each index below the limit of a declared input.",
     "An id past the end would be read from another tensor, or give no loss at all.",
     "a model with vocab = 64 whose embedding has dim{\"vocab\", 32}",
     "Make the table as large as vocab, or say how many tokens are used: vocab_used."},
    {224, "names are identifiers, and each names one thing",
     "Layers, parameters and dims have names of letters, digits, '_', '-' and '.'. Two layers that stand "
     "alone have no parameter of one name, and none has a name like layers.3.norm that a repeated layer's "
     "parameter has.",
     "Names stand in checkpoints, generated text and messages; of two tensors of one name a checkpoint would "
     "keep one.",
     "two layers that stand alone, each with parameter(\"norm\", ...)",
     "Take another name; to share a parameter on purpose, pass one parameter_handle to both layers."},
    {225, "every op has a kernel",
     "Layers are written in the ops of rankc/ops.hpp, and in rows of your own: an op_row with ports, a "
     "typing rule, a dual, its operations, a kernel for each target and the header that declares them. Its "
     "name is no other row's of the layer and none of rankc's. With cp above 1 no kernel of your own takes "
     "rows or seq: a rank has chunks of sequences.",
     "A plan that compiles must build and run; certificates tell rows apart by their names.",
     "t.apply(my_op, {x}, {}, placement_rules::elementwise(true))", "Write it in ops that there are."},
    {226, "replicas hold the same parameters",
     "Over dp_replicate, dp_shard and cp a parameter is typed as the same on every rank, and its gradient is "
     "a sum over the tokens; layers convert nothing over dp_replicate and dp_shard. That ranks keep a shard "
     "each is no matter of the layers. Experts that are sharded over ep are trained.",
     "Gradients are summed over these ranks as a whole; what is not a sum over tokens would count several "
     "times.",
     "a parameter sharded over dp_replicate", "Shard over tp, or set dp_replicate=1."},
    {227, "repeated layers fill the stages",
     "A pipeline of several stages needs repeat{count, layer} in the model: the repeated layers are split "
     "into the stages.",
     "Layers that stand alone stay with the repeated layer before them, so that without any there is one "
     "stage.",
     "a model of an embedding, one block and a head on pp=2", "Write repeat{count, layer}, or take pp=1."},
    {228, "shards lie in an order that has kernels",
     "A dim is sharded in contiguous parts; one with order = shard_order::zig_zag is typed, and is not "
     "sharded in this version. all_gather and reduce_scatter are along the tokens.",
     "Which elements a rank has decides what attention, positions and gathers do with them. A collective of "
     "NCCL concatenates the members' parts, which must be complete rows.",
     "a parameter sharded over tp along dim{\"ffn\", 64, 1, \"\", shard_order::zig_zag}; "
     "all_gather(x, axis::tp, \"ffn\") of rows of ffn features",
     "Leave the order out; gather tokens, or multiply by a weight that is sharded along the same features."},
    {230, "a plan has a model", "The member .model is given.",
     "The layers of the model are what a plan lowers.",
     "plan{.dims = ..., .schedule = ..., .recipe = ..., .cluster = ...}",
     "Write .model = models::gpt2{...}, .model = models::llama{...}, or a model of your own."},
    {231, "a plan has a recipe", "The member .recipe is given.",
     "seq and global_batch are the shapes of a step and have no default.",
     "plan{.model = ..., .dims = ..., .schedule = ..., .cluster = ...}",
     "Write .recipe = training{.seq = 128, .global_batch = 16}; the other members have defaults."},
    {232, "a model has layers, sizes and a vocabulary",
     "A model has a const stack() that returns its layers, a const check(report&) that judges its sizes, and "
     "the numbers vocab and vocab_used.",
     "The layers are typed and lowered; check says what is wrong with sizes before they are shapes; tokens "
     "are drawn from vocab_used of vocab numbers.",
     "plan{.model = training{...}, ...}",
     "Add the members that the sentence names; rankc/models/gpt2.hpp is a short example."},
    {233, "learning rates are numbers of at least 0",
     "lr is at least 0 and finite in the precision of the weights; min_lr is 0 to lr.",
     "A negative rate climbs, and NaN makes every weight NaN. With lr = 0 a step changes no weights: that is "
     "legal, to measure losses and gradients.",
     "training{.lr = -1e-3, ...}", "Take a rate such as 3e-4, and a min_lr of a tenth of it or 0."},
    {234, "weight decay and clipping are at least 0", "weight_decay and clip are at least 0 and finite.",
     "A negative decay makes weights grow, and gradients cannot be scaled to a negative norm.",
     "training{.clip = -1, ...}",
     "Write 0 to turn one off; weight_decay = 0.1 and clip = 1 are the defaults."},
    {235, "the moments' decay is a fraction", "beta1 and beta2 are at least 0 and less than 1.",
     "A moment is beta times itself and 1 - beta times what is new, divided by 1 - beta^step: with beta = 1 "
     "that is 0 / 0.",
     "training{.optimizer = adamw{.beta1 = 1}, ...}", "Take 0.9 for beta1, and 0.95 or 0.999 for beta2."},
    {236, "eps is above 0", "eps is finite and at least 1.2e-38 with f32 weights, 2.3e-308 with f64 ones.",
     "The update divides by the root of the second moment plus eps. Where a gradient has always been 0 that "
     "is eps alone, and smaller numbers are rounded to 0.",
     "training{.optimizer = adamw{.eps = 0}, ...}", "Take 1e-8, the default."},
    {237, "steps are counted from 0",
     "warmup_steps and decay_steps are at least 0. decay_steps counts from the end of the warm-up, so that "
     "it may be the smaller one. The pieces of lr_schedule have at least 0 steps, and replace these two.",
     "The learning rate rises over the first and falls over the second; with decay_steps = 0 it does not "
     "fall.",
     "training{.warmup_steps = -1, ...}", "Write 0 for none."},
    {238, "rotary positions have a base", "theta is finite and at least 1.",
     "Pair i of a head turns by the position times theta to the power of -2i / head_dim. With theta = 0 or "
     "less that is NaN or infinite.",
     "models::llama{.theta = 0, ...}",
     "Leave it out: 500000 is the default, 10000 that of the first Llamas."},
    {239, "recompute applies to ops that the plan has",
     "recompute applies to the repeated layers of a plan that trains: to all of their ops (full), or to the "
     "ops of some kinds that they have. With every = n it applies to each n-th repeated layer, n from 1 to "
     "their number.",
     "Backward repeats what forward does not keep. Where that is nothing, a plan takes the memory that "
     "recompute was to save.",
     "training{.recompute = {.full = true, .every = 0}, ...}",
     "Write {.full = true}, or {.attention = true, .activations = true, .norms = true} or some of these; "
     ".every = 2 for half of the layers. An op of your own is of a kind by its row's family."},
    {240, "rows that tp shards divide by dp_shard",
     "Where tp shards the rows of a parameter, the rows of each tp rank are a multiple of dp_shard, of "
     "dp_shard * cp where cp_weights is shard. Rows that tp does not shard may be any number: the last "
     "shards end in padding. Of experts, the rows of each ep rank are a multiple of the ranks that shard "
     "these, dp_shard * cp * tp / (ep * etp), times dp_replicate where expert_layout is "
     "folded_over_replicas.",
     "Every rank keeps as many rows, so that one program with constant shapes serves all; padding between "
     "the parts of two tp ranks has no place in the tensor.",
     "a parameter of 10 rows on parallel_dims{.world = 4, .dp_shard = 2, .tp = 2}",
     "Take a dp_shard or a tp that divides, here .dp_shard = 5; or sizes that are multiples of tp * "
     "dp_shard."},
    {241, "SGD's momentum is a fraction",
     "momentum is at least 0 and less than 1; nesterov needs a momentum above 0.",
     "SGD's moment is momentum times itself plus the gradient: with momentum = 1 it never forgets. "
     "Nesterov's "
     "update adds momentum times that moment, which is not kept with momentum = 0.",
     "training{.optimizer = sgd{.momentum = 1}, ...}", "Take sgd{.momentum = 0.9}."},
    {242, "moments are kept in f32 or in bf16",
     "moments is f32 (f64 in a plan in f64) or bf16, where the optimizer keeps moments.",
     "A moment is worked out in the type of the gradients and rounded once when it is kept. What is wider "
     "than a gradient says no more of it.",
     "training{.moments = f64, ...}",
     "Leave it out, or write .moments = bf16; .rounding = stochastic then keeps updates that rounding to "
     "nearest loses where beta2 is above 0.996."},
    {243, "bf16 weights without a master copy are rounded stochastically",
     "master_weights = false needs a plan in bf16 and rounding = stochastic. rounding = stochastic needs "
     "weights without a master copy, or moments in bf16; rounding_seed needs rounding = stochastic.",
     "bf16 has 8 bits: a weight that takes an update of less than a 512th of itself and is rounded to the "
     "nearest stays as it was, step after step. Rounded up or down by chance it is right on average.",
     "training{.master_weights = false, ...}",
     "Write .master_weights = false, .rounding = stochastic; or leave both out."},
    {244, "gradients are reduced in f32 or sent in bf16",
     "reductions is f32 (f64 in a plan in f64) or, in a plan in bf16, bf16.",
     "A rank's own sum over its microbatches is in f32. In bf16 half as many bytes are sent over dp, and "
     "each sum of two ranks is rounded; over tp, between the holders of shared weights, and for the norm and "
     "the loss it stays f32.",
     "training{.precision = f32, .reductions = bf16, ...}", "Leave it out, or write .precision = bf16 too."},
    {245, "LoRA has a rank, a scale and targets",
     "Where lora is set, its rank is at least 1, its alpha is finite and above 0, and its targets name a "
     "parameter or more.",
     "A target returns x w^T + alpha / rank x a^T b^T, where a has `rank` rows. Without these numbers the "
     "second term is not defined.",
     "training{.lora = {.rank = 0, .alpha = 16, .targets = {\"wq\"}}, ...}",
     "Write .lora = {.rank = 8, .alpha = 16, .targets = {\"wq\", \"wv\"}}."},
    {246, "a recipe names parameters that the model has",
     "Each name in frozen, lora.targets and lora.trained is that of a parameter as its layer declares it: "
     "\"wq\", which is that of all repetitions.",
     "A name that nothing has would train, or leave as it is, something else than was meant.",
     "training{.frozen = {\"layers.3.wq\"}, ...}",
     "Take a name that the sentence lists; `gpt_rankc describe` counts what is trained."},
    {247, "a LoRA target is read only by linear",
     "A target of lora is read only by linear, in every layer that has it.",
     "w + alpha / rank b a is what an adapted weight stands for. Another op that reads it - an embedding of "
     "the same table, a norm - would go on reading w.",
     "models::gpt2 with a tied head and training{.lora = {.rank = 8, .alpha = 16, .targets = {\"wte\"}}, "
     "...}",
     "Take targets that the sentence lists, or give the head a table of its own."},
    {248, "a parameter is either trained or frozen",
     "A name in lora.trained is in neither lora.targets nor frozen, and no layer freezes it.",
     "A target stays as it is, and its parts of low rank are trained in its place; of two opposite wishes "
     "neither is taken.",
     "training{.lora = {.rank = 8, .alpha = 16, .targets = {\"wq\"}, .trained = {\"wq\"}}, ...}",
     "Name it in one list."},
    {249, "something is trained", "Of a plan with backwards, a parameter or more is not frozen.",
     "Each step would compute gradients of nothing and leave every weight as it is.",
     "training{.frozen = {...}} with the name of every parameter",
     "Leave a name out, set lora, or take a schedule with .inference = true, whose programs evaluate."},
    {250, "norms divide by a number above 0", "norm_eps is finite and at least 1.2e-38.",
     "A norm divides a row by the root of its variance, or mean square, plus norm_eps. For a row of zeros "
     "that is norm_eps alone; GPUs add it in f32, in which smaller numbers are 0.",
     "models::llama{.norm_eps = 0, ...}",
     "Take what the model was trained with: 1e-5, the default, or 1e-6."},
    {251, "rotary positions are slowed by a rule and its numbers",
     "rope_scaling has a rule where its factor is not 1, and a factor of at least 1; those of llama3 and "
     "yarn have 0 < low_freq_factor < high_freq_factor, and original_positions of at least 1. The share of a "
     "head that turns is a whole number of pairs.",
     "linear divides every angle by factor. llama3 divides those that turn less than low_freq_factor times "
     "in original_positions, keeps those that turn more than high_freq_factor times, and interpolates "
     "between, as yarn does by the number of the pair.",
     "models::llama{.rope_scaling = {.factor = 8}, ...}",
     "Write {.by = rope_scaling::llama3, .factor = 8}, or leave it out: a Llama 3 from before 3.1 has none."},
    {253, "layers without experts are the model's",
     "Each number of mlp_only_layers is that of a layer, from 0 on, and there are at most 16.",
     "A number past the last layer would leave no layer out, and a model that has experts where the one "
     "whose weights are loaded has none does not read them.",
     "models::qwen3_moe{.layers = 4, .mlp_only_layers = {4}, ...}",
     "Count layers from 0: {3} is the last of four. Regular patterns are decoder_sparse_step's."},
    {256, "losses of routers have coefficients, routers and a head that takes them",
     "router_losses.balance and router_losses.z are at least 0 and at most 1e6; expert_load counts a batch, "
     "so router_losses.local is false with it. A model with routers() keeps their statistics once in each of "
     "the layers that it declares, and its last layer takes the losses of them. In bf16 a layer passes an "
     "even number of elements to the next.",
     "Statistics go from layer to layer with the residual stream and become losses in the last one, so that "
     "the loss of all layers is that of one rank on any layout. A layer less, or one that takes no losses, "
     "would make another loss than is said.",
     "models::qwen3_moe{.router_losses = {.balance = -0.01}, ...}",
     "Take 0 for none; in a layer of your own call keep_statistics on the router's logits and choice, and "
     "add_router_losses in the head."},
    {258, "the capacity of experts is counted in groups that are on one rank",
     "capacity is 0 to 1e6, and above 0 where overflow is fail. A capacity needs at least 2 experts. "
     "capacity_group is at least 0. A group is on one rank: it divides the contiguous positions of a "
     "sequence on a rank. With cp a rank has two chunks, and sequence_parallel shards them over tp.",
     "Of each group of consecutive positions an expert takes ceil(capacity * group * top_k / experts) picks, "
     "in their order, and drops the rest. Ranks that had parts of a group would each drop other picks than "
     "one rank does.",
     "models::mixtral{.capacity = 1.25, ...} with seq = 4096 and cp = 2",
     "Take a group that divides the positions, as .capacity_group = 1024; 0 is a whole sequence, which cp = "
     "1 has on one rank."},
    {259, "documents end with a token, and attention takes their starts",
     "end_of_document is -1, or a token of the vocabulary that is used. Where it is a token, attention and "
     "learned positions of every layer are given the layer_context's starts.",
     "The token says where documents begin in each sequence. A layer that attended to all of a sequence "
     "would mix what the recipe keeps apart.",
     "training{.end_of_document = 50257, ...} with models::gpt2{.vocab = 50304, .vocab_used = 50257, ...}",
     "Take the tokenizer's token, as 50256; in a layer of your own call self_attention(q, k, v, c) and "
     "position(x, table, c)."},
    {260, "a loss is the same mean on every layout",
     "What a layer multiplies its losses with is what it multiplies them with on one device that has the "
     "batch of a step.",
     "Gradients of ranks and microbatches are added up. A mean over the tokens of a rank or of a microbatch, "
     "added up, is that many times the mean over the step, and where ranks count different numbers of tokens "
     "no multiple of it.",
     "cross_entropy(logits, c.input(\"targets\"), axis::tp, 1.0 / (c.rows * c.seq)) with dp_replicate = 2",
     "Take c.loss_scale, 1 / tokens of a step, times what no layout changes."},
    {261, "fp8 applies to a linear layer, and the GPU has fp8 tensor cores",
     "linears = fp8 needs a linear layer of a repeated layer, other than a router, with multiples of 16 of "
     "tokens, inputs and outputs on each rank. The cluster's GPU has GEMMs of e4m3 and e5m2; for linears = "
     "fp8_rows it is a Hopper GPU, or not named.",
     "Tensor cores take eight-bit operands 16 at a time. Layers of other sizes stay in the plan's precision, "
     "and a plan of such layers alone would train as if the word were not there.",
     "training{.linears = fp8, ...} with models::gpt2{.hidden = 100, ...}",
     "Take sizes that divide, as .hidden = 112; or leave linears out."},
    {264, "an optimizer updates each element independently",
     "The row of the recipe's optimizer has granularity::element.",
     "STEP gives a rank the elements of its shards, in ranges without the shapes of parameters, and gathers "
     "nothing. An optimizer of whole matrices, such as Muon, needs both.",
     "training{.optimizer = muon{}, ...} with muon::row.granularity = granularity::matrix",
     "Take adamw{}, sgd{}, or a row of your own by element."},
    {265, "a hyperparameter of a user's optimizer is in its range",
     "A hyperparameter is in the range that the optimizer's row gives: a fraction is at least 0 and less "
     "than "
     "1, a number that is not negative is finite, and a divisor is at least the smallest normal number.",
     "The kernel computes with whatever it is given. A number out of its range gives weights that are no "
     "numbers, or that never move.",
     "training{.optimizer = adagrad{.lr_decay = -0.1}, ...}",
     "Take a number of the range, or another range in the row."},
    {266, "an input that a model declares has a name and a type",
     "The name of each input in inputs() is an identifier that no other input of the step has: the language "
     "has tokens, targets, starts and label_count, and weights with token_weights. It holds element::index, "
     "element::wide or element::real. "
     "`below` "
     "limits "
     "indices alone, and `whole_sequences` is of inputs with a row for each token. The first input of a "
     "model "
     "without tokens has a row for each token of the rank, and the layer that reads it is not repeated.",
     "Layers, generated text and the runtime find an input by its name. The first layer of a model without "
     "tokens reads the first input, as other first layers read the tokens.",
     "constexpr auto inputs() const { return std::array{named_input{\"targets\"}}; }",
     "Take another name, as named_input{.name = \"token_weights\", .holds = element::wide}."},
    {267, "the ignored label is no token",
     "ignored_label is a negative number. Without ignored_label every label counts.",
     "A label of 0 or more may be a token of the vocabulary. If that token were ignored, the model would "
     "never learn to predict it.",
     "training{.ignored_label = 0, ...}", "Take -100, as PyTorch and transformers do."},
    {268, "a loss of the targets leaves out the ignored labels",
     "In a plan with ignored_label no layer takes the mean of a loss of the targets over all tokens.",
     "The loss is the sum over the labels that count, divided by their number in the whole step. A mean over "
     "all tokens is smaller, by a factor that changes from step to step.",
     "cross_entropy(logits, c.input(\"targets\"), axis::tp, c.loss_scale) with "
     "training{.ignored_label = -100, ...}",
     "Call cross_entropy(logits, c), or cross_entropy(logits, c, factor) for a part of the loss."},
    {269, "a head fits the attention kernels of the GPUs",
     "On a cluster of GPUs a head of attention has at most 128 elements.",
     "The kernels keep a tile of 64 tokens of a head in registers and in shared memory. The host kernels "
     "have "
     "no such limit.",
     "models::gpt2{.hidden = 512, .heads = 2, ...} with clusters::h200<1>",
     "Take more and smaller heads, as .heads = 4; or clusters::cpu."},
    {270, "a plan that ignores labels across documents has documents and an ignored label",
     "ignore_across_documents is true only with end_of_document and ignored_label.",
     "The label of a document's last token is the first token of the next document. To leave it out, the "
     "trainer replaces it by ignored_label where it finds the token end_of_document.",
     "training{.end_of_document = 50256, .ignore_across_documents = true, ...}",
     "Take .ignored_label = -100 too; or leave ignore_across_documents out: then these labels count."},
    {271, "losses know which labels count",
     "In a plan with ignored_label an op that reads the targets also reads the number of labels that count, "
     "and at least one layer reads that number.",
     "An ignored label is a negative number. A kernel that takes it for a token computes another loss, or "
     "reads outside a table, and a loss that divides by the number of all tokens is no mean over the labels.",
     "A model whose only loss is an op of your own, with training{.ignored_label = -100, ...}",
     "Call cross_entropy(logits, c), or give the op label_count(c) as well and leave out negative labels in "
     "its kernels; or leave out ignored_label."},
    {272, "losses of labels with weights read the weights",
     "In a plan with token_weights an op that reads the targets also reads the weights and their sum.",
     "The loss is the sum of weight x loss over the labels, divided by the sum of the weights in the whole "
     "step. A loss without the weights, or divided by another number, is another loss.",
     "cross_entropy(logits, c.input(\"targets\"), axis::tp, c.loss_scale) with "
     "training{.token_weights = true, ...}",
     "Call cross_entropy(logits, c), or give an op of your own token_weights(c) and label_count(c), which is "
     "the sum of the weights."},
    {273, "the weights of labels are read",
     "In a plan with token_weights some layer reads the sum of the weights.",
     "The runtime asks for a weight for each token. If no loss is divided by their sum, they change nothing.",
     "A model without tokens, with training{.token_weights = true, ...}",
     "Call cross_entropy(logits, c), or leave out token_weights. A model of dense features declares an input "
     "for its weights, and gives it to a loss of its own."},
    {280, "a norm has all its features on one rank",
     "The features of rms_norm and layer_norm are not sharded over several ranks. qk_norm_kind::whole, as in "
     "OLMo 2, is a norm over all heads, which tp shards.",
     "Each row is divided by the root of the mean of all its squares. Ranks with some of the features would "
     "have to sum the squares, in forward and again in backward, and this version has no such sum.",
     "models::olmo2{...} with tp = 2",
     "Take tp = 1 and shard weights over dp_shard, sequences over cp, or layers over pp."},
    {300, "a line is a request",
     "Each line of `rankc schedule` and `rankc dims` is one JSON object with fields of the types that its "
     "sentence names, and of `rankc dims` no others; each token of \"ranks\" is of the grammar: 3F5, "
     "3SEND_F5, OVERLAP(3F5,3B4), BATCH(3SEND_F5,3RECV_B4), 3UNSHARD.",
     "A line that is guessed at gives an answer to another question. The lines after it are answered all the "
     "same.",
     R"({"schedule": "gpipe", "pp": "four", "microbatches": 8})",
     R"(Write {"schedule": "gpipe", "pp": 4, "microbatches": 8}.)"},
    {301, "a step has a microbatch, and a rank a stage",
     "microbatches is at least 1, and the schedule has at least pp stages.",
     "A step without microbatches computes nothing, and neither does a rank without a stage.",
     R"({"schedule": "gpipe", "pp": 2, "microbatches": 0})",
     "Take 1 or more. The bubble of GPipe and 1F1B is (pp - 1) / (microbatches + pp - 1): take several times "
     "pp."},
    {302, "every action is on the rank of its stage, and occurs once",
     "An action's stage and microbatch exist, the stage is on the rank that has the action, and no action is "
     "there twice. An OVERLAP joins two consecutive computations. A schedule for inference has no "
     "REDUCE_GRAD and no STEP.",
     "A second forward would overwrite what the backward needs; a second backward would count a gradient "
     "twice.",
     R"({"ranks": [["0F0", "0F0", "0B0"]], "stage_to_rank": [0]})",
     "Drop the second one, or give it the microbatch that it was meant for."},
    {303, "no action is missing",
     "Every stage runs the forward of every microbatch; in training also the backward, as B, or as I and W. "
     "A schedule with any REDUCE_GRAD or STEP has both for every stage, on each rank that has the stage; in "
     "a plan the missing ones are added.",
     "A missing backward leaves its microbatch out of the gradient, and a missing REDUCE_GRAD or STEP leaves "
     "ranks with different weights; nothing at run time would say so.",
     R"({"ranks": [["0F0", "0F1", "0B0"]], "stage_to_rank": [0], "microbatches": 2})",
     "Add the action that the sentence names."},
    {304, "the schedule has no deadlock",
     "On each rank an action comes after what it needs; and over all ranks no ring of waits exists, messages "
     "included. A message is not buffered: it starts when both its ends are reached, and not before the "
     "earlier ones of its queue. rankc's runtime has a queue for each peer and direction; \"queues\" in a "
     "line says \"edge\" (that), \"pair\" (one per peer) or \"rank\" (one for all), and a line with another "
     "\"source\" is held to \"rank\". A STEP waits for every REDUCE_GRAD of every rank, since the norm of "
     "the gradient is over all; that of a stage on two ranks waits for both, and each rank's run in its "
     "order.",
     "Such a step hangs with all GPUs busy waiting. The sentence names the ring.",
     R"({"ranks": [["0F0", "0SEND_F0", "0RECV_B0", "0B0"], ["1RECV_F0", "1B0", "1SEND_B0", "1F0"]], )"
     R"("stage_to_rank": [0, 1]})",
     "Order each rank's actions by their data. Where two ranks send to each other first, let one receive "
     "first, or put both messages of a rank into one BATCH."},
    {305, "the schedule exists in this version", "\"schedule\" is a name that the sentence lists.",
     "An unknown name is most often a typing mistake; running another schedule instead would be worse than "
     "none.",
     R"({"schedule": "1f1b", "pp": 4, "microbatches": 8})",
     "Take a listed name, here one_f_one_b. The order of any other schedule can be checked with `rankc "
     "schedule --check`."},
    {306, "the schedule has as many stages on a rank as asked",
     "stages_per_rank is what the schedule places on a rank: 1 for gpipe and one_f_one_b, 2 for those in a V "
     "and the dual pipes. looped_bfs and the interleaved schedules take any number.",
     "Schedules with several stages on a rank are other schedules, with another order and other messages.",
     R"({"schedule": "one_f_one_b", "pp": 4, "stages_per_rank": 2, "microbatches": 8})",
     "Leave stages_per_rank out, or set what the sentence names."},
    {307, "the schedule's activations fit the limit",
     "No rank holds the activations of more microbatches at once than memory_limit, in microbatches of one "
     "stage.",
     "GPipe holds all microbatches of a step at once, 1F1B at most pp of them. Beyond the limit a step would "
     "run out of memory in its middle.",
     R"({"schedule": "gpipe", "pp": 4, "microbatches": 16, "memory_limit": 8})",
     "Take what the sentence offers: another schedule that fits, or fewer microbatches of more sequences "
     "each."},
    {308, "every message has two ends in the right places",
     "What one rank makes and another uses is sent once, after it is made, and received once, before it is "
     "used. Stages on one rank exchange no messages.",
     "A send without its receive hangs; a receive after its use gives stale data.",
     R"({"ranks": [["0F0", "0RECV_B0", "0B0"], ["1RECV_F0", "1F0", "1B0", "1SEND_B0"]], )"
     R"("stage_to_rank": [0, 1]})",
     "Add, move or drop the token that the sentence names, here 0SEND_F0 after 0F0."},
    {309, "messages are received in the order they are sent",
     "From one rank to another, the n-th receive is the other end of the n-th send.",
     "NCCL's messages carry no tags. Two of one size that change places are not noticed, and train on wrong "
     "data.",
     R"({"ranks": [["0F0", "0SEND_F0", "0F1", "0SEND_F1"], ["1RECV_F1", "1RECV_F0", "1F0", "1F1"]], )"
     R"("stage_to_rank": [0, 1]})",
     "Move the receives, or the sends, into one order."},
    {310, "a stage is whole while it computes, and reduced and stepped once",
     "UNSHARD and RESHARD of a stage alternate, every computation lies between them, and RESHARD is the "
     "last. On each rank a stage's gradients are reduced once, after the last of them, and its STEP comes "
     "once, after all else of the stage.",
     "A sharded stage has no whole weights to compute with; gradients added after the reduction are lost on "
     "other ranks, and what follows a step would mix old weights and new ones.",
     R"({"ranks": [["0UNSHARD", "0F0", "0RESHARD", "0B0", "0REDUCE_GRAD"]], "stage_to_rank": [0]})",
     "Put UNSHARD before the first computation after a RESHARD, REDUCE_GRAD after the last backward and STEP "
     "last."},
    {311, "an answer is of bounded length",
     "Of a schedule, pp times microbatches is at most the number in the sentence; of dims with "
     "\"groups\":true, world is.",
     "The answer holds every action twice, or every rank once for each axis. One line must not "
     "take all the memory of the machine that answers it.",
     R"({"schedule": "gpipe", "pp": 1024, "microbatches": 1000000})",
     "Leave groups out: sizes and strides say the same. Or ask for fewer microbatches: their order repeats, "
     "and the bubble is (pp - 1) / (microbatches + pp - 1)."},
    {312, "dual_pipe has two halves", "dual_pipe takes an even pp and an even number of microbatches.",
     "Half of the microbatches go through the ranks one way and half the other way, and each rank has the "
     "same two stages as its mirror. A rank in the middle or a microbatch left over has no partner. Fewer "
     "microbatches than 2 * pp are legal.",
     "schedules::dual_pipe{.microbatches = 5} on parallel_dims{.pp = 2}",
     "Take a number that the sentence names, or dual_pipe_v: no rank has a mirror, and any numbers are "
     "legal."},
    {313, "a schedule that is written down can be read",
     "The text of from_csv, or of \"csv\" in a line of `rankc schedule`, has a line for each rank, and its "
     "actions between commas: 0F0, 0B0, 0I0, 0W0, OVERLAP(0F1,2B0), 0UNSHARD, 0RESHARD, 0REDUCE_GRAD, 0STEP. "
     "Stages and microbatches are counted from 0 without a gap.",
     "The text is the schedule; what is not understood cannot be left out of it. Sends and receives are not "
     "written: rankc places them.",
     R"(schedules::from_csv<"0F0, 0X0">{})",
     "Correct the token that the sentence names. Blanks between commas are fine; they mean waiting."},
    {314, "a plan has a schedule", "The member .schedule is given.",
     "It says how many microbatches a step has and in which order each rank runs them; one rank has one too.",
     "plan{.model = ..., .dims = ..., .recipe = ..., .cluster = ...}",
     "Write .schedule = schedules::one_f_one_b{.microbatches = 4}, or schedules::gpipe{.microbatches = 1} on "
     "one rank."},
    {315, "a schedule has its counts, its placement and its order",
     "A schedule has int microbatches and stages_per_rank, a static std::string_view name, and const "
     "functions rank_of_stage(stage, pp) and actions(pp, rank, emit) or table(pp).",
     "Each rank's program is made from them.", "plan{.schedule = clusters::cpu, ...}",
     "Add the members that the sentence names; rankc/schedule/actions.hpp lists all and "
     "rankc/schedules/gpipe.hpp is a short example."},
    {331, "a rank has parameters in common with one other at most",
     "Where every stage is on two ranks, or layers share a parameter, the ranks that hold the same "
     "parameters are pairs.",
     "The gradients of both copies are summed between the two ranks, by one communicator of each.",
     "a schedule of two directions with the stages on ranks 0, 1, 2, 3 and on 1, 2, 3, 0",
     "Place the second direction so that each rank's stages are on one other rank: reversed, as dual_pipe "
     "does."},
    {332, "every rank has a stage",
     "The placement of a schedule's stages gives each pipeline rank one at least.",
     "A rank without a stage has nothing to run and holds no part of the model.",
     "a text of two lines for pp=2 in which both stages are on the first",
     "Take fewer ranks, or more stages."},
    {401, "what every rank needs fits into its memory",
     "The arena of each rank, weights, gradients, optimizer state, activations and buffers, plus the memory "
     "of CUDA and NCCL on a GPU, is at most the cluster's memory.",
     "Every byte of every rank is placed before the program is written, so that running out of memory is "
     "found here. With #include <rankc/peak_bytes.hpp>, static_assert(fits<plan>) finds it while compiling, "
     "for the cluster's GPUs.",
     "a plan of models::llama{.layers = 32, .hidden = 8192, ...} on parallel_dims{.world = 1} and "
     "clusters::h200<1>",
     "Use more tp or pp, or fewer rows in a microbatch: more microbatches, or a smaller global_batch; or "
     "give the stages that need most fewer layers, by stage_layers; or let backward repeat what forward "
     "would keep: training{.recompute = {.full = true}, ...}."},
};

}  // namespace

std::span<const rule_text> rule_texts() { return texts; }

}  // namespace rankc::tool
