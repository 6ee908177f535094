// SPDX-License-Identifier: Apache-2.0
// Programs that do not compute the model are refused, and the reason says where. Each is a lowered program
// with one fault and an unchanged order of ops.
#include <doctest/doctest.h>

#include <lora/plans.hpp>

#include <algorithm>
#include <functional>

#include "../../example_plans.hpp"
#include "plans.hpp"
#include "refused.hpp"

namespace refused_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

const subject& eight() {
  static const subject s(examples::plan("gpt_dp2_tp2_pp2"), target::host);
  return s;
}
const subject& adapted() {
  static const subject s = [] {
    for (const split_plan& v : adapting::plans())
      if (v.job == "gpt2" && v.layout == "sp") return subject(v.plan, target::cuda, dtype::bf16);
    throw std::logic_error("no such plan");
  }();
  return s;
}
const subject& llama() {
  static const subject s(small_llama(), target::cuda, dtype::bf16);
  return s;
}

/// Remove the n-th op of a name on all ranks that have it.
void leave_out(subject& s, const std::string& name, std::size_t n = 0) {
  bool found = false;
  for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
    if (const std::vector<op*> here = s.find(r, name); n < here.size()) {
      s.leave_out(r, *here[n]);
      found = true;
    }
  REQUIRE(found);
}

/// Exchange what two ops read at one port each.
void swap_reads(op& a, const char* of_a, op& b, const char* of_b) {
  std::swap(subject::read_of(a, of_a), subject::read_of(b, of_b));
}

}  // namespace

TEST_CASE("the sound programs are accepted") {
  CHECK(eight().reason() == "");
  CHECK(llama().reason() == "");
  CHECK(adapted().reason() == "");
}

TEST_CASE("every rank leaves the norm, and every rank with targets the loss") {
  const auto drop = [](op& end, holding_kind kind) {
    for (std::size_t i = end.reads.size(); i-- > 0;)
      if (end.holds[i].kind == kind) {
        end.reads.erase(end.reads.begin() + static_cast<std::ptrdiff_t>(i));
        end.holds.erase(end.holds.begin() + static_cast<std::ptrdiff_t>(i));
      }
  };
  check_refused(eight(), said{7630, {"7", "8"}},
                [&](subject& s) { drop(s.p.ranks[5].ops.back(), holding_kind::norm); });
  check_refused(eight(), said{7629, {}}, [&](subject& s) {
    for (rank_program& r : s.p.ranks) drop(r.ops.back(), holding_kind::loss);
  });
  const auto leaves_loss = [](const rank_program& r) {
    return std::any_of(r.ops.back().holds.begin(), r.ops.back().holds.end(),
                       [](const auto& h) { return h.kind == holding_kind::loss; });
  };
  int with_loss = 0;
  for (std::size_t rank = 0; rank < eight().p.ranks.size(); ++rank) {
    if (!leaves_loss(eight().p.ranks[rank])) continue;
    ++with_loss;
    check_refused(eight(), said{7753, {std::to_string(rank)}},
                  [&](subject& s) { drop(s.p.ranks[rank].ops.back(), holding_kind::loss); });
  }
  CHECK(with_loss == 4);
}

TEST_CASE("a part of low rank is scaled twice, not added, of another weight, or of one rank's shard alone") {
  const auto renumber = [](subject& s, const char* name) {
    for (op* o : s.find_all(name, "scale")) o->number *= 2;
  };
  check_refused(adapted(), placed{"rank 0, 0F0: layers.1: scale", {7691, {"5", "layers.1: linear"}}},
                [&](subject& s) { renumber(s, "0F0: layers.1"); });
  check_refused(adapted(), placed{"rank 0, 0B0: layers.1: scale", {7691, {"5", "layers.1: linear_dx"}}},
                [&](subject& s) { renumber(s, "0B0: layers.1"); });
  check_refused(adapted(),
                placed{"rank 0, 0F0: layers.2: attention",
                       {7433, {"attention", "a part of layers.2: bias, layers.2: bias, layers.2: bias"}}},
                [](subject& s) { leave_out(s, "0F0: layers.2: linear_add"); });
  check_refused(adapted(),
                placed{"rank 0, 0F0: layers.0: linear of layers.1.wq.lora_a",
                       {7433, {"linear", "layers.0: layer_norm, layers.1.wq.lora_a"}}},
                [](subject& s) {
                  for (int r = 0; r < 2; ++r)
                    swap_reads(*s.find(r, "0F0: layers.0: linear", "linear").at(1), "w",
                               *s.find(r, "0F0: layers.1: linear", "linear").at(1), "w");
                });
  check_refused(
      adapted(),
      placed{"rank 0, norm of whole gradients",
             {7405, {"the gradient of layers.0.wq.lora_a", "features 8..15"}}},
      [](subject& s) { leave_out(s, "gradients of replicated parameters of pipeline rank 0 over tp"); });
}

