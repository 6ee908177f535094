// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/format.h>

#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/input_text.hpp"
#include "emit.hpp"
#include "memory_map.hpp"
#include "rank_text.hpp"

namespace rankc::codegen {

namespace {

std::string between_stages(const lowered& l, const pipeline_rank& r, const families& of) {
  std::string out = declare(value_constants(l, r, r.train), of);
  if (const std::string evaluation = declare(value_constants(l, r, r.evaluate), of); !evaluation.empty())
    out += "namespace evaluation {\n" + evaluation + "}  // namespace evaluation\n";
  return out;
}

/// "vector<std::int32_t, 512>": the type of an input of a microbatch.
std::string tensor_of_input(const lowered& l, const named_input& i) {
  const std::string_view of_holds[]{"real", "wide", "std::int32_t"},
      element = of_holds[static_cast<int>(i.holds)];
  const std::size_t elements = elements_of_input(*l.plan, i);
  if (i.features.size == 0) return fmt::format("vector<{}, {}>", element, elements);
  return fmt::format("matrix<{}, {}, {}>", element, elements / static_cast<std::size_t>(i.width()),
                     i.width());
}

/// The inputs of the step: a type for each form, and a function from the microbatch to the address.
std::string inputs_text(const lowered& l, const pipeline_rank& r) {
  std::string out;
  std::vector<std::string> types;  // types that the text already has
  for (const placed_input& i : r.inputs) {
    if (!i.read) continue;
    const input_text text = text_of_input(i.is);
    if (i.is.computed) {
      out +=
          fmt::format("constexpr {} {}{{{{{}}}}};  // {}: {}\n", text.type, text.formal, i.where,
                      readable_bytes(l.wide_bytes()),
                      l.plan->recipe.token_weights ? "sum of the weights of the step's labels" : text.about);
      continue;
    }
    if (std::find(types.begin(), types.end(), text.type) == types.end()) {
      out += fmt::format("using {} = {};  // {}\n", text.type, tensor_of_input(l, i.is), text.of_type);
      types.push_back(text.type);
    }
    out += fmt::format(
        "constexpr {} {}_of(int microbatch) {{ return {{at{{{}}} + {} * "
        "static_cast<std::size_t>(microbatch)}}; }}  // {}\n",
        text.type, text.formal, i.where, bytes_of_input(*l.plan, i.is, l.real_bytes(), l.wide_bytes()),
        text.about);
  }
  return out;
}

}  // namespace

std::string sums_name(const gathering& g) { return g.id + (g.trained == g.parts ? "_shards" : "_sums"); }

std::string boundary_type(const lowered& l, const pipeline_rank& r, int stage) {
  for (const stage_plan& s : r.stages) {
    if (s.stage == stage) return layer_namespace(l.bodies[s.layers.front().kind]) + "::input";
    if (s.stage + 1 == stage) return layer_namespace(l.bodies[s.layers.back().kind]) + "::output";
  }
  throw std::logic_error("nothing of the rank is at a boundary of its own");
}

std::vector<declared_constant> value_constants(const lowered& l, const pipeline_rank& r, const step& s) {
  std::vector<const placed_value*> sorted;
  for (const placed_value& v : s.values)
    if (!v.name.empty()) sorted.push_back(&v);
  std::stable_sort(sorted.begin(), sorted.end(), [](const placed_value* x, const placed_value* y) {
    return std::pair(x->where, x->first) < std::pair(y->where, y->first);
  });
  std::vector<declared_constant> all;
  for (const placed_value* v : sorted) {
    declared_constant made{
        v->name, boundary_type(l, r, v->stage), fmt::format("{{{}}}", v->where), {}, v->lives};
    made.plain =
        fmt::format("constexpr {} {}{{{}}};  // {}\n", made.type, made.name, made.value, made.comment);
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<declared_constant> bucket_constants(const pipeline_rank& r) {
  std::vector<declared_constant> all;
  for (const bucket& b : r.buckets) {
    declared_constant made{b.id + "_gradients",
                           fmt::format("vector<wide, {}>", b.count),
                           fmt::format("gradients[{}]", b.first),
                           {}};
    made.plain = fmt::format("constexpr {} {}{{{}}};\n", made.type, made.name, made.value);
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<declared_constant> shard_constants(const pipeline_rank& r) {
  std::vector<declared_constant> all;
  const auto add = [&](const std::string& name, const std::vector<gathering::part>& parts) {
    std::vector<std::string> words;
    for (const gathering::part& p : parts) {
      const placed_parameter& of = r.parameters[static_cast<std::size_t>(p.parameter)];
      words.push_back(r.arriving_elements > 0
                          ? fmt::format("{{{}, {}, {}, {}}}", p.whole, of.element, of.as.shard(), p.arriving)
                          : fmt::format("{{{}, {}, {}}}", p.whole, of.element, of.as.shard()));
    }
    all.push_back({name, fmt::format("std::array<shard_range, {}>", parts.size()),
                   fmt::format("{{{}}}", fmt::join(words, ", ")),
                   fmt::format("constexpr shard_range {}[]{{{}}};\n", name, wrap(words, ",", "    "))});
  };
  for (const gathering& g : r.gatherings) {
    add(g.id + "_shards", g.parts);
    if (!g.trained.empty() && g.trained != g.parts) add(sums_name(g), g.trained);
  }
  return all;
}

std::string emit_memory(const lowered& l, const pipeline_rank& r, const families& of_rank) {
  std::string out;
  auto one = [&](const std::string& type, const std::string& name, std::size_t where, std::size_t bytes,
                 std::string_view what) {
    out += fmt::format("constexpr {} {}{{{}}};  // {}: {}\n", type, name,
                       type == "at" ? std::to_string(where) : fmt::format("{{{}}}", where),
                       readable_bytes(bytes), what);
  };
  auto several = [&](const std::string& name, const std::vector<std::size_t>& where, std::size_t bytes,
                     std::string_view what) {
    if (where.empty()) return;
    std::vector<std::string> at;
    for (std::size_t w : where) at.push_back(fmt::format("{{{}}}", w));
    out += fmt::format("// {} x {}: {}\n", where.size(), readable_bytes(bytes), what);
    out += fmt::format("constexpr at {}[]{{{}}};\n", name, wrap(at, ",", "    "));
  };
  auto in_a_row = [](std::size_t first, std::size_t bytes, int count) {
    std::vector<std::size_t> where;
    for (int i = 0; i < count; ++i) where.push_back(first + i * aligned(bytes));
    return where;
  };
  const arena_plan& a = r.arena;
  const optimizer_state kept = l.state();
  const auto of = [&](std::size_t elements, std::string_view name, std::size_t where, std::string_view type,
                      std::size_t bytes, std::string_view what) {
    one(fmt::format("vector<{}, {}>", type, elements), std::string(name), where, elements * bytes, what);
  };
  const std::string_view of_weights = l.has_bf16_weights() ? "real" : "wide";
  const std::size_t held = l.weight_elements(r), trained = r.trained_elements;
  of(held, "weights", a.weights, of_weights, kept.weight, "parameters of this pipeline rank");
  if (l.trains() && held != trained)
    of(trained, "trained_weights", a.weights, of_weights, kept.weight, "of these the ones that are trained");
  if (l.trains()) of(trained, "gradients", a.gradients, "wide", l.wide_bytes(), "their gradients");
  for (int i = 0; i < kept.moments; ++i) {
    const moment& m = l.optimizer().moments[i];
    of(trained, m.name, i == 0 ? a.first_moment : a.second_moment, l.has_bf16_moments() ? "bf16" : "wide",
       kept.moment, m.comment);
  }
  if (l.has_working_copy())
    one(fmt::format("vector<real, {}>", r.parameter_elements), "working_copy", a.working_copy,
        r.parameter_elements * l.real_bytes(), "the weights as the layers read them, rounded");
  if (l.is_sharded()) {
    one(fmt::format("vector<real, {}>", r.gathered_elements), "gathered", a.gathered,
        r.gathered_elements * l.real_bytes(), "the shards of all ranks, as the layers read them");
    if (l.trains())
      one(fmt::format("vector<wide, {}>", r.summed_elements), "full_gradients", a.full_gradients,
          r.summed_elements * l.wide_bytes(), "the layers' sums, before they are dealt out");
  }
  if (r.arriving_elements > 0)
    one(fmt::format("vector<wide, {}>", r.arriving_elements), "arriving", a.arriving,
        r.arriving_elements * l.wide_bytes(), "sums that are added to others");
  for (std::size_t t = 0; t < a.ropes.size(); ++t)
    one(fmt::format("matrix<wide, {}, {}>", a.ropes[t].as.positions, a.ropes[t].as.dim),
        rope_name(t, a.ropes.size()), a.ropes[t].where, a.ropes[t].bytes,
        fmt::format("cosines and sines of {} positions, base {}{}", a.ropes[t].as.positions,
                    a.ropes[t].as.theta, scaling_words(a.ropes[t].as.scaling)));
  out += inputs_text(l, r);
  if (a.routers_bytes) {
    const std::size_t count = a.routers_bytes / l.wide_bytes();
    out += fmt::format("using router_sums = matrix<wide, 1, {}>;  // of a microbatch\n", count);
    out += fmt::format(
        "constexpr router_sums routers_of(int microbatch) {{ return {{at{{{}}} + {} * "
        "static_cast<std::size_t>(microbatch)}}; }}  // what they did\n",
        a.routers, a.routers_bytes);
  }
  one("vector<wide, 1>", "loss", a.loss, l.wide_bytes(), "sum over the microbatches");
  if (l.trains()) one("vector<wide, 1>", "norm", a.norm, l.wide_bytes(), "square of the gradients' norm");
  for (const pool& p : a.pools)
    out += fmt::format("\n// {} x {} from {}: {}\n", p.count, readable_bytes(p.unit), p.where,
                       kept_names[static_cast<int>(p.what)]) +
           (p.what == kept::activation ? between_stages(l, r, of_rank) : "");
  out += "\n";
  several("chain", in_a_row(a.chain[0], a.chain_bytes, a.chains), a.chain_bytes,
          "gradients between the layers of a stage, in turn");
  if (a.work_bytes || r.overlaps) one("at", "work", a.work, a.work_bytes, "temporaries of a layer");
  if (r.overlaps)
    one("at", "work_beside", a.work_beside, a.work_beside_bytes,
        "temporaries of a layer of an action that overlaps");
  out += declare(bucket_constants(r), of_rank);
  const auto ranges = [&](const std::string& name, const std::vector<range>& list, std::string_view what) {
    if (list.empty()) return;
    std::vector<std::string> words;
    for (const range& g : list)
      words.push_back(
          fmt::format("{{{}, {}, {}{}}}", g.first, g.count, g.decay,
                      g.balances.any() ? fmt::format(", {{{}, {}}}", g.balances.rate, g.balances.mean) : ""));
    const bool balances =
        std::any_of(list.begin(), list.end(), [](const range& g) { return g.balances.any(); });
    out += fmt::format("\n// {}: first element, count, weight decay{}\nconstexpr range {}[]{{{}}};\n", what,
                       balances ? ", of routers' biases their step and the mean of choices" : "", name,
                       wrap(words, ",", "    "));
  };
  if (l.is_sharded())
    out += fmt::format(
        "\n// What is gathered or dealt out together: first element of all, first element of the rank's, "
        "count of the rank's{}\n",
        r.arriving_elements > 0 ? ",\n// where those arrive that are added to it" : "");
  out += declare(shard_constants(r), of_rank);
  const auto squares = [&](norm_over c, const char* what) {
    ranges(norm_over_names[static_cast<int>(c)], r.squares_of(c), what);
  };
  squares(norm_over::experts, "What counts in the norm on every rank with other experts");
  squares(norm_over::region, "What counts in the norm on every tensor-parallel rank");
  squares(norm_over::nothing, "What counts in the norm once");
  ranges("updates", r.updates, "What the optimizer updates");
  return fill(templates::program_memory_hpp, {{"version", version},
                                              {"plan", std::string(l.plan->name)},
                                              {"plan_id", identifier(l.plan->name)},
                                              {"pipeline", std::to_string(r.index)},
                                              {"total", readable_bytes(a.bytes)},
                                              {"map", memory_map(l, r)},
                                              {"places", out}});
}

}  // namespace rankc::codegen
