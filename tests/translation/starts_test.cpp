// SPDX-License-Identifier: Apache-2.0
// A text with other calls than the proven ones does not start. Statements of a text are altered one by one,
// and the runtime's own check refuses each by the name of a call.
#include "mutate_text.hpp"
#include "texts.hpp"
#include "../example_plans.hpp"
#include "../some_of.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/gate.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <filesystem>
#include <regex>

namespace {

using namespace translation;
using rankc::runtime::dtype;

struct alteration {
  std::string what;
  fault planted;
  std::string named;  // a part of the sentence
};

/// The functions that these files run as structs, with the number of statements for each.
std::map<std::string, int> statements_of(const files& all) {
  static const std::regex head("(^|\n) *run\\([a-z_0-9]+, ([a-z_0-9]+)\\{");
  std::map<std::string, int> count;
  for (const auto& [name, text] : all)
    for (std::sregex_iterator m(text.begin(), text.end(), head), end; m != end; ++m) ++count[(*m)[2]];
  return count;
}

/// Move the first operand that has an address by 64 bytes.
std::string displaced(statement s) {
  for (std::string& a : s.arguments) {
    if (a.starts_with(".over")) continue;
    const std::string member = a.substr(1, a.find(' ') - 1);
    return with(member, "std::remove_cvref_t<decltype(@)>{(@).where + 64}")(std::move(s));
  }
  throw std::logic_error(s.name + " has no operands");
}
/// The statement preceded by a displaced copy.
std::string doubled_elsewhere(const statement& s) { return displaced(s) + "\n" + s.text(); }

/// Alter each statement in `n_ways` of four ways, which alternate.
std::vector<alteration> of_each_statement(const files& all, std::size_t n_ways) {
  const struct {
    const char* what;
    std::function<std::string(statement)> edit;
    bool names_own;  // the refusal names the altered call; otherwise the call after it
  } ways[]{{"displaced", displaced, true},
           {"twice", doubled(), false},
           {"dropped", dropped(), false},
           {"and another one", doubled_elsewhere, true}};
  std::vector<alteration> list;
  std::size_t turn = 0;
  for (const auto& [function, count] : statements_of(all))
    for (int n = 0; n < std::min(count, 2); ++n, ++turn)
      for (std::size_t w = 0; w < n_ways; ++w) {
        const auto& way = ways[(turn + w) % 4];
        list.push_back({function + " " + std::to_string(n) + " " + way.what, in_call(function, n, way.edit),
                        way.names_own ? " " + function : " of "});
      }
  return list;
}

/// Faults in waits and records.
std::vector<alteration> of_order() {
  std::vector<alteration> list;
  for (int n = 0; n < 8; ++n)
    list.push_back({"wait " + std::to_string(n) + " dropped", in_call("wait", n, dropped()), "waiting for"});
  for (int n = 0; n < 3; ++n)
    list.push_back(
        {"record " + std::to_string(n) + " dropped", in_call("record", n, dropped()), "waiting for"});
  list.push_back({"a wait too many",
                  in_call("wait", 5, [](const statement& s) { return s.text() + "\nwait(compute, {0});"; }),
                  "waiting for"});
  list.push_back({"a wait on another lane", in_call("wait", 3, argument(0, "reduce")), "waiting for"});
  return list;
}

/// Faults in other parts of the text for eight ranks: lanes, communicators, sites, sizes, numbers, tables.
std::vector<alteration> of_eight() {
  return {
      {"a lane", in_call("all_reduce", 3, on("to_next")), " all_reduce in "},
      {"lanes in another order",
       matched("auto \\[compute, reduce, to_next, from_next\\]",
               "auto [compute, reduce, from_next, to_next]"),
       " on lane from_next"},
      {"a direction", in_call("send", 0, on("from_next")), " send in "},
      {"a group", in_call("all_gather", 0, with("over", "over::pp")), " all_gather in "},
      {"a group without a communicator", in_call("all_gather", 0, with("over", "over::dp")),
       " all_gather in "},
      {"a communicator's members", matched("(\\.across = \\{\\{2, )1", "$1 2"), " in "},
      {"a pair's ranks", matched("(\"to_next\", \"from_prev\", )0, 1", "$1 1, 0"), " in "},
      {"a communicator's name", matched("(along_tp\\[\\]\\{\\s*\\{\")tp", "$1dp"), " in "},
      {"a site's index", in_call("send", 0, with("site", "{99, \"F0: stage 0 -> 1\"}")), " send in "},
      {"a site's name", in_call("send", 0, with("site", "{14, \"F1\"}")), " send in "},
      {"a message's bytes", in_call("send", 0, with("data", "matrix<real, 1, 16>{@.where}")), " send in "},
      {"a bucket's size", in_call("all_reduce", 2, with("data", "vector<wide, 16>{@.where}")),
       " all_reduce in "},
      {"a maximum summed", matched(",\\s*\\.how = reduction::max", ""), " all_reduce in "},
      {"another eps", in_call("layer_norm", 0, with("eps", "1e-06")), " layer_norm in "},
      {"a sum overwritten",
       in_call("linear_dw", 0, with("into", "@ == store::add ? store::overwrite : store::add")),
       " linear_dw in "},
      {"ranges of the norm", in_call("sum_squares", 0, with("of", "squares_whole")), " sum_squares in "},
      {"a decay", matched("(range updates[^;]*), true\\}", "$1, false}"), " adamw in "},
      {"a range of the optimizer", matched("(range updates\\[\\]\\{\\{0, )", "$1 32 + "), " adamw in "},
      {"a range twice", matched("(range updates\\[\\]\\{)(\\{[^}]*\\})", "$1$2, $2"), " adamw in "},
      {"a rank's rows", in_call("embedding", 0, with("first", "0")), " embedding in "},
      {"a rank's rows as the last rank has them", in_call("embedding", 0, with("first", "128")),
       " embedding in "},
      {"a table's tokens", matched("(\\.tokens = \\{)", "$1 256 + "), "the offsets in its tables"},
      {"a table's norm", matched("(\\.norm = \\{)", "$1 256 + "), "the offsets in its tables"},
      {"a table's loss", matched("(\\.reads_targets = true,\\s+\\.loss = \\{)", "$1 256 + "),
       "the offsets in its tables"},
      {"a rank's coordinates",
       matched("(rank_rule mesh\\{[^;]*\\.dp = \\{2, )2(\\}, \\.tp = \\{2, )1", "$1 1$2 2"),
       "the rows that its ranks load"},
      {"the number of microbatches", matched("(\\.microbatches = )4", "$1 2"),
       "the rows that its ranks load"},
      {"the rows of a microbatch", matched("(\\.microbatches = 4, \\.rows = )2", "$1 1"),
       "the rows that its ranks load"},
      {"the arena", matched("(\\.arena_bytes = )", "$1 1 + "), "the offsets in its tables"},
      {"a program without its proof", matched("\\.proven = proven,", ""),
       "has no proven calls of the training step"},
      {"a rank's tokens", in_call("position", 0, with("first", "0")), " position in "},
      {"a rank's columns", in_call("exp_sums", 0, with("first", "0")), " exp_sums in "},
      {"an offset in a slot", matched("(n2_statistics\\{base \\+ )", "$1 64 + "), " layer_norm in "},
      {"a parameter's place", matched("( wk\\{own\\[)", "$1 16 + "), " linear in "},
      {"an offset in the workspace", matched("(d_up\\{work \\+ )", "$1 64 + "), " linear_dx in "},
      {"a layer's base", matched("(\\.own = \\{weights\\[)", "$1 16 + "), " in "},
      {"a microbatch's tokens", matched("ids_of\\(1\\)", "ids_of(0)"), " embedding in "},
      {"a slot", matched("stage_0::slots\\[1\\]", "stage_0::slots[0]"), " in "},
      {"two sizes swapped", matched("(size<)rows(>, \\.seq = size<)seq", "$1seq$2rows"), " attention in "},
  };
}

/// A fault in the element type, in a text with bf16 activations: the same bytes are summed as another type.
std::vector<alteration> of_types() {
  const std::string data = "std::remove_cvref_t<decltype(@)>",
                    other = "std::conditional_t<sizeof(" + data + "::element) == 2, vector<wide, " + data +
                            "::count / 2>, vector<real, 2 * " + data + "::count>>{(@).where}";
  return {{"a sum of other elements", in_call("all_reduce", 1, with("data", other)), " all_reduce in "}};
}

/// Faults in the tables of sharded weights.
std::vector<alteration> of_shards() {
  return {
      {"a shard's place where it is gathered", matched("(shard_range [a-z_0-9]*\\[\\]\\{\\{)", "$1 16 + "),
       " all_gather in "},
      {"a shard's own place", matched("(shard_range [a-z_0-9]*\\[\\]\\{\\{[0-9]+, )", "$1 16 + "), " in "},
      {"a shard's size", matched("(shard_range [a-z_0-9]*\\[\\]\\{\\{[0-9]+, [0-9]+, )", "$1 16 + "), " in "},
      {"a shard left out", matched("(shard_range [a-z_0-9]*\\[\\]\\{)\\{[^}]*\\},", "$1"), " in "},
  };
}

/// A shift of as many bytes, with the sizes of its two tensors exchanged.
std::string with_sizes_exchanged(statement s) {
  const auto value = [&](const std::string& member) { return s[member].substr(member.size() + 4); };
  const std::string first = value("to"), second = value("second_to");
  const auto give = [&](const std::string& member, const std::string& like) {
    s[member] =
        fmt::format(".{} = std::remove_cvref_t<decltype({})>{{({}).where}}", member, like, value(member));
  };
  give("to", second);
  give("from", second);
  give("second_to", first);
  give("second_from", first);
  return s.text();
}

/// Faults in what ranks of a ring send on.
std::vector<alteration> of_rings() {
  return {
      {"sizes of keys and values exchanged", in_call("shift", 0, with_sizes_exchanged), " shift in "},
      {"keys where values lie", in_call("shift", 0, swapped("from", "to")), " shift in "},
  };
}

/// Faults in row-pipelined GEMMs.
std::vector<alteration> of_parts() {
  return {
      {"all rows for each part",
       matched("\\.y = part\\(o_proj\\), \\.x = part\\(s\\.o\\)", ".y = o_proj, .x = s.o"), " linear in "},
      {"a later part that overwrites the sum", matched("\\.into = part\\(into\\)", ".into = into"),
       " linear_dx_gelu_bias in "},
  };
}

/// Faults in tables by which the trainer fills the arena, and in the flags of the kernels.
std::vector<alteration> of_tables(bool has_copy) {
  const std::string tables = "the offsets in its tables";
  std::vector<alteration> list{
      {"a parameter's element", matched("(\"layers\\.#\\.wq\", [^}]*, )0(, fill)", "$1 16$2"), tables},
      {"a parameter's name", matched("\"layers\\.#\\.wq\"", "\"layers.#.wk\""), tables},
      {"a parameter left out", matched("\\{\"layers\\.#\\.wq\"[^}]*\\},", ""), tables},
      {"the first moments", matched("(\\.first_moment = \\{)", "$1 256 + "), tables},
      {"the weights", matched("(\\.weights = \\{)", "$1 256 + "), tables},
      {"another order of sums", matched("(\\.deterministic = )false", "$1 true"), "`deterministic` differ"},
  };
  if (has_copy) list.push_back({"the working copy", matched("(\\.working_copy = \\{)", "$1 256 + "), tables});
  return list;
}

/// Faults in the table of rotary positions.
std::vector<alteration> of_ropes() {
  const std::string tables = "the offsets in its tables";
  return {
      {"a rotary table", matched("(rope_table [a-z_0-9]*\\[\\]\\{\\{\\{)", "$1 256 + "), tables},
      {"a rotary table's positions", matched("(rope_table [^;]*\\}, )8,", "$1 16,"), tables},
      {"a rotary table's base", matched("(rope_table [^;]*, )10000", "$1 500000"), tables},
  };
}

/// Rename the struct of a row, and insert a text before its members.
fault with_other_struct(const std::string& row, const std::string& member) {
  return [=](files& all) {
    for (auto& [name, text] : all) {
      text =
          std::regex_replace(text, std::regex("struct " + row + " \\{"), "struct " + row + "_2 {" + member);
      text = std::regex_replace(text, std::regex("([^:_a-z])" + row + "\\{"), "$1" + row + "_2{");
    }
  };
}

/// The same calls with the hashes for the kernels of the other target.
alteration of_target(const subject& of) {
  const auto replace = [of](files& all) {
    for (const bool trains : {true, false}) {
      rankc::codegen::program p = proven(of, trains);
      const std::vector<rankc::codegen::step_hash> own = hash_calls(p);
      p.calls.on_host = !p.calls.on_host;
      const std::vector<rankc::codegen::step_hash> other = hash_calls(p);
      for (std::size_t i = 0; i < own.size(); ++i) {
        REQUIRE(own[i].after == other[i].after);
        matched(fmt::format("{:016x}", own[i].hash), fmt::format("{:016x}", other[i].hash))(all);
      }
    }
  };
  return {"another target", replace, "its target or `deterministic` differ"};
}

/// Changes without a fault, and one that the check of calls cannot see: kernels.hpp passes the members of a
/// struct to its kernel in another order. This folder's comparison sees it.
std::vector<alteration> not_refused() {
  return {
      {"nothing", [](files&) {}, ""},
      {"a wait twice", in_call("wait", 5, doubled()), ""},
      {"a struct whose name is taken",
       with_other_struct("linear_dx", " static constexpr const char* row_name = \"linear_dx\";"), ""},
      {"sizes of a kernel", matched("(::linear<T>\\([^;]*, )In, Out", "$1 Out, In"), ""},
  };
}

/// Layers with rotary positions.
rankc::plan_data llama_plan() {
  constexpr rankc::models::llama llama{
      .layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 32, .vocab = 64, .theta = 10000};
  constexpr rankc::training recipe{.seq = 8, .global_batch = 4, .precision = rankc::f32};
  return make_plan("llama", llama, rankc::parallel_dims{}, rankc::schedules::gpipe{1}, recipe,
                   rankc::clusters::cpu);
}

/// A decoder with larger value heads than key heads.
struct uneven_heads {
  constexpr void check(rankc::report&) const {}
  constexpr rankc::model_sizes sizes() const {
    return {.layers = 1,
            .hidden = 16,
            .heads = 2,
            .kv_heads = 2,
            .ffn = 32,
            .vocab = 64,
            .rotary = true,
            .head_dim = 8};
  }
  constexpr auto stack() const {
    const rankc::models::decoder d{.sizes = sizes(), .theta = 10000};
    return sequential(d.embedding(), rankc::repeat{1, d.block({.value_dim = 16})}, d.head());
  }
};

/// Such a decoder on a ring of two ranks.
rankc::plan_data ring_plan() {
  constexpr rankc::parallel_dims dims{.world = 2, .cp = 2, .cp_attention = rankc::cp_attention::ring};
  constexpr rankc::training recipe{.seq = 8, .global_batch = 2, .precision = rankc::f32};
  return make_plan("ring", uneven_heads{}, dims, rankc::schedules::gpipe{1}, recipe, rankc::clusters::cpu);
}

struct altered {
  subject of;
  std::vector<alteration> all;
};

altered altered_text(rankc::plan_data plan, bool cuda, const std::string& folder) {
  const bool sharded = plan.name == "gpt_sharded", turned = plan.name == "llama", rings = plan.name == "ring";
  plan.name = rankc::detail::keep_name(std::string(plan.name) + "_altered");
  altered made{make_subject(std::move(plan), cuda, cuda ? dtype::bf16 : dtype::f32),
               turned || rings ? std::vector<alteration>() : not_refused()};
  REQUIRE(write(made.of, folder) == "");
  const auto add = [&](const std::vector<alteration>& more) {
    made.all.insert(made.all.end(), more.begin(), more.end());
  };
  if (turned) add(of_ropes());
  if (sharded) add(of_shards());
  if (rings) add(of_rings());
  if (turned || sharded || rings) return made;
  add(of_each_statement(read_text(folder + "/" + std::string(made.of.plan.name)), cuda ? 3 : 2));
  add(of_order());
  add(cuda ? of_types() : of_eight());
  if (cuda) add(of_parts());
  add(of_tables(cuda));
  add({of_target(made.of)});
  add({{"another row of a name with a number", with_other_struct("position_grad", ""),
        " position_grad_2 in "}});
  return made;
}

/// Every twelfth alteration, or all. Each needs a run of the compiler.
void keep_some(std::vector<altered>& texts) {
  if (rankc::test::plants_all()) return;
  std::size_t n = 0;
  for (altered& t : texts) std::erase_if(t.all, [&](const alteration&) { return n++ % 12 > 0; });
}

std::vector<altered> altered_texts(const std::string& folder) {
  std::vector<altered> list;
  for (const bool cuda : {false, true}) {
    for (const char* name : {"gpt_dp2_tp2_pp2", "gpt_sharded"})
      list.push_back(altered_text(examples::plan(name), cuda, folder));
  }
  list.push_back(altered_text(llama_plan(), false, folder));
  list.push_back(altered_text(ring_plan(), false, folder));
  keep_some(list);
  return list;
}

}  // namespace

