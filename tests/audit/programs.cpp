// SPDX-License-Identifier: Apache-2.0
// audit_programs: draws plans, and compares accounts of every rank's communication in a step: the program's
// own, the fabric's and, for GPT-2s and Llamas, the formulas'.
#include "expected.hpp"

#include "fuzz/batches.hpp"
#include "fuzz/isolate.hpp"
#include "fuzz/plan.hpp"

#include <rankc/codegen/generator.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/parameters.hpp>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

namespace rankc::runtime::host {
void prepare(char** argv);  // declared here: its header defines a `layout`, and so does rankc/plan_data.hpp
}

namespace audit {

namespace {

constexpr int run_limit_s = 120;

/// A plan, and its sizes in the formulas if it has any.
struct subject {
  rankc::plan_data plan;
  std::optional<drawn> sizes = {};
};

/// Draw `count` GPT-2s and Llamas, and `models` drawn models.
std::vector<subject> draw_subjects(std::uint64_t seed, int count, int models) {
  std::vector<subject> all;
  for (drawn& d : draw_legal(seed, count, "p")) all.push_back({d.plan, std::move(d)});
  for (std::uint64_t index = 0; models > 0; ++index) {
    rankc::plan_data p = fuzz::make(fuzz::draw_plan(seed, index), "model" + std::to_string(index));
    if (!accepts(p.diagnostics) || p.actions.inference || p.dims.world == 1) continue;
    all.push_back({std::move(p)});
    --models;
  }
  return all;
}

void generate(const rankc::plan_data& p, const std::string& folder) {
  std::vector<std::string> words{"audit",   "emit", "--target", "host",
                                 "--dtype", "f64",  "--out",    folder + "/" + std::string(p.name)};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (rankc::codegen::generator_main(p, static_cast<int>(arguments.size()), arguments.data()) != 0)
    throw std::runtime_error(std::string(p.name) + " is not written");
}

/// Run one step of a program. Print each difference between a rank's accounts, and the number of transfers.
void judge(const subject& of, const fuzz::program& program, const std::vector<formula>& rows,
           const fuzz::teller& t) {
  const rankc::runtime::description& about = *program.about;
  const auto engine = program.install();
  rankc::runtime::initialise(*engine, 1);
  const rankc::runtime::dataset data(rankc::runtime::parse_data_spec("rand:1"), about.vocab_used, about.seq);
  rankc::runtime::set_batch(*engine, data, 0);
  std::vector<rankc::host::transfer> did;
  counted_step(*engine, {1e-3, 0.1, 1, 0.9, 0.95, 1e-8, 1}, did);
  for (int rank = 0; rank < about.world(); ++rank) {
    const int pp = about.ranks[static_cast<std::size_t>(rank)].pp;
    const account says = described(about.json, pp);
    const account formulas = of.sizes ? expected(*of.sizes, pp, rows, {"f64", "f64"}) : says;
    for (const std::string& wrong :
         {difference(says, formulas), difference(carried(about, rank, did), as_carried(formulas))})
      if (!wrong.empty()) t.line(fmt::format("rank {}: {}", rank, wrong));
  }
  t.line(fmt::format("transfers {}", did.size()));
}

}  // namespace

}  // namespace audit

int main(int argc, char** argv) {
  rankc::host::prepare(argv);
  CLI::App app{"Draws plans, and compares three accounts of what their ranks communicate."};
  std::uint64_t seed = 1;
  int count = 10, models = 0, jobs = 2;
  std::string folder = "audit_programs";
  app.add_option("--seed", seed);
  app.add_option("--count", count, "plans of GPT-2s and Llamas");
  app.add_option("--models", models, "plans of drawn models");
  app.add_option("--folder", folder, "for the programs");
  app.add_option("--jobs", jobs);
  CLI11_PARSE(app, argc, argv);

  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  folder = std::filesystem::absolute(folder);
  const std::vector<audit::formula> rows = audit::read_formulas(RANKC_COLLECTIVES "/formulas.csv");
  const std::vector<audit::subject> plans = audit::draw_subjects(seed, count, models);
  std::vector<std::string> names;
  for (const audit::subject& of : plans) {
    audit::generate(of.plan, folder);
    names.emplace_back(of.plan.name);
  }
  const fuzz::compiled programs =
      fuzz::compile_programs({RANKC_AUDIT_CXX, RANKC_AUDIT_INCLUDES}, folder, names, jobs);
  std::vector<fuzz::task> tasks;
  for (const audit::subject& of : plans)
    tasks.push_back([&](const fuzz::teller& t) {
      const std::string name(of.plan.name);
      audit::judge(of, fuzz::load_program(programs.object_of.at(name), name), rows, t);
    });
  const std::vector<fuzz::outcome> done = fuzz::run_isolated(tasks, jobs, audit::run_limit_s);
  int wrong = 0;
  long long transfers = 0, ranks = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    ranks += plans[i].plan.dims.world;
    bool is_right = done[i].died.empty();
    for (const std::string& line : done[i].lines) {
      const bool counts = line.starts_with("transfers ");
      if (counts) transfers += std::stoll(line.substr(10));
      else fmt::print("{}: {}\n", names[i], line);
      is_right &= counts;
    }
    if (!done[i].died.empty()) fmt::print("{}: died of {}: {}\n", names[i], done[i].died, done[i].printed);
    wrong += !is_right;
  }
  std::filesystem::remove_all(folder);
  fmt::print("{} plans on {} ranks, {} transfers: {} plans have accounts that differ\n", plans.size(), ranks,
             transfers, wrong);
  return wrong > 0;
}
