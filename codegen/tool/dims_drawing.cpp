// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dims.hpp"

namespace rankc::tool {

namespace {

constexpr int most_rows = 8, most_in_row = 8, coordinates_in_line = 3;

struct shown_axis {
  char letter;
  axis_extent extent;
};

/// The axes with more than one rank.
std::vector<shown_axis> shown_axes(const layout& l) {
  std::vector<shown_axis> out;
  for (axis a : listed_axes) {
    const axis_extent* x = l.dense().find(a);
    if (!x) x = l.expert().find(a);
    if (x && x->size > 1 && row(a).letter) out.push_back({row(a).letter, *x});
  }
  return out;
}

/// "12", then its coordinates, "p0 s1 t3".
std::vector<std::string> describe(int rank, const std::vector<shown_axis>& axes) {
  std::vector<std::string> lines{fmt::format("{}", rank)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto coordinate = fmt::format("{}{}", axes[i].letter, axes[i].extent.index_of(rank));
    if (i % coordinates_in_line == 0) lines.push_back(coordinate);
    else lines.back() += " " + coordinate;
  }
  return lines;
}

/// The strokes of one line of a row of boxes: at the left and the right edge of a frame, between two boxes of
/// a frame, at an open side, and along the line.
struct strokes {
  const char *left, *right, *between, *open, *along;
};
constexpr strokes top{"┌", "┐", "┬", "─", "─"}, middle{"│", "│", "│", " ", " "},
    bottom{"└", "┘", "┴", "─", "─"};

/// One line of the boxes of ranks `first` to `last`. The ranks of a tensor-parallel region are neighbours.
std::string draw_line(const strokes& s, int first, const std::vector<std::string>& texts, std::size_t width,
                      const group_shape& regions) {
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const int place = regions.place(first + static_cast<int>(i));
    if (place == 0) out.append(i ? " " : "").append(s.left);
    else out += i ? s.between : s.open;
    out.append(s.along).append(texts[i]);
    for (std::size_t k = texts[i].size(); k <= width; ++k) out += s.along;
    if (place == regions.size() - 1) out += s.right;
    else if (i + 1 == texts.size()) out += s.open;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

std::string draw_row(const std::string& label, int first, int count, const layout& l,
                     const std::vector<shown_axis>& axes) {
  std::vector<std::vector<std::string>> boxes;
  std::size_t width = 0;
  for (int r = first; r < first + count; ++r) {
    boxes.push_back(describe(r, axes));
    for (const std::string& text : boxes.back()) width = std::max(width, text.size());
  }
  const group_shape regions = l.groups(region_axis);
  const std::vector<std::string> blank(boxes.size());
  const std::string margin(label.size(), ' ');
  std::string out = margin + draw_line(top, first, blank, width, regions) + "\n";
  for (std::size_t k = 0; k < boxes[0].size(); ++k) {
    std::vector<std::string> texts;
    for (const auto& box : boxes) texts.push_back(box[k]);
    out += (k == 0 ? label : margin) + draw_line(middle, first, texts, width, regions) + "\n";
  }
  return out + margin + draw_line(bottom, first, blank, width, regions) + "\n";
}

std::string legend(const std::vector<shown_axis>& axes) {
  std::string out;
  for (const shown_axis& a : axes)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", a.letter, name(a.extent.axis));
  return out;
}

}  // namespace

std::string draw_nodes(const layout& l, int per_node) {
  const std::vector<shown_axis> axes = shown_axes(l);
  std::string out = fmt::format("nodes of {} ranks", per_node);
  if (!axes.empty()) out += fmt::format(" ({})", legend(axes));
  if (region_ranks(l.dims()) > 1) out += fmt::format("; a frame is a {} group", name(region_axis));
  out += "\n";
  int drawn = 0;
  for (int row = 0; row < most_rows && drawn < l.ranks(); ++row) {
    const machine_coord at = place_of(drawn, per_node);
    const int count = std::min({most_in_row, per_node - at.gpu.index, l.ranks() - drawn});
    const std::string label = at.gpu.index == 0 ? fmt::format("node {}", at.node.index) : "";
    out += draw_row(fmt::format("  {:<8}", label), drawn, count, l, axes);
    drawn += count;
  }
  if (drawn == l.ranks()) return out;
  const int nodes = place_of(l.ranks() - 1, per_node).node.index - place_of(drawn - 1, per_node).node.index;
  if (drawn % per_node == 0) out += fmt::format("  ... {} more node{} alike\n", nodes, nodes == 1 ? "" : "s");
  else out += fmt::format("  ... {} more ranks alike\n", l.ranks() - drawn);
  return out;
}

}  // namespace rankc::tool
