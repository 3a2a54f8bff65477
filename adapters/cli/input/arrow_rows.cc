#include "adapters/cli/input/arrow_rows.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <arrow/util/byte_size.h>
#include <arrow/util/io_util.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <functional>
#include <new>

#include "adapters/cli/input/arrow_columns.h"
#include "adapters/cli/input/input_stream.h"

namespace stride::cli {
namespace {

using arrow::Result;
using arrow::Status;

constexpr int64_t max_block_rows = 1 << 16;

ExitStatus broken(const std::string& name, std::string_view message) {
  return ExitStatus(ExitCode::bad_input, name + ": damaged, or of another format: " +
                                             std::string(message.substr(0, message.find('\n'))));
}

// The library tells by status what went wrong, and its Parquet half in places by exception.
template <class Call>
ExitStatus guarded(const std::string& name, const Call& call) {
  try {
    Status status = call();
    if (status.ok()) return {};
    if (status.IsOutOfMemory())
      return ExitStatus(ExitCode::no_room, name + ": " + status.message());
    if (int error = arrow::internal::ErrnoFromStatus(status))
      return ExitStatus::from_errno(error, name, "read");
    return broken(name, status.message());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return broken(name, e.what());
  }
}

class ColumnBatch final : public RowBatch {
 public:
  // columns: the key's, and those of the value.
  ColumnBatch(std::string name, std::vector<ArrayPointer> columns)
      : name_(std::move(name)), columns_(std::move(columns)) {}

  uint64_t size() const override { return static_cast<uint64_t>(columns_[0]->length()); }
  ExitStatus parse(const RowPlan& plan, ParsedRows* rows) const override {
    return guarded(name_, [&] { return parse_columns(plan, rows); });
  }

 private:
  Status parse_columns(const RowPlan& plan, ParsedRows* rows) const {
    const auto size = static_cast<uint64_t>(columns_[0]->length());
    const size_t keys = plan.key_columns.size();
    if (rows->makes_rows(plan)) {
      std::vector<ArrowCells> values;
      uint64_t bytes = 0;
      for (size_t i = keys; i < columns_.size(); ++i) {
        ARROW_ASSIGN_OR_RAISE(
            ArrowCells column,
            ArrowCells::make(columns_[i], plan.options.schema->values()[i - keys]));
        bytes += column.bytes();
        values.push_back(std::move(column));
      }
      rows->begin(plan, {}, bytes, size);
      return parse_keys(plan, values, rows);
    }
    std::vector<ArrowTextColumn> values;
    uint64_t bytes = size * columns_.size();  // the tabs
    for (size_t i = keys; i < columns_.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(ArrowTextColumn column, ArrowTextColumn::make(columns_[i]));
      bytes += column.bytes();
      values.push_back(std::move(column));
    }
    rows->begin(plan, {}, bytes, size);
    return parse_keys(plan, values, rows);
  }

  template <class Values>
  Status parse_keys(const RowPlan& plan, const Values& values, ParsedRows* rows) const {
    if (plan.key_columns.size() > 1) return parse_several_keys(plan, values, rows);
    ARROW_ASSIGN_OR_RAISE(ArrayPointer key, key_array(plan, 0));
    ARROW_ASSIGN_OR_RAISE(key, plain(std::move(key)));
    KeyType type = plan.options.key_form.type;
    if ((type == KeyType::u64 || type == KeyType::i64) && arrow::is_integer(key->type_id())) {
      ARROW_ASSIGN_OR_RAISE(ArrowNumberColumn keys, ArrowNumberColumn::make(key));
      add_rows(
          plan, keys, values, rows,
          [&](int64_t row) {
            if (keys.fits(row, type)) {
              rows->number_key(keys[row]);
              return true;
            }
            rows->refuse(why_no_key(type, keys.text(row)), {});
            return false;
          },
          [&](int64_t row) { return keys.text(row); });
    } else {
      ARROW_ASSIGN_OR_RAISE(ArrowTextColumn keys, ArrowTextColumn::make(key));
      add_rows(
          plan, keys, values, rows, [&](int64_t row) { return rows->key(keys[row], {}); },
          [&](int64_t row) { return std::string(keys[row]); });
    }
    return Status::OK();
  }

