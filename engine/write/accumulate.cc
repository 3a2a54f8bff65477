#include "engine/write/accumulate.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/device/executor.h"
#include "engine/read/lookup.h"
#include "gpu/backend.h"
#include "gpu/scatter_add.h"
#include "storage/quoted.h"

namespace stride {
namespace {

constexpr uint32_t none = 0xFFFFFFFF;
__extension__ using Wide = __int128;

// Finds equal keys: of each it says the number, 0, 1, 2, ... as they first came.
class KeyNumbers {
 public:
  // rows: about how many will come.
  Status begin(Backend& backend, uint32_t key_width, uint64_t rows) {
    if (key_width == 0 || key_width % 4 != 0 || key_width / 4 > max_vector_words) {
      auto made = backend.sets().make_byte_set();
      if (!made.ok()) return made.status();
      bytes_ = std::move(*made);
      return {};
    }
    VectorSetOptions options;
    options.words = key_width / 4;
    options.capacity = std::clamp<uint64_t>(rows / 8, 1 << 10, 1 << 20);
    auto made = backend.sets().make_vector_set(options);
    if (!made.ok()) return made.status();
    vectors_ = std::move(*made);
    return {};
  }
  uint64_t size() const { return vectors_ ? vectors_->size() : bytes_->size(); }

  // The numbers of the rows' keys, in numbers() until the next call.
  Status add(const KeyColumn& keys) {
    numbers_.resize(keys.size);
    was_new_.resize((keys.size + 63) / 64);
    return vectors_ ? vectors_->find_or_put(keys, numbers_, was_new_)
                    : bytes_->find_or_put(keys, numbers_, was_new_);
  }
  std::span<const uint64_t> numbers() const { return numbers_; }
  // Rows of the last call whose keys are new, a bit each.
  std::span<const uint64_t> was_new() const { return was_new_; }

 private:
  std::unique_ptr<VectorSet> vectors_;
  std::unique_ptr<ByteSet> bytes_;
  std::vector<uint64_t> numbers_, was_new_;
};

// Copies of keys.
class KeyCopies {
 public:
  explicit KeyCopies(uint32_t width) : width_(width) {}
  void add(Bytes key) {
    bytes_.insert(bytes_.end(), key.begin(), key.end());
    ++size_;
    if (!width_) offsets_.push_back(bytes_.size());
  }
  KeyColumn column() const {
    return width_ ? Column::fixed(bytes_.data(), width_, size_)
                  : Column::variable(bytes_.data(), offsets_.data(), size_);
  }
  uint64_t size() const { return size_; }

 private:
  uint32_t width_;
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_{0};
  uint64_t size_ = 0;
};

// A row that puts or erases the key that deltas are added to.
struct Base {
  uint32_t chunk = none, row = 0;
  bool found() const { return chunk != none; }
};

// The deltas of a transaction that count, by slots: a slot is a key from a put or an erasure of it
// to the next one.
struct Deltas {
  explicit Deltas(uint32_t key_width) : keys(key_width) {}

  KeyCopies keys;           // of each slot
  std::vector<Base> bases;  // of each slot; empty: none has any
  BulkVector<std::byte> numbers;
  BulkVector<uint32_t> slots;  // of each number
};

class Collector {
 public:
  Collector(StagedTable* table, Deltas* deltas)
      : table_(*table), width_(width_of(table->table->numbers)), deltas_(*deltas) {}

  Status run(Backend& backend) {
    uint64_t rows = 0, count = 0;
    for (const auto& chunk : table_.chunks) {
      rows += chunk->rows();
      count += chunk->deltas();
    }
    if (count > none - 1) return too_many();
    deltas_.numbers.resize(count * width_);
    deltas_.slots.resize(count);
    STRIDE_TRY(known_.begin(backend, table_.table->key_width, rows));
    only_deltas_ = count == rows;
    for (uint32_t c = 0; c < table_.chunks.size(); ++c) {
      const StagedChunk& chunk = *table_.chunks[c];
      if (chunk.rows() == 0) continue;
      STRIDE_TRY(known_.add(chunk.keys()));
      if (only_deltas_) {
        add_deltas(chunk);
        table_.chunks[c].reset();
      } else {
        add_rows(c, chunk);
      }
    }
    if (only_deltas_) table_.chunks.clear();
    if (dead_ > 0) drop_dead();
    return {};
  }

