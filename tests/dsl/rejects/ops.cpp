// SPDX-License-Identifier: Apache-2.0
// RC210 and RC225: a user's own ops with an incomplete row, or with a wrong use.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 16};
inline constexpr bool faulty = fault(true, false);

/// A row like gelu's in a separate header, as a user may write it.
constexpr op_row like_gelu(void (*damage)(op_row&)) {
  op_row row = ops::gelu;
  row.name = "mine";
  row.header = "mine.hpp";
  if (faulty) damage(row);
  return row;
}
template <const op_row& Op, int Operands = 1>
struct with_op {
  static constexpr std::string_view name = "with_op";
  constexpr value forward(trace& t, value x, const layer_context&) const {
    value h = rms_norm(x, t.parameter("gain", {hidden}, {}, initial::ones));
    if constexpr (Operands == 0)
      return x + t.apply(Op, {faulty ? t.parameter("b", {hidden}, {}, initial::zeros) : h}, {__FILE__, 1});
    else if constexpr (Operands == 2)
      return x + (faulty ? t.apply(Op, {h, h}, {__FILE__, 1}) : t.apply(Op, {h}, {__FILE__, 1}));
    else return x + t.apply(Op, {h}, {__FILE__, 1});
  }
};
template <const op_row& Op, int Operands = 1>
struct model {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim words{"vocab", vocab};
    const parameter_handle table = token_table(words, hidden);
    return sequential(models::embedding{table, true}, repeat{1, with_op<Op, Operands>{}},
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
template <const op_row& Op, int Operands = 1>
inline constexpr plan modelled{.model = model<Op, Operands>{},
                               .dims = parallel_dims{},
                               .schedule = one_microbatch,
                               .recipe = recipe,
                               .cluster = clusters::cpu};

inline constexpr op_row bare = like_gelu([](op_row& r) { r.dual = nullptr; });
inline constexpr auto op_without_dual = modelled<bare>;
// error: RC210: ops.cpp:1: mine: a gradient reaches it, and it has no dual; give its op_row one, or
//        stop_gradient where none flows
static_assert(valid<op_without_dual>);

inline constexpr op_row untyped = like_gelu([](op_row& r) { r.rule = nullptr; });
inline constexpr auto op_without_rule = modelled<untyped>;
// error: RC210: ops.cpp:1: mine: it has no typing rule; give its op_row one
static_assert(valid<op_without_rule>);

inline constexpr op_row of_sequences = like_gelu([](op_row& r) { r.host.sizes = "tokens*width seq"; });
inline constexpr plan kernel_of_sequences{.model = model<of_sequences>{},
                                          .dims = parallel_dims{.world = 2, .cp = 2},
                                          .schedule = one_microbatch,
                                          .recipe = recipe,
                                          .cluster = clusters::cpu};
// error: RC225: ops.cpp:1: mine: its kernel takes rows or seq, and with cp=2 a rank has chunks of sequences;
//        write a kernel that takes neither, or take cp=1
static_assert(valid<kernel_of_sequences>);

inline constexpr op_row homeless = like_gelu([](op_row& r) {
  r.sizes = "";
  r.cuda.sizes = "tokens*width";
});
inline constexpr auto op_without_host_kernel = modelled<homeless>;
// error: RC225: ops.cpp:1: mine: its op_row has no host kernel; give .sizes, or .host = {name, sizes}
static_assert(valid<op_without_host_kernel>);

inline constexpr op_row no_gpu = like_gelu([](op_row& r) {
  r.sizes = "";
  r.host.sizes = "tokens*width";
});
inline constexpr auto op_without_cuda_kernel = modelled<no_gpu>;
// error: RC225: ops.cpp:1: mine: its op_row has no cuda kernel; give .sizes, or .cuda = {name, sizes}
static_assert(valid<op_without_cuda_kernel>);

inline constexpr op_row misspelt = like_gelu([](op_row& r) { r.cuda.sizes = "tokens*widht"; });
inline constexpr auto kernel_of_an_unknown_size = modelled<misspelt>;
// error: RC225: ops.cpp:1: mine: its cuda kernel takes 'widht', which is a size of no port
static_assert(valid<kernel_of_an_unknown_size>);

inline constexpr op_row undeclared = like_gelu([](op_row& r) { r.header = ""; });
inline constexpr auto op_without_header = modelled<undeclared>;
// error: RC225: ops.cpp:1: mine: its op_row names no header that declares its kernels; give .header
static_assert(valid<op_without_header>);

inline constexpr op_row in_front = like_gelu([](op_row& r) { std::swap(r.ports[0], r.ports[1]); });
inline constexpr auto output_behind_an_input = modelled<in_front>;
// error: RC225: ops.cpp:1: mine: port 'y' stands behind an input; a kernel takes its outputs first
static_assert(valid<output_behind_an_input>);

inline constexpr op_row over_nothing = like_gelu([](op_row& r) { r.ports[0] = r.ports[0].over("z"); });
inline constexpr auto replaces_no_input = modelled<over_nothing>;
// error: RC225: ops.cpp:1: mine: port 'y' may be written over 'z', which is no input
static_assert(valid<replaces_no_input>);

inline constexpr op_row square = like_gelu([](op_row& r) { r.ports[1].shape = "tokens tokens"; });
inline constexpr auto operand_of_another_shape = modelled<square>;
// error: RC210: ops.cpp:1: mine: operand 'x' is (tokens=32, hidden=16); its op_row says (tokens=32,
//        tokens=32)
static_assert(valid<operand_of_another_shape>);

inline constexpr op_row fine = like_gelu([](op_row&) {});
inline constexpr auto too_many_operands = modelled<fine, 2>;
// error: RC210: ops.cpp:1: mine: it is given 2 operands; its op_row has 1 to read
static_assert(valid<too_many_operands>);
inline constexpr auto parameter_for_a_value = modelled<fine, 0>;
// error: RC210: ops.cpp:1: mine 'b': operand 'x' is a parameter; expected a value that an op made
static_assert(valid<parameter_for_a_value>);

inline constexpr op_row namesake = like_gelu([](op_row& r) { r.name = "sigmoid"; });
inline constexpr auto name_of_a_known_op = modelled<namesake>;
// error: RC225: ops.cpp:1: sigmoid: one of rankc's ops has this name; give the op_row another
static_assert(valid<name_of_a_known_op>);

inline constexpr op_row gradient_of_twin = [] {
  op_row row = ops::gelu_grad;
  row.name = faulty ? "mine" : "mine_grad";
  row.header = "mine.hpp";
  return row;
}();
inline constexpr op_row twin = [] {
  op_row row = like_gelu([](op_row&) {});
  row.dual = [](backward& b) { b.give("x", b.apply(gradient_of_twin, {b.gradient("y"), b["x"]})); };
  return row;
}();
inline constexpr auto two_ops_of_one_name = modelled<twin>;
// error: RC225: ops.cpp:1: mine: another op_row of the layer has this name; give one of them another
static_assert(valid<two_ops_of_one_name>);

inline constexpr op_row call = like_gelu([](op_row& r) { r.name = "mine(x)"; });
inline constexpr auto name_that_is_no_identifier = modelled<call>;
// error: RC225: ops.cpp:1: mine(x): the name of its op_row is no identifier; give letters, digits and '_',
//        and no digit first
static_assert(valid<name_that_is_no_identifier>);

inline constexpr op_row twice = like_gelu([](op_row& r) {
  r.ports[2] = r.ports[1];
  r.ports[1] = ports::scratch("x");
});
inline constexpr auto two_ports_of_one_name = modelled<twice>;
// error: RC225: ops.cpp:1: mine: two ports are named 'x'
static_assert(valid<two_ports_of_one_name>);