  // A column of the key: as it is, or as texts of UUIDs where the key has these.
  Result<ArrayPointer> key_array(const RowPlan& plan, size_t i) const {
    const auto& schema = plan.options.key_form.columns;
    const bool is_uuid =
        schema && i < schema->key().size() && schema->key()[i].type == FieldType::uuid;
    return is_uuid ? uuid_texts(columns_[i]) : columns_[i];
  }

  // Several columns make a key.
  class KeyTexts {
   public:
    void add(ArrowTextColumn column) { columns_.push_back(std::move(column)); }
    bool is_null(int64_t row) const {
      return std::any_of(columns_.begin(), columns_.end(),
                         [&](const ArrowTextColumn& column) { return column.is_null(row); });
    }
    void get(int64_t row, std::vector<std::string_view>* parts) const {
      parts->clear();
      for (const ArrowTextColumn& column : columns_) parts->push_back(column[row]);
    }

   private:
    std::vector<ArrowTextColumn> columns_;
  };

  template <class Values>
  Status parse_several_keys(const RowPlan& plan, const Values& values, ParsedRows* rows) const {
    KeyTexts keys;
    for (size_t i = 0; i < plan.key_columns.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(ArrayPointer key, key_array(plan, i));
      ARROW_ASSIGN_OR_RAISE(ArrowTextColumn column, ArrowTextColumn::make(std::move(key)));
      keys.add(std::move(column));
    }
    std::vector<std::string_view> parts;
    add_rows(
        plan, keys, values, rows,
        [&](int64_t row) {
          keys.get(row, &parts);
          return rows->key_columns(parts, {});
        },
        [&](int64_t row) {
          keys.get(row, &parts);
          std::string text;
          for (std::string_view part : parts) {
            if (!text.empty()) text += '\t';
            text += part.substr(0, 1 << 10);
          }
          return text;
        });
    return Status::OK();
  }

  static std::string text_of(const ArrowTextColumn& column, int64_t row) {
    return std::string(column[row].substr(0, 1 << 10));
  }
  static std::string text_of(const ArrowCells& column, int64_t row) {
    return column.text(row).substr(0, 1 << 10);
  }

  // Adds the values of a row as text with tabs between. False: it was refused.
  static bool add_values(const RowPlan& plan, const std::vector<ArrowTextColumn>& values,
                         int64_t row, ParsedRows* rows) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      std::string_view value = values[i][row];
      if (i != 0) rows->value('\t');
      rows->value(value);
      bytes += value.size();
    }
    return check_length(plan, bytes, rows);
  }
  // The same as cells.
  static bool add_values(const RowPlan& plan, const std::vector<ArrowCells>& values, int64_t row,
                         ParsedRows* rows) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].is_null(row)) {
        if (!rows->null_cell(i, {})) return false;
      } else if (!values[i].set(row, i, rows->writer())) {
        return rows->refuse_cell(i, values[i].text(row), {});
      }
    }
    return check_length(plan, rows->writer()->size(), rows);
  }
  static bool check_length(const RowPlan& plan, uint64_t bytes, ParsedRows* rows) {
    if (bytes <= plan.options.max_row_bytes) return true;
    rows->refuse("longer than --max-row-bytes (" + std::to_string(plan.options.max_row_bytes) + ")",
                 {});
    return false;
  }

  template <class Keys, class Values, class AddKey, class KeyText>
  void add_rows(const RowPlan& plan, const Keys& keys, const Values& values, ParsedRows* rows,
                const AddKey& add_key, const KeyText& key_text) const {
    int64_t size = columns_[0]->length();
    for (int64_t row = 0; row < size; ++row) {
      rows->at_line(static_cast<uint64_t>(row));
      bool good = !keys.is_null(row);
      if (!good) {
        rows->refuse("null key", {});
      } else {
        good = add_key(row) && add_values(plan, values, row, rows);
      }
      if (good && rows->end_row({}, static_cast<uint64_t>(row))) continue;
      BadRow& bad = rows->bad().back();
      if (!keys.is_null(row)) bad.row = key_text(row);
      for (const auto& value : values) bad.row += '\t' + text_of(value, row);
    }
    rows->end(static_cast<uint64_t>(size));
  }

  std::string name_;
  std::vector<ArrayPointer> columns_;
};

