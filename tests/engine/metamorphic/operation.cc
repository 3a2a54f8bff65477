#include "tests/engine/metamorphic/operation.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "tests/support/prefix_model.h"

namespace stride::test::metamorphic {
namespace {

// Draws the parts of one operation.
class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  Operation operation() {
    Operation made;
    made.table = table();
    made.kept = static_cast<int>(below(kept_snapshots));
    made.kind = kind();
    switch (made.kind) {
      case Operation::Kind::commit:
        for (uint64_t n = one_in(8) ? 2 : 1; n > 0; --n) made.transactions.push_back(changes());
        break;
      case Operation::Kind::concurrent:
        for (int lane = 0; lane < 3; ++lane) made.transactions.push_back(lane_changes(lane));
        break;
      case Operation::Kind::drop_before_commit:
        made.transactions.push_back(changes());
        made.table = made.transactions[0].steps[0].table;
        break;
      case Operation::Kind::read:
        made.reading = reading();
        break;
      default:
        break;
    }
    return made;
  }

 private:
  using StepKind = Step::Kind;

  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  int table() { return static_cast<int>(below(tables)); }

  Operation::Kind kind() {
    const uint64_t which = below(200);
    if (which < 96) return Operation::Kind::commit;
    if (which < 150) return Operation::Kind::read;
    if (which < 172) return Operation::Kind::keep;
    if (which < 182) return Operation::Kind::create;
    if (which < 186) return Operation::Kind::concurrent;
    if (which < 190) return Operation::Kind::sync;
    if (which < 193) return Operation::Kind::compact;
    if (which < 194) return Operation::Kind::read_only;
    return which < 198 ? Operation::Kind::drop : Operation::Kind::drop_before_commit;
  }

  std::string bytes(uint64_t length, uint64_t alphabet) {
    std::string made(length, '\0');
    for (char& c : made) {
      const uint64_t r = below(alphabet);
      c = r == 0 ? '\0' : r == 1 ? '\xFF' : static_cast<char>('a' + r % 26);
    }
    return made;
  }

  std::string key(int table) {
    switch (kind_of(table)) {
      case TableKind::any:
        return bytes(below(6), 4);
      case TableKind::words:
        return "some/path/" + std::string(below(3), 'x') + std::to_string(below(120));
      case TableKind::fixed8:
        return bytes(8, 26).replace(0, 7, "same_so").substr(0, 8);
      case TableKind::fixed20:
        return std::string(16, '\xFF') + bytes(4, 3);
      case TableKind::shared:
        return "s" + std::to_string(below(150));
      case TableKind::prefixes:
        return prefix_key(PrefixModel(12));
      case TableKind::strings:
        return bytes(below(6), 3);
      case TableKind::many:
        return many_key(below(1 << 17));
      default:
        return "n" + std::to_string(below(60));
    }
  }
  static std::string many_key(uint64_t n) {
    return {'m', 'a', 'n', 'y', char(n >> 24), char(n >> 16), char(n >> 8), char(n)};
  }
  std::string prefix_key(const PrefixModel& model) {
    return model.key(address(TableKind::prefixes), static_cast<uint32_t>(below(13)));
  }
  std::string address(TableKind kind) {
    if (kind == TableKind::strings) return bytes(below(9), 3);
    // The low bits of the second byte are behind the address.
    return {static_cast<char>(below(4) << 6 | below(2)), static_cast<char>(below(16) << 4)};
  }

  std::string value(int table) {
    const TableKind kind = kind_of(table);
    if (has_numbers(kind)) return encode_number(kind, number(kind));
    if (kind == TableKind::shared) return std::string(20 + below(3) * 30, char('A' + below(5)));
    const uint64_t longest = kind == TableKind::words ? 300 : 40;
    return std::string(one_in(3) ? below(longest) : below(8), char('a' + below(26)));
  }
  int64_t number(TableKind kind) {
    const auto small = static_cast<int64_t>(below(2000)) - 1000;
    if (kind == TableKind::f64 || !one_in(12)) return small;
    return kind == TableKind::i64 ? std::numeric_limits<int64_t>::max() - below(500)
                                  : std::numeric_limits<int32_t>::max() - below(500);
  }

  uint64_t row_count() {
    const uint64_t which = below(40);
    if (which == 0) return 0;
    if (which == 1) return 1000 + below(1500);
    if (which < 4) return 100 + below(300);
    return 1 + below(which < 20 ? 2 : 12);
  }

  Changes changes() {
    Changes made;
    for (uint64_t n = one_in(3) ? 1 + below(5) : 1; n > 0; --n) made.steps.push_back(step());
    made.durability = static_cast<Durability>(below(3));
    made.aborted = one_in(25);
    return made;
  }

