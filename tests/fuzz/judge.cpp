// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"
#include "isolate.hpp"
#include "verdict.hpp"

#include <rankc/codegen/generator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace fuzz {

namespace {

constexpr int generate_limit_s = 60, run_limit_s = 120;

/// Generate a plan's program in FOLDER/NAME, and send its stage and its refusals.
void generate(const plan& p, const std::string& folder, const std::string& name, const teller& t) {
  t.line("stage check");
  const plan_data data = make(p, name);
  for (const diagnostic& d : data.diagnostics)
    if (!d.warning) t.line(fmt::format("refused {} {}", d.id, d.text.view()));
  if (!accepts(data.diagnostics)) return;
  t.line("stage lower");
  std::vector<std::string> words{"fuzz",    "emit", "--target", "host",
                                 "--dtype", "f64",  "--out",    folder + "/" + name};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (codegen::generator_main(data, static_cast<int>(arguments.size()), arguments.data()) == 0)
    t.line("emitted");
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
      if (std::find(v.refused_by.begin(), v.refused_by.end(), id) == v.refused_by.end())
        v.refused_by.push_back(id);
      v.sentences.push_back(line.substr(8));
      if (v.sentences.back().size() < 20) v.wrong = "refused without a sentence: " + line;
    }
  }
  if (!o.died.empty() && v.wrong.empty()) v.wrong = o.died;
  if (!v.emitted && !is_refused && v.wrong.empty()) v.wrong = o.printed.substr(0, 500);
  if (!v.emitted && !is_refused && v.wrong.empty()) v.wrong = "no program and no sentence";
}

void tell_figures(const figures& f, const teller& t) {
  t.line(fmt::format("figures {} {} {} {} {} {} {} {}", f.steady ? 1 : 0, f.elements, f.differences, f.loss,
                     f.gradients, f.weights, f.reference, f.finite));
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
      in >> steady >> elements >> differences >> number[0] >> number[1] >> number[2] >> number[3] >>
          number[4];
      v.steady &= steady;
      v.elements += elements;
      v.differences += differences;
      int n = 0;
      for (double* d : {&v.loss, &v.gradients, &v.weights, &v.reference, &v.finite})
        *d = std::max(*d, std::stod(number[n++]));
    } else {
      v.wrong +=
          fmt::format("{}{}: {}", v.wrong.empty() ? "" : "; ", of, word == "wrong" ? line.substr(6) : line);
    }
  }
  if (!o.died.empty()) v.wrong += fmt::format("{}{}: died of {}", v.wrong.empty() ? "" : "; ", of, o.died);
}

/// Plans that are judged together, step by step.
class judgement {
 public:
  judgement(const settings& with, const std::vector<plan>& plans)
      : with_(with), plans_(plans), out_(plans.size()) {
    for (std::size_t i = 0; i < plans.size(); ++i) first_.try_emplace(number_of_one_rank(plans[i]), i);
  }

  std::vector<verdict> run() {
    generate_all();
    compile();
    train();
    return std::move(out_);
  }

 private:
  static std::string name_of(const plan& p) { return fmt::format("p{}", p.index); }
  static std::string one_of(const plan& p) { return fmt::format("one{}", number_of_one_rank(p)); }
  bool still_runs(std::size_t i) const { return out_[i].emitted && !out_[i].failed(); }
  void fail(std::size_t i, const char* stage, const std::string& wrong) {
    out_[i].stage = stage;
    out_[i].wrong = wrong;
  }

  /// Generate every plan's program, and each model's one-rank program.
  void generate_all() {
    std::vector<task> tasks;
    for (const plan& p : plans_)
      tasks.push_back([&](const teller& t) { generate(p, with_.folder, name_of(p), t); });
    for (const auto& [model, i] : first_) {
      const plan& p = plans_[i];
      tasks.push_back([&](const teller& t) { generate(on_one_rank(p), with_.folder, one_of(p), t); });
    }
    const std::vector<outcome> made = run_isolated(tasks, with_.at_once, generate_limit_s);
    std::size_t next = plans_.size();
    for (const auto& [model, i] : first_) read_generated(made[next++], ones_[one_of(plans_[i])]);
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      read_generated(made[i], out_[i]);
      const verdict& one = ones_[one_of(plans_[i])];
      if (!still_runs(i) || one.emitted) continue;
      // Under sequence parallelism, tp ranks shard tokens alone, so some parameters can be shared there that
      // one rank refuses to share.
      if (plans_[i].dims.sequence_parallel && one.refused_by == std::vector{214}) out_[i] = one;
      else fail(i, "one rank", one.failed() ? one.wrong : "refused: " + one.sentences.at(0));
    }
  }

  void compile() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!still_runs(i)) continue;
      if (names.empty() || std::find(names.begin(), names.end(), one_of(plans_[i])) == names.end())
        names.push_back(one_of(plans_[i]));
      names.push_back(name_of(plans_[i]));
    }
    objects_ = compile_programs(with_.with, with_.folder, names, with_.at_once);
    for (std::size_t i = 0; i < plans_.size(); ++i)
      for (const std::string& name : {one_of(plans_[i]), name_of(plans_[i])})
        if (const auto w = objects_.wrong.find(name); still_runs(i) && w != objects_.wrong.end())
          fail(i, "compile", w->second);
  }

  program load(const std::string& name) const { return load_program(objects_.object_of.at(name), name); }

  /// Run the programs. The first running plan of a model also checks the one-rank program.
  void train() {
    std::vector<task> tasks;
    std::vector<std::pair<std::size_t, const char*>> of;
    std::set<std::string> checked;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!still_runs(i)) continue;
      const plan& p = plans_[i];
      out_[i].stage = "run";
      out_[i].compared = true;
      out_[i].checked_one_rank = checked.insert(one_of(p)).second;
      if (out_[i].checked_one_rank) {
        tasks.push_back(
            [&](const teller& t) { tell_figures(check_one_rank(p, load(one_of(p)), with_.elements), t); });
        of.emplace_back(i, "one rank");
      }
      tasks.push_back(
          [&](const teller& t) { tell_figures(check_layout(p, load(name_of(p)), load(one_of(p))), t); });
      of.emplace_back(i, "layout");
    }
    const std::vector<outcome> done = run_isolated(tasks, with_.at_once, run_limit_s);
    for (std::size_t n = 0; n < done.size(); ++n) {
      verdict& v = out_[of[n].first];
      read_figures(done[n], of[n].second, v);
      v.compared &= v.steady;
      v.checked_one_rank &= v.steady;
    }
  }

  const settings& with_;
  const std::vector<plan>& plans_;
  std::vector<verdict> out_;
  std::map<std::uint64_t, std::size_t> first_;  // the first plan, by model
  std::map<std::string, verdict> ones_;         // one-rank programs, by name
  compiled objects_;
};

}  // namespace

std::vector<verdict> judge(const settings& with, const std::vector<plan>& plans) {
  return judgement(with, plans).run();
}

}  // namespace fuzz
