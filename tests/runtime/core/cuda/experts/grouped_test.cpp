// SPDX-License-Identifier: Apache-2.0
// Grouped GEMMs of rows with expert weights, against sums in double: rows in segments of all uneven sizes,
// and NaN in the rows outside them.
#include "../bench.hpp"

#include <cstring>
#include <numeric>

namespace rankc::runtime::cuda::test {
namespace {

/// Rows of segments: `offsets` has the first row of each segment, then the row past its last.
struct deal {
  std::string name;
  int experts, rows;
  std::vector<std::int32_t> offsets;

  int segments() const { return static_cast<int>(offsets.size() / 2); }
  int begin(int s) const { return offsets[static_cast<std::size_t>(s)]; }
  int end(int s) const { return offsets[static_cast<std::size_t>(segments() + s)]; }
};

/// Contiguous segments with `gap` unused rows before each, and `more` unused rows at the end.
deal dealt(const char* name, int experts, const std::vector<int>& counts, int gap = 0, int more = 0) {
  deal made{name, experts, 0, {}};
  std::vector<std::int32_t> ends;
  for (const int count : counts) {
    made.offsets.push_back(made.rows + gap);
    ends.push_back(made.rows += gap + count);
  }
  made.rows += more;
  made.offsets.insert(made.offsets.end(), ends.begin(), ends.end());
  return made;
}

std::vector<int> random_counts(int segments, int below) {
  const std::vector<std::int32_t> drawn = random_ids(static_cast<std::size_t>(segments), below, 7);
  return {drawn.begin(), drawn.end()};
}

const std::vector<deal>& deals() {
  static const std::vector<deal> all{
      dealt("empty experts, one row, tiles and a row more", 6, {0, 1, 128, 129, 0, 63}),
      dealt("all rows of one expert", 3, {0, 513, 0}), dealt("no rows at all", 3, {0, 0, 0}, 0, 40),
      dealt("several segments an expert, rows of nobody between", 3, {65, 0, 17, 1, 0, 130, 64, 0, 70}, 5, 9),
      dealt("more segments than a warp has lanes", 20, random_counts(80, 70), 1, 0)};
  return all;
}

std::size_t area(int rows, int columns) { return static_cast<std::size_t>(rows) * columns; }

/// The numbers of a layer with experts, and the expected results of its GEMMs. Unused rows are NaN.
template <class T>
struct layer {
  const deal& rows;
  int in, out;
  numbers x, dy, w, y, dx, dw;

  layer(const deal& d, int n_in, int n_out, int seed = 1)
      : rows(d),
        in(n_in),
        out(n_out),
        x(random_numbers<T>(area(d.rows, in), 1.0, seed)),
        dy(random_numbers<T>(area(d.rows, out), 1.0, seed + 1)),
        w(random_numbers<T>(area(d.experts * out, in), 1.0, seed + 2)),
        y(area(d.rows, out), NAN),
        dx(area(d.rows, in), NAN),
        dw(w.size(), 0.0) {
    std::vector<int> expert_of(static_cast<std::size_t>(d.rows), -1);
    for (int s = 0; s < d.segments(); ++s)
      for (int r = d.begin(s); r < d.end(s); ++r) expert_of[static_cast<std::size_t>(r)] = s % d.experts;
    for (int r = 0; r < d.rows; ++r) multiply(r, expert_of[static_cast<std::size_t>(r)]);
  }

