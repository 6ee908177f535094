// SPDX-License-Identifier: Apache-2.0
// Tests the tester: it finds faults in a text and in a proven program, each with its message.
#include "compare.hpp"
#include "mutate_program.hpp"
#include "mutate_text.hpp"
#include "texts.hpp"

#include <doctest/doctest.h>
#include <routing/plans.hpp>

#include <algorithm>
#include <filesystem>

#include "../example_plans.hpp"
#include "../some_of.hpp"

namespace {

using namespace translation;
using rankc::runtime::dtype;

/// The texts that get faults: on eight ranks; on a GPU, with packed columns; with a second computing lane;
/// with router biases; and with row-pipelined GEMMs.
std::vector<subject> subjects() {
  std::vector<subject> out;
  out.push_back(make_subject(examples::plan("gpt_pp2"), true, dtype::bf16));
  out.push_back(make_subject(examples::plan("gpt_dp2_tp2_pp2"), false, dtype::f32));
  out.push_back(make_subject(examples::plan("gpt_dual_pipe_v"), false, dtype::f32));
  for (split_plan& p : routing::plans())
    if (p.plan.name == "routing_both_shards") out.push_back(make_subject(p.plan, false, dtype::f64));
  rankc::plan_data by_rows = examples::plan("gpt_dp2_tp2_pp2");
  by_rows.name = "gpt_by_rows";
  out.push_back(make_subject(by_rows, true, dtype::bf16));
  return out;
}
enum { packed, eight, beside, biased, moving };  // in the order of subjects()

struct mutant {
  const char* what;
  int of;
  fault planted;
  const char* said;  // a part of the sentence
};

const std::vector<mutant> mutants{
    {"nothing", eight, [](files&) {}, ""},
    {"nothing", packed, [](files&) {}, ""},
    {"nothing", beside, [](files&) {}, ""},
    {"operands of one size swapped", eight, in_call("layer_norm_dx", 0, swapped("dy", "x")),
     "operand 2 of the text's layer_norm_dx"},
    {"output and input swapped", eight, in_call("gelu", 0, swapped("y", "x")),
     "operand 1 of the text's gelu"},
    {"moments swapped", eight, in_call("adamw", 0, swapped("first_moment", "second_moment")),
     "operand 3 of the text's adamw"},
    {"a wait dropped", eight, in_call("wait", 0, dropped()), "the text waits for nothing where"},
    {"the last wait dropped", eight, in_call("wait", 30, dropped()), "the text waits for"},
    {"a wait twice, which is no fault", eight, in_call("wait", 5, doubled()), ""},
    {"a wait too many", eight,
     in_call("wait", 5, [](const statement& s) { return s.text() + "\nwait(compute, {0});"; }),
     "the text waits for op"},
    {"a wait on another lane", eight, in_call("wait", 3, argument(0, "reduce")), "the text waits"},
    {"a record dropped", eight, in_call("record", 2, dropped()), "which is not recorded before"},
    {"a record too early", eight, matched("( *[a-z_0-9:]*backward\\([^;]*;\n)( *record\\([^;]*;)", "$2 $1"),
     "the text waits for op"},
    {"a call dropped", eight, in_call("bias", 1, dropped()), "where bias was proven"},
    {"the last call dropped", eight, in_call("adamw", 0, dropped()), "the text ends where adamw was proven"},
    {"a call doubled", eight, in_call("gelu", 0, doubled()), "the text calls gelu where"},
    {"a call too many", eight, in_call("adamw", 0, doubled()), "where the end was proven"},
    {"another collective", eight,
     in_call("all_gather", 0,
             [](statement s) {
               s.name = "reduce_scatter";
               return swapped("to", "from")(std::move(s));
             }),
     "calls reduce_scatter where all_gather"},
    {"a size too large", eight, matched("(host::linear<T>\\([^;]*, )In,", "$1 In + 1,"),
     "the text's linear reads"},
    {"a size too small", eight, matched("(host::bias_grad<T>\\([^;]*, )Tokens,", "$1 Tokens - 1,"),
     "the text's bias_grad reads"},
    {"another eps", eight, in_call("layer_norm", 0, with("eps", "1e-06")),
     "the text's layer_norm is given 1e-06 where 1e-05"},
    {"another scale of the loss", packed, in_call("softmax_sums_grad", 0, with("number", "1.0")),
     "the text's softmax_sums_grad is given 1 where"},
    {"two sizes swapped", eight, matched("(host::linear<T>\\([^;]*, )In, Out", "$1 Out, In"),
     "the text's linear reads"},
    {"a sum overwritten", eight,
     in_call("linear_dw", 0, with("into", "@ == store::add ? store::overwrite : store::add")),
     "the text's linear_dw reads"},
    {"a group", eight, in_call("all_gather", 0, with("over", "over::pp")), "the text uses communicator"},
    {"a group without a communicator", eight, in_call("all_gather", 0, with("over", "over::dp")),
     "has no communicator over dp on lane compute"},
    {"a lane", eight, in_call("all_reduce", 3, on("to_next")), "on lane to_next"},
    {"a direction", eight, in_call("send", 0, on("from_next")), "goes the other way"},
    {"lanes in another order", eight,
     matched("auto \\[compute, reduce, to_next, from_next\\]", "auto [compute, reduce, from_next, to_next]"),
     "goes the other way"},
    {"a site's index", eight, in_call("send", 0, with("site", "{99, \"F0: stage 0 -> 1\"}")),
     "the text names site 99"},
    {"a site's name", eight, in_call("send", 0, with("site", "{14, \"F1\"}")), "\"F1\" where"},
    {"a message's bytes", eight, in_call("send", 0, with("data", "matrix<real, 1, 16>{@.where}")),
     "the text's send reads"},
    {"a message's data", eight, in_call("receive", 0, with("data", "decltype(@){@.where + 256}")),
     "operand 1 of the text's receive"},
    {"a bucket's size", eight, in_call("all_reduce", 2, with("data", "vector<wide, 16>{@.where}")),
     "the text's all_reduce reads"},
    {"a maximum summed", eight, matched(",\\s*\\.how = reduction::max", ""),
     "calls all_reduce where all_reduce_max"},
    {"ranges of the norm", eight, in_call("sum_squares", 0, with("of", "squares_whole")),
     "the text's sum_squares reads"},
    {"a rank's rows", eight, in_call("embedding", 0, with("first", "0")), "the first row is 0 where"},
    {"a rank's tokens", eight, in_call("position", 0, with("first", "0")), "the first token is 0 where"},
    {"a rank's columns", eight, in_call("exp_sums", 0, with("first", "0")), "the first column is 0 where"},
    {"a decay", eight, matched("(range updates[^;]*), true\\}", "$1, false}"), "the decay of"},
    {"a range of the optimizer", eight, matched("(range updates\\[\\]\\{\\{0, )", "$1 32 + "),
     "the decay of"},
    {"a range twice", eight, matched("(range updates\\[\\]\\{)(\\{[^}]*\\})", "$1$2, $2"), "twice, where"},
    {"nothing", biased, [](files&) {}, ""},
    {"a bias's step", biased, matched("(range updates[^;]*\\{)0.001, ", "$1 0.002, "),
     "moves a bias by 0.002 toward 8 where 0.001 and 8 were proven"},
    {"a bias's mean", biased, matched("(range updates[^;]*\\{0.001, )8", "$1 7"), "toward 7 where"},
    {"a bias that is trained", biased, matched("(range updates[^;]*), \\{0.001, 8\\}", "$1"),
     "moves a bias by 0 toward 0 where"},
    {"a norm that is moved", biased, matched("(range updates[^;]*, false)\\}", "$1, {0.001, 8}}"), "moves"},
    {"an offset in a slot", eight, matched("(n2_statistics\\{base \\+ )", "$1 64 + "),
     "operand 2 of the text's layer_norm"},
    {"a parameter's place", eight, matched("( wk\\{own\\[)", "$1 16 + "), "operand 3 of the text's linear"},
    {"an offset in the workspace", eight, matched("(d_up\\{work \\+ )", "$1 64 + "),
     "operand 1 of the text's linear_dx"},
    {"a layer's base", eight, matched("(\\.own = \\{weights\\[)", "$1 16 + "), "operand"},
    {"a microbatch's tokens", eight, matched("ids_of\\(1\\)", "ids_of(0)"),
     "operand 2 of the text's embedding"},
    {"a slot", eight, matched("stage_0::slots\\[1\\]", "stage_0::slots[0]"), "operand"},
    {"a table's tokens", eight, matched("(\\.tokens = \\{)", "$1 256 + "), "\"begin\": the tables have"},
    {"a table's parameter", eight, matched("(\"layers.#.wq\", )64", "$1 32"), "\"begin\": the tables have"},
    {"a table's norm", eight, matched("(\\.norm = \\{)", "$1 256 + "), "\"end\": the tables have"},
    {"the arena", eight, matched("(\\.arena_bytes = )", "$1 1 + "), "the text's arena has"},
    {"a communicator's members", eight, matched("(\\.across = \\{\\{2, )1", "$1 2"), "of ranks 0, 2 where"},
    {"a communicator's name", eight, matched("(\\.place = \\{\\{\")pp", "$1dp"),
     "the text uses communicator \"tp at dp 0 dp 0\""},
    {"the plan's hash", eight, matched("(\\.plan_hash = )", "$1 1 + "), "the text is of plan"},
    {"columns swapped", packed, in_call("attention", 0, swapped("k", "v")),
     "operand 5 of the text's attention"},
    {"columns of gradients swapped", packed, in_call("attention_grad", 0, swapped("dk", "dv")),
     "operand 2 of the text's attention_grad"},
    {"a stride", packed, matched("(cuda::attention<T>\\([^;]*, )Q_stride", "$1 Q_stride + 8"),
     "the text's attention reads"},
    {"a stride of keys", packed, matched("(cuda::attention_grad<T>\\([^;]*)K_stride", "$1 K_stride - 8"),
     "the text's attention_grad reads"},
    {"a stride of values", packed, matched("(cuda::attention_grad<T>\\([^;]*)V_stride", "$1 V_stride - 8"),
     "the text's attention_grad reads"},
    {"elements of value heads", packed,
     matched("(cuda::attention_grad<T>\\([^;]*)Value_dim", "$1 Value_dim + 8"),
     "the text's attention_grad reads"},
    {"heads for width", packed,
     matched("(cuda::attention<T>\\([^;]*)Heads, Kv_heads, Dim", "$1 Dim, Kv_heads, Heads"),
     "the text's attention writes"},
    {"part of a packed weight", packed, matched("(cuda::linear_bias<T>\\([^;]*, )Out", "$1 Out - 128"),
     "the text's linear_bias reads"},
    {"one of two sums overwritten", packed,
     in_call("linear_dx_gelu_bias", 0, with("into", "@ == store::add ? store::overwrite : store::add")),
     "the text's linear_dx_gelu_bias reads"},
    {"a type", packed, matched("cuda::linear<T>", "cuda::linear<float>"), "the text's linear reads"},
    {"the copy that layers read", packed, matched("\\{working_copy\\[", "{weights["),
     "operand 3 of the text's"},
    {"where the copy is written", packed, matched("(\\.working_copy = \\{)", "$1 64 + "),
     "\"begin\": the tables have"},
    {"in line, not beside", beside,
     matched("act\\(overlap, \"[^\"]*\", (\\[\\]\\(const lane& on\\) \\{[^}]*\\})\\);", "($1)(compute);"),
     "on lane compute where overlap"},
    {"on the lane, and by no action", beside,
     matched("act\\(overlap, \"[^\"]*\", (\\[\\]\\(const lane& on\\) \\{[^}]*\\})\\);", "($1)(overlap);"),
     "is put on lane overlap by no action"},
    {"the other's workspace", beside, matched("work_beside, ", "work, "), "operand"},
    {"nothing", moving, [](files&) {}, ""},
    {"rows that do not move", moving,
     matched(
         "run_by_rows\\(on, (all_gather[^;]*\\}\\}),\\s*\\[&\\]\\(auto part\\) \\{ return ([^;]*); \\}\\);",
         "const auto part = [](auto whole) { return whole; };\n  run(on, $1);\n  run(on, $2);"),
     "the text's all_gather is not beside a product where it was proven beside one"},
    {"what runs while rows move, before", moving,
     matched("run_by_rows\\(on, (all_gather[^;]*\\}\\},\\s*\\[&\\]\\(auto part\\) \\{ return [^;]*; "
             "\\}),\\s*(linear_dw[^;]*\\})\\);",
             "run(on, $2);\n  run_by_rows(on, $1);"),
     "the text calls linear_dw where all_gather was proven"},
    {"rows of another operand", moving,
     matched("(run_by_rows\\(on, all_gather[^;]*\\.x = part\\()s\\.h1", "$1 s.h2"), "operand"},
    {"another slot", beside, matched("stage_0::slots\\[3\\]", "stage_0::slots[2]"), "operand"},
};

bool is_no_fault(const mutant& m) { return std::string(m.said).empty(); }

}  // namespace