TEST_CASE("what is frozen is updated") {
  check_refused(adapted(), said{7478, {"layers.0.wq.lora_b"}}, [](subject& s) {
    for (specification::layer& l : s.model.layers)
      for (specification::parameter& p : l.parameters) p.trainable &= p.name != "wq.lora_b";
  });
}

TEST_CASE("a reduction is missing") {
  check_refused(eight(),
                said{7402,
                     {"the gradient of layers.3.wq", "tokens 256..511, 768..1023, 1280..1535 and 1792..2047",
                      "1B0: layers.3: linear_dw", "tokens 256..511", "6", "4"}},
                [](subject& s) { leave_out(s, "over dp"); });
  check_refused(
      eight(),
      said{7402,
           {"the gradient of wpe", "tokens 128..255, 384..511, 640..767, 896..1023 and 4 more",
            "0B0: embedding: position_grad", "tokens 128..255", "1", "0"}},
      [](subject& s) { leave_out(s, "gradients of replicated parameters of pipeline rank 0 over tp"); });
  check_refused(eight(), said{7692, {"embedding: embedding_grad"}},
                [](subject& s) { leave_out(s, "between first and last"); });
  check_refused(eight(),
                said{7402,
                     {"the loss", "tokens 256..511, 768..1023, 1280..1535 and 1792..2047",
                      "1F0: head: cross_entropy", "tokens 256..511", "6", "4"}},
                [](subject& s) { leave_out(s, "loss over dp"); });
  check_refused(
      eight(),
      said{7405,
           {"the norm",
            "features 64..127 of the squares of a gradient; features 256..511 of the squares of a gradient; "
            "features 128..255 of the squares of a gradient"}},
      [](subject& s) { leave_out(s, "gradient norm over tp"); });
  check_refused(
      eight(),
      said{7470,
           {"the norm", "a value that does not occur in the model", "the sum of the gradients' squares"}},
      [](subject& s) { leave_out(s, "gradient norm over pp"); });
  check_refused(llama(), said{7428, {"x", "layers.0: add", "features 8..15 of layers.0: linear"}},
                [](subject& s) { leave_out(s, "all_reduce of o_proj", 2); });
  check_refused(llama(), said{7428, {"top", "head: row_max", "words 16..31"}},
                [](subject& s) { leave_out(s, "all_reduce_max of logits_row_max"); });
  check_refused(llama(), said{7428, {"sums", "head: exp_sums", "words 16..31"}},
                [](subject& s) { leave_out(s, "all_reduce of exp_sums"); });
}

TEST_CASE("a refusal names the op that has not made its part, or lost it") {
  const auto leave_out_one = [](subject& s, int rank, const char* name, const char* row) {
    s.leave_out(rank, *s.find(rank, name, row).at(0));
  };
  check_refused(eight(),
                placed{"rank 4, norm of sharded gradients",
                       {7404,
                        {"the gradient of layers.2.w2", "tokens 1024..1279", "1B2: layers.2: linear_dw", "4",
                         "tokens 1024..1279"}}},
                [&](subject& s) { leave_out_one(s, 4, "1B2: layers.2: linear_dw", "linear_dw"); });
  check_refused(eight(),
                placed{"rank 0, norm of whole gradients",
                       {7404,
                        {"the gradient of layers.0.norm2", "tokens 1536..1663",
                         "0B3: layers.0: layer_norm_dw", "0", "tokens 1536..1663"}}},
                [&](subject& s) { leave_out_one(s, 0, "0B3: layers.0", "layer_norm_dw"); });
  check_refused(llama(),
                placed{"rank 0, norm of sharded gradients",
                       {7404,
                        {"the gradient of layers.1.w2", "tokens 24..31", "0B1: layers.1: linear_dw", "2",
                         "tokens 24..31"}}},
                [&](subject& s) { leave_out_one(s, 2, "0B1: layers.1: linear_dw", "linear_dw"); });
  check_refused(eight(),
                placed{"rank 5, norm of sharded gradients",
                       {7400,
                        {"the gradient of layers.3.wq", "tokens 0..255", "1B1: layers.3: linear_dw", "5",
                         "tokens 0..255", "1B0: layers.3: linear_dw"}}},
                [](subject& s) {
                  for (op* o : s.find(5, "1B1: layers.3: linear_dw", "linear_dw"))
                    subject::port(*o, "dw").adds = false;
                });
  check_refused(
      eight(),
      placed{"rank 4, norm of sharded gradients",
             {7402,
              {"the gradient of layers.3.wq", "tokens 256..511, 768..1023, 1280..1535 and 1792..2047",
               "1B0: layers.3: linear_dw", "tokens 256..511", "6", "4"}}},
      [](subject& s) { leave_out(s, "over dp"); });
  check_refused(
      eight(),
      placed{"rank 4, end",
             {7404, {"the loss", "tokens 1024..1535", "1B2: head: cross_entropy", "4", "tokens 1024..1279"}}},
      [](subject& s) {
        for (int r = 0; r < 8; ++r)
          for (op* o : s.find(r, "2: head: cross_entropy", "cross_entropy")) s.leave_out(r, *o);
      });
}

