// Cursors, entries next to keys, and counts of ranges.
#include <optional>
#include <string>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "adapters/c/stridedb_cursors.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_cursor_options) == 56);

namespace stride::c {
namespace {

struct CursorObject : Owned {
  static constexpr HandleKind kind = HandleKind::cursor;
  using Handle = stride_cursor;
  explicit CursorObject(Cursor c) : cursor(std::move(c)) {}
  Cursor cursor;
};

Status read_cursor_bound(const stride_bytes& given, std::optional<std::string>* bound) {
  if (given.data) *bound = std::string(static_cast<const char*>(given.data), given.size);
  if (!given.data && given.size) return Status::invalid("the data of a bound is NULL");
  return {};
}

Status read_cursor_options(const stride_cursor_options* given, CursorOptions* options) {
  if (!given) return {};
  stride_cursor_options o;
  STRIDE_TRY(read_struct(given, "stride_cursor_options", sizeof o, sizeof o, &o));
  STRIDE_TRY(read_cursor_bound(o.from, &options->from));
  STRIDE_TRY(read_cursor_bound(o.to, &options->to));
  return read_cursor_bound(o.prefix, &options->prefix);
}

Status read_range_end(const stride_bytes* given, const char* what, std::optional<Bytes>* bound) {
  if (!given) return {};
  Bytes bytes;
  STRIDE_TRY(read_bytes(given->data, given->size, what, &bytes));
  *bound = bytes;
  return {};
}

// Calls move(cursor), and hands out where it is then.
template <class Move>
int move_cursor(stride_cursor* cursor, stride_bytes* key, stride_bytes* value, const Move& move) {
  if (key) *key = {};
  if (value) *value = {};
  return run([&]() -> Status {
    Use<CursorObject> c;
    STRIDE_TRY(c.begin(cursor));
    STRIDE_TRY(move(c->cursor));
    if (!c->cursor.valid()) return c->cursor.status();
    if (key) *key = present(c->cursor.key());
    if (value) *value = present(c->cursor.value());
    return {};
  });
}

using FindBounds = Status (Snapshot::*)(const Table&, const KeyColumn&, LowerBoundResult*) const;

int find_bounds(stride_snapshot* snapshot, stride_table* table, const stride_column* queries,
                stride_bytes* keys, stride_bytes* values, FindBounds find) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      Column q;
      STRIDE_TRY(read_queries(queries, "queries", &q));
      if (q.size) STRIDE_TRY(check_pointer(keys, "keys"));
      LowerBoundResult result;
      STRIDE_TRY((s.*find)(t, q, &result));
      for (uint64_t i = 0; i < q.size; ++i) {
        const bool found = result.found[i];
        keys[i] = found ? present(result.keys[i]) : stride_bytes{};
        if (values) values[i] = found ? present(result.values[i]) : stride_bytes{};
      }
      return {};
    });
  });
}

}  // namespace
}  // namespace stride::c

int stride_cursor_options_init(stride_cursor_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_cursor_options o{};
    return write_struct(&o, "stride_cursor_options", sizeof o, sizeof o, size, options);
  });
}

int stride_cursor_open(stride_snapshot* snapshot, stride_table* table,
                       const stride_cursor_options* options, stride_cursor** cursor) {
  if (cursor) *cursor = nullptr;
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      STRIDE_TRY(check_pointer(cursor, "cursor"));
      CursorOptions o;
      STRIDE_TRY(read_cursor_options(options, &o));
      Result<Cursor> opened = s.cursor(t, o);
      if (!opened.ok()) return opened.status();
      return make_handle(std::make_unique<CursorObject>(std::move(*opened)), cursor);
    });
  });
}

int stride_transaction_cursor(stride_transaction* transaction, stride_table* table,
                              const stride_cursor_options* options, stride_cursor** cursor) {
  if (cursor) *cursor = nullptr;
  return run([&] {
    return read_in(transaction, table, [&](Transaction& t, const Table& of) -> Status {
      STRIDE_TRY(check_pointer(cursor, "cursor"));
      CursorOptions o;
      STRIDE_TRY(read_cursor_options(options, &o));
      Result<Cursor> opened = t.cursor(of, o);
      if (!opened.ok()) return opened.status();
      return make_handle(std::make_unique<CursorObject>(std::move(*opened)), cursor);
    });
  });
}

int stride_cursor_release(stride_cursor* cursor) {
  return run([&] { return release_handle<CursorObject>(cursor); });
}

int stride_cursor_seek(stride_cursor* cursor, const void* key, uint64_t key_bytes,
                       stride_bytes* found, stride_bytes* value) {
  return move_cursor(cursor, found, value, [&](Cursor& c) {
    Bytes k;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    c.seek(k);
    return Status();
  });
}

int stride_cursor_seek_for_previous(stride_cursor* cursor, const void* key, uint64_t key_bytes,
                                    stride_bytes* found, stride_bytes* value) {
  return move_cursor(cursor, found, value, [&](Cursor& c) {
    Bytes k;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    c.seek_for_previous(k);
    return Status();
  });
}

int stride_cursor_seek_to_first(stride_cursor* cursor, stride_bytes* key, stride_bytes* value) {
  return move_cursor(cursor, key, value, [](Cursor& c) {
    c.seek_to_first();
    return Status();
  });
}

int stride_cursor_seek_to_last(stride_cursor* cursor, stride_bytes* key, stride_bytes* value) {
  return move_cursor(cursor, key, value, [](Cursor& c) {
    c.seek_to_last();
    return Status();
  });
}

int stride_cursor_next(stride_cursor* cursor, stride_bytes* key, stride_bytes* value) {
  return move_cursor(cursor, key, value, [](Cursor& c) {
    c.next();
    return Status();
  });
}

int stride_cursor_previous(stride_cursor* cursor, stride_bytes* key, stride_bytes* value) {
  return move_cursor(cursor, key, value, [](Cursor& c) {
    c.previous();
    return Status();
  });
}

int stride_lower_bound(stride_snapshot* snapshot, stride_table* table, const stride_column* queries,
                       stride_bytes* keys, stride_bytes* values) {
  return find_bounds(snapshot, table, queries, keys, values, &Snapshot::lower_bound);
}

int stride_upper_bound(stride_snapshot* snapshot, stride_table* table, const stride_column* queries,
                       stride_bytes* keys, stride_bytes* values) {
  return find_bounds(snapshot, table, queries, keys, values, &Snapshot::upper_bound);
}

int stride_previous(stride_snapshot* snapshot, stride_table* table, const stride_column* queries,
                    stride_bytes* keys, stride_bytes* values) {
  return find_bounds(snapshot, table, queries, keys, values, &Snapshot::previous);
}

int stride_count_range(stride_snapshot* snapshot, stride_table* table, const stride_bytes* from,
                       const stride_bytes* to, uint64_t* keys) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      STRIDE_TRY(check_pointer(keys, "keys"));
      std::optional<Bytes> first, end;
      STRIDE_TRY(read_range_end(from, "the data of from", &first));
      STRIDE_TRY(read_range_end(to, "the data of to", &end));
      Result<uint64_t> count = s.count(t, first, end);
      if (count.ok()) *keys = *count;
      return count.status();
    });
  });
}

int stride_count_ranges(stride_snapshot* snapshot, stride_table* table, const stride_column* from,
                        const stride_column* to, uint64_t* counts) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      Column first, end;
      STRIDE_TRY(read_queries(from, "from", &first));
      STRIDE_TRY(read_queries(to, "to", &end));
      if (first.size) STRIDE_TRY(check_pointer(counts, "counts"));
      return s.count(t, first, end, {counts, first.size});
    });
  });
}
