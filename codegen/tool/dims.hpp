// SPDX-License-Identifier: Apache-2.0
// `rankc dims`: the rules of dims, and the axes, groups and communicators that legal dims have, at run time.
// A line of JSON asks, or a person by flags, which make the same line.
#pragma once
#include <rankc/mesh/communicators.hpp>
#include <rankc/rules/values/setting.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "lines.hpp"

namespace rankc::tool {

/// What a line asks for.
struct dims_request {
  parallel_dims dims;  // as written: a degree may be `infer`
  std::optional<model_sizes> model;
  std::optional<batch_sizes> batch;
  std::optional<cluster> machines;
  int stages_per_rank = 1;
  bool groups = false;
};

/// Read a line. A batch without microbatches has as many as its microbatch gives.
/// Errors: RC104, RC8030 to RC8044.
parallel_dims read_degrees(const fields&);
dims_request read_dims(const json& line, report& out);

/// The layout that a line asks for, where no rule refuses it.
/// Errors: RC1xx, RC2xx and RC301; all broken rules at once.
std::optional<layout> lay_out(const dims_request&, report& out);

/// The communicators of a request's layout.
std::vector<planned_communicator> communicators_of(const dims_request&, const layout&);

/// Answer a line.
/// Errors: those of reading and laying out; RC311.
void answer_dims(const json& line, std::string& members, report& out);

/// Whether answers list an axis: one of the independent layout alone where it tells ranks apart.
bool is_shown(const layout&, axis);

/// The axes of views that are listed, then all that join several.
std::vector<axis> shown_groups(const layout&);

/// Append the groups of every axis as JSON: {"pp":[[0,4],[1,5]],...}.
void write_groups(std::string& out, const layout&);

/// Tables of the axes, aliases and communicators, for a person.
std::string tabulate(const dims_request&, const layout&);

/// The nodes, `per_node` ranks on each, as rows of boxes with each rank's coordinates; a tensor-parallel
/// group is one frame, open where it goes on in another row.
std::string draw_nodes(const layout&, int per_node);

/// Answer a line in the form for a person.
/// Errors: 1 where the dims are refused; the diagnostics go to `errors`.
int show_dims(const json& line, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
