// SPDX-License-Identifier: Apache-2.0
// `describe` names the attention kernels of each layer. A program prints a note before it runs if they are
// slow.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <array>

#include "emit/attention_engines.hpp"
#include "emit/emit.hpp"

namespace attention_engines_test {

using namespace rankc::codegen;

namespace {

struct shape {
  int head_dim = 64, seq = 512, cp = 1, end_of_document = -1;
};

/// Layers with and without an attention setting alternate.
struct alternating {
  rankc::attention_setting setting;
  int value_dim = 0;
  int vocab = 64, vocab_used = 0;
  constexpr void check(rankc::report&) const {}
  constexpr auto stack() const {
    const rankc::models::decoder d{.sizes = {.layers = 4,
                                             .hidden = 256,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .ffn = 64,
                                             .vocab = vocab,
                                             .rotary = true,
                                             .head_dim = 64},
                                   .theta = 10000};
    const rankc::models::block_attention first{
        .window = setting.window, .softcap = setting.softcap, .scale = setting.scale, .value_dim = value_dim};
    return rankc::sequential(d.embedding(), rankc::pattern{4, d.block(first), d.block()}, d.head());
  }
};

rankc::plan_data plan_of(const shape& s) {
  const rankc::models::gpt2 gpt{.layers = 3, .hidden = 4 * s.head_dim, .heads = 4, .ffn = 64, .vocab = 64};
  rankc::training recipe{.seq = s.seq, .global_batch = 2, .precision = rankc::bf16};
  if (s.end_of_document >= 0) recipe.end_of_document = s.end_of_document;
  return rankc::make_plan("engines", gpt, {.world = s.cp, .cp = s.cp}, rankc::schedules::gpipe{1}, recipe,
                          rankc::clusters::h200<8>);
}

std::string text(const shape& s, dtype type = dtype::bf16, target to = target::cuda) {
  const rankc::plan_data plan = plan_of(s);
  REQUIRE_MESSAGE(plan.diagnostics.empty(), plan.diagnostics.front().text);
  const lowered l = lower(plan, type, to);
  const std::string own = attention_text(l), all = describe_text(l);
  CHECK(all.find(own) != std::string::npos);
  const bool slow = own.find("own kernels") != std::string::npos;
  CHECK(slow_attention(l).empty() == (!slow || type != dtype::bf16));
  return own;
}

}  // namespace

TEST_CASE("attention with a window or a scale is rankc's on Hopper, with a softcap without tensor cores") {
  const std::string full =
      "attention: 2 layers by rankc's kernels for H100s and H200s, on other GPUs by cuDNN\n";
  for (const int cp : {1, 2})
    for (const auto& [setting, names] :
         {std::pair<rankc::attention_setting, std::string>{{.window = 64}, "a window"},
          {{.softcap = 50}, "a softcap"},
          {{.window = 64, .scale = 0.1}, "a window and a scale"}}) {
      const std::string because =
          "their attention has " + names + ", which cuDNN's kernels are not given\n" + full;
      for (const auto& machines : {rankc::clusters::h200<8>, rankc::clusters::a100<8>}) {
        const rankc::training recipe{.seq = 512, .global_batch = 2, .precision = rankc::bf16};
        const rankc::plan_data plan =
            rankc::make_plan("engines", alternating{setting}, {.world = cp, .cp = cp},
                             rankc::schedules::gpipe{1}, recipe, machines);
        REQUIRE_MESSAGE(plan.diagnostics.empty(), plan.diagnostics.front().text);
        const lowered l = lower(plan, dtype::bf16, target::cuda);
        CHECK(attention_text(l) == (setting.softcap != 0
                                        ? "attention: 2 layers by rankc's own kernels: " + because
                                        : "attention: 2 layers by rankc's kernels for H100s and H200s, on "
                                          "other GPUs by slow ones: " +
                                              because));
        const bool fast = setting.softcap == 0 && machines.gpu == "h200";
        CHECK(slow_attention(l).empty() == fast);
        CHECK((fast || slow_attention(l).find("several times slower") != std::string::npos));
      }
    }
}

TEST_CASE("value heads of another size than key heads use no tensor cores, and the program notes it") {
  for (const auto& [cp, value_dim, window] : {std::array{1, 32, 0}, {2, 128, 0}, {1, 128, 64}, {2, 32, 64}}) {
    const rankc::training recipe{.seq = 512, .global_batch = 2, .precision = rankc::bf16};
    const rankc::plan_data plan =
        rankc::make_plan("engines", alternating{{.window = window}, value_dim}, {.world = cp, .cp = cp},
                         rankc::schedules::gpipe{1}, recipe, rankc::clusters::h200<8>);
    REQUIRE_MESSAGE(plan.diagnostics.empty(), plan.diagnostics.front().text);
    const lowered l = lower(plan, dtype::bf16, target::cuda);
    const std::string slow =
        "2 layers by rankc's own kernels: their key heads have 64 elements and their value heads " +
        std::to_string(value_dim) + ", and cuDNN's take one size";
    CHECK(attention_text(l) ==
          "attention: " + slow +
              "\nattention: 2 layers by rankc's kernels for H100s and H200s, on other GPUs by cuDNN\n");
    CHECK(slow_attention(l) == "attention of " + slow + "; these are several times slower");
  }
}

TEST_CASE("cuDNN does what its kernels take") {
  CHECK(text({.head_dim = 72}) == "attention: 3 layers by cuDNN\n");
  CHECK(text({.head_dim = 128, .seq = 128}) == "attention: 3 layers by cuDNN\n");
  CHECK(text({.head_dim = 32, .cp = 2}) == "attention: 3 layers by cuDNN\n");
}

TEST_CASE("heads of 64 elements are rankc's on Hopper") {
  const std::string ours = "attention: 3 layers by rankc's kernels for H100s and H200s, on other GPUs by ";
  CHECK(text({}) == ours + "cuDNN\n");
  CHECK(text({.cp = 2}) == ours + "cuDNN\n");
  CHECK(text({.seq = 8192}) == ours + "cuDNN\n");
  CHECK(text({.seq = 16384}) ==
        "attention: 3 layers by cuDNN, forward on H100s and H200s by rankc's kernels\n");
  CHECK(text({.seq = 192}) ==
        ours + "slow ones: a rank has 192 tokens of a sequence, and cuDNN's take multiples of 128\n");
}

TEST_CASE("documents are rankc's on Hopper") {
  for (const shape s : {shape{.end_of_document = 0},
                        {.head_dim = 128, .end_of_document = 0},
                        {.seq = 64, .end_of_document = 0},
                        {.seq = 512, .cp = 4, .end_of_document = 0}})
    CHECK(text(s) ==
          "attention: 3 layers by rankc's kernels for H100s and H200s, on other GPUs by slow ones: tokens "
          "attend "
          "to their own documents, which cuDNN's are not given\n");
}

TEST_CASE("rankc's own kernels do the rest, and why is said") {
  const std::string own = "attention: 3 layers by rankc's own kernels: ";
  CHECK(text({.head_dim = 12}) == own + "the head dim is 12, and cuDNN's take multiples of 8 up to 128\n");
  CHECK(text({.seq = 96}) == own + "a rank has 96 tokens of a sequence, and cuDNN's take multiples of 128\n");
  CHECK(text({.seq = 256, .cp = 2}) ==
        own + "a rank has 128 tokens of a sequence, and cuDNN's take multiples of 256\n");
  CHECK(text({.head_dim = 72, .end_of_document = 0}) ==
        own + "tokens attend to their own documents, which cuDNN's are not given\n");
  CHECK(text({.seq = 384, .cp = 4, .end_of_document = 0}) ==
        own + "tokens attend to their own documents, which cuDNN's are not given\n");
  CHECK(text({}, dtype::f32) == own + "they compute in f32\n");
}

TEST_CASE("a program for the host has no line of it") { CHECK(text({}, dtype::f32, target::host).empty()); }

}  // namespace attention_engines_test
