// SPDX-License-Identifier: Apache-2.0
#include "subject.hpp"

#include <algorithm>
#include <stdexcept>

namespace equivalence_tests {

subject::subject(const rankc::plan_data& plan, target to, dtype type, bool evaluates) : model(specify(plan)) {
  const lowered l = lower(plan, type, to);
  p = evaluates ? expand_evaluate(l) : expand_train(l);
  order = prove(p);
}

std::string subject::reason() const {
  const equivalence e = check();
  if (e.holds) return "";
  return e.reasons.empty() ? "no reason" : e.reasons.front();
}

std::vector<op*> subject::find(int rank, const std::string& name, const std::string& row) {
  std::vector<op*> all;
  for (op& o : p.ranks.at(static_cast<std::size_t>(rank)).ops)
    if (o.name.find(name) != std::string::npos && (row.empty() || o.row == row)) all.push_back(&o);
  return all;
}

std::vector<op*> subject::find_all(const std::string& name, const std::string& row, std::size_t n) {
  std::vector<op*> all;
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    if (const std::vector<op*> here = find(static_cast<int>(r), name, row); n < here.size())
      all.push_back(here[n]);
  if (all.empty()) throw std::logic_error("no op is called " + name);
  return all;
}

view& subject::port(op& o, const std::string& name) {
  for (view& v : o.views)
    if (v.port == name) return v;
  throw std::logic_error(o.name + " has no port " + name);
}

void subject::leave_out(int rank, op& gone) {
  for (std::size_t i = 0; i < gone.writes.size(); ++i) {
    if (gone.writes[i].type == element_type::bytes) continue;  // scratch, which no op reads
    const int over = gone.writes[i].replaces;
    const int before = gone.reads.at(over < 0 ? i : static_cast<std::size_t>(over)).value;
    for (op& o : p.ranks.at(static_cast<std::size_t>(rank)).ops)
      for (access& a : o.reads)
        if (a.value == gone.writes[i].value) a.value = before;
  }
  gone.kind = op_kind::compute;
  gone.row = {};
  gone.rows = gone.seq = 0;
  gone.number = 0;
  gone.given.clear();
  gone.reads.clear();
  gone.writes.clear();
  gone.views.clear();
}

void subject::insert_after(int rank, const op* at, const op& more) {
  for (std::vector<int>& of : order.position)
    for (int& place : of) place *= 2;
  std::vector<op>& ops = p.ranks.at(static_cast<std::size_t>(rank)).ops;
  std::vector<int>& of = order.position.at(static_cast<std::size_t>(rank));
  const auto index = at - ops.data();
  const op copy = more;
  of.insert(of.begin() + index + 1, of[static_cast<std::size_t>(index)] + 1);
  ops.insert(ops.begin() + index + 1, copy);
}

int subject::new_value() const {
  int last = 0;
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops)
      for (const access& a : o.writes) last = std::max(last, a.value);
  return last + 1;
}

}  // namespace equivalence_tests
