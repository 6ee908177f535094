// SPDX-License-Identifier: Apache-2.0
// Loops of generated text run the statements that were listed, in the same order and with the same numbers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "emit/families.hpp"
#include "emit/loops.hpp"

namespace loops_test {

using namespace rankc::codegen;

namespace {

std::vector<statement> statements_of(const std::vector<std::string>& texts) {
  std::vector<statement> all;
  for (const std::string& text : texts) all.push_back({text.substr(text.starts_with('\n')), text[0] == '\n'});
  return all;
}

/// Runs a loop by hand: the statements with the values of their numbers.
void run(const std::vector<rolled>& all, std::vector<long>& variables, std::vector<std::string>& out) {
  for (const rolled& r : all) {
    if (r.body.empty()) {
      std::string text;
      for (const piece& p : r.text) {
        text += p.parts.front();
        for (std::size_t n = 0; n < p.numbers.size(); ++n) {
          const number& each = p.numbers[n];
          long value = each.constant;
          for (std::size_t d = 0; d < each.factors.size(); ++d) value += each.factors[d] * variables.at(d);
          if (each.cycle > 0) value %= each.cycle;
          text += std::to_string(value) + p.parts[n + 1];
        }
      }
      out.push_back(text);
      continue;
    }
    const long step = r.first <= r.last ? 1 : -1;
    for (long v = r.first; v != r.last + step; v += step) {
      variables.push_back(v);
      run(r.body, variables, out);
      variables.pop_back();
    }
  }
}

std::vector<std::string> run(const std::vector<rolled>& all) {
  std::vector<long> variables;
  std::vector<std::string> out;
  run(all, variables, out);
  return out;
}

std::vector<std::string> texts_of(const std::vector<statement>& all) {
  std::vector<std::string> texts;
  for (const statement& s : all) texts.push_back(s.text);
  return texts;
}

std::string printed(const std::vector<statement>& all, const numbered_names& names) {
  families of;
  const std::vector<rolled> loops = roll(all, names);
  of.add(loops);
  of.name(names);
  return of.print(loops);
}

/// A step of microbatches, each with some layers.
std::vector<statement> step_of(int microbatches, int layers, int slots, numbered_names& names) {
  std::vector<std::string> texts;
  names.turns = {{"slots[", slots}};
  for (int m = 0; m < microbatches; ++m) {
    texts.push_back(fmt::format("\nbegin(compute, \"0F{}\");", m));
    texts.push_back(fmt::format("take(slots[{}], {});", m % slots, m == 0 ? "overwrite" : "add"));
    for (int i = 0; i < layers; ++i) {
      texts.push_back(fmt::format("wait(compute, layers_{}_gathered_in_0F{});", i, m));
      texts.push_back(
          fmt::format("forward(layers_{}, s.layers_{}_out, {{{}, \"layers.{}\"}});", i, i, 3 * i, i));
      names.types.emplace(fmt::format("layers_{}_gathered_in_0F{}", i, m), "event");
      names.types.emplace(fmt::format("layers_{}", i), "layer");
      names.types.emplace(fmt::format(".layers_{}_out", i), ".output");
    }
  }
  return statements_of(texts);
}

}  // namespace

TEST_CASE("microbatches and layers become two loops") {
  numbered_names names;
  const std::vector<statement> step = step_of(9, 6, 4, names);
  CHECK(printed(step, names) ==
        "begin(compute, \"0F0\");\n"
        "take(slots[0], overwrite);\n"
        "for (int i = 0; i < 6; ++i) {\n"
        "  wait(compute, layers_gathered_in_0F[i][0]);\n"
        "  forward(layers[i], s.layers_out[i], {3 * i, layers_text[i]});\n"
        "}\n"
        "\n"
        "for (int m = 1; m < 9; ++m) {\n"
        "  begin(compute, action_0F[m]);\n"
        "  take(slots[m % 4], add);\n"
        "  for (int i = 0; i < 6; ++i) {\n"
        "    wait(compute, layers_gathered_in_0F[i][m]);\n"
        "    forward(layers[i], s.layers_out[i], {3 * i, layers_text[i]});\n"
        "  }\n"
        "}\n");
}

TEST_CASE("a loop runs the statements that were listed") {
  for (const int microbatches : {1, 2, 3, 8, 17})
    for (const int layers : {0, 1, 2, 5, 32})
      for (const int slots : {1, 2, 3, 40}) {
        CAPTURE(microbatches);
        CAPTURE(layers);
        CAPTURE(slots);
        numbered_names names;
        const std::vector<statement> step = step_of(microbatches, layers, slots, names);
        CHECK(run(roll(step, names)) == texts_of(step));
      }
}

TEST_CASE("statements at random stay as they are") {
  std::mt19937 random(59);
  numbered_names names{.types = {{"a_0", "t"}, {"a_1", "t"}, {"a_2", "t"}, {"b_1_2", "t"}},
                       .turns = {{"slots[", 3}}};
  const std::string words[]{"a_0",      "a_1",      "a_2", "b_1_2", "slots[0]",
                            "slots[1]", "slots[2]", "7",   "8",     "\"x1\""};
  const auto word = [&] { return words[random() % std::size(words)]; };
  int loops = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> pattern(1 + random() % 4), texts;
    for (std::string& each : pattern) each = word();
    for (std::size_t n = 0; n < 60; ++n) {
      const bool is_random = random() % 16 == 0;
      const std::string repeated = pattern[n % pattern.size()];
      texts.push_back(fmt::format("{}f({}, {});", n % 20 == 0 ? "\n" : "", is_random ? word() : repeated,
                                  n / pattern.size()));
    }
    const std::vector<statement> all = statements_of(texts);
    const std::vector<rolled> made = roll(all, names);
    CHECK(run(made) == texts_of(all));
    for (const rolled& r : made) loops += !r.body.empty();
  }
  CHECK(loops > 100);
}

