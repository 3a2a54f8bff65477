/* Ids of vectors of 32-bit words: which were there before, which are new, and what an id stands
 * for. In memory, or kept in a database. stridedb.h includes this header and says what holds for
 * all functions.
 *
 *   // States of 4 words each: has a search seen them before?
 *   stride_set_options o;
 *   stride_set* seen;
 *   stride_set_options_init(&o, sizeof o);
 *   o.words = 4;
 *   stride_set_create(&o, &seen);
 *   stride_set_find_or_put(seen, states, n, ids, was_new);    (n ids, (n + 63) / 64 words of bits)
 *   stride_set_get(seen, ids, n, back);                       (the same states)
 *
 * A vector is `words` numbers, one behind the other, and every bit pattern is one like any other. A
 * vector that comes several times, in one batch or in several, has one id, and exactly one of them
 * is new. Large batches are fast. Sets and dedup tables belong to one thread at a time.
 */
#ifndef STRIDEDB_DEDUP_H
#define STRIDEDB_DEDUP_H

#include "stridedb.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stride_set stride_set;
typedef struct stride_dedup_table stride_dedup_table;

/* The id of a vector that is not there. */
#define STRIDE_ABSENT UINT64_MAX

/* ---- Sets: in memory ---- */

enum {
  /* Ids are 0, 1, 2, ... in the order of first occurrence. */
  STRIDE_SET_DENSE = 0,
  /* Vectors of 1, 2 or 4 words lie in the hash table itself: one access to memory finds or puts
   * one. An id is a place there, below id_limit. */
  STRIDE_SET_SLOTS = 1,
  /* A vector is a tree of pairs, and equal pairs are one node: vectors that differ in few words
   * take little more than 8 bytes each. An id is a place, as of slots. */
  STRIDE_SET_COMPRESSED = 2
};

typedef struct stride_set_options {
  size_t size;       /* sizeof(stride_set_options) */
  uint32_t words;    /* 2; of each vector, 1 to 64 */
  int form;          /* STRIDE_SET_DENSE */
  uint64_t capacity; /* 65,536; different vectors that fit at once */
  int grows;         /* 1: takes more memory when it is full; 0: STRIDE_RESOURCE_EXHAUSTED then */
  int wide_nodes;    /* 0; 1: a compressed set may have more than 2^32 - 2 nodes */
  double load;       /* 0.8; share of the slots that are taken when `capacity` vectors are there:
                        above 0, at most 1. Fuller tables are smaller and slower */
  uint64_t
      node_capacity; /* 0: an eighth of the capacity. Nodes below the roots of a compressed set */
  uint64_t seed;     /* 0; against vectors that were made to collide */
  int backend;       /* STRIDE_BACKEND_HOST: whose memory the set is in */
  uint32_t threads;  /* 0: one for each core */
} stride_set_options;
/* Sets the defaults. As stride_options_init(). */
STRIDE_C_API int stride_set_options_init(stride_set_options* options, size_t size);

/* options: NULL for the defaults. The caller releases *set. STRIDE_UNAVAILABLE: there is no device,
 * or one that cannot hold such a set. */
STRIDE_C_API int stride_set_create(const stride_set_options* options, stride_set** set);
/* vectors: n of them, n * words numbers. ids: NULL, or one for each vector. was_new: NULL, or
 * (n + 63) / 64 words: bit i % 64 of word i / 64 says whether vector i came for the first time.
 * With STRIDE_BACKEND_CUDA each may lie in the device's memory, too. STRIDE_RESOURCE_EXHAUSTED:
 * vectors that did not fit have the id STRIDE_ABSENT; all others were put. */
STRIDE_C_API int stride_set_find_or_put(stride_set* set, const uint32_t* vectors, uint64_t n,
                                        uint64_t* ids, uint64_t* was_new);
/* The id of each vector, or STRIDE_ABSENT. */
STRIDE_C_API int stride_set_find(stride_set* set, const uint32_t* vectors, uint64_t n,
                                 uint64_t* ids);
