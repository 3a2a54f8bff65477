// The rows next to keys, and how many there are between keys.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "adapters/python/bounds.h"
#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/reads.h"
#include "adapters/python/rows.h"
#include "adapters/python/transaction.h"
#include "adapters/python/watch.h"

namespace stride::python {
namespace {

enum class NextTo { lower_bound, upper_bound, previous };

// Source: a Snapshot, or a Transaction, here and below.
template <class Source>
Status find_next_to(Source& source, NextTo which, const Table& table, const KeyColumn& keys,
                    LowerBoundResult* result) {
  switch (which) {
    case NextTo::lower_bound:
      return source.lower_bound(table, keys, result);
    case NextTo::upper_bound:
      return source.upper_bound(table, keys, result);
    case NextTo::previous:
      break;
  }
  return source.previous(table, keys, result);
}

template <class Source>
PyRows rows_next_to(Source& source, NextTo which, const PyTable& table, nb::handle keys) {
  const TableForm& form = *table.form;
  EncodedKeys encoded;
  const GivenKeys given = keys_of(form, keys, &encoded);
  auto copied = std::make_shared<CopiedRows>();
  constexpr uint64_t part_rows = 1 << 17;
  copied->found.reset(given.keys.size);
  LowerBoundResult result;
  run_in_parts(given.keys.size, part_rows, [&](uint64_t first, uint64_t rows) -> Status {
    STRIDE_TRY(find_next_to(source, which, form.table, given.keys.slice(first, rows), &result));
    std::ranges::copy(result.found.words(), copied->found.words().begin() + first / 64);
    // A row that is not there has no key: the bytes of an empty one, which is not shown.
    for (uint64_t i = 0; i < rows; ++i) {
      copied->keys.append(result.found[i] ? result.keys[i] : Bytes());
      copied->values.append(result.found[i] ? result.values[i] : Bytes());
    }
    return {};
  });
  PyRows rows;
  rows.size = given.keys.size;
  rows.found = std::shared_ptr<const Bitmap>(copied, &copied->found);
  rows.columns = found_key_cells(form, *copied, copied);
  for (Cells& cells : value_cells(form, copied->values.column(), &copied->found,
                                  wanted_columns(form, std::nullopt), &copied->decoded, copied))
    rows.columns.push_back(std::move(cells));
  return rows;
}

// Rows of one run are counted at once, those of several are merged, which may take long.
template <class Work>
void run_count(const PyTable& table, const Work& work) {
  constexpr uint64_t min_bytes = 16 << 20;  // that are worth a thread
  if (table.handle->database->size_bytes() < min_bytes)
    run(work);
  else
    run_watched(work);
}

std::optional<Bytes> bytes_of(const std::optional<std::string>& bound) {
  return bound ? std::optional(as_bytes(*bound)) : std::nullopt;
}

template <class Source>
uint64_t count_range(Source& source, const PyTable& table, nb::handle start, nb::handle stop) {
  const std::optional<std::string> from = bound_of(*table.form, start);
  const std::optional<std::string> to = bound_of(*table.form, stop);
  uint64_t rows = 0;
  run_count(table, [&]() -> Status {
    Result<uint64_t> counted = from || to
                                   ? source.count(table.table(), bytes_of(from), bytes_of(to))
                                   : source.count(table.table());
    if (counted.ok()) rows = *counted;
    return counted.status();
  });
  return rows;
}

template <class Source>
nb::object count_ranges(Source& source, const PyTable& table, nb::handle starts, nb::handle stops) {
  EncodedKeys encoded_starts, encoded_stops;
  const GivenKeys from = keys_of(*table.form, starts, &encoded_starts);
  const GivenKeys to = keys_of(*table.form, stops, &encoded_stops);
  if (from.keys.size != to.keys.size)
    raise("InvalidArgument",
          "there are " + std::to_string(from.keys.size) + " starts and " +
              std::to_string(to.keys.size) + " stops",
          "give a stop for each start");
  Numbers64 counts("counts", from.keys.size);
  run_count(table, [&] { return source.count(table.table(), from.keys, to.keys, counts.span); });
  return counts.array();
}

void bind_next_to(nb::class_<PyTable>& table, const char* name, NextTo which, const char* text) {
  table.def(
      name,
      [which](const PyTable& t, nb::handle keys) {
        const Snapshot snapshot = t.snapshot();
        return rows_next_to(snapshot, which, t, keys);
      },
      nb::arg("keys").none(), text);
}

void bind_next_to(nb::class_<PyTransaction>& transaction, const char* name, NextTo which,
                  const char* text) {
  transaction.def(
      name,
      [which](PyTransaction& t, const PyTable& table, nb::handle keys) {
        const TransactionUse use(t);
        return rows_next_to(t.reading(table), which, table, keys);
      },
      nb::arg("table"), nb::arg("keys").none(), text);
}

}  // namespace

void bind_ordered_reads(nb::class_<PyTable>& table) {
  bind_next_to(table, "lower_bound", NextTo::lower_bound,
               "For each key the first row whose key is not smaller, as Rows with key columns.");
  bind_next_to(table, "upper_bound", NextTo::upper_bound,
               "For each key the first row whose key is greater, as Rows with key columns.");
  bind_next_to(table, "previous", NextTo::previous,
               "For each key the last row whose key is not greater, as Rows with key columns.");
  table
      .def("__len__",
           [](const PyTable& t) {
             const Snapshot snapshot = t.snapshot();
             return count_range(snapshot, t, nb::none(), nb::none());
           })
      .def(
          "count",
          [](const PyTable& t, nb::handle start, nb::handle stop) {
            const Snapshot snapshot = t.snapshot();
            return count_range(snapshot, t, start, stop);
          },
          nb::arg("start").none() = nb::none(), nb::arg("stop").none() = nb::none(),
          "How many keys there are from `start` on that are below `stop`.")
      .def(
          "counts",
          [](const PyTable& t, nb::handle starts, nb::handle stops) {
            const Snapshot snapshot = t.snapshot();
            return count_ranges(snapshot, t, starts, stops);
          },
          nb::arg("starts").none(), nb::arg("stops").none(),
          "How many keys there are from starts[i] on that are below stops[i], as an array of "
          "uint64. starts, stops: columns of as many keys.");
}

void bind_ordered_reads(nb::class_<PyTransaction>& transaction) {
  bind_next_to(transaction, "lower_bound", NextTo::lower_bound,
               "As Table.lower_bound(). What lies from each key up to the row that is found counts "
               "as read, also keys that are not there.");
  bind_next_to(transaction, "upper_bound", NextTo::upper_bound,
               "As Table.upper_bound(). What counts as read is as of lower_bound().");
  bind_next_to(transaction, "previous", NextTo::previous,
               "As Table.previous(). What lies from the row that is found up to the key counts as "
               "read.");
  transaction
      .def(
          "count",
          [](PyTransaction& t, const PyTable& table, nb::handle start, nb::handle stop) {
            const TransactionUse use(t);
            return count_range(t.reading(table), table, start, stop);
          },
          nb::arg("table"), nb::arg("start").none() = nb::none(),
          nb::arg("stop").none() = nb::none(), "As Table.count(). All of the range counts as read.")
      .def(
          "counts",
          [](PyTransaction& t, const PyTable& table, nb::handle starts, nb::handle stops) {
            const TransactionUse use(t);
            return count_ranges(t.reading(table), table, starts, stops);
          },
          nb::arg("table"), nb::arg("starts").none(), nb::arg("stops").none(),
          "As Table.counts(). The ranges count as read.");
}

}  // namespace stride::python
