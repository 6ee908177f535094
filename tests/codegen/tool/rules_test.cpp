// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/rankc.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "answers.hpp"
#include "commands.hpp"
#include "rules_text.hpp"

namespace rankc::tool {

namespace {

/// The rules that the sources name, as "RC401" or refuse(out, 401).
std::set<int> used_ids() {
  static const std::regex id(R"((?:\bRC|\brefuse\([\w.]+, ?|\(out, ?)([1-5]\d\d)\b)");
  std::set<int> used;
  for (const char* part : {"dsl", "codegen", "runtime"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(RANKC_SOURCES) / part)) {
      const auto name = entry.path().filename();
      const auto type = entry.path().extension();
      if (name == "rules_text.cpp" || (type != ".hpp" && type != ".cpp" && type != ".cu" && type != ".cuh"))
        continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        for (std::sregex_iterator at(line.begin(), line.end(), id), end; at != end; ++at)
          used.insert(std::stoi((*at)[1]));
    }
  return used;
}

/// The rules that a plan of these values breaks.
std::string broken(const auto& model, parallel_dims dims, int microbatches = 1,
                   training recipe = {.seq = 8, .global_batch = 8}, cluster machines = clusters::cpu) {
  const plan_data p = check_plan(model, dims, schedules::gpipe{microbatches}, recipe, machines);
  std::string text;
  for (const diagnostic& d : p.diagnostics) text += fmt::format("{}RC{}", text.empty() ? "" : " ", d.id);
  return text;
}

constexpr models::gpt2 gpt{.layers = 2, .hidden = 96, .heads = 3, .ffn = 64, .vocab = 64};

}  // namespace

TEST_CASE("every rule of the sources has a long form, and no other") {
  std::set<int> told;
  for (const rule_text& r : rule_texts()) {
    CHECK(told.insert(r.id).second);
    for (std::string_view part : {r.title, r.says, r.why, r.breaks, r.mend}) CHECK(part.size() > 10);
  }
  CHECK(fmt::format("{}", fmt::join(told, " ")) == fmt::format("{}", fmt::join(used_ids(), " ")));
  CHECK(std::is_sorted(rule_texts().begin(), rule_texts().end(),
                       [](const auto& a, const auto& b) { return a.id < b.id; }));
}

TEST_CASE("the JSON examples break their rules") {
  int examples = 0;
  for (const rule_text& r : rule_texts()) {
    if (!r.breaks.starts_with('{')) continue;
    const std::string line(r.breaks);
    CHECK(ids(line.find("ranks") != line.npos ? check(line) : answer(line)) == fmt::format("RC{}", r.id));
    ++examples;
  }
  CHECK(examples == 12);
}

TEST_CASE("the examples of plans break their rules, and what mends them does") {
  constexpr models::gpt2 even{
      .layers = 2, .hidden = 96, .heads = 6, .ffn = 96, .vocab = 96};  // for tp = 2 and 3
  CHECK(broken(even, {.world = 8, .tp = 2, .pp = 2}) == "RC101");
  CHECK(broken(even, {.world = 8, .dp_replicate = infer, .tp = 3}) == "RC102");
  CHECK(broken(even, {.world = 4, .cp = 4, .ulysses = 2}) == "RC103");
  CHECK(broken(even, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = cp_attention::ring}) == "");
  CHECK(broken(even, {.world = 4, .cp = 4}) == "");
  CHECK(broken(even, {.world = 2, .cp = 2, .ulysses = 2}) == "");
  CHECK(broken(gpt, {.world = 4, .dp_shard = 4}) == "");
  CHECK(broken(models::gpt2{.layers = 2, .hidden = 16, .heads = 2, .ffn = 18, .vocab = 12},
               {.world = 4, .dp_shard = 2, .tp = 2}, 1, {.seq = 8, .global_batch = 8}) == "RC240");
  CHECK(broken(gpt, {.world = 4, .dp_replicate = 4}) == "");
  CHECK(broken(gpt, {.world = 8, .tp = 0, .pp = 8}) == "RC104 RC201");
  CHECK(broken(gpt, {.world = 8, .dp_replicate = infer, .pp = infer}) == "RC105");
  CHECK(broken(gpt, {.world = 2, .pp = 2, .sequence_parallel = true}) == "RC106");
  CHECK(broken(gpt, {.world = 16, .dp_replicate = 16}, 1, {.seq = 8, .global_batch = 16},
               clusters::h200<1>) == "RC110");
  CHECK(broken(gpt, {.world = 16, .dp_replicate = 16}, 1, {.seq = 8, .global_batch = 16},
               clusters::h200<2>) == "");
  CHECK(broken(gpt, {.world = 2, .tp = 2}, 1, {.seq = 8, .global_batch = 8}, {2, 1, 0, 0}) == "RC202 RC112");
  CHECK(broken(gpt, {.world = 8, .pp = 8}) == "RC201");
  CHECK(broken(gpt, {.world = 4, .pp = 4}) == "");
  CHECK(broken(gpt, {.world = 2, .tp = 2}) == "RC202");
  CHECK(broken(models::gpt2{.layers = 2, .hidden = 100, .heads = 3, .ffn = 64, .vocab = 64}, {}) == "RC203");
  CHECK(broken(models::gpt2{.layers = 2, .hidden = 100, .heads = 5, .ffn = 64, .vocab = 64}, {}) == "");
  models::llama llama{.layers = 2, .hidden = 64, .heads = 8, .kv_heads = 3, .ffn = 64, .vocab = 64};
  CHECK(broken(llama, {}) == "RC204");
  llama.kv_heads = 4;
  CHECK(broken(llama, {}) == "");
  llama.theta = 0;
  CHECK(broken(llama, {}) == "RC238");
  llama.theta = 1e4;
  llama.norm_eps = -1e-5;
  CHECK(broken(llama, {}) == "RC250");
  llama.norm_eps = 1e-6;
  llama.hidden = 60;
  llama.heads = 4;
  CHECK(broken(llama, {}) == "RC205");
  CHECK(broken(models::gpt2{.layers = 2, .hidden = 64, .heads = 4, .ffn = 0, .vocab = 64}, {}) == "RC206");
  CHECK(broken(models::gpt2{.layers = 2, .hidden = 64, .heads = 4, .ffn = 64, .vocab = 64, .vocab_used = 65},
               {}) == "RC207");
  CHECK(broken(gpt, {}, 1, {.seq = 1048576, .global_batch = 4096}) == "RC222");
  CHECK(broken(gpt, {}, 4, {.seq = 1048576, .global_batch = 4096}) == "RC222");
  CHECK(broken(gpt, {}, 1, {.seq = 1048576, .global_batch = 2047}) == "");
  CHECK(broken(gpt, {}, 1, {.seq = 0, .global_batch = 8}) == "RC220");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8}, {0, 8, 0, 0}) == "RC121");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .lr = -1e-3}) == "RC233");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .lr = 0}) == "");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .clip = -1}) == "RC234");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .optimizer = adamw{.beta1 = 1}}) == "RC235");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .optimizer = adamw{.eps = 0}}) == "RC236");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .warmup_steps = -1}) == "RC237");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .warmup_steps = 9, .decay_steps = 1}) == "");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .recompute = {.full = true, .every = 3}}) ==
        "RC239");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .optimizer = sgd{.momentum = 1}}) == "RC241");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .optimizer = sgd{.momentum = 0.9}}).empty());
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .moments = f64}) == "RC242");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .moments = bf16, .rounding = stochastic}).empty());
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .master_weights = false}) == "RC243");
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .master_weights = false, .rounding = stochastic})
            .empty());
  CHECK(broken(gpt, {}, 1, {.seq = 8, .global_batch = 8, .recompute = {.full = true, .every = 2}}) == "");
  CHECK(broken(gpt, {.world = 2, .dp_replicate = 2}, 4, {.seq = 8, .global_batch = 10}) == "RC221");
  CHECK(broken(gpt, {.world = 2, .dp_replicate = 2}, 4, {.seq = 8, .global_batch = 16}) == "");
}

