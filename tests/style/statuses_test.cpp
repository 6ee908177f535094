// SPDX-License-Identifier: Apache-2.0
// Sample calls of libraries: a dropped status is found, and a checked one is not.
#include "rules.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace rankc::style;

namespace {

std::size_t dropped(const std::string& statements) {
  return dropped_statuses(code(lex("void f() { g(); " + statements + " }").tokens)).size();
}

}  // namespace

TEST_CASE("a call of a library that is a whole statement drops its status") {
  CHECK(dropped("cudaFree(p);") == 1);
  CHECK(dropped("::cudaFree(p);") == 1);
  CHECK(dropped("if (p) cudaFree(p); else cudaSetDevice(f(1));") == 2);
  CHECK(dropped("for (auto e : all) { ncclCommDestroy(e); }") == 1);
  CHECK(dropped("do cublasLtDestroy(h); while (i);") == 1);
  CHECK(dropped("const auto free = [](auto p) { cuMemFree(p); };") == 1);
  CHECK(dropped("switch (i) { case kind::a: cudnnDestroy(p); break; default: cudaFree(p); }") == 2);
  CHECK(dropped("(void)cudaFree(p);") == 1);
}

TEST_CASE("a status that is read is not dropped") {
  CHECK(dropped("check(r, cudaFree(p), \"cudaFree\");") == 0);
  CHECK(dropped("const cudaError_t status = cudaFree(p);") == 0);
  CHECK(dropped("x = a ? b : cudaFree(p);") == 0);
  CHECK(dropped("return cudaFree(p);") == 0);
  CHECK(dropped("if (cudaFree(p) != cudaSuccess) return;") == 0);
  CHECK(dropped("x = cudaErrors{cudaFree(p)};") == 0);
}

TEST_CASE("other names, and functions without a status, are none of these calls") {
  CHECK(dropped("cuda::read(p); cudart(p); custom(p); ncclx(p); o.cudaFree(p); culprit(); cudaFreed;") == 0);
  CHECK(dropped("cudaGetLastError(); cudnnGetLastErrorString(text, 9);") == 0);
  CHECK(dropped("cudaError_t cudaFree(void* p);") == 0);
}

TEST_CASE("a kernel launch is followed by a check of its error") {
  CHECK(dropped("k<<<1, 2, 0, s>>>(p);") == 1);
  CHECK(dropped("k<<<1, 2, 0, s>>>(p); g(); check(r, cudaGetLastError(), \"k\");") == 1);
  CHECK(dropped("if (a) k<<<f(1), 2>>>(p); else check(r, cudaGetLastError(), \"k\");") == 0);
  CHECK(dropped("k<float><<<1, 2>>>(p); check(r, cudaGetLastError(), \"k\");") == 0);
  CHECK(dropped("k<<<1, 2>>>(p); const cudaError_t status = cudaPeekAtLastError();") == 0);
}
