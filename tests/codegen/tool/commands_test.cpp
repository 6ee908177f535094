// SPDX-License-Identifier: Apache-2.0
// `rankc init` and `rankc verify`: the files that they write and the text that they print. The text of a
// program.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <command_line.hpp>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <emit/emit.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/plan/make_plan.hpp>

#include <plans.hpp>
#include <starter/plan.hpp>

#include <sys/wait.h>
#include <cstdio>
#include <sys/stat.h>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "../../said.hpp"
#include "../../scratch_folder.hpp"
#include "commands.hpp"
#include <verify/report.hpp>
#include "tokens.hpp"

namespace rankc::tool {

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// Exit code and what a command printed.
struct result {
  int code;
  std::string out, errors;
  bool operator==(const result&) const = default;
};
result run_init(const fs::path& folder, const std::string& name = "") {
  std::ostringstream out, errors;
  const int code = init(folder, name, out, errors);
  return {code, out.str(), errors.str()};
}
result run_verify(const fs::path& file, std::optional<std::uint64_t> seed = {}) {
  std::ostringstream out, errors;
  const int code = codegen::report(file, seed, out, errors);
  return {code, out.str(), errors.str()};
}

/// The error of a command that ends with this exit code and prints nothing else.
test::said refusal(const result& r, int code = 1) {
  CHECK(r.code == code);
  CHECK(r.out == "");
  CHECK(r.errors.starts_with("error: RC"));
  CHECK(r.errors.find('\n') == r.errors.size() - 1);
  return test::said_in(r.errors);
}

/// Run the real program, with `input` on its standard input.
result run(const std::string& arguments, const std::string& input = "") {
  const scratch_folder s;
  write(s.path / "in", input);
  const std::string command = std::string(RANKC_TOOL) + " " + arguments + " < " + (s.path / "in").string() +
                              " > " + (s.path / "out").string() + " 2> " + (s.path / "errors").string();
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), contents(s.path / "out"), contents(s.path / "errors")};
}

}  // namespace

TEST_CASE("init writes a project, and never over anything") {
  const scratch_folder s;
  const fs::path folder = s.path / "new" / "my-model";
  CHECK(run_init(folder) == result{0,
                                   "wrote the starter project my_model to " + folder.string() +
                                       "; its README.md says how to build it\n",
                                   ""});
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 4);
  CHECK(contents(folder / "CMakeLists.txt")
            .find("add_rankc_program(my_model PLAN plan.hpp NAME plans::first") != std::string::npos);
  CHECK(contents(folder / "README.md").starts_with("# my_model\n"));
  CHECK(contents(folder / "plan.hpp").find("@") == std::string::npos);
  CHECK(contents(folder / ".gitignore") == "/build*/\n");

  for (const char* there : {"CMakeLists.txt", "plan.hpp", "README.md", ".gitignore"}) {
    const scratch_folder other;
    write(other.path / there, "mine");
    CHECK(refusal(run_init(other.path, "x")) == test::said{8022, {(other.path / there).string()}});
    CHECK(std::distance(fs::directory_iterator(other.path), {}) == 1);
    CHECK(contents(other.path / there) == "mine");
  }
  const scratch_folder other;
  fs::create_symlink("/nowhere", other.path / "plan.hpp");
  CHECK(run_init(other.path, "x").code == 1);
  CHECK(std::distance(fs::directory_iterator(other.path), {}) == 1);
  write(s.path / "file", "");
  CHECK(refusal(run_init(s.path / "file" / "p", "x")) ==
        test::said{7911, {(s.path / "file" / "p").string(), "Not a directory"}});
  CHECK(run_init(s.path / "file", "x").code == 1);
}

TEST_CASE("an exception of a library gets an id, and a rule keeps its own") {
  const std::runtime_error unknown("out of something"), rule("RC401: too large");
  CHECK(test::said_in(codegen::sentence_of(unknown)) == test::said{7910, {"out of something"}});
  CHECK(codegen::sentence_of(std::bad_alloc()) == "RC7912: the process can have no more memory");
  CHECK(codegen::sentence_of(rule) == "RC401: too large");
  CHECK(codegen::exit_code_of(rule) == 1);
  CHECK(codegen::exit_code_of(runtime::failure(2, "RC7901: standard output cannot be written")) == 2);
}

