// SPDX-License-Identifier: Apache-2.0
// Invalid odd plans are refused, each with one message. The generator does not refuse a plan that the
// compiler accepts.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/schedules/from_csv.hpp>

#include "models.hpp"

namespace refused_test {

namespace {

using namespace odd;
namespace g = models;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};

/// All diagnostics in order: "RC224: ...".
std::string refusal(const auto& model, const parallel_dims& dims = {},
                    const auto& schedule = schedules::gpipe{1}, std::span<const int> stage_layers = {}) {
  std::string all;
  for (const diagnostic& d :
       make_plan("refused", model, dims, schedule, recipe, clusters::cpu, stage_layers).diagnostics)
    all += (all.empty() ? "RC" : ". RC") + std::to_string(d.id) + ": " + std::string(d.text.view());
  return all;
}
std::string refusal(const auto& model) { return refusal(model, {}, schedules::gpipe{1}); }

/// A sentence without the line number in the models' header.
std::string without_line(std::string s) {
  if (const auto from = s.find(".hpp:"), to = s.find(": ", from + 5); from != s.npos && to != s.npos)
    s.erase(from + 4, to - from - 4);
  if (const auto from = s.find(".cpp:"), to = s.find(": ", from + 5); from != s.npos && to != s.npos)
    s.erase(from + 4, to - from - 4);
  return s;
}

template <const op_row& Op>
struct with_op {
  static constexpr std::string_view name = "with_op";
  constexpr value forward(trace& t, value x, const context&) const {
    value h = rms_norm(x, gain(t));
    return h + t.apply(Op, {x});
  }
};
/// A row like gelu's with another dual.
constexpr op_row like_gelu(void (*dual)(backward&)) {
  op_row row = ops::gelu;
  row.dual = dual;
  return row;
}
constexpr op_row bare = like_gelu(nullptr), stopped = like_gelu(stop_gradient);

/// A norm between the blocks and the head, whose parameter has the head's name.
struct norm_alone {
  static constexpr std::string_view name = "norm_alone";
  constexpr value forward(trace& t, value x, const context&) const { return rms_norm(x, gain(t, "norm")); }
};
struct attends_too_much {
  static constexpr std::string_view name = "attends";
  constexpr value forward(trace& t, value x, const context& c) const {
    value q = linear(x, t.parameter("q", {heads, hidden}, {}, initial::normal, 0.3));
    value k = all_gather(q, axis::cp, c.tokens.name);
    return x + linear(attention(q, k, k, c.rows, 2 * c.seq),
                      t.parameter("o", {hidden, heads}, {}, initial::normal, 0.3));
  }
};
struct twice_a_loss {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const context& c) const {
    value logits = linear(
        enter_tp(x, c), t.parameter("lm_head", {vocab, hidden}, {{axis::tp, "vocab"}}, initial::normal, 0.3));
    value first = cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
    value second = cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
    return both ? first + second : second;
  }
  bool both;
};
struct gain_and_shift {
  static constexpr std::string_view name = "gain_and_shift";
  constexpr value forward(trace& t, value x, const context&) const {
    value g = gain(t);
    return x + layer_norm(x, g, g);
  }
};

}  // namespace

TEST_CASE("a block of experts with norms after its halves is refused") {
  const g::attention_half after{hidden, heads, heads, {.layers = 2, .norms = g::norm_place::after}, 10};
  const g::experts_of_layer two{.count = 2, .picks = 1, .ffn = 8};
  CHECK(
      without_line(refusal(make(repeat{2, g::expert_block{after, two}}))) ==
      "RC210: experts.hpp: add_experts: its setting has norms after each half; expected norms before, since "
      "the half with experts has no other");
  const g::attention_half before{hidden, heads, heads, {.layers = 2}, 10};
  CHECK(refusal(make(repeat{2, g::expert_block{before, two}})).empty());
}

