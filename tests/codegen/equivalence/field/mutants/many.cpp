// SPDX-License-Identifier: Apache-2.0
// Judges mutants by number, and prints a table of their classes; the tables of several runs can be added. A
// number determines the plan, its program and the faults. Consecutive numbers share a program, whose model
// runs once.
#include "checker.hpp"
#include "class_table.hpp"
#include "opinions.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <set>

namespace field {

namespace {

using clock = std::chrono::steady_clock;

/// Consecutive mutants of one program.
constexpr std::uint64_t of_program = 64;

struct settings {
  std::uint64_t from = 0, count = 1000;
  int drawn = 60;
  bool tells_refused = false;
};

std::vector<rankc::plan_data> all_plans(int drawn) {
  std::vector<rankc::plan_data> all;
  for (const auto& of :
       {tiny_plans(), windowed_plans(), masked_plans(), weighted_plans(), narrowed_plans(), spread_plans(),
        apart_plans(), balanced_plans(), biased_plans(), drawn_plans(1, drawn, 8)})
    all.insert(all.end(), of.begin(), of.end());
  return all;
}

/// The id at the beginning of a sentence: "RC7402".
std::string id_in(const std::string& sentence) {
  const std::size_t at = sentence.find("RC");
  return at == std::string::npos ? "without an id" : sentence.substr(at, 6);
}

/// The classes in which a mutant is counted.
std::vector<std::string> classes_of(const mutant& m, const opinions& o) {
  const std::string plan = m.of.name.substr(0, m.of.name.find(' '));
  std::vector<std::string> all{std::string("form: ") + mutant_form_names[static_cast<int>(m.form)],
                               "kind: " + m.what.kind, "plan: " + plan,
                               m.of.program.ranks.size() > 1 ? "ranks: several" : "ranks: one"};
  if (m.of.name.find(" ring") != std::string::npos || m.of.name.find(" pairs") != std::string::npos)
    all.push_back("plan: with rings");
  if (!o.accepted() && !o.different()) all.push_back("refused equal: " + id_in(o.refusal));
  return all;
}

class_counts counts_of(const opinions& o, double seconds) {
  const bool in_f64 = o.exact.equal && !o.f64.equal, harmed = o.exact.equal && o.f64.equal && !o.harm.empty();
  return {1,
          o.accepted(),
          o.different(),
          !o.exact.equal,
          in_f64,
          harmed,
          o.accepted() && o.different(),
          !o.accepted() && !o.different(),
          seconds};
}

class judgement {
 public:
  explicit judgement(const settings& with) : with_(with), plans_(all_plans(with.drawn)) {}

  /// Returns: the exit code.
  int run() {
    const auto begin = clock::now();
    for (std::uint64_t n = with_.from; n < with_.from + with_.count; ++n) {
      turn_to(n / of_program);
      if (program_) judge(n);
    }
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    std::printf("%s", table_.to_text().c_str());
    std::printf("mutants %llu to %llu: %llu judged, of %zu plans of %zu; %d wrong; %.1f s, %.4f s each\n",
                static_cast<unsigned long long>(with_.from),
                static_cast<unsigned long long>(with_.from + with_.count - 1), judged_, seen_.size(),
                plans_.size(), wrong_, seconds, seconds / static_cast<double>(with_.count));
    return wrong_ > 0 || judged_ != with_.count ? 1 : 0;
  }

 private:
  /// Lower the program of a block of mutants. A program that is refused or different is reported, and not
  /// mutated.
  void turn_to(std::uint64_t block) {
    if (block_ == block) return;
    block_ = block;
    const std::size_t plan = block % plans_.size(), round = block / plans_.size();
    program_ = judged_of(subject_of(plans_[plan], plan + round));
    seen_.insert(plan);
    if (const std::string why = find_wrong(*program_, compare_terms); !why.empty()) {
      tell("NO MUTANT, AND REFUSED OR DIFFERENT: " + program_->name + ": " + why);
      program_.reset();
    }
  }

  void judge(std::uint64_t n) {
    const auto begin = clock::now();
    std::mt19937 random(static_cast<unsigned>(n * 2654435761u + 1));
    const mutant m = draw_mutant(*program_, random);
    const opinions o = ask(m.of, compare_terms, random(), asked::until_different);
    ++judged_;
    const std::string text = std::to_string(n) + ": " + m.what.kind + ": " + m.what.text + ": ";
    if (!o.failure.empty()) tell("THE CHECKER FAILED: " + text + o.failure);
    for (const std::string& why : {o.exact.difference, o.f64.difference, o.harm})
      if (o.accepted() && !why.empty()) tell("FALSE ACCEPT " + text + why);
    if (with_.tells_refused && !o.accepted() && !o.different())
      std::printf("refused though equal: %s%s\n", text.c_str(), o.refusal.c_str());
    const class_counts counts = counts_of(o, std::chrono::duration<double>(clock::now() - begin).count());
    for (const std::string& name : classes_of(m, o)) table_.add(name, counts);
  }

  void tell(const std::string& wrong) {
    ++wrong_;
    std::printf("%s\n", wrong.c_str());
  }

  settings with_;
  std::vector<rankc::plan_data> plans_;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::optional<judged> program_;
  std::set<std::size_t> seen_;
  class_table table_;
  unsigned long long judged_ = 0;
  int wrong_ = 0;
};

int sum_tables(const std::vector<std::string>& files) {
  class_table sum;
  for (const std::string& name : files) {
    std::ifstream file(name);
    if (!file) throw std::runtime_error("cannot read " + name);
    sum.read(file);
  }
  std::printf("%s", sum.to_text().c_str());
  return 0;
}

}  // namespace

}  // namespace field

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  CLI::App app{
      "Judges mutants of lowered programs: by the checker, over the field, in f64, and in interleavings."};
  field::settings with;
  std::vector<std::string> files;
  app.add_option("--from", with.from, "number of the first mutant");
  app.add_option("--count", with.count, "mutants");
  app.add_option("--drawn", with.drawn, "drawn plans beside the others");
  app.add_flag("--refused", with.tells_refused, "print the mutants that are refused though equal");
  app.add_option("--sum", files, "add up the tables in files that earlier runs printed");
  CLI11_PARSE(app, argc, argv);
  try {
    return files.empty() ? field::judgement(with).run() : field::sum_tables(files);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 2;
  }
}
