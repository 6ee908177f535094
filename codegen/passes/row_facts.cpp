// SPDX-License-Identifier: Apache-2.0
#include "row_facts.hpp"

#include <equivalence/facts.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "row_attributes.hpp"
#include "row_typing.hpp"
#include "undeclared.hpp"

namespace rankc::codegen {

namespace {

/// Writes the facts of one row, from one of its ops.
class row_writer {
 public:
  row_writer(const trace& t, const rankc::op& o, alphabet& letters)
      : op_(o), row_(*o.kind), letters_(letters), typing_(t, o) {
    if (row_.converts != conversion::none) give_up("it moves data between ranks");
    for (const auto* side : {&typing_.results(), &typing_.operands()})
      for (const typed_port& p : *side) all_.push_back(&p);
    for (const typed_port* p : all_) find_tokens(*p);
    for (const typed_port* p : all_) check_dims(*p);
  }

  specification::row_facts write() {
    specification::row_facts f{.row = std::string(row_.name)};
    for (const typed_port* p : all_) f.ports += (f.ports.empty() ? "" : " ") + port_text(*p);
    find_axes();
    check_sequences();
    f.rule = rule_text();
    f.needs = needs_text();
    f.attributes = attributes_text();
    return f;
  }

 private:
  /// The first dim of an operand or a result that is no parameter counts tokens. A single number of a step
  /// has no tokens.
  void find_tokens(const typed_port& p) {
    if ((p.of->as != use::in && p.of->as != use::out) || p.of->shape.ndim == 0) return;
    if (p.of->as == use::in && p.of->shape.ndim == 1 && p.of->shape.dim[0].number == 1) return;
    const port_dim& d = p.of->shape.dim[0];
    if (d.number || !d.unit.empty() || (!tokens_.empty() && d.count != tokens_))
      give_up("the first dims of its ports are not all one number of tokens");
    tokens_ = d.count;
  }
  void check_dims(const typed_port& p) const {
    const port_shape& s = p.of->shape;
    if (p.of->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") != std::string_view::npos ||
        p.of->name.starts_with('_'))
      give_up("port {} has a name of other characters than a to z, digits and _", p.of->name);
    if (p.of->as == use::rotary) give_up("it takes a rotary table");
    if (s.ndim == 2 && !s.dim[0].count.empty() && s.dim[0].count == s.dim[1].count)
      give_up("both dims of port {} have the same symbol", p.of->name);
    if (s.ndim == 2 && !s.dim[0].unit.empty() && !s.dim[1].unit.empty())
      give_up("both dims of port {} have units", p.of->name);
    for (int d = 0; d < s.ndim; ++d)
      if (s.dim[d].number > 9) give_up("port {} has a dim of {} elements", p.of->name, s.dim[d].number);
  }
  char letter_of(std::string_view symbol) {
    const char letter = symbol == tokens_ ? 't' : letters_.letter_of(symbol);
    used_.insert(letter);
    if (used_.size() > algebra::max_letters) give_up("it has more than {} symbols", algebra::max_letters);
    return letter;
  }

  std::string axis_text(const port_dim& d) {
    if (d.number) return std::to_string(d.number);
    std::string text(1, letter_of(d.count));
    if (!d.unit.empty()) text += fmt::format("*{}", letter_of(d.unit));
    return text;
  }
  static std::string_view type_text(const port& p) {
    constexpr std::string_view texts[]{"", "/wide", "/i32", "/e4m3", "/e5m2", "/e4m3_rows"};
    return texts[static_cast<int>(p.as == use::sum ? element::wide : p.holds)];
  }
  std::string port_text(const typed_port& p) {
    const port& of = *p.of;
    std::string text = fmt::format("{}{}(", of.adds || of.as == use::sum ? "+" : "", of.name);
    for (int d = 0; d < of.shape.ndim; ++d) text += (d ? " " : "") + axis_text(of.shape.dim[d]);
    text += fmt::format("){}", type_text(of));
    if (!of.shape.stride.empty()) text += fmt::format(":{}", letters_.letter_of(of.shape.stride));
    for (int i = 0; i < 2 && !of.may_replace[i].empty(); ++i)
      text += fmt::format("{}{}", i ? "," : "^", of.may_replace[i]);
    return text;
  }

