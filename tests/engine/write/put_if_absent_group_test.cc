// Rows that are put where their key is not there, by transactions that are committed together.
#include <string>
#include <vector>

#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

class PutIfAbsentGroupTest : public GroupFixture {
 protected:
  // Rows whose value is the number of the transaction.
  void put(const Keys& keys) {
    changes_.push_back([=, this, number = start(keys)](WriteTransaction& t) {
      return t.put(table_, Rows(keys).column(), values(keys, number).column());
    });
  }
  void put_if_absent(const Keys& keys) {
    changes_.push_back([=, this, number = start(keys)](WriteTransaction& t) {
      return t.put_if_absent(table_, Rows(keys).column(), values(keys, number).column(),
                             bits_[number]);
    });
  }
  void erase(const Keys& keys) {
    changes_.push_back([=, this, number = start(keys)](WriteTransaction& t) {
      return t.erase(table_, Rows(keys).column());
    });
  }
  void commit() {
    for (const Status& s : commit_together(changes_)) REQUIRE_OK(s);
    changes_.clear();
  }
  std::string value(const char* key) {
    auto found = db_->snapshot().get(table_, key);
    return found.ok() && found->has_value() ? text(**found) : "none";
  }

  std::vector<Bits> bits_;  // of each transaction

 private:
  size_t start(const Keys& keys) {
    bits_.resize(changes_.size());
    bits_.push_back(bits_for(keys.size()));
    return changes_.size();
  }
  static Rows values(const Keys& keys, size_t number) {
    return Rows(Keys(keys.size(), std::to_string(number)));
  }

  std::vector<Change> changes_;
};

// Transactions that are carried out together count in the order of their commits.
TEST_CASE_METHOD(PutIfAbsentGroupTest, "PutIfAbsentGroupTest.TransactionsOfOneGroup",
                 "[PutIfAbsentGroupTest]") {
  put_if_absent({"a", "b", "b"});
  put_if_absent({"b", "c"});
  commit();
  CHECK(bits_ == (std::vector<Bits>{{0b011}, {0b10}}));
  CHECK(value("b") + value("c") == "01");
  CHECK(db_->tables()[0].runs == 2u);  // the gate's, and one of both
  put({"d"});
  put_if_absent({"d", "a", "e"});
  erase({"e", "a"});
  put_if_absent({"e", "d", "a"});
  put({"a"});
  commit();
  CHECK(bits_[1] == Bits{0b100});
  CHECK(bits_[3] == Bits{0b101});
  CHECK(value("d") + value("e") + value("a") == "034");
}

}  // namespace
}  // namespace stride::test