TEST_CASE("the name of a project can be a target's") {
  const scratch_folder s;
  for (const char* name : {"3d", "a b", "a-b", "_x", "\xc3\xa9"})
    CHECK(refusal(run_init(s.path / "p", name)) == test::said{8020, {"--name", name}});
  for (const char* name : {"test", "install", "rankc", "plans"})
    CHECK(refusal(run_init(s.path / "p", name)) == test::said{8021, {name}});
  const std::string folder = (s.path / "-1").string(), too_long = (s.path / std::string(300, 'x')).string();
  CHECK(refusal(run_init(folder)) == test::said{8020, {folder, "_1_"}});
  CHECK(refusal(run_init(too_long)) == test::said{7911, {too_long, "File name too long"}});
  CHECK(fs::is_empty(s.path));
  CHECK(run_init(s.path / "p/", "gpt_2").code == 0);
  CHECK(run_init((s.path / "q" / ".").string()).out.starts_with("wrote the starter project q "));
}

TEST_CASE("the starter's plan is valid") {
  const plan_data plan = make_plan("starter", plans::first);
  CHECK(plan.diagnostics.empty());
  CHECK(plan.actions.ranks() == 2);
  static_assert(plans::recipe.learning_rate(25) == 5e-4);
  static_assert(plans::recipe.learning_rate(50) == 1e-3);
  static_assert(plans::recipe.learning_rate(225) == 1e-4 + (1e-3 - 1e-4) * 0.5);
  static_assert(plans::recipe.learning_rate(4000) == 1e-4);
}

static std::string program_text(const plan_data& plan, codegen::target to, const std::string& name) {
  const codegen::lowered l = codegen::lower(plan, runtime::dtype::f32, to);
  const std::map<std::string, std::string> files = codegen::emit(l, name, codegen::check_or_throw(l));
  return files.at("program.cpp") + files.at("layouts.hpp") + files.at("plan_text.hpp");
}

TEST_CASE("a program has its plan's schedule, and says what its target does not have") {
  plan_data plan = make_plan("starter", plans::first);
  const auto program = [&] { return program_text(plan, codegen::target::host, "host"); };
  const std::string text = program();
  CHECK(text.find(
            ".schedule = {lr_piece{lr_shape::linear, 50, peak}, lr_piece{lr_shape::cosine, 350, 0.0001}}") !=
        std::string::npos);
  CHECK(text.find(".note") == std::string::npos);
  CHECK(text.find("\n     0.001 |       **********\n") != std::string::npos);  // the drawing
  CHECK(text.find("\n      step 1                                                        440\n") !=
        std::string::npos);
  for (const auto& [to, name] :
       {std::pair{codegen::target::host, "host"}, std::pair{codegen::target::cuda, "cuda"}}) {
    const std::string of_target = program_text(plan, to, name);
    CHECK(of_target.find(".logits = {.where") != std::string::npos);
    CHECK(of_target.find(", .rows = 512, .columns = 256, .stride = 256, .microbatch = 3}") !=
          std::string::npos);
    CHECK(of_target.find(".calls = calls_") != std::string::npos);
    // The last pipeline rank alone has logits.
    CHECK(of_target.find(".logits = ") == of_target.rfind(".logits = "));
  }
  plan.recipe.precision = bf16;
  CHECK(program().find(".note = \"the recipe's precision is bf16; this program computes in f32\",") !=
        std::string::npos);
}

namespace {

/// A program and its proof.
codegen::proven proven_of(codegen::program p) {
  codegen::verdict v = codegen::prove(p);
  return {std::move(p), std::move(v)};
}

/// Certificates of a plan with both steps or one, and with its own model or another.
struct certificates {
  plan_data plan = programs::make(programs::jobs[0], programs::layouts[5]);
  codegen::lowered low = codegen::lower(plan, runtime::dtype::f64);
  codegen::proven train = proven_of(codegen::expand_train(low)),
                  evaluate = proven_of(codegen::expand_evaluate(low));
  codegen::specification model = codegen::specify(plan);

  std::string both() const { return codegen::certificate({train, evaluate}, model); }
};

}  // namespace

