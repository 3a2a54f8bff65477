/* Prefix tables of the C interface: the longest prefix of an address, as routers look it up.
 * stridedb.h includes this header and says what holds for all functions.
 *
 * A table whose address_bits are not 0 (stride_table_options) has prefixes of addresses as its
 * keys. An address has (address_bits + 7) / 8 bytes; its first bit is the highest of the first
 * byte, and bits that its last byte has left over are 0. The key of a prefix is its address, with
 * all bits behind the prefix 0, and then its length in bits: a byte where addresses have up to 255
 * bits, else two, big-endian. 10.0.0.0/8 is 0A 00 00 00 08. So keys ascend by address, and a prefix
 * comes right before all that it covers. The functions below make such keys; stride_get() and scans
 * treat them as any others, and what writes refuses all other keys. Where addresses are
 * STRIDE_BYTE_STRINGS, prefixes are whole bytes, and each is its own key; their lengths are in bits
 * all the same.
 *
 *   stride_table_options o = {sizeof o, 0, 32};
 *   char key[5], address[4];
 *   stride_table_create_with(db, "routes", &o, &routes);
 *   stride_parse_prefix("10.0.0.0/8", 32, STRIDE_HOST_BITS_REFUSE, key, sizeof key, NULL);
 *   stride_put_one(t, routes, key, sizeof key, "next hop", 8);
 *   ...
 *   stride_parse_address("10.1.2.3", 32, address, sizeof address, NULL);
 *   stride_match_one(snapshot, routes, address, sizeof address, &value, NULL, NULL);
 */
#ifndef STRIDEDB_PREFIXES_H
#define STRIDEDB_PREFIXES_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Refuses (STRIDE_INVALID_ARGUMENT) or clears bits that an address has set behind its prefix. */
enum { STRIDE_HOST_BITS_REFUSE = 0, STRIDE_HOST_BITS_MASK = 1 };

/* Bytes of a key: 5 where addresses have 32 bits, 17 where they have 128; 0, for any number, with
 * STRIDE_BYTE_STRINGS. STRIDE_INVALID_ARGUMENT, as of all functions with address_bits, where those
 * are not possible. */
STRIDE_C_API int stride_prefix_key_width(uint32_t address_bits, uint32_t* key_width);

/* Row i of keys becomes the key of the first lengths[i] bits of address i. keys: addresses->size
 * times stride_prefix_key_width() bytes of the caller, undefined after an error.
 * STRIDE_INVALID_ARGUMENT, with the row, also for host bits (unless they are masked), for a length
 * of more than address_bits and for an address of another width; and for STRIDE_BYTE_STRINGS. */
STRIDE_C_API int stride_make_prefix_keys(const stride_column* addresses, const uint16_t* lengths,
                                         uint32_t address_bits, int host_bits, void* keys);
/* And back: the address of each, one after the other, and the length. Either may be NULL.
 * STRIDE_INVALID_ARGUMENT, with the row, also for what is no key; and for STRIDE_BYTE_STRINGS. */
STRIDE_C_API int stride_split_prefix_keys(const stride_column* keys, uint32_t address_bits,
                                          void* addresses, uint16_t* lengths);

/* The key of a prefix that is written as
 *   10.0.0.0/8, or 10.1.2.3 for all 32 bits     where addresses have 32 bits
 *   2001:db8::/32, or ::1 for all 128 bits      where they have 128 bits
 *   0ab/12, or all digits of an address         hexadecimal, for addresses of any number of bits;
 *                                               digits that are left out are zeros
 *   any text                                    for STRIDE_BYTE_STRINGS, whose bytes it is
 * key: memory of the caller with room for `room` bytes; may be NULL where that is 0. *key_bytes,
 * unless it is NULL: how many the key has, also with STRIDE_TOO_SMALL, where the key has more than
 * `room` and is not written. STRIDE_INVALID_ARGUMENT also for any other text, which
 * stride_last_error() says more about. */
STRIDE_C_API int stride_parse_prefix(const char* text, uint32_t address_bits, int host_bits,
                                     void* key, uint64_t room, uint64_t* key_bytes);
/* The same for an address, written without a length; in hexadecimal with all its digits. */
STRIDE_C_API int stride_parse_address(const char* text, uint32_t address_bits, void* address,
                                      uint64_t room, uint64_t* address_bytes);

