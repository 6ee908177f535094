// SPDX-License-Identifier: Apache-2.0
#include "../said_by_rank.hpp"
#include "../bench.hpp"
#include "random_starts.hpp"

namespace rankc::runtime::cuda::test::attention_test {
namespace {

struct shape {
  int rows, seq, heads, kv_heads, dim;
  attention_setting by{};
  int documents = 0;  // mean length; 0: one document
  int value_dim = 0;  // 0: dim
  int values() const { return value_dim == 0 ? dim : value_dim; }
  std::vector<std::int32_t> starts() const {
    return random_starts(rows, seq, documents == 0 ? seq : documents, 7);
  }
};
// Within a tile; past it; grouped heads; each size of head dim, and dims that fill none. In bf16, cuDNN takes
// sequences of a multiple of 128 tokens, unless misplaced. The Hopper kernels take heads of 64 and multiples
// of 64 tokens; their blocks take four tiles of queries in forward, and three of queries and two of keys for
// gradients.
constexpr shape shapes[] = {{1, 5, 1, 1, 8},    {2, 64, 2, 2, 32},   {1, 150, 4, 2, 64}, {1, 129, 2, 1, 128},
                            {2, 70, 3, 1, 40},  {1, 60, 2, 2, 12},   {2, 128, 2, 2, 16}, {1, 256, 4, 2, 32},
                            {2, 256, 2, 2, 64}, {1, 256, 6, 2, 128}, {1, 128, 3, 1, 40}, {1, 128, 2, 1, 8},
                            {2, 128, 2, 2, 24}, {1, 128, 2, 1, 72},  {1, 128, 2, 2, 96}, {1, 256, 2, 1, 120},
                            {2, 64, 3, 1, 64},  {1, 192, 2, 2, 64},  {1, 320, 3, 3, 64}, {1, 640, 6, 2, 64}};
// Windows of one key, within a tile, of several tiles, and longer than the sequence. Shapes that the fused
// kernels take without a setting, too. Non-causal attention, by rankc's own and by fused kernels.
constexpr shape settings[] = {
    {2, 64, 2, 2, 32, {.window = 1}},       {1, 150, 4, 2, 64, {.window = 7}},
    {1, 256, 2, 2, 128, {.window = 70}},    {1, 640, 6, 2, 64, {.window = 200}},
    {2, 128, 2, 2, 16, {.window = 1000}},   {1, 256, 4, 2, 32, {.softcap = 2}},
    {2, 256, 2, 2, 64, {.scale = 0.05}},    {1, 384, 4, 2, 64, {.window = 130, .softcap = 1.5, .scale = 0.2}},
    {1, 448, 4, 4, 128, {.window = 64}},    {2, 320, 4, 2, 128, {.window = 65, .scale = 0.1}},
    {2, 70, 3, 1, 40, {.causal = false}},   {2, 128, 2, 2, 32, {.causal = false}},
    {1, 256, 4, 2, 128, {.causal = false}}, {2, 192, 2, 2, 64, {.causal = false}},
    {1, 640, 6, 2, 64, {.causal = false}},  {1, 256, 2, 2, 32, {.softcap = 2, .causal = false}}};
// Documents of one token, within a tile, of about a tile, of several, and with a window. In bf16, the Hopper
// kernels take heads of 64 and 128 if the number of tokens is a multiple of 64.
constexpr shape in_documents[] = {{2, 64, 2, 2, 32, {}, 20},
                                  {1, 150, 4, 2, 64, {}, 30},
                                  {2, 128, 2, 2, 64, {}, 1},
                                  {2, 320, 4, 2, 64, {}, 20},
                                  {3, 640, 6, 2, 64, {}, 70},
                                  {1, 1024, 3, 3, 64, {}, 300},
                                  {1, 64, 2, 2, 128, {}, 20},
                                  {2, 320, 4, 1, 128, {}, 70},
                                  {1, 640, 6, 2, 128, {}, 200},
                                  {1, 1024, 2, 2, 128, {}, 600},
                                  {2, 512, 2, 2, 64, {.window = 40}, 100},
                                  {2, 512, 4, 2, 128, {.window = 130, .scale = 0.2}, 200},
                                  {1, 256, 2, 1, 128, {.softcap = 2}, 50}};

// Smaller and larger value heads than key heads, which no fused kernel takes: of whole sequences, with a
// window, not causal, and within documents.
constexpr shape value_heads[] = {{1, 150, 4, 2, 64, {}, 0, 32},
                                 {2, 128, 2, 1, 96, {}, 0, 64},
                                 {1, 256, 4, 2, 64, {}, 0, 128},
                                 {2, 70, 3, 1, 12, {}, 0, 40},
                                 {1, 256, 2, 2, 128, {.window = 70, .softcap = 2}, 0, 64},
                                 {2, 128, 2, 2, 64, {.causal = false}, 0, 16},
                                 {2, 320, 4, 2, 64, {}, 20, 128},
                                 {1, 640, 6, 2, 128, {.window = 130}, 200, 64}};

/// Attention and its gradients in f64, one score at a time.
struct reference {
  shape s;
  numbers o, lse, dq, dk, dv;
  std::size_t q_at(int row, int t, int h) const {
    return ((static_cast<std::size_t>(row) * s.seq + t) * s.heads + h) * s.dim;
  }
  std::size_t k_at(int row, int t, int h) const {
    return ((static_cast<std::size_t>(row) * s.seq + t) * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim;
  }
  std::size_t o_at(int row, int t, int h) const { return q_at(row, t, h) / s.dim * s.values(); }
  std::size_t v_at(int row, int t, int h) const { return k_at(row, t, h) / s.dim * s.values(); }
  reference(shape of, const numbers& q, const numbers& k, const numbers& v, const numbers& dout)
      : s(of),
        o(dout.size(), 0.0),
        lse(static_cast<std::size_t>(s.rows) * s.heads * s.seq),
        dq(q.size(), 0.0),
        dk(k.size(), 0.0),
        dv(v.size(), 0.0) {
    const double scale = s.by.scale != 0 ? s.by.scale : 1.0 / std::sqrt(static_cast<double>(s.dim));
    const std::vector<std::int32_t> starts = s.documents > 0 ? s.starts() : std::vector<std::int32_t>();
    for (int row = 0; row < s.rows; ++row)
      for (int h = 0; h < s.heads; ++h)
        for (int t = 0; t < s.seq; ++t) {
          const std::size_t at_q = q_at(row, t, h), at_o = o_at(row, t, h);
          const int start = s.documents > 0 ? starts[static_cast<std::size_t>(row) * s.seq + t] : 0,
                    first = s.by.window > 0 ? std::max(start, t - s.by.window + 1) : start,
                    last = s.by.last_key(t, s.seq);
          numbers p(last + 1, 0.0), dp(last + 1, 0.0), slope(last + 1, 1.0);
          double total = 0.0, delta = 0.0;
          for (int u = first; u <= last; ++u) {
            for (int d = 0; d < s.dim; ++d) p[u] += q[at_q + d] * k[k_at(row, u, h) + d] * scale;
            if (s.by.softcap != 0) {
              const double x = std::tanh(p[u] / s.by.softcap);
              p[u] = s.by.softcap * x;
              slope[u] = 1 - x * x;
            }
            p[u] = std::exp(p[u]);
            total += p[u];
          }
          lse[(static_cast<std::size_t>(row) * s.heads + h) * s.seq + t] = std::log(total);
          for (int u = first; u <= last; ++u) {
            p[u] /= total;
            for (int d = 0; d < s.values(); ++d) {
              o[at_o + d] += p[u] * v[v_at(row, u, h) + d];
              dp[u] += dout[at_o + d] * v[v_at(row, u, h) + d];
              dv[v_at(row, u, h) + d] += p[u] * dout[at_o + d];
            }
            delta += p[u] * dp[u];
          }
          for (int u = first; u <= last; ++u)
            for (int d = 0; d < s.dim; ++d) {
              dq[at_q + d] += scale * p[u] * (dp[u] - delta) * slope[u] * k[k_at(row, u, h) + d];
              dk[k_at(row, u, h) + d] += scale * p[u] * (dp[u] - delta) * slope[u] * q[at_q + d];
            }
        }
  }
};

enum class place { apart, packed, misplaced };

/// A call to attention on a bench, with q, k and v in separate buffers or as columns of one buffer; its
/// gradients likewise.
template <class T>
struct call {
  shape s;
  bool packed;
  bench b;
  description about = *b.of().about;
  int q_stride, k_stride, v_stride;
  std::size_t n_q, n_k, n_v, n_o, n_lse;
  numbers q, k, v, dout;
  at q_at, k_at, v_at, dout_at, o_at, lse_at, dq_at, dk_at, dv_at, scratch_at, grad_scratch_at, starts_at;

