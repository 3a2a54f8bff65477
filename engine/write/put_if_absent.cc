#include "engine/write/put_if_absent.h"

#include "engine/catalog/expired_rows.h"
#include "engine/read/lookup.h"
#include "gpu/vector_set.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

uint64_t words_of(uint64_t bits) { return (bits + 63) / 64; }

// Decides which rows of a table are new.
class Decider {
 public:
  Decider(const Version& version, const TableRecord& table)
      : executor_(*version.executor),
        segments_(version.find(table.id)->segments),
        backend_(*version.backend),
        expiry_(expiry_at(table, version.database->clock.now())) {}

  Status begin() {
    auto seen = backend_.sets().make_byte_set();
    if (!seen.ok()) return seen.status();
    seen_ = std::move(*seen);
    return {};
  }

  // Rows that come before all that are put if absent: of a key the last one counts.
  Status add_other(const StagedChunk& chunk) {
    if (chunk.rows() == 0) return {};
    ids_.resize(chunk.rows());
    STRIDE_TRY(seen_->find_or_put(chunk.keys(), ids_, {}));
    last_kinds_.resize(seen_->size());
    for (uint64_t i = 0; i < ids_.size(); ++i)
      last_kinds_[ids_[i]] = has_ended(chunk, i) ? EntryKind::tombstone : chunk.kind(i);
    return {};
  }

  // Keeps the rows that are new, and says which those were.
  Status decide(StagedChunk* chunk, Bitmap* is_new) {
    const uint64_t rows = chunk->rows();
    is_new->reset(rows);
    erased_.reset(rows);
    candidates_.reset(rows);
    if (expiry_.is_there()) return decide_with_ends(chunk, is_new);
    ids_.resize(last_kinds_.empty() ? 0 : rows);
    STRIDE_TRY(seen_->find_or_put(chunk->keys(), ids_, candidates_.words()));
    for (uint64_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] >= last_kinds_.size()) continue;
      EntryKind& last = last_kinds_[ids_[i]];
      if (last == EntryKind::put) continue;
      last = EntryKind::put;
      erased_.set(i);
      candidates_.set(i);
    }
    chunk->keep(candidates_.words());
    return drop_stored(chunk, is_new);
  }

 private:
  bool has_ended(const StagedChunk& chunk, uint64_t row) const {
    return expiry_.is_there() && chunk.kind(row) == EntryKind::put &&
           expiry_.hides(chunk.values()[row]);
  }

  // As decide(), where rows may have ended: such a one is put, as it were, and leaves room for the
  // next of its key. It is not kept, as nobody would see it.
  Status decide_with_ends(StagedChunk* chunk, Bitmap* is_new) {
    ids_.resize(chunk->rows());
    ended_.reset(chunk->rows());
    STRIDE_TRY(seen_->find_or_put(chunk->keys(), ids_, {}));
    last_kinds_.resize(seen_->size(), EntryKind::delta);  // that is: as the version has the key
    for (uint64_t i = 0; i < ids_.size(); ++i) {
      EntryKind& last = last_kinds_[ids_[i]];
      if (last == EntryKind::put) continue;
      candidates_.set(i);
      if (last == EntryKind::tombstone) erased_.set(i);
      if (has_ended(*chunk, i))
        ended_.set(i);
      else
        last = EntryKind::put;
    }
    chunk->keep(candidates_.words());
    return drop_stored(chunk, is_new);
  }

  // Keeps those of the candidates, which are all that the chunk has now, that the version lacks.
  Status drop_stored(StagedChunk* chunk, Bitmap* is_new) {
    const bool any_stored = !segments_.empty();
    if (chunk->rows() == 0 || (!any_stored && !expiry_.is_there())) {
      *is_new = candidates_;
      return {};
    }
    if (any_stored) STRIDE_TRY(lookup_references(executor_, segments_, chunk->keys(), &stored_));
    kept_.reset(chunk->rows());
    uint64_t at = 0;
    for_each_bit(candidates_.words(), [&](uint64_t row) {
      if (!any_stored || !stored_.found[at] || erased_[row]) {
        if (!expiry_.is_there() || !ended_[row]) kept_.set(at);
        is_new->set(row);
      }
      ++at;
    });
    chunk->keep(kept_.words());
    return {};
  }

  Executor& executor_;
  const SegmentList& segments_;
  Backend& backend_;
  const ExpiryCheck expiry_;
  std::unique_ptr<ByteSet> seen_;
  std::vector<EntryKind> last_kinds_;  // by id: of the keys that other rows put or erase
  std::vector<uint64_t> ids_;
  Bitmap candidates_, erased_, ended_, kept_;
  FindResult stored_;
};

// Sets the bits of `to` from `bit` on that are set in `from`, of `count` from `first` on.
void copy_bits(const Bitmap& from, uint64_t first, uint64_t count, uint64_t* to, uint64_t bit) {
  set_bits({to, words_of(bit + count)}, bit, count, [&](uint64_t i) { return from[first + i]; });
}

}  // namespace

Status AbsentAnswers::decide(const Version& version, StagedTable* table) {
  if (table->absent.empty()) return {};
  Decider decider(version, *table->table);
  STRIDE_TRY(decider.begin());
  for (const auto& chunk : table->chunks) {
    STRIDE_TRY(WorkWatch::check());
    STRIDE_TRY(decider.add_other(*chunk));
  }
  for (auto& absent : table->absent) {
    STRIDE_TRY(WorkWatch::check());
    if (WorkWatch* watch = WorkWatch::current()) watch->add(absent->rows->rows());
    Decided decided{std::move(absent->answers), {}};
    STRIDE_TRY(decider.decide(absent->rows.get(), &decided.is_new));
    table->chunks.push_back(std::move(absent->rows));
    if (!decided.answers.empty()) decided_.push_back(std::move(decided));
  }
  table->absent.clear();
  return {};
}

void AbsentAnswers::give() const {
  for (const Decided& decided : decided_)
    for (const AbsentChunk::Answer& a : decided.answers)
      copy_bits(decided.is_new, a.first, a.count, a.words, a.bit);
}

}  // namespace stride
