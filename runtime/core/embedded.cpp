// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/named_inputs.hpp>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

namespace rankc::runtime {
namespace {

status failed(int code, const char* text) noexcept {
  status s{.code = code};
  std::snprintf(s.text, sizeof s.text, "%s", text);
  return s;
}

void check_size(const char* what, std::size_t has, std::size_t wanted) {
  if (has != wanted)
    throw failure(1, "RC5000: the span of {} has {} elements; it must have {}", what, has, wanted);
}

}  // namespace

status status_of_exception() noexcept {
  try {
    throw;
  } catch (const failure& f) {
    return failed(f.code, f.what());
  } catch (const std::bad_alloc&) {
    return failed(70, "RC5001: no memory is left");
  } catch (const std::exception& e) {
    return failed(70, e.what());
  } catch (...) {
    return failed(70, "RC5002: the application threw an object that is not a std::exception");
  }
}

embedded::embedded() noexcept = default;
embedded::embedded(std::unique_ptr<engine> made, int rank, log_lines log) noexcept
    : engine_(std::move(made)), rank_(rank), log_(std::move(log)) {}
embedded::embedded(embedded&&) noexcept = default;
embedded& embedded::operator=(embedded&&) noexcept = default;
embedded::~embedded() = default;

status embedded::logged(auto&& call) noexcept {
  status s = status_of([&] {
    if (engine_ == nullptr) throw failure(1, "RC5003: no program is embedded here; call embed first");
    call();
  });
  if (!s.ok() && log_) static_cast<void>(status_of([&] { log_(s.text); }));
  return s;
}

void embedded::check_tokens(std::span<const std::int32_t> all) const {
  const description& about = engine_->about();
  check_size("tokens", all.size(), reads_tokens(about) ? about.tokens_of_microbatch() : 0);
  const auto wrong = std::ranges::find_if(all, [&](std::int32_t t) { return !about.is_token(t); });
  if (wrong == all.end()) return;
  throw failure(1, "RC5004: element {} of tokens is {}; the vocabulary has 0 to {}", wrong - all.begin(),
                *wrong, about.vocab_used - 1);
}

/// A document begins at the first token of a sequence, after each end token, and where the application says.
void embedded::check_starts(std::span<const std::int32_t> starts,
                            std::span<const std::int32_t> tokens) const {
  if (starts.empty()) return;
  const description& about = engine_->about();
  if (about.end_of_document < 0)
    throw failure(
        1,
        "RC6303: the plan {} has no documents, so it takes no document starts; give its training an "
        "end_of_document",
        about.name);
  check_size("document starts", starts.size(), tokens.size());
  const auto seq = static_cast<std::size_t>(about.seq);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto position = static_cast<std::int32_t>(i % seq);
    const bool begins = position == 0 || tokens[i - 1] == about.end_of_document;
    if (starts[i] == position || (!begins && starts[i] == starts[i - 1])) continue;
    std::string expected = std::to_string(position);
    if (!begins) expected = std::to_string(starts[i - 1]) + ", where the token before has it, or " + expected;
    throw failure(1, "RC6304: element {} of document starts is {}; expected {}", i, starts[i], expected);
  }
}

void embedded::check_labels(std::span<const std::int32_t> labels, std::span<const std::int32_t> tokens,
                            std::span<const std::int32_t> starts) const {
  const description& about = engine_->about();
  check_size("targets", labels.size(), reads_tokens(about) ? about.tokens_of_microbatch() : 0);
  if (const auto wrong = std::ranges::find_if(labels, [&](std::int32_t t) { return !about.is_label(t); });
      wrong != labels.end())
    throw failure(1, "RC5075: element {} of targets is {}; {}", wrong - labels.begin(), *wrong,
                  legal_labels(about));
  const auto seq = static_cast<std::size_t>(about.seq);
  const auto precedes_border = [&](std::size_t i) {
    const std::size_t next = i + 1;
    return next < starts.size() && next % seq > 0 && starts[next] == static_cast<std::int32_t>(next % seq);
  };
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if ((about.ignores_label_of(tokens[i]) || (about.ignore_across_documents && precedes_border(i))) &&
        labels[i] != about.ignored_label)
      throw failure(1,
                    "RC6260: element {} of targets is {}, and its token ends a document; this plan ignores "
                    "the labels of such tokens: give {}",
                    i, labels[i], about.ignored_label);
}

status embedded::set_batch(int microbatch, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> targets, std::span<const named_array> inputs,
                           std::span<const std::int32_t> document_starts) noexcept {
  return logged([&] {
    check_tokens(tokens);
    check_starts(document_starts, tokens);
    check_labels(targets, tokens, document_starts);
    check_inputs(engine_->about(), inputs);
    const int dp = engine_->about().ranks[static_cast<std::size_t>(rank_)].dp;
    if (!tokens.empty()) engine_->set_batch(dp, microbatch, tokens.data(), targets.data());
    if (!document_starts.empty()) engine_->set_document_starts(dp, microbatch, document_starts.data());
    if (!inputs.empty()) engine_->set_inputs(dp, microbatch, inputs);
  });
}

status embedded::step(const step_input& input, step_output& out) noexcept {
  return logged([&] { out = engine_->step(input); });
}

status embedded::evaluate(double& loss) noexcept {
  return logged([&] { loss = engine_->evaluate(); });
}

bool embedded::has_loss() const noexcept {
  return engine_ != nullptr &&
         engine_->about().ranks[static_cast<std::size_t>(rank_)].pp == engine_->about().loss_at();
}

status embedded::read(region what, std::size_t first, std::span<double> to) noexcept {
  return logged([&] { engine_->read(rank_, what, first, to.size(), to.data()); });
}

status embedded::write(region what, std::size_t first, std::span<const double> from) noexcept {
  return logged([&] { engine_->write(rank_, what, first, from.size(), from.data()); });
}

status embedded::logits(std::size_t token, std::span<double> to) noexcept {
  return logged([&] {
    check_size("logits", to.size(),
               static_cast<std::size_t>(layout_of(engine_->about(), rank_).logits.columns));
    engine_->logits(rank_, token, to.data());
  });
}

}  // namespace rankc::runtime
