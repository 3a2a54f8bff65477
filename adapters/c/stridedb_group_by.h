/* Sums, counts, smallest and largest values of the rows of a table, a group for each prefix of
 * keys. stridedb.h includes this header and says what holds for all functions.
 *
 *   // Keys: 4 bytes of a zone, then 8 of a time; values: f32. What came of each zone?
 *   stride_group_options o = {sizeof o, 4, STRIDE_NUMBERS_F32, 1, 0, 0, 0};
 *   stride_groups* groups;
 *   stride_group_columns zones = {sizeof zones};
 *   stride_group_by(snapshot, weights, NULL, &o, &groups);
 *   stride_groups_read(groups, &zones);
 *   for (uint64_t g = 0; g < zones.groups; ++g) use(zones.float_sums[g]);
 */
#ifndef STRIDEDB_GROUP_BY_H
#define STRIDEDB_GROUP_BY_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stride_groups stride_groups;

/* Flags are 0 or 1. Groups are counted in any case. */
typedef struct stride_group_options {
  size_t size;           /* sizeof(stride_group_options) */
  uint32_t prefix_bytes; /* rows whose keys begin with the same so many bytes are a group, a shorter
                            key is one of its own; 0: all rows are one group */
  int numbers;       /* the type of the values; STRIDE_NUMBERS_NONE: that of a table of numbers */
  int sum;           /* 0; 1: sums are wanted */
  int min;           /* 0; 1: the smallest value of each group */
  int max;           /* 0; 1: the largest */
  uint32_t reserved; /* 0 */
} stride_group_options;
/* Sets the defaults: counts of one group of all rows. As stride_options_init(). */
STRIDE_C_API int stride_group_options_init(stride_group_options* options, size_t size);

/* Groups the rows in `range` (NULL: all of them; its reverse and batch_rows are not looked at). The
 * caller releases *groups, which any number of threads may read at once.
 *
 * Integers are summed exactly. Floats are summed in doubles, with the same bits on every run and
 * with any number of threads; NaN and infinities give what IEEE 754 says. STRIDE_INVALID_ARGUMENT
 * also for a value of another width than the type's and for a sum that 64 bits do not hold: with
 * table and key. */
STRIDE_C_API int stride_group_by(stride_snapshot* snapshot, stride_table* table,
                                 const stride_scan_options* range,
                                 const stride_group_options* options, stride_groups** groups);

/* Entry g of each column belongs to group g; groups ascend by key. NULL: was not asked for, or
 * there are no groups. Views, valid until the stride_groups are released. */
typedef struct stride_group_columns {
  size_t size;                 /* sizeof(stride_group_columns), set by the caller */
  uint64_t groups;             /* how many there are */
  stride_column keys;          /* what the keys of each group begin with */
  const uint64_t* counts;      /* rows */
  const int64_t* integer_sums; /* of i32 and i64 */
  const double* float_sums;    /* of f32 and f64 */
  const void* mins;            /* of the values' type. NaN is left out, but for groups that have */
  const void* maxes;           /* nothing else; -0 is smaller than +0 */
} stride_group_columns;
STRIDE_C_API int stride_groups_read(stride_groups* groups, stride_group_columns* columns);
STRIDE_C_API int stride_groups_release(stride_groups* groups);

#ifdef __cplusplus
}
#endif

#endif
