// SPDX-License-Identifier: Apache-2.0
// Functions that read parts of a line of the table of facts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// The parts of a text between separators, without blanks around them; a blank text has no parts.
std::vector<std::string> parts_of(std::string_view text, std::string_view separators);

/// The index of a row. `from`: the row whose facts name it.
/// Errors: refusal where the table has no such row.
int find_row(const std::vector<fact>&, std::string_view name, const fact& from);

/// The index of a port of a row.
/// Errors: refusal where the row has no such port.
int port_of(const fact&, const std::string& name);

/// The ports of a line.
/// Errors: refusal where a port is not as struct line says.
std::vector<port> read_ports(const line&);

/// Reads the needs and the attributes of a line whose ports have been read.
/// Errors: refusal where struct line does not list a word, or the word names something that the row does not
/// have.
void read_needs(const line&, fact&, const std::vector<fact>& all);

}  // namespace rankc::codegen::algebra
