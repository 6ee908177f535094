// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"
#include "isolate.hpp"
#include "verdict.hpp"

#include <rankc/codegen/generator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace fuzz {

namespace {

constexpr int generate_limit_s = 60, run_limit_s = 120;

/// The plan's program into FOLDER/NAME: says of which stage it is, and what is refused.
void generate(const plan& p, const std::string& folder, const std::string& name, const teller& t) {
  t.line("stage check");
  const plan_data data = make(p, name);
  for (const diagnostic& d : data.diagnostics)
    if (!d.warning) t.line(fmt::format("refused {} {}", d.id, d.text.view()));
  if (!accepts(data.diagnostics)) return;
  t.line("stage lower");
  std::vector<std::string> words{"fuzz", "emit", "--target", "host", "--dtype", "f64", "--out", folder + "/" + name};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (codegen::generator_main(data, static_cast<int>(arguments.size()), arguments.data()) == 0) t.line("emitted");
}

void read_generated(const outcome& o, verdict& v) {
  bool is_refused = false;
  for (const std::string& line : o.lines) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "stage") in >> v.stage;
    else if (word == "emitted") v.emitted = true;
    else if (word == "exception") v.wrong = line;
    else if (word == "refused") {
      int id = 0;
      in >> id;
      is_refused = true;
      if (std::find(v.refused_by.begin(), v.refused_by.end(), id) == v.refused_by.end()) v.refused_by.push_back(id);
      v.sentences.push_back(line.substr(8));
      if (v.sentences.back().size() < 20) v.wrong = "refused without a sentence: " + line;
    }
  }
  if (!o.died.empty() && v.wrong.empty()) v.wrong = o.died;
  if (!v.emitted && !is_refused && v.wrong.empty()) v.wrong = o.printed.substr(0, 500);
  if (v.emitted || is_refused) return;
  if (v.wrong.empty()) v.wrong = "no program and no sentence";
}

void tell_figures(const figures& f, const teller& t) {
  t.line(fmt::format("figures {} {} {} {} {} {} {} {}", f.steady ? 1 : 0, f.elements, f.differences, f.loss, f.gradients, f.weights, f.reference, f.finite));
  for (const std::string& w : f.wrong) t.line("wrong " + w);
}

void read_figures(const outcome& o, const char* of, verdict& v) {
  for (const std::string& line : o.lines) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "figures") {
      long long elements, differences;
      std::string number[5];
      bool steady = true;
      in >> steady >> elements >> differences >> number[0] >> number[1] >> number[2] >> number[3] >> number[4];
      v.steady &= steady;
      v.elements += elements, v.differences += differences;
      int n = 0;
      for (double* d : {&v.loss, &v.gradients, &v.weights, &v.reference, &v.finite}) *d = std::max(*d, std::stod(number[n++]));
    } else {
      v.wrong += fmt::format("{}{}: {}", v.wrong.empty() ? "" : "; ", of, word == "wrong" ? line.substr(6) : line);
    }
  }
  if (!o.died.empty()) v.wrong += fmt::format("{}{}: died of {}", v.wrong.empty() ? "" : "; ", of, o.died);
}

std::string name_of(const plan& p) { return fmt::format("p{}", p.index); }

/// The plans whose one-rank programs stand for those of all: the first emitted of each model.
class one_rank_programs {
 public:
  explicit one_rank_programs(const std::vector<plan>& plans) {
    for (std::size_t i = 0; i < plans.size(); ++i) first_.try_emplace(plans[i].index / plans_per_model, i);
  }
  bool is_first(std::size_t i, const plan& p) const { return first_.at(p.index / plans_per_model) == i; }
  std::size_t first(const plan& p) const { return first_.at(p.index / plans_per_model); }
  static std::string name(const plan& p) { return fmt::format("one{}", p.index / plans_per_model); }

 private:
  std::map<std::uint64_t, std::size_t> first_;
};

}  // namespace

std::vector<verdict> judge(const settings& with, const std::vector<plan>& plans) {
  std::vector<verdict> out(plans.size());
  const one_rank_programs ones(plans);
  std::vector<task> tasks;
  for (const plan& p : plans) tasks.push_back([&](const teller& t) { generate(p, with.folder, name_of(p), t); });
  for (std::size_t i = 0; i < plans.size(); ++i)
    tasks.push_back([&, i](const teller& t) {
      if (ones.is_first(i, plans[i])) generate(on_one_rank(plans[i]), with.folder, ones.name(plans[i]), t);
    });
  const std::vector<outcome> made = run_isolated(tasks, with.at_once, generate_limit_s);

  std::vector<std::string> names;
  std::map<std::string, verdict> one_of;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    read_generated(made[i], out[i]);
    if (!out[i].emitted) continue;
    const std::string one = ones.name(plans[i]);
    if (!one_of.count(one)) {
      read_generated(made[plans.size() + ones.first(plans[i])], one_of[one]);
      if (one_of[one].emitted) names.push_back(one);
    }
    if (one_of[one].emitted) names.push_back(name_of(plans[i]));
    else out[i].stage = "one rank", out[i].wrong = one_of[one].failed() ? one_of[one].wrong : "refused: " + one_of[one].sentences.at(0);
  }
  const compiled objects = compile_programs(with.with, with.folder, names, with.at_once);

  std::vector<std::size_t> ran;
  tasks.clear();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!out[i].emitted || out[i].failed()) continue;
    for (const std::string& name : {ones.name(plans[i]), name_of(plans[i])})
      if (const auto w = objects.wrong.find(name); w != objects.wrong.end()) out[i].stage = "compile", out[i].wrong = w->second;
    if (out[i].failed()) continue;
    ran.push_back(i);
    out[i].checked_one_rank = one_of.erase(ones.name(plans[i])) > 0;
    tasks.push_back([&, i](const teller& t) {
      const program one = load_program(objects.object_of.at(ones.name(plans[i])), ones.name(plans[i]));
      if (out[i].checked_one_rank) tell_figures(check_one_rank(plans[i], one, with.elements), t);
    });
    tasks.push_back([&, i](const teller& t) {
      const program one = load_program(objects.object_of.at(ones.name(plans[i])), ones.name(plans[i]));
      tell_figures(check_layout(plans[i], load_program(objects.object_of.at(name_of(plans[i])), name_of(plans[i])), one), t);
    });
  }
  const std::vector<outcome> done = run_isolated(tasks, with.at_once, run_limit_s);
  for (std::size_t n = 0; n < ran.size(); ++n) {
    verdict& v = out[ran[n]];
    v.stage = "run";
    read_figures(done[2 * n], "one rank", v);
    read_figures(done[2 * n + 1], "layout", v);
    v.compared = v.steady;
    v.checked_one_rank &= v.steady;
  }
  return out;
}

}  // namespace fuzz
