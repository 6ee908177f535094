// SPDX-License-Identifier: Apache-2.0
// The keys that authenticate messages between ranks, and the random numbers from which they are derived.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace rankc::runtime {

using mac_key = std::array<unsigned char, 32>;

inline std::string_view bytes_of(const mac_key& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

/// The code that authenticates a message to everybody who has the key.
/// Source: HMAC (RFC 2104) with SHA-256.
mac_key mac_of(std::string_view key, std::string_view message);

/// Compare two codes in constant time.
bool is_same(const mac_key&, std::string_view code);

inline constexpr std::size_t nonce_bytes = 32;

/// A random number for one use.
/// Errors: failure (75) if the system provides no random bytes.
std::string random_nonce();

/// The key of a job, from which each connection makes its keys.
mac_key key_of_job(std::string_view secret, std::string_view job);

/// The key of a rank's first message.
mac_key opening_key(const mac_key& job);
/// The key of the coordinator's answer to a rank that has sent this nonce.
mac_key answer_key(const mac_key& job, std::string_view rank_nonce);

/// The keys of all later messages. Each connection and each direction has its own.
struct connection_keys {
  mac_key to_coordinator, to_rank;
};
connection_keys keys_of_connection(const mac_key& job, std::string_view rank_nonce,
                                   std::string_view coordinator_nonce);

}  // namespace rankc::runtime
