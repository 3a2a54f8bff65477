// One row more in a table's tail.
#pragma once

#include <cstdint>

#include "engine/memtable/table_tail.h"

namespace stride::test {

inline void insert_row(TableTail* tail, uint32_t commit, EntryKind kind, Bytes key, Bytes value) {
  TableTail::Place place = tail->reserve(1, TableTail::row_bytes(key.size(), value.size()));
  tail->keep_reserved(tail->insert(&place, commit, kind, key, value), commit);
}

}  // namespace stride::test
