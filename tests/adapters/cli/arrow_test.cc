// Parquet and Arrow files: what becomes of each type of column, and of files that are damaged.
#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <parquet/arrow/writer.h>

#include <limits>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

template <class T>
T good(arrow::Result<T> result) {
  if (!result.ok()) {
    FAIL_CHECK(result.status().ToString());
    abort();
  }
  return std::move(result).ValueUnsafe();
}

void expect_good(const arrow::Status& status) { REQUIRE_MESSAGE(status.ok(), status.ToString()); }

struct NamedColumn {
  std::string name;
  std::shared_ptr<arrow::Array> array;
};

std::shared_ptr<arrow::Table> table_of(const std::vector<NamedColumn>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const NamedColumn& column : columns) {
    fields.push_back(arrow::field(column.name, column.array->type()));
    arrays.push_back(column.array);
  }
  return arrow::Table::Make(arrow::schema(fields), arrays);
}

// "" is null where `nulls` is set.
template <class Builder>
std::shared_ptr<arrow::Array> strings(Builder&& builder, const std::vector<std::string>& values,
                                      bool nulls = false) {
  for (const std::string& value : values)
    expect_good(nulls && value.empty() ? builder.AppendNull() : builder.Append(value));
  return good(builder.Finish());
}

template <class Builder, class Number>
std::shared_ptr<arrow::Array> numbers(Builder&& builder, const std::vector<Number>& values) {
  for (Number value : values)
    expect_good(builder.Append(static_cast<typename std::decay_t<Builder>::value_type>(value)));
  return good(builder.Finish());
}

enum class Form { parquet, file, stream };
constexpr Form forms[] = {Form::parquet, Form::file, Form::stream};

class ArrowTest : public CliFixture {
 protected:
  // group_rows: of a row group or a record batch.
  std::string write(const std::shared_ptr<arrow::Table>& table, Form form,
                    int64_t group_rows = 1 << 20) {
    auto sink = good(arrow::io::BufferOutputStream::Create());
    if (form == Form::parquet) {
      auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
      expect_good(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, group_rows,
                                             parquet::default_writer_properties(),
                                             arrow_properties));
    } else {
      auto writer = form == Form::file ? good(arrow::ipc::MakeFileWriter(sink, table->schema()))
                                       : good(arrow::ipc::MakeStreamWriter(sink, table->schema()));
      expect_good(writer->WriteTable(*table, group_rows));
      expect_good(writer->Close());
    }
    std::string content = good(sink->Finish())->ToString();
    std::string ending = form == Form::parquet ? "parquet"
                         : form == Form::file  ? "feather"
                                               : "arrow";
    return file(std::to_string(files_written_++) + "." + ending, content);
  }
  // What is in the table once the columns are loaded, which is the same of every form.
  std::string loaded(const std::shared_ptr<arrow::Table>& table,
                     const std::vector<std::string>& options, int64_t group_rows = 1 << 20) {
    std::string rows;
    for (Form form : forms) {
      std::string name = "t" + std::to_string(files_written_);
      CHECK_MESSAGE(load(write(table, form, group_rows), options, name) == 0, error_);
      std::string scanned = scan({}, name);
      if (form == forms[0]) rows = scanned;
      CHECK_MESSAGE(scanned == rows, static_cast<int>(form));
    }
    return rows;
  }
  // Rows "00000000" to the last one, with "value I".
  static std::shared_ptr<arrow::Table> many(int rows) {
    arrow::StringBuilder keys, values;
    for (int i = 0; i < rows; ++i) {
      std::string number = std::to_string(i);
      expect_good(keys.Append(std::string(8 - number.size(), '0') + number));
      expect_good(values.Append("value " + number));
    }
    return table_of({{"key", good(keys.Finish())}, {"value", good(values.Finish())}});
  }

  int files_written_ = 0;
};

