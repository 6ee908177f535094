// SPDX-License-Identifier: Apache-2.0
// RC202, RC223 and RC266: models without tokens, and inputs with a row for each sequence.
#include "reject.hpp"

#include <rankc/models/encoder.hpp>

inline constexpr dim hidden{"hidden", 8}, ffn{"ffn", 12}, classes{"classes", 10};

constexpr named_input features_of(input_extent extent = input_extent::token) {
  return {.name = "features", .holds = element::real, .features = dim{"features", 6}, .extent = extent};
}
constexpr named_input labels_of(int below = 10) {
  return {.name = "labels", .extent = input_extent::sequence, .below = below};
}

/// An encoder with other inputs.
template <std::size_t N>
struct encoder {
  static constexpr bool reads_tokens = false;
  std::array<named_input, N> declared;
  constexpr void check(report&) const {}
  constexpr auto inputs() const { return declared; }
  constexpr auto stack() const {
    return sequential(models::dense_embedding{hidden}, repeat{2, models::encoder_block(2, 8, 2, 12, 1e-5)},
                      models::classification_head{hidden, classes});
  }
};
template <std::size_t N>
encoder(std::array<named_input, N>) -> encoder<N>;

constexpr auto modelled(auto model, parallel_dims dims = {}, training r = recipe) {
  return plan{
      .model = model, .dims = dims, .schedule = one_microbatch, .recipe = r, .cluster = clusters::cpu};
}

inline constexpr auto rc223_label_past_the_classes =
    modelled(encoder{std::array{features_of(), labels_of(fault(11, 10))}});
// error: RC223: the loss of layer 'head' has classes=10 for the input 'labels', which is declared with
//        below=11; take below=10 or less, and at least 1
static_assert(valid<rc223_label_past_the_classes>);

inline constexpr auto rc223_labels_without_a_limit =
    modelled(encoder{std::array{features_of(), labels_of(fault(0, 10))}});
// error: RC223: the loss of layer 'head' has classes=10 for the input 'labels', which is declared with
//        below=0; take below=10 or less, and at least 1
static_assert(valid<rc223_labels_without_a_limit>);

inline constexpr auto rc266_first_input_of_sequences = modelled(
    encoder{std::array{features_of(fault(input_extent::sequence, input_extent::token)), labels_of()}});
// error: RC266: the model declares the input 'features' first, which is the input of its first layer; that
//        input has a row for each token of the rank: leave out extent and whole_sequences
static_assert(valid<rc266_first_input_of_sequences>);

inline constexpr auto rc266_documents_without_tokens =
    modelled(encoder{std::array{features_of(), labels_of()}}, {},
             training{.seq = 8, .global_batch = 4, .end_of_document = fault(0, -1)});
// error: RC266: the model reads no tokens, and end_of_document=0 is the token that ends documents; leave out
//        end_of_document
static_assert(valid<rc266_documents_without_tokens>);

inline constexpr auto rc266_limit_of_numbers = modelled(
    encoder{std::array{features_of(), labels_of(),
                       named_input{.name = "weights", .holds = element::wide, .below = fault(3, 0)}}});
// error: RC266: the model declares the input 'weights' with below=3; only element::index takes below: at
//        least 1, or 0 for any index
static_assert(valid<rc266_limit_of_numbers>);

inline constexpr auto rc266_whole_sequences_of_sequences = modelled(encoder{std::array{
    features_of(), labels_of(),
    named_input{.name = "ages", .extent = input_extent::sequence, .whole_sequences = fault(true, false)}}});
// error: RC266: the model declares the input 'ages' with whole_sequences and without a row for each token;
//        leave out whole_sequences or extent
static_assert(valid<rc266_whole_sequences_of_sequences>);

inline constexpr auto rc266_name_of_the_language =
    modelled(encoder{std::array{features_of(), labels_of(), named_input{.name = fault("tokens", "ages")}}});
// error: RC266: the model declares the input 'tokens', which is the name of an input of models that read
//        tokens; take another name
static_assert(valid<rc266_name_of_the_language>);

/// Blocks that read the features directly, without an embedding.
struct without_embedding {
  static constexpr bool reads_tokens = false;
  int before = fault(0, 1);
  constexpr void check(report&) const {}
  constexpr auto inputs() const {
    return std::array{named_input{.name = "features", .holds = element::real, .features = hidden},
                      labels_of()};
  }
  constexpr auto stack() const {
    const auto blocks = repeat{2, models::encoder_block(2, 8, 2, 12, 1e-5)};
    const models::classification_head head{hidden, classes};
#ifdef FAULT
    return sequential(blocks, head);
#else
    return sequential(models::dense_embedding{hidden}, blocks, head);
#endif
  }
};
inline constexpr auto rc266_repeated_first_layer = modelled(without_embedding{});
// error: RC266: the model declares the input 'features' first, and layer 'block', which reads it, is
//        repeated; begin with a layer that is not repeated
static_assert(valid<rc266_repeated_first_layer>);

inline constexpr auto rc202_sequences_over_cp =
    modelled(encoder{std::array{features_of(), labels_of()}}, {.world = 4, .cp = 4},
             training{.seq = 8, .global_batch = fault(2, 4)});
// error: RC202: sequences=2 does not divide by cp=4 (they are those of a microbatch: global_batch /
//        microbatches)
static_assert(valid<rc202_sequences_over_cp>);
