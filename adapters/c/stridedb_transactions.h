/* Transactions that read too, and are carried out as if they were alone, or not at all.
 * Programs include this header themselves; stridedb.h says what holds for all functions, and
 * docs/transactions.md what is promised.
 *
 *   do {
 *     stride_begin_reading(db, &transaction);
 *     stride_transaction_get_one(transaction, accounts, "ann", 3, &balance);
 *     ...
 *     stride_put_one(transaction, accounts, "ann", 3, changed, changed_bytes);
 *     status = stride_commit(transaction, STRIDE_DURABILITY_DEFAULT);
 *   } while (status == STRIDE_CONFLICT);       // what it had read has changed meanwhile
 */
#ifndef STRIDEDB_TRANSACTIONS_H
#define STRIDEDB_TRANSACTIONS_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A transaction that sees the database as it is now, with its own changes on top. It takes
 * stride_put(), stride_put_one(), stride_erase(), stride_erase_range(), stride_put_columns(), and
 * what ends it; other changes are STRIDE_INVALID_ARGUMENT. stride_commit() and stride_commit_with()
 * are STRIDE_CONFLICT, naming table and key, where another commit has changed what it has read:
 * nothing of it is there then, and it may be done again with another transaction. One that has only
 * written never conflicts, and one that has only read is always STRIDE_OK. STRIDE_CLOSED. */
STRIDE_C_API int stride_begin_reading(stride_database* database, stride_transaction** transaction);

/* These read what stride_get_one(), stride_get() and stride_count() do, and the transaction's own
 * changes. They note what was read: keys, there or not; stride_transaction_count() the whole table.
 * STRIDE_INVALID_ARGUMENT also for a transaction of stride_begin().
 *
 * *value is valid until the transaction changes something or ends. */
STRIDE_C_API int stride_transaction_get_one(stride_transaction* transaction, stride_table* table,
                                            const void* key, uint64_t key_bytes,
                                            stride_bytes* value);
STRIDE_C_API int stride_transaction_get(stride_transaction* transaction, stride_table* table,
                                        const stride_column* keys, stride_values* values);
STRIDE_C_API int stride_transaction_count(stride_transaction* transaction, stride_table* table,
                                          uint64_t* keys);
/* As stride_scan_open(). Each batch counts as read, up to its last key; at the end, the whole
 * range. The scan has the changes that were made before it was opened. Once the transaction has
 * ended it is STRIDE_CLOSED, but must be released still. The scan is used by the transaction's
 * thread, or takes turns with it. */
STRIDE_C_API int stride_transaction_scan(stride_transaction* transaction, stride_table* table,
                                         const stride_scan_options* options, stride_scan** scan);

#ifdef __cplusplus
}
#endif

#endif