  /// Asks the typing rule about each symbol: may ranks shard it, and is the result then a pending sum?
  void find_axes() {
    summed_.resize(typing_.results().size());
    for (const typed_port& x : typing_.operands())
      for (int d = 0; d < x.of->shape.ndim; ++d)
        if (!x.of->shape.dim[d].count.empty()) symbols_.insert(x.of->shape.dim[d].count);
    for (const std::string_view symbol : symbols_) find_axis(symbol);
    for (const typed_port& y : typing_.results())
      for (int d = 0; d < y.of->shape.ndim; ++d)
        if (const auto symbol = y.of->shape.dim[d].count; !symbol.empty() && !symbols_.contains(symbol))
          give_up("no operand has the {} of result {}", symbol, y.of->name);
  }
  void find_axis(std::string_view symbol) {
    const answer made = typing_.sharded({symbol});
    if (!made) return add_whole(symbol);
    if (made->has_maximum) give_up("it takes a maximum");
    for (std::size_t r = 0; r < made->at.size(); ++r) {
      const typed_port& y = typing_.results()[r];
      const int d = y.find(symbol);
      if (made->at[r] != (d < 0 ? P : V(d)))
        give_up(
            "if operands are sharded along {}, its typing rule makes {} neither sharded nor a pending sum",
            symbol, y.of->name);
      if (d < 0) summed_[r] += letter_of(symbol);
    }
  }
  /// Adds an axis that the typing rule does not let ranks shard.
  void add_whole(std::string_view symbol) {
    if (symbol == tokens_) {
      are_tokens_whole_ = true;
      if (!takes_sequences(row_))
        give_up("its typing rule refuses operands sharded along {}, and no kernel takes rows or seq", symbol);
      return;
    }
    std::vector<std::string_view> others;
    for (const std::string_view other : symbols_)
      if (other != symbol && other != tokens_) others.push_back(other);
    for (unsigned some = 1; some < 1u << others.size(); ++some) {
      std::vector<std::string_view> together{symbol};
      for (std::size_t i = 0; i < others.size(); ++i)
        if (some >> i & 1) together.push_back(others[i]);
      if (typing_.sharded(together))
        give_up("its typing rule shards {}, and none of them alone", fmt::join(together, " and "));
    }
    whole_ += letter_of(symbol);
  }
  /// Kernels that take rows or seq must get whole sequences: rows * seq is the number of tokens.
  void check_sequences() const {
    if (!takes_sequences(row_)) return;
    std::int64_t tokens = 0;
    for (const typed_port* p : all_)
      if (p->find(tokens_) >= 0) tokens = p->is.shape[p->find(tokens_)].size;
    if (std::int64_t{op_.with.rows} * op_.with.seq != tokens)
      give_up("its kernels take rows or seq, and it is given {} sequences of {} for {} tokens", op_.with.rows,
              op_.with.seq, tokens);
    if (!are_tokens_whole_)
      give_up("its kernels take rows or seq, and its typing rule takes operands sharded along {}", tokens_);
  }

