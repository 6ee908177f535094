// SPDX-License-Identifier: Apache-2.0
// Reads a certificate. Each rank must list one value for each value number of its program, and one first
// index for each view and box dim. Sizes are bounded before memory is taken for them.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "json_tree.hpp"
#include "model_schema.hpp"
#include "reader.hpp"
#include "trusted.hpp"

namespace rankc::codegen::schema {

namespace {

constexpr int most_ranks = 1 << 20, most_streams = 1 << 10;

/// The number of first indices that a rank must list: one for each view, and one for each dim of a box.
std::size_t count_firsts(const listed_program& p) {
  std::size_t n = 0;
  for (const listed_op& o : p.ops) {
    n += o.views.size();
    for (const holding& h : o.holds) n += h.box.size();
  }
  return n;
}

/// The number of values of a program: they are numbered from 0.
std::size_t count_values(const listed_program& p) {
  int most = -1;
  std::size_t accesses = 0;
  for (const listed_op& o : p.ops)
    for (const auto* list : {&o.reads, &o.writes})
      for (const access& a : *list) {
        most = std::max(most, a.value);
        ++accesses;
      }
  const auto values = static_cast<std::size_t>(most) + 1;
  if (values > accesses)
    refuse("RC7286: certificate: an op names value {}; a program with {} reads and writes has values 0..{}",
           most, accesses, accesses - 1);
  return values;
}

/// The bound of the value numbers in a step. The checker's tables have a line for each number.
std::int64_t numbers_of(std::size_t values) {
  constexpr std::size_t of_each = 64, spare = 1 << 20;
  const std::size_t most = std::numeric_limits<int>::max();
  return static_cast<std::int64_t>(std::min(of_each * values + spare, most));
}

/// `numbers`: the bound of the value numbers.
std::vector<int> values_of(const std::vector<number_run>& runs, std::size_t most, std::int64_t numbers) {
  std::vector<int> values;
  for (const number_run& run : runs) {
    if (run.count > static_cast<std::int64_t>(most - values.size()) || run.first > numbers - run.count)
      refuse("RC7125: certificate: a rank has more values than the {} that its ops name, or one above {}",
             most, numbers - 1);
    for (std::int64_t i = 0; i < run.count; ++i) values.push_back(static_cast<int>(run.first + i));
  }
  if (values.size() != most)
    refuse("RC7138: certificate: a rank has {} values for ops that name {}", values.size(), most);
  return values;
}

std::vector<std::int64_t> firsts_of(const std::vector<number_run>& runs, std::size_t most) {
  std::vector<std::int64_t> firsts;
  for (const number_run& run : runs) {
    if (run.count > static_cast<std::int64_t>(most - firsts.size()))
      refuse("RC7126: certificate: a rank has more firsts than the {} views and box dims of its ops", most);
    firsts.insert(firsts.end(), static_cast<std::size_t>(run.count), run.first);
  }
  if (firsts.size() != most)
    refuse("RC7127: certificate: a rank has {} firsts for ops that have {} views and box dims", firsts.size(),
           most);
  return firsts;
}

void expand_runs(step& s) {
  std::vector<std::size_t> values, firsts;  // of each program
  for (const listed_program& p : s.programs) {
    values.push_back(count_values(p));
    firsts.push_back(count_firsts(p));
  }
  std::size_t named = 0;  // by all ranks
  for (const listed_rank& r : s.ranks) {
    if (r.program < 0 || r.program >= static_cast<int>(s.programs.size()))
      refuse("RC7137: certificate: a rank runs program {}; the step has {} programs", r.program,
             s.programs.size());
    named += values[static_cast<std::size_t>(r.program)];
  }
  const std::int64_t numbers = numbers_of(named);
  for (listed_rank& r : s.ranks) {
    const auto program = static_cast<std::size_t>(r.program);
    r.values = values_of(r.value_runs, values[program], numbers);
    r.firsts = firsts_of(r.first_runs, firsts[program]);
  }
}

void check_world(const step& s) {
  const int ranks = static_cast<int>(s.ranks.size()), world = s.world;
  if (world > most_ranks)
    refuse("RC7287: certificate: the world has {} ranks; expected {} at most", world, most_ranks);
  if (s.streams > most_streams)
    refuse("RC7288: certificate: a step has {} streams; expected {} at most", s.streams, most_streams);
  if (world < ranks) refuse("RC7139: certificate: the world has {} ranks, but a step has {}", world, ranks);
  if (s.mesh.empty() && world > ranks)
    refuse(
        "RC7140: certificate: the world has {} ranks and a step has {}: \"represented\" must say which "
        "ranks these stand for",
        world, ranks);
  if (!s.mesh.empty() && world == ranks)
    refuse("RC7141: certificate: a step has all {} ranks of the world: \"represented\" must be null", world);
  for (int r = 0, next = 0; r < ranks; ++r) {
    const int number = s.ranks[static_cast<std::size_t>(r)].number;
    if (number >= world || number < next)
      refuse(
          "RC7142: certificate: rank {} is out of order: the ranks of a step must be listed in ascending "
          "order within 0..{}",
          number, world - 1);
    next = number + 1;
  }
}

void check_names(const std::vector<step>& steps) {
  if (steps.empty()) refuse("RC7133: certificate: steps must have a step");
  for (std::size_t s = 1; s < steps.size(); ++s)
    for (std::size_t k = 0; k < s; ++k)
      if (steps[s].name == steps[k].name)
        refuse("RC7280: certificate: two steps are called {}; expected each once", steps[s].name);
}

void check_uses(const specification& model) {
  for (const specification::use& u : model.uses)
    if (u.layer < 0 || u.layer >= static_cast<int>(model.layers.size()) ||
        u.parameters.size() != model.layers[static_cast<std::size_t>(u.layer)].parameters.size())
      refuse(
          "RC7153: certificate: the model uses layer {} as \"{}\" with {} parameters; it must name one of "
          "the model's {} layers and give each of that layer's parameters",
          u.layer, u.name, u.parameters.size(), model.layers.size());
}

void check_head(const file& f) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::any_of(f.plan.begin(), f.plan.end(), is_control))
    refuse("RC7289: certificate: the name of the plan has a control character");
  if (!std::equal(f.trusted.begin(), f.trusted.end(), std::begin(trusted), std::end(trusted)))
    refuse(
        "RC7131: certificate: \"trusted\" must list exactly the assumptions that the check relies on; write "
        "the certificate again");
  if (f.plan_hash.size() != 16 || f.plan_hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse("RC7132: certificate: plan_hash must be 16 hexadecimal digits in lower case, found {}",
           found(f.plan_hash));
}

/// Refuses files of older versions and says what they lack.
void check_format(const json& j) {
  if (!j.is_object() || !j.contains("format") || j["format"] == format) return;
  for (const auto& [older, lacks] :
       {std::pair("rankc certificate 1", "gradients"), std::pair("rankc certificate 2", "views"),
        std::pair("rankc certificate 3", "places from which sums are reduce-scattered"),
        std::pair("rankc certificate 4", "optimizer"),
        std::pair("rankc certificate 5", "types that sums are sent in"),
        std::pair("rankc certificate 6", "row-pipelined collectives"),
        std::pair("rankc certificate 7", "ops that run while rows move"),
        std::pair("rankc certificate 8",
                  "tables and padding that a step leaves, the rounding of each op, and the target of its "
                  "kernels"),
        std::pair("rankc certificate 9", "operands of calls")})
    if (j["format"] == older)
      refuse(
          "RC7129: certificate: the format is \"{}\", which has no {}; expected \"{}\": write the "
          "certificate "
          "again",
          older, lacks, format);
  refuse("RC7130: certificate: the format must be \"{}\", found {}", format, found(j["format"]));
}

/// Reads each op as soon as its text is complete, so that the ops are never all in memory as JSON.
class parser {
 public:
  file run(const std::string& text) {
    const json j = json_tree([this](const json_path& around, const json& object) {
                     return take(around, object);
                   }).read(text);
    check_format(j);
    file f;
    reader::read_struct<file_schema>(j, file_schema::what, f);
    check_head(f);
    check_uses(f.model);
    for (step& s : f.steps) finish(s, f);
    check_names(f.steps);
    return f;
  }

 private:
  void finish(step& s, const file& f) {
    for (listed_program& p : s.programs) {
      if (!p.ops.empty() || taken_ == ops_of_programs_.size())
        refuse("RC7136: certificate: the ops of a program must be a list of objects");
      p.ops = std::move(ops_of_programs_[taken_++]);
    }
    s.world = f.world;
    s.mesh = f.mesh;
    expand_runs(s);
    check_world(s);
  }

  /// Reads an op, and takes the ops of a program when the program ends.
  bool take(const json_path& around, const json& object) {
    if (is_at(around, {"steps", "programs"})) ops_of_programs_.push_back(std::exchange(ops_, {}));
    if (!is_at(around, {"steps", "programs", "ops"})) return false;
    reader::read_struct<op_schema>(object, op_schema::what, ops_.emplace_back());
    return true;
  }

  std::vector<listed_op> ops_;                           // of the program that is being read
  std::vector<std::vector<listed_op>> ops_of_programs_;  // of the programs that have been read
  std::size_t taken_ = 0;
};

}  // namespace

file read(const std::string& json_text) { return parser().run(json_text); }

}  // namespace rankc::codegen::schema
