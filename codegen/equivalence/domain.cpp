// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include <fmt/format.h>

namespace rankc::codegen::algebra {

std::int64_t runs::size() const {
  std::int64_t n = 0;
  for (int i = 0; i < at_.size(); ++i) n += at_[i].size();
  return n;
}

void runs::append(interval x) {
  if (x.begin == x.end) return;
  if (!at_.empty() && at_.back().end == x.begin) at_.back().end = x.end;
  else at_.push_back(x);
}

void runs::append(const runs& other) {
  for (int i = 0; i < other.count(); ++i) append(other[i]);
}

runs runs::slice(std::int64_t from, std::int64_t length) const {
  runs out;
  std::int64_t begin = 0;
  for (int i = 0; i < at_.size() && length > 0; ++i) {
    const interval& x = at_[i];
    const std::int64_t skipped = std::max<std::int64_t>(from - begin, 0);
    if (skipped < x.size()) {
      const std::int64_t taken = std::min(x.size() - skipped, length);
      out.append(interval{x.begin + skipped, x.begin + skipped + taken});
      length -= taken;
      from += taken;
    }
    begin += x.size();
  }
  return out;
}

runs runs::shifted(std::int64_t by) const {
  runs out;
  for (int i = 0; i < at_.size(); ++i) out.append(interval{at_[i].begin + by, at_[i].end + by});
  return out;
}

runs runs::below(std::int64_t end) const {
  runs out;
  for (int i = 0; i < at_.size(); ++i)
    if (at_[i].begin < end) out.append(interval{at_[i].begin, std::min(at_[i].end, end)});
  return out;
}

bool runs::to_units(std::int64_t unit, runs& out) const {
  out = {};
  for (int i = 0; i < at_.size(); ++i) {
    if (at_[i].begin % unit || at_[i].end % unit) return false;
    out.append(interval{at_[i].begin / unit, at_[i].end / unit});
  }
  return true;
}

runs runs::from_units(std::int64_t unit) const {
  runs out;
  for (int i = 0; i < at_.size(); ++i) out.append(interval{at_[i].begin * unit, at_[i].end * unit});
  return out;
}

bool runs::sort(interval& twice) {
  if (at_.size() < 2) return true;
  std::vector<interval> all;
  for (int i = 0; i < at_.size(); ++i) all.push_back(at_[i]);
  std::sort(all.begin(), all.end(), [](const interval& x, const interval& y) { return x.begin < y.begin; });
  at_.clear();
  for (const interval& x : all) {
    if (!at_.empty() && x.begin < at_.back().end) {
      twice = {x.begin, std::min(x.end, at_.back().end)};
      return false;
    }
    append(x);
  }
  return true;
}

bool runs::unite(const runs& with, interval& twice) {
  if (at_.empty() || with.at_.empty() || at_.back().end <= with.at_[0].begin) {
    append(with);
    return true;
  }
  std::vector<interval> all;
  for (int i = 0, j = 0; i < at_.size() || j < with.at_.size();) {
    const bool own = j == with.at_.size() || (i < at_.size() && at_[i].begin < with.at_[j].begin);
    const interval x = own ? at_[i++] : with.at_[j++];
    if (!all.empty() && x.begin < all.back().end) {
      twice = {x.begin, std::min(x.end, all.back().end)};
      return false;
    }
    if (!all.empty() && all.back().end == x.begin) all.back().end = x.end;
    else all.push_back(x);
  }
  at_.clear();
  for (const interval& x : all) at_.push_back(x);
  return true;
}

bool runs::is_shifted(const runs& other, std::int64_t& by) const {
  if (at_.size() != other.at_.size() || at_.empty()) return false;
  by = other.at_[0].begin - at_[0].begin;
  for (int i = 0; i < at_.size(); ++i)
    if (other.at_[i].begin - at_[i].begin != by || other.at_[i].end - at_[i].end != by) return false;
  return true;
}

runs runs::gaps(std::int64_t size) const {
  runs out;
  std::int64_t begin = 0;
  for (int i = 0; i < at_.size(); ++i) {
    out.append(interval{begin, at_[i].begin});
    begin = at_[i].end;
  }
  out.append(interval{begin, size});
  return out;
}

std::string axis_name(char letter) {
  switch (letter) {
    case 't':
    case 'u':
      return "tokens";
    case 'v':
      return "words";
    case 'h':
    case 'k':
      return "heads";
    case 's':
    case 'p':
    case 'j':
      return "positions";
    case 'm':
      return "groups";
    case 'e':
      return "experts";
    case '+':
      return "parts";
    default:
      return "features";
  }
}

std::string text_of(char letter, const runs& of) {
  std::string text = axis_name(letter);
  for (int i = 0; i < of.count(); ++i) {
    if (i == 4) return text + fmt::format(" and {} more", of.count() - 4);
    if (i > 0) text += i + 1 == of.count() ? " and" : ",";
    text += fmt::format(" {}..{}", of[i].begin, of[i].end - 1);
  }
  return of.count() == 0 ? "no " + text : text;
}

}  // namespace rankc::codegen::algebra