  std::size_t tokens() const { return static_cast<std::size_t>(s.rows) * s.seq; }
  int query_width() const { return s.heads * s.dim; }
  int key_width() const { return s.kv_heads * s.dim; }
  int value_width() const { return s.kv_heads * s.values(); }
  int output_width() const { return s.heads * s.values(); }
  int width() const { return query_width() + key_width() + value_width(); }
  attention_shape planned() {
    return {s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.values(), sizeof(T), about.deterministic};
  }

  /// The scores of the first keys are larger by a power of two.
  call(shape of, place where, bool deterministic = false, int first_keys = 0, double larger = 1.0)
      : s(of), packed(where == place::packed) {
    about.deterministic = deterministic;
    b.of().about = &about;
    if (where == place::misplaced) b.misplace();
    q_stride = packed ? width() : query_width();
    k_stride = packed ? width() : key_width();
    v_stride = packed ? width() : value_width();
    n_q = tokens() * query_width();
    n_k = tokens() * key_width();
    n_v = tokens() * value_width();
    n_o = tokens() * output_width();
    n_lse = tokens() * s.heads;
    q = random_numbers<T>(n_q, 1.5, 1);
    k = random_numbers<T>(n_k, 1.5, 2);
    for (int row = 0; row < s.rows; ++row)
      for (int i = 0; i < first_keys * key_width(); ++i)
        k[static_cast<std::size_t>(row) * s.seq * key_width() + i] *= larger;
    v = random_numbers<T>(n_v, 1.0, 3);
    dout = random_numbers<T>(n_o, 1.0, 4);
    dout_at = b.put<T>(dout);
    o_at = b.room<T>(n_o);
    lse_at = b.room<float>(n_lse);
    if (packed) {
      numbers all(tokens() * width());
      for (std::size_t t = 0; t < tokens(); ++t) {
        const auto copy = [&](const numbers& from, int columns, int first) {
          for (int c = 0; c < columns; ++c) all[t * width() + first + c] = from[t * columns + c];
        };
        copy(q, query_width(), 0);
        copy(k, key_width(), query_width());
        copy(v, value_width(), query_width() + key_width());
      }
      q_at = b.put<T>(all);
      dq_at = b.room<T>(all.size());
      k_at = q_at + query_width() * sizeof(T);
      dk_at = dq_at + query_width() * sizeof(T);
      v_at = k_at + key_width() * sizeof(T);
      dv_at = dk_at + key_width() * sizeof(T);
    } else {
      q_at = b.put<T>(q);
      k_at = b.put<T>(k);
      v_at = b.put<T>(v);
      dq_at = b.room<T>(n_q);
      dk_at = b.room<T>(n_k);
      dv_at = b.room<T>(n_v);
    }
    scratch_at = b.room<float>(attention_scratch(planned()) / sizeof(float));
    grad_scratch_at = b.room<float>(
        (s.documents > 0 ? document_attention_grad_scratch(planned()) : attention_grad_scratch(planned())) /
        sizeof(float));
    starts_at = b.put(s.starts());
  }

