/* Scans: ordered reading in batches. stridedb.h includes this header and says what holds for all
 * functions.
 *
 *   stride_scan* scan;
 *   stride_column keys, values;
 *   stride_scan_open(snapshot, table, NULL, &scan);
 *   while (stride_scan_next(scan, &keys, &values) == STRIDE_OK && keys.size > 0) use(&keys,
 * &values); stride_scan_release(scan);
 */
#ifndef STRIDEDB_SCAN_H
#define STRIDEDB_SCAN_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All bounds hold together; data NULL: no such bound. Their bytes are copied by stride_scan_open().
 */
struct stride_scan_options {
  size_t size;         /* sizeof(stride_scan_options) */
  stride_bytes from;   /* first key */
  stride_bytes to;     /* past the last key */
  stride_bytes prefix; /* only keys that begin with it */
  int from_exclusive;  /* 0; 1: the key `from` itself does not belong to it */
  int to_inclusive;    /* 0; 1: the key `to` itself belongs to it */
  int reverse;         /* 0; 1: descending */
  uint32_t batch_rows; /* most rows of a batch; 0: chosen */
};
/* Sets the defaults: the whole table, ascending. As stride_options_init(). */
STRIDE_C_API int stride_scan_options_init(stride_scan_options* options, size_t size);

/* options: NULL for the whole table. The caller releases *scan, which keeps what it reads alive. */
STRIDE_C_API int stride_scan_open(stride_snapshot* snapshot, stride_table* table,
                                  const stride_scan_options* options, stride_scan** scan);
/* Views of the next rows, keys->size of them, 0 at the end, valid until the next call with this
 * scan. Row i of values belongs to row i of keys. What came before an error is right. */
STRIDE_C_API int stride_scan_next(stride_scan* scan, stride_column* keys, stride_column* values);
STRIDE_C_API int stride_scan_release(stride_scan* scan);

#ifdef __cplusplus
}
#endif

#endif