TEST_CASE("verify prints whose certificate it is, what is claimed and what is trusted") {
  const scratch_folder s;
  const certificates c;
  const std::string file = (s.path / "c.json").string();
  write(file, c.both());
  const result shown = run_verify(file);
  CHECK(shown.code == 0);
  CHECK(shown.errors == "");
  CHECK(shown.out.starts_with(fmt::format("plan {}, hash {:016x}\nworld: {} ranks\nmodel: ", c.plan.name,
                                          c.low.hash, c.plan.dims.world)));
  CHECK(shown.out.find(fmt::format("model: {} layers, ", c.model.uses.size())) != std::string::npos);
  CHECK(shown.out.find(fmt::format(" elements, {} tokens a step, hash ", c.model.tokens)) !=
        std::string::npos);
  for (const char* of : {"\ntrain: computes the model in ", "\nevaluate: computes the model in ",
                         "\nsteps: belong together\n  ", "\ntrusted, and not shown by the certificate:\n  "})
    CHECK(shown.out.find(of) != std::string::npos);
  CHECK(shown.out.ends_with("\n" + file + ": every claim holds\n"));
  CHECK(run("verify " + file).code == 0);
  CHECK(shown.out.find(" and does not compute the model is accepted with a chance below 2^-") !=
        std::string::npos);
  const auto drawn_line = [](const result& r) {
    const std::size_t begin = r.out.find("terms are compared modulo the primes ");
    return r.out.substr(begin, r.out.find('\n', begin) - begin);
  };
  CHECK(drawn_line(run_verify(file, 5)).find(", drawn by seed 5; ") != std::string::npos);
  CHECK(drawn_line(run_verify(file, 5)) == drawn_line(run("verify --seed 5 " + file)));
  CHECK(drawn_line(run_verify(file, 5)) != drawn_line(run_verify(file, 6)));
  CHECK(drawn_line(shown) != drawn_line(run_verify(file)));

  std::string other = c.both();  // the other plan's name is printed
  const std::string own = fmt::format("\"plan\": \"{}\"", c.plan.name);
  other.replace(other.find(own), own.size(), "\"plan\": \"another\"");
  write(file, other);
  CHECK(run_verify(file).out.starts_with("plan another, hash "));
}

TEST_CASE("verify ends with 1 where a certificate is refused, and prints no claim") {
  const scratch_folder s;
  certificates c;
  const std::string file = (s.path / "c.json").string(), good = c.both();
  for (const auto& steps : {std::vector{c.train}, {c.evaluate}})
    for (const bool has_model : {true, false}) {
      write(file, codegen::certificate(steps, has_model ? c.model : codegen::specification{}));
      if (!has_model && steps[0].program.step == "evaluate") continue;  // it may be an inference plan
      const test::said apart = refusal(run_verify(file));
      CHECK(apart.id == 8124);
      CHECK(apart.arguments.at(0) == file);
    }
  c.model.layers.back().ops.back().number *= 2;  // another model: twice the loss
  write(file, c.both());
  const test::said other = refusal(run_verify(file));
  CHECK(other.id == 8120);
  REQUIRE(other.arguments.size() == 4);
  CHECK(other.arguments[0] == "train");
  CHECK(other.arguments[1] == file);
  CHECK(other.arguments[2] != "");

  std::string bad = good;
  bad.replace(bad.find("rankc certificate 10"), 20, "rankc certificate X");
  write(file, bad);
  CHECK(refusal(run_verify(file)) == test::said{8121, {file, codegen::verify(bad)}});
  write(file, "");
  CHECK(refusal(run_verify(file)) == test::said{8121, {file, codegen::verify("")}});
  CHECK(refusal(run_verify(s.path / "none")) ==
        test::said{7902, {(s.path / "none").string(), "No such file or directory"}});
  CHECK(refusal(run_verify(s.path)) ==
        test::said{7902, {s.path.string(), "it is a folder, not a regular file"}});
  const std::string fifo = (s.path / "fifo").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal(run_verify(fifo)) == test::said{7902, {fifo, "it is a FIFO, not a regular file"}});
  CHECK(refusal(run_verify("/dev/zero")) ==
        test::said{7902, {"/dev/zero", "it is a device, not a regular file"}});
}

