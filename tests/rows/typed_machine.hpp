// SPDX-License-Identifier: Apache-2.0
// A machine of one type: operands are in a rank's memory, laid out as programs do, each between guards.
#pragma once
#include "kernels.hpp"
#include "machine.hpp"

#include <rankc/contract/fp8.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace rankc::test::rows {

/// T: activations; Wide: sums and statistics.
template <class Lane, class T, class Wide>
class typed_machine : public machine {
 public:
  typed_machine(kernel_row (op_row::*on)() const, std::vector<kernel<Lane>> kernels)
      : kernel_(on), kernels_(std::move(kernels)) {}

  const values& by_columns() const override { return by_columns_; }
  bool has(const row& r) const override { return !kernel_of(r).name.empty(); }

  values rounded(const row& r, std::size_t port, const values& v) const override {
    values made = v;
    if (r.of(port).holds == element::index) return made;
    for (double& x : made) x = rounded(r, port, x);
    return made;
  }

  operands run(const row& r, const setting& s, operands o, bool adds, const replacement* instead) override {
    lay_out(r, s, instead);
    image_.assign(end_, guard);
    for (std::size_t p = 0; p < o.size(); ++p) {
      const bool is_result = p < r.results(), is_replaced = instead && p == instead->result;
      if (is_replaced) continue;
      const double unset = r.of(p).holds == element::index ? -1 : std::numeric_limits<double>::quiet_NaN();
      if (is_result && !adds) o[p].assign(count(r, p, s), unset);
      write(r, p, o[p]);
    }
    const std::vector<std::byte> before = image_;
    upload(image_);
    call(r, s, adds);
    download(image_);
    for (std::size_t p = 0; p < r.results(); ++p) o[p] = read(r, p);
    check_rest(r, before);
    return o;
  }

 protected:
  virtual void upload(const std::vector<std::byte>&) = 0;
  virtual void download(std::vector<std::byte>&) = 0;
  virtual const Lane& lane() = 0;
  /// Whether fp8 tensors have a transposed copy.
  virtual bool has_columns() const { return false; }

 private:
  static constexpr std::byte guard{0x7B};

  template <class U>
  static double through(double x) {
    if constexpr (std::is_same_v<U, double>) return x;
    else return static_cast<double>(static_cast<float>(U(static_cast<float>(x))));
  }
  static bool is_wide(const row& r, std::size_t port) {
    return r.of(port).holds == element::wide || r.of(port).holds == element::index;
  }
  static unsigned char code_of(const row& r, std::size_t port, double x) {
    const auto number = static_cast<float>(x);
    return r.of(port).holds == element::e5m2 ? runtime::to_fp8<runtime::e5m2>(number).bits
                                             : runtime::to_fp8<runtime::e4m3>(number).bits;
  }
  static double number_of(const row& r, std::size_t port, unsigned char code) {
    return r.of(port).holds == element::e5m2 ? runtime::from_fp8<double>(runtime::e5m2{code})
                                             : runtime::from_fp8<double>(runtime::e4m3{code});
  }
  static double rounded(const row& r, std::size_t port, double x) {
    if (is_fp8(r.of(port).holds)) return number_of(r, port, code_of(r, port, x));
    return is_wide(r, port) ? through<Wide>(x) : through<T>(x);
  }
  static std::size_t element_bytes(const row& r, std::size_t port) {
    if (is_fp8(r.of(port).holds)) return 1;
    if (r.of(port).holds == element::index) return sizeof(std::int32_t);
    return is_wide(r, port) ? sizeof(Wide) : sizeof(T);
  }
  kernel_row kernel_of(const row& r) const { return (r.op->*kernel_)(); }

  /// The addresses of a port's elements. Each sequence's log-sum-exps are stored head by head.
  struct location {
    std::size_t begin, count, columns, stride, seq, bytes;  // bytes: of one element
    bool by_head;
    std::size_t of(std::size_t index) const {
      const std::size_t i = index / columns, j = index % columns;
      return begin + bytes * (by_head ? (i / seq * columns + j) * seq + i % seq : i * stride + j);
    }
  };
  location locate(const row& r, std::size_t port, const setting& s, std::size_t begin) const {
    const std::vector<extent> dims = shape(r, port, s);
    const std::size_t columns = dims.empty() ? 1 : static_cast<std::size_t>(dims.back().elements());
    const std::size_t gap =
        r.of(port).shape.stride.empty() || !has_gaps() ? 0 : static_cast<std::size_t>(s.gap);
    return {begin,
            count(r, port, s),
            columns,
            columns + gap,
            static_cast<std::size_t>(tokens_of_sequence(r, s)),
            element_bytes(r, port),
            r.of(port).name.starts_with("lse")};
  }

