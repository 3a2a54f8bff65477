/* Reading in the order of keys: cursors that go both ways, the entries next to the keys of a batch,
 * and how many keys lie in a range. Programs include this header themselves; stridedb.h says what
 * holds for all functions.
 *
 *   stride_cursor* cursor;
 *   stride_bytes key, value;
 *   stride_cursor_open(snapshot, table, NULL, &cursor);
 *   int status = stride_cursor_seek(cursor, "b", 1, &key, &value);
 *   for (; status == STRIDE_OK && key.data; status = stride_cursor_next(cursor, &key, &value))
 *     use(&key, &value);
 *   stride_cursor_release(cursor);
 */
#ifndef STRIDEDB_CURSORS_H
#define STRIDEDB_CURSORS_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to one thread at a time. */
typedef struct stride_cursor stride_cursor;

/* All bounds hold together; data NULL: no such bound. Their bytes are copied by
 * stride_cursor_open(). */
typedef struct stride_cursor_options {
  size_t size;         /* sizeof(stride_cursor_options) */
  stride_bytes from;   /* first key */
  stride_bytes to;     /* past the last key */
  stride_bytes prefix; /* only keys that begin with it */
} stride_cursor_options;
/* Sets the defaults: the whole table. As stride_options_init(). */
STRIDE_C_API int stride_cursor_options_init(stride_cursor_options* options, size_t size);

/* options: NULL for the whole table. The cursor is at no entry at first. The caller releases
 * *cursor, which keeps what it reads alive. */
STRIDE_C_API int stride_cursor_open(stride_snapshot* snapshot, stride_table* table,
                                    const stride_cursor_options* options, stride_cursor** cursor);
/* The same of a transaction of stride_begin_reading() (stridedb_transactions.h), with the changes
 * that it has made before. What the cursor passes over counts as read, and the entry that it finds.
 * Once the transaction has ended its moves are STRIDE_CLOSED. */
STRIDE_C_API int stride_transaction_cursor(stride_transaction* transaction, stride_table* table,
                                           const stride_cursor_options* options,
                                           stride_cursor** cursor);
STRIDE_C_API int stride_cursor_release(stride_cursor* cursor);

/* Each moves the cursor, and sets *key and *value to views of the entry that it is at then, which
 * stay valid as long as the cursor lives; key->data is NULL where it is at none, and only then.
 * Either may be NULL. An error stays: later moves return it, too.
 *
 * To the first entry that is not below the key, and to the last one that is not above it. */
STRIDE_C_API int stride_cursor_seek(stride_cursor* cursor, const void* key, uint64_t key_bytes,
                                    stride_bytes* found, stride_bytes* value);
STRIDE_C_API int stride_cursor_seek_for_previous(stride_cursor* cursor, const void* key,
                                                 uint64_t key_bytes, stride_bytes* found,
                                                 stride_bytes* value);
STRIDE_C_API int stride_cursor_seek_to_first(stride_cursor* cursor, stride_bytes* key,
                                             stride_bytes* value);
STRIDE_C_API int stride_cursor_seek_to_last(stride_cursor* cursor, stride_bytes* key,
                                            stride_bytes* value);
/* To the entry after or before the one that it is at; where it is at none it stays so. */
STRIDE_C_API int stride_cursor_next(stride_cursor* cursor, stride_bytes* key, stride_bytes* value);
STRIDE_C_API int stride_cursor_previous(stride_cursor* cursor, stride_bytes* key,
                                        stride_bytes* value);

/* For each of the queries the first entry that is not below it, the first one above it, or the last
 * one that is not above it. keys and values have room for queries->size views each, which are valid
 * while the snapshot lives; keys[i].data is NULL where there is no such entry, and only then.
 * values may be NULL. */
STRIDE_C_API int stride_lower_bound(stride_snapshot* snapshot, stride_table* table,
                                    const stride_column* queries, stride_bytes* keys,
                                    stride_bytes* values);
STRIDE_C_API int stride_upper_bound(stride_snapshot* snapshot, stride_table* table,
                                    const stride_column* queries, stride_bytes* keys,
                                    stride_bytes* values);
STRIDE_C_API int stride_previous(stride_snapshot* snapshot, stride_table* table,
                                 const stride_column* queries, stride_bytes* keys,
                                 stride_bytes* values);

/* How many keys there are from `from` on and below `to`. NULL: no bound. */
STRIDE_C_API int stride_count_range(stride_snapshot* snapshot, stride_table* table,
                                    const stride_bytes* from, const stride_bytes* to,
                                    uint64_t* keys);
/* The same for ranges from row i of `from` to row i of `to`. counts has room for as many. */
STRIDE_C_API int stride_count_ranges(stride_snapshot* snapshot, stride_table* table,
                                     const stride_column* from, const stride_column* to,
                                     uint64_t* counts);

#ifdef __cplusplus
}
#endif

#endif
