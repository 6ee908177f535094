// SPDX-License-Identifier: Apache-2.0
// Prints the parameters, ops and named values of every layer of both models, with and without sequence
// parallelism, in the order in which a compiler records them. The lists recorded at compile time must have
// the same fingerprint.
#include <rankc/rankc.hpp>

#include <cstdio>
#include <string>

using namespace rankc;

namespace {

inline constexpr training recipe{.seq = 16, .global_batch = 8};
inline constexpr models::gpt2 gpt{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};
inline constexpr models::llama llama{
    .layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
constexpr parallel_dims dims(bool sp) {
  return {.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = sp};
}

constexpr std::vector<layer_kind> kinds_of(const auto& model, bool sp) {
  return check_plan(model, dims(sp), schedules::gpipe{2}, recipe, clusters::cpu).kinds;
}

/// The FNV-1a hash of the traced ops, computed by the compiler and by the program.
constexpr unsigned long long fingerprint(const auto& model, bool sp) {
  unsigned long long h = 0xCBF29CE484222325ull;
  auto add = [&](int n) { h = (h ^ static_cast<unsigned>(n)) * 0x100000001B3ull; };
  for (const layer_kind& k : kinds_of(model, sp))
    for (const op& o : k.ops.ops) {
      for (char c : o.kind->name) add(c);
      for (int i : o.in) add(i);
      for (int i : o.out) add(i);
      for (int i : o.adds_to) add(i);
    }
  return h;
}

std::string text_of(const type& t) {
  constexpr std::string_view kinds = "RIVP", elements[]{"", " wide", " index"};
  std::string s = "(";
  for (int i = 0; i < t.ndim; ++i) s += (i ? ", " : "") + std::string(t.shape[i].name);
  s += ")" + std::string(elements[static_cast<int>(t.holds)]) + " ";
  for (axis a : axes) {
    s += kinds[t[a].k];
    if (t[a].k == placement::V) s += std::to_string(t[a].along);
  }
  return s;
}

/// A value's name, or its number.
std::string called(const trace& t, int id) {
  for (const value_name& n : t.names)
    if (n.id == id) return std::string(n.name);
  return "%" + std::to_string(id);
}

void print(std::string_view title, const auto& model, bool sp) {
  for (const layer_kind& k : kinds_of(model, sp)) {
    const trace& t = k.ops;
    std::printf("%s, %.*s x %d: input %s\n", title.data(), static_cast<int>(k.name.size()), k.name.data(),
                k.count, text_of(t.values[t.input]).c_str());
    for (const weight_info& w : t.weights)
      std::printf("  %s %s, gradient %s\n", w.name.text().c_str(), text_of(w.holds).c_str(),
                  text_of(w.gradient).c_str());
    for (std::size_t i = 0; i < t.ops.size(); ++i) {
      const op& o = t.ops[i];
      if (i == t.forward_ops) std::printf("  backward\n");
      const auto parameter = [&](int w) { return t.weights[static_cast<std::size_t>(w)].name.text(); };
      std::string line = " ";
      for (int j = 0; j < max_outputs; ++j)
        if (o.out[j] >= 0) line += " " + (o.adds_to[j] >= 0 ? parameter(o.adds_to[j]) : called(t, o.out[j]));
      line += (o.adds_to[0] >= 0 ? " += " : " = ") + std::string(o.kind->name);
      for (int v : o.in) {
        if (v < 0) continue;
        const int w = t.find_parameter(v);
        line += " " + (w >= 0 ? parameter(w) : called(t, v));
      }
      std::printf("%s: %s\n", line.c_str(), text_of(t.values[static_cast<std::size_t>(o.out[0])]).c_str());
    }
  }
  std::printf("\n");
}

template <const auto& Model, bool Sp>
bool list(std::string_view title) {
  print(title, Model, Sp);
  static constexpr auto compiled = fingerprint(Model, Sp);
  return compiled == fingerprint(Model, Sp);
}

}  // namespace

int main() {
  bool same = list<gpt, false>("gpt2");
  same &= list<gpt, true>("gpt2 with sequence parallelism");
  same &= list<llama, false>("llama");
  same &= list<llama, true>("llama with sequence parallelism");
  if (!same) std::fprintf(stderr, "the compiler records other ops than the program does\n");
  return same ? 0 : 1;
}