  void lay_out(const row& r, const setting& s, const replacement* instead) {
    end_ = 256;
    const auto take = [&](std::size_t bytes) {
      const std::size_t begin = end_;
      end_ += (bytes + 255) / 256 * 256 + 256;
      return begin;
    };
    at_.clear();
    for (std::size_t p = 0; p < r.ports.size(); ++p) {
      const location l = locate(r, p, s, 0);
      at_.push_back(
          locate(r, p, s, take(is_fp8(r.of(p).holds) ? fp8_bytes(r, p, l) : l.of(l.count - 1) + l.bytes)));
    }
    if (instead) at_[instead->result] = at_[instead->operand];
    const auto bytes = kernel_of(r).scratch;
    scratch_bytes_ = bytes ? bytes(sizes(r, s), {sizeof(T), true}) : 0;
    scratch_ = {take(scratch_bytes_)};
  }
  static op_sizes sizes(const row& r, const setting& s) {
    op_sizes made(*r.op);
    for (std::size_t p = 0; p < r.ports.size(); ++p) {
      int d = 0;
      for (const extent& e : shape(r, p, s)) made.bind(static_cast<int>(r.ports[p]), d++, e.count, e.unit);
    }
    made.bind_attributes(std::max(1, s.size.at('t') / tokens_of_sequence(r, s)), s.seq(), s.ring);
    return made;
  }