 private:
  void multiply(int r, int expert) {
    double *of_x = &x[area(r, in)], *of_dy = &dy[area(r, out)], *of_dx = &dx[area(r, in)];
    if (expert < 0) {
      std::fill_n(of_x, in, NAN);
      std::fill_n(of_dy, out, NAN);
      return;
    }
    std::fill_n(of_dx, in, 0.0);
    for (int o = 0; o < out; ++o) {
      const double* of_w = &w[area(expert * out + o, in)];
      double* of_dw = &dw[area(expert * out + o, in)];
      y[area(r, out) + static_cast<std::size_t>(o)] = std::inner_product(of_x, of_x + in, of_w, 0.0);
      for (int i = 0; i < in; ++i) of_dx[i] += of_dy[o] * of_w[i];
      for (int i = 0; i < in; ++i) of_dw[i] += of_dy[o] * of_x[i];
    }
  }
};

/// A layer's operands on a bench, and its three GEMMs.
template <class T>
class stand {
 public:
  explicit stand(const layer<T>& of)
      : of_(of),
        x_(b_.put<T>(of.x)),
        dy_(b_.put<T>(of.dy)),
        w_(b_.put<T>(of.w)),
        offsets_(b_.put(of.rows.offsets)),
        y_(b_.room<T>(of.y.size())),
        dx_(b_.room<T>(of.dx.size())),
        dw_(b_.room<float>(of.dw.size())) {}

  void run(bool accumulate) {
    const deal& d = of_.rows;
    grouped_linear<T>(b_.on(), y_, x_, w_, offsets_, d.rows, of_.in, of_.out, d.segments(), d.experts);
    grouped_linear_dx<T>(b_.on(), dx_, dy_, w_, offsets_, d.rows, of_.in, of_.out, d.segments(), d.experts);
    grouped_linear_dw<T>(b_.on(), dw_, dy_, x_, offsets_, d.rows, of_.in, of_.out, d.segments(), d.experts,
                         accumulate);
  }
  numbers y() { return b_.take<T>(y_, of_.y.size()); }
  numbers dx() { return b_.take<T>(dx_, of_.dx.size()); }
  numbers dw() { return b_.take<float>(dw_, of_.dw.size()); }

  /// Put a layer of the same sizes in this one's place.
  void replace(const layer<T>& by) {
    write<T>(x_, by.x);
    write<T>(dy_, by.dy);
    write<std::int32_t>(offsets_, {by.rows.offsets.begin(), by.rows.offsets.end()});
    write<T>(y_, numbers(by.y.size(), NAN));
    write<T>(dx_, numbers(by.dx.size(), NAN));
  }
  bench& on() { return b_; }

 private:
  template <class U>
  void write(at to, const numbers& values) {
    std::vector<U> typed;
    for (const double v : values) typed.push_back(U(static_cast<float>(v)));
    REQUIRE(cudaMemcpy(b_.of().template at<U>(to), typed.data(), typed.size() * sizeof(U),
                       cudaMemcpyHostToDevice) == cudaSuccess);
  }

  const layer<T>& of_;
  bench b_;
  const at x_, dy_, w_, offsets_, y_, dx_, dw_;
};

/// Check used rows, which are sums of `terms` terms below 1. Unused rows must be unchanged, which is NaN.
template <class T>
void check_rows(const char* what, numbers got, numbers wanted, int terms) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isnan(wanted[i])) continue;
    if (!std::isnan(got[i]))
      FAIL_CHECK(what << ": element " << i << " of a row of nobody was written: " << got[i]);
    got[i] = wanted[i] = 0.0;
  }
  check_rounded<T>(what, got, wanted, terms / 8.0);
}

template <class T>
void check_layer(stand<T>& s, const layer<T>& wanted, double times) {
  check_rows<T>("y", s.y(), wanted.y, wanted.in);
  check_rows<T>("dx", s.dx(), wanted.dx, wanted.out);
  numbers dw = wanted.dw;
  for (double& d : dw) d *= times;
  check_close("dw", s.dw(), dw, 1e-5, times * 5e-5);
}

struct size {
  int in, out;
};
constexpr size sizes[] = {{64, 64}, {320, 192}, {128, 1088}, {24, 40}, {17, 9}};