TEST_CASE_METHOD(ArrowTest, "ArrowTest.StringsOfEveryLayout", "[ArrowTest]") {
  auto values = strings(arrow::StringBuilder(), {"1", "", "\xff\t3"});
  std::vector<std::string> texts = {"b", "a", "c"};
  arrow::FixedSizeBinaryBuilder fixed(arrow::fixed_size_binary(1));
  auto dictionary = strings(arrow::StringDictionaryBuilder(), {"b", "a", "c"});
  for (const auto& keys :
       {strings(arrow::StringBuilder(), texts), strings(arrow::LargeStringBuilder(), texts),
        strings(arrow::BinaryBuilder(), texts), strings(arrow::LargeBinaryBuilder(), texts),
        strings(fixed, texts), dictionary}) {
    auto table =
        table_of({{"k", keys}, {"v", strings(arrow::BinaryBuilder(), {"1", "", "\xff\t3"})}});
    CHECK_MESSAGE(loaded(table, {}) == "a\t\nb\t1\nc\t\xff\t3\n", keys->type()->ToString());
    table =
        table_of({{"v", numbers(arrow::Int8Builder(), std::vector<int>{1, 2, 3})}, {"k", keys}});
    CHECK_MESSAGE(loaded(table, {"--key", "1"}) == "1\tb\n2\ta\n3\tc\n", keys->type()->ToString());
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.StringViews", "[ArrowTest]") {
  std::vector<std::string> texts = {"b", "a text that is longer than twelve bytes"};
  auto table = table_of({{"k", strings(arrow::StringViewBuilder(), texts)},
                         {"v", strings(arrow::BinaryViewBuilder(), texts)}});
  for (Form form : {Form::file, Form::stream}) {
    REQUIRE_MESSAGE(load(write(table, form)) == 0, error_);
    CHECK(scan() == texts[1] + "\t" + texts[1] + "\nb\tb\n");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.UuidsAreKeys", "[ArrowTest]") {
  const std::vector<std::string> bytes = {
      std::string("0123456789abcdef"), "",
      std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16)};
  auto table = table_of(
      {{"id", strings(arrow::FixedSizeBinaryBuilder(arrow::fixed_size_binary(16)), bytes, true)},
       {"v", strings(arrow::StringBuilder(), {"x", "y", "z"})}});
  CHECK(loaded(table->Slice(0, 1), {"--key-type", "uuid"}) ==
        "30313233-3435-3637-3839-616263646566\tx\n");
  auto pairs = table_of({{"v", table->column(1)->chunk(0)},
                         {"id", table->column(0)->chunk(0)},
                         {"w", table->column(1)->chunk(0)}});
  CHECK(loaded(pairs->Slice(2, 1), {"--key", "id,v", "--key-type", "uuid,string"}) ==
        "00010203-0405-0607-0809-0a0b0c0d0e0f\tz\tz\n");
  CHECK(loaded(table, {"--key-type", "uuid", "--rejects", directory_ + "/rejects"}) ==
        "00010203-0405-0607-0809-0a0b0c0d0e0f\tz\n30313233-3435-3637-3839-616263646566\tx\n");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.IntegersOfEveryWidthAreKeys", "[ArrowTest]") {
  auto values = strings(arrow::StringBuilder(), {"x", "y"});
  auto check = [&](const std::shared_ptr<arrow::Array>& keys, const std::string& least,
                   const std::string& most) {
    auto table = table_of({{"id", keys}, {"v", values}});
    std::string type = least[0] == '-' ? "i64" : "u64";
    CHECK(loaded(table, {"--key-type", type}) == least + "\tx\n" + most + "\ty\n");
    CHECK(loaded(table, {"--key-type", "bytes"}) == least + "\tx\n" + most + "\ty\n");
  };
  auto both = [&]<class Builder>(Builder&& builder) {
    using Number = typename std::decay_t<Builder>::value_type;
    using Limits = std::numeric_limits<Number>;
    check(numbers(builder, std::vector<Number>{Limits::min(), Limits::max()}),
          std::to_string(Limits::min()), std::to_string(Limits::max()));
  };
  both(arrow::Int8Builder());
  both(arrow::Int16Builder());
  both(arrow::Int32Builder());
  both(arrow::Int64Builder());
  both(arrow::UInt8Builder());
  both(arrow::UInt16Builder());
  both(arrow::UInt32Builder());
  both(arrow::UInt64Builder());
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.NumbersThatAreNoKeys", "[ArrowTest]") {
  std::string bad = directory_ + "/bad";
  auto values = strings(arrow::StringBuilder(), {"x", "y"});
  auto low =
      table_of({{"id", numbers(arrow::Int32Builder(), std::vector<int>{-7, 7})}, {"v", values}});
  auto high = table_of(
      {{"id", numbers(arrow::UInt64Builder(), std::vector<uint64_t>{uint64_t{1} << 63, 7})},
       {"v", values}});
  for (Form form : forms) {
    std::string path = write(low, form);
    expect_load_refused(path, {"--key-type", "u64"}, 3, path + ":1: '-7' is no number from 0");
    expect_load_refused(write(high, form), {"--key-type", "i64"}, 3,
                        ":1: '9223372036854775808' is no number from -9223372036854775808");
    REQUIRE_MESSAGE(
        load(path, {"--key-type", "u64", "--rejects", bad}, path.substr(path.size() - 9)) == 0,
        error_);
    CHECK(read(bad) == path + "\t1\t'-7' is no number from 0 to 18446744073709551615\t-7\tx\n");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.TextsAreParsedAsKeys", "[ArrowTest]") {
  auto table = table_of({{"id", strings(arrow::StringDictionaryBuilder(), {"10", "9", "10"})},
                         {"v", strings(arrow::StringBuilder(), {"a", "b", "c"})}});
  CHECK(loaded(table, {"--key-type", "u64", "--on-duplicate", "last"}) == "9\tb\n10\tc\n");
  table = table_of({{"ip", strings(arrow::StringBuilder(), {"10.0.0.2", "::1", "no"})},
                    {"v", strings(arrow::StringBuilder(), {"a", "b", "c"})}});
  std::string path = write(table, Form::parquet);
  expect_load_refused(path, {"--key-type", "ip"}, 3, path + ":3: 'no' is no IPv4 or IPv6 address");
  CHECK_MESSAGE(load(path, {"--key-type", "ip", "--max-rejects", "1"}, "ip") == 0, error_);
  CHECK(scan({}, "ip") == "::1\tb\n10.0.0.2\ta\n");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.ValuesOfEveryKindAreText", "[ArrowTest]") {
  auto decimal = arrow::Decimal128Builder(arrow::decimal128(5, 2));
  expect_good(decimal.Append(arrow::Decimal128(-150)));
  arrow::TimestampBuilder time(arrow::timestamp(arrow::TimeUnit::MILLI),
                               arrow::default_memory_pool());
  expect_good(time.Append(1500));
  auto table = table_of({{"k", strings(arrow::StringBuilder(), {"k"})},
                         {"i", numbers(arrow::Int16Builder(), std::vector<int>{-3})},
                         {"d", numbers(arrow::DoubleBuilder(), std::vector<double>{1.5})},
                         {"b", numbers(arrow::BooleanBuilder(), std::vector<bool>{true})},
                         {"day", numbers(arrow::Date32Builder(), std::vector<int>{19000})},
                         {"time", good(time.Finish())},
                         {"n", good(decimal.Finish())},
                         {"z", good(arrow::MakeArrayOfNull(arrow::float32(), 1))}});
  CHECK(loaded(table, {}) == "k\t-3\t1.5\ttrue\t2022-01-08\t1970-01-01 00:00:01.5\t-1.50\t\n");
  CHECK(loaded(table, {"--schema", "none"}) ==
        "k\t-3\t1.5\ttrue\t2022-01-08\t1970-01-01 00:00:01.500\t-1.50\t\n");
  CHECK(loaded(table, {"--value", "b,2", "--key", "day"}) == "2022-01-08\ttrue\t-3\n");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.ColumnsKeepTheirTypes", "[ArrowTest]") {
  arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(),
                                      std::make_shared<arrow::FloatBuilder>(), 2);
  auto& elements = static_cast<arrow::FloatBuilder&>(*vectors.value_builder());
  arrow::FixedSizeBinaryBuilder codes(arrow::fixed_size_binary(3));
  arrow::TimestampBuilder times(arrow::timestamp(arrow::TimeUnit::NANO),
                                arrow::default_memory_pool());
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      expect_good(vectors.AppendNull());
      expect_good(codes.AppendNull());
      expect_good(times.AppendNull());
      continue;
    }
    expect_good(vectors.Append());
    expect_good(elements.Append(static_cast<float>(i) + 0.5f));
    expect_good(elements.Append(-1));
    expect_good(codes.Append("xy" + std::to_string(i)));
    expect_good(times.Append(i * 1'000'000'001ll));
  }
  auto table =
      table_of({{"id", numbers(arrow::Int32Builder(), std::vector<int>{7, 8, 9})},
                {"small", numbers(arrow::UInt8Builder(), std::vector<int>{1, 2, 255})},
                {"ok", numbers(arrow::BooleanBuilder(), std::vector<bool>{true, false, true})},
                {"v", good(vectors.Finish())},
                {"code", good(codes.Finish())},
                {"at", good(times.Finish())}});
  for (Form form : forms) {
    const std::string name = "s" + std::to_string(files_written_);
    REQUIRE_MESSAGE(
        load(write(table, form, 2), {"--key-type", "i32", "--block-bytes", "40"}, name) == 0,
        error_);
    CHECK(scan({"--format", "jsonl"}, name) ==
          "{\"id\":7,\"small\":1,\"ok\":true,\"v\":[0.5,-1],\"code\":\"xy0\","
          "\"at\":\"1970-01-01 00:00:00\"}\n"
          "{\"id\":8,\"small\":2,\"ok\":false,\"v\":null,\"code\":null,\"at\":null}\n"
          "{\"id\":9,\"small\":255,\"ok\":true,\"v\":[2.5,-1],\"code\":\"xy2\","
          "\"at\":\"1970-01-01 00:00:02.000000002\"}\n");
    REQUIRE(run({"tables", database_}) == 0);
    CHECK(out_.find("\tid i32 key, small u8?, ok bool?, v f32[2]?, code bytes[3]?, "
                    "at timestamp[ns]?\n") != std::string::npos);
    // Other types than the file's go by way of the text.
    REQUIRE_MESSAGE(
        load(write(table, form),
             {"--key-type", "u64", "--value", "small,at", "--schema", "n f64, at string?"},
             name + "o") == 0,
        error_);
    CHECK(scan({}, name + "o") ==
          "7\t1\t1970-01-01 00:00:00.000000000\n8\t2\t\n9\t255\t1970-01-01 00:00:02.000000002\n");
    expect_load_refused(write(table, form), {"--value", "small", "--schema", "n i8"}, 3,
                        ":3: column 'n': '255' is no i8");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.KeysOfSeveralColumns", "[ArrowTest]") {
  auto table = table_of({{"v", strings(arrow::StringBuilder(), {"a", "b", "c"})},
                         {"n", numbers(arrow::Int64Builder(), std::vector<int>{10, -1, 9})},
                         {"s", strings(arrow::StringBuilder(), {"x", "x", "w"})}});
  CHECK(loaded(table, {"--key", "s,n", "--key-type", "string,i16"}, 2) ==
        "w\t9\tc\nx\t-1\tb\nx\t10\ta\n");
  expect_load_refused(write(table, Form::parquet), {"--key", "s,n", "--key-type", "string,u16"}, 3,
                      ":2: key: '-1' is no u16");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.NullKeysAreBadRowsAndNullValuesEmpty", "[ArrowTest]") {
  auto texts = strings(arrow::StringBuilder(), {"a", "", "c"}, true);
  auto codes = strings(arrow::StringDictionaryBuilder(), {"x", "", "x"}, true);
  arrow::Int32Builder ids;
  expect_good(ids.Append(1));
  expect_good(ids.AppendNull());
  expect_good(ids.Append(3));
  auto table = table_of({{"t", texts}, {"c", codes}, {"i", good(ids.Finish())}});
  std::string bad = directory_ + "/bad";
  for (Form form : forms) {
    std::string path = write(table, form), name = "n" + std::to_string(files_written_);
    expect_load_refused(path, {}, 3, path + ":2: null key");
    expect_load_refused(path, {"--key", "c"}, 3, path + ":2: null key");
    expect_load_refused(path, {"--key", "i", "--key-type", "u64"}, 3, path + ":2: null key");
    REQUIRE_MESSAGE(load(path, {"--rejects", bad}, name) == 0, error_);
    CHECK(scan({}, name) == "a\tx\t1\nc\tx\t3\n");
    CHECK(read(bad) == path + "\t2\tnull key\t\t\t\n");
  }
  auto values = table_of(
      {{"k", strings(arrow::StringBuilder(), {"1", "2", "3"})}, {"t", texts}, {"c", codes}});
  CHECK(loaded(values, {}) == "1\ta\tx\n2\t\t\n3\tc\tx\n");
  CHECK(loaded(values, {"--value", "t"}) == "1\ta\n2\t\n3\tc\n");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.ManyBatchesComeInOrder", "[ArrowTest]") {
  auto table = many(10000);
  std::string expected, of_300;
  for (int i = 0; i < 10000; ++i) {
    std::string number = std::to_string(i);
    expected += std::string(8 - number.size(), '0') + number + "\tvalue " + number + "\n";
    if (i == 299) of_300 = expected;
  }
  CHECK(loaded(table, {}) == expected);
  CHECK(loaded(table, {"--threads", "3"}, 999) == expected);
  CHECK(loaded(table, {"--block-bytes", "500", "--threads", "3"}, 3000) == expected);
  CHECK(loaded(table->Slice(0, 300), {}, 1) == of_300);
  CHECK(loaded(table->Slice(0, 0), {}) == "");
}

// A bad row's number is that in the file, over all batches.
TEST_CASE_METHOD(ArrowTest, "ArrowTest.RowNumbersOverBatches", "[ArrowTest]") {
  arrow::StringBuilder keys;
  for (int i = 0; i < 5000; ++i) expect_good(i == 4321 ? keys.AppendNull() : keys.Append("k"));
  auto key = good(keys.Finish());
  auto table = table_of({{"k", key}, {"v", key}});
  for (Form form : forms) {
    std::string path = write(table, form, 700);
    expect_load_refused(path, {"--block-bytes", "900", "--threads", "3"}, 3,
                        path + ":4322: null key");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.ColumnsThatAreNot", "[ArrowTest]") {
  arrow::ListBuilder lists(arrow::default_memory_pool(), std::make_shared<arrow::Int32Builder>());
  expect_good(lists.Append());
  auto one = strings(arrow::StringBuilder(), {"a"});
  auto table = table_of({{"k", one}, {"l", good(lists.Finish())}, {"v", one}});
  for (Form form : forms) {
    std::string path = write(table, form);
    expect_load_refused(path, {"--key", "id"}, 2, path + ": no column 'id' in the file");
    expect_load_refused(path, {"--key", "4"}, 2, "no column 4: the file has 3");
    expect_load_refused(path, {"--value", "v,w"}, 2, "no column 'w' in the file");
    expect_load_refused(path, {}, 2, "column 'l' is of type list<");
    expect_load_refused(path, {"--header"}, 2, "--header is for tsv and csv");
    REQUIRE_MESSAGE(load(path, {"--value", "v"}, "v" + std::to_string(files_written_)) == 0,
                    error_);
    CHECK(scan({}, "v" + std::to_string(files_written_)) == "a\ta\n");
    // One column is a set of keys.
    path = write(table_of({{"k", one}}), form);
    REQUIRE_MESSAGE(load(path, {}, "k" + std::to_string(files_written_)) == 0, error_);
    CHECK(scan({}, "k" + std::to_string(files_written_)) == "a\t\n");
  }
}

// Cut short anywhere, and with any byte changed: a message, or rows, and never a crash.
TEST_CASE_METHOD(ArrowTest, "ArrowTest.DamagedFiles", "[ArrowTest]") {
  REQUIRE_MESSAGE(load(file("first.tsv", "1\tone\n")) == 0, error_);
  auto table = table_of({{"k", strings(arrow::StringBuilder(), {"a", "b", "c"})},
                         {"d", strings(arrow::StringDictionaryBuilder(), {"x", "y", "x"})},
                         {"i", numbers(arrow::Int64Builder(), std::vector<int>{1, 2, 3})}});
  for (Form form : forms) {
    std::string path = write(table, form), whole = read(path);
    for (size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 16) {
      std::ofstream(path, std::ios::binary) << whole.substr(0, bytes);
      // A stream may lack its end, where that is between two batches.
      if (form == Form::stream && load(path, {"--dry-run"}) == 0) continue;
      expect_load_refused(path, {}, 3, path + ": damaged, or of another format: ");
    }
    for (size_t at = 0; at < whole.size(); at += 7) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (at % 2 ? 0xff : 0x11));
      std::ofstream(path, std::ios::binary) << changed;
      int code = load(path, {"--dry-run"});
      CHECK_MESSAGE((code == 0 || code == 2 || code == 3 || code == 7), code << " " << error_);
    }
    for (const char* garbage : {"", "x", "PAR1", "ARROW1", "PAR1garbagePAR1", "k\tv\n1\t2\n"}) {
      std::ofstream(path, std::ios::binary) << garbage;
      expect_load_refused(path, {}, 3, path + ": damaged, or of another format: ");
    }
    CHECK(scan() == "1\tone\n");
  }
  expect_load_refused(directory_ + "/gone.parquet", {}, 4, "gone.parquet: open: No such file");
  expect_load_refused(directory_ + "/gone.arrow", {}, 4, "gone.arrow: open: No such file");
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.OffsetsOutsideOfTheirColumn", "[ArrowTest]") {
  REQUIRE_MESSAGE(load(file("first.tsv", "1\tone\n")) == 0, error_);
  int32_t offsets[] = {0, 1 << 30, 2};
  auto keys = std::make_shared<arrow::StringArray>(2, arrow::Buffer::Wrap(offsets, 3),
                                                   arrow::Buffer::FromString("ab"));
  for (Form form : {Form::file, Form::stream}) {
    auto sink = good(arrow::io::BufferOutputStream::Create());
    auto schema =
        arrow::schema({arrow::field("k", arrow::utf8()), arrow::field("v", arrow::utf8())});
    auto writer = form == Form::file ? good(arrow::ipc::MakeFileWriter(sink, schema))
                                     : good(arrow::ipc::MakeStreamWriter(sink, schema));
    expect_good(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, 2, {keys, keys})));
    expect_good(writer->Close());
    std::string path = file("bad.arrow", good(sink->Finish())->ToString());
    expect_load_refused(path, {}, 3, path + ": damaged, or of another format: ");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.StandardInput", "[ArrowTest]") {
  auto table = many(2000);
  std::string stream = read(write(table, Form::stream, 100));
  REQUIRE_MESSAGE(run({"load", database_, "t", "-", "--format", "arrow"}, stream) == 0, error_);
  REQUIRE(run({"count", database_, "t"}) == 0);
  CHECK(out_ == "2000\n");
  expect_refused({"load", database_, "t", "-", "--format", "arrow"}, 3,
                 "standard input: damaged, or of another format", stream.substr(0, 5000));
  expect_refused({"load", database_, "t", "-", "--format", "parquet"}, 2,
                 "standard input: Parquet is read from a file");
}

