// SPDX-License-Identifier: Apache-2.0
// The fields of the model, and of the file as a whole.
#pragma once
#include <rankc/codegen/update_rows.hpp>

#include "schema.hpp"

namespace rankc::codegen::schema {

inline constexpr const char* rounding_names[]{"none", "fp8", "fp8_rows"};

struct tensor_schema {
  static constexpr const char* what = "a value of the model";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& t) {
    f.sizes("shape", t.shape, "sizes on one device, with all tokens of a step");
    f.expect(is_countable(t.shape), countable_text);
    f("unit", t.unit, "elements of a unit (a head) of the last dim");
    f.optional("unit_of_rows", t.unit_of_rows != 1,
               [&] { f("unit_of_rows", t.unit_of_rows, "elements of a unit of the first of two dims"); });
  }
};

struct model_op_schema {
  static constexpr const char* what = "an op of the model";
  static constexpr bool is_line = true, own_line = true;
  static void list(auto& f, auto& o) {
    f("row", o.row, "name of the row in the table of facts, or in `rows`");
    f("in", o.in, "indices of the operands, in the order of the row's ports");
    f("out", o.out, "indices of the results, in the order of the row's ports");
    f("rows", o.rows, "the row's attribute of this name");
    f("seq", o.seq, "tokens of a sequence; 0: the row does not ask for them");
    f.expect(is_countable(std::array{o.rows, o.seq}), countable_text);
    f("number", o.number, "number that the op is given; 0: none");
    f.word("rounding", o.operands, rounding_names,
           "how the operands of its products are rounded, forward and backward");
    const bool is_attention = o.row.ends_with("attention");
    f.when(!is_attention, "not attention", [&] { list_scaling(f, o); });
    f.when(is_attention, "attention", [&] { list_attention(f, o); });
  }

 private:
  static void list_scaling(auto& f, auto& o) {
    f.optional("scaling", !o.scaling.is_plain(),
               [&] { f.template one<scaling_schema>("scaling", o.scaling, "scaling of rotary positions"); });
  }
  static void list_attention(auto& f, auto& o) {
    f.optional("attention", !o.attention.is_plain(), [&] {
      f.template one<attention_schema>(
          "attention", o.attention,
          "window, softcap, scale and causal, of rows whose names end with attention");
    });
  }
};

struct parameter_schema {
  static constexpr const char* what = "a parameter of the model";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& p) {
    f("name", p.name, "name within the layer");
    f("value", p.value, "index of its value");
    f("trainable", p.trainable, "whether a training step updates it");
    f.optional("balance", p.balances.any(), [&] { list_balance(f, p.balances); });
  }
};

struct layer_input_schema {
  static constexpr const char* what = "an input of a layer";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& i) {
    f("name", i.name, "name of the input");
    f("value", i.value, "index of its value");
  }
};

struct input_schema {
  static constexpr const char* what = "an input of the model";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& i) {
    f("name", i.name, "name of the input");
    f("width", i.width, "numbers of a row; 0: one number, and the input has one dim");
    f.optional("rows", i.rows >= 0,
               [&] { f("rows", i.rows, "rows of a step, if these are not its tokens"); });
    f.expect(i.width >= 0 && i.rows >= -1, "sizes of at least 0");
  }
};

struct layer_schema {
  static constexpr const char* what = "a layer of the model";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& l) {
    f("name", l.name, "name of this kind of layers");
    f.template list<tensor_schema>("values", l.values, "its values");
    f.template list<model_op_schema>("ops", l.ops, "its ops in order, forward alone");
    f("input", l.input, "index of the value that the layer before gives; -1: none");
    list_input(f, l, "targets", "index of the value that holds targets; -1: none");
    f("result", l.result, "index of the value that the next layer gets, or of the loss");
    f.optional("starts", l.find_input("starts") >= 0,
               [&] { list_input(f, l, "starts", "index of the value that holds the starts of documents"); });
    list_statistics(f, l);
    f("side_losses", l.side_losses, "indices of values that are added to the loss");
    f.template list<parameter_schema>("parameters", l.parameters, "its parameters");
    auto declared = declared_inputs(l);
    f.optional("inputs", !declared.empty(), [&] {
      f.template list<layer_input_schema>("inputs", declared, "the inputs that the model declares");
    });
    if constexpr (!is_const<decltype(l)>) l.inputs.insert(l.inputs.end(), declared.begin(), declared.end());
  }

 private:
  template <class T>
  static constexpr bool is_const = std::is_const_v<std::remove_reference_t<T>>;

  static bool has_own_field(std::string_view input) { return input == "targets" || input == "starts"; }
  /// The inputs without a field of their own. A reader starts with none.
  static std::vector<specification::layer_input> declared_inputs(const auto& l) {
    std::vector<specification::layer_input> declared;
    for (const auto& i : l.inputs)
      if (!has_own_field(i.name)) declared.push_back(i);
    return declared;
  }
  static void list_input(auto& f, auto& l, const char* name, const char* about) {
    int value = l.find_input(name);
    f(name, value, about);
    if constexpr (!is_const<decltype(l)>)
      if (value >= 0) l.inputs.push_back({name, value});
  }
  static void list_statistics(auto& f, auto& l) {
    specification::carried_value c = l.find_carried("statistics");
    f.optional("statistics", c.before >= 0, [&] {
      f("statistics", c.before, "index of the value that holds statistics of the routers before");
    });
    f.optional("statistics_result", c.after >= 0, [&] {
      f("statistics_result", c.after, "index of the value that holds these and this layer's");
    });
    if constexpr (!is_const<decltype(l)>)
      if (c.before >= 0 || c.after >= 0) l.carried.push_back(c);
  }
};

