// SPDX-License-Identifier: Apache-2.0
// audit_programs: draw plans, and compare three accounts of what every rank communicates in a step: what the formulas
// give, what the program says of itself, and what the fabric carried.
#include "expected.hpp"

#include "fuzz/batches.hpp"
#include "fuzz/isolate.hpp"

#include <rankc/codegen/generator.hpp>
#include <rankc/runtime/tools/data.hpp>
#include <rankc/runtime/tools/parameters.hpp>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>

namespace rankc::host {
void prepare(char** argv);  // its header has a `layout`, as rankc/plan_data.hpp has
}

namespace audit {

namespace {

constexpr int run_limit_s = 120;

void generate(const drawn& d, const std::string& folder) {
  std::vector<std::string> words{"audit",   "emit", "--target", "host",
                                 "--dtype", "f64",  "--out",    folder + "/" + d.plan.name};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (rankc::codegen::generator_main(d.plan, static_cast<int>(arguments.size()), arguments.data()) != 0)
    throw std::runtime_error(d.plan.name + " is not written");
}

/// A step of a program; says of each rank where its accounts differ, and how many transfers there were.
void judge(const drawn& d, const fuzz::program& program, const std::vector<formula>& rows, const fuzz::teller& t) {
  const rankc::runtime::description& about = *program.about;
  const auto engine = program.install();
  rankc::runtime::initialise(*engine, 1);
  const rankc::runtime::dataset data(rankc::runtime::parse_data_spec("rand:1"), about.vocab_used, about.seq);
  rankc::runtime::set_batch(*engine, data, 0);
  std::vector<rankc::host::transfer> did;
  counted_step(*engine, {1e-3, 0.1, 1, 0.9, 0.95, 1e-8, 1}, did);
  for (int rank = 0; rank < about.world(); ++rank) {
    const int pp = about.ranks[static_cast<std::size_t>(rank)].pp;
    const account formulas = expected(d, pp, rows, {"f64", "f64"}), says = described(about.json, pp);
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
  int count = 10, jobs = 2;
  std::string folder = "audit_programs";
  app.add_option("--seed", seed);
  app.add_option("--count", count, "plans");
  app.add_option("--folder", folder, "for the programs");
  app.add_option("--jobs", jobs);
  CLI11_PARSE(app, argc, argv);

  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  folder = std::filesystem::absolute(folder);
  const std::vector<audit::formula> rows = audit::read_formulas(RANKC_COLLECTIVES "/formulas.csv");
  const std::vector<audit::drawn> plans = audit::draw_legal(seed, count, "p");
  std::vector<std::string> names;
  for (const audit::drawn& d : plans) {
    audit::generate(d, folder);
    names.push_back(d.plan.name);
  }
  const fuzz::compiled programs = fuzz::compile_programs({RANKC_AUDIT_CXX, RANKC_AUDIT_INCLUDES}, folder, names, jobs);
  std::vector<fuzz::task> tasks;
  for (const audit::drawn& d : plans)
    tasks.push_back([&](const fuzz::teller& t) {
      audit::judge(d, fuzz::load_program(programs.object_of.at(d.plan.name), d.plan.name), rows, t);
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
  fmt::print("{} plans on {} ranks, {} transfers: {} plans have accounts that differ\n", plans.size(), ranks, transfers,
             wrong);
  return wrong > 0;
}