  Step step() {
    static constexpr StepKind kinds[] = {
        StepKind::put,          StepKind::put,           StepKind::put,
        StepKind::put,          StepKind::put_column,    StepKind::put_column,
        StepKind::put_view,     StepKind::erase,         StepKind::erase,
        StepKind::erase_column, StepKind::erase_range,   StepKind::erase_ranges,
        StepKind::accumulate,   StepKind::put_if_absent, StepKind::put_if_absent,
        StepKind::create};
    Step made;
    made.kind = kinds[below(std::size(kinds))];
    made.table = table();
    const bool sums = has_numbers(kind_of(made.table)) && made.kind == StepKind::put;
    if (sums && !one_in(4)) made.kind = StepKind::accumulate;
    fill(&made, {});
    if (kind_of(made.table) == TableKind::many && one_in(300)) fill_many(&made);
    return made;
  }

  // More than a piece in memory has without a tree; or all is erased again.
  void fill_many(Step* made) {
    made->kind = one_in(3) ? StepKind::erase_range : StepKind::put_column;
    made->keys.assign(1, "");
    made->values.assign(1, "");
    if (made->kind == StepKind::erase_range) return;
    made->keys.clear();
    made->values.clear();
    for (uint64_t n = below(1000); n < 70'000; ++n) {
      made->keys.push_back(many_key(n * 3 & 0x1FFFF));
      made->values.push_back(std::string(n % 3, char('a' + made->keys.size() % 26)));
    }
  }

  // keys begin with `lane`
  void fill(Step* made, const std::string& lane) {
    uint64_t rows = row_count();
    const bool by_rows = made->kind == StepKind::put || made->kind == StepKind::erase;
    if (by_rows) rows = std::min<uint64_t>(rows, 20);
    if (made->kind == StepKind::erase_range) rows = 1;
    if (made->kind == StepKind::erase_ranges) rows = below(4);
    for (; rows > 0; --rows) {
      made->keys.push_back(lane + key(made->table));
      const bool range =
          made->kind == StepKind::erase_range || made->kind == StepKind::erase_ranges;
      // Most ranges are short, for much is gone after others.
      if (range) {
        std::string from = made->keys.back();
        made->values.push_back(one_in(8) ? lane + key(made->table) : from + "9");
        if (lane.empty() && one_in(20)) made->keys.back().clear();
        if (lane.empty() && one_in(30)) made->values.back().clear();
      } else {
        made->values.push_back(value(made->table));
      }
      made->deltas.push_back(number(kind_of(made->table)));
    }
    // A key of the wrong width is refused, with all rows that come with it.
    if (table_options(made->table).key_width && one_in(30) && !made->keys.empty())
      made->keys.back() += "?";
  }

  // What it changes are keys that no other lane has.
  Changes lane_changes(int lane) {
    static constexpr int free_keys[] = {0, 1, 4, 5, 6, 7, 9};
    static constexpr StepKind kinds[] = {StepKind::put_column, StepKind::put,
                                         StepKind::erase,      StepKind::put_if_absent,
                                         StepKind::accumulate, StepKind::erase_ranges};
    Changes made;
    for (uint64_t n = 1 + below(3); n > 0; --n) {
      Step step;
      step.kind = kinds[below(std::size(kinds))];
      step.table = free_keys[below(std::size(free_keys))];
      fill(&step, "lane" + std::to_string(lane));
      made.steps.push_back(std::move(step));
    }
    made.durability = static_cast<Durability>(below(3));
    return made;
  }

  Reading reading() {
    Reading made;
    made.table = table();
    if (one_in(2)) made.kept = static_cast<int>(below(kept_snapshots));
    for (uint64_t n = one_in(6) ? 200 : below(12); n > 0; --n) made.keys.push_back(key(made.table));
    if (has_prefixes(kind_of(made.table)))
      for (int i = 0; i < 20; ++i) made.addresses.push_back(address(kind_of(made.table)));
    ScanOptions& scan = made.scan;
    if (kind_of(made.table) == TableKind::many) {
      const uint64_t from = below(1 << 17);
      scan.from = many_key(from);
      scan.to = many_key(from + below(500));
      scan.reverse = one_in(2);
      return made;
    }
    if (one_in(2)) scan.from = key(made.table);
    if (one_in(2)) scan.to = key(made.table);
    if (one_in(4)) scan.prefix = key(made.table).substr(0, below(4));
    scan.from_inclusive = !one_in(3);
    scan.to_inclusive = one_in(3);
    scan.reverse = one_in(2);
    scan.batch_rows = one_in(2) ? 0 : static_cast<uint32_t>(1 + below(40));
    return made;
  }

