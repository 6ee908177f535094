// SPDX-License-Identifier: Apache-2.0
#include "texts.hpp"

#include "compare.hpp"

#include <fuzz/batches.hpp>
#include <fuzz/isolate.hpp>
#include <rankc/codegen/generator.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/runtime/failure.hpp>

#include <filesystem>
#include <utility>

namespace translation {

namespace {

constexpr int limit_s = 120;  // for one text
constexpr const char* type_names[]{"f32", "f64", "bf16"};

/// The first line of a failed process, and the beginning of its output.
std::string failure(const fuzz::outcome& o) {
  if (o.died.empty() && o.lines.empty()) return "";
  return (o.died.empty() ? o.lines[0] : "died of " + o.died) +
         (o.printed.empty() ? "" : ": " + o.printed.substr(0, 500));
}

}  // namespace

subject make_subject(rankc::plan_data plan, bool cuda, rankc::runtime::dtype type) {
  plan.name = rankc::detail::keep_name(std::string(plan.name) + "_" + type_names[static_cast<int>(type)] +
                                       (cuda ? "_cuda" : "_host"));
  return {std::move(plan), cuda, type};
}

rankc::codegen::program proven(const subject& s, bool trains) {
  const auto l = rankc::codegen::lower(s.plan, s.type,
                                       s.cuda ? rankc::codegen::target::cuda : rankc::codegen::target::host);
  return trains ? expand_train(l) : expand_evaluate(l);
}

std::string write(const subject& s, const std::string& folder) {
  std::vector<std::string> words{"translation", "emit",
                                 "--target",    s.cuda ? "cuda" : "host",
                                 "--dtype",     type_names[static_cast<int>(s.type)],
                                 "--out",       folder + "/" + std::string(s.plan.name)};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  const int rc = rankc::codegen::generator_main(s.plan, static_cast<int>(arguments.size()), arguments.data());
  return rc == 0 ? "" : "the generator wrote nothing";
}

objects compile(const std::string& folder, const std::vector<std::string>& names, bool cuda, int at_once) {
  const std::string types = cuda ? " -I'" RANKC_TRANSLATION "/cuda_types'" : "";
  fuzz::compiler with{RANKC_TRANSLATION_CXX,
                      "-I'" RANKC_TRANSLATION "' -I'" RANKC_TRANSLATION_RUNTIME "'" + types};
  with.header = "recording.hpp";
  with.type = "translation::text";
  with.entry = R"({{"{0}", &{0}::about,
     [](int rank, bool trains) {{ return translation::record({0}::program, rank, trains); }},
     [](int rank) {{ translation::check_calls({0}::program, rank); }}}})";
  auto made = fuzz::compile_programs(with, folder, names, at_once);
  return {std::move(made.object_of), std::move(made.wrong)};
}

text load(const objects& o, const std::string& name) {
  const auto wrong = o.wrong.find(name);
  if (wrong != o.wrong.end()) throw std::runtime_error("does not compile: " + wrong->second);
  return fuzz::load_program<text>(o.object_of.at(name), name);
}

std::string hold(const text& t, const subject& s) {
  for (const bool trains : {true, false}) {
    if (trains && s.plan.actions.inference) continue;
    const std::string wrong = compare(t, proven(s, trains), trains);
    if (!wrong.empty()) return (trains ? "train: " : "evaluate: ") + wrong;
  }
  return "";
}

std::string refusal_of(const text& t) {
  try {
    for (int rank = 0; rank < t.about->world(); ++rank) t.check_calls(rank);
  } catch (const rankc::runtime::failure& f) {
    return f.what();
  }
  return "";
}

std::map<std::string, std::string> validate(const std::vector<subject>& subjects, const std::string& folder,
                                            int at_once) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string root = std::filesystem::absolute(folder);
  std::map<std::string, std::string> wrong;
  const auto run = [&](auto&& work) {
    std::vector<fuzz::task> tasks;
    std::vector<const subject*> of;
    for (const subject& s : subjects)
      if (!wrong.count(std::string(s.plan.name))) {
        of.push_back(&s);
        tasks.push_back([&work, &s](const fuzz::teller& t) {
          if (const std::string sentence = work(s); !sentence.empty()) t.line(sentence);
        });
      }
    const std::vector<fuzz::outcome> done = fuzz::run_isolated(tasks, at_once, limit_s);
    for (std::size_t i = 0; i < of.size(); ++i)
      if (std::string f = failure(done[i]); !f.empty()) wrong[std::string(of[i]->plan.name)] = std::move(f);
  };

  run([&](const subject& s) { return write(s, root); });
  std::map<bool, objects> compiled;
  for (const bool cuda : {false, true}) {
    std::vector<std::string> names;
    for (const subject& s : subjects)
      if (s.cuda == cuda && !wrong.count(std::string(s.plan.name))) names.emplace_back(s.plan.name);
    if (!names.empty()) compiled[cuda] = compile(root, names, cuda, at_once);
  }
  run([&](const subject& s) {
    const text made = load(compiled.at(s.cuda), std::string(s.plan.name));
    const std::string wrong = hold(made, s);
    return wrong.empty() ? refusal_of(made) : wrong;
  });
  std::filesystem::remove_all(folder);
  return wrong;
}

}  // namespace translation
