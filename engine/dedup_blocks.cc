#include "engine/dedup_blocks.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "storage/integer_key.h"
#include "storage/quoted.h"
#include "storage/vector_block.h"

namespace stride {
namespace {

constexpr uint64_t head_key = UINT64_MAX;
constexpr uint64_t decoded_bytes = 16 << 20;  // handed on at once

}  // namespace

Status damaged_dedup_table(const std::string& table, const std::string& what) {
  return Status(StatusCode::corruption, "compressed dedup table " + in_quotes(table) + ": " + what)
      .with_remedy("restore the table from a copy: its vectors and their ids cannot be trusted");
}

Result<std::optional<DedupHead>> read_dedup_head(const Database& database, const Table& table) {
  const uint64_t key = u64_key(head_key);
  const Snapshot snapshot = database.snapshot();
  auto value = snapshot.get(table, std::as_bytes(std::span(&key, 1)));
  if (!value.ok()) return value.status();
  DedupHead head;
  if (!*value || (*value)->size() < sizeof head.magic) return std::optional<DedupHead>();
  std::memcpy(&head.magic, (*value)->data(), sizeof head.magic);
  if (head.magic != DedupHead::mark) return std::optional<DedupHead>();
  if ((*value)->size() < sizeof head)
    return damaged_dedup_table(table.name(), "its head is cut off");
  std::memcpy(&head, (*value)->data(), sizeof head);
  if (head.version > DedupHead::newest)
    return Status(StatusCode::unsupported_version,
                  "compressed dedup table " + in_quotes(table.name()) + " is of version " +
                      std::to_string(head.version) + ", this program knows up to " +
                      std::to_string(DedupHead::newest))
        .with_remedy("use a newer version of StrideDB");
  if (head.version == 0 || head.words == 0 || head.words > max_block_words ||
      (*value)->size() != sizeof head)
    return damaged_dedup_table(table.name(), "its head is none");
  return std::optional(head);
}

Status create_compressed_table(Database& database, const std::string& name, uint32_t words,
                               std::optional<Durability> durability) {
  WriteTransaction transaction = database.begin();
  auto table = transaction.create_table(name, {.key_width = sizeof(uint64_t)});
  if (!table.ok()) return table.status();
  const uint64_t key = u64_key(head_key);
  DedupHead head;
  head.words = words;
  STRIDE_TRY(transaction.put(*table, std::as_bytes(std::span(&key, 1)),
                             std::as_bytes(std::span(&head, 1))));
  return transaction.commit(durability);
}

Status BlockRowReader::damaged(uint64_t id, const std::string& what) const {
  return damaged_dedup_table(table_, "the block of id " + std::to_string(id) + " " + what);
}

Status BlockRowReader::add(Bytes key, Bytes value) {
  const uint64_t id = u64_of_key(key);
  if (id == head_key) {
    ended_ = true;
    return {};
  }
  if (ended_ || id != vectors_)
    return damaged(id, "follows " + std::to_string(vectors_) + " vectors");
  VectorBlock block;
  if (!block.open(value, words_))
    return damaged(id, "is none of vectors of " + std::to_string(words_) + " words");
  std::byte* out = decoded_.data() + waiting_ * words_ * 4;
  for (uint32_t i = 0; i < block.size(); ++i, out += words_ * 4)
    if (!block.read(i, out)) return damaged(id, "has a code that means nothing");
  waiting_ += block.size();
  vectors_ += block.size();
  ended_ = block.size() < vectors_of_block(words_);
  return {};
}

Status BlockRowReader::read(Scan* scan, const Put& put) {
  const uint64_t most = decoded_bytes / (words_ * 4), width = words_ * 4;
  decoded_.reset(decoded_bytes);
  vectors_ = waiting_ = 0;
  ended_ = false;
  auto hand_on = [&]() -> Status {
    if (waiting_ == 0) return {};
    const uint64_t n = std::exchange(waiting_, 0);
    return put(Column::fixed(decoded_.data(), static_cast<uint32_t>(width), n));
  };
  ScanBatch batch;
  while (scan->next(&batch)) {
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      if (waiting_ + vectors_of_block(words_) > most) STRIDE_TRY(hand_on());
      STRIDE_TRY(add(batch.keys[i], batch.values[i]));
    }
  }
  STRIDE_TRY(scan->status());
  return hand_on();
}

Result<uint64_t> BlockRowReader::count(const Snapshot& snapshot, const Table& table) const {
  auto row = snapshot.iterate(table, {.reverse = true, .batch_rows = 2});
  if (!row.ok()) return row.status();
  if (row->valid() && u64_of_key(row->key()) == head_key) row->next();
  STRIDE_TRY(row->status());
  if (!row->valid()) return uint64_t{0};
  const uint64_t id = u64_of_key(row->key());
  VectorBlock block;
  if (!block.open(row->value(), words_)) return damaged(id, "is none");
  return id + block.size();
}

uint64_t BlockRowWriter::block_of(uint64_t id) const {
  return id / vectors_of_block(words_) * vectors_of_block(words_);
}

void BlockRowWriter::make(uint64_t first, const std::byte* vectors, uint64_t n) {
  const uint64_t full = vectors_of_block(words_), width = uint64_t{words_} * 4;
  rows_ = (n + full - 1) / full;
  keys_.reset(rows_);
  ends_.reset(rows_ + 1);
  values_.reset(n * width + rows_ * vector_block_header_bytes);
  ends_[0] = 0;
  for (uint64_t r = 0; r < rows_; ++r) {
    const uint64_t at = r * full;
    keys_[r] = u64_key(first + at);
    ends_[r + 1] = ends_[r] + write_vector_block(vectors + at * width, words_,
                                                 static_cast<uint32_t>(std::min(full, n - at)),
                                                 values_.data() + ends_[r]);
  }
}

KeyColumn BlockRowWriter::keys() const {
  return Column::fixed(keys_.data(), sizeof(uint64_t), rows_);
}
ValueColumn BlockRowWriter::values() const {
  return Column::variable(values_.data(), ends_.data(), rows_);
}

}  // namespace stride
