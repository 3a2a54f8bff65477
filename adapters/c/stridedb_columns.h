/* Tables whose rows and keys have typed columns: cells go in and come back as arrays, a column
 * each. Programs include this header beside stridedb.h, which says what holds for all functions.
 *
 *   stride_table_options o;
 *   stride_table_options_init(&o, sizeof o);
 *   o.schema = "id u64 key, name string, score f64?";
 *   stride_table_create_with(db, "users", &o, &users);
 *
 *   stride_cells id = {ids, NULL, NULL, n, 8, 0};                        (n numbers of 8 bytes)
 *   stride_cells columns[] = {{names, name_ends, NULL, n, 0, 0},         (n strings, n + 1 offsets)
 *                             {scores, NULL, is_there, n, 8, 0}};        (bits: which are not null)
 *   stride_keys_create(&memory);
 *   stride_keys_of_cells(memory, users, &id, 1, &keys);
 *   stride_put_columns(t, users, &keys, columns, 2);
 *
 *   stride_get(snapshot, users, &keys, values);
 *   stride_table_column(users, "score", &score);                         (its number: 1)
 *   stride_values_cells(values, users, score, &found);                   (found.data: n numbers)
 *
 * A schema is a list of columns with commas or line ends between: a name, in double quotes where it
 * is more than letters, digits and underscores; a type; `?` behind it where cells may be missing
 * (null); `key` where the column is of the table's keys. Columns of values are numbered from 0 in
 * this order, without those of keys; those of keys likewise. Types are
 *
 *   bool                          1 byte, 0 or 1
 *   i8 i16 i32 i64 u8 u16 u32 u64 f32 f64      as the machine has them, little-endian
 *   date                          days since 1970-01-01, in 4 bytes (an int32_t)
 *   timestamp[s|ms|us|ns]         time since 1970-01-01 00:00:00 in these units, in 8 bytes (an
 *                                 int64_t); timestamp: us
 *   uuid                          16 bytes
 *   string                        UTF-8 of any length
 *   bytes, bytes[16]              of any length, or of this one
 *   f32[64]                       a vector: so many of one of the types in the first four lines
 *
 * Keys are neither null nor vectors, and sort as their columns do: by the first one, where those
 * are equal by the second, and so on. A table's schema is kept in the database and cannot be
 * changed; where it has key columns, key_width of the options stays 0 or is what they need. Scans,
 * erasing and all other calls go on working with keys and values as bytes.
 */
#ifndef STRIDEDB_COLUMNS_H
#define STRIDEDB_COLUMNS_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A view of the cells of one column, one a row. It owns nothing. Cell i is
 *   the `width` bytes from data + i * stride on                         where offsets is NULL,
 *   data[offsets[i]] up to data[offsets[i + 1]], exclusively            elsewhere,
 * and null where bit i % 64 of valid[i / 64] is 0. Numbers need not be aligned. Columns of types
 * that have a width (all but string and bytes) have no offsets and cells of this width, the others
 * have size + 1 ascending offsets, of which the first need not be 0. What lies in the place of a
 * null is not looked at; data may be NULL where no cell has bytes. What is passed in is only read,
 * and not after the call. */
typedef struct stride_cells {
  const void* data;
  const uint64_t* offsets;
  const uint64_t* valid; /* (size + 63) / 64 words; NULL: no cell is null */
  uint64_t size;         /* rows */
  uint32_t width;        /* bytes of a cell; not looked at where there are offsets */
  uint64_t stride; /* bytes from one cell to the next; 0: as `width`. Larger ones read a member
                      of an array of structs. Not looked at where there are offsets */
} stride_cells;

/* The number of the column of values with this name. STRIDE_NOT_FOUND: the table has none, or has
 * no schema. */
STRIDE_C_API int stride_table_column(stride_table* table, const char* name, size_t* column);

/* Puts rows: row i of keys gets cell i of every column. columns: `count` of them, one for each
 * column of values of the schema, in its order. Copies all. STRIDE_INVALID_ARGUMENT also for a
 * table without such columns, another count, columns of different sizes, cells of another width, a
 * null in a column that has none, and as stride_put(): nothing of the call is staged then, the
 * error names column and row, and the transaction goes on. */
STRIDE_C_API int stride_put_columns(stride_transaction* transaction, stride_table* table,
                                    const stride_column* keys, const stride_cells* columns,
                                    size_t count);

/* The cells of one column of what the last stride_get() or stride_match() into `values` has found
 * in `table`: cell i belongs to key (or address) i, and is null where that was not found, whatever
 * the schema says. Any number of columns may be asked for. They lie in the memory of `values` and
 * are valid until it is used for the next batch or released, as is what stride_values_read() has
 * handed out. STRIDE_INVALID_ARGUMENT where there was no such call, it failed, or it was of another
 * table, and for a column that the schema does not have. STRIDE_CORRUPTION: a value is no row of
 * the schema; the error names which. */
STRIDE_C_API int stride_values_cells(stride_values* values, stride_table* table, size_t column,
                                     stride_cells* cells);

/* Memory of the library for keys and their columns, to be used for many batches. It belongs to one
 * thread at a time. The caller releases it. What one of the two functions has put there may be
 * passed to the other one, but not to the same one again. */
typedef struct stride_keys stride_keys;
STRIDE_C_API int stride_keys_create(stride_keys** keys);
STRIDE_C_API int stride_keys_release(stride_keys* keys);

/* Makes keys: key i has cell i of every column. columns: `count` of them, one for each key column
 * of the schema, in its order. *column is in the memory of `keys`, and valid until this function is
 * called with it again or it is released; it serves all calls that take keys.
 * STRIDE_INVALID_ARGUMENT as of stride_put_columns(). */
STRIDE_C_API int stride_keys_of_cells(stride_keys* keys, stride_table* table,
                                      const stride_cells* columns, size_t count,
                                      stride_column* column);

/* The way back, as of a scan's keys: columns[k] becomes key column k of the schema, of which there
 * are `count`, and has a cell for each row of `column`. Valid until this function is called with
 * `keys` again or that is released. STRIDE_INVALID_ARGUMENT also for a row that is no such key; the
 * error names it, and columns are not touched. */
STRIDE_C_API int stride_cells_of_keys(stride_keys* keys, stride_table* table,
                                      const stride_column* column, stride_cells* columns,
                                      size_t count);

#ifdef __cplusplus
}
#endif

#endif