  /// "y = sum(i) x' w'; ..."
  std::string rule_text() const {
    if (typing_.operands().empty()) give_up("it has no operands");
    std::vector<std::vector<bool>> linear(typing_.results().size());
    const auto is_sum = [](const answer& made, std::size_t r) { return made && made->at[r] == P; };
    const answer of_all = typing_.pending(-1);
    for (std::size_t i = 0; i < typing_.operands().size(); ++i) {
      const bool may_be = typing_.operands()[i].may_be_pending();
      const answer of_one = may_be ? typing_.pending(static_cast<int>(i)) : std::nullopt;
      for (std::size_t r = 0; r < linear.size(); ++r) {
        linear[r].push_back(is_sum(of_one, r));
        if (may_be && is_sum(of_all, r) && !linear[r].back())
          give_up("its typing rule takes pending sums only in all operands at once");
      }
    }
    std::string text;
    for (std::size_t r = 0; r < linear.size(); ++r) {
      text += fmt::format("{}{} =", r ? "; " : "", typing_.results()[r].of->name);
      if (!summed_[r].empty()) text += fmt::format(" sum({})", spaced(summed_[r]));
      for (std::size_t i = 0; i < linear[r].size(); ++i)
        text += fmt::format(" {}{}", typing_.operands()[i].of->name, linear[r][i] ? "'" : "");
    }
    return text;
  }
  static std::string spaced(const std::string& letters) {
    std::string text;
    for (const char letter : letters) text += fmt::format("{}{}", text.empty() ? "" : " ", letter);
    return text;
  }

  std::string needs_text() {
    std::string text = takes_sequences(row_) ? "sequences" : "";
    const std::span<const port> ports = row_.used_ports();
    const auto areas =
        std::count_if(ports.begin(), ports.end(), [](const port& p) { return p.as == use::scratch; });
    if (areas > 1) give_up("it takes {} areas of scratch", areas);
    if (areas == 1) text += text.empty() ? "scratch" : " scratch";
    const auto add = [&](std::string_view need, const std::string& letters) {
      if (letters.empty()) return;
      text += fmt::format("{}{}({})", text.empty() ? "" : " ", need, spaced(letters));
    };
    std::string first;
    for (const typed_port* p : all_)
      for (int d = 0; d < p->of->shape.ndim; ++d) {
        const port_dim& of = p->of->shape.dim[d];
        if (of.first.empty()) continue;
        if (of.count == tokens_) give_up("a port asks for {}@{}", tokens_, of.first);
        if (const char letter = letter_of(of.count); first.find(letter) == std::string::npos) first += letter;
      }
    add("whole", whole_);
    add("first", first);
    return text;
  }

  std::string attributes_text() const {
    for (const std::string_view word : {"cp", "ring"})
      if (row_.takes(word)) give_up("its kernels take {}", word);
    if (op_.with.scaling != rope_scaling{}) give_up("it is given a scaling of rotary positions");
    if (!op_.with.attention.is_plain()) give_up("it is given an attention_setting");
    if (op_.number() != 0 && row_.on_host().takes("number") != row_.on_cuda().takes("number"))
      give_up("it is given the number {}, and the kernel of one target alone takes it", op_.number());
    std::string text = takes_sequences(row_) ? "seq" : "";
    if (row_.takes("number")) text += text.empty() ? "number" : " number";
    return text;
  }

  const rankc::op& op_;
  const op_row& row_;
  alphabet& letters_;
  const row_typing typing_;
  std::vector<const typed_port*> all_;  // results, then operands
  std::string_view tokens_;
  std::set<std::string_view> symbols_;  // of the operands
  std::vector<std::string> summed_;     // of each result: letters of the axes summed over
  std::string whole_;
  bool are_tokens_whole_ = false;
  std::set<char> used_;  // letters of the row's axes
};

}  // namespace

char alphabet::letter_of(std::string_view symbol) {
  constexpr std::string_view free = "woiabcdefhkqxyz";  // the other letters have meanings in the table
  const auto known = letters_.find(symbol);
  if (known != letters_.end()) return known->second;
  if (letters_.size() == free.size())
    give_up("the user's rows have more than {} symbols beside their tokens", free.size());
  return letters_.emplace(std::string(symbol), free[letters_.size()]).first->second;
}

specification::row_facts row_facts_of(const trace& t, const rankc::op& o, alphabet& letters) {
  return row_writer(t, o, letters).write();
}

}  // namespace rankc::codegen
