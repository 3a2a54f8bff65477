// Lists of tables and their index, beside plain vectors.
#include "engine/catalog/table_list.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/catalog/table_index.h"
#include "engine/catalog/version.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class TableListTest {
 protected:
  TableList::value_type make(uint32_t id) {
    auto record = std::make_shared<TableRecord>();
    record->id = id;
    record->name = std::to_string(random_());
    return std::make_shared<const TableVersion>(TableVersion{std::move(record), {}, nullptr});
  }
  std::vector<TableList::value_type> make_some(size_t n) {
    std::vector<TableList::value_type> tables;
    for (; n > 0; --n) tables.push_back(make(next_id_ += 1 + static_cast<uint32_t>(random_() % 3)));
    return tables;
  }
  // Each position with the given chance, or a stretch of them.
  std::vector<size_t> draw(double share) {
    std::vector<size_t> positions;
    const size_t first = random_() % (model_.size() + 1), stretch = random_() % 400;
    const bool together = random_() % 2;
    std::bernoulli_distribution is_drawn(share);
    for (size_t i = 0; i < model_.size(); ++i)
      if (together ? i >= first && i < first + stretch : is_drawn(random_)) positions.push_back(i);
    return positions;
  }
  static std::vector<const TableRecord*> records(const std::vector<TableList::value_type>& tables) {
    std::vector<const TableRecord*> all;
    for (const auto& table : tables) all.push_back(table->table.get());
    return all;
  }
  void expect_equal() {
    REQUIRE(list_.size() == model_.size());
    REQUIRE(list_.all() == model_);
    REQUIRE(index_.size() == model_.size());
    size_t wrong = 0;
    for (size_t i = 0; i < model_.size(); ++i) {
      const TableRecord& record = *model_[i]->table;
      wrong += list_[i] != model_[i] || index_.position(record.id) != i ||
               index_.position_behind(record.id) != i + 1 || index_.find(record.name) != &record;
    }
    REQUIRE(wrong == 0u);
    for (const TableRecord* record : records(dropped_)) {
      wrong += index_.position(record->id) != TableIndex::none;
      wrong += index_.find(record->name) != nullptr;
    }
    REQUIRE(wrong == 0u);
  }

  std::mt19937_64 random_{seed()};
  uint32_t next_id_ = 0;
  std::vector<TableList::value_type> model_, dropped_;
  TableList list_;
  TableIndex index_;
};

TEST_CASE_METHOD(TableListTest, "TableListTest.AddsReplacesAndDrops", "[TableListTest]") {
  for (int round = 0; round < 300; ++round) {
    const TableList before = list_;
    const std::vector<TableList::value_type> model_before = model_;
    const auto what = random_() % 3;
    if (what == 0) {
      const auto added = make_some(random_() % (random_() % 4 == 0 ? 600 : 5));
      list_ = list_.with_added(added);
      index_ = TableIndex(index_, records(added));
      model_.insert(model_.end(), added.begin(), added.end());
    } else if (what == 1) {
      std::vector<TableList::Replacement> replaced;
      for (size_t at : draw(0.05)) {
        replaced.emplace_back(at, std::make_shared<const TableVersion>(*model_[at]));
        model_[at] = replaced.back().second;
      }
      list_ = list_.with_replaced(replaced);
    } else {
      const auto positions = draw(random_() % 8 == 0 ? 0.9 : 0.02);
      dropped_.clear();
      for (size_t at : positions) dropped_.push_back(model_[at]);
      list_ = list_.without(positions);
      index_ = index_.without(records(dropped_));
      for (auto at = positions.rbegin(); at != positions.rend(); ++at)
        model_.erase(model_.begin() + static_cast<ptrdiff_t>(*at));
    }
    expect_equal();
    REQUIRE(before.all() == model_before);
  }
}

}  // namespace
}  // namespace stride::test