TEST_CASE("a weight decays that has one dim, or does not though it has two") {
  const auto flip = [](subject& s, const char* from, const char* to) {
    for (view& v : s.find(0, "", "adamw").at(0)->views)
      if (v.port == from) {
        v.port = to;
        return;
      }
  };
  check_refused(eight(), said{7481, {"layers.0.wq", "2"}},
                [&](subject& s) { flip(s, "weight", "undecayed_weight"); });
  check_refused(llama(), said{7480, {"layers.0.norm1", "1"}},
                [&](subject& s) { flip(s, "undecayed_weight", "weight"); });
}

TEST_CASE("a sum over tokens, a moment or the norm is of a type with few digits") {
  const auto retype = [](subject& s, int value) {
    for (rank_program& r : s.p.ranks)
      for (op& o : r.ops)
        for (auto* accesses : {&o.reads, &o.writes})
          for (access& a : *accesses)
            if (a.value == value) {
              a.type = element_type::bf16;
              a.end = a.begin + (a.end - a.begin) / 2;
            }
  };
  check_refused(llama(), said{7574, {"dw", "bf16"}}, [&](subject& s) {
    op& o = *s.find(0, "0B0: layers.1: linear_dw", "linear_dw").at(0);
    retype(s, o.writes.at(0).value);
  });
  check_refused(llama(), said{7574, {"loss", "bf16"}}, [&](subject& s) {
    retype(s, s.find(0, "cross_entropy", "cross_entropy").at(0)->writes.at(0).value);
  });
  check_refused(llama(), said{7610, {"norm", "bf16"}},
                [&](subject& s) { retype(s, s.find(0, "", "sum_squares").at(0)->writes.at(0).value); });
  check_refused(llama(), said{7704, {"the first moment of wte", "bf16"}}, [&](subject& s) {
    op& o = *s.find(1, "", "adamw").at(0);
    retype(s, subject::read_of(o, "first_moment").value);
  });
}

TEST_CASE("a reduction is made twice, or over copies") {
  check_refused(llama(), said{7470, {"the loss", "a value that does not occur in the model", "the loss"}},
                [](subject& s) {
                  const int value = s.new_value();
                  for (int r = 0; r < 4; ++r) {
                    std::vector<op*> sums = s.find(r, "over dp");
                    REQUIRE(!sums.empty());
                    op* last = sums.back();
                    op again = *last;
                    for (std::size_t i = 0; i < again.reads.size(); ++i) {
                      again.reads[i].value = last->writes[i].value;
                      again.writes[i].value = value + 1000 * r + static_cast<int>(i);
                      for (op& o : s.p.ranks[static_cast<std::size_t>(r)].ops)
                        for (access& a : o.reads)
                          if (a.value == last->writes[i].value) a.value = again.writes[i].value;
                    }
                    s.insert_after(r, last, again);
                  }
                });
  check_refused(llama(), said{7500, {"tokens 0..7 and 16..23"}},
                [](subject& s) {  // over tp, whose ranks have the same tokens
                  const auto group = [&](int rank, const char* of) {
                    return s.find(rank, of)[0]->communicator;
                  };
                  for (int r = 0; r < 4; ++r) {
                    const int tp = group(r, "all_reduce of o_proj");
                    for (op* o : s.find(r, "over dp")) o->communicator = tp;
                  }
                });
}