 private:
  static Status too_many() {
    return Status(StatusCode::resource_exhausted, "more than 4,294,967,294 deltas in a commit")
        .with_remedy("commit them in several transactions");
  }

  // Slots are the keys' numbers.
  void add_deltas(const StagedChunk& chunk) {
    const KeyColumn keys = chunk.keys();
    for_each_bit(known_.was_new(), [&](uint64_t row) { deltas_.keys.add(keys[row]); });
    std::memcpy(deltas_.numbers.data() + at_ * width_, chunk.values()[0].data(),
                chunk.rows() * width_);
    uint32_t* slots = deltas_.slots.data() + at_;
    for (uint64_t number : known_.numbers()) *slots++ = static_cast<uint32_t>(number);
    at_ += chunk.rows();
  }

  void add_rows(uint32_t c, const StagedChunk& chunk) {
    const KeyColumn keys = chunk.keys();
    const ValueColumn values = chunk.values();
    keys_.resize(known_.size());
    for (uint32_t row = 0; row < chunk.rows(); ++row) {
      Key& key = keys_[known_.numbers()[row]];
      if (chunk.kind(row) != EntryKind::delta) {
        key.base = {c, row};
        if (key.slot == none) continue;
        // What comes before this is of no account.
        is_dead_.resize(deltas_.keys.size());
        is_dead_[key.slot] = true;
        key.slot = none;
        ++dead_;
        continue;
      }
      if (key.slot == none) {
        key.slot = static_cast<uint32_t>(deltas_.keys.size());
        deltas_.keys.add(keys[row]);
        deltas_.bases.push_back(key.base);
      }
      std::memcpy(deltas_.numbers.data() + at_ * width_, values[row].data(), width_);
      deltas_.slots[at_++] = key.slot;
    }
  }

  void drop_dead() {
    Deltas live(table_.table->key_width);
    const KeyColumn keys = deltas_.keys.column();
    is_dead_.resize(keys.size);
    std::vector<uint32_t> moved(keys.size, none);
    for (uint64_t slot = 0; slot < keys.size; ++slot) {
      if (is_dead_[slot]) continue;
      moved[slot] = static_cast<uint32_t>(live.keys.size());
      live.keys.add(keys[slot]);
      live.bases.push_back(deltas_.bases[slot]);
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < at_; ++i) {
      uint32_t slot = moved[deltas_.slots[i]];
      if (slot == none) continue;
      deltas_.slots[kept] = slot;
      std::memmove(deltas_.numbers.data() + kept * width_, deltas_.numbers.data() + i * width_,
                   width_);
      ++kept;
    }
    deltas_.slots.resize(kept);
    deltas_.numbers.resize(kept * width_);
    deltas_.keys = std::move(live.keys);
    deltas_.bases = std::move(live.bases);
  }

  struct Key {
    Base base;
    uint32_t slot = none;  // of its deltas since
  };

