// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/learning_rate.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rankc::runtime {
namespace {

[[noreturn]] void refuse_piece(std::string_view piece, std::string_view whole) {
  throw failure(2,
                "RC6085: --lr-schedule {} has the unknown piece '{}'; give constant, "
                "cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]], wsd:WARMUP:STABLE:DECAY[:MIN_LR], or pieces such as "
                "warmup:20,constant:300,cosine:80:0 (also linear:STEPS:LR)",
                whole, piece);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The parts of a schedule between colons, converted to numbers.
struct words {
  std::string_view text;
  std::vector<std::string_view> parts;

  int steps(std::size_t i, const char* what, int least) const {
    const auto n = parse_number<int>(parts[i]);
    if (!n || *n < least)
      throw failure(2, "RC6086: --lr-schedule {} has the {} '{}'; give a whole number >= {}", text, what,
                    parts[i], least);
    return *n;
  }
  double rate(std::size_t i, const char* what) const {
    const auto x = parse_number<double>(parts[i]);
    if (!x || !(*x >= 0) || !std::isfinite(*x))
      throw failure(2, "RC6087: --lr-schedule {} has the {} '{}'; give a number >= 0", text, what, parts[i]);
    return *x;
  }
};

lr_piece read_piece(std::string_view text, std::string_view whole) {
  const words w{whole, split(text, ':')};
  const std::size_t n = w.parts.size();
  const std::string_view name = w.parts[0];
  if (name == "warmup" && n == 2) return lr::warm_up(w.steps(1, "STEPS", 0));
  if (name == "constant" && n == 2) return lr::constant(w.steps(1, "STEPS", 1));
  if ((name == "linear" || name == "cosine") && (n == 2 || n == 3)) {
    const int steps = w.steps(1, "STEPS", 1);
    const double to = n == 3 ? w.rate(2, "LR") : 0;
    return name == "linear" ? lr::linear(steps, to) : lr::cosine(steps, to);
  }
  refuse_piece(text, whole);
}

/// `cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]`; omitted values stay the recipe's.
void set_cosine(recipe& r, const words& w, std::int64_t last_step) {
  const std::size_t n = w.parts.size();
  r.schedule = {};
  if (n > 1) r.warmup_steps = w.steps(1, "WARMUP", 0);
  if (n > 2) {
    r.decay_steps = w.steps(2, "DECAY_STEPS", 1);
  } else if (r.decay_steps == 0) {
    const auto rest = std::max<std::int64_t>(1, last_step - r.warmup_steps);
    r.decay_steps = static_cast<int>(std::min<std::int64_t>(rest, std::numeric_limits<int>::max()));
  }
  if (n > 3) r.min_lr = w.rate(3, "MIN_LR");
}

}  // namespace

lr_schedule schedule_of(const recipe& r) {
  if (r.schedule.any()) return r.schedule;
  lr_schedule pieces;
  if (r.warmup_steps > 0) pieces.add(lr::warm_up(r.warmup_steps));
  if (r.decay_steps > 0) pieces.add(lr::cosine(r.decay_steps, r.min_lr));
  return pieces;
}

double learning_rate(const recipe& r, std::int64_t step) { return learning_rate(schedule_of(r), r.lr, step); }

double highest_end(const recipe& r) {
  const lr_schedule schedule = schedule_of(r);
  double most = 0;
  for (int i = 0; i < schedule.count; ++i) most = std::max(most, schedule.pieces[i].to);
  return most;
}

lr_schedule read_schedule(std::string_view text) {
  if (text.empty()) return {};
  if (text.starts_with("wsd:")) {
    const words w{text, split(text, ':')};
    if (w.parts.size() != 4 && w.parts.size() != 5) refuse_piece(text, text);
    return lr::wsd(w.steps(1, "WARMUP", 0), w.steps(2, "STABLE", 0), w.steps(3, "DECAY", 1),
                   w.parts.size() == 5 ? w.rate(4, "MIN_LR") : 0);
  }
  const auto parts = split(text, ',');
  if (parts.size() > max_lr_pieces)
    throw failure(2, "RC6088: --lr-schedule {} has {} pieces; give at most {}", text, parts.size(),
                  max_lr_pieces);
  lr_schedule schedule;
  for (const std::string_view part : parts) schedule.add(read_piece(part, text));
  return schedule;
}

void set_schedule(recipe& r, std::string_view text, std::int64_t last_step) {
  const words w{text, split(text, ':')};
  if (text == "constant") {
    r.warmup_steps = r.decay_steps = 0;
    r.schedule = {};
  } else if (w.parts[0] == "cosine" && w.parts.size() <= 4 && text.find(',') == text.npos) {
    set_cosine(r, w, last_step);
  } else {
    if (text.empty()) refuse_piece(text, text);
    r.schedule = read_schedule(text);
  }
  if (const double most = highest_end(r); most > r.lr)
    throw failure(2,
                  "RC6089: --lr-schedule {} leads to {}, which is above the learning rate {}; give a lower "
                  "end or a larger --lr",
                  text, fmt::format("{}", most), fmt::format("{}", r.lr));
}

std::string schedule_text(const lr_schedule& schedule) {
  std::string out;
  for (int i = 0; i < schedule.count; ++i) {
    const lr_piece& piece = schedule.pieces[i];
    if (i > 0) out += ",";
    if (piece.shape == lr_shape::constant) out += fmt::format("constant:{}", piece.steps);
    else if (piece.to == peak) out += fmt::format("warmup:{}", piece.steps);
    else
      out += fmt::format("{}:{}:{}", piece.shape == lr_shape::linear ? "linear" : "cosine", piece.steps,
                         piece.to);
  }
  return out;
}

}  // namespace rankc::runtime