/* The text of a key, as stride_parse_prefix() reads it: dotted for 32 bits, as in RFC 5952 for 128,
 * hexadecimal for others. What is no key of such a table is its bytes in hexadecimal. text: as
 * `key` of stride_parse_prefix(); a NUL follows the text, for which there must be room too (64
 * bytes are enough for all of 32 and 128 bits). *text_bytes is without it. */
STRIDE_C_API int stride_format_prefix(const void* key, uint64_t key_bytes, uint32_t address_bits,
                                      char* text, uint64_t room, uint64_t* text_bytes);
/* The same for an address, or for what is none. */
STRIDE_C_API int stride_format_address(const void* address, uint64_t address_bytes,
                                       uint32_t address_bits, char* text, uint64_t room,
                                       uint64_t* text_bytes);

/* Finds the longest prefix of each address of a batch and copies its value into `values`, which
 * stride_values_read() then reads; as stride_get(). Row i belongs to address i, and is not found
 * where no prefix of the table covers that.
 *
 * All calls from here on return STRIDE_INVALID_ARGUMENT also for a table that is no prefix table
 * and for an address that is not as wide as the table says. The first match after stride_open(), or
 * with a snapshot that is older than that of another match, builds what is searched, which takes
 * about as long as to read all keys of the table; commits then keep it up to date. */
STRIDE_C_API int stride_match(stride_snapshot* snapshot, stride_table* table,
                              const stride_column* addresses, stride_values* values);
/* How long the prefix of each address of the last stride_match() into `values` is, in bits; 0 where
 * none was found; NULL where there are no rows. Otherwise as stride_values_read(). */
STRIDE_C_API int stride_values_lengths(stride_values* values, const uint32_t** lengths);
/* As stride_match() and stride_get_into(). lengths: NULL, or room for one of each address, as in
 * stride_values_lengths(); complete with STRIDE_TOO_SMALL too. workspace: 16 bytes an address. */
STRIDE_C_API int stride_match_into(stride_snapshot* snapshot, stride_table* table,
                                   const stride_column* addresses, stride_values* workspace,
                                   stride_buffers* buffers, uint32_t* lengths);
/* As stride_match(), but copies no values, which takes most of its time: see stride_find(). */
STRIDE_C_API int stride_match_references(stride_snapshot* snapshot, stride_table* table,
                                         const stride_column* addresses,
                                         stride_references* references);
/* The prefixes that the last stride_match_references() found for addresses first to first + n - 1,
 * as stride_references_get(): keys[k] is a view of the key, lengths[k] the length in bits, or 0.
 * Either may be NULL. STRIDE_INVALID_ARGUMENT also where the last call was a stride_find(). */
STRIDE_C_API int stride_references_prefixes(stride_references* references, uint64_t first,
                                            uint64_t n, stride_bytes* keys, uint32_t* lengths);

/* The longest prefix of one address. value->data is NULL where there is none, and only then; else a
 * view that is valid while the snapshot lives. key, the same of the prefix's key, and length, in
 * bits or 0, may be NULL. A batch costs far less an address. */
STRIDE_C_API int stride_match_one(stride_snapshot* snapshot, stride_table* table,
                                  const void* address, uint64_t address_bytes, stride_bytes* value,
                                  stride_bytes* key, uint32_t* length);

/* All prefixes of one address, the shortest first: *n of them, at most one more than an address has
 * bits, or than a byte string has bytes. values, keys, lengths: memory of the caller for `room`
 * each, as in stride_match_one(); any may be NULL. STRIDE_TOO_SMALL where there are more: *n says
 * how many, and nothing else is written. */
STRIDE_C_API int stride_match_all(stride_snapshot* snapshot, stride_table* table,
                                  const void* address, uint64_t address_bytes, uint64_t room,
                                  stride_bytes* values, stride_bytes* keys, uint32_t* lengths,
                                  uint64_t* n);

/* Scans a prefix, if it is there, and all prefixes inside it, in the order of keys. key: that of
 * the prefix; STRIDE_INVALID_ARGUMENT also for what is none of such a table. As stride_scan_open().
 */
STRIDE_C_API int stride_scan_inside(stride_snapshot* snapshot, stride_table* table, const void* key,
                                    uint64_t key_bytes, stride_scan** scan);

#ifdef __cplusplus
}
#endif

#endif