TEST_CASE("starts: a text with an altered call is refused by the call's name") {
  const std::string folder = std::filesystem::absolute("translation_starts");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::vector<altered> texts = altered_texts(folder);
  const auto name_of = [](std::size_t t, std::size_t i) {
    return "altered_" + std::to_string(t) + "_" + std::to_string(i);
  };
  std::vector<std::string> names[2];
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::string name(texts[t].of.plan.name);
    for (std::size_t i = 0; i < texts[t].all.size(); ++i) {
      CAPTURE(texts[t].all[i].what);
      files all = read_text(folder + "/" + name);
      REQUIRE_NOTHROW(texts[t].all[i].planted(all));
      write_text(std::move(all), folder, name, name_of(t, i));
      names[texts[t].of.cuda].push_back(name_of(t, i));
    }
  }
  const objects compiled[2]{compile(folder, names[0], false, 2), compile(folder, names[1], true, 2)};
  int refused[2]{};
  for (std::size_t t = 0; t < texts.size(); ++t)
    for (std::size_t i = 0; i < texts[t].all.size(); ++i) {
      const alteration& a = texts[t].all[i];
      const bool cuda = texts[t].of.cuda;
      CAPTURE(texts[t].of.plan.name);
      CAPTURE(a.what);
      const std::string sentence = refusal_of(load(compiled[cuda], name_of(t, i)));
      if (a.named.empty()) {
        CHECK(sentence == "");
        continue;
      }
      ++refused[cuda];
      const bool tells = sentence.starts_with("RC5145: ") || sentence.starts_with("RC5146: ") ||
                         sentence.starts_with("RC5149: ");
      CHECK_MESSAGE((tells && sentence.find(a.named) != sentence.npos), sentence);
    }
  MESSAGE("refused: ", refused[0], " on the host, ", refused[1], " with CUDA");
  const int least = rankc::test::plants_all() ? 100 : 7;
  CHECK(refused[0] >= least);
  CHECK(refused[1] >= least);
  std::filesystem::remove_all(folder);
}

