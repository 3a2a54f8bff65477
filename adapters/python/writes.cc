#include "adapters/python/writes.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "adapters/python/bounds.h"
#include "adapters/python/errors.h"
#include "adapters/python/frames.h"
#include "adapters/python/keys.h"
#include "adapters/python/rows.h"
#include "adapters/python/watch.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

std::vector<Field> all_fields(const TableForm& form) {
  std::vector<Field> fields = form.schema.key();
  if (form.is_prefixes()) fields = {{.name = "prefix", .type = FieldType::string}};
  fields.insert(fields.end(), form.schema.values().begin(), form.schema.values().end());
  return fields;
}

// owner: what keeps both; empty: they are the caller's, who may change them meanwhile.
using UseRows =
    std::function<void(const KeyColumn& keys, const ValueColumn& rows, const KeptRows& owner)>;

// Makes rows of columns and hands them on. encoded: where the keys were made.
void use_columns(const TableForm& form, const KeyColumn& keys,
                 const std::shared_ptr<EncodedKeys>& encoded, const std::vector<Cells>& cells,
                 const UseRows& use) {
  std::vector<CellColumn> columns;
  for (const Cells& c : cells) columns.push_back(c.column);
  for (const Cells& c : cells)
    if (c.size() != keys.size)
      raise("InvalidArgument", column_name(c.field) + " has " + std::to_string(c.size()) +
                                   " rows, and there are " + std::to_string(keys.size) + " keys");
  // A lone column of bytes is its own rows.
  if (columns.size() == 1 && form.schema.values()[0].type == FieldType::bytes &&
      columns[0].offsets && !columns[0].valid && form.schema.valid_bit(0) == Schema::no_bit)
    return use(keys, Column::variable(columns[0].data, columns[0].offsets, columns[0].size), {});
  auto rows = std::make_shared<EncodedRows>();
  run([&] { return encode_rows(form.schema, columns, rows.get()); });
  const bool made = encoded && keys.data == encoded->data.data();
  use(keys, rows->rows, made ? KeptRows{encoded, rows} : KeptRows{});
}

std::vector<Cells> value_columns(const TableForm& form, nb::handle values);

// A dict whose column of prefixes has whatever prefixes may be. False: it is another frame.
bool use_dict_of_prefixes(const TableForm& form, nb::handle frame, const UseRows& use) {
  if (!form.is_prefixes() || !nb::isinstance<nb::dict>(frame)) return false;
  const auto dict = nb::borrow<nb::dict>(frame);
  if (!dict.contains("prefix") || nb::len(dict) < 2) return false;
  nb::dict values;
  for (auto [name, column] : dict)
    if (!nb::isinstance<nb::str>(name) || !name.equal(nb::str("prefix"))) values[name] = column;
  auto encoded = std::make_shared<EncodedKeys>();
  const GivenKeys keys = prefixes_of(form, nb::object(dict["prefix"]), encoded.get());
  use_columns(form, keys.keys, encoded, value_columns(form, values), use);
  return true;
}

void use_frame_rows(const TableForm& form, nb::handle frame, const UseRows& use) {
  if (use_dict_of_prefixes(form, frame, use)) return;
  const size_t key_columns = form.is_prefixes() ? 1 : form.schema.key().size();
  for_each_batch(frame, all_fields(form), [&](std::vector<Cells> columns) {
    auto encoded = std::make_shared<EncodedKeys>();
    GivenKeys keys;
    std::vector<Cells> values(
        std::make_move_iterator(columns.begin() + static_cast<ptrdiff_t>(key_columns)),
        std::make_move_iterator(columns.end()));
    columns.resize(key_columns);
    if (form.is_prefixes()) {
      keys = prefixes_of(form, nb::cast(PyColumn{columns[0]}), encoded.get());
    } else {
      encode(form, std::move(columns), encoded.get(), &keys);
    }
    use_columns(form, keys.keys, encoded, values, use);
  });
}

