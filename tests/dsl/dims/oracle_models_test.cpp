// SPDX-License-Identifier: Apache-2.0
// The verdicts of HyperParallel, torchtitan and Megatron on models with dims that are legal in both systems,
// except for the classes of exceptions in the table.
#include <rankc/rules/values/model.hpp>

#include "exceptions.hpp"
#include "legal_dims.hpp"

namespace rankc::test {

namespace {

model_sizes model_of(const oracle& o) {
  const json& m = o.record["model"];
  return {.heads = m.value("heads", 0),
          .kv_heads = m.value("kv_heads", 0),
          .experts = m.value("experts", 0),
          .seq = m.value("seq_len", 0)};
}

bool accepted_model(const oracle& o) {
  report out;
  check_model(out, model_of(o), *in_rankc(o));
  return accepts(out);
}

const std::vector<exception> model_exceptions{
    {"defect 7 of HyperParallel, HP-13, TT-9: experts of a model that has none, or does not say, are not "
     "checked",
     [](const oracle& o) { return o.rule.empty() && o.in("ep") > 1 && model_of(o).experts == 0; }, true,
     false, 53},
    {"MG-13, C9: kv heads are not replicated here, where tp is a multiple of them",
     [](const oracle& o) {
       return o.system == "megatron" && o.rule.empty() && o.in("tp") > model_of(o).kv_heads &&
              model_of(o).kv_heads > 0;
     },
     true, false, 9},
};

}  // namespace

TEST_CASE("every model gets the verdict of its system") {
  std::vector<oracle> with_model;
  for (const oracle& o : read_oracles())
    if (const auto d = in_rankc(o); o.record.contains("model") && o.accepted() && d && accepted(*d))
      with_model.push_back(o);
  CHECK(with_model.size() == 441);
  CHECK(check_verdicts(
            with_model, model_exceptions, [](const oracle& o) { return o.rule.empty(); }, accepted_model) ==
        379);
}

}  // namespace rankc::test
