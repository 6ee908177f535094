// SPDX-License-Identifier: Apache-2.0
// The emitters: each turns a lowered plan into one kind of text. They decide nothing; order, offsets and sizes are
// the passes'.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/text_template.hpp>

#include <map>
#include <string>

namespace rankc::codegen {

/// The parameters that a layer's function takes besides lane and workspace, in order; the caller passes the same.
struct function_shape {
  bool weights, gradients, saved, work, x, y, dy, dx, ids, targets, loss, accumulate, accumulate_shared;
  std::vector<int> ropes;  // of the body's tables
};
function_shape shape_of(const body&, phase);

/// What a rotary table is called, of `count` that a layer or a rank has.
std::string rope_name(std::size_t index, std::size_t count);

/// How a layer's call names what surrounds it: in a stage's function, or in the order of a step.
struct layer_surroundings {
  std::string lane, scope, slot, work, ids, targets, x, y, dy, dx, accumulate;
};
/// What the order of a step calls the slot of a stage whose layers it calls one by one.
std::string slot_name(const pipeline_rank&, const stage_plan&);
layer_surroundings surroundings_of(const pipeline_rank&, const item&);
std::string layer_call(const lowered&, const pipeline_rank&, const stage_plan&, int layer, phase, const layer_surroundings&);
std::string stage_call(const lowered&, const pipeline_rank&, const item&);

std::string emit_layers(const lowered&, const std::string& target);
std::string emit_memory(const lowered&, const pipeline_rank&);
std::string emit_stage(const lowered&, const pipeline_rank&, const stage_plan&);
std::string emit_pipeline(const lowered&, const pipeline_rank&);
std::string emit_program(const lowered&, const std::string& target);

std::string describe_text(const lowered&);
std::string describe_json(const lowered&);
std::string schedule_text(const plan_data&);
std::string schedule_csv(const plan_data&);
std::string schedule_svg(const plan_data&);
std::string schedule_trace(const plan_data&);

/// `measured`: the text of a measured trace, or empty.
/// Errors: std::runtime_error where that is not a trace of this plan.
std::string schedule_html(const plan_data&, const std::string& measured);

/// The types of activations, and of regions, statistics and the loss: "real" for both but in a bf16 program.
inline std::string real_name(const lowered& l) { return l.type == dtype::f64 ? "double" : l.type == dtype::f32 ? "float" : "bf16"; }
inline std::string wide_name(const lowered& l) { return l.type == dtype::bf16 ? "float" : "real"; }

inline std::string name_of(dtype t) { return t == dtype::f64 ? "f64" : t == dtype::f32 ? "f32" : "bf16"; }

/// Namespace of a layer's text: apart from the kernels' names.
inline std::string layer_namespace(const body& b) { return b.id + "_layer"; }

/// All files of a program: name -> text.
std::map<std::string, std::string> emit(const lowered&, const std::string& target);

}  // namespace rankc::codegen