TEST_CASE("verify refuses a certificate whose calls have other operands than its ops") {
  const scratch_folder s;
  const std::string file = (s.path / "c.json").string();
  const auto why = [&](auto wanted, auto change) {
    certificates c;
    for (codegen::op& o : c.train.program.ranks[0].ops)
      if (wanted(o)) {
        change(o.operands);
        break;
      }
    write(file, c.both());
    const test::said outer = refusal(run_verify(file));
    CHECK(outer.id == 8121);
    CHECK(outer.arguments.at(0) == file);
    return test::said_in(outer.arguments.at(1)).id;
  };
  const auto of_row = [](std::string_view row) { return [=](const codegen::op& o) { return o.row == row; }; };
  const auto sends = [](const codegen::op& o) { return o.kind == codegen::op_kind::send; };
  const auto communicates = [](const codegen::op& o) { return o.communicator >= 0; };
  using operands = std::vector<std::size_t>;
  CHECK(why(of_row("linear"), [](operands& o) { o[0] += 4; }) == 7291);
  CHECK(why(of_row("linear"), [](operands& o) { o[1] = o[0]; }) == 7292);
  CHECK(why(sends, [](operands& o) { o[0] += 64; }) == 7293);
  CHECK(why(of_row("adamw"), [](operands& o) { o.pop_back(); }) == 7296);
  CHECK(why(of_row("adamw"), [](operands& o) { o.resize(1); }) == 7294);
  CHECK(why(of_row("adamw"), [](operands& o) { std::swap(o[2], o[3]); }) == 7297);
  CHECK(why(of_row("adamw"), [](operands& o) { o[0] = o[1]; }) == 7297);
  CHECK(why(of_row("adamw"), [](operands& o) { o[3] = o[2]; }) == 7295);
  CHECK(why(of_row("sum_squares"), [](operands& o) { o[0] += 256; }) == 7296);
  CHECK(why(communicates, [](operands& o) { o.clear(); }) == 7298);
}

TEST_CASE("verify ends with 3 where the programs are sound and not compared with a model") {
  const scratch_folder s;
  certificates c;
  const std::string file = (s.path / "c.json").string();
  const auto not_compared = [&](const std::string& text) {
    write(file, text);
    const result shown = run_verify(file);
    CHECK(shown.code == 3);
    CHECK(shown.out.find("every claim holds") == std::string::npos);
    CHECK(shown.out.find("computes the model") == std::string::npos);
    CHECK(shown.errors.starts_with("warning: RC8126: "));
    CHECK(test::said_in(shown.errors).arguments.at(0) == file);
    return test::said_in(shown.errors, 8126).arguments.at(1);
  };
  CHECK(test::said_in(not_compared(codegen::certificate({c.train, c.evaluate}))).id == 8125);
  c.model.layers.back().ops.back().row = "an_op_of_the_users";
  CHECK(test::said_in(not_compared(c.both()), 7635) == test::said{7635, {"an_op_of_the_users"}});
  CHECK(run("verify " + file).code == 3);
  // The steps are still compared with each other.
  for (codegen::rank_program& r : c.evaluate.program.ranks)
    for (codegen::op* o : {&r.ops.front(), &r.ops.back()})
      for (codegen::holding& h : o->holds)
        if (h.name.starts_with("layers.")) h.name[7] = h.name[7] == '0' ? '1' : '0';
  write(file, c.both());
  CHECK(refusal(run_verify(file)).id == 8124);
}

TEST_CASE("the program's exit codes: 0 done, 1 refused, 2 usage") {
  CHECK(run("--version") == result{0, "rankc 0.1.0\n", ""});
  CHECK(run("--help").code == 0);
  for (const char* usage : {"", "plan", "schedule --chek", "schedule x", "init", "verify",
                            "explain RC201 RC202", "--check", "search --modle gpt3", "search --gpus eight"}) {
    CAPTURE(usage);
    const result r = run(usage);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(r.errors.starts_with("error: RC"));
    CHECK(test::said_in(r.errors).id == (usage == std::string("plan") ? 8050 : 7900));
    CHECK(r.errors.find("Usage: rankc") != std::string::npos);
  }
  CHECK(test::said_in(run("plan").errors) == test::said{8050, {"plan"}});
  CHECK(refusal(run("search --model gpt3 --emit plan.hpp"), 2) == test::said{8051, {}});
  const std::string searched =
      "search --model gpt3 --strategy 1d --system H200 --nvs 8 --gpus 64 --global-batch 2048 --capacity 80.5 "
      "--top 1 --corrected";
  CHECK(run(searched).out.starts_with("gpt3, 1d, 64 GPUs H200 in domains of 8, 2048 sequences: "));
  CHECK(run(searched + " --json").out.starts_with("{\"ok\":true,\"diagnostics\":[],\"n_candidates\":"));
  CHECK(run(searched + " --seq 8").errors.find("RC8042") != std::string::npos);
  const std::string sizes =
      " --layers 4 --hidden 1024 --heads 16 --kv-heads 4 --ffn 2816 --vocab 32000 --cluster h200 --gpus 2 "
      "--seq 1024 --global-batch 8 --top 1";
  CHECK(run("search" + sizes).out.starts_with("a model on 2 GPUs h200 of 141 GB: "));
  CHECK(run("search --model llama3-8b" + sizes).code == 2);
  CHECK(run("explain RC304").out.starts_with("RC304: the schedule has no deadlock\n"));
  for (const char* id : {"304", "rc304"}) CHECK(run("explain " + std::string(id)) == run("explain RC304"));
  for (const char* id : {"RC1", "1", "RC", "rc", "R304", "304x"})
    CHECK(run("explain " + std::string(id)).code == 1);
  for (const char* command : {"dims", "schedule", "tokens"})
    CHECK(run(std::string(command) + " --help").out.find("Examples:\n  ") != std::string::npos);
  for (const char* command : {"explain", "explain 304", "dims --world 8 --dp-shard infer"})
    CHECK(std::system((std::string(RANKC_TOOL) + " " + command + " > /dev/full 2> /dev/null").c_str()) != 0);
  const scratch_folder s;
  CHECK(run("init " + (s.path / "p").string() + " --name gpt").code == 0);
  CHECK(run("init " + (s.path / "p").string() + " --name gpt").code == 1);
}

