// SPDX-License-Identifier: Apache-2.0
// The targets of the core by their short names. They lie inside rankc::runtime, whose names they use.
#pragma once

namespace rankc {
namespace runtime::host {}
namespace runtime::cuda {}
namespace host = runtime::host;
namespace cuda = runtime::cuda;
}  // namespace rankc
