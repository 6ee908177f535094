// SPDX-License-Identifier: Apache-2.0
// An op of a program, for passes that check each op alone.
#pragma once
#include "passes.hpp"

namespace rankc::codegen::proof {

struct site {
  const program& p;
  int rank, index;
  findings& wrong;

  const op& it() const { return p.ranks[rank].ops[index]; }
  /// The first two holes of the sentence are for the rank and the op.
  template <class... T>
  void refuse(runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
              const T&... facts) const {
    wrong.add(about, rank, it().name, facts...);
  }
};

}  // namespace rankc::codegen::proof