TEST_CASE("the text of RC103 names what the table of axes says") {
  const auto& text =
      *std::find_if(rule_texts().begin(), rule_texts().end(), [](const rule_text& r) { return r.id == 103; });
  for (const named_degree& a : all_degrees) {
    CAPTURE(std::string(a.name));
    const bool lowered = row(a.along).lowered != lowered_values::nothing;
    CHECK(lowered !=
          std::regex_search(std::string(text.says), std::regex("\\b" + std::string(a.name) + "\\b")));
  }
  CHECK(text.mend.find(detail::lowered_degrees().view()) != std::string_view::npos);
}

TEST_CASE("explain prints one rule, or a line for each") {
  std::ostringstream one, all, errors;
  CHECK(explain("RC201", one, errors) == 0);
  CHECK(one.str().starts_with("RC201: every pipeline stage has a layer\n"));
  for (const char* part : {"\n  rule ", "\n  why ", "\n  breaks ", "\n  mend "})
    CHECK(one.str().find(part) != std::string::npos);
  CHECK(explain("", all, errors) == 0);
  const std::string list = all.str();
  std::size_t rules = 0;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);)
    rules += line[5] == ' ' ? 1 : 0;  // "RC201 ", not "RC6101: "
  CHECK(rules == rule_texts().size());
  CHECK(list.find("\nRC5005: {} cannot be written: {}\n") != std::string::npos);
  CHECK(errors.str().empty());
  CHECK(explain("RC999", one, errors) == 1);
  CHECK(errors.str().starts_with("error: RC8010: "));
  CHECK(test::said_in(errors.str()) == test::said{8010, {"RC999"}});
}

}  // namespace rankc::tool