  StagedTable& table_;
  const uint32_t width_;
  Deltas& deltas_;
  KeyNumbers known_;
  bool only_deltas_ = false;
  std::vector<Key> keys_;  // by number; where there are not only deltas
  std::vector<bool> is_dead_;
  uint64_t at_ = 0, dead_ = 0;
};

}  // namespace

// What commits before this one have staged, of each key the last row.
class DeltaSums::EarlierRows {
 public:
  Status begin(Backend& backend, uint32_t key_width) {
    return known_.begin(backend, key_width, /*rows=*/0);
  }
  Status add(const StagedTable& table) {
    for (; chunks_ < table.chunks.size(); ++chunks_) {
      const StagedChunk& chunk = *table.chunks[chunks_];
      if (chunk.rows() == 0) continue;
      STRIDE_TRY(known_.add(chunk.keys()));
      last_.resize(known_.size());
      for (uint32_t row = 0; row < chunk.rows(); ++row)
        last_[known_.numbers()[row]] = {static_cast<uint32_t>(chunks_), row};
    }
    return {};
  }
  // The last row of each key.
  Status find(const KeyColumn& keys, std::vector<Base>* rows) {
    STRIDE_TRY(known_.add(keys));
    last_.resize(known_.size());
    for (uint64_t i = 0; i < keys.size; ++i) (*rows)[i] = last_[known_.numbers()[i]];
    return {};
  }

 private:
  KeyNumbers known_;
  std::vector<Base> last_;  // by number
  size_t chunks_ = 0;
};

namespace {

// What was there, as numbers: of each slot.
class Bases {
 public:
  Bases(const Version& version, const TableRecord& table, const Deltas& deltas)
      : version_(version),
        table_(table),
        keys_(deltas.keys.column()),
        width_(width_of(table.numbers)),
        numbers_(keys_.size * width_),
        known_(keys_.size) {
    std::memset(numbers_.data(), 0, numbers_.size());
  }
  const BulkVector<std::byte>& numbers() const { return numbers_; }

  // Takes those that have a row there.
  void take(const StagedTable& from, const std::vector<Base>& rows) {
    for (uint64_t slot = 0; slot < rows.size(); ++slot) {
      if (!rows[slot].found() || known_[slot]) continue;
      known_.set(slot);
      const StagedChunk& chunk = *from.chunks[rows[slot].chunk];
      if (chunk.kind(rows[slot].row) == EntryKind::put)
        std::memcpy(numbers_.data() + slot * width_, chunk.values()[rows[slot].row].data(), width_);
    }
  }

  // Looks the others up.
  Status look_up() {
    const SegmentList& segments = version_.find(table_.id)->segments;
    if (segments.empty()) return {};
    std::vector<uint32_t> slots;
    for (uint64_t first = 0; first < keys_.size; first += rows_at_once) {
      uint64_t n = std::min(rows_at_once, keys_.size - first);
      KeyCopies unknown(table_.key_width);
      slots.clear();
      bool all = true;
      for (uint64_t slot = first; slot < first + n; ++slot) all &= !known_[slot];
      for (uint64_t slot = first; slot < first + n && !all; ++slot) {
        if (known_[slot]) continue;
        slots.push_back(static_cast<uint32_t>(slot));
        unknown.add(keys_[slot]);
      }
      KeyColumn queries = all ? keys_.slice(first, n) : unknown.column();
      if (queries.size == 0) continue;
      STRIDE_TRY(lookup_copies(*version_.executor, segments, queries, &found_));
      for (uint64_t i = 0; i < queries.size; ++i)
        if (found_.found[i]) STRIDE_TRY(set(all ? first + i : slots[i], found_.values[i]));
    }
    return {};
  }

 private:
  static constexpr uint64_t rows_at_once = 1 << 20;

  Status set(uint64_t slot, Bytes value) {
    if (value.size() != width_)
      return Status(StatusCode::corruption, "a value of table '" + table_.name + "' has " +
                                                std::to_string(value.size()) + " bytes, not " +
                                                std::to_string(width_))
          .with_remedy("restore the database from a backup");
    std::memcpy(numbers_.data() + slot * width_, value.data(), width_);
    return {};
  }