// What cannot be sought in.
class StreamInput final : public arrow::io::InputStream {
 public:
  explicit StreamInput(std::unique_ptr<cli::InputStream> in) : in_(std::move(in)) {}
  // Says how the last read ended.
  const ExitStatus& outcome() const { return outcome_; }
  uint64_t stored_bytes_read() const { return in_->stored_bytes_read(); }

  Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  Result<int64_t> Tell() const override { return at_; }
  Result<int64_t> Read(int64_t bytes, void* to) override {
    size_t got = 0;
    outcome_ = in_->read(static_cast<std::byte*>(to), static_cast<size_t>(bytes), &got);
    if (!outcome_.ok()) return Status::IOError(outcome_.message());
    at_ += static_cast<int64_t>(got);
    return static_cast<int64_t>(got);
  }
  Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(int64_t got, Read(bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  std::unique_ptr<cli::InputStream> in_;
  ExitStatus outcome_;
  int64_t at_ = 0;
  bool closed_ = false;
};

class ArrowFile final : public BatchFile {
 public:
  ArrowFile(std::string name, const RowOptions& options, uint64_t from_row)
      : name_(std::move(name)), options_(options), rows_to_skip_(from_row) {}

  ExitStatus open(const std::string& path, int standard_input) {
    struct stat info {};
    bool standard = path == "-";
    if (!standard && ::stat(path.c_str(), &info) != 0)
      return ExitStatus::from_errno(errno, path, "open");
    if (!standard && S_ISREG(info.st_mode)) {
      bytes_ = static_cast<uint64_t>(info.st_size);
      return guarded(name_, [&]() -> Status {
        ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
        return options_.format == Format::parquet ? open_parquet(file) : open_arrow(file);
      });
    }
    if (options_.format == Format::parquet)
      return ExitStatus::usage(name_ + ": Parquet is read from a file, not from a stream");
    std::unique_ptr<cli::InputStream> in;
    STRIDE_CLI_TRY(cli::InputStream::open(path, standard_input, Compression::none, &in));
    stream_ = std::make_shared<StreamInput>(std::move(in));
    stored_bytes_read_ = [this] { return stream_->stored_bytes_read(); };
    return stream_outcome(guarded(name_, [&] { return open_stream(stream_); }));
  }

  // Looks the columns up, and goes to the first row.
  ExitStatus start(RowPlan* plan) {
    ExitStatus planned = RowPlan::make(options_, schema_->field_names(), plan);
    if (!planned.ok()) return ExitStatus(planned.code(), name_ + ": " + planned.message());
    for (const auto& field : schema_->fields()) plan->fields.push_back(field_of(*field));
    auto count = static_cast<size_t>(schema_->num_fields());
    if (count < plan->min_columns)
      return ExitStatus::usage(name_ + ": has " + std::to_string(count) +
                               " columns, and a key and a value take " +
                               std::to_string(plan->min_columns));
    columns_.clear();
    for (size_t i : plan->key_columns) columns_.push_back(static_cast<int>(i));
    for (size_t i = 0; plan->value_is_rest && i < count; ++i)
      if (!plan->is_key(i)) columns_.push_back(static_cast<int>(i));
    for (size_t i : plan->value_columns) columns_.push_back(static_cast<int>(i));
    for (int i : columns_) {
      const arrow::Field& field = *schema_->field(i);
      const bool is_vector = plan->fields[static_cast<size_t>(i)].is_vector();
      if (!has_text(plain_type(*field.type())) && !(is_vector && options_.takes_vectors))
        return ExitStatus::usage(name_ + ": column " + in_quotes(field.name()) + " is of type " +
                                 field.type()->ToString() +
                                 ", which is neither key nor value; name others with --value");
    }
    if (!parquet_) return {};
    return guarded(name_, [&] { return start_parquet(); });
  }

  ExitStatus next(std::shared_ptr<const RowBatch>* batch) override {
    batch->reset();
    while (at_ == rows_) {
      bool more = false;
      STRIDE_CLI_TRY(stream_outcome(guarded(name_, [&] { return read_batch(&more); })));
      if (!more) return {};
    }
    int64_t size = std::min(rows_ - at_, block_rows_);
    std::vector<ArrayPointer> slices;
    for (const ArrayPointer& column : batch_) slices.push_back(column->Slice(at_, size));
    at_ += size;
    *batch = std::make_shared<ColumnBatch>(name_, std::move(slices));
    return {};
  }
  uint64_t stored_bytes_read() const override { return stored_bytes_read_(); }

 private:
  using ReadBatch = std::function<Result<std::shared_ptr<arrow::RecordBatch>>()>;

  // How many of rows that take so many bytes make a block.
  int64_t rows_of_block(int64_t rows, double bytes) const {
    double row_bytes = std::max(bytes, 1.0) / static_cast<double>(std::max<int64_t>(rows, 1));
    double max_rows = static_cast<double>(options_.block_bytes) / row_bytes;
    return std::max<int64_t>(
        1, static_cast<int64_t>(std::min(max_rows, static_cast<double>(max_block_rows))));
  }
  uint64_t part_of_file(int64_t done, int64_t all) const {
    return all <= 0 ? bytes_
                    : static_cast<uint64_t>(static_cast<double>(bytes_) *
                                            static_cast<double>(done) / static_cast<double>(all));
  }

  // Pages are read as they are needed, so that memory does not depend on the size of row groups.
  Status open_parquet(const std::shared_ptr<arrow::io::ReadableFile>& file) {
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.enable_buffered_stream();
    properties.set_buffer_size(256 << 10);
    properties.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(file, properties));
    auto metadata = builder.raw_reader()->metadata();
    double bytes = 0;
    for (int i = 0; i < metadata->num_row_groups(); ++i)
      bytes += static_cast<double>(metadata->RowGroup(i)->total_byte_size());
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/true);
    arrow_properties.set_pre_buffer(false);
    arrow_properties.set_batch_size(rows_of_block(metadata->num_rows(), bytes));
    builder.properties(arrow_properties);
    ARROW_ASSIGN_OR_RAISE(parquet_, builder.Build());
    return parquet_->GetSchema(&schema_);
  }

