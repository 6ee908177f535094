// SPDX-License-Identifier: Apache-2.0
// Samples in .npy files: the values and their order, and the sentence that refuses each faulty file.
#include <rankc/trainer/array_folder.hpp>
#include <rankc/trainer/data.hpp>

#include "../../said.hpp"
#include "../../scratch_folder.hpp"
#include "fake_engine.hpp"
#include <trained_file.hpp>

#include <doctest/doctest.h>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_by;

namespace {

namespace fs = std::filesystem;

template <class T>
void write_npy(const fs::path& file, const std::string& descr, const std::string& shape,
               const std::vector<T>& numbers, const std::string& order = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  std::ofstream out(file, std::ios::binary);
  out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header;
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(T)));
}

/// A program without tokens that reads features (4 tokens x 3 numbers) and a label below 5.
struct encoder_program : fake_program {
  explicit encoder_program(int dp = 1) : fake_program(1, dp, 1) {
    for (layout& l : layouts) l.reads_tokens = l.reads_targets = false;
    layouts.front().inputs = inputs;
  }
  const input_row inputs[2]{
      {.name = "features", .where = {}, .width = 3, .type = input_type::real},
      {.name = "labels", .where = {}, .type = input_type::index, .rows = input_rows::sequence, .below = 5}};
};

/// A folder with 10 samples: the features of sample s begin at 100 s, and its label is s % 5.
struct array_files {
  array_files() {
    std::vector<float> features(10 * 4 * 3);
    for (std::size_t i = 0; i < features.size(); ++i)
      features[i] = static_cast<float>(100 * (i / 12) + i % 12);
    std::vector<std::int64_t> labels(10);
    for (std::size_t i = 0; i < 10; ++i) labels[i] = static_cast<std::int64_t>(i % 5);
    write_npy(folder / "features.npy", "<f4", "(10, 4, 3)", features);
    write_npy(folder / "labels.npy", "<i8", "(10,)", labels);
  }
  fs::path path(const std::string& name) const { return folder / name; }
  said refused() const {
    return said_by([&] { array_folder(folder, program.about); });
  }
  const encoder_program program;
  const rankc::scratch_folder scratch;
  const fs::path folder = scratch.path;
};

std::vector<double> first_numbers(const batch& b) {
  std::vector<double> out;
  for (std::size_t i = 0; i < b.inputs.at(0).size(); i += 12) out.push_back(b.inputs[0][i]);
  return out;
}

}  // namespace

TEST_CASE("a batch has the values of its samples, in the order of the files or drawn") {
  const array_files files;
  const description& about = files.program.about;
  const auto open = [&](const sample_order& order) {
    const data_spec spec = parse_data_spec("arrays:" + files.folder.string());
    return dataset(open_sources(spec, about), about.vocab_used, about.seq, {order}, {});
  };
  const dataset data = open({});
  CHECK(data.epoch(data_part::trained) == 10);
  const batch b = read_batch(about, data, 0);
  CHECK(b.tokens.empty());
  CHECK(first_numbers(b) == std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700});
  CHECK(b.inputs[0][12 + 11] == 111);
  CHECK(b.inputs[1] == std::vector<double>{0, 1, 2, 3, 4, 0, 1, 2});
  CHECK(first_numbers(read_batch(about, data, 8)) ==
        std::vector<double>{800, 900, 0, 100, 200, 300, 400, 500});

  const dataset held = open({.shuffle = {}, .held_out = 0.2});
  CHECK(held.epoch(data_part::trained) == 8);
  CHECK(held.epoch(data_part::held_out) == 2);
  CHECK(first_numbers(read_batch(about, held, 0, data_part::held_out)) ==
        std::vector<double>{800, 900, 800, 900, 800, 900, 800, 900});

  const dataset drawn = open({.shuffle = parse_shuffle("7"), .held_out = 0});
  std::vector<double> order = first_numbers(read_batch(about, drawn, 0));
  CHECK(order != first_numbers(b));
  const std::vector<double> rest = first_numbers(read_batch(about, drawn, 8));
  order.insert(order.end(), rest.begin(), rest.begin() + 2);
  std::sort(order.begin(), order.end());
  CHECK(order == std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700, 800, 900});
}