TEST_CASE("tokens writes llm.c's form, by bytes") {
  const scratch_folder s;
  write(s.path / "a.txt", "ab\xff");
  write(s.path / "b.txt", std::string("\0z", 2));
  const std::string a = (s.path / "a.txt").string(), b = (s.path / "b.txt").string(),
                    out = (s.path / "t.bin").string();
  CHECK(run("tokens --out " + out + " " + a + " " + b) ==
        result{0, out + ": 5 tokens of 2 files by bytes, for a plan with vocab 256 or more\n", ""});
  const std::string bytes = contents(out);
  REQUIRE(bytes.size() == 1024 + 10);
  CHECK(bytes.substr(0, 12) == std::string("\x88\xd8\x34\x01\x01\0\0\0\x05\0\0\0", 12));  // 20240520, 1, 5
  CHECK(bytes.substr(12, 1012) == std::string(1012, '\0'));
  CHECK(bytes.substr(1024) == std::string("a\0b\0\xff\0\0\0z\0", 10));
  const std::string none = (s.path / "none").string();
  CHECK(refusal(run("tokens --out " + out + " " + a + " " + none)) ==
        test::said{7902, {none, "No such file or directory"}});
  CHECK(contents(out) == bytes);
  CHECK(refusal(run("tokens --out x.txt " + a)) == test::said{8115, {"x.txt"}});
  CHECK(refusal(run("tokens --eos --out " + out + " " + a)) ==
        test::said{8116, {"--eos", "end-of-sentence", "--eos"}});
  const test::said no_model = refusal(run("tokens --model " + a + " --out " + out + " " + a));
  CHECK((no_model.id == 8110 || no_model.id == 8113));
  CHECK(no_model.arguments.at(0) == a);
  const std::string fifo = (s.path / "fifo").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const test::said endless = refusal(run("tokens --model " + fifo + " --out " + out + " " + a));
  CHECK((endless == test::said{7902, {fifo, "it is a FIFO, not a regular file"}} || endless.id == 8113));
  fs::remove(fifo);
  CHECK(contents(out) == bytes);
  CHECK(std::distance(fs::directory_iterator(s.path), {}) == 3);
}

TEST_CASE("names with control characters are printed escaped") {
  const scratch_folder s;
  const std::string odd = (s.path / "a\x1b]0;title\x07").string();
  write(odd + ".txt", "\xff");
  for (const std::string& arguments :
       {"tokens --out '" + odd + ".bin' '" + odd + ".txt'", "init '" + odd + "' --name abc"}) {
    CAPTURE(arguments);
    const result r = run(arguments);
    CHECK(r.code == 0);
    for (const char c : r.out + r.errors) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  }
}

