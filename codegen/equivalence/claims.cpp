// SPDX-License-Identifier: Apache-2.0
#include "claims.hpp"

#include <algorithm>
#include <limits>

namespace rankc::codegen::algebra {

namespace {

using relation = codegen::holding;  // a holding in the operands of begin and end

bool is_state(holding_kind k) {
  return k == holding_kind::weight || k == holding_kind::working_copy || k == holding_kind::first_moment ||
         k == holding_kind::second_moment;
}
int state_of(holding_kind k) {
  if (k == holding_kind::first_moment) return 1;
  return k == holding_kind::second_moment ? 2 : 0;
}

/// Clips a box to the tensor.
few<part, 2> within_tensor(few<part, 2> box) {
  if (!box.empty()) box[0].at = box[0].at.below(box[0].size);
  return box;
}

[[noreturn]] void refuse_size(const std::string& what, std::size_t bytes, const few<part, 2>& box) {
  throw refusal("RC7460: {} has {} bytes; expected the bytes of {}", what, bytes, text_of(box));
}

/// A buffer of one tensor in row-major order, with zeros past the tensor's end.
content one_tensor(const access& a, const relation& h, const few<part, 2>& box, term of) {
  content c{a.end - a.begin, a.type, {}};
  if (count(box) * size_of(a.type) != static_cast<std::int64_t>(c.bytes))
    refuse_size(name_of(h), c.bytes, box);
  piece p;
  p.holds.box = within_tensor(box);
  const std::int64_t elements = count(p.holds.box);
  const int n = box.size();
  if (elements > 0) {
    if (n == 2) p.at.rows = p.holds.box[0].at.size();
    if (n > 0) p.at.cols = p.holds.box[n - 1].at.size();
    p.at.pitch = p.at.cols;
    add(p.holds.sum, {of, {}});
    c.pieces.push_back(std::move(p));
  }
  append_zeros(c, elements, c.elements() - elements);
  return c;
}

}  // namespace

std::string name_of(const relation& h) {
  const std::string kind = std::string("the ") + holding_names[static_cast<int>(h.kind)];
  return h.name.empty() ? kind : kind + " of " + h.name;
}

/// Whether a step trains, by its name.
static bool trains(const program& p, const model& m) {
  if (p.step == "evaluate") return false;
  if (p.step != "train") throw refusal("RC7730: the step is {}; expected train or evaluate", p.step);
  if (!m.trains())
    throw refusal("RC7731: the step trains, and the model has {} parameters, none of which is trained",
                  m.parameters().size());
  return true;
}

claims::claims(const program& p, const model& m) : program_(p), model_(m), trains_(trains(p, m)) {}

const model::parameter& claims::parameter(const std::string& name) const {
  const auto at = model_.parameters().find(name);
  if (at == model_.parameters().end()) throw refusal("RC7461: the model has no parameter {}", name);
  return at->second;
}

few<part, 2> claims::box_of(const relation& h, const model::parameter& p) const {
  few<part, 2> box;
  const std::vector<std::int64_t>& shape = p.shape;
  if (h.box.size() != shape.size())
    throw refusal("RC7462: {} has {} dims; expected {}", name_of(h), h.box.size(), shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const box_range& b = h.box[d];
    // Rows that do not divide by the shards are padded to a multiple, so fewer rows than ranks are past the
    // end.
    const std::int64_t past = d == 0 && is_state(h.kind) ? world() - 1 : 0;
    const std::int64_t limit = std::min(shape[d], std::numeric_limits<std::int64_t>::max() - past) + past;
    if (b.first < 0 || b.count < 1 || b.first > limit || b.count > limit - b.first)
      throw refusal("RC7463: {} has {} elements from {} on; dim {} of the parameter has {}", name_of(h),
                    b.count, b.first, d, shape[d]);
    box.push_back({runs(b.first, b.first + b.count), shape[d]});
  }
  return box;
}

/// The elements of a holding's ranges, one after another, on an axis of `size` elements.
static part parts_of(const relation& h, std::int64_t size) {
  part all{{}, size};
  for (const box_range& b : h.box) {
    if (b.first < 0 || b.count < 1 || b.first > size || b.count > size - b.first)
      throw refusal("RC7464: {} are held in {} elements from {} on; the step has {}", name_of(h), b.count,
                    b.first, size);
    all.at.append(interval{b.first, b.first + b.count});
  }
  return all;
}

/// The box of a rotary table: the positions of its rows in their order, and its columns.
static few<part, 2> box_of_table(const relation& h) {
  few<part, 2> box;
  box.push_back(h.box.empty() ? part{runs(0, h.positions), h.positions} : parts_of(h, h.positions));
  box.push_back({runs(0, h.dim), h.dim});
  return box;
}

content claims::begin(int rank, const access& a, const relation& h) {
  if (is_kept(h.kind) && !kept_.try_emplace({rank, a.begin}, kept{a, h}).second)
    throw refusal("RC7732: the step begins with {} where another tensor begins, at byte {}", name_of(h),
                  a.begin);
  const std::int64_t elements = static_cast<std::int64_t>(a.end - a.begin) / size_of(a.type);
  if (h.kind == holding_kind::targets) read_targets_.insert(rank);
  switch (h.kind) {
    case holding_kind::padding: {
      content c{a.end - a.begin, a.type, {}};
      piece p{{0, 1, elements, elements}, {}};
      p.holds.any = true;
      c.pieces.push_back(std::move(p));
      return c;
    }
    case holding_kind::rotary:
      return one_tensor(a, h, box_of_table(h), rotary_table(h.theta, h.dim, h.scaling));
    case holding_kind::ids:
    case holding_kind::targets:
    case holding_kind::starts:
    case holding_kind::input: {
      few<part, 2> box;
      const specification::input of =
          h.kind == holding_kind::input ? model_.input_of(h.name) : specification::input{};
      box.push_back(parts_of(h, of.rows < 0 ? model_.tokens() : of.rows));
      if (of.width > 0) box.push_back({runs(0, of.width), of.width});
      return one_tensor(a, h, box, leaf(holding_names[static_cast<int>(h.kind)], h.name));
    }
    case holding_kind::loss:
    case holding_kind::norm:
      throw refusal("RC7465: the step begins with {}; expected it to be computed in the step", name_of(h));
    default:
      break;
  }
  const model::parameter& p = parameter(h.name);
  const few<part, 2> box = box_of(h, p);
  std::vector<held>& of = held_[h.name];
  if (of.empty() || of.back().rank != rank) of.push_back({rank, box});
  if (!(of.back().box == box))
    throw refusal("RC7466: the rank holds {} of {} and {} of another of its tensors; expected one shard",
                  text_of(box), name_of(h), text_of(of.back().box));
  return one_tensor(a, h, box, p.state[state_of(h.kind)]);
}

/// Notes that the step leaves a tensor for the next step.
void claims::leave(int rank, const access& a, const relation& h, const few<part, 2>& box) {
  const auto at = kept_.find({rank, a.begin});
  if (at == kept_.end() || at->second.is_left || at->second.at.end != a.end || !(at->second.what == h))
    throw refusal(
        "RC7467: {} ends the step in bytes {} to {} as {}; expected the bytes and the shard that it began "
        "with",
        name_of(h), a.begin, a.end, text_of(box));
  const element_type begun = at->second.at.type;
  if (begun != a.type)
    throw refusal("RC7733: {} is left in {}; expected {}, which the step begins with", name_of(h),
                  element_type_names[static_cast<int>(a.type)], element_type_names[static_cast<int>(begun)]);
  at->second.is_left = true;
}

claims::expectation claims::expected_at_end(const relation& h) const {
  switch (h.kind) {
    case holding_kind::rotary:
      return {box_of_table(h), rotary_table(h.theta, h.dim, h.scaling)};
    case holding_kind::padding:
      return {{}, zero};
    case holding_kind::loss:
      return {{}, model_.loss()};
    case holding_kind::norm:
      return {{}, model_.norm()};
    case holding_kind::ids:
    case holding_kind::targets:
    case holding_kind::starts:
    case holding_kind::input:
      throw refusal(
          "RC7468: the step ends with {}; expected weights, working copies, moments, rotary tables, padding, "
          "the loss or the norm",
          name_of(h));
    default:
      break;
  }
  const model::parameter& p = parameter(h.name);
  return {box_of(h, p), (trains_ ? p.after : p.state)[state_of(h.kind)]};
}

/// Checks that all bytes of the padding are zero.
static void check_padding(const access& a, const holding& found, const model& m) {
  if (!found.is_zero())
    throw refusal("RC7734: the padding in bytes {} to {} ends the step as {}; expected zeros", a.begin, a.end,
                  m.name(found.closed()));
}

void claims::end(int rank, const access& a, const content& c, const relation& h) {
  const std::string what = name_of(h);
  const holding& found = *tensor_of(c).holds;
  const auto [box, expected] = expected_at_end(h);
  if (is_kept(h.kind)) leave(rank, a, h, box);
  if (h.kind == holding_kind::padding) return check_padding(a, found, model_);
  if (h.kind == holding_kind::loss) leave_loss_.insert(rank);
  if (h.kind == holding_kind::norm) leave_norm_.insert(rank);
  if (count(box) != c.elements()) refuse_size(what, c.bytes, box);
  if (count(within_tensor(box)) == 0 && found.any) return;  // the whole box is past the end
  if (!found.is_whole()) refuse_sum(what, found, expected);
  if (found.closed() != expected) refuse_value(what, expected, found);
  if (!(found.box == within_tensor(box)))
    throw refusal("RC7469: {} ends the step as {}; expected {}", what, text_of(found.box), text_of(box));
}

}  // namespace rankc::codegen::algebra
