// SPDX-License-Identifier: Apache-2.0
// The names of a step's inputs in programs, listings and certificates.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/program.hpp>
#include <rankc/trace/named_input.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rankc::codegen {

/// The words for one input.
struct input_text {
  std::string formal;                // the parameter of a layer's function
  std::string type;                  // the type of the parameter
  std::string of_type;               // the comment on the type
  std::string about;                 // the comment on the place in memory
  std::string read;                  // the words of listings for a rank that reads the input
  std::optional<holding_kind> held;  // the kind in certificates; none: no step begins with it
  int in_hash;  // the number of its place in a program's hash, which older programs use too
};

/// The comment on an input's type, about its rows.
inline const char* rows_text(const named_input& i) {
  if (i.extent == input_extent::sequence) return "of a microbatch, a row for each sequence";
  if (i.extent == input_extent::step) return "of a step";
  return i.whole_sequences ? "of a microbatch, of whole sequences" : "of a microbatch";
}

/// The words for an input. The inputs of the language have their own words. Any other input is called
/// "in_<name>".
inline input_text text_of_input(const named_input& i) {
  if (i == inputs::tokens)
    return {"ids", "token_ids", "of a microbatch", "the step's tokens", "ids", holding_kind::ids, 10};
  if (i == inputs::targets)
    return {"targets", "token_ids", "of a microbatch", "their next tokens", "targets", holding_kind::targets,
            11};
  if (i == inputs::starts)
    return {"starts",
            "document_starts",
            "of a microbatch, of whole sequences",
            "where in its sequence each token's document begins",
            "starts of documents",
            holding_kind::starts,
            14};
  if (i == inputs::label_count)
    return {"label_count",      "vector<wide, 1>", "", "labels of the step that are not ignored",
            "number of labels", std::nullopt,      16};
  const std::string name = "in_" + std::string(i.name);
  return {name,
          name + "_rows",
          rows_text(i),
          i == inputs::weights ? "the weights of these tokens" : "an input that the model declares",
          "input " + std::string(i.name),
          holding_kind::input,
          15};
}

/// The type of an input's elements in memory.
inline element_type type_of_input(const named_input& i, const lowered& l) {
  if (i.holds == element::index) return element_type::i32;
  if (i.holds == element::real && l.type == dtype::bf16) return element_type::bf16;
  return l.wide_bytes() == sizeof(double) ? element_type::f64 : element_type::f32;
}

}  // namespace rankc::codegen