TEST_CASE_TEMPLATE("grouped linear, its input gradient and its weight gradient", T, float, bf16) {
  for (const deal& d : deals())
    for (const auto [in, out] : sizes) {
      CAPTURE(d.name);
      CAPTURE(in);
      CAPTURE(out);
      const layer<T> of(d, in, out);
      stand<T> s(of);
      s.run(false);
      check_layer(s, of, 1.0);
      s.run(true);
      check_layer(s, of, 2.0);
    }
}

/// Check rows of two summed GEMMs. The first may have been rounded before the sum; `first` is its largest
/// number.
template <class T>
void check_sum(const char* what, numbers got, numbers wanted, double first, int terms) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::isnan(wanted[i])) got[i] = wanted[i] = 0.0;
  const double rounding = std::is_same_v<T, float> ? 1e-6 : 2 * half_unit<T>;
  check_close(what, got, wanted, rounding, rounding * first + 2e-6 * terms);
}

TEST_CASE_TEMPLATE("a grouped linear added to rows, and the sum of two", T, float, bf16) {
  for (const deal& d : deals())
    for (const auto [in, out] : sizes) {
      CAPTURE(d.name);
      CAPTURE(in);
      CAPTURE(out);
      const layer<T> one(d, in, out), two(d, in, out, 4);
      numbers sum = one.y, onto = one.y;
      double first = 0;
      const numbers residual = random_numbers<T>(sum.size(), 4.0, 9);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += two.y[i];
        onto[i] += residual[i];
        if (!std::isnan(one.y[i])) first = std::max(first, std::abs(one.y[i]));
      }
      bench b;
      const at x = b.put<T>(one.x), w = b.put<T>(one.w), x2 = b.put<T>(two.x), w2 = b.put<T>(two.w),
               by = b.put(d.offsets);
      const at before = b.put<T>(residual), apart = b.room<T>(sum.size()), y = b.room<T>(sum.size());
      grouped_linear_two<T>(b.on(), y, x, w, x2, w2, by, d.rows, in, out, d.segments(), d.experts);
      check_sum<T>("two", b.take<T>(y, sum.size()), sum, first, 2 * in);
      grouped_linear_add<T>(b.on(), apart, x, w, by, before, d.rows, in, out, d.segments(), d.experts);
      check_sum<T>("add", b.take<T>(apart, onto.size()), onto, first, in);
      grouped_linear_add<T>(b.on(), before, x, w, by, before, d.rows, in, out, d.segments(), d.experts);
      check_sum<T>("add in place", b.take<T>(before, onto.size()), onto, first, in);
    }
}

TEST_CASE_TEMPLATE("grouped linear gets the same bits each time", T, float, bf16) {
  const layer<T> of(deals()[3], 1024, 320);
  stand<T> first(of), second(of);
  for (stand<T>* s : {&first, &second})
    for (const bool accumulate : {false, true}) s->run(accumulate);
  const auto same = [](const numbers& a, const numbers& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  };
  CHECK(same(first.y(), second.y()));
  CHECK(same(first.dx(), second.dx()));
  CHECK(same(first.dw(), second.dw()));
}

TEST_CASE_TEMPLATE("a captured grouped linear takes the counts that it finds", T, float, bf16) {
  const deal before = dealt("before", 4, {200, 0, 3, 97}), after = dealt("after", 4, {1, 130, 64, 0}, 0, 105),
             none = dealt("none", 4, {0, 0, 0, 0}, 0, 300);
  const layer<T> of_before(before, 192, 320), of_after(after, 192, 320), of_none(none, 192, 320);
  stand<T> s(of_before);
  const cudaGraphExec_t graph = s.on().owner().capture([&] { s.run(false); });
  for (const layer<T>* of : {&of_before, &of_after, &of_none}) {
    s.replace(*of);
    REQUIRE(cudaGraphLaunch(graph, s.on().on().stream) == cudaSuccess);
    check_layer(s, *of, 1.0);
  }
  cudaGraphExecDestroy(graph);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
