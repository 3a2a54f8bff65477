#include "storage/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace stride {
namespace {

TEST(StatusTest, OkIsTheDefault) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::ok);
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_EQ(status.message(), "");
  EXPECT_TRUE(Status(StatusCode::ok, "ignored").ok());
}

TEST(StatusTest, SaysWhatWhereAndWhatToDo) {
  Status status = Status::corruption("000012.seg", 65536, "the checksum of a block differs")
                      .with_remedy("restore the file from a backup");
  EXPECT_EQ(status.to_string(),
            "corruption: the checksum of a block differs (000012.seg, offset 65536): "
            "restore the file from a backup");
  EXPECT_EQ(status.file(), "000012.seg");
  EXPECT_EQ(status.offset(), 65536u);
  EXPECT_EQ(Status::invalid("too long").to_string(), "invalid_argument: too long");
  EXPECT_EQ(Status(StatusCode::locked, "held").with_file("db/LOCK").to_string(),
            "locked: held (db/LOCK)");
}

TEST(StatusTest, ACopyKeepsItsText) {
  Status first = Status::invalid("one").with_remedy("do this");
  Status second = first;
  Status third = std::move(second).with_remedy("do that");
  EXPECT_EQ(first.remedy(), "do this");
  EXPECT_EQ(third.remedy(), "do that");
}

TEST(StatusTest, TellsErrnosApart) {
  auto code = [](int error) { return Status::from_errno(error, "write", "f").code(); };
  EXPECT_EQ(code(ENOSPC), StatusCode::no_space);
  EXPECT_EQ(code(EDQUOT), StatusCode::no_space);
  EXPECT_EQ(code(EACCES), StatusCode::permission_denied);
  EXPECT_EQ(code(EROFS), StatusCode::permission_denied);
  EXPECT_EQ(code(ENOENT), StatusCode::not_found);
  EXPECT_EQ(code(EEXIST), StatusCode::already_exists);
  EXPECT_EQ(code(EMFILE), StatusCode::resource_exhausted);
  EXPECT_EQ(code(EIO), StatusCode::io_error);
  EXPECT_EQ(Status::from_errno(ENOSPC, "write", "db/f").to_string(),
            "no_space: write: No space left on device (db/f): "
            "free some space on this disk and try again");
}

TEST(StatusTest, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(StatusCode::unavailable); ++code) {
    EXPECT_NE(to_string(static_cast<StatusCode>(code)), "unknown");
  }
}

Status fails() { return Status::invalid("no"); }
Result<int> passes_on() {
  STRIDE_TRY(fails());
  return 1;
}

TEST(ResultTest, HoldsAValueOrAStatus) {
  Result<std::string> text = std::string("x");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "x");
  EXPECT_EQ(text->size(), 1u);
  EXPECT_EQ(passes_on().status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride
