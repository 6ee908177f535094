// SPDX-License-Identifier: Apache-2.0
// The rows over the field: the rows and ports are those of the table of ops, and gradients are linear in
// their inputs. A part of the operands gives that part of the results. A shift of the maximum does not change
// the loss.
#include <doctest/doctest.h>

#include "../machine/memory.hpp"
#include "drawn_rows.hpp"

#include <rankc/ops.hpp>
#include <rankc/ops/fp8.hpp>
#include <rankc/ops/memory.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <set>

namespace rows_test {

using namespace field;

namespace {

matrix sum(const matrix& a, element factor, const matrix& b) {
  matrix out = a;
  for (std::size_t i = 0; i < out.of.size(); ++i) out.of[i] = add(out.of[i], multiply(factor, b.of[i]));
  return out;
}

using operands = std::map<std::string_view, matrix>;

constexpr std::int64_t tokens = 8, seq = 4, width = 12, unit = 4;
constexpr double factor = 0.375;

/// The operands of a row by name; tokens are two sequences.
matrix operand_of(const row& r, std::string_view port) {
  const std::uint64_t key = mix(key_of(r.name), key_of(port));
  const auto has = [&](std::string_view ending) { return port.ends_with(ending); };
  if (port == "targets" && r.name.starts_with("squared_error")) return drawn({tokens, width, unit}, key);
  if (port == "ids" || port == "targets") {
    matrix m(extent{1, tokens});
    for (std::size_t i = 0; i < m.of.size(); ++i) m.of[i] = draw(mix(key, i)) % width;
    return m;
  }
  if (port == "starts") {
    // Each sequence has a document of two tokens and one of the rest. A ring's sequences are twice as long.
    const std::int64_t times = r.name.find("ring") == r.name.npos ? 1 : 2;
    matrix m(times == 1 ? extent{1, tokens} : extent{tokens, times});
    for (std::size_t i = 0; i < m.of.size(); ++i)
      m.of[i] = i % static_cast<std::size_t>(times * seq) < 2 ? 0 : 2;
    return m;
  }
  if (r.name.starts_with("rope") && port == "table") return tables::rotary(seq, unit, 100);
  if (r.name.find("position") != r.name.npos && port == "table") return drawn({seq, width}, key);
  if (port == "table") return drawn({width, width}, key);
  if (port == "w") return drawn({width, width}, key);
  const bool is_bias = port == "b" && r.name != "add" && !r.name.starts_with("mul");
  if (is_bias || has("shift")) return drawn({1, width}, key);
  if (port == "gain") return drawn({1, r.name.starts_with("head") ? unit : width}, key);
  if (port == "top") return drawn({tokens, 1}, key);
  if (port == "sums" || port == "dsums") return drawn({tokens, 2}, key);
  if (port.starts_with("lse") || (port == "scores" && r.name.find("sink") != r.name.npos))
    return drawn({tokens, width / unit}, key);
  if (port == "count") return drawn({1, 1}, key);
  if (port == "weights" && r.name.find("_top") == r.name.npos) return drawn({1, tokens}, key);
  if (port == "dy" && r.name.starts_with("sequence_mean")) return drawn({tokens / seq, width}, key);
  if (port == "sinks") return drawn({1, width / unit}, key);
  if (port == "statistics" && r.name.starts_with("head")) return drawn({tokens, width / unit}, key);
  if (port == "statistics") return drawn({tokens, r.name.starts_with("rms") ? 1 : 2}, key);
  return drawn({tokens, width, unit}, key);
}

/// The columns that a mask of padding keeps.
constexpr std::int64_t kept_columns = width - 2;
bool is_mask(const row& r) { return r.name.starts_with("mask_padding"); }
double number_of(const row& r) {
  if (is_mask(r)) return kept_columns;
  return r.name.find("chunk") != r.name.npos ? 1 : factor;
}

call call_with(const row& r, const operands& given, std::int64_t of_tokens = tokens) {
  call c;
  c.rows = of_tokens / seq;
  c.seq = seq;
  c.number = number_of(r);
  if (r.name.find("ring") != r.name.npos) {
    c.seq = 2 * seq;
    c.number = 0;
  }  // the queries of the first of two ranks, with their own keys
  for (std::string_view p : ports_of(r).in) c.give(p, given.at(p));
  const bool of_heads = r.name.starts_with("head");
  for (std::string_view p : ports_of(r).out) {
    if (r.name.ends_with("position_grad")) c.want(p, {seq, width});
    else if (p == "dtable") c.want(p, {width, width});
    else if (p == "dgain") c.want(p, {1, of_heads ? unit : width});
    else if (r.name.starts_with("split") && p != "dx") c.want(p, {of_tokens, width / 2, unit / 2});
    else if (p == "y" && ports_of(r).in.empty()) c.want(p, {of_tokens, width});
  }
  return c;
}
operands operands_of(const row& r) {
  operands given;
  for (std::string_view p : ports_of(r).in) given[p] = operand_of(r, p);
  return given;
}
/// The results of a row by name.
operands results_of(const row& r, const operands& given, std::int64_t of_tokens = tokens) {
  call c = call_with(r, given, of_tokens);
  run(r, c);
  operands made;
  for (std::string_view p : ports_of(r).out) made[p] = c.result(p);
  return made;
}

/// Whether a row exchanges slots: a collective in programs, and absent in a model on one device.
bool exchanges_slots(const rankc::op_row* r) {
  return r->converts >= rankc::conversion::to_experts || r == &rankc::ops::gather_slots ||
         r == &rankc::ops::scatter_slots;
}

/// Rows on slots, choices or sums of groups, tested in rows_experts_test.cpp and rows_balance_test.cpp.
bool is_of_experts(const rankc::op_row* r) {
  namespace ops = rankc::ops;
  const rankc::op_row* const all[]{&ops::softmax_top,
                                   &ops::softmax_top_grad,
                                   &ops::sigmoid_top,
                                   &ops::sigmoid_top_grad,
                                   &ops::softmax_scores,
                                   &ops::sigmoid_scores,
                                   &ops::keep_groups,
                                   &ops::biased_keep_groups,
                                   &ops::softmax_top_by,
                                   &ops::sigmoid_top_by,
                                   &ops::biased_softmax_top_by,
                                   &ops::biased_sigmoid_top_by,
                                   &ops::count_choices,
                                   &ops::normalize,
                                   &ops::normalize_grad,
                                   &ops::arrange,
                                   &ops::arrange_limited,
                                   &ops::own_slots,
                                   &ops::dropped_statistics,
                                   &ops::dispatch,
                                   &ops::collect,
                                   &ops::combine,
                                   &ops::combine_grad,
                                   &ops::expert_up,
                                   &ops::expert_down,
                                   &ops::expert_dw,
                                   &ops::expert_down_add,
                                   &ops::expert_down_two,
                                   &ops::softmax_statistics,
                                   &ops::softmax_statistics_grad,
                                   &ops::sigmoid_statistics,
                                   &ops::sigmoid_statistics_grad,
                                   &ops::push,
                                   &ops::push_grad,
                                   &ops::balance_loss,
                                   &ops::balance_loss_grad,
                                   &ops::layer_balance_loss,
                                   &ops::layer_balance_loss_grad,
                                   &ops::z_loss,
                                   &ops::z_loss_grad,
                                   &ops::overflow_loss,
                                   &ops::overflow_loss_grad};
  return std::find(std::begin(all), std::end(all), r) != std::end(all);
}

std::vector<const rankc::op_row*> table() {
  std::vector<const rankc::op_row*> all(std::begin(rankc::ops::all), std::end(rankc::ops::all));
  std::erase_if(all, exchanges_slots);
  all.insert(all.end(), {&rankc::ops::clear, &rankc::ops::copy});
  rankc::ops::each_fusion([&](const rankc::fusion& f) { all.push_back(f.into.kind); });
  rankc::ops::each_fp8_row([&](const rankc::op_row& r) { all.push_back(&r); });
  return all;
}

std::vector<const rankc::op_row*> rows_of_tokens() {
  std::vector<const rankc::op_row*> all = table();
  std::erase_if(all, is_of_experts);
  return all;
}

/// Whether a port of a row has a row for each sequence.
bool is_of_sequences(const row& r, std::string_view port) {
  return r.name.starts_with("sequence_mean") && (port == "y" || port == "dy");
}
bool is_of_tokens(const matrix& m) { return m.is.rows == tokens || (m.is.rows == 1 && m.is.cols == tokens); }
matrix part_of(const matrix& m, std::int64_t first, std::int64_t count) {
  if (m.is.rows == tokens) return rows_of(m, first, count);
  matrix out(extent{1, count});
  std::copy_n(m.of.begin() + first, count, out.of.begin());
  return out;
}

}  // namespace

TEST_CASE(
    "every row of the table of ops is a row of the field, with its ports, its strides and the places it may "
    "write to") {
  for (const rankc::op_row* of : table()) {
    CAPTURE(of->name);
    const row& r = find_row(of->name);
    std::vector<std::string_view> out, in;
    std::set<std::string_view> strided, found_strided;
    for (const rankc::port& p : of->used_ports()) {
      if (p.as == rankc::use::scratch) continue;
      (p.is_written() ? out : in).push_back(p.name);
      if (!p.shape.stride.empty()) strided.insert(p.name);
      if (takes_stride(r, p.name)) found_strided.insert(p.name);
      if (!p.is_written() || of->communicates()) continue;
      for (const rankc::port& q : of->used_ports()) {
        const bool may =
            std::find(std::begin(p.may_replace), std::end(p.may_replace), q.name) != std::end(p.may_replace);
        if (q.is_read()) CHECK_MESSAGE(may_lie_over(r, p.name, q.name) == may, p.name << " over " << q.name);
      }
    }
    CHECK(ports_of(r).out == out);
    CHECK(ports_of(r).in == in);
    CHECK(found_strided == strided);
  }
}

TEST_CASE("numbers: fractions are exact, and a hole in memory is no element") {
  CHECK(multiply(number(0.375), 8) == 3);
  CHECK(add(number(-5), 5) == 0);
  CHECK(multiply(number(0x1p-1060), number(0x1p1000)) == number(0x1p-60));
  CHECK(multiply(inverse(12345), 12345) == 1);
  for (const double factor : {0x1p61, 0x1p-61, 0x1p122, 0x1p-976, 0x1p1023, 0x1p-1074})
    CHECK(number(factor) != 1);
  CHECK(power(2, prime - 1) == 1);
  int above_zero = 0;
  for (element e = 1; e <= 100; ++e) above_zero += larger(0, e) == e && larger(e, 0) == e;
  CHECK(above_zero > 0);
  CHECK(above_zero < 100);
  memory m(64);
  using enum element_type;
  m.store(8, f32, 7);
  m.store(12, f32, 9);
  CHECK(m.load(8, f32) == 7);
  CHECK(m.load(8, i32) != 7);
  m.store(10, bf16, 7);
  CHECK(m.load(8, f32) != 7);
  CHECK(m.load(12, f32) == 9);
  CHECK(m.load(12, f64) != 9);
  CHECK(m.load(20, f32) != m.load(24, f32));
  CHECK_THROWS_AS(m.load(62, f32), malformed);
}

TEST_CASE("gradients are linear in what they are given, and are of each of its numbers") {
  int rows = 0;
  for (const rankc::op_row* of : rows_of_tokens()) {
    const row& r = find_row(of->name);
    const signature& s = ports_of(r);
    const auto is_gradient = [](std::string_view p) { return p == "dy" || p == "d_o" || p == "dsums"; };
    const auto dy = std::find_if(s.in.begin(), s.in.end(), is_gradient);
    const bool adds_a_residual = std::find(s.in.begin(), s.in.end(), "residual") != s.in.end();
    if (dy == s.in.end() || adds_a_residual) continue;
    CAPTURE(of->name);
    ++rows;
    operands a = operands_of(r), b = a, both = a, dirac = a;
    b[*dy] = drawn(a[*dy].is, 99);
    both[*dy] = sum(a[*dy], 17, b[*dy]);
    const operands of_a = results_of(r, a), of_b = results_of(r, b), of_both = results_of(r, both);
    for (std::string_view p : s.out) CHECK(of_both.at(p).of == sum(of_a.at(p), 17, of_b.at(p)).of);
    for (std::size_t i = 0; i < a[*dy].of.size(); ++i) {
      dirac[*dy].of[i] = add(a[*dy].of[i], 1);
      const operands changed = results_of(r, dirac);
      const bool none = std::all_of(s.out.begin(), s.out.end(),
                                    [&](std::string_view p) { return changed.at(p).of == of_a.at(p).of; });
      const bool is_left_out = is_mask(r) && static_cast<std::int64_t>(i) % width >= kept_columns;
      CHECK_MESSAGE(none == is_left_out, "number " << i);
      dirac[*dy] = a[*dy];
    }
  }
  CHECK(rows == 42);
}

TEST_CASE("of an operand in which a row is linear the gradient is the transpose") {
  const auto inner = [](const matrix& a, const matrix& b) {
    element total = 0;
    for (std::size_t i = 0; i < a.of.size(); ++i) total = add(total, multiply(a.of[i], b.of[i]));
    return total;
  };
  const std::map<std::string_view, std::vector<std::string_view>> linear_in{
      {"linear", {"x", "w"}},
      {"bias", {"x", "b"}},
      {"embedding", {"table"}},
      {"position", {"x", "table"}},
      {"rope", {"x"}},
      {"add", {"a", "b"}},
      {"mul", {"a", "b"}},
      {"scale", {"x"}},
      {"mask_padding", {"x"}},
      {"swiglu", {"up"}},
      {"split", {"x"}},
      {"split_heads", {"x"}},
      {"concat", {"first", "second"}},
      {"concat_heads", {"first", "second"}},
      {"layer_norm", {"shift"}},
      {"attention", {"v"}},
      {"document_position", {"x", "table"}},
      {"document_attention", {"v"}},
      {"all_gather", {"x"}}};
  for (const auto& [name, operands_of_row] : linear_in)
    for (std::string_view operand : operands_of_row) {
      CAPTURE(name);
      CAPTURE(operand);
      const row& r = find_row(name);
      const operands given = operands_of(r);
      operands moved = given;
      moved[operand] = sum(given.at(operand), 1, drawn(given.at(operand).is, 5));
      const operands before = results_of(r, given), after = results_of(r, moved);
      std::list<std::string> gradient_names;
      operands known = given;  // operands, results, and the results' gradients "d_y"
      element in_results = 0, in_operand = 0;
      for (const auto& [port, y] : before) {
        known[port] = y;
        matrix& dy = known[gradient_names.emplace_back("d_" + std::string(port))] = drawn(y.is, key_of(port));
        if (port != "statistics") in_results = add(in_results, inner(dy, sum(after.at(port), prime - 1, y)));
      }
      for (const statement& s : backward_of(r)) {
        call c;
        c.rows = tokens / seq;
        c.seq = seq;
        c.number = number_of(r);
        for (std::size_t i = 0; i < s.in.size(); ++i) c.give(ports_of(*s.does).in[i], known.at(s.in[i]));
        for (std::size_t i = 0; i < s.out.size(); ++i)
          c.want(ports_of(*s.does).out[i], given.at(s.out[i].substr(2)).is);
        run(*s.does, c);
        for (std::size_t i = 0; i < s.out.size(); ++i)
          if (s.out[i].substr(2) == operand)
            in_operand = add(in_operand, inner(c.result(ports_of(*s.does).out[i]),
                                               sum(moved.at(operand), prime - 1, given.at(operand))));
      }
      CHECK(in_results == in_operand);
    }
}

TEST_CASE("what a row makes of half the sequences is half of what it makes of all; sums over tokens add up") {
  int rows = 0;
  for (const rankc::op_row* of : rows_of_tokens()) {
    const row& r = find_row(of->name);
    // The result of skip_unlabeled depends on the count of the step alone.
    if (ports_of(r).in.empty() || of == &rankc::ops::weight_to_e4m3 ||
        of == &rankc::ops::weight_to_e4m3_rows || r.name == "skip_unlabeled")
      continue;
    CAPTURE(of->name);
    ++rows;
    const operands given = operands_of(r), whole = results_of(r, given);
    operands halves[2];
    for (int half = 0; half < 2; ++half) {
      operands part = given;
      for (auto& [port, m] : part)
        if (is_of_sequences(r, port)) m = rows_of(m, half, 1);
        else if (is_of_tokens(m) && port != "table" && port != "w") m = part_of(m, half * seq, seq);
      halves[half] = results_of(r, part, seq);
    }
    for (const auto& [port, m] : whole)
      if (is_of_sequences(r, port)) {
        for (int half = 0; half < 2; ++half) CHECK(rows_of(m, half, 1).of == halves[half].at(port).of);
      } else if (is_of_tokens(m)) {
        CHECK(part_of(m, 0, seq).of == halves[0].at(port).of);
        CHECK(part_of(m, seq, seq).of == halves[1].at(port).of);
      } else {
        CHECK(m.of == sum(halves[0].at(port), 1, halves[1].at(port)).of);
      }
  }
  CHECK(rows == 135);
}

TEST_CASE("loss: parts of a vocabulary, and any maximum, make the same") {
  const row &sums = find_row("exp_sums"), &gradient = find_row("exp_sums_grad"),
            &entropy = find_row("cross_entropy");
  operands given = operands_of(sums);
  const auto loss_and_gradient = [&](int parts) {
    matrix total(extent{tokens, 2});
    std::vector<element> dlogits(tokens * width);
    const std::int64_t each = width / parts;
    const auto part = [&](const row& r, int k, const matrix* dsums) {
      call c;
      matrix logits(extent{tokens, each});
      for (std::int64_t t = 0; t < tokens; ++t)
        std::copy_n(given["logits"].row(t) + k * each, each, logits.row(t));
      c.give("logits", logits, k * each);
      c.give("top", given["top"]);
      c.give("targets", given["targets"]);
      if (dsums) c.give("dsums", *dsums);
      run(r, c);
      return c;
    };
    for (int k = 0; k < parts; ++k) total = sum(total, 1, part(sums, k, nullptr).result("sums"));
    call last, back;
    last.number = back.number = 0.25;
    last.give("sums", total);
    back.give("sums", total);
    run(entropy, last);
    run(find_row("cross_entropy_grad"), back);
    for (int k = 0; k < parts; ++k) {
      const call c = part(gradient, k, &back.result("dsums"));
      for (std::int64_t t = 0; t < tokens; ++t)
        std::copy_n(c.result("dlogits").row(t), each, dlogits.begin() + t * width + k * each);
    }
    return std::pair{last.result("loss").of[0], dlogits};
  };
  const auto whole = loss_and_gradient(1);
  CHECK(loss_and_gradient(2) == whole);
  CHECK(loss_and_gradient(4) == whole);
  given["top"] = drawn({tokens, 1}, 4321);
  CHECK(loss_and_gradient(1) == whole);
  CHECK(loss_and_gradient(3) == whole);
  given["targets"].of[3] = (given["targets"].of[3] + 1) % width;
  CHECK(loss_and_gradient(2).first != whole.first);
}

}  // namespace rows_test
