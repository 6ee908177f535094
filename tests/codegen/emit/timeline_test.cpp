// SPDX-License-Identifier: Apache-2.0
// The schedule over time as trace events and as a page, as `timeline` writes them.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <rankc/codegen/generator.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/runtime/trace_events.hpp>

#include <emit/step_times.hpp>

#include "../../said.hpp"
#include "plans.hpp"

namespace timeline_test {

using nlohmann::json;
namespace fs = std::filesystem;
using rankc::test::said;
using rankc::test::said_by;

namespace {

rankc::plan_data plan_of(const std::string& name) {
  for (const auto& l : programs::layouts)
    if (name == l.name) return programs::make(programs::jobs[1], l);
  throw std::logic_error("no such layout");
}

class folder {
 public:
  folder() : at_(fs::temp_directory_path() / ("rankc_timeline_" + std::to_string(getpid()))) {
    fs::create_directories(at_);
  }
  ~folder() { fs::remove_all(at_); }
  std::string path(const std::string& name) const { return (at_ / name).string(); }

 private:
  fs::path at_;
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int timeline(const rankc::plan_data& plan, std::vector<std::string> words) {
  words.insert(words.begin(), {"gpt_rankc", "timeline"});
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  return rankc::codegen::generator_main(plan, static_cast<int>(arguments.size()), arguments.data());
}

std::string token(const rankc::action& a) {
  rankc::sentence s;
  s << a;
  return std::string(s.view());
}

json lanes_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"lanes\">";
  const std::size_t begin = page.find(open) + open.size();
  REQUIRE(begin >= open.size());
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// A measured step of a plan: every rank does its actions one after another, `took` us each, then the
/// optimizer.
std::string measured(const rankc::plan_data& plan, double took, bool swapped = false) {
  rankc::runtime::trace_head head{std::string(plan.name),
                                  "measured",
                                  7,
                                  {},
                                  std::vector(plan.dims.pp, std::vector<std::string>{"compute"})};
  std::vector<std::string> names;
  for (const rankc::action& a : plan.actions.actions) names.push_back(token(a));
  std::vector<rankc::runtime::traced> events;
  for (int r = 0; r < plan.dims.world; ++r) {
    const auto c = rankc::layout(plan.dims).at(r);
    head.ranks.push_back({c[rankc::axis::pp], c[rankc::axis::dp_replicate], c[rankc::axis::tp], {}});
    double now = 5;
    const int first = plan.actions.begin[c[rankc::axis::pp]],
              last = plan.actions.begin[c[rankc::axis::pp] + 1];
    for (int i = first; i < last && computes(plan.actions.actions[i].kind); ++i, now += took) {
      const int shown = swapped && i < first + 2 ? 2 * first + 1 - i : i;
      events.push_back({r, 0, names[static_cast<std::size_t>(shown)].c_str(), now, now + took});
    }
    events.push_back({r, 0, "optimizer", now, now + 3});
  }
  return rankc::runtime::trace_events(head, events);
}

}  // namespace

TEST_CASE("a planned trace has every action once, at its simulated time, and both ends of every message") {
  const folder out;
  for (const char* name : {"one", "pp2_gpipe", "pp4_1f1b", "all_1f1b"}) {
    CAPTURE(std::string(name));
    const rankc::plan_data plan = plan_of(name);
    REQUIRE(timeline(plan, {"--format", "trace", "--out", out.path(name)}) == 0);
    const json trace = json::parse(contents(out.path(name)));
    CHECK(trace["otherData"]["plan"] == plan.name);
    CHECK(trace["otherData"]["times"] == "planned");
    std::map<std::pair<int, std::string>, json> actions;
    std::map<std::string, std::vector<json>> messages;
    for (const json& e : trace["traceEvents"]) {
      if (e["ph"] != "X") continue;
      if (e["name"].get<std::string>().find("stage") == std::string::npos)
        CHECK(actions.emplace(std::pair(e["pid"].get<int>(), e["name"].get<std::string>()), e).second);
      else messages[e["name"]].push_back(e);
    }
    CHECK(actions.size() == plan.actions.actions.size());
    const rankc::timing expected = rankc::time(plan.actions, plan.expected);
    std::size_t edges = 0;
    for (int pp = 0; pp < plan.dims.pp; ++pp)
      for (int i = plan.actions.begin[pp]; i < plan.actions.begin[pp + 1]; ++i) {
        const rankc::action& a = plan.actions.actions[i];
        const json& e = actions.at(
            {rankc::layout(plan.dims).flat(rankc::coord(rankc::along<rankc::axis::pp>(pp))), token(a)});
        CHECK(std::abs(e["ts"].get<double>() - 1000 * expected.begin[i]) < 1e-3);
        CHECK(std::abs(e["dur"].get<double>() - 1000 * (expected.end[i] - expected.begin[i])) < 1e-3);
        CHECK(e["tid"] == (a.kind == rankc::action_kind::reduce_grad ? 1 : 0));
        if (computes(a.kind))
          edges += a.kind == rankc::action_kind::F ? a.stage + 1 < plan.dims.pp : a.stage > 0;
      }
    CHECK(messages.size() == edges);
    for (const auto& [what, ends] : messages) {
      CAPTURE(what);
      REQUIRE(ends.size() == 2);
      CHECK(ends[0]["pid"] != ends[1]["pid"]);
      CHECK(ends[0]["ts"] == ends[1]["ts"]);
    }
  }
}

TEST_CASE("the page holds all that it shows, and asks for nothing from elsewhere") {
  const folder out;
  for (const char* name : {"one", "pp4_1f1b", "all_1f1b"}) {
    CAPTURE(std::string(name));
    const rankc::plan_data plan = plan_of(name);
    REQUIRE(timeline(plan, {"--format", "html", "--out", out.path(name)}) == 0);
    const std::string page = contents(out.path(name));
    for (const char* outside : {"://", "src=", "href=", "url(", "@import", "import(", "fetch("}) {
      CAPTURE(std::string(outside));
      CHECK(page.find(outside) == page.npos);
    }
    const json lanes = lanes_of(page);
    REQUIRE(lanes.size() == 1);
    const rankc::timing expected = rankc::time(plan.actions, plan.expected);
    CHECK(lanes[0]["makespan"].get<double>() == 1000 * expected.makespan);
    CHECK(lanes[0]["bubble"].get<double>() == doctest::Approx(expected.bubble));
    REQUIRE(lanes[0]["rows"].size() == expected.bubble_per_rank.size());
    for (int pp = 0; pp < plan.actions.ranks(); ++pp) {
      const json& row = lanes[0]["rows"][pp];
      CHECK(row["bubble"].get<double>() == doctest::Approx(expected.bubble_per_rank[pp]));
      CHECK(row["peak"] == expected.peak_activations[pp]);
      CHECK(row["held"].back()[1] == 0);
      std::vector<std::string> shown, planned;
      for (const json& box : row["boxes"])
        if (box[1] != "c" || box[2] == 1) shown.push_back(box[0]);
      for (int i = plan.actions.begin[pp]; i < plan.actions.begin[pp + 1]; ++i)
        planned.push_back(token(plan.actions.actions[i]));
      CHECK(shown == planned);
    }
  }
}

TEST_CASE("a measured step stands below the plan, with its own makespan and bubble") {
  const folder out;
  const rankc::plan_data plan = plan_of("all_1f1b");
  std::ofstream(out.path("m.json")) << measured(plan, 250);
  REQUIRE(timeline(plan, {"--format", "html", "--measured", out.path("m.json"), "--out", out.path("page")}) ==
          0);
  const json lanes = lanes_of(contents(out.path("page")));
  REQUIRE(lanes.size() == 2);
  const json& lane = lanes[1];
  CHECK(lane["title"] == "measured, step 7");
  CHECK(lane["rows"].size() == 8);
  CHECK(lane["begin"] == 5);
  CHECK(lane["makespan"] == 4 * 250);  // forward and backward of two microbatches
  CHECK(lane["length"] == 4 * 250 + 3);
  CHECK(lane["bubble"].get<double>() == doctest::Approx(0));
  CHECK(lane["rows"][0]["boxes"].back()[1] == "o");
}

TEST_CASE("what overlaps is shown so, and what a stage does once a step comes with it") {
  const folder out;
  const rankc::plan_data plan =
      programs::make(programs::pipeline{"tiny_gpt2", "dual_v_2", programs::order::dual_pipe_v, 1, 1, 2, 5});
  const auto shown = [&](const char* format) {
    REQUIRE(timeline(plan, {"--format", format, "--out", out.path(format)}) == 0);
    return contents(out.path(format));
  };
  const std::string csv = shown("csv");
  CHECK(csv ==
        "0F0,0F1,0F2,3F0,3B0,3F1,OVERLAP(0F3,3B1),OVERLAP(3F2,0B0),OVERLAP(0F4,3B2),OVERLAP(3F3,0B1),3B3,"
        "OVERLAP(3F4,0B2),3B4,"
        "3REDUCE_GRAD,0B3,0B4,0REDUCE_GRAD,0STEP,3STEP\n"
        "1F0,2F0,1F1,2F1,1F2,2B0,OVERLAP(2F2,1B0),OVERLAP(1F3,2B1),OVERLAP(2F3,1B1),OVERLAP(1F4,2B2),OVERLAP("
        "2F4,1B2),2B3,1B3,2I4,1I4,"
        "2W4,2REDUCE_GRAD,1W4,1REDUCE_GRAD,1STEP,2STEP\n");
  rankc::report refused;
  const rankc::action_table back = rankc::parse_csv(refused, csv);
  CHECK(back.actions == plan.actions.actions);

  CHECK(shown("text").find(" [0F3 3B1]    - [3F2 0B0]    - [0F4 3B2]    -    - ") != std::string::npos);
  const std::string svg = shown("svg");
  for (const rankc::action& a : plan.actions.actions)
    CHECK(svg.find("<title>" + token(a) + "</title>") != std::string::npos);

  const json lane = lanes_of(shown("html"))[0];
  CHECK(lane["makespan"] == 1000 * rankc::time(plan.actions, plan.expected).makespan);
  CHECK(lane["bubble"].get<double>() == doctest::Approx(rankc::time(plan.actions, plan.expected).bubble));
  std::map<int, int> halves;
  for (const json& row : lane["rows"])
    for (const json& box : row["boxes"])
      if (++halves[box[6]]; box[6] == 1)
        CHECK(row["lanes"][box[2].get<std::size_t>()] == json{"overlap", true});
  CHECK(halves[1] == 10);
  CHECK(halves[2] == 10);
}

TEST_CASE("a measured step of something else is refused by name") {
  const folder out;
  const rankc::plan_data plan = plan_of("pp2_1f1b");
  const auto code = [&](const std::string& text) {
    std::ofstream(out.path("m.json")) << text;
    return timeline(plan, {"--format", "html", "--measured", out.path("m.json"), "--out", out.path("page")});
  };
  CHECK(code(measured(plan, 1)) == 0);
  CHECK(code(measured(plan, 1, true)) == 1);            // another order
  CHECK(code(measured(plan_of("pp2_gpipe"), 1)) == 1);  // more microbatches
  CHECK(code(measured(plan_of("all_1f1b"), 1)) == 1);   // more ranks
  CHECK(code("{\"traceEvents\":[],\"otherData\":{\"step\":1}}") == 1);
  CHECK(code("{}") == 1);
  CHECK(code("step 1") == 1);

  const auto refused = [&](const std::string& text) {
    std::int64_t step = 0;
    return said_by([&] { rankc::codegen::read_times(plan, text, step); });
  };
  const auto of_event = [](int rank, int lane, int took) {
    const json event{{"ph", "X"}, {"pid", rank}, {"tid", lane}, {"ts", 0}, {"dur", took}, {"name", "1F0"}};
    return json{{"traceEvents", {event}}, {"otherData", {{"step", 1}}}}.dump();
  };
  CHECK(refused(measured(plan, 1)) == said{});
  CHECK(refused(of_event(9, 0, 1)) == said{7923, {"9", std::to_string(plan.dims.world)}});
  CHECK(refused(of_event(0, 99, 1)).id == 7924);
  CHECK(refused(of_event(0, 0, -1)) == said{7925, {"0", "0", "-1"}});
  CHECK(refused("{\"traceEvents\":[],\"otherData\":{\"step\":1}}") == said{7920, {"0", "0F0"}});
  json again = json::parse(measured(plan, 1));
  json& events = again["traceEvents"];
  json last = *std::find_if(events.begin(), events.end(), [](const json& e) { return e["name"] == "0F0"; });
  last["ts"] = 1e6;
  events.push_back(last);
  CHECK(refused(again.dump()) == said{7921, {"0", "0F0"}});
  CHECK(refused(measured(plan, 1, true)) == said{7922, {"0", "0F1", "0F0"}});
  CHECK(refused("step 1").id == 7926);
  const std::string whole = of_event(0, 0, 1);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"pid\":0", "\"pid\":4294967296"},
                                                        {"\"pid\":0", "\"pid\":1e300"},
                                                        {"\"pid\":0", "\"pid\":0.5"},
                                                        {"\"tid\":0", "\"tid\":18446744073709551615"},
                                                        {"\"dur\":1", "\"dur\":\"1\""},
                                                        {"\"ts\":0", "\"ts\":1.7e308,\"dur\":1.7e308"},
                                                        {"\"step\":1", "\"step\":1e300"}}) {
    CAPTURE(to);
    REQUIRE(whole.find(from) != whole.npos);
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    if (to.find("\"ts\"") != to.npos) text.erase(text.find("\"dur\":1,"), 8);
    CHECK(refused(text).id == 7926);
  }
  CHECK(timeline(plan,
                 {"--format", "html", "--measured", out.path("none.json"), "--out", out.path("page")}) == 1);
  CHECK(timeline(plan, {"--format", "svg", "--measured", out.path("m.json"), "--out", out.path("page")}) ==
        2);
  CHECK(timeline(plan, {"--format", "png"}) == 2);
}

}  // namespace timeline_test
