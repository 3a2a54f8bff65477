// Keys of prefix tables, and the text of prefixes and addresses.
#include <cstring>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "engine/prefixes.h"

using namespace stride;
using namespace stride::c;

static_assert(STRIDE_BYTE_STRINGS == byte_strings);
static_assert(STRIDE_HOST_BITS_REFUSE == int(HostBits::refuse) &&
              STRIDE_HOST_BITS_MASK == int(HostBits::mask));

namespace {

// No rows: what is left is the engine's check of the bits, without which the functions of
// storage/prefix_key.h may not be called.
Status check_address_bits(uint32_t address_bits) {
  PrefixKeys none;
  return make_prefix_keys({}, address_bits, HostBits::refuse, &none);
}

Status check_no_strings(uint32_t address_bits) {
  if (address_bits != byte_strings) return check_address_bits(address_bits);
  return Status::invalid("prefixes of byte strings are their own keys")
      .with_remedy("use the strings as they are");
}

Status read_host_bits(int given, HostBits* host_bits) {
  STRIDE_TRY(check_choice(given, STRIDE_HOST_BITS_MASK, "host_bits"));
  *host_bits = static_cast<HostBits>(given);
  return {};
}

// Calls make(), which returns a Result<std::string>, and copies that and `terminator` bytes of 0
// into the caller's memory. *bytes: how many there are without the terminator.
template <class Make>
int copy_out(const char* what, void* to, uint64_t room, uint64_t* bytes, uint64_t terminator,
             const Make& make) {
  uint64_t needed = 0;
  int status = run([&]() -> Status {
    if (room) STRIDE_TRY(check_pointer(to, what));
    Result<std::string> made = make();
    if (!made.ok()) return made.status();
    if (bytes) *bytes = made->size();
    needed = made->size() + terminator;
    if (needed <= room && needed) std::memcpy(to, made->c_str(), needed);
    return {};
  });
  if (status != STRIDE_OK || needed <= room) return status;
  return fail_too_small([&] {
    return Status(StatusCode::resource_exhausted,
                  "the " + std::string(what) + " has " + std::to_string(needed) + " bytes" +
                      (terminator ? ", with the NUL," : "") + " and there is room for " +
                      std::to_string(room))
        .with_remedy("give memory of that many bytes");
  });
}

// As copy_out(). format: of the engine.
int copy_text(const void* data, uint64_t data_bytes, const char* what, uint32_t address_bits,
              char* text, uint64_t room, uint64_t* text_bytes,
              std::string (*format)(Bytes, uint32_t)) {
  return copy_out("text", text, room, text_bytes, 1, [&]() -> Result<std::string> {
    Bytes bytes;
    STRIDE_TRY(read_bytes(data, data_bytes, what, &bytes));
    STRIDE_TRY(check_address_bits(address_bits));
    return format(bytes, address_bits);
  });
}

}  // namespace

int stride_prefix_key_width(uint32_t address_bits, uint32_t* key_width) {
  return run([&] {
    STRIDE_TRY(check_pointer(key_width, "key_width"));
    STRIDE_TRY(check_address_bits(address_bits));
    *key_width = prefix_key_width(address_bits);
    return Status();
  });
}

int stride_make_prefix_keys(const stride_column* addresses, const uint16_t* lengths,
                            uint32_t address_bits, int host_bits, void* keys) {
  return run([&] {
    Column rows;
    HostBits what_to_do;
    STRIDE_TRY(read_queries(addresses, "addresses", &rows));
    STRIDE_TRY(read_host_bits(host_bits, &what_to_do));
    STRIDE_TRY(check_no_strings(address_bits));
    if (rows.size == 0) return Status();
    STRIDE_TRY(check_pointer(lengths, "lengths"));
    STRIDE_TRY(check_pointer(keys, "keys"));
    PrefixKeys made;
    STRIDE_TRY(make_prefix_keys({rows, lengths}, address_bits, what_to_do, &made));
    std::memcpy(keys, made.keys().data, made.keys().bytes());
    return Status();
  });
}

int stride_split_prefix_keys(const stride_column* keys, uint32_t address_bits, void* addresses,
                             uint16_t* lengths) {
  return run([&] {
    Column rows;
    STRIDE_TRY(read_queries(keys, "keys", &rows));
    STRIDE_TRY(check_no_strings(address_bits));
    auto* to = static_cast<std::byte*>(addresses);
    for (uint64_t i = 0; i < rows.size; ++i) {
      Bytes key = rows[i];
      if (!is_prefix_key(key, address_bits))
        return Status::invalid("row " + std::to_string(i) + ": these " +
                               std::to_string(key.size()) + " bytes are no key of a prefix of " +
                               std::to_string(address_bits) + "-bit addresses");
      Bytes address = prefix_address(key, address_bits);
      if (addresses) std::memcpy(to + i * address.size(), address.data(), address.size());
      if (lengths) lengths[i] = static_cast<uint16_t>(prefix_length(key, address_bits));
    }
    return Status();
  });
}

int stride_parse_prefix(const char* text, uint32_t address_bits, int host_bits, void* key,
                        uint64_t room, uint64_t* key_bytes) {
  return copy_out("key", key, room, key_bytes, 0, [&]() -> Result<std::string> {
    HostBits what_to_do;
    STRIDE_TRY(check_pointer(text, "text"));
    STRIDE_TRY(read_host_bits(host_bits, &what_to_do));
    return parse_prefix(text, address_bits, what_to_do);
  });
}

int stride_parse_address(const char* text, uint32_t address_bits, void* address, uint64_t room,
                         uint64_t* address_bytes) {
  return copy_out("address", address, room, address_bytes, 0, [&]() -> Result<std::string> {
    STRIDE_TRY(check_pointer(text, "text"));
    return parse_address(text, address_bits);
  });
}

int stride_format_prefix(const void* key, uint64_t key_bytes, uint32_t address_bits, char* text,
                         uint64_t room, uint64_t* text_bytes) {
  return copy_text(key, key_bytes, "key", address_bits, text, room, text_bytes, format_prefix);
}

int stride_format_address(const void* address, uint64_t address_bytes, uint32_t address_bits,
                          char* text, uint64_t room, uint64_t* text_bytes) {
  return copy_text(address, address_bytes, "address", address_bits, text, room, text_bytes,
                   format_address);
}