  std::mt19937_64 random_;
};

const char* name_of(Step::Kind kind) {
  static constexpr const char* names[] = {
      "put",         "put_column",   "put_view",      "erase",      "erase_column",
      "erase_range", "erase_ranges", "put_if_absent", "accumulate", "create"};
  return names[static_cast<int>(kind)];
}

std::string describe(const Step& step) {
  std::string said = std::string(name_of(step.kind)) + " " + table_name(step.table) + " {";
  for (size_t i = 0; i < step.keys.size(); ++i) {
    if (i == 4) return said + " ... of " + std::to_string(step.keys.size()) + " rows}";
    said += (i ? ", " : "") + printable(step.keys[i]) + ": ";
    said += step.kind == Step::Kind::accumulate ? std::to_string(step.deltas[i])
                                                : printable(step.values[i]);
  }
  return said + "}";
}

std::string describe(const Reading& reading) {
  std::string said = reading.kept ? "kept " + std::to_string(*reading.kept) : "now";
  said += " " + table_name(reading.table) + ", " + std::to_string(reading.keys.size()) + " keys";
  const ScanOptions& scan = reading.scan;
  if (scan.from) said += ", from " + printable(*scan.from);
  if (scan.to) said += ", to " + printable(*scan.to);
  if (scan.prefix) said += ", prefix " + printable(*scan.prefix);
  return said + (scan.reverse ? ", reverse" : "");
}

}  // namespace

std::string table_name(int table) {
  static constexpr const char* names[] = {"any",      "words",   "fixed8",   "fixed20",
                                          "shared",   "i64",     "wrapping", "f64",
                                          "prefixes", "strings", "many"};
  return names[table];
}

TableOptions table_options(int table) {
  TableOptions options;
  switch (const TableKind kind = kind_of(table)) {
    case TableKind::fixed8:
    case TableKind::many:
      options.key_width = 8;
      break;
    case TableKind::fixed20:
      options.key_width = 20;
      break;
    case TableKind::shared:
      options.share_equal_values = true;
      break;
    case TableKind::i64:
      options.numbers = NumberType::i64;
      break;
    case TableKind::wrapping:
      options.numbers = NumberType::i32;
      options.overflow = Overflow::wrap;
      break;
    case TableKind::f64:
      options.numbers = NumberType::f64;
      break;
    default:
      options.address_bits = address_bits_of(kind);
      break;
  }
  return options;
}

Operation make_operation(uint64_t seed) { return Drawing(seed).operation(); }

std::string printable(const std::string& bytes) {
  std::string said = "\"";
  for (char c : bytes) {
    if (said.size() > 30) return said + "...\"";
    if (c >= ' ' && c <= '~') {
      said += c;
    } else {
      static constexpr char digits[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      said += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return said + "\"";
}

std::string describe(const Operation& operation) {
  static constexpr const char* names[] = {
      "commit", "concurrent", "create", "drop",      "keep",
      "read",   "compact",    "sync",   "read_only", "drop_before_commit"};
  std::string said = names[static_cast<int>(operation.kind)];
  for (const Changes& changes : operation.transactions) {
    said += " [";
    for (const Step& step : changes.steps) said += describe(step) + "; ";
    static constexpr const char* levels[] = {"sync", "flush", "none"};
    said += changes.aborted ? "abort]" : levels[static_cast<int>(changes.durability)];
    if (!changes.aborted) said += "]";
  }
  if (operation.kind == Operation::Kind::read) return said + " " + describe(operation.reading);
  if (operation.kind == Operation::Kind::keep) return said + " " + std::to_string(operation.kept);
  const bool named = operation.kind == Operation::Kind::create ||
                     operation.kind == Operation::Kind::drop ||
                     operation.kind == Operation::Kind::drop_before_commit;
  return named ? said + " " + table_name(operation.table) : said;
}

std::string encode_number(TableKind kind, int64_t number) {
  std::string encoded(kind == TableKind::wrapping ? 4 : 8, '\0');
  const auto narrow = static_cast<int32_t>(number);
  const auto floating = static_cast<double>(number);
  const void* from = &number;
  if (kind == TableKind::wrapping) from = &narrow;
  if (kind == TableKind::f64) from = &floating;
  std::memcpy(encoded.data(), from, encoded.size());
  return encoded;
}

int64_t decode_number(TableKind kind, const std::string& value) {
  int64_t number = 0;
  int32_t narrow = 0;
  double floating = 0;
  if (kind == TableKind::wrapping) {
    std::memcpy(&narrow, value.data(), sizeof narrow);
    return narrow;
  }
  if (kind == TableKind::f64) {
    std::memcpy(&floating, value.data(), sizeof floating);
    return static_cast<int64_t>(floating);
  }
  std::memcpy(&number, value.data(), sizeof number);
  return number;
}

}  // namespace stride::test::metamorphic
