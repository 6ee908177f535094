// SPDX-License-Identifier: Apache-2.0
#include "product_choices.hpp"

#include <rankc/runtime/input_file.hpp>
#include <rankc/runtime/output_file.hpp>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace rankc::runtime::cuda {
namespace {

namespace fs = std::filesystem;

/// The fields of a line: GPU, library, shape, milliseconds, algorithm. By cuBLASLt's documentation, the same
/// version of the library can read a stored algorithm.
constexpr char between = '\t';

std::string hexadecimal(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(word));
    text += digits.data();
  }
  return text;
}

/// `how`: the base of an integer, or nothing.
template <class N>
bool read_number(N& to, std::string_view text, auto... how) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to, how...);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_algorithm(cublasLtMatmulAlgo_t& to, std::string_view text) {
  if (text.size() != 16 * std::size(to.data)) return false;
  for (std::size_t i = 0; i < std::size(to.data); ++i)
    if (!read_number(to.data[i], text.substr(16 * i, 16), 16)) return false;
  return true;
}

std::string text_of(const product_shape& s) {
  std::ostringstream out;
  out << s.m << ' ' << s.n << ' ' << s.k << ' ' << (s.transpose_a ? 't' : 'n') << (s.transpose_b ? 't' : 'n')
      << (s.add ? '+' : '=') << (s.fast_sums ? "~" : "") << (s.row_factors ? "|" : "") << ' '
      << static_cast<int>(s.in);
  if (s.in_b != s.in) out << ',' << static_cast<int>(s.in_b);
  out << ' ' << static_cast<int>(s.out) << ' ' << static_cast<int>(s.epilogue) << ' ' << s.alignment;
  return out.str();
}

std::optional<product_shape> shape_from(const std::string& text) {
  std::istringstream in(text);
  product_shape s{};
  std::string form;
  int a = 0, to = 0, epilogue = 0;
  if (!(in >> s.m >> s.n >> s.k >> form >> a) || form.size() < 3) return std::nullopt;
  int b = a;
  if (in.peek() == ',') in.ignore() >> b;
  if (!(in >> to >> epilogue >> s.alignment)) return std::nullopt;
  s.transpose_a = form[0] == 't';
  s.transpose_b = form[1] == 't';
  s.add = form[2] == '+';
  s.fast_sums = form.find('~') != form.npos;
  s.row_factors = form.find('|') != form.npos;
  s.in = static_cast<cudaDataType_t>(a);
  s.in_b = static_cast<cudaDataType_t>(b);
  s.out = static_cast<cudaDataType_t>(to);
  s.epilogue = static_cast<cublasLtEpilogue_t>(epilogue);
  return text_of(s) == text ? std::optional(s) : std::nullopt;
}

struct line_of_file {
  product_machine machine;
  product_shape shape;
  product_choice choice;
};

std::optional<line_of_file> line_from(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(in, field, between);) fields.push_back(field);
  const auto shape = fields.size() == 5 ? shape_from(fields[2]) : std::nullopt;
  if (!shape) return std::nullopt;
  line_of_file read{{fields[0], 0}, *shape, {cublasLtMatmulAlgo_t{}, 0}};
  if (!read_number(read.machine.cublas, fields[1]) || !read_number(read.choice.milliseconds, fields[3]) ||
      !read_algorithm(*read.choice.algorithm, fields[4]))
    return std::nullopt;
  return read;
}

}  // namespace

product_machine product_machine::of(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) cudaGetLastError();
  return {properties.name, cublasLtGetVersion()};
}

const product_choice& product_choices::of(
    const product_machine& on, const product_shape& shape,
    const std::function<product_choice(const std::optional<product_choice>&)>& tune) {
  const key which{on, shape};
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto [at, first] = by_key_.try_emplace(which);
    if (first) break;
    if (at->second.made) return at->second.choice;
    made_.wait(lock);
  }
  const auto cached = cached_.find(which);
  const auto known = cached == cached_.end() ? std::nullopt : std::optional(cached->second);
  lock.unlock();
  try {
    const product_choice made = tune(known);
    lock.lock();
    entry& kept = by_key_.at(which);
    kept = {made, true};
    made_.notify_all();
    return kept.choice;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    by_key_.erase(which);
    made_.notify_all();
    throw;
  }
}

void product_choices::take(const std::string& lines, const std::string& whence) {
  const std::lock_guard lock(mutex_);
  std::istringstream all(lines);
  int number = 0;
  for (std::string line; std::getline(all, line);) {
    ++number;
    const auto read = line_from(line);
    if (!read)
      throw failure(1,
                    "RC5134: line {} of {} is not the algorithm of a GEMM (GPU, version of cuBLASLt, shape, "
                    "milliseconds, algorithm): '{}'; delete the file to rebuild it",
                    number, whence, line);
    const auto& [machine, shape, choice] = *read;
    cached_[{machine, shape}] = choice;
    if (const auto known = by_key_.find({machine, shape}); known != by_key_.end())
      known->second.choice = choice;
  }
}

std::string product_choices::made() const {
  const std::lock_guard lock(mutex_);
  return lines_of(made_here());
}

std::string product_choices::text() const {
  const std::lock_guard lock(mutex_);
  auto all = made_here();
  all.insert(cached_.begin(), cached_.end());
  return lines_of(all);
}

product_choices::table product_choices::made_here() const {
  table timed;
  for (const auto& [which, e] : by_key_)
    if (e.made && e.choice.algorithm && e.choice.milliseconds > 0) timed[which] = e.choice;
  return timed;
}

std::string product_choices::lines_of(const table& choices) {
  std::ostringstream out;
  for (const auto& [which, choice] : choices)
    out << which.first.gpu << between << which.first.cublas << between << text_of(which.second) << between
        << choice.milliseconds << between << hexadecimal(*choice.algorithm) << '\n';
  return out.str();
}

readable_products readable_lines(const std::string& lines, const std::string& whence) {
  readable_products found;
  std::istringstream all(lines);
  int number = 0, unreadable = 0, first = 0;
  for (std::string line; std::getline(all, line);) {
    ++number;
    if (line_from(line)) {
      found.lines += line + "\n";
      continue;
    }
    if (++unreadable == 1) first = number;
  }
  if (unreadable > 0)
    found.note =
        say("RC5148: {} of {} lines of {} are not algorithms of GEMMs, the first is line {}; they are "
            "ignored, and their GEMMs are timed again",
            unreadable, number, whence, first);
  return found;
}

std::string open_products(const std::string& file) try {
  std::error_code error;
  if (const fs::path folder = fs::path(file).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  const runtime::output_file can_be_kept(file, 1);
  if (!fs::exists(file)) return "";
  runtime::input_file in(file);
  std::string text = in.contents();
  if (!in.problem().empty())
    throw failure(1, "RC5135: the GEMM algorithms in {} cannot be read: {}", file, in.problem());
  return text;
} catch (const failure& f) {
  throw failure(
      1, "RC5136: the GEMM algorithms cannot be saved in this file; use another one, or --products none: {}",
      f.what());
}

void keep_products(const std::string& file, const product_choices& choices) {
  const std::string before = open_products(file);
  product_choices all;
  all.take(readable_lines(before, file).lines, file);
  all.take(choices.text(), "this job");
  const std::string after = all.text();
  if (after == before && fs::exists(file)) return;
  try {
    runtime::write_output(file, after, 1);
  } catch (const failure&) {  // the next job times again
  }
}

}  // namespace rankc::runtime::cuda
