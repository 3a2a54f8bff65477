// Snapshots, and lookups of one key and of batches.
#include <cstring>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_buffers) == 48);

namespace {

// The caller's memory for values and offsets, and the workspace's for the rest.
class BorrowedResult {
 public:
  BorrowedResult(const stride_buffers& buffers, uint64_t rows, GetResult* workspace)
      : workspace_(*workspace) {
    exchange();
    result.data.borrow(static_cast<std::byte*>(buffers.data), buffers.data_bytes);
    result.offsets.borrow(buffers.offsets, rows + 1);
  }
  ~BorrowedResult() { exchange(); }
  BorrowedResult(const BorrowedResult&) = delete;

  GetResult result;

 private:
  void exchange() {
    std::swap(result.found, workspace_.found);
    std::swap(result.scratch, workspace_.scratch);
  }
  GetResult& workspace_;
};

// needed: how many bytes the values have, where that is known.
Status get_into(const Snapshot& snapshot, const Table& table, const Column& queries,
                const stride_buffers& buffers, GetResult* workspace, uint64_t* needed) {
  BorrowedResult into(buffers, queries.size, workspace);
  STRIDE_TRY(snapshot.get(table, queries, &into.result));
  if (queries.size)
    std::memcpy(buffers.validity, into.result.found.words().data(),
                into.result.found.words().size_bytes());
  *needed = buffers.offsets[queries.size];
  return {};
}

}  // namespace

int stride_snapshot_take(stride_database* database, stride_snapshot** snapshot) {
  if (snapshot) *snapshot = nullptr;
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(snapshot, "snapshot"));
    return make_handle(std::make_unique<SnapshotObject>(SnapshotObject{db->database->snapshot()}),
                       snapshot);
  });
}

int stride_snapshot_release(stride_snapshot* snapshot) {
  return run([&] { return release_handle<SnapshotObject>(snapshot); });
}

int stride_count(stride_snapshot* snapshot, stride_table* table, uint64_t* keys) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      STRIDE_TRY(check_pointer(keys, "keys"));
      Result<uint64_t> count = s.count(t);
      if (count.ok()) *keys = *count;
      return count.status();
    });
  });
}

int stride_get_one(stride_snapshot* snapshot, stride_table* table, const void* key,
                   uint64_t key_bytes, stride_bytes* value) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      STRIDE_TRY(check_pointer(value, "value"));
      if (key_bytes) STRIDE_TRY(check_pointer(key, "key"));
      auto found = s.get(t, Bytes{static_cast<const std::byte*>(key), key_bytes});
      if (!found.ok()) return found.status();
      *value = *found ? present(**found) : stride_bytes{nullptr, 0};
      return {};
    });
  });
}

int stride_values_create(stride_values** values) {
  if (values) *values = nullptr;
  return run([&] {
    STRIDE_TRY(check_pointer(values, "values"));
    return make_handle(std::make_unique<ValuesObject>(), values);
  });
}

int stride_values_release(stride_values* values) {
  return run([&] { return release_handle<ValuesObject>(values); });
}

int stride_get(stride_snapshot* snapshot, stride_table* table, const stride_column* keys,
               stride_values* values) {
  return run([&] {
    Use<ValuesObject> out;
    STRIDE_TRY(out.begin(values));
    out->begin_result();
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(keys, "keys", &queries));
      STRIDE_TRY(s.get(t, queries, &out->result));
      out->table = t;
      out->complete = true;
      return Status();
    });
  });
}

int stride_values_read(stride_values* values, stride_column* column, const uint64_t** validity) {
  return run([&] {
    Use<ValuesObject> v;
    STRIDE_TRY(v.begin(values));
    if (!v->complete)
      return Status::invalid("the stride_values hold no result")
          .with_remedy("call stride_get() or stride_match() with it first");
    const Column& c = v->result.values;
    if (column) *column = {c.data, c.offsets, c.size, 0};
    if (validity) *validity = words_of(v->result.found);
    return Status();
  });
}

int stride_get_into(stride_snapshot* snapshot, stride_table* table, const stride_column* keys,
                    stride_values* workspace, stride_buffers* buffers) {
  uint64_t needed = 0;
  int status = run([&] {
    Use<ValuesObject> space;
    GetResult of_this_call;
    if (workspace) {
      STRIDE_TRY(space.begin(workspace));
      space->begin_result();
    }
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(keys, "keys", &queries));
      STRIDE_TRY(read_buffers(buffers, queries.size));
      return get_into(s, t, queries, *buffers, workspace ? &space->result : &of_this_call, &needed);
    });
  });
  if (status != STRIDE_OK) return status;
  buffers->needed = needed;
  if (needed <= buffers->data_bytes) return STRIDE_OK;
  return values_too_large(*buffers, "stride_get()");
}

int stride_references_create(stride_references** references) {
  if (references) *references = nullptr;
  return run([&] {
    STRIDE_TRY(check_pointer(references, "references"));
    return make_handle(std::make_unique<ReferencesObject>(), references);
  });
}

int stride_references_release(stride_references* references) {
  return run([&] { return release_handle<ReferencesObject>(references); });
}

int stride_find(stride_snapshot* snapshot, stride_table* table, const stride_column* keys,
                stride_references* references) {
  return run([&] {
    Use<ReferencesObject> out;
    STRIDE_TRY(out.begin(references));
    out->snapshot.reset();
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(keys, "keys", &queries));
      STRIDE_TRY(s.find(t, queries, &out->result));
      out->matched = false;
      out->snapshot = std::make_unique<Snapshot>(s);
      return Status();
    });
  });
}

int stride_references_read(stride_references* references, uint64_t* size,
                           const uint64_t** validity) {
  return run([&] {
    Use<ReferencesObject> r;
    STRIDE_TRY(r.begin(references));
    STRIDE_TRY(check_found(*r.get()));
    if (size) *size = r->found().size();
    if (validity) *validity = words_of(r->found());
    return Status();
  });
}

int stride_references_get(stride_references* references, uint64_t first, uint64_t n,
                          stride_bytes* values) {
  return run([&] {
    Use<ReferencesObject> r;
    STRIDE_TRY(r.begin(references));
    STRIDE_TRY(check_found(*r.get()));
    STRIDE_TRY(check_rows(*r.get(), first, n));
    if (n) STRIDE_TRY(check_pointer(values, "values"));
    for (uint64_t i = 0; i < n; ++i)
      values[i] = r->found()[first + i] ? present(r->value(first + i)) : stride_bytes{nullptr, 0};
    return Status();
  });
}
