// SPDX-License-Identifier: Apache-2.0
// Short names for the targets of the core. The targets are inside rankc::runtime because they use its names.
#pragma once

namespace rankc {
namespace runtime::host {}
namespace runtime::cuda {}
namespace host = runtime::host;
namespace cuda = runtime::cuda;
}  // namespace rankc
