// SPDX-License-Identifier: Apache-2.0
// The emitters: each turns a lowered plan into one kind of text. The passes have decided order, offsets and
// sizes.
#pragma once
#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/proven_calls.hpp>
#include <rankc/codegen/text_template.hpp>

#include <map>
#include <string>

#include "../passes/passes.hpp"

namespace rankc::codegen {

/// The groups of a layer's parameters. Each group is one piece; parameters that layers share have pieces of
/// their own.
inline constexpr std::string_view group_names[]{"own", "over_tp", "own_experts", "frozen"};

/// The struct of each op's kernel, by the op's row.
using kernel_names = std::map<const op_row*, std::string>;
kernel_names name_kernels(const lowered&);
/// The members of a kernel's struct: operands, sizes that no operand's type contains, values that only the
/// run knows, and whether a sum is added to.
struct kernel_members {
  std::vector<std::string> operands;                                 // in the order of the row's ports
  std::vector<std::pair<std::string, std::string>> given, run_time;  // symbols, names
  std::string setting;   // the name of an attention_setting; empty: every call has a plain one
  std::string into;      // the name of the store argument; empty: the kernel sums nothing
  bool may_add = false;  // overwrites unless a call says otherwise
};
/// `has_setting`: a node of the row has an attention_setting that is not plain.
kernel_members members_of(const op_row&, target, bool has_setting);
/// True if a node of the row has an attention_setting that is not plain.
bool has_setting(const lowered&, const op_row&);

/// The op that limits how many picks an expert takes; null without a limit.
const rankc::op* find_limit(const plan_data&);

/// The types of a layer's values in its text.
class tensor_types {
 public:
  explicit tensor_types(const body&);
  std::string of(const value&) const;
  std::string of_parameter(std::size_t) const;  // with elements of type T
  /// Parameters that are one operand, by the index of the first.
  struct several {
    std::string name, type;
  };
  std::map<std::size_t, several> packed;

 private:
  const body& body_;
};

/// The name of a rotary table, one of `count` that a layer or a rank has.
std::string rope_name(std::size_t index, std::size_t count);

/// The names around a layer's call, in a stage's function or in the order of a step.
struct layer_surroundings {
  std::string lane, during, beside, scope, slot, work;
  std::vector<std::string> inputs;  // in the order of the plan's list
  std::string routers, x, y, dy, dx, accumulate, accumulate_kept;
};
std::string layer_call_text(const lowered&, const pipeline_rank&, const stage_plan&, int layer, phase,
                            const layer_surroundings&);
std::string stage_call_text(const pipeline_rank&, const item&, phase, const layer_surroundings&);

std::string emit_kernels(const lowered&, const std::string& target);
std::string emit_optimizer(const lowered&);
std::string emit_layers(const lowered&);
std::string emit_proven(const lowered&, const std::vector<step_hash>&);
std::string emit_program(const lowered&, const std::string& target);

std::string describe_text(const lowered&);
std::string describe_json(const lowered&);
inline constexpr std::string_view first_of_schedule_text = "rank 0  |";
std::string schedule_text(const plan_data&);
std::string schedule_csv(const plan_data&);
std::string schedule_svg(const plan_data&);
std::string schedule_trace(const plan_data&);

/// `measured`: the text of a measured trace, or empty.
/// Errors: runtime::failure if it is not a trace of this plan.
std::string schedule_html(const plan_data&, const std::string& measured);

/// The type of activations. Regions, statistics and the loss have the type `wide_name`, which differs in a
/// bf16 program only.
inline std::string real_name(const lowered& l) {
  constexpr const char* names[]{"float", "double", "bf16"};
  return names[static_cast<int>(l.type)];
}
inline std::string wide_name(const lowered& l) { return l.type == dtype::bf16 ? "float" : "real"; }

inline std::string name_of(dtype t) {
  constexpr const char* names[]{"f32", "f64", "bf16"};
  return names[static_cast<int>(t)];
}

/// The name of an item's sum over ranks in the text. The sum may run in bf16.
inline std::string name_of_sum(const lowered& l, const item& i, const std::string& sum) {
  return l.rounds(i) ? sum + "_in_bf16" : sum;
}

/// The table of the shards that are reduce-scattered together.
std::string sums_name(const gathering&);

/// The type of a value between stages, before `stage`: that of the layer that reads it, or of the layer that
/// writes it.
std::string boundary_type(const lowered&, const pipeline_rank&, int stage);

/// The namespace of a layer's text, which is distinct from the names of kernels.
inline std::string layer_namespace(const body& b) { return b.id + "_layer"; }

/// All files of a program that has passed the checks: name -> text.
std::map<std::string, std::string> emit(const lowered&, const std::string& target, const gated&);

}  // namespace rankc::codegen