TEST_CASE("mutants: a fault planted in a text is found") {
  const std::string folder = std::filesystem::absolute("translation_mutants");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::vector<subject> of = subjects();
  std::vector<files> texts;
  for (const subject& s : of) {
    REQUIRE(write(s, folder) == "");
    texts.push_back(read_text(folder + "/" + std::string(s.plan.name)));
  }
  std::vector<std::string> names[2];
  const auto name_of = [](std::size_t i) { return "mutant_" + std::to_string(i); };
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < mutants.size(); ++i)
    if (rankc::test::takes(i) || is_no_fault(mutants[i])) taken.push_back(i);
  for (const std::size_t i : taken) {
    CAPTURE(std::string(mutants[i].what));
    const subject& s = of[static_cast<std::size_t>(mutants[i].of)];
    files text = texts[static_cast<std::size_t>(mutants[i].of)];
    REQUIRE_NOTHROW(mutants[i].planted(text));
    write_text(std::move(text), folder, std::string(s.plan.name), name_of(i));
    names[s.cuda].push_back(name_of(i));
  }
  const objects compiled[2]{compile(folder, names[0], false, 2), compile(folder, names[1], true, 2)};
  for (const std::size_t i : taken) {
    const subject& s = of[static_cast<std::size_t>(mutants[i].of)];
    CAPTURE(std::string(mutants[i].what));
    const std::string sentence = hold(load(compiled[s.cuda], name_of(i)), s);
    if (is_no_fault(mutants[i])) CHECK(sentence == "");
    else CHECK_MESSAGE(sentence.find(mutants[i].said) != sentence.npos, sentence);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("mutants: a fault planted in a proven program is found") {
  const std::string folder = std::filesystem::absolute("translation_proven");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::vector<subject> of = subjects();
  std::vector<std::string> names[2];
  for (const subject& s : of) {
    REQUIRE(write(s, folder) == "");
    names[s.cuda].emplace_back(s.plan.name);
  }
  const objects compiled[2]{compile(folder, names[0], false, 2), compile(folder, names[1], true, 2)};
  int faults = 0;
  for (const subject& s : of) {
    const text t = load(compiled[s.cuda], std::string(s.plan.name));
    for (const bool trains : {true, false}) {
      const rankc::codegen::program p = proven(s, trains);
      std::vector<recording> recorded;
      for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) recorded.push_back(t.record(r, trains));
      for (int seed = 0; seed < rankc::test::some_of(600); ++seed) {
        rankc::codegen::program changed = p;
        const program_fault planted = plant(changed, seed);
        if (planted.rank < 0) continue;
        ++faults;
        CAPTURE(s.plan.name);
        CAPTURE(planted.what);
        const std::string tables = compare_tables(*t.about, changed, planted.rank, trains);
        CHECK((tables + compare(recorded[static_cast<std::size_t>(planted.rank)], changed, planted.rank)) !=
              "");
      }
    }
  }
  CHECK(faults > rankc::test::some_of(2000));
  std::filesystem::remove_all(folder);
}