TEST_CASE("tokens are not written over a text, a model or another file, by any of its names") {
  const scratch_folder s;
  const std::string text = "a text of someone's\n", file = (s.path / "t.bin").string(),
                    soft = (s.path / "soft.bin").string(), hard = (s.path / "hard.bin").string();
  write(file, text);
  fs::create_symlink(file, soft);
  fs::create_hard_link(file, hard);
  for (const std::string& out : {file, soft, hard}) {
    CAPTURE(out);
    const auto refused = [](const std::string& words) {
      const result r = run(words);
      CHECK(r.code == 2);
      CHECK(r.out == "");
      CHECK(r.errors.starts_with("error: RC"));
      return test::said_in(r.errors);
    };
    CHECK(refused("tokens --out " + out + " " + file) ==
          test::said{5020, {"--out " + out, "the text " + file}});
    CHECK(refused("tokens --out " + out + " --model " + file + " " + (s.path / "none").string()) ==
          test::said{5020, {"--out " + out, "--model " + file}});
    CHECK(refused("tokens --out " + out + " " + RANKC_SOURCES + "/README.md") ==
          test::said{5021, {"--out " + out, "a token file of llm.c"}});
    CHECK(contents(file) == text);
  }
}

TEST_CASE("tokens replace a link to a token file, and leave what it stands for") {
  const scratch_folder s;
  const std::string kept = (s.path / "kept.bin").string(), link = (s.path / "l.bin").string(),
                    a = (s.path / "a.txt").string();
  write(a, "abc");
  REQUIRE(run("tokens --out " + kept + " " + a).code == 0);
  const std::string before = contents(kept);
  write(a, "abcdef");
  for (const bool hard : {false, true}) {
    if (hard) fs::create_hard_link(kept, link);
    else fs::create_symlink(kept, link);
    CHECK(run("tokens --out " + link + " " + a).code == 0);
    CHECK(contents(kept) == before);
    CHECK(contents(link).size() == 1024 + 12);
    fs::remove(link);
  }
}

TEST_CASE("a write that cannot be done is an error of the program, and no signal ends it") {
  const scratch_folder s;
  const std::string tool = RANKC_TOOL, text = (s.path / "a.txt").string(), out = (s.path / "t.bin").string(),
                    errors = (s.path / "errors").string();
  write(text, std::string(5000, 'x'));
  const auto code = [&](const std::string& script) {
    return WEXITSTATUS(std::system(("bash -c '" + script + "' 2>" + errors).c_str()));
  };
  CHECK(code("ulimit -f 1; " + tool + " tokens --out " + out + " " + text) == 1);
  CHECK(contents(errors).starts_with("error: RC"));
  CHECK(test::said_in(contents(errors)) == test::said{5005, {out, "File too large"}});
  CHECK_FALSE(fs::exists(out));
  CHECK(code("set -o pipefail; (sleep 0.2; " + tool + " explain) | true") == 1);
  CHECK(test::said_in(contents(errors)) == test::said{7901, {}});
}

TEST_CASE("the program answers lines, good and bad, and ends with 0") {
  const result r = run("schedule", "{\"schedule\": \"gpipe\", \"pp\": 1, \"microbatches\": 1}\nbad\n");
  CHECK(r ==
        result{0,
               "{\"ok\":true,\"diagnostics\":[],\"stage_to_rank\":[0],\"compute\":[[\"0F0\",\"0B0\"]],"
               "\"program\":[[\"0F0\",\"0B0\"]],"
               "\"makespan\":3.0,\"program_makespan\":3.0,\"lower_bound\":3.0,\"bubble\":0.0,\"window_"
               "bubble\":0.0,"
               "\"bubble_per_rank\":[0.0],\"peak_activations\":[1],\"slots\":[0]}\n"
               "{\"ok\":false,\"diagnostics\":[{\"id\":\"RC300\",\"text\":\"RC6596: the line is not valid "
               "JSON: byte 1 is unexpected\"}]}\n",
               ""});
  CHECK(run("schedule --check", "{\"ranks\": [[\"0F0\", \"0B0\"]]}\n") ==
        result{0, "{\"ok\":true,\"diagnostics\":[]}\n", ""});
  CHECK(run("schedule") == result{0, "", ""});
  CHECK(run("dims", "{}\n") ==
        result{
            0,
            "{\"ok\":false,\"diagnostics\":[{\"id\":\"RC300\",\"text\":\"RC8030: the field world is missing, "
            "and this request needs it\"}]}\n",
            ""});
  CHECK(run("dims --world 8 --tp 3") ==
        result{1, "", "error[RC101]: tp(3) is not world=8: take tp=8, or world=3\n"});
  const result page = run("dims --world 8 --tp 2 --dp-shard infer --heads 8 --tied-embeddings");
  CHECK(page.code == 0);
  CHECK(page.out.starts_with("axes "));
  CHECK(page.errors.empty());
}

}  // namespace rankc::tool