TEST_CASE("a reduction or a gather is another") {
  check_refused(llama(), said{7505, {}}, [](subject& s) {
    for (op* o : s.find_all("all_reduce of o_proj")) o->does = collective_kind::all_reduce_max;
  });
  check_refused(
      eight(),
      said{7501, {"elements 128..255 of 2048 x 0..127 of 128", "elements 0..127 of 2048 x 0..127 of 128"}},
      [](subject& s) {
        for (op* o : s.find_all("all_gather of n1")) o->does = collective_kind::all_reduce;
      });
  check_refused(eight(), said{7582, {"65536", "131072"}}, [](subject& s) {
    for (op* o : s.find_all("reduce_scatter of o_proj")) o->does = collective_kind::all_gather;
  });
  check_refused(eight(), said{7582, {"65536", "131072"}}, [](subject& s) {
    s.find_all("reduce_scatter of o_proj")[1]->does = collective_kind::all_gather;
  });
}

TEST_CASE("rows move beside what is no product of rows") {
  const subject sound(examples::plan("gpt_dp2_tp2_pp2"), target::cuda, dtype::bf16);
  CHECK(sound.reason() == "");
  check_refused(sound, said{7519, {"0B0: embedding: embedding_grad"}}, [](subject& s) {
    for (op* o : s.find_all("embedding: all_gather of dy")) o->by_rows = 1;  // these kernels sum over rows
  });
  check_refused(sound, said{7520, {"1F0: head: linear", "w"}}, [](subject& s) {
    for (op* o : s.find_all("head: all_gather of n")) {
      op& product = o[1];
      subject::read_of(product, "w") = subject::read_of(product, "x");
    }
  });
  check_refused(sound, said{7521, {"1F0: head: linear", "0"}}, [](subject& s) {
    for (op* o : s.find_all("head: all_gather of n")) subject::read_of(o[1], "x") = o[0].reads[0];
  });
  check_refused(sound, said{7515, {}}, [](subject& s) {
    std::vector<op*> pairs;
    for (op& o : s.p.ranks[0].ops)
      if (o.by_rows > 0) pairs.push_back(&o);
    REQUIRE(pairs.size() > 4);
    pairs[2]->by_rows = 0;
  });
}

TEST_CASE("a factor is another") {
  check_refused(llama(),
                placed{"rank 0, 0F0: head: cross_entropy", {7433, {"cross_entropy", "head: exp_sums"}}},
                [](subject& s) {
                  for (op* o : s.find_all("cross_entropy", "cross_entropy")) o->number *= 2;
                });
  check_refused(llama(),
                placed{"rank 1, 0B0: head: softmax_grad", {7433, {"cross_entropy_grad", "head: exp_sums"}}},
                [](subject& s) { s.find_all("softmax_grad")[1]->number /= 2; });
  check_refused(eight(), placed{"rank 4, 1B0: head: exp_sums_grad", {7557, {"5", "4"}}}, [](subject& s) {
    for (op* o : s.find_all("exp_sums_grad")) o->row = "exp_sums";
  });
}