TEST_CASE("starts: a certificate has the calls of its text, where some ranks stand for all too") {
  constexpr rankc::models::gpt2 gpt{.layers = 4, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64};
  constexpr rankc::parallel_dims dims{
      .world = 128, .dp_replicate = 16, .tp = 2, .pp = 4, .sequence_parallel = true};
  constexpr rankc::training recipe{.seq = 8, .global_batch = 64, .precision = rankc::f32};
  const rankc::plan_data world =
      make_plan("world", gpt, dims, rankc::schedules::one_f_one_b{4}, recipe, rankc::clusters::h200<16>);
  for (const rankc::plan_data& plan : {world, examples::plan("gpt_sharded")}) {
    CAPTURE(plan.name);
    namespace codegen = rankc::codegen;
    const codegen::lowered l = codegen::lower(plan, dtype::f32, codegen::target::host);
    const std::vector<codegen::step_hash> of_text = codegen::check_or_throw(l).hashes;
    std::vector<codegen::proven> steps;
    for (const auto expand : {codegen::expand_train, codegen::expand_evaluate}) {
      codegen::program p = expand(l);
      const codegen::verdict v = codegen::prove(p);
      steps.push_back({std::move(p), v});
    }
    std::vector<codegen::step_hash> of_certificate;
    const codegen::certified c = codegen::read_certificate(codegen::certificate(steps));
    for (const codegen::proven& s : c.steps)
      for (const codegen::step_hash& f : codegen::hash_calls(s.program)) of_certificate.push_back(f);
    REQUIRE(of_text.size() >= 2 * static_cast<std::size_t>(plan.dims.pp));
    REQUIRE(of_certificate.size() == of_text.size());
    for (std::size_t i = 0; i < of_text.size(); ++i) {
      CHECK(of_text[i].hash == of_certificate[i].hash);
      CHECK(of_text[i].after == of_certificate[i].after);
      CHECK(of_text[i].rank == of_certificate[i].rank);
    }
  }
}