TEST_CASE("the inputs of samples go to microbatches, then data-parallel ranks, then rows") {
  struct recorder : fake_engine {
    using fake_engine::fake_engine;
    void set_inputs(int dp, int microbatch, std::span<const named_array> given) override {
      REQUIRE(given.size() == 2);
      seen.push_back({static_cast<double>(microbatch), static_cast<double>(dp), given[0].values[0],
                      given[1].values[1], static_cast<double>(given[0].values.size())});
    }
    std::vector<std::array<double, 5>> seen;
  };
  const array_files files;
  const encoder_program two(2);
  recorder e(two);
  const array_folder folder(files.folder, two.about);
  set_batch(e, read_batch(two.about, [&](std::uint64_t s, const sample_view& to) { folder.copy(s, to); }));
  CHECK(e.seen == std::vector<std::array<double, 5>>{
                      {0, 0, 0, 1, 24}, {0, 1, 200, 3, 24}, {1, 0, 400, 0, 24}, {1, 1, 600, 2, 24}});
}

TEST_CASE("files that do not fit are refused, each by one sentence") {
  const array_files files;
  const std::string features = files.path("features.npy").string(),
                    labels = files.path("labels.npy").string();
  const auto reset = [&] {
    const array_files again;
    fs::copy(again.folder, files.folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  };
  CHECK(files.refused() == said{});

  std::ofstream(features) << "no array at all";
  CHECK(files.refused() == said{6240, {features}});
  write_npy<float>(features, "<f4", "(10, 3, 4)", std::vector<float>(120));
  CHECK(files.refused() == said{6248, {features, "(10, 3, 4)", ", ", "4, 3"}});
  write_npy<float>(features, "<f4", "(10, 4, 3)", std::vector<float>(119));
  CHECK(files.refused() == said{6245, {features, "476", "(10, 4, 3", "120", "4"}});
  write_npy<float>(features, ">f4", "(10, 4, 3)", std::vector<float>(120));
  CHECK(files.refused() == said{6242, {features, "'>f4'"}});
  write_npy<float>(features, "<f4", "(10, 4, 3)", std::vector<float>(120), "True");
  CHECK(files.refused() == said{6243, {features}});
  write_npy<float>(features, "<f4", "(ten, 4, 3)", std::vector<float>(120));
  CHECK(files.refused() == said{6244, {features, "(ten, 4, 3"}});
  write_npy<float>(features, "<f4", "(0, 4, 3)", {});
  CHECK(files.refused() == said{6250, {features}});
  reset();
  write_npy<float>(labels, "<f4", "(10,)", std::vector<float>(10));
  CHECK(files.refused() == said{6249, {labels, "labels"}});
  write_npy<std::int32_t>(labels, "<i4", "(9,)", std::vector<std::int32_t>(9));
  CHECK(files.refused() == said{6251, {labels, "9", features, "10"}});
  fs::remove(labels);
  CHECK(files.refused().id == 6101);

  write_npy<std::uint8_t>(labels, "|u1", "(10, 1)", {0, 1, 2, 3, 4, 5, 0, 0, 0, 0});
  const array_folder open(files.folder, files.program.about);
  std::vector<double> numbers(12), label(1);
  double* const into[]{numbers.data(), label.data()};
  open.copy(4, {.inputs = into});
  CHECK(label[0] == 4);
  CHECK(said_by([&] { open.copy(5, {.inputs = into}); }) ==
        said{6252, {labels, "5", "5", "labels", "0", "4"}});

  std::vector<double> wide(120, 0.5);
  for (const double wrong : {std::nan(""), -std::numeric_limits<double>::infinity(), 1e300}) {
    wide[3 * 12 + 7] = wrong;
    write_npy(features, "<f8", "(10, 4, 3)", wide);
    const array_folder with_wrong(files.folder, files.program.about);
    with_wrong.copy(2, {.inputs = into});
    CHECK(numbers == std::vector<double>(12, 0.5));
    const said refused = said_by([&] { with_wrong.copy(3, {.inputs = into}); });
    if (wrong == 1e300) CHECK(refused == said{});
    else CHECK(refused.id == 6253);
  }
  encoder_program narrow;
  narrow.about.type = dtype::f32;
  CHECK(
      said_by([&] { array_folder(files.folder, narrow.about).copy(3, {.inputs = into}); }) ==
      said{6253, {features, "1e+300", "3", "features", "-3.4028234663852886e+38", "3.4028234663852886e+38"}});
}

TEST_CASE("targets are tokens or the ignored label, and labels across documents are ignored") {
  const rankc::scratch_folder scratch;
  const fs::path& folder = scratch.path;
  fake_program program(1, 1, 1);
  std::vector<std::int32_t> tokens(8 * 4), targets(tokens.size());
  std::iota(tokens.begin(), tokens.end(), 1);
  std::iota(targets.begin(), targets.end(), 2);
  targets[5] = -100;
  write_npy(folder / "tokens.npy", "<i4", "(8, 4)", tokens);
  write_npy(folder / "targets.npy", "<i4", "(8, 4)", targets);
  const auto read = [&] {
    const array_folder open(folder, program.about);
    return read_batch(program.about, [&](std::uint64_t s, const sample_view& to) { open.copy(s, to); });
  };
  const std::string file = (folder / "targets.npy").string();
  CHECK(said_by(read) == said{6252, {file, "-100", "1", "targets", "0", "255"}});
  program.about.ignored_label = -100;
  CHECK(read().targets == targets);
  program.about.end_of_document = 12;  // the last token of a sequence
  program.about.ignore_across_documents = true;
  targets[11] = -100;
  CHECK(read().targets == targets);
  program.about.ignored_label = -1;
  CHECK(said_by(read) == said{6261, {file, "-100", "1", "0", "255", "-1"}});
}

TEST_CASE("weights of labels are read from their file, and a number that is no weight is refused") {
  const input_row inputs[]{{.name = "weights", .where = {}}};
  fake_program program(1, 1, 1);
  program.layouts.front().inputs = inputs;
  program.about.token_weights = true;
  const rankc::scratch_folder scratch;
  const fs::path& folder = scratch.path;
  std::vector<std::int32_t> tokens(32);
  std::iota(tokens.begin(), tokens.end(), 1);
  for (const char* const name : {"tokens.npy", "targets.npy"})
    write_npy(folder / name, "<i4", "(8, 4)", tokens);
  std::vector<float> weights(32);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5F * static_cast<float>(i);
  const auto read = [&] {
    write_npy(folder / "weights.npy", "<f4", "(8, 4)", weights);
    const std::vector<opened_source> sources =
        open_sources(parse_data_spec("arrays:" + folder.string()), program.about);
    return read_batch(program.about,
                      [&](std::uint64_t s, const sample_view& to) { sources[0].arrays->copy(s, to); });
  };
  CHECK(read().inputs[0] == std::vector<double>(weights.begin(), weights.end()));
  for (const float wrong : {-0.5F, 1e-31F, std::numeric_limits<float>::quiet_NaN()}) {
    weights[10] = wrong;
    const said refused = said_by(read);
    CHECK(refused == said{6263,
                          {(folder / "weights.npy").string(), refused.arguments.at(1), "2", "2",
                           refused.arguments.at(4), refused.arguments.at(5)}});
  }
}

TEST_CASE("weights of labels are refused if the plan has none") {
  const fake_program program(1, 1, 1);
  const rankc::scratch_folder scratch;
  const fs::path& folder = scratch.path;
  const std::vector<std::int32_t> tokens(32, 1);
  for (const char* const name : {"tokens.npy", "targets.npy"})
    write_npy(folder / name, "<i4", "(8, 4)", tokens);
  const auto open = [&] { open_sources(parse_data_spec("arrays:" + folder.string()), program.about); };
  open();
  write_npy(folder / "weights.npy", "<f4", "(8, 4)", std::vector<float>(32, 1));
  CHECK(said_by(open) == said{6268, {(folder / "weights.npy").string()}});
}

TEST_CASE("sources of tokens alone are refused where the model declares inputs") {
  const encoder_program program;
  CHECK(said_by([&] { open_sources(parse_data_spec("arith:1"), program.about); }) ==
        said{6090, {"fake", "features, labels", "arith:1"}});
}

TEST_CASE("files have no row for the step") {
  const array_files files;
  const input_row of_step[]{{.name = "weight", .where = {}, .rows = input_rows::step}};
  encoder_program program;
  program.layouts.front().inputs = of_step;
  CHECK(said_by([&] { array_folder(files.folder, program.about); }) == said{6247, {"weight"}});
}

TEST_CASE("arrays are trained data only if all their files are") {
  const array_files trained, other;
  const auto marks_in = [](const array_files& files) {
    const data_spec spec = parse_data_spec("arrays:" + files.folder.string());
    opened_source source = std::move(open_sources(spec, files.program.about).front());
    std::vector<file_mark> marks = marks_of(source);
    return std::pair(std::move(source), std::move(marks));
  };
  const auto same = [](const file_mark& a, const file_mark& b) { return a.has_bytes_of(b); };
  const std::vector<file_mark> before = marks_in(trained).second;
  const auto [copied, copies] = marks_in(other);
  REQUIRE(copies.size() == 2);
  CHECK(trained_file(copied, copies, before, same) == &copies.front());
  write_npy(other.path("features.npy"), "<f4", "(10, 4, 3)", std::vector<float>(10 * 4 * 3, 1));
  const auto [source, files] = marks_in(other);  // the labels are those of the trained samples
  CHECK(trained_file(source, files, before, same) == nullptr);
}