TEST_CASE("an operand is another") {
  check_refused(eight(),
                placed{"rank 0, 0F0: layers.0: bias of layers.0.wq.bias",
                       {7690, {"layers.0: linear, layers.0.wq.bias"}}},
                [](subject& s) {
                  std::vector<op*> of = s.find(0, "layers.0: linear", "linear");
                  swap_reads(*of[0], "w", *of[1], "w");
                });
  check_refused(eight(),
                placed{"rank 0, 0F0: layers.0: attention",
                       {7433, {"attention", "layers.0: bias, layers.0: bias, layers.0: bias"}}},
                [](subject& s) {
                  op& o = *s.find(0, "layers.0: attention", "attention")[0];
                  swap_reads(o, "k", o, "v");
                });
  check_refused(eight(),
                placed{"rank 0, 0F0: layers.0: layer_norm of layers.0.norm1.bias, layers.0.norm1",
                       {7433, {"layer_norm", "embedding: position, layers.0.norm1.bias, layers.0.norm1"}}},
                [](subject& s) {
                  op& o = *s.find(0, "layers.0: layer_norm", "layer_norm")[0];
                  swap_reads(o, "gain", o, "shift");
                });
  check_refused(eight(),
                placed{"rank 0, 0B0: layers.0: linear_dw",
                       {7433, {"linear_dw", "layers.0: gradient of add, layers.1: attention"}}},
                [](subject& s) {
                  op& o = *s.find(0, "layers.0: linear_dw", "linear_dw")[2];
                  subject::read_of(o, "x") =
                      subject::read_of(*s.find(0, "layers.1: linear_dw", "linear_dw")[2], "x");
                });
  check_refused(eight(), placed{"rank 0, 0B0: layers.0: gelu_grad", {7576, {"dx", "x"}}}, [](subject& s) {
    op& o = *s.find(0, "layers.0: gelu_grad")[0];
    swap_reads(o, "dy", o, "x");
  });
  check_refused(eight(), said{7414, {"logits", "tokens 1536..1791", "2048", "tokens 0..255", "2048"}},
                [](subject& s) {
                  op& o = *s.find(4, "cross_entropy_grad").back();
                  o.reads[0].value = s.find(4, "cross_entropy_grad").front()->reads[0].value;
                });
  check_refused(eight(), placed{"rank 0, 0F0: layers.1: add", {7690, {"layers.1: bias, layers.1: bias"}}},
                [](subject& s) {
                  for (op* o : s.find_all("layers.1: add"))
                    subject::read_of(*o, "a") = subject::read_of(*o, "b");
                });
}

TEST_CASE("a microbatch is lost, or counted twice") {
  check_refused(eight(),
                said{7400,
                     {"the gradient of layers.0.w2", "tokens 0..511", "0B1: layers.0: linear_dw", "0",
                      "tokens 0..255", "0B0: layers.0: linear_dw"}},
                [](subject& s) {
                  for (op* o : s.find_all("layers.0: linear_dw", "linear_dw", 6))
                    subject::port(*o, "dw").adds = false;
                });
  check_refused(eight(),
                said{7400,
                     {"the gradient of layers.1.w1.bias", "tokens 256..511", "0B1: layers.1: bias_grad", "2",
                      "tokens 256..511", "0B0: layers.1: bias_grad"}},
                [](subject& s) {
                  subject::port(*s.find(2, "layers.1: bias_grad", "bias_grad")[7], "db").adds = false;
                });
  check_refused(eight(),
                said{7400,
                     {"the loss", "tokens 0..511", "1F1: head: cross_entropy", "4", "tokens 0..255",
                      "1F0: head: cross_entropy"}},
                [](subject& s) {
                  for (op* o : s.find_all("cross_entropy", "cross_entropy", 1))
                    subject::port(*o, "loss").adds = false;
                });
  check_refused(eight(), said{7560, {"dw"}}, [](subject& s) {
    subject::port(*s.find(0, "0B0: layers.0: linear_dw", "linear_dw")[0], "dw").adds = true;
  });
  check_refused(eight(), said{7471, {"the gradient of layers.0.w2", "tokens 1024..1279"}}, [](subject& s) {
    op* o = s.find(0, "0B2: layers.0: linear_dw", "linear_dw")[0];
    op more = *o;
    const int read = more.writes[0].replaces;
    const int value = s.new_value();
    for (op& other : s.p.ranks[0].ops)
      for (access& a : other.reads)
        if (a.value == o->writes[0].value) a.value = value;
    more.reads[static_cast<std::size_t>(read)].value = o->writes[0].value;
    more.writes[0].value = value;
    s.insert_after(0, o, more);
  });
  check_refused(eight(),
                placed{"rank 0, 0B1: layers.0: linear_dw of the gradient of layers.0.wv", {7675, {}}},
                [](subject& s) {
                  // The two results replace each other's operand.
                  std::vector<op*> of = s.find(0, "0B1: layers.0: linear_dw", "linear_dw");
                  for (const std::size_t k : {2u, 3u}) REQUIRE(of[k]->writes[0].replaces >= 0);
                  std::swap(of[2]->reads[static_cast<std::size_t>(of[2]->writes[0].replaces)].value,
                            of[3]->reads[static_cast<std::size_t>(of[3]->writes[0].replaces)].value);
                });
}