  void forward() {
    if (s.documents > 0)
      return document_attention<T>(b.on(), o_at, lse_at, scratch_at, q_at, k_at, v_at, starts_at, s.rows,
                                   s.seq, s.heads, s.kv_heads, s.dim, s.values(), q_stride, k_stride,
                                   v_stride, s.by);
    attention<T>(b.on(), o_at, lse_at, scratch_at, q_at, k_at, v_at, s.rows, s.seq, s.heads, s.kv_heads,
                 s.dim, s.values(), q_stride, k_stride, v_stride, s.by);
  }
  void backward() {
    if (s.documents > 0)
      return document_attention_grad<T>(b.on(), dq_at, dk_at, dv_at, grad_scratch_at, dout_at, q_at, k_at,
                                        v_at, o_at, lse_at, starts_at, s.rows, s.seq, s.heads, s.kv_heads,
                                        s.dim, s.values(), q_stride, k_stride, v_stride, s.by);
    attention_grad<T>(b.on(), dq_at, dk_at, dv_at, grad_scratch_at, dout_at, q_at, k_at, v_at, o_at, lse_at,
                      s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.values(), q_stride, k_stride, v_stride,
                      s.by);
  }
  /// The columns of a result, without gaps.
  numbers take(at where, int columns) {
    if (!packed) return b.template take<T>(where, tokens() * columns);
    const numbers all = b.template take<T>(dq_at, tokens() * width());
    const std::size_t first = (where.byte - dq_at.byte) / sizeof(T);
    numbers part;
    for (std::size_t t = 0; t < tokens(); ++t)
      part.insert(part.end(), all.begin() + t * width() + first, all.begin() + t * width() + first + columns);
    return part;
  }
  numbers gradients() {
    numbers all = take(dq_at, query_width());
    for (const auto& [where, columns] : {std::pair(dk_at, key_width()), std::pair(dv_at, value_width())})
      for (const double x : take(where, columns)) all.push_back(x);
    return all;
  }

