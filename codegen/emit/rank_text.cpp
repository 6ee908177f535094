// SPDX-License-Identifier: Apache-2.0
#include "rank_text.hpp"

#include <fmt/format.h>
#include <rankc/codegen/text_template.hpp>

#include <algorithm>

namespace rankc::codegen {

namespace {

void add_names(const std::vector<declared_constant>& all, numbered_names& to) {
  for (const declared_constant& c : all) to.types.emplace(c.name, c.type);
}

numbered_names names_of(const lowered& l, const pipeline_rank& r) {
  numbered_names names;
  for (const stage_plan& s : r.stages) {
    add_names(stage_constants(l, s), names);
    add_names(slot_members(l, s), names);
    names.turns.emplace(s.name + "::slots[", static_cast<long>(s.slots.size()));
  }
  for (const step* s : {&r.train, &r.evaluate}) {
    add_names(value_constants(l, r, *s), names);
    for (const item& i : s->items) names.types.emplace("s_" + i.name, local_name);
  }
  add_names(bucket_constants(r), names);
  add_names(shard_constants(r), names);
  for (const std::string& e : r.events) names.types.emplace(e, "event");
  return names;
}

/// Numbers the events. The events of a family have numbers in a row, with a step for each of their numbers.
void number_events(const pipeline_rank& r, rolled_rank& to) {
  for (const std::string& e : r.events) to.event_constants.push_back({e, "event", {}, {}});
  for (const families::group& g : to.of.groups_of(to.event_constants))
    for (const declared_constant* c : g.all) {
      if (c != nullptr)
        to.event_constants[static_cast<std::size_t>(c - to.event_constants.data())].value =
            std::to_string(to.events);
      ++to.events;
    }
}

/// The functions of a rank. `rolls`: with loops.
rolled_rank roll_rank(const lowered& l, const pipeline_rank& r, bool rolls) {
  const numbered_names names = names_of(l, r);
  rolled_rank made;
  const auto add = [&](std::string head, const std::vector<statement>& body) {
    for (const statement& each : body) made.without_loops += 1 + std::ranges::count(each.text, '\n');
    rolled_function f{std::move(head), rolls ? roll(body, names) : unrolled(body)};
    made.of.add(f.body);
    return f;
  };
  if (l.trains()) made.train = add("inline void train(rank& r) {", order_of(l, r, r.train));
  made.evaluate = add("inline void evaluate(rank& r) {", order_of(l, r, r.evaluate));
  for (const stage_plan& s : r.stages) {
    made.functions.emplace_back();
    for (const stage_function& f : stage_functions(l, r, s))
      made.functions.back().push_back(add(f.head, f.body));
  }
  made.of.name(names);
  number_events(r, made);
  return made;
}

rank_files files_of(const lowered& l, const pipeline_rank& r, const rolled_rank& text) {
  rank_files made{{}, text.events};
  made.text[fmt::format("memory_{}.hpp", r.index)] = emit_memory(l, r, text.of);
  made.text[fmt::format("pipeline_{}.hpp", r.index)] = emit_pipeline(l, r, text);
  for (const stage_plan& s : r.stages) made.text[s.name + ".hpp"] = emit_stage(l, r, s, text);
  return made;
}

long lines_of(const rank_files& files) {
  long lines = 0;
  for (const auto& [name, text] : files.text) lines += std::ranges::count(text, '\n');
  return lines;
}

}  // namespace

std::string function_text(const rolled_function& f, const families& of) {
  std::string out = f.head + "\n";
  const std::string body = of.print(f.body);
  for (std::size_t at = 0, end; at < body.size(); at = end + 1) {
    end = body.find('\n', at);
    out += (end > at ? "  " : "") + body.substr(at, end - at) + "\n";
  }
  return out + "}\n";
}

rank_files emit_rank(const lowered& l, const pipeline_rank& r) {
  const rolled_rank text = roll_rank(l, r, true);
  rank_files rolled = files_of(l, r, text);
  if (text.without_loops > 2 * lines_of(rolled)) return rolled;
  rank_files plain = files_of(l, r, roll_rank(l, r, false));
  constexpr long worth = 10;  // one line in this many must be saved
  return (lines_of(plain) - lines_of(rolled)) * worth > lines_of(plain) ? rolled : plain;
}

}  // namespace rankc::codegen