TEST_CASE("a part is another") {
  check_refused(eight(), said{7437, {"tokens 0..127", "64", "128"}}, [](subject& s) {
    for (op* o : s.find_all("0F0: embedding: position"))
      for (const char* port : {"y", "x"}) subject::port(*o, port).first += 64;
  });
  check_refused(eight(), said{7425, {"words", "0", "table", "words 128..255"}}, [](subject& s) {
    for (op* o : s.find_all("0F0: embedding: embedding", "embedding")) subject::port(*o, "table").first = 0;
  });
  check_refused(eight(), said{7425, {"words", "0", "logits", "words 128..255"}}, [](subject& s) {
    for (op* o : s.find_all("exp_sums_grad"))
      for (view& v : o->views) v.first = 0;
  });
  check_refused(llama(), placed{"rank 0, 0F0: layers.0: rope", {7439, {"4", "8"}}},
                [](subject& s) { s.find_all("rope")[0]->seq = 4; });
  check_refused(llama(),
                placed{"rank 0, 0F0: layers.0: rope",
                       {7433, {"rope", "layers.0: linear, a value that does not occur in the model"}}},
                [](subject& s) {
                  for (int r = 0; r < 4; ++r)
                    for (holding& h : s.p.ranks[static_cast<std::size_t>(r)].ops[0].holds)
                      if (h.kind == holding_kind::rotary) h.theta *= 2;
                });
  check_refused(llama(),
                placed{"rank 0, 0F0: layers.0: rope",
                       {7433, {"rope", "layers.0: linear, a value that does not occur in the model"}}},
                [](subject& s) {
                  for (int r = 0; r < 4; ++r)
                    for (holding& h : s.p.ranks[static_cast<std::size_t>(r)].ops[0].holds)
                      if (h.kind == holding_kind::rotary)
                        h.scaling = {.by = rankc::rope_scaling::linear, .factor = 2};
                });
  const auto doubled = [](const char* row) { return [=](subject& s) { s.find_all(row)[0]->number *= 2; }; };
  check_refused(eight(),
                placed{"rank 0, 0F0: layers.0: layer_norm of layers.0.norm1, layers.0.norm1.bias",
                       {7433, {"layer_norm", "embedding: position, layers.0.norm1, layers.0.norm1.bias"}}},
                doubled("layer_norm"));
  check_refused(llama(),
                placed{"rank 0, 0F0: layers.0: rms_norm of layers.0.norm1",
                       {7433, {"rms_norm", "embedding: embedding, layers.0.norm1"}}},
                doubled("rms_norm"));
  check_refused(eight(), placed{"rank 0, 0F0: layers.0: attention", {7441, {"2", "256", "256"}}},
                [](subject& s) {
                  for (op* o : s.find_all("attention", "attention")) o->seq *= 2;
                });
  check_refused(
      eight(),
      said{7501, {"elements 256..511 of 2048 x 0..127 of 128", "elements 0..255 of 2048 x 0..127 of 128"}},
      [](subject& s) {
        for (holding& h : s.p.ranks[2].ops[0].holds)
          if (h.kind == holding_kind::ids) h.box[0].first = 0;
      });
  check_refused(eight(), said{7414, {"b", "features 64..127", "128", "features 0..63", "128"}},
                [](subject& s) {
                  for (holding& h : s.p.ranks[1].ops[0].holds)
                    if (h.name == "layers.0.wq") h.box[0].first = 0;
                });
  check_refused(llama(), said{7552, {"y", "128"}}, [](subject& s) {
    op& o = *s.find(0, "linear", "linear")[0];
    subject::port(o, "y").offset += 8;
  });
  check_refused(llama(), said{7433, {"rope", "layers.0: linear, the rotary table"}}, [](subject& s) {
    op& o = *s.find(0, "rope", "rope")[0];
    subject::port(o, "x").offset += 8;
    subject::port(o, "y").offset += 8;
  });
  check_refused(llama(), said{7675, {}}, [](subject& s) {
    op& o = *s.find(0, "attention", "attention")[0];
    --subject::port(o, "k").stride;
  });
  check_refused(llama(), said{7566, {"gate", "23", "up", "24"}},
                [](subject& s) { --subject::port(*s.find_all("swiglu")[0], "gate").stride; });
}

