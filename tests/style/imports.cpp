// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

namespace rankc::style {
namespace {

// True if a { belongs to a namespace or to `extern "C"`.
bool is_namespace(const code& source, std::size_t brace) {
  if (source[brace - 1].kind == token_kind::literal) return source.is(brace - 2, "extern");
  std::size_t i = brace - 1;
  while (source.is_word(i) && !source.is(i, "namespace")) i -= source.is(i - 1, "::") ? 2 : 1;
  return source.is(i, "namespace");
}

}  // namespace

std::vector<finding> namespace_imports(const code& source) {
  std::vector<finding> found;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source.is(i, "{") && !is_namespace(source, i)) i = source.partner(i);
    if (source.is(i, "using") && source.is(i + 1, "namespace"))
      found.push_back({source[i].line, "using namespace in a public header"});
  }
  return found;
}

}  // namespace rankc::style