  static constexpr bool f32 = std::is_same_v<T, float>;
  void check_forward(const reference& wanted) {
    check_close("lse", b.template take<float>(lse_at, n_lse), wanted.lse, 1e-5, 1e-5);
    check_close("o", b.template take<T>(o_at, n_o), wanted.o, f32 ? 1e-5 : 1e-2, f32 ? 8e-6 : 4e-3);
  }
  /// In bf16, p and ds are rounded before they are multiplied, and delta is computed from the stored o: each
  /// rounding adds up to 2^-9 of the numbers summed into the result.
  void check_all() {
    const reference wanted(s, q, k, v, dout);
    check_forward(wanted);
    const double absolute = f32 ? 2e-5 : 2e-2, relative = f32 ? 1e-4 : 1e-2;
    check_close("dq", take(dq_at, query_width()), wanted.dq, relative, absolute);
    check_close("dk", take(dk_at, key_width()), wanted.dk, relative, absolute);
    check_close("dv", take(dv_at, value_width()), wanted.dv, relative, absolute);
  }
};

TEST_CASE_TEMPLATE("attention and its gradients", T, float, bf16) {
  for (const place where : {place::apart, place::packed, place::misplaced})
    for (const shape s : shapes) {
      CAPTURE(static_cast<int>(where));
      CAPTURE(s.seq);
      CAPTURE(s.heads);
      CAPTURE(s.dim);
      call<T> c(s, where);
      c.forward();
      c.backward();
      c.check_all();
    }
}

TEST_CASE_TEMPLATE("attention with a window, a softcap and a scale, and its gradients", T, float, bf16) {
  for (const place where : {place::apart, place::packed})
    for (const shape s : settings) {
      CAPTURE(static_cast<int>(where));
      CAPTURE(s.seq);
      CAPTURE(s.by.window);
      CAPTURE(s.by.softcap);
      call<T> c(s, where);
      c.forward();
      c.backward();
      c.check_all();
    }
}

TEST_CASE_TEMPLATE("attention within documents, and its gradients", T, float, bf16) {
  for (const place where : {place::apart, place::packed, place::misplaced})
    for (const shape s : in_documents) {
      CAPTURE(static_cast<int>(where));
      CAPTURE(s.seq);
      CAPTURE(s.dim);
      CAPTURE(s.documents);
      CAPTURE(s.by.window);
      call<T> c(s, where);
      c.forward();
      c.backward();
      c.check_all();
    }
}

TEST_CASE_TEMPLATE("attention with value heads of another size than key heads, and its gradients", T, float,
                   bf16) {
  for (const place where : {place::apart, place::packed, place::misplaced})
    for (const shape s : value_heads) {
      CAPTURE(static_cast<int>(where));
      CAPTURE(s.seq);
      CAPTURE(s.dim);
      CAPTURE(s.value_dim);
      call<T> c(s, where);
      c.forward();
      c.backward();
      c.check_all();
    }
}

TEST_CASE("attention within documents has the same bits every time, where it fills the GPU") {
  for (const int dim : {64, 128}) {
    CAPTURE(dim);
    call<bf16> c({4, 1024, 12, 4, dim, {}, 200}, place::packed);
    c.forward();
    c.backward();
    c.check_all();
    const numbers first = c.gradients();
    for (int time = 0; time < 5; ++time) {
      c.backward();
      check_close("dq, dk, dv", c.gradients(), first, 0.0, 0.0);
    }
  }
}

TEST_CASE_TEMPLATE("the deterministic gradient is right, and has the same bits every time", T, float, bf16) {
  constexpr shape some[] = {{2, 150, 4, 2, 32}, {3, 384, 4, 2, 64}, {1, 128, 2, 2, 128}};
  for (const shape s : some) {
    CAPTURE(s.seq);
    call<T> c(s, place::packed, true);
    c.forward();
    numbers first;
    for (int time = 0; time < 3; ++time) {
      c.backward();
      if (first.empty()) first = c.gradients();
      check_close("dq, dk, dv", c.gradients(), first, 0.0, 0.0);
    }
    c.check_all();
  }
}

TEST_CASE("the deterministic gradient has the same bits where it fills the GPU") {
  call<bf16> c({1, 1024, 12, 4, 64}, place::packed, true);
  c.forward();
  c.backward();
  const numbers first = c.gradients();
  for (int time = 0; time < 5; ++time) {
    c.backward();
    check_close("dq, dk, dv", c.gradients(), first, 0.0, 0.0);
  }
}

TEST_CASE("blocks go through more heads of 64 than they take in a turn") {
  for (const shape s : {shape{20, 128, 24, 8, 64}, shape{5, 448, 24, 24, 64}}) {
    CAPTURE(s.seq);
    call<bf16> c(s, place::packed);
    c.forward();
    c.backward();
    c.check_all();
  }
}

TEST_CASE_TEMPLATE("scores may be much larger far from the diagonal, or smaller", T, float, bf16) {
  for (const double larger : {8.0, 0.0625})
    for (const int first_keys : {1, 70, 200}) {
      CAPTURE(larger);
      CAPTURE(first_keys);
      call<T> c({2, 384, 2, 1, 64}, place::apart, false, first_keys, larger);
      c.forward();
      c.check_forward(reference(c.s, c.q, c.k, c.v, c.dout));
    }
}

TEST_CASE("gradients of heads of 64 have the same bits in either mode on Hopper") {
  cudaDeviceProp device{};
  REQUIRE(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
  if (device.major != 9 || device.minor != 0) return;
  call<bf16> plain({2, 512, 6, 2, 64}, place::packed), deterministic({2, 512, 6, 2, 64}, place::packed, true);
  for (call<bf16>* c : {&plain, &deterministic}) {
    c->forward();
    c->backward();
  }
  check_close("dq, dk, dv", plain.gradients(), deterministic.gradients(), 0.0, 0.0);
}

TEST_CASE("attention can be captured after an eager run, and replayed") {
  for (const bool deterministic : {false, true}) {
    call<bf16> made({2, 256, 4, 2, 64}, place::packed, deterministic);
    const auto step = [&made] {
      made.forward();
      made.backward();
    };
    step();
    const cudaGraphExec_t graph = made.b.owner().capture(step);
    for (int time = 0; time < 2; ++time) {
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      const std::size_t all = made.tokens() * made.width() * sizeof(bf16);
      REQUIRE(cudaMemset(made.b.of().at<bf16>(made.dq_at), 255, all) == cudaSuccess);
      REQUIRE(cudaMemset(made.b.of().at<bf16>(made.o_at), 255, made.n_q * sizeof(bf16)) == cudaSuccess);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      REQUIRE(cudaGraphLaunch(graph, made.b.on().stream) == cudaSuccess);
      made.check_all();
    }
    REQUIRE(cudaGraphExecDestroy(graph) == cudaSuccess);
  }
}

TEST_CASE("the scores that the deterministic gradient writes down are kept to 1 GiB") {
  const attention_shape llama{2, 8192, 32, 8, 128, 128, 2, true}, gpt{64, 1024, 12, 12, 64, 64, 2, true};
  CHECK(attention_grad_part(llama).rows == 1);
  CHECK(attention_grad_part(llama).kv_heads == 2);
  CHECK(attention_grad_part(gpt).rows == 32);
  CHECK(attention_grad_part(gpt).kv_heads == 12);
}

TEST_CASE("a head dim above 128 is refused by name") {
  bench b;
  CHECK(said_by_rank(
            [&] { attention<float>(b.on(), {}, {}, {}, {}, {}, {}, 1, 4, 1, 1, 160, 160, 160, 160, 160); },
            "rank 0, step 1") == rankc::test::said{5108, {"attention", "160"}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::attention_test
