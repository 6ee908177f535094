// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/keys.hpp>

#include <rankc/runtime/failure.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

namespace rankc::runtime {
namespace {

/// A key for one purpose. No label is a prefix of another, because each ends with a zero byte.
mac_key derive(std::string_view from, std::string label, std::string_view context = {}) {
  return mac_of(from, label.append(1, '\0').append(context));
}

}  // namespace

mac_key mac_of(std::string_view key, std::string_view message) {
  mac_key code;
  unsigned int size = code.size();
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), code.data(),
           &size) == nullptr)
    throw failure(70, "RC5360: libcrypto cannot compute HMAC-SHA-256");
  return code;
}

bool is_same(const mac_key& a, std::string_view code) {
  return code.size() == a.size() && CRYPTO_memcmp(a.data(), code.data(), a.size()) == 0;
}

std::string random_nonce() {
  std::string bytes(nonce_bytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw failure(75, "RC5338: the system gives no random numbers");
  return bytes;
}

mac_key key_of_job(std::string_view secret, std::string_view job) { return derive(secret, "rankc job", job); }

mac_key opening_key(const mac_key& job) { return derive(bytes_of(job), "rank opens"); }

mac_key answer_key(const mac_key& job, std::string_view rank_nonce) {
  return derive(bytes_of(job), "coordinator answers", rank_nonce);
}

connection_keys keys_of_connection(const mac_key& job, std::string_view rank_nonce,
                                   std::string_view coordinator_nonce) {
  const std::string both = std::string(rank_nonce).append(coordinator_nonce);
  return {derive(bytes_of(job), "rank to coordinator", both),
          derive(bytes_of(job), "coordinator to rank", both)};
}

}  // namespace rankc::runtime
