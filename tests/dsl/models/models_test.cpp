// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace models_test {

using namespace rankc;

namespace {

inline constexpr training recipe{.seq = 8, .global_batch = 2};

plan_data on_one_rank(const auto& model) {
  plan_data p = make_plan("one", model, parallel_dims{}, schedules::gpipe{}, recipe, clusters::cpu);
  REQUIRE(p.diagnostics.empty());
  return p;
}

/// The elements of all parameters, counted once per name.
long long parameters_of(const plan_data& p) {
  long long n = 0;
  std::set<std::string> single;
  for (const layer_kind& k : p.kinds)
    for (const weight_info& w : k.ops.weights) {
      if (!k.repeated && !single.insert(w.name.text()).second) continue;
      long long elements = 1;
      for (int i = 0; i < w.holds.ndim; ++i) elements *= w.holds.shape[i].size;
      n += elements * k.count;
    }
  return n;
}

template <class Model>
constexpr int first_refusal(Model m) {
  report out;
  m.check(out);
  if (out.empty()) check_model(out, m.sizes(), {});
  return out.empty() ? 0 : out.front().id;
}
constexpr models::llama small{.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
constexpr models::llama with(int models::llama::* member, int value) {
  models::llama m = small;
  m.*member = value;
  return m;
}
static_assert(first_refusal(small) == 0);
static_assert(first_refusal(with(&models::llama::kv_heads, 1)) == 0 &&
              first_refusal(with(&models::llama::kv_heads, 4)) == 0);
static_assert(first_refusal(with(&models::llama::heads, 3)) == 203);
static_assert(first_refusal(with(&models::llama::kv_heads, 8)) == 204);
static_assert(first_refusal(with(&models::llama::heads, 32)) == 205);
static_assert(first_refusal(with(&models::llama::heads, 0)) == 206 &&
              first_refusal(with(&models::llama::vocab, -1)) == 206);
static_assert(first_refusal(with(&models::llama::vocab_used, -1)) == 207);

constexpr models::qwen3 with_heads(int heads, int head_dim) {
  return {
      .layers = 2, .hidden = 40, .heads = heads, .kv_heads = 2, .head_dim = head_dim, .ffn = 64, .vocab = 64};
}
static_assert(first_refusal(with_heads(4, 16)) == 0 &&
              first_refusal(with_heads(6, 16)) == 0);  // legal, although 6 does not divide hidden
static_assert(first_refusal(with_heads(4, 15)) == 205 && first_refusal(with_heads(4, 0)) == 206 &&
              first_refusal(with_heads(3, 16)) == 204);

}  // namespace

TEST_CASE("GPT-2 small has its published number of parameters") {
  // 124,439,808 with a context of 1,024; here the context is 8.
  const models::gpt2 gpt{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50257};
  CHECK(parameters_of(on_one_rank(gpt)) == 124'439'808LL - (1024 - 8) * 768LL);
}

TEST_CASE("Llama 3 8B has its published number of parameters") {
  const models::llama llama{
      .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
  CHECK(parameters_of(on_one_rank(llama)) == 8'030'261'248LL);
}

TEST_CASE("Qwen3 0.6B has its published number of parameters") {
  const models::qwen3 qwen{.layers = 28,
                           .hidden = 1024,
                           .heads = 16,
                           .kv_heads = 8,
                           .head_dim = 128,
                           .ffn = 3072,
                           .vocab = 151936,
                           .tied = true};
  CHECK(parameters_of(on_one_rank(qwen)) == 596'049'920LL);
}

TEST_CASE(
    "Qwen3 30B-A3B and Mixtral 8x7B have their published numbers of parameters, and a token's operations are "
    "of the experts it goes to") {
  const models::qwen3_moe qwen{.layers = 48,
                               .hidden = 2048,
                               .heads = 32,
                               .kv_heads = 4,
                               .head_dim = 128,
                               .experts = 128,
                               .top_k = 8,
                               .expert_ffn = 768,
                               .vocab = 151936};
  const plan_data p = on_one_rank(qwen);
  CHECK(parameters_of(p) == 30'532'122'624LL);
  CHECK(parameters_of(on_one_rank(models::mixtral{.layers = 32,
                                                  .hidden = 4096,
                                                  .heads = 32,
                                                  .kv_heads = 8,
                                                  .experts = 8,
                                                  .top_k = 2,
                                                  .expert_ffn = 14336,
                                                  .vocab = 32000})) == 46'702'792'704LL);
  double operations = 0;
  for (const layer_kind& k : p.kinds) operations += k.count * forward_flops(k.ops);
  const double attention = 2 * 2048 * (2 * 32 + 2 * 4) * 128 + 4 * 32 * 128 * recipe.seq,
               experts = 2 * (128 + 8 * 3 * 768) * 2048;
  CHECK(operations == 48 * (attention + experts) + 2.0 * 2048 * 151936);
}

namespace {
/// Blocks whose theta alternates.
struct alternating {
  int layers = 6, vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim hidden{"hidden", 32}, heads{"heads", 32, 8, "head_dim"}, ffn{"ffn", 64};
    const parameter_handle table = token_table(dim{"vocab", vocab}, hidden);
    const models::attention_half local{hidden, heads, heads, {layers}, 10000},
        global{hidden, heads, heads, {layers}, 1000000};
    return sequential(models::embedding{table},
                      pattern{layers, models::block{local, ffn}, models::block{global, ffn}},
                      models::head{table});
  }
};
}  // namespace

TEST_CASE("alternating layers are traced once for each kind") {
  const plan_data p = make_plan("turns", alternating{}, {.world = 2, .pp = 2}, schedules::one_f_one_b{2},
                                {.seq = 8, .global_batch = 4}, clusters::cpu);
  REQUIRE(accepts(p.diagnostics));
  CHECK(p.kinds.size() == 4);
  CHECK(p.on_one_device.size() == 4);
  CHECK(p.kinds[1].count == 3);
  CHECK(p.kinds[2].count == 3);
  CHECK(kinds_of_stages(p) == std::vector<std::vector<int>>{{0, 1, 2, 1}, {2, 1, 2, 3}});
  const plan_data none = make_plan("turns", alternating{.layers = 0}, {}, schedules::gpipe{1},
                                   {.seq = 8, .global_batch = 4}, clusters::cpu);
  CHECK_FALSE(accepts(none.diagnostics));
}

TEST_CASE("layers without experts are those that the model names") {
  const auto kinds = [](const models::qwen3_moe& m) {
    std::string all;
    const plan_data p = on_one_rank(m);
    for (const layer_run& run : p.runs)
      if (const layer_kind& k = p.kinds[static_cast<std::size_t>(run.kind)]; k.repeated)
        all += std::to_string(run.count) + (k.name == "block" ? " dense " : " sparse ");
    CHECK(p.kinds.size() <= 4);  // equal layers are one kind
    return all;
  };
  models::qwen3_moe m{.layers = 5,
                      .hidden = 32,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 8,
                      .experts = 4,
                      .top_k = 2,
                      .expert_ffn = 16,
                      .vocab = 64,
                      .ffn = 64};
  CHECK(kinds(m) == "5 sparse ");
  m.mlp_only_layers = {0, 3};
  CHECK(kinds(m) == "1 dense 2 sparse 1 dense 1 sparse ");
  m.decoder_sparse_step = 2;
  CHECK(kinds(m) == "1 dense 1 sparse 3 dense ");
}

namespace {
/// Blocks of attention and experts that share one setting.
struct set_experts {
  models::norm_kind norm = models::norm_kind::rms;
  bool biases = false;
  models::norm_place norms = models::norm_place::before;
  int layers = 2, vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const models::decoder d{.sizes = {.layers = layers,
                                      .hidden = 32,
                                      .heads = 4,
                                      .vocab = vocab,
                                      .experts = 4,
                                      .tied_embeddings = true},
                            .norm = norm,
                            .biases = biases,
                            .norms = norms,
                            .experts = {.count = 4, .picks = 2, .ffn = 16}};
    return sequential(d.embedding(), repeat{layers, d.expert_block()}, d.head());
  }
};
std::string sentence_of(const set_experts& m) {
  const plan_data p =
      make_plan("experts", m, {}, schedules::gpipe{1}, {.seq = 8, .global_batch = 4}, clusters::cpu);
  return p.diagnostics.empty() ? "" : std::string(p.diagnostics[0].text.view());
}
}  // namespace

TEST_CASE("experts have the kind of norm of their block, and refuse its biases and norms after") {
  const plan_data p = on_one_rank(set_experts{.norm = models::norm_kind::layer});
  std::vector<std::string> names;
  for (const weight_info& w : p.kinds[1].ops.weights) names.push_back(w.name.text());
  CHECK(std::count(names.begin(), names.end(), "norm2.bias") == 1);
  for (const op& o : p.kinds[1].ops.ops) CHECK(o.kind != &ops::rms_norm);
  CHECK(sentence_of({}) == "");
  CHECK(sentence_of({.biases = true}).find("its setting has biases; expected none") != std::string::npos);
  CHECK(sentence_of({.norms = models::norm_place::both}).find("its setting has norms after each half") !=
        std::string::npos);
}

namespace {
/// The routers of a user's model whose experts have a capacity.
struct limited {
  double theta = 10000;
  constexpr model_routers routers() const { return {.limited = true, .overflow = overflow::fail}; }
};
}  // namespace

TEST_CASE("a plan has the description of a published model, and the routers of any model") {
  const known_model moe = detail::find_known(models::qwen3_moe{.layers = 3,
                                                               .hidden = 32,
                                                               .heads = 4,
                                                               .kv_heads = 2,
                                                               .head_dim = 8,
                                                               .experts = 4,
                                                               .top_k = 2,
                                                               .expert_ffn = 16,
                                                               .vocab = 64,
                                                               .ffn = 64,
                                                               .mlp_only_layers = {1},
                                                               .norm_topk_prob = false,
                                                               .theta = 5000,
                                                               .norm_eps = 1e-4,
                                                               .capacity = 1.5});
  CHECK(moe.family == "qwen3_moe");
  CHECK(moe.sizes.experts == 4);
  CHECK(moe.theta == 5000);
  CHECK(moe.norm_eps == 1e-4);
  CHECK(moe.experts.ffn == 16);
  CHECK_FALSE(moe.experts.normalized);
  CHECK(moe.experts.capacity == 1.5);
  CHECK(moe.experts.routers.layers == 2);
  CHECK(moe.experts.dense == std::vector{1});
  const known_model own = detail::find_known(limited{});
  CHECK(own.family.empty());
  CHECK(own.theta == 0);
  CHECK(own.experts.routers.fails());
}

TEST_CASE("a tied head has no weight of its own") {
  models::llama tied = small;
  tied.tied = true;
  CHECK(parameters_of(on_one_rank(small)) - parameters_of(on_one_rank(tied)) == 64 * 32);
}

TEST_CASE("the projections that end a residual branch start smaller") {
  for (int layers : {1, 2, 12, 80})
    CHECK(residual_std(layers) == doctest::Approx(0.02 / std::sqrt(2.0 * layers)).epsilon(1e-12));
  for (const plan_data& p :
       {on_one_rank(small),
        on_one_rank(models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64})})
    for (const layer_kind& k : p.kinds)
      for (const weight_info& w : k.ops.weights) {
        CAPTURE(w.name.text());
        if (w.start == initial::normal)
          CHECK(w.std == doctest::Approx(w.name == "wo" || w.name == "w2" ? 0.01 : 0.02));
        CHECK((w.start == initial::normal) == (w.holds.ndim == 2));
      }
}

}  // namespace models_test
