#include "storage/status.h"

#include <cerrno>
#include <string>

#include "tests/support/catch.h"

namespace stride {
namespace {

TEST_CASE("StatusTest.OkIsTheDefault", "[StatusTest]") {
  Status status;
  CHECK_OK(status);
  CHECK(status.code() == StatusCode::ok);
  CHECK(status.to_string() == "ok");
  CHECK(status.message() == "");
  CHECK_OK(Status(StatusCode::ok, "ignored"));
}

TEST_CASE("StatusTest.SaysWhatWhereAndWhatToDo", "[StatusTest]") {
  Status status = Status::corruption("000012.seg", 65536, "the checksum of a block differs")
                      .with_remedy("restore the file from a backup");
  CHECK(status.to_string() ==
        "corruption: the checksum of a block differs (000012.seg, offset 65536): "
        "restore the file from a backup");
  CHECK(status.file() == "000012.seg");
  CHECK(status.offset() == 65536u);
  CHECK(Status::invalid("too long").to_string() == "invalid_argument: too long");
  CHECK(Status(StatusCode::locked, "held").with_file("db/LOCK").to_string() ==
        "locked: held (db/LOCK)");
}

TEST_CASE("StatusTest.ACopyKeepsItsText", "[StatusTest]") {
  Status first = Status::invalid("one").with_remedy("do this");
  Status second = first;
  Status third = std::move(second).with_remedy("do that");
  CHECK(first.remedy() == "do this");
  CHECK(third.remedy() == "do that");
}

TEST_CASE("StatusTest.AKeyCanBeShownAsItsTypeHasIt", "[StatusTest]") {
  const std::string number("\x80\0\0\x05", 4);
  Status status =
      Status::invalid("table 't', key 0x80000005: too large").with_key(number).with_remedy("less");
  CHECK(status.key() == number);
  CHECK(status.message_with_key("5") == "table 't', key 5: too large");
  CHECK(status.message() == "table 't', key 0x80000005: too large");
  // The table's name comes first, whatever it is.
  status = Status::invalid("table 'a', key 'a'").with_key("a");
  CHECK(status.message_with_key("\"a\"") == "table 'a', key \"a\"");
  status = Status::invalid("key '" + std::string(60, 'k') + "...'").with_key(std::string(61, 'k'));
  CHECK(status.message_with_key("7") == "key 7");
  CHECK(Status::invalid("no key").message_with_key("7") == "no key");
  CHECK_FALSE(Status::invalid("no key").key().has_value());
  CHECK(Status::invalid("key ''").with_key("").key() == "");
  CHECK_FALSE(Status().key().has_value());
  CHECK(Status().message_with_key("7") == "");
}

TEST_CASE("StatusTest.TellsErrnosApart", "[StatusTest]") {
  auto code = [](int error) { return Status::from_errno(error, "write", "f").code(); };
  CHECK(code(ENOSPC) == StatusCode::no_space);
  CHECK(code(EDQUOT) == StatusCode::no_space);
  CHECK(code(EACCES) == StatusCode::permission_denied);
  CHECK(code(EROFS) == StatusCode::permission_denied);
  CHECK(code(ENOENT) == StatusCode::not_found);
  CHECK(code(EEXIST) == StatusCode::already_exists);
  CHECK(code(EMFILE) == StatusCode::resource_exhausted);
  CHECK(code(EIO) == StatusCode::io_error);
  CHECK(Status::from_errno(ENOSPC, "write", "db/f").to_string() ==
        "no_space: write: No space left on device (db/f): "
        "free some space on this disk and try again");
}

TEST_CASE("StatusTest.EveryCodeHasAName", "[StatusTest]") {
  for (int code = 0; code <= static_cast<int>(StatusCode::conflict); ++code) {
    CHECK(to_string(static_cast<StatusCode>(code)) != "unknown");
  }
}

Status fails() { return Status::invalid("no"); }
Result<int> passes_on() {
  STRIDE_TRY(fails());
  return 1;
}

TEST_CASE("ResultTest.HoldsAValueOrAStatus", "[ResultTest]") {
  Result<std::string> text = std::string("x");
  REQUIRE_OK(text);
  CHECK(*text == "x");
  CHECK(text->size() == 1u);
  CHECK(passes_on().status().code() == StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride
