// The longest prefixes of addresses, and all of one.
#include <cstring>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

namespace {

// Where the value of each address goes: one offset more than there are addresses.
void set_offsets(const MatchResult& matches, uint64_t* offsets) {
  offsets[0] = 0;
  for (uint64_t i = 0; i < matches.found.size(); ++i)
    offsets[i + 1] = offsets[i] + matches.value(i).size();
}

void copy_values(const MatchResult& matches, const uint64_t* offsets, std::byte* data) {
  for (uint64_t i = 0; i < matches.found.size(); ++i)
    if (Bytes value = matches.value(i); !value.empty())
      std::memcpy(data + offsets[i], value.data(), value.size());
}

// The engine hands out references: what they refer to becomes a column, as of a get.
void copy_result(MatchResult* matches, GetResult* result) {
  uint64_t n = matches->found.size();
  result->offsets.reset(n + 1);
  set_offsets(*matches, result->offsets.data());
  result->data.reset(result->offsets[n]);
  copy_values(*matches, result->offsets.data(), result->data.data());
  result->values = Column::variable(result->data.data(), result->offsets.data(), n);
  std::swap(result->found, matches->found);
}

void copy_into(const MatchResult& matches, const stride_buffers& buffers, uint32_t* lengths) {
  uint64_t n = matches.found.size();
  set_offsets(matches, buffers.offsets);
  if (buffers.offsets[n] <= buffers.data_bytes)
    copy_values(matches, buffers.offsets, static_cast<std::byte*>(buffers.data));
  if (n == 0) return;
  std::memcpy(buffers.validity, matches.found.words().data(), matches.found.words().size_bytes());
  if (lengths) std::memcpy(lengths, matches.lengths.data(), n * sizeof *lengths);
}

void put_entry(const PrefixEntry& entry, stride_bytes* value, stride_bytes* key, uint32_t* length) {
  if (value) *value = present(entry.value);
  if (key) *key = present(entry.key);
  if (length) *length = entry.length;
}

}  // namespace

int stride_match(stride_snapshot* snapshot, stride_table* table, const stride_column* addresses,
                 stride_values* values) {
  return run([&] {
    Use<ValuesObject> out;
    STRIDE_TRY(out.begin(values));
    out->begin_result();
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(addresses, "addresses", &queries));
      STRIDE_TRY(s.match(t, queries, &out->matches));
      copy_result(&out->matches, &out->result);
      out->table = t;
      out->complete = out->matched = true;
      return Status();
    });
  });
}

int stride_values_lengths(stride_values* values, const uint32_t** lengths) {
  return run([&] {
    Use<ValuesObject> v;
    STRIDE_TRY(v.begin(values));
    STRIDE_TRY(check_pointer(lengths, "lengths"));
    if (!v->matched)
      return Status::invalid("the stride_values hold no result of a match")
          .with_remedy("call stride_match() with it first");
    *lengths = v->result.found.size() ? v->matches.lengths.data() : nullptr;
    return Status();
  });
}

int stride_match_into(stride_snapshot* snapshot, stride_table* table,
                      const stride_column* addresses, stride_values* workspace,
                      stride_buffers* buffers, uint32_t* lengths) {
  uint64_t needed = 0;
  int status = run([&] {
    Use<ValuesObject> space;
    MatchResult of_this_call;
    if (workspace) {
      STRIDE_TRY(space.begin(workspace));
      space->begin_result();
    }
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(addresses, "addresses", &queries));
      STRIDE_TRY(read_buffers(buffers, queries.size));
      MatchResult* matches = workspace ? &space->matches : &of_this_call;
      STRIDE_TRY(s.match(t, queries, matches));
      copy_into(*matches, *buffers, lengths);
      needed = buffers->offsets[queries.size];
      return Status();
    });
  });
  if (status != STRIDE_OK) return status;
  buffers->needed = needed;
  if (needed <= buffers->data_bytes) return STRIDE_OK;
  return values_too_large(*buffers, "stride_match()");
}

int stride_match_references(stride_snapshot* snapshot, stride_table* table,
                            const stride_column* addresses, stride_references* references) {
  return run([&] {
    Use<ReferencesObject> out;
    STRIDE_TRY(out.begin(references));
    out->snapshot.reset();
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) {
      Column queries;
      STRIDE_TRY(read_queries(addresses, "addresses", &queries));
      STRIDE_TRY(s.match(t, queries, &out->matches));
      out->matched = true;
      out->snapshot = std::make_unique<Snapshot>(s);
      return Status();
    });
  });
}

int stride_references_prefixes(stride_references* references, uint64_t first, uint64_t n,
                               stride_bytes* keys, uint32_t* lengths) {
  return run([&] {
    Use<ReferencesObject> r;
    STRIDE_TRY(r.begin(references));
    STRIDE_TRY(check_found(*r.get()));
    if (!r->matched)
      return Status::invalid("the stride_references hold no result of a match")
          .with_remedy("call stride_match_references() with it first");
    STRIDE_TRY(check_rows(*r.get(), first, n));
    const MatchResult& matches = r->matches;
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t row = first + i;
      if (keys)
        keys[i] = matches.found[row] ? present(matches.prefix(row)) : stride_bytes{nullptr, 0};
      if (lengths) lengths[i] = matches.lengths[row];
    }
    return Status();
  });
}

int stride_match_one(stride_snapshot* snapshot, stride_table* table, const void* address,
                     uint64_t address_bytes, stride_bytes* value, stride_bytes* key,
                     uint32_t* length) {
  return run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      Bytes query;
      STRIDE_TRY(check_pointer(value, "value"));
      STRIDE_TRY(read_bytes(address, address_bytes, "address", &query));
      auto found = s.match(t, query);
      if (!found.ok()) return found.status();
      if (*found) {
        put_entry(**found, value, key, length);
      } else {
        *value = {nullptr, 0};
        if (key) *key = {nullptr, 0};
        if (length) *length = 0;
      }
      return {};
    });
  });
}

int stride_match_all(stride_snapshot* snapshot, stride_table* table, const void* address,
                     uint64_t address_bytes, uint64_t room, stride_bytes* values,
                     stride_bytes* keys, uint32_t* lengths, uint64_t* n) {
  uint64_t found_rows = 0;
  int status = run([&] {
    return read_table(snapshot, table, [&](const Snapshot& s, const Table& t) -> Status {
      Bytes query;
      STRIDE_TRY(check_pointer(n, "n"));
      STRIDE_TRY(read_bytes(address, address_bytes, "address", &query));
      auto found = s.match_all(t, query);
      if (!found.ok()) return found.status();
      *n = found_rows = found->size();
      for (uint64_t i = 0; i < found_rows && found_rows <= room; ++i)
        put_entry((*found)[i], values ? values + i : nullptr, keys ? keys + i : nullptr,
                  lengths ? lengths + i : nullptr);
      return {};
    });
  });
  if (status != STRIDE_OK || found_rows <= room) return status;
  return fail_too_small([&] {
    return Status(StatusCode::resource_exhausted, "the address has " + std::to_string(found_rows) +
                                                      " prefixes and there is room for " +
                                                      std::to_string(room))
        .with_remedy("give memory for as many as `n` says");
  });
}
