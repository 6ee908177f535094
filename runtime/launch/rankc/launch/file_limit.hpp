// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankc::runtime {

/// Raise the number of files that this process may open to its hard limit.
/// Errors: failure (1) if the hard limit is too low for this number of connections.
void raise_file_limit(int connections);

}  // namespace rankc::runtime
