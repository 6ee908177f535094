// SPDX-License-Identifier: Apache-2.0
// Runs the test cases of an executable. A run that checks nothing fails: the filters match no test case, or a
// test case makes no assertion.
#pragma once
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

/// Counts the test cases that run, and names those without an assertion.
class assertion_counter : public doctest::IReporter {
 public:
  explicit assertion_counter(const doctest::ContextOptions&) {}
  void test_run_start() override {
    empty_ = false;
    cases_ = 0;
  }
  void test_case_start(const doctest::TestCaseData& data) override {
    name_ = data.m_name;
    ++cases_;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.numAssertsCurrentTest > 0) return;
    std::fprintf(stderr, "the test case \"%s\" makes no assertion\n", name_);
    empty_ = true;
  }
  void test_run_end(const doctest::TestRunStats&) override {
    if (cases_ == 0) std::fprintf(stderr, "no test case matches the filters\n");
    empty_ |= cases_ == 0;
  }
  void report_query(const doctest::QueryData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  /// Whether the last run, or one of its test cases, checked nothing; false after a query.
  static bool found_empty() { return empty_; }

 private:
  static inline bool empty_ = false;
  static inline int cases_ = 0;
  const char* name_ = "";
};
REGISTER_LISTENER("assertion_counter", 1, assertion_counter);

/// The exit code: doctest's, or 1 if the run checked nothing.
inline int run_tests(doctest::Context& context) {
  const int code = context.run();
  return code == 0 && assertion_counter::found_empty() ? 1 : code;
}