// The value of one key, as a column of one row for each field.
std::vector<Cells> one_value(const TableForm& form, nb::handle value) {
  const std::vector<Field>& fields = form.schema.values();
  std::vector<Cells> cells;
  if (form.bare_value && !nb::isinstance<nb::dict>(value)) {
    nb::list one;
    one.append(nb::borrow(value));
    cells.push_back(cells_of_list(one, fields[0]));
    return cells;
  }
  if (!nb::isinstance<nb::dict>(value))
    raise("InvalidType",
          "table '" + form.table.name() + "' has the columns " + form.schema.to_string() +
              ", and one value is given",
          "give a dict with a value for each");
  const auto row = nb::borrow<nb::dict>(value);
  size_t used = 0;
  for (const Field& field : fields) {
    nb::list one;
    const nb::object name = name_object(field.name);
    const bool there = row.contains(name);
    used += there;
    if (there)
      one.append(nb::object(row[name]));
    else
      one.append(nb::none());
    cells.push_back(cells_of_list(one, field));
  }
  if (used == nb::len(row)) return cells;
  for (auto [name, cell] : row)
    if (!form.schema.find(lossy_text(nb::str(name))))
      raise("InvalidArgument", "the table has no column " + in_quotes(lossy_text(nb::str(name))),
            "leave it out; the table's columns are: " + form.schema.to_string());
  return cells;
}

std::vector<Cells> value_columns(const TableForm& form, nb::handle values) {
  const std::vector<Field>& fields = form.schema.values();
  if (form.bare_value && !is_frame(values)) return {cells_of(values, fields[0])};
  std::vector<std::vector<Cells>> chunks(fields.size());
  for_each_batch(values, fields, [&](std::vector<Cells> columns) {
    for (size_t i = 0; i < fields.size(); ++i) chunks[i].push_back(std::move(columns[i]));
  });
  std::vector<Cells> cells;
  for (size_t i = 0; i < fields.size(); ++i) {
    cells.push_back(chunks[i].empty() ? cells_of_list(nb::list(), fields[i])
                                      : joined(std::move(chunks[i]), fields[i].name));
    cells.back().field = fields[i];
  }
  return cells;
}

void use_one(const TableForm& form, nb::handle given, nb::handle value, const UseRows& use) {
  std::string key;
  append_key(form, given, false, &key);
  const uint64_t offsets[] = {0, key.size()};
  use_columns(form, Column::variable(key.data(), offsets, 1), nullptr, one_value(form, value), use);
}

void use_given(const TableForm& form, nb::handle data, nb::handle values, const UseRows& use) {
  if (values.is_none()) {
    if (!is_frame(data))
      raise("InvalidType", "rows are expected, or keys and values",
            "give a frame with the columns " + form.schema.to_string() + ", or two arguments");
    return use_frame_rows(form, data, use);
  }
  if (is_one_key(form, data)) return use_one(form, data, values, use);
  auto encoded = std::make_shared<EncodedKeys>();
  const GivenKeys keys = keys_of(form, data, encoded.get());
  use_columns(form, keys.keys, encoded, value_columns(form, values), use);
}

constexpr uint64_t watched_rows = 100'000;

}  // namespace

void check_writable(const PyTable& table) {
  if (table.at)
    raise("ReadOnly",
          "table '" + table.table().name() + "' is that of a snapshot, which does not change",
          "use the database's table");
}

void stage_put(StagedChanges* transaction, const TableForm& form, nb::handle data,
               nb::handle values, KeptRows* kept) {
  use_given(form, data, values,
            [&](const KeyColumn& keys, const ValueColumn& rows, const KeptRows& owner) {
              if (!kept || owner.empty())
                return run([&] { return transaction->put(form.table, keys, rows); });
              kept->insert(kept->end(), owner.begin(), owner.end());
              run([&] { return transaction->put_view(form.table, keys, rows); });
            });
}

void stage_set(StagedChanges* transaction, const TableForm& form, nb::handle key,
               nb::handle value) {
  if (!is_one_key(form, key) && !value.is_none()) return stage_put(transaction, form, key, value);
  use_one(form, key, value, [&](const KeyColumn& keys, const ValueColumn& rows, const auto&) {
    run([&] { return transaction->put(form.table, keys, rows); });
  });
}