TEST_CASE("an op that a gradient reaches has a dual, or says that none flows") {
  CHECK(without_line(refusal(make(repeat{2, with_op<bare>{}})))
            .find("gelu: a gradient reaches it, and it has no dual; give its op_row one, or "
                  "stop_gradient where none flows") != std::string::npos);
  CHECK(refusal(make(repeat{2, with_op<stopped>{}})).find("RC225") == 0);
}

TEST_CASE("parameters are shared where the model hands layers one handle, not by their names") {
  CHECK(refusal(make(repeat{2, mlp{"mlp"}}, norm_alone{})) ==
        "RC224: parameter 'norm' of layer 'head' has the name of one of layer 'norm_alone'; pass one "
        "parameter_handle to both to share it, or take another name");
  CHECK(refusal(make(named_like_a_block{"own"}, repeat{2, mlp{"mlp"}}, gained{"t", gain_of("own")}))
            .starts_with("RC224"));
  CHECK(refusal(make(gained{"t", gain_of("own")}, repeat{2, gained{"r", gain_of("own")}})) ==
        "RC214: parameter 'own' of layer 'r' is that of a handle, but the layer is repeated; layers that "
        "stand alone can "
        "share one: declare it by its name");
  CHECK(
      refusal(make(gained{"a", gain_of("own")}, repeat{2, mlp{"mlp"}}, gained{"t", gain_of("own")})).empty());
  // A handle in a single layer is an ordinary parameter.
  CHECK(refusal(make(repeat{2, mlp{"mlp"}}, gained{"t", gain_of("own")})).empty());
  // Layers on three pipeline ranks would share it.
  CHECK(refusal(make(repeat{1, mlp{"mlp"}}, repeat{1, mlp{"mlp"}}, tied_between{}, repeat{1, mlp{"mlp"}}),
                {.world = 3, .pp = 3}, schedules::gpipe{3})
            .starts_with("RC331: pipeline rank 0 has parameters in common with rank 1 and with rank 2"));
}

TEST_CASE("a checkpoint's names are each of one parameter") {
  const auto of = [](std::string_view name) {
    return refusal(make(named_like_a_block{name}, repeat{3, mlp{"mlp"}}));
  };
  CHECK(of("layers.0.g") ==
        "RC224: parameter 'layers.0.g' of layer 'alone' has the name of one of the repeated layer 'mlp'; "
        "take another "
        "name");
  CHECK(of("layers.2.d").starts_with("RC224"));
  for (const char* legal : {"layers.3.g", "layers.0.h", "layers.00.g", "layers.0", "layers..g", "g"})
    CHECK(of(legal).empty());
  CHECK(refusal(make(repeat{3, mlp{"mlp"}}, named_like_a_block{"layers.1.u"})).starts_with("RC224"));
}

TEST_CASE("names stand in text: others are refused") {
  CHECK(refusal(make(repeat{1, mlp{"a \"quoted\" one"}})) ==
        "RC224: a layer is named 'a \"quoted\" one'; a name has letters, digits, '_', '-' and '.'");
  CHECK(without_line(refusal(make(repeat{1, mlp{"mlp", ffn, ""}}))).find("parameter: it has no legal name") !=
        std::string::npos);
  CHECK(refusal(make(repeat{1, mlp{"mlp", {"in ner", 20}}}))
            .find("a dim is named 'in ner'; a name has letters") != std::string::npos);
  CHECK(refusal(make(repeat{1, mlp{"mlp", {"inner", 0}}}))
            .find("dim inner=0 is in units of 1; expected one whole unit or more") != std::string::npos);
  CHECK(
      refusal(make(repeat{1, mlp{"mlp", {"inner", 20, 3, "piece"}}})).find("dim inner=20 is in units of 3") !=
      std::string::npos);
}