/* The vector of each id: vectors has room for n * words numbers. STRIDE_NOT_FOUND: an id that was
 * never given; what `vectors` then holds is undefined. */
STRIDE_C_API int stride_set_get(stride_set* set, const uint64_t* ids, uint64_t n,
                                uint32_t* vectors);
/* Forgets all vectors; ids begin anew. */
STRIDE_C_API int stride_set_clear(stride_set* set);

typedef struct stride_set_info {
  size_t size;       /* sizeof(stride_set_info), set by the caller */
  uint64_t vectors;  /* different ones */
  uint64_t id_limit; /* all ids are smaller */
  uint64_t nodes;    /* below the roots of a compressed set; 0 of others */
  uint64_t memory_bytes;
} stride_set_info;
STRIDE_C_API int stride_set_read_info(stride_set* set, stride_set_info* info);
STRIDE_C_API int stride_set_release(stride_set* set);

/* ---- Dedup tables: dense ids that are kept in a database ---- */

typedef struct stride_dedup_options {
  size_t size;      /* sizeof(stride_dedup_options) */
  uint32_t words;   /* 2; of each vector, 1 to 64 */
  int durability;   /* STRIDE_DURABILITY_DEFAULT: what each call that puts something waits for */
  uint32_t threads; /* 0: one for each core */
  int compressed;   /* 0; 1: a table whose vectors take fewer bytes on the disk: where words are
                       small, all alike, or have few values among vectors that come one after the
                       other; where not, 3 bytes more for each 16 KiB at most. It is chosen when
                       the table is made and kept with it. Each call that puts something writes the
                       last block of vectors, up to 16 KiB, again: for large batches */
} stride_dedup_options;
/* Sets the defaults. As stride_options_init(). */
STRIDE_C_API int stride_dedup_options_init(stride_dedup_options* options, size_t size);

/* Opens the table of vectors `name`, or makes it, and reads it into a hash table in memory. Handles
 * of one table share that, with the durability and threads of the first one; nothing else may write
 * the table. The caller releases *table. options: NULL for the defaults. STRIDE_INVALID_ARGUMENT
 * also for a table with other rows than vectors of so many words, for one that is compressed, or is
 * not, where the options say the other, and for one that is open through another handle of the same
 * database;
 * STRIDE_CORRUPTION: a compressed one whose blocks are damaged; STRIDE_RESOURCE_EXHAUSTED: they do
 * not fit in memory; and as stride_table_create() and scans. */
STRIDE_C_API int stride_dedup_open(stride_database* database, const char* name,
                                   const stride_dedup_options* options, stride_dedup_table** table);
/* As stride_set_find_or_put(): new vectors get the next ids and are committed, all of a call at
 * once. When it fails, as stride_commit() does, nothing is put, ids and was_new are undefined, and
 * the table goes on as it was: also where its database was closed (STRIDE_CLOSED), but then it
 * takes nothing new. Where its rows cannot be read again after a failure, this and all further
 * calls are STRIDE_CLOSED. */
STRIDE_C_API int stride_dedup_find_or_put(stride_dedup_table* table, const uint32_t* vectors,
                                          uint64_t n, uint64_t* ids, uint64_t* was_new);
/* As stride_set_find() and stride_set_get(). */
STRIDE_C_API int stride_dedup_find(stride_dedup_table* table, const uint32_t* vectors, uint64_t n,
                                   uint64_t* ids);
STRIDE_C_API int stride_dedup_get(stride_dedup_table* table, const uint64_t* ids, uint64_t n,
                                  uint32_t* vectors);
/* *vectors: how many there are; all ids are smaller. *memory_bytes: of the hash table. Either may
 * be NULL. */
STRIDE_C_API int stride_dedup_read_info(stride_dedup_table* table, uint64_t* vectors,
                                        uint64_t* memory_bytes);
STRIDE_C_API int stride_dedup_release(stride_dedup_table* table);

#ifdef __cplusplus
}
#endif

#endif