  const Version& version_;
  const TableRecord& table_;
  const KeyColumn keys_;
  const uint32_t width_;
  BulkVector<std::byte> numbers_;
  Bitmap known_;
  GetResult found_;
};

std::string decimal(Wide n) {
  std::string digits;
  bool negative = n < 0;
  do {
    int digit = static_cast<int>(n % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    n /= 10;
  } while (n != 0);
  return negative ? "-" + digits : digits;
}

// The sums of each slot.
class Summation {
 public:
  Summation(const Version& version, const TableRecord& table, const Deltas& deltas,
            const BulkVector<std::byte>& bases)
      : executor_(*version.executor), table_(table), deltas_(deltas), bases_(bases) {}

  Status run(BulkVector<std::byte>* sums) {
    if (!is_integer(table_.numbers) || table_.sums_wrap)
      return add(table_.numbers, deltas_.numbers.data(), bases_.data(), sums);
    return table_.numbers == NumberType::i32 ? exact<int32_t>(sums) : exact<int64_t>(sums);
  }

 private:
  // sums = start + what the numbers add up to. start: null, for zeros.
  Status add(NumberType type, const std::byte* numbers, const std::byte* start,
             BulkVector<std::byte>* sums) {
    const uint64_t n = deltas_.slots.size(), slots = deltas_.keys.size();
    sums->resize(slots * width_of(type));
    return executor_.run_bulk(n, [&](Backend& bulk) {
      if (start) {
        std::memcpy(sums->data(), start, sums->size());
      } else {
        std::memset(sums->data(), 0, sums->size());
      }
      return bulk.scatter().apply({type, numbers, n}, Indexes::of(deltas_.slots),
                                  {type, sums->data(), slots}, {.mode = ScatterMode::reproducible});
    });
  }

  // Whatever the sums, without an overflow on the way.
  template <class T>
  Status exact(BulkVector<std::byte>* sums) {
    const auto* numbers = reinterpret_cast<const T*>(deltas_.numbers.data());
    const uint64_t n = deltas_.slots.size(), slots = deltas_.keys.size();
    if (fits(numbers, n)) {
      STRIDE_TRY(add(table_.numbers, deltas_.numbers.data(), nullptr, sums));
      auto* sum = reinterpret_cast<T*>(sums->data());
      return add_bases<T>(sums, [&](uint64_t slot) { return sum[slot]; });
    }
    // As sums of the numbers' upper parts, and of their lower 32 bits.
    BulkVector<std::byte> high, low, halves(n * sizeof(int64_t));
    auto* half = reinterpret_cast<int64_t*>(halves.data());
    for (uint64_t i = 0; i < n; ++i) half[i] = static_cast<int64_t>(numbers[i]) >> 32;
    STRIDE_TRY(add(NumberType::i64, halves.data(), nullptr, &high));
    for (uint64_t i = 0; i < n; ++i)
      half[i] = static_cast<int64_t>(static_cast<uint32_t>(numbers[i] & 0xFFFFFFFF));
    STRIDE_TRY(add(NumberType::i64, halves.data(), nullptr, &low));
    auto* upper = reinterpret_cast<const int64_t*>(high.data());
    auto* lower = reinterpret_cast<const uint64_t*>(low.data());  // of less than 2^32 numbers
    sums->resize(slots * sizeof(T));
    return add_bases<T>(sums, [&](uint64_t slot) {
      return Wide{upper[slot]} * (Wide{1} << 32) + Wide{lower[slot]};
    });
  }

  // Whether no sum of any of them can overflow.
  template <class T>
  static bool fits(const T* numbers, uint64_t n) {
    using Unsigned = std::make_unsigned_t<T>;
    Unsigned bits = 0;
    for (uint64_t i = 0; i < n; ++i)
      bits |= static_cast<Unsigned>(numbers[i] ^ (numbers[i] >> (sizeof(T) * 8 - 1)));
    // Each is less than 2^b, or -2^b.
    return std::bit_width(bits) + std::bit_width(n) < static_cast<int>(sizeof(T) * 8);
  }

  // sums = bases + added(slot), where that fits.
  template <class T, class Added>
  Status add_bases(BulkVector<std::byte>* sums, const Added& added) {
    const auto* base = reinterpret_cast<const T*>(bases_.data());
    auto* sum = reinterpret_cast<T*>(sums->data());
    const uint64_t slots = deltas_.keys.size();
    for (uint64_t slot = 0; slot < slots; ++slot) {
      T result;
      auto more = added(slot);
      if (__builtin_add_overflow(base[slot], more, &result))
        return does_not_fit(slot, Wide{base[slot]} + Wide{more});
      sum[slot] = result;
    }
    return {};
  }

  Status does_not_fit(uint64_t slot, Wide sum) const {
    std::string type(to_string(table_.numbers));
    return Status::invalid("table '" + table_.name + "', key " +
                           quoted(deltas_.keys.column()[slot]) + ": the sum is " + decimal(sum) +
                           ", which does not fit " + type)
        .with_remedy(table_.numbers == NumberType::i32
                         ? "add less, or make a table of i64, or one with Overflow::wrap"
                         : "add less, or make a table of f64, or one with Overflow::wrap");
  }

  Executor& executor_;
  const TableRecord& table_;
  const Deltas& deltas_;
  const BulkVector<std::byte>& bases_;
};

void drop_deltas(StagedTable* table) {
  Bitmap kept;
  for (auto& chunk : table->chunks) {
    if (chunk->deltas() == 0) continue;
    kept.reset(chunk->rows());
    for (uint64_t row = 0; row < chunk->rows(); ++row)
      if (chunk->kind(row) != EntryKind::delta) kept.set(row);
    chunk->keep(kept.words());
  }
  std::erase_if(table->chunks, [](const auto& chunk) { return chunk->rows() == 0; });
}

void put_behind(const KeyColumn& keys, const ValueColumn& values, StagedTable* table) {
  for (uint64_t done = 0; done < keys.size;) {
    uint64_t rows = std::min(keys.size - done, StagedChunk::max_rows);
    auto bytes_of = [&](const Column& column, uint64_t n) {
      return column.begin(done + n) - column.begin(done);
    };
    uint64_t key_bytes =
        std::max(std::min(bytes_of(keys, rows), StagedChunk::target_bytes), bytes_of(keys, 1));
    StagedChunk::Capacity capacity{rows, key_bytes, bytes_of(values, rows)};
    auto chunk = std::make_unique<StagedChunk>(table->table->key_width, capacity);
    done += chunk->append(keys, &values, done, EntryKind::put);
    table->chunks.push_back(std::move(chunk));
  }
}

}  // namespace

DeltaSums::DeltaSums(const Version& version) : version_(version) {}
DeltaSums::~DeltaSums() = default;

Status DeltaSums::resolve(const StagedTable* before, StagedTable* table) {
  const TableRecord& record = *table->table;
  Backend& backend = *version_.backend;
  Deltas deltas(record.key_width);
  STRIDE_TRY(Collector(table, &deltas).run(backend));
  if (deltas.keys.size() == 0) {
    drop_deltas(table);
    return {};
  }
  Bases bases(version_, record, deltas);
  bases.take(*table, deltas.bases);
  if (before && before->rows() > 0) {
    if (!earlier_) {
      auto rows = std::make_unique<EarlierRows>();
      STRIDE_TRY(rows->begin(backend, record.key_width));
      earlier_ = std::move(rows);
    }
    STRIDE_TRY(earlier_->add(*before));
    std::vector<Base> rows(deltas.keys.size());
    STRIDE_TRY(earlier_->find(deltas.keys.column(), &rows));
    bases.take(*before, rows);
  }
  STRIDE_TRY(bases.look_up());
  BulkVector<std::byte> sums;
  STRIDE_TRY(Summation(version_, record, deltas, bases.numbers()).run(&sums));
  drop_deltas(table);
  put_behind(deltas.keys.column(),
             Column::fixed(sums.data(), width_of(record.numbers), deltas.keys.size()), table);
  return {};
}

}  // namespace stride
