// What the table of a load is: as it is there, or as options and the first rows say.
#include "adapters/cli/commands/loader.h"
#include "adapters/cli/commands/schema_argument.h"
#include "adapters/cli/input/schema_guess.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/text/number_text.h"

namespace stride::cli {

// How the rows' keys are read, from the form of the table's keys.
void Loader::set_key_form() {
  options_.key_form = key_form_;
  if (options_.format == Format::raw) options_.key_form.type = KeyType::bytes;
  options_.key_width = width_of(key_form_);
}

ExitStatus Loader::find_numbers(const Table* table) {
  const std::string name = "table '" + arguments_.table + "' ";
  NumberType asked =
      arguments_.numbers.empty() ? NumberType::none : number_type_named(arguments_.numbers).value();
  if (asked == NumberType::none && arguments_.accumulate) asked = NumberType::i64;
  const NumberType type = table ? table->numbers() : asked;
  options_.numbers = type;
  if (table && type == NumberType::none && asked != type)
    return ExitStatus::usage(name +
                             "is no table of numbers, which cannot be changed: leave --numbers "
                             "and --accumulate out, or load into another table");
  if (!arguments_.numbers.empty() && asked != type)
    return ExitStatus::usage(name + "has numbers of type " + std::string(to_string(type)) +
                             ", not " + arguments_.numbers +
                             ": leave --numbers out, or load into another table");
  if (arguments_.wrap && !is_integer(type))
    return ExitStatus::usage(
        "--wrap is for tables of i32 and i64: leave it out, or give --numbers");
  if (table && arguments_.wrap && table->overflow() != Overflow::wrap)
    return ExitStatus::usage(name +
                             "was made without --wrap, which cannot be changed: leave it out, "
                             "or load into another table");
  if (arguments_.accumulate && on_duplicate_ != OnDuplicate::last)
    return ExitStatus::usage(std::string(arguments_.count ? "--count" : "--accumulate") +
                             " adds all rows: leave --on-duplicate out");
  if (type != NumberType::none && options_.format == Format::jsonl && options_.values_wanted &&
      options_.values.empty())
    return ExitStatus::usage("--format jsonl says not which field has the number: give --value");
  return {};
}

// table: null where there is none yet.
ExitStatus Loader::find_key_form(const Table* table) {
  const std::string& asked = arguments_.rows.key_type;
  uint32_t bits = table ? table->address_bits() : 0;
  const std::optional<KeyForm> of_schema = table ? form_of_schema(*table) : std::nullopt;
  const std::string stored = bits        ? "prefix"
                             : notes_    ? notes_->key_type
                             : of_schema ? name_of(*of_schema)
                                         : "bytes";
  key_form_ = *key_form_named(asked.empty() ? stored : asked);
  const KeyType type = key_form_.type;
  auto plain = [](const std::string& t) { return t == "bytes" || t == "hex"; };
  if ((notes_ || bits || of_schema) && !asked.empty() && stored != name_of(key_form_) &&
      !(plain(stored) && plain(asked))) {
    return ExitStatus::usage("table '" + arguments_.table + "' has keys of type " + stored +
                             ", not " + asked + ": give --key-type " + stored +
                             ", or load into another table");
  }
  if (type != KeyType::prefix) {
    if (arguments_.address_bits.empty() && !arguments_.mask_host_bits) return {};
    return ExitStatus::usage(
        "--address-bits and --mask-host-bits are for --key-type prefix: give that, or leave them "
        "out");
  }
  if (table && bits == 0)
    return ExitStatus::usage(
        "table '" + arguments_.table +
        "' is no prefix table: leave --key-type prefix out, or load into another "
        "table");
  if (arguments_.mask_host_bits && options_.format == Format::raw)
    return ExitStatus::usage(
        "--mask-host-bits is for text: raw records have keys as they are stored");
  if (arguments_.rows.key_width)
    return ExitStatus::usage(
        "--key-width does not go with --key-type prefix: --address-bits says it");
  uint32_t told =
      arguments_.address_bits.empty() ? 0 : *address_bits_named(arguments_.address_bits);
  if (bits && told && bits != told) {
    return ExitStatus::usage("table '" + arguments_.table + "' has addresses of " +
                             name_of_address_bits(bits) + (bits == byte_strings ? "" : " bits") +
                             ", not " + name_of_address_bits(told) +
                             ": leave --address-bits out, or load into another table");
  }
  key_form_ = {type, bits ? bits : told, arguments_.mask_host_bits};
  return {};
}

ExitStatus Loader::find_schema(const Table* table) {
  Schema asked;
  const bool given = arguments_.schema != "auto" && arguments_.schema != "none";
  if (given) STRIDE_CLI_TRY(read_schema_argument(arguments_.schema, &asked));
  if (given && options_.numbers != NumberType::none)
    return ExitStatus::usage(
        "a table of numbers has no columns: leave --schema out, or --numbers, --accumulate and "
        "--count");
  if (!table) {
    guesses_schema_ = arguments_.schema == "auto" && options_.numbers == NumberType::none &&
                      options_.format != Format::raw;
    made_schema_ = given;
    options_.takes_vectors = given || guesses_schema_;
    if (given) options_.schema = std::make_shared<const Schema>(std::move(asked));
    return {};
  }
  const Schema& there = table->schema();
  for (const Field& field : there.key()) options_.key_names.push_back(field.name);
  if (there.has_values()) options_.schema = std::make_shared<const Schema>(there);
  options_.takes_vectors = there.has_values();
  const std::string name = "table '" + arguments_.table + "' ";
  if (arguments_.schema == "none" && there.has_values())
    return ExitStatus::usage(name + "has columns, which cannot be changed: " + columns_text(there) +
                             ": leave --schema out, or load into another table");
  if (given && asked.values() != there.values())
    return ExitStatus::usage(
        name +
        (!there.has_values() ? "has no columns" : "has other columns: " + columns_text(there)) +
        ": leave --schema out, or load into another table");
  return {};
}

ExitStatus Loader::check_expiry(const Table* table) const {
  if (arguments_.expires.empty())
    return arguments_.ttl.empty()
               ? ExitStatus()
               : ExitStatus::usage(
                     "--ttl needs a column with the time when a row ends: name it with "
                     "--expires");
  const std::string name = "table '" + arguments_.table + "' ";
  if (!table) return {};
  if (table->expiry_column() != arguments_.expires)
    return ExitStatus::usage(
        name + "was made " +
        (table->expiry_column().empty() ? "without --expires"
                                        : "with --expires " + table->expiry_column()) +
        ", which cannot be changed: leave --expires out, or load into another table");
  if (!arguments_.ttl.empty() && table->time_to_live() != *microseconds_of(arguments_.ttl))
    return ExitStatus::usage(name +
                             "was made with another --ttl, which cannot be changed: leave --ttl "
                             "out, or load into another table");
  return {};
}

// Before the table is made: what the engine would say in its own words.
ExitStatus Loader::check_expiry_column() const {
  if (arguments_.expires.empty() || table_is_there_) return {};
  const std::string expires = "--expires " + arguments_.expires;
  if (!options_.schema || !options_.schema->has_values())
    return ExitStatus::usage(
        expires + " needs a table with columns: give --schema with their names and types");
  const auto column = options_.schema->find(arguments_.expires);
  if (!column)
    return ExitStatus::usage(expires + " is no column of values: there are " +
                             columns_text(*options_.schema));
  const Field& field = options_.schema->values()[*column];
  if (field.type < FieldType::timestamp_s || field.type > FieldType::timestamp_ns || field.count)
    return ExitStatus::usage(expires + " has values of type " + type_text(field) +
                             ": name a column of type timestamp, or give --schema");
  if (!arguments_.ttl.empty() && !field.nullable)
    return ExitStatus::usage("--ttl is for rows without a time, and column " + arguments_.expires +
                             " always has one: give --schema with '" + arguments_.expires + " " +
                             type_text(field) + "?'");
  return {};
}

Schema Loader::table_schema() const {
  // Keys of these types are what they are; of others the notes know more.
  std::vector<Field> key;
  if (key_form_.columns) key = key_form_.columns->key();
  if (key_form_.type == KeyType::bytes && !key_columns_.empty())
    key = {{"key", FieldType::bytes, options_.key_width}};
  if (is_number(key_form_.type))
    key = {{"key", key_form_.type == KeyType::u64 ? FieldType::u64 : FieldType::i64}};
  for (size_t i = 0; i < key.size() && i < key_columns_.size(); ++i) key[i].name = key_columns_[i];
  std::vector<Field> values;
  if (options_.schema) values = options_.schema->values();
  if (values.empty() && !key_form_.columns) return {};
  // A column that is key and value has its name as a value.
  for (Field& field : key)
    while (options_.schema && options_.schema->find(field.name)) field.name += "_";
  auto schema = Schema::make(values, std::move(key));
  return schema.ok() ? *schema : *Schema::make(values);
}

namespace {

// Whether a row of the block can be read: then it tells what the file has.
ExitStatus has_good_row(const Block& block, bool* has) {
  *has = block.batch != nullptr;
  if (*has || block.text.empty() || block.too_long) return {};
  ParsedRows rows({.values = false, .rows = false, .lines = false});
  STRIDE_CLI_TRY(parse_block(block, &rows));
  *has = rows.size() > 0;
  return {};
}

// The first block with a row that can be read. Blocks of other files are looked at only while those
// before have no bytes: else, and behind some blocks without rows, it is the first one.
ExitStatus find_first_rows(BlockReader* reader, Block* block, bool* more) {
  constexpr int max_blocks = 8;
  STRIDE_CLI_TRY(reader->peek(block, more));
  Block next = *block;
  bool empty = true, good = false;
  for (int i = 0; *more && i < max_blocks; ++i) {
    STRIDE_CLI_TRY(has_good_row(next, &good));
    if (good) *block = next;
    if (good) return {};
    empty = empty && next.text.find_first_not_of("\r\n") == std::string_view::npos;
    const uint32_t file = next.file->index;
    bool there = false;
    STRIDE_CLI_TRY(reader->peek(&next, &there));
    if (!there || (next.file->index != file && !empty)) return {};
  }
  return {};
}

}  // namespace

ExitStatus Loader::look_at_first_rows(BlockReader* reader) {
  const bool prefixes = key_form_.type == KeyType::prefix && key_form_.address_bits == 0;
  const bool names = (options_.schema || key_form_.columns) && !table_is_there_;
  if (!prefixes && !guesses_schema_ && !names) return {};
  Block block;
  bool more = false;
  if (prefixes && options_.format == Format::raw) return look_at_first_key(reader, nullptr);
  STRIDE_CLI_TRY(find_first_rows(reader, &block, &more));
  if (more) {
    key_columns_ = block.file->plan.key_names();
    if (!table_is_there_) reader->set_key_names(key_columns_);
  }
  if (more && guesses_schema_) {
    Schema schema;
    STRIDE_CLI_TRY(guess_schema(block, &schema));
    if (schema.has_values()) {
      options_.schema = std::make_shared<const Schema>(std::move(schema));
      made_schema_ = true;
      const uint64_t rows = 1 + count_newlines(block.text);
      if (rows * options_.schema->fixed_bytes() > max_bytes_)
        return ExitStatus(ExitCode::no_room,
                          "the first rows would need more than " + byte_text(max_bytes_) +
                              " of memory with " + std::to_string(options_.schema->fixed_bytes()) +
                              " bytes each, for every column has its width where it is null, too: "
                              "give --schema none, or name fewer columns with --value");
      reader->set_schema(options_.schema, /*guess=*/true);
    }
  }
  return prefixes ? look_at_first_key(reader, more ? &block : nullptr) : ExitStatus();
}

// block: the first one; null: there is none.
ExitStatus Loader::look_at_first_key(BlockReader* reader, const Block* block) {
  const std::string remedy =
      ": give --address-bits 32 (IPv4), 128 (IPv6), another number, or bytes";
  if (options_.format == Format::raw)
    return ExitStatus::usage("raw records do not tell what their prefixes are of" + remedy);
  ParsedRows rows({.values = true, .rows = false, .lines = false});
  if (block) STRIDE_CLI_TRY(parse_block(*block, &rows));
  if (rows.size() == 0) {
    // A bad row before it is to be told first.
    RejectedRows rejects("", rejects_allowed(arguments_.rows), true);
    if (block) STRIDE_CLI_TRY(rejects.take(*block, &rows));
    return ExitStatus::usage("there is no key that tells what prefixes are of" + remedy);
  }
  std::string_view key = as_text(rows.keys()[0]);
  key_form_.address_bits = address_bits_told_by(key);
  if (key_form_.address_bits == 0)
    return ExitStatus::usage("key " + in_quotes(key) + " does not tell what prefixes are of" +
                             remedy);
  set_key_form();
  reader->set_key_form(options_.key_form, options_.key_width);
  return {};
}

}  // namespace stride::cli