  // Reads only the columns that are wanted, from the row group with the first row on.
  Status start_parquet() {
    std::vector<int> wanted = columns_;
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (int& column : columns_) {
      auto place = std::lower_bound(wanted.begin(), wanted.end(), column) - wanted.begin();
      column = static_cast<int>(place);
    }
    for (int& column : wanted) {
      // A vector's elements are a field below.
      const auto* field = &parquet_->manifest().schema_fields[static_cast<size_t>(column)];
      while (field->children.size() == 1) field = &field->children[0];
      column = field->column_index;
    }
    auto metadata = parquet_->parquet_reader()->metadata();
    int64_t done = 0;
    std::vector<int> groups;
    for (int i = 0; i < metadata->num_row_groups(); ++i) {
      auto rows = static_cast<uint64_t>(metadata->RowGroup(i)->num_rows());
      if (groups.empty() && rows_to_skip_ >= rows) {
        rows_to_skip_ -= rows;
        done += static_cast<int64_t>(rows);
      } else {
        groups.push_back(i);
      }
    }
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatchReader> batches,
                          parquet_->GetRecordBatchReader(groups, wanted));
    read_ = [batches] { return batches->Next(); };
    stored_bytes_read_ = [this, done, all = metadata->num_rows()] {
      return part_of_file(done + static_cast<int64_t>(rows_read_), all);
    };
    return Status::OK();
  }

  Status open_arrow(const std::shared_ptr<arrow::io::ReadableFile>& file) {
    char magic[6] = {};
    ARROW_ASSIGN_OR_RAISE(int64_t got, file->ReadAt(0, sizeof magic, magic));
    if (std::string_view(magic, static_cast<size_t>(got)) != "ARROW1") {
      ARROW_RETURN_NOT_OK(file->Seek(0));
      stored_bytes_read_ = [file] { return static_cast<uint64_t>(file->Tell().ValueOr(0)); };
      return open_stream(file);
    }
    ARROW_ASSIGN_OR_RAISE(auto batches, arrow::ipc::RecordBatchFileReader::Open(file));
    schema_ = batches->schema();
    auto done = std::make_shared<int>(0);
    read_ = [batches, done]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
      if (*done == batches->num_record_batches()) return nullptr;
      return batches->ReadRecordBatch((*done)++);
    };
    stored_bytes_read_ = [this, batches, done] {
      return part_of_file(*done, batches->num_record_batches());
    };
    return Status::OK();
  }

  Status open_stream(const std::shared_ptr<arrow::io::InputStream>& stream) {
    ARROW_ASSIGN_OR_RAISE(auto batches, arrow::ipc::RecordBatchStreamReader::Open(stream));
    schema_ = batches->schema();
    read_ = [batches] { return batches->Next(); };
    return Status::OK();
  }

  // What failed while reading is told as it was, and not as the library words it.
  ExitStatus stream_outcome(ExitStatus outcome) const {
    return !outcome.ok() && stream_ && !stream_->outcome().ok() ? stream_->outcome() : outcome;
  }

  Status read_batch(bool* more) {
    batch_.clear();
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatch> batch, read_());
    *more = batch != nullptr;
    at_ = rows_ = 0;
    if (!batch) return Status::OK();
    auto rows = static_cast<uint64_t>(batch->num_rows());
    rows_read_ += rows;
    uint64_t skipped = std::min(rows_to_skip_, rows);
    rows_to_skip_ -= skipped;
    if (skipped == rows) return Status::OK();
    double bytes = 0;
    for (int i : columns_) {
      ARROW_ASSIGN_OR_RAISE(ArrayPointer column, checked(batch->column(i)));
      bytes += static_cast<double>(arrow::util::TotalBufferSize(*column));
      batch_.push_back(std::move(column));
    }
    rows_ = batch->num_rows();
    at_ = static_cast<int64_t>(skipped);
    block_rows_ = rows_of_block(rows_, bytes);
    return Status::OK();
  }

  std::string name_;
  RowOptions options_;
  uint64_t rows_to_skip_;
  uint64_t bytes_ = 0;  // of the file
  std::shared_ptr<StreamInput> stream_;
  std::unique_ptr<parquet::arrow::FileReader> parquet_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> columns_;  // of a batch as it is read: the key, and those of the value
  ReadBatch read_;            // null at the end
  std::function<uint64_t()> stored_bytes_read_;
  uint64_t rows_read_ = 0;
  // The batch in hand, and how many of its rows have been given away.
  std::vector<ArrayPointer> batch_;
  int64_t rows_ = 0, at_ = 0, block_rows_ = 1;
};

}  // namespace

bool BatchFile::available() { return true; }

ExitStatus BatchFile::open(const std::string& path, int standard_input, const RowOptions& options,
                           uint64_t from_row, std::unique_ptr<BatchFile>* file, RowPlan* plan) {
  auto opened =
      std::make_unique<ArrowFile>(path == "-" ? "standard input" : path, options, from_row);
  STRIDE_CLI_TRY(opened->open(path, standard_input));
  STRIDE_CLI_TRY(opened->start(plan));
  *file = std::move(opened);
  return {};
}

}  // namespace stride::cli
