// SPDX-License-Identifier: Apache-2.0
// `rankc dims`: checks dims at run time, and lists the axes, groups and communicators of legal dims. A
// request is a line of JSON, or flags that make the same line.
#pragma once
#include <rankc/mesh/communicators.hpp>
#include <rankc/rules/values/setting.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "lines.hpp"

namespace rankc::tool {

/// A request.
struct dims_request {
  parallel_dims dims;  // as written: a degree may be `infer`
  std::optional<model_sizes> model;
  std::optional<batch_sizes> batch;
  std::optional<cluster> machines;
  int stages_per_rank = 1;
  bool groups = false;
};

/// Reads a line. A batch without microbatches has as many as the size of a microbatch gives.
/// Errors: RC104, RC8030 to RC8044.
parallel_dims read_degrees(const fields&);
dims_request read_dims(const json& line, report& out);

/// The layout of a request, if no rule refuses it.
/// Errors: RC1xx, RC2xx and RC301; all broken rules at once.
std::optional<layout> lay_out(const dims_request&, report& out);

/// The communicators of a request's layout.
std::vector<planned_communicator> communicators_of(const dims_request&, const layout&);

/// Answers a line.
/// Errors: those of reading and of the layout; RC311.
void answer_dims(const json& line, std::string& members, report& out);

/// True if answers list an axis. An axis of the independent layout is listed only if it has several ranks.
bool is_shown(const layout&, axis);

/// The listed axes of views, then all axes that join several.
std::vector<axis> shown_groups(const layout&);

/// Appends the groups of every axis as JSON: {"pp":[[0,4],[1,5]],...}.
void write_groups(std::string& out, const layout&);

/// Tables of the axes, aliases and communicators, as text for a person.
std::string tabulate(const dims_request&, const layout&);

/// The nodes, with `per_node` ranks each, as rows of boxes with each rank's coordinates. A tensor-parallel
/// group is one frame. The frame is open where it continues in another row.
std::string draw_nodes(const layout&, int per_node);

/// Prints the answer to a line for a person.
/// Errors: 1 if the dims are refused; the diagnostics go to `errors`.
int show_dims(const json& line, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