struct use_schema {
  static constexpr const char* what = "a use of a layer";
  static constexpr bool is_line = true, own_line = true;
  static void list(auto& f, auto& u) {
    f("layer", u.layer, "index of the layer");
    f("name", u.name, "name of the layer in the model");
    f("parameters", u.parameters,
      "names in the model of the layer's parameters, in their order; equal names are one tensor");
  }
};

struct row_schema {
  static constexpr const char* what = "a row of the user's";
  static constexpr bool is_line = true, own_line = true;
  static void list(auto& f, auto& r) {
    f("row", r.row, "its name");
    f("ports", r.ports, "its ports, in the words of equivalence/facts.hpp, as all that follows");
    f("rule", r.rule, "its results, with the axes that it sums over");
    f("needs", r.needs, "axes that each rank must have whole");
    f("attributes", r.attributes, "numbers that change its results");
    f("gradients", r.gradients, "its dual");
  }
};

struct optimizer_schema {
  static constexpr const char* what = "the optimizer";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& o) {
    f("row", o.row, "name of the optimizer");
    f("moments", o.moments, "number of moments of a weight");
    f("bf16_weights", o.bf16_weights, "whether weights may be kept in bf16 alone");
    f("bf16_moments", o.bf16_moments, "whether moments may be kept in bf16");
    f("bf16_reductions", o.bf16_reductions, "whether gradients may be sent in bf16 to be summed");
    const update_row* const known = find_update_row(o.row);
    f.expect(known ? known->least_moments <= o.moments && o.moments <= known->most_moments
                   : 0 <= o.moments && o.moments <= 2,
             "2 moments with adamw, 0 or 1 with sgd, 0 to 2 with another");
  }
};

struct model_schema {
  static constexpr const char* what = "the model";
  static constexpr bool is_line = false, own_line = false;
  static void list(auto& f, auto& s) {
    f.template list<layer_schema>("layers", s.layers, "the kinds of layers");
    f.template list<use_schema>("uses", s.uses, "the model's layers in order");
    f.optional("rows", !s.rows.empty(),
               [&] { f.template list<row_schema>("rows", s.rows, "the user's rows"); });
    f("tokens", s.tokens, "number of tokens in a step");
    f.optional("inputs", !s.inputs.empty(), [&] {
      f.template list<input_schema>("inputs", s.inputs, "the inputs that the model declares");
      f.expect(std::all_of(s.inputs.begin(), s.inputs.end(),
                           [&](const auto& i) {
                             const std::int64_t rows = i.rows < 0 ? s.tokens : i.rows;
                             return is_countable(std::array{rows, std::max(i.width, std::int64_t{1})});
                           }),
               countable_text);
    });
    f.optional("first_input", !s.first_input.empty(), [&] {
      f("first_input", s.first_input, "name of the input that the first layer reads in place of the tokens");
    });
    f.template one<optimizer_schema>("optimizer", s.optimizer, "the optimizer");
  }
};

struct file_schema {
  static constexpr const char* what = "the document";
  static constexpr bool is_line = false, own_line = false;
  static void list(auto& f, auto& c) {
    f("format", c.format, "the title of this page");
    f("plan", c.plan, "name of the plan");
    f("plan_hash", c.plan_hash, "hash of the plan, 16 hexadecimal digits");
    f("trusted", c.trusted, "sentences about what no checker can know from the file");
    f("world", c.world, "number of ranks in the world");
    f.nullable("represented", !c.mesh.empty(), [&] {
      f.template list<axis_schema>("represented", c.mesh,
                                   "the world's axes, outermost first; null: the steps have all ranks");
    });
    f.nullable("model", !c.model.layers.empty(), [&] {
      f.template one<model_schema>("model", c.model,
                                   "the model on one device; null: the programs are compared with none");
    });
    f.template list<step_schema>("steps", c.steps, "the plan's steps");
  }
};

}  // namespace rankc::codegen::schema