TEST_CASE("token ids are rows of the tables") {
  auto large = make(repeat{1, mlp{"mlp"}});
  large.vocab = 33;
  CHECK(refusal(large) ==
        "RC223: the embedding of layer 'embedding' has vocab=32 for token ids below 33; make it at least "
        "that large, "
        "or take vocab_used=32. "
        "RC223: the loss of layer 'head' has vocab=32 for token ids below 33; make it at least that large, "
        "or take "
        "vocab_used=32");
  large.vocab_used = 32;
  CHECK(refusal(large).empty());
  large.vocab_used = 34;
  CHECK(refusal(large).starts_with("RC207: vocab_used=34 of vocab=33 tokens"));
  large.vocab = 0;
  CHECK(refusal(large) == "RC206: vocab=0; a size is at least 1");
}

TEST_CASE("a layer has one loss, as its result") {
  for (const bool both : {false, true}) {
    const std::string said =
        refusal(make_bare(g::embedding{table, true}, repeat{1, mlp{"mlp"}}, twice_a_loss{.both = both}));
    CHECK(said.starts_with(both ? "RC210" : "RC212"));
  }
}

TEST_CASE("sequences make up the tokens of a rank") {
  CHECK(refusal(make(repeat{1, attends_too_much{}}))
            .find("attention: 12 sequences of 16 tokens are not the 96 tokens of a microbatch") !=
        std::string::npos);
  CHECK(refusal(make(repeat{1, gain_and_shift{}}))
            .find("layer_norm 'g': it is the gain and the shift; expected two parameters") !=
        std::string::npos);
}

TEST_CASE("stages are filled by repeated layers, wherever they are") {
  const auto alone = make_bare(g::embedding{table, true}, mlp{"mlp"}, scaled_head{1});
  CHECK(refusal(alone).empty());
  CHECK(refusal(alone, {.world = 2, .pp = 2}, schedules::gpipe{1}) ==
        "RC227: the model has no repeated layers, and they are what fills 2 stages; write repeat{count, "
        "layer}, or "
        "take one stage without "
        "stage_layers");
  CHECK(refusal(make(repeat{1, mlp{"a"}}, repeat{1, mlp{"b"}}, repeat{-1, mlp{"c"}})) ==
        "RC206: layer 'c' is repeated less than once; a layer is repeated at least 1 time");
  const auto three = make(repeat{3, mlp{"mlp"}});
  constexpr schedules::from_csv<"0F0, 2F0, 2B0, 0B0\n1F0, 1B0"> csv{};
  constexpr int two[]{2, 1}, listed[]{1, 1, 1};
  CHECK(refusal(three, {.world = 2, .pp = 2}, csv).empty());
  CHECK(refusal(three, {.world = 2, .pp = 2}, csv, listed).empty());
  CHECK(refusal(three, {.world = 2, .pp = 2}, csv, two) ==
        "RC217: stage_layers lists 2 stages of 3; it has one number for each");
  CHECK(refusal(make(repeat{1, mlp{"mlp"}}), {.world = 2, .pp = 2}, csv).empty());
  const auto without_head =
      make_bare(g::embedding{table, true}, repeat{1, mlp{"mlp"}}, repeat{1, scaled_head{1}});
  CHECK(refusal(without_head, {.world = 2, .pp = 2}, csv).empty());
  constexpr schedules::from_csv<"0F0, 3F0, 3B0, 0B0\n1F0, 2F0, 2B0, 1B0"> four{};
  CHECK(refusal(without_head, {.world = 2, .pp = 2}, four) ==
        "RC201: layers=2, with those that stand alone before or after them, cannot fill 4 stages: take pp=1 "
        "(with "
        "dp_replicate=infer), or layers=3 or layers=4");
}

TEST_CASE("over the replicas parameters are alike, and layers convert nothing") {
  struct sharded {
    std::string_view name = "sharded";
    constexpr value forward(trace& t, value x, const context&) const {
      return x +
             rms_norm(gelu(x), t.parameter("g", {hidden}, {{axis::dp_replicate, "hidden"}}, initial::ones));
    }
  };
  const std::string said =
      refusal(make(repeat{1, sharded{}}), {.world = 2, .dp_replicate = 2}, schedules::gpipe{1});
  CHECK(said.find("RC2") == 0);
}

}  // namespace refused_test