uint64_t stage_put_if_absent(StagedChanges* transaction, const TableForm& form, nb::handle data,
                             nb::handle values, std::vector<std::vector<uint64_t>>* was_new,
                             std::vector<uint64_t>* sizes) {
  uint64_t all = 0;
  use_given(form, data, values, [&](const KeyColumn& keys, const ValueColumn& rows, const auto&) {
    was_new->emplace_back((keys.size + 63) / 64, 0);
    sizes->push_back(keys.size);
    all += keys.size;
    run([&] { return transaction->put_if_absent(form.table, keys, rows, was_new->back()); });
  });
  return all;
}

void stage_add(StagedChanges* transaction, const TableForm& form, nb::handle keys,
               nb::handle deltas) {
  if (form.table.numbers() == NumberType::none)
    raise("InvalidArgument", "table '" + form.table.name() + "' is no table of counters",
          "make one with Database.counters()");
  const Field& field = form.schema.values()[0];
  EncodedKeys encoded;
  GivenKeys given;
  std::string one;
  uint64_t offsets[2] = {0, 0};
  if (is_one_key(form, keys)) {
    append_key(form, keys, false, &one);
    offsets[1] = one.size();
    given.keys = Column::variable(one.data(), offsets, 1);
  } else {
    given = keys_of(form, keys, &encoded);
  }
  const uint64_t rows = given.keys.size;
  std::string number;
  Cells cells;
  if (nb::hasattr(deltas, "__len__")) {
    cells = cells_of(deltas, field);
  } else {
    // The same number for all.
    append_cell(field, deltas, &number);
    auto* data = add_memory<std::byte>(&cells, std::max<uint64_t>(rows * number.size(), 1));
    for (uint64_t row = 0; row < rows; ++row)
      std::copy(number.begin(), number.end(), reinterpret_cast<char*>(data) + row * number.size());
    const auto width = static_cast<uint32_t>(number.size());
    cells.field = field;
    cells.column = {data, nullptr, nullptr, rows, width, width};
  }
  use_columns(form, given.keys, nullptr, {cells},
              [&](const KeyColumn& k, const ValueColumn& d, const auto&) {
                run([&] { return transaction->accumulate(form.table, k, d); });
              });
}

void stage_delete(StagedChanges* transaction, const TableForm& form, nb::handle keys) {
  if (is_one_key(form, keys)) {
    std::string key;
    append_key(form, keys, false, &key);
    return check(transaction->erase(form.table, as_bytes(key)));
  }
  EncodedKeys encoded;
  const GivenKeys given = keys_of(form, keys, &encoded);
  run([&] { return transaction->erase(form.table, given.keys); });
}

void stage_delete_range(StagedChanges* transaction, const TableForm& form, nb::handle start,
                        nb::handle stop) {
  const std::optional<std::string> from = bound_of(form, start), to = bound_of(form, stop);
  auto bytes = [](const std::optional<std::string>& bound) {
    return bound ? std::optional<Bytes>(as_bytes(*bound)) : std::nullopt;
  };
  run([&] { return transaction->erase_range(form.table, bytes(from), bytes(to)); });
}

void commit(StagedChanges* transaction, const CommitArguments& arguments) {
  check_progress(arguments.progress);
  CommitOptions options;
  if (arguments.durability) {
    options.durability = durability_named(*arguments.durability);
  }
  options.refuse_equal_keys = arguments.refuse_equal_keys;
  Watch watch(arguments.progress);
  if (transaction->staged_rows() > watched_rows || !arguments.progress.is_none())
    options.progress = [&](const CommitProgress& at) { return watch(at.share); };
  Status status;
  {
    const Unlocked unlocked;
    status = transaction->commit(options);
  }
  // Also where it came too late to keep the commit back: nobody else would hear of it.
  watch.rethrow();
  for (const auto& form : arguments.forms)
    if (status.message().find("table '" + form->table.name() + "'") != std::string::npos)
      check(*form, status);
  check(status);
}

nb::object joined_bits(const std::vector<std::vector<uint64_t>>& bits,
                       const std::vector<uint64_t>& sizes) {
  if (bits.size() == 1) return booleans_of(bits[0].data(), sizes[0]);
  nb::list parts;
  for (size_t i = 0; i < bits.size(); ++i) parts.append(booleans_of(bits[i].data(), sizes[i]));
  const nb::object numpy = nb::module_::import_("numpy");
  if (bits.empty()) return numpy.attr("zeros")(0, "?");
  return numpy.attr("concatenate")(parts);
}

}  // namespace stride::python