  // ---- fp8 tensors
  static std::size_t fp8_bytes(const row& r, std::size_t port, const location& l) {
    return runtime::fp8_bytes(l.count / l.columns, l.columns, in_rows(r, port));
  }
  static bool in_rows(const row& r, std::size_t port) { return r.of(port).holds == element::e4m3_rows; }
  /// The address of an element in the transposed copy, and of the scales of its row and of its column.
  struct fp8_place {
    std::size_t by_columns, row_factor, column_factor;
  };
  fp8_place place_of(const row& r, std::size_t port, std::size_t index) const {
    const location& l = at_[port];
    const std::size_t rows = l.count / l.columns, i = index / l.columns, j = index % l.columns;
    const runtime::fp8_layout one{rows, l.columns};
    const runtime::fp8_rows_layout many{rows, l.columns};
    const std::size_t turned = l.begin + one.by_columns() + j * rows + i;
    if (!in_rows(r, port)) return {turned, l.begin + one.factor(), l.begin + one.factor()};
    return {turned, l.begin + many.row_factors() + i * sizeof(float),
            l.begin + many.column_factors() + j * sizeof(float)};
  }
  /// Write numbers with scale 1; with scales of rows and columns, these are powers of two.
  void write_fp8(const row& r, std::size_t port, const values& v) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const fp8_place to = place_of(r, port, i);
      const std::size_t columns = at_[port].columns;
      const float of_row = in_rows(r, port) ? std::ldexp(1.0f, -static_cast<int>(i / columns % 3)) : 1.0f;
      const float of_column = in_rows(r, port) ? std::ldexp(1.0f, -static_cast<int>(i % columns % 4)) : 1.0f;
      std::memcpy(image_.data() + to.row_factor, &of_row, sizeof of_row);
      std::memcpy(image_.data() + to.column_factor, &of_column, sizeof of_column);
      image_[at_[port].of(i)] = std::byte{code_of(r, port, v[i] / of_row)};
      image_[to.by_columns] = std::byte{code_of(r, port, v[i] / of_column)};
    }
  }
  values read_fp8(const row& r, std::size_t port) {
    values v(at_[port].count);
    by_columns_.resize(v.size());
    bool turned = true;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const fp8_place from = place_of(r, port, i);
      float of_row, of_column;
      std::memcpy(&of_row, image_.data() + from.row_factor, sizeof of_row);
      std::memcpy(&of_column, image_.data() + from.column_factor, sizeof of_column);
      v[i] = number_of(r, port, std::to_integer<unsigned char>(image_[at_[port].of(i)])) *
             static_cast<double>(of_row);
      by_columns_[i] = number_of(r, port, std::to_integer<unsigned char>(image_[from.by_columns])) *
                       static_cast<double>(of_column);
      turned &= in_rows(r, port) || !has_columns() || image_[at_[port].of(i)] == image_[from.by_columns];
    }
    INFO(name() << " " << r.op->name << ": by columns other numbers than by rows");
    CHECK(turned);
    return v;
  }

  void write(const row& r, std::size_t port, const values& v) {
    if (is_fp8(r.of(port).holds)) return write_fp8(r, port, v);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto put = [&](auto x) {
        std::memcpy(image_.data() + at_[port].of(i), static_cast<const void*>(&x), sizeof x);
      };
      if (r.of(port).holds == element::index) put(static_cast<std::int32_t>(v[i]));
      else if (is_wide(r, port)) put(static_cast<Wide>(v[i]));
      else if constexpr (std::is_same_v<T, double>) put(v[i]);
      else put(T(static_cast<float>(v[i])));
    }
  }
  values read(const row& r, std::size_t port) {
    if (is_fp8(r.of(port).holds)) return read_fp8(r, port);
    values v(at_[port].count);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto get = [&]<class U>(U x) {
        std::memcpy(static_cast<void*>(&x), image_.data() + at_[port].of(i), sizeof x);
        if constexpr (std::is_same_v<U, double>) v[i] = x;
        else if constexpr (std::is_same_v<U, std::int32_t>) v[i] = x;
        else v[i] = static_cast<double>(static_cast<float>(x));
      };
      if (r.of(port).holds == element::index) get(std::int32_t{});
      else if (is_wide(r, port)) get(Wide{});
      else get(T{});
    }
    return v;
  }

  void call(const row& r, const setting& s, bool adds) {
    std::vector<runtime::at> arguments;
    for (const bool read : {false, true})
      for (std::size_t p = 0, next = 0; p < r.op->used_ports().size(); ++p) {
        const port& q = r.op->ports[p];
        const runtime::at where = q.as == use::scratch ? scratch_ : runtime::at{at_[next++].begin};
        if (q.is_read() == read) arguments.push_back(where);
      }
    std::vector<double> numbers;
    for (const std::string_view product : words(kernel_of(r).sizes, ' ')) {
      numbers.push_back(1);
      for (const std::string_view symbol : words(product, '*'))
        numbers.back() *= size_of_symbol(r, symbol, s);
    }
    // Tests clear sums.
    const std::string_view wanted = r.op == &ops::clear ? "clear of sums" : kernel_of(r).name;
    const auto at =
        std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& k) { return k.name == wanted; });
    if (at == kernels_.end()) throw std::logic_error(std::string(wanted) + " is not called by the tests");
    at->call(lane(), arguments, numbers, adds);
  }

  /// Check that memory outside results and scratch is unchanged.
  void check_rest(const row& r, const std::vector<std::byte>& before) {
    for (std::size_t p = 0; p < r.results(); ++p)
      if (const std::size_t begin = at_[p].begin; is_fp8(r.of(p).holds))
        std::memcpy(image_.data() + begin, before.data() + begin, fp8_bytes(r, p, at_[p]));
      else
        for (std::size_t i = 0; i < at_[p].count; ++i)
          std::memcpy(image_.data() + at_[p].of(i), before.data() + at_[p].of(i), at_[p].bytes);
    std::memcpy(image_.data() + scratch_.byte, before.data() + scratch_.byte, scratch_bytes_);
    INFO(name() << " " << r.op->name << " writes where it has no result");
    CHECK(std::memcmp(before.data(), image_.data(), end_) == 0);
  }

  kernel_row (op_row::* const kernel_)() const;
  const std::vector<kernel<Lane>> kernels_;
  std::vector<location> at_;  // by port
  runtime::at scratch_{};
  std::size_t scratch_bytes_ = 0, end_ = 0;
  values by_columns_;
  std::vector<std::byte> image_;
};

}  // namespace rankc::test::rows