// Ends at a bad row in the second file, and goes on behind the last commit once that may pass.
TEST_CASE_METHOD(ArrowTest, "ArrowTest.ResumeBehindTheLastCommit", "[ArrowTest]") {
  arrow::StringBuilder keys;
  for (int i = 0; i < 5000; ++i)
    expect_good(i == 4000 ? keys.AppendNull() : keys.Append(std::to_string(i)));
  auto key = good(keys.Finish());
  auto bad = table_of({{"key", key}, {"value", key}});
  for (Form form : forms) {
    std::string table = "r" + std::to_string(files_written_);
    std::vector<std::string> load = {"load",
                                     database_,
                                     table,
                                     write(many(3000), form, 500),
                                     write(bad, form, 600),
                                     "--commit-every",
                                     "700",
                                     "--block-bytes",
                                     "1000",
                                     "--threads",
                                     "2"};
    CHECK_MESSAGE(run(load) == 3, error_);
    CHECK_MESSAGE(error_.find(":4001: null key") != std::string::npos, error_);
    CHECK_MESSAGE(error_.find("--resume goes on") != std::string::npos, error_);
    REQUIRE(run({"count", database_, table}) == 0);
    int committed = std::stoi(out_);
    CHECK(committed >= 5600);
    CHECK(committed < 7001);
    load.insert(load.end(), {"--resume", "--max-rejects", "1"});
    REQUIRE_MESSAGE(run(load) == 0, error_);
    REQUIRE(run({"count", database_, table}) == 0);
    CHECK(out_ == "7999\n");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.KeysToLookUp", "[ArrowTest]") {
  auto table = table_of({{"id", numbers(arrow::Int32Builder(), std::vector<int>{3, 1, 9})},
                         {"x", strings(arrow::StringBuilder(), {"a", "b", "c"})}});
  REQUIRE_MESSAGE(load(file("a.tsv", "1\tone\n3\tthree\n"), {"--key-type", "u64"}) == 0, error_);
  for (Form form : forms) {
    std::string path = write(table, form);
    REQUIRE_MESSAGE(run({"get", database_, "t", "--keys", path}) == 0, error_);
    CHECK(out_ == "3\tthree\n1\tone\n");
    CHECK(run({"get", database_, "t", "--keys", path, "--missing", "error"}) == 4);
    CHECK_MESSAGE(error_.find(path + ":3: key '9' is not in table") != std::string::npos, error_);
    expect_refused({"join", database_, "t", path}, 2, "join reads tsv, csv and jsonl");
  }
}

TEST_CASE_METHOD(ArrowTest, "ArrowTest.DuplicatesAreToldByRow", "[ArrowTest]") {
  auto table = table_of({{"k", strings(arrow::StringBuilder(), {"a", "b", "a"})},
                         {"v", strings(arrow::StringBuilder(), {"1", "2", "3"})}});
  for (Form form : forms) {
    std::string path = write(table, form);
    expect_load_refused(path, {"--on-duplicate", "error"}, 3,
                        path + ":3: key 'a' of table 't' is in " + path + ":1 already");
  }
  CHECK(loaded(table, {"--on-duplicate", "first"}) == "a\t1\nb\t2\n");
  expect_load_refused(write(table, Form::file), {"--max-memory", "3"}, 7, "give --commit-every");
}

}  // namespace
}  // namespace stride::cli
