// SPDX-License-Identifier: Apache-2.0
#include "dims.hpp"

#include <rankc/rules/values/batch.hpp>
#include <rankc/rules/values/cluster.hpp>
#include <rankc/rules/values/dims.hpp>
#include <rankc/rules/values/model.hpp>
#include <rankc/rules/values/pipeline.hpp>

#include <iterator>

namespace rankc::tool {

namespace {

/// The most ranks of a world whose groups one answer may list.
constexpr int most_listed = 1 << 16;

void write_member(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":");
}

void write_extent(std::string& out, std::string_view name, int size, int stride) {
  write_member(out, name);
  fmt::format_to(std::back_inserter(out), R"({{"size":{},"stride":{}}})", size, stride);
}

/// Writes the size and stride of the axes of both views and of the axes that users declare. The stride of a
/// declared axis is that of the innermost axis that it joins.
void write_axes(std::string& out, const layout& l) {
  out += R"("axes":{)";
  for (axis a : listed_axes) {
    if (!is_shown(l, a)) continue;
    int size = 1, stride = 1;
    for (const axis_extent& x : is_dense(a) ? l.dense() : l.expert())
      if (parts_of(a).has(x.axis)) {
        size *= x.size;
        stride = x.stride;
      }
    write_extent(out, name(a), size, stride);
  }
  out += '}';
}

void write_aliases(std::string& out, const layout& l) {
  out += R"("aliases":{)";
  for (axis a : joined_axes) {
    const group_shape g = l.groups(a);
    if (std::distance(g.begin(), g.end()) == 1) {
      write_extent(out, name(a), g.size(), g.begin()->stride);
    } else {
      write_member(out, name(a));
      fmt::format_to(std::back_inserter(out), R"({{"size":{}}})", g.size());
    }
  }
  out += '}';
}

void write_resolved(std::string& out, const parallel_dims& d) {
  fmt::format_to(std::back_inserter(out), R"("resolved":{{"world":{})", d.world);
  for (const named_degree& a : all_degrees)
    fmt::format_to(std::back_inserter(out), R"(,"{}":{})", a.name, d.*a.degree);
  fmt::format_to(std::back_inserter(out),
                 R"(,"sequence_parallel":{},"expert_layout":"{}","cp_weights":"{}"}})", d.sequence_parallel,
                 expert_layout_names[static_cast<int>(d.expert_layout)],
                 cp_weights_names[static_cast<int>(d.cp_weights)]);
}

void write_communicators(std::string& out, const std::vector<planned_communicator>& plan, const layout& l) {
  out += R"("communicators":[)";
  for (const planned_communicator& c : plan) {
    fmt::format_to(std::back_inserter(out), R"({}{{"size":{},"groups":{},"serves":[)",
                   out.back() == '[' ? "" : ",", c.groups.size(), c.groups.count(l.ranks()));
    for (const communicator_purpose& s : c.serves)
      fmt::format_to(std::back_inserter(out), R"({}"{}")", out.back() == '[' ? "" : ",", name(s.over));
    out += "]}";
  }
  fmt::format_to(std::back_inserter(out), R"(],"n_communicators":{},"n_groups":{})", plan.size(),
                 count_groups(l, plan));
}

}  // namespace

bool is_shown(const layout& l, axis a) {
  return is_dense(a) || row(a).expert != seen::if_independent || l.groups(a).size() > 1;
}

std::vector<axis> shown_groups(const layout& l) {
  std::vector<axis> out;
  for (axis a : listed_axes)
    if (row(a).joins == axis_set{} && is_shown(l, a)) out.push_back(a);
  out.insert(out.end(), joined_axes.begin(), joined_axes.end());
  return out;
}

std::optional<layout> lay_out(const dims_request& r, report& out) {
  check_dims(out, r.dims);
  if (r.model) check_model(out, *r.model, r.dims);
  if (const int layers = r.model ? r.model->layers : 0; layers > 0 || r.stages_per_rank < 1)
    check_pipeline(out, layers, r.dims, r.stages_per_rank, {}, 0,
                   {.first = true, .last = true});  // embedding and head
  if (r.batch) check_batch(out, *r.batch, r.dims);
  if (r.machines) check_cluster(out, *r.machines, r.dims);
  if (!accepts(out)) return {};
  return layout(resolve(r.dims));
}

std::vector<planned_communicator> communicators_of(const dims_request& r, const layout& l) {
  const bool experts = (r.model && r.model->experts > 0) || l.dims().ep > 1 || l.dims().etp > 1;
  return plan_communicators(l, experts, r.model && r.model->tied_embeddings);
}

void answer_dims(const json& line, std::string& members, report& out) {
  const dims_request r = read_dims(line, out);
  if (!accepts(out)) return;
  const std::optional<layout> l = lay_out(r, out);
  if (r.groups && r.dims.world > most_listed)
    refuse(out, 311) << "world=" << r.dims.world
                     << " ranks are too many for \"groups\":true; the groups of at most " << most_listed
                     << " are listed: leave groups out, since sizes and strides say the same";
  if (!accepts(out)) return;
  write_resolved(members, l->dims());
  write_axes(members += ',', *l);
  write_aliases(members += ',', *l);
  write_communicators(members += ',', communicators_of(r, *l), *l);
  if (r.groups) write_groups(members += R"(,"groups":)", *l);
}

}  // namespace rankc::tool
