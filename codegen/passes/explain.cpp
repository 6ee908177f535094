// SPDX-License-Identifier: Apache-2.0
#include "explain.hpp"

#include <fmt/format.h>

#include "listing.hpp"
#include "watcher.hpp"

namespace rankc::codegen {

namespace {

/// The expansion of `lower`'s ranks to ops, which runs for the proof.
constexpr const char* last_pass = "flatten";

/// A line of one side, or of both. Units: indices; -1: the line is on the other side only.
struct pair_of_lines {
  int before = -1, after = -1;
};

/// Two lists side by side, with as many pairs of equal lines as possible. Removed lines come before added
/// lines.
std::vector<pair_of_lines> align(const std::vector<std::string>& before,
                                 const std::vector<std::string>& after) {
  const int n = static_cast<int>(before.size()), m = static_cast<int>(after.size());
  int first = 0, last = 0;  // equal lines at the start and at the end
  while (first < std::min(n, m) && before[first] == after[first]) ++first;
  while (last < std::min(n, m) - first && before[n - 1 - last] == after[m - 1 - last]) ++last;
  const int rows = n - first - last, columns = m - first - last;
  std::vector<int> common(static_cast<std::size_t>((rows + 1)) * (columns + 1), 0);  // pairs from (i, j) on
  const auto pairs = [&](int i, int j) -> int& {
    return common[static_cast<std::size_t>(i) * (columns + 1) + j];
  };
  for (int i = rows - 1; i >= 0; --i)
    for (int j = columns - 1; j >= 0; --j)
      pairs(i, j) = before[first + i] == after[first + j] ? pairs(i + 1, j + 1) + 1
                                                          : std::max(pairs(i + 1, j), pairs(i, j + 1));

  std::vector<pair_of_lines> out;
  for (int i = 0; i < first; ++i) out.push_back({i, i});
  for (int i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && before[first + i] == after[first + j])
      out.push_back({first + i++, first + j++});
    else if (j == columns || (i < rows && pairs(i + 1, j) >= pairs(i, j + 1)))
      out.push_back({first + i++, -1});
    else out.push_back({-1, first + j++});
  }
  for (int i = last; i > 0; --i) out.push_back({n - i, m - i});
  return out;
}

/// The mark of a line that was added, removed or kept.
char mark_of(const pair_of_lines& p) {
  if (p.before < 0) return '+';
  return p.after < 0 ? '-' : ' ';
}

/// Prints the lines of a section with their marks. Returns: true if a line was added or removed.
bool print(std::string& out, const std::string& title, const std::vector<std::string>& before,
           const std::vector<std::string>& after, bool whole) {
  std::string lines;
  bool changed = false;
  for (const pair_of_lines& p : align(before, after)) {
    changed |= p.before < 0 || p.after < 0;
    lines += fmt::format("{}     {}\n", mark_of(p), p.before < 0 ? after[p.after] : before[p.before]);
  }
  if (!lines.empty() && (changed || whole)) out += "   " + title + "\n" + lines;
  return changed;
}

/// `whole`: prints sections without a marked line too.
std::string difference(const std::string& title, const listing& before, const listing& after, bool whole) {
  const auto titles = [](const listing& l) {
    std::vector<std::string> all;
    for (const section& s : l) all.push_back(s.title);
    return all;
  };
  std::string out;
  bool changed = false;
  const std::vector<std::string> none;
  for (const pair_of_lines& p : align(titles(before), titles(after))) {
    const section& here = p.before < 0 ? after[p.after] : before[p.before];
    changed |= print(out, here.title, p.before < 0 ? none : here.lines,
                     p.after < 0 ? none : after[p.after].lines, whole);
  }
  return title + (changed ? "\n" : ": nothing changes\n") + out;
}

class explainer : public watcher {
 public:
  explicit explainer(const std::string& pass) : pass_(pass) {}
  std::string text;

  void over_layer(std::string_view pass, bool done, const body& b, const trace& t) override {
    if (pass != pass_) return;
    const bool is_first = names_of_layer_passes().front() == pass;
    see(done, !done && is_first ? list_ops(b, t) : list_layer(b, t), b.name, true);
  }
  void over_ranks(std::string_view pass, bool done, const lowered& l) override {
    if (pass == pass_) see(done, list_ranks(l), "ranks", false);
  }

 private:
  void see(bool done, listing now, const std::string& of, bool whole) {
    if (done) text += difference(of + ", " + pass_, before_, now, whole);
    before_ = std::move(now);
  }

  const std::string pass_;
  listing before_;
};

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names = names_of_layer_passes();
  for (std::string& n : names_of_rank_passes()) names.push_back(std::move(n));
  names.push_back(last_pass);
  return names;
}

std::string explain(const plan_data& plan, dtype type, target to, const std::string& pass) {
  explainer watching(pass);
  const lowered l = lower(plan, type, to, &watching);
  if (pass != last_pass) return watching.text;
  listing all;
  if (l.trains()) all = list_program(l, expand_train(l));
  for (section& s : list_program(l, expand_evaluate(l))) all.push_back(std::move(s));
  return difference(std::string("ranks, ") + last_pass, {}, all, false);
}

}  // namespace rankc::codegen
