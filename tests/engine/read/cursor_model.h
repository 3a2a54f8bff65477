// What a cursor does, done with a std::map.
#pragma once

#include <iterator>
#include <optional>
#include <string>

#include "engine/cursor.h"
#include "tests/engine/read/ordered_reads.h"

namespace stride::test {

class CursorModel {
 public:
  CursorModel(const Model& model, const CursorOptions& options) : at_(rows_.end()) {
    const ScanOptions bounds{.from = options.from, .to = options.to, .prefix = options.prefix};
    for (const auto& row : model)
      if (within(row.first, bounds)) rows_.insert(row);
  }
  CursorModel(const CursorModel&) = delete;

  void seek(const std::string& key) { at_ = rows_.lower_bound(key); }
  void seek_for_previous(const std::string& key) {
    at_ = rows_.upper_bound(key);
    at_ = at_ == rows_.begin() ? rows_.end() : std::prev(at_);
  }
  void seek_to_first() { at_ = rows_.begin(); }
  void seek_to_last() { at_ = rows_.empty() ? rows_.end() : std::prev(rows_.end()); }
  void next() {
    if (at_ != rows_.end()) ++at_;
  }
  void previous() {
    if (at_ != rows_.end()) at_ = at_ == rows_.begin() ? rows_.end() : std::prev(at_);
  }
  std::optional<std::string> key() const {
    return at_ == rows_.end() ? std::nullopt : std::optional(at_->first);
  }
  void expect_at(const Cursor& cursor) const {
    REQUIRE_OK(cursor.status());
    REQUIRE(cursor.valid() == (at_ != rows_.end()));
    if (at_ == rows_.end()) return;
    REQUIRE(text(cursor.key()) == at_->first);
    REQUIRE(text(cursor.value()) == at_->second);
  }

 private:
  Model rows_;
  Model::iterator at_;
};

inline CursorOptions random_cursor(RandomOrderedTable& rows) {
  CursorOptions options;
  if (rows.random()() % 3 == 0) options.from = rows.query();
  if (rows.random()() % 3 == 0) options.to = rows.query();
  if (rows.random()() % 4 == 0) options.prefix = rows.query().substr(0, rows.random()() % 3);
  return options;
}

// A random move, mostly a step. Returns the letter of what it was, and the key of a seek.
inline std::pair<char, std::string> move_both(RandomOrderedTable& rows, Cursor* cursor,
                                              CursorModel* model) {
  const std::string key = rows.query();
  char move = "fl<>pnpnpn"[rows.random()() % 10];
  switch (move) {
    case 'f':
      cursor->seek_to_first();
      model->seek_to_first();
      break;
    case 'l':
      cursor->seek_to_last();
      model->seek_to_last();
      break;
    case '<':
      cursor->seek_for_previous(key);
      model->seek_for_previous(key);
      break;
    case '>':
      cursor->seek(key);
      model->seek(key);
      break;
    case 'p':
      cursor->previous();
      model->previous();
      break;
    default:
      cursor->next();
      model->next();
  }
  model->expect_at(*cursor);
  return {move, key};
}

}  // namespace stride::test