TEST_CASE("a message is another") {
  check_refused(eight(),
                said{7414, {"targets", "tokens 512..767", "2048", "tokens 0..127 and 640..767", "2048"}},
                [](subject& s) {
                  std::vector<op*> sends = s.find(0, "stage 0 -> 1"), receives = s.find(4, "stage 0 -> 1");
                  sends[1]->reads[0].value = sends[0]->reads[0].value;
                  const int before = receives[1]->writes[0].value;
                  receives[1]->writes[0].value = s.new_value();
                  for (op& o : s.p.ranks[4].ops)
                    for (access& a : o.reads)
                      if (a.value == before) a.value = receives[1]->writes[0].value;
                });
  check_refused(eight(), said{7543, {"F0: stage 0 -> 1"}}, [](subject& s) {
    for (const int r : {0, 1})
      for (op* o : s.find(r, "stage 0 -> 1")) o->peer ^= 1;
  });
}

TEST_CASE("the norm counts a copy, or leaves out a part") {
  check_refused(eight(), said{7791, {"layers.2.norm1"}}, [](subject& s) {
    for (op* o : s.find_all("norm of whole gradients")) o->views.erase(o->views.begin());
  });
  check_refused(
      eight(),
      said{7470,
           {"the norm", "a value that does not occur in the model", "the sum of the gradients' squares"}},
      [](subject& s) {
        for (op* o : s.find_all("norm of whole gradients")) subject::port(*o, "norm").adds = false;
      });
  check_refused(eight(), said{7405, {"the norm", "features 64..127 of the squares of a gradient"}},
                [](subject& s) {  // a shard that the norm of sharded gradients counts already
                  for (int r = 0; r < 8; ++r) {
                    op &sharded = *s.find(r, "norm of sharded")[0], &whole = *s.find(r, "norm of whole")[0];
                    const view first = sharded.views[0];
                    whole.views[0] = first;
                    whole.views[0].accesses = {static_cast<int>(whole.reads.size()), 1};
                    whole.reads.push_back(sharded.reads[static_cast<std::size_t>(first.accesses.first)]);
                  }
                });
}

TEST_CASE("an update is another") {
  check_refused(eight(), placed{"rank 0, optimizer", {7272, {"0", "32768", "0"}}}, [](subject& s) {
    op& o = *s.find(0, "optimizer")[0];
    o.views.erase(o.views.begin(), o.views.begin() + 7);
  });
  check_refused(
      eight(),
      said{7470,
           {"the norm", "a value that does not occur in the model", "the sum of the gradients' squares"}},
      [](subject& s) {
        op& o = *s.find(3, "optimizer")[0];
        o.reads.back().value = s.find(3, "norm of whole")[0]->writes[0].value;
      });
  check_refused(eight(),
                said{7402,
                     {"the gradient of layers.1.wq", "tokens 0..255, 512..767, 1024..1279 and 1536..1791",
                      "0B0: layers.1: linear_dw", "tokens 0..255", "1", "3"}},
                [](subject& s) {
                  op& o = *s.find(3, "optimizer")[0];
                  op& sum = *s.find(3, "over dp")[0];
                  for (access& a : o.reads)
                    for (std::size_t i = 0; i < sum.writes.size(); ++i)
                      if (a.value == sum.writes[i].value) a.value = sum.reads[i].value;
                });
  check_refused(eight(), said{7477, {"layers.0.wq", "a value that does not occur in the model"}},
                [](subject& s) {
                  op& o = *s.find(3, "optimizer")[0];
                  std::swap(o.reads[2], o.reads[3]);
                });
  check_refused(eight(),
                placed{"rank 5, end",
                       {7470,
                        {"the weight of layers.2.wq", "a value that does not occur in the model",
                         "layers.2.wq after the update"}}},
                [](subject& s) {
                  op& o = s.p.ranks[5].ops.back();
                  std::swap(o.reads[0].value, o.reads[1].value);
                });
  check_refused(eight(), said{7461, {"wte2"}}, [](subject& s) {
    for (rank_program& r : s.p.ranks)
      for (holding& h : r.ops[0].holds)
        if (h.name == "wte") h.name = "wte2";
  });
}

TEST_CASE("what the checker does not know it does not claim") {
  subject s = llama();
  s.find(0, "linear", "linear")[0]->row = "linear_of_mine";
  const equivalence e = s.check();
  CHECK(!e.holds);
  CHECK(e.has_unknown_row);
  CHECK(placed_of(e.reasons.front()) == placed{"", {7635, {"linear_of_mine"}}});
  s = llama();
  s.order.ok = false;
  CHECK(placed_of(s.reason()) == placed{"", {7455, {}}});
}

}  // namespace refused_test