TEST_CASE("a downward loop, and a statement that is printed on several lines") {
  numbered_names names;
  std::vector<std::string> texts;
  for (int i = 31; i > 0; --i) {
    texts.push_back(
        fmt::format("backward(on, layers_{}, d_layers_{}, s.layers_{}, work, s.layers_{}_out,\n"
                    "    d_layers_{}_out, d_layers_{}_out, into);",
                    i, i, i, i - 1, i, i - 1));
    for (const char* form : {"layers_{}", "d_layers_{}", ".layers_{}", ".layers_{}_out", "d_layers_{}_out"})
      for (const int n : {i, i - 1}) names.types.emplace(fmt::format(fmt::runtime(form), n), form);
  }
  CHECK(printed(statements_of(texts), names) ==
        "for (int i = 31; i >= 1; --i)\n"
        "  backward(on, layers[i], d_layers[i], s.layers[i], work, s.layers_out[i - 1], d_layers_out[i],\n"
        "      d_layers_out[i - 1], into);\n");
}

TEST_CASE("constants of a family are one rule, or a table") {
  families of;
  const numbered_names names{.types = {{"a_0", "t"}, {"a_1", "t"}, {"a_2", "t"}, {"a_3", "t"}}};
  const std::vector<rolled> loops = roll(statements_of({"f(a_0);\ng();\nh();", "f(a_1);\ng();\nh();",
                                                        "f(a_2);\ng();\nh();", "f(a_3);\ng();\nh();"}),
                                         names);
  of.add(loops);
  of.name(names);
  const auto declared = [&](const std::vector<std::string>& values) {
    std::vector<declared_constant> all;
    for (std::size_t i = 0; i < values.size(); ++i)
      all.push_back({"a_" + std::to_string(i), "t", values[i], "plain\n"});
    return declare(all, of);
  };
  CHECK(declared({"w[5]", "w[12]", "w[19]", "w[26]"}) ==
        "constexpr auto a = each<0, 4>([](std::size_t i) { return t{w[5 + 7 * i]}; });\n");
  CHECK(declared({"w[5]", "w[12]", "w[5]", "w[12]"}) ==
        "constexpr auto a = each<0, 4>([](std::size_t i) { return t{w[5 + 7 * (i % 2)]}; });\n");
  CHECK(declared({"w[1]", "w[2]", "w[4]", "w[8]"}) ==
        "constexpr numbered<t, 0, 4> a{{{w[1]}, {w[2]}, {w[4]}, {w[8]}}};\n");
}

}  // namespace loops_test
