#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include <cstring>
#include <exception>
#include <new>

#include "adapters/cli/output/column_file.h"
#include "adapters/cli/output/key_text.h"
#include "adapters/cli/output/record_writer.h"
#include "storage/key_format.h"
#include "storage/row_format.h"

namespace stride::cli {
namespace {

using TypePointer = std::shared_ptr<arrow::DataType>;
constexpr int64_t batch_rows = 1 << 16;

TypePointer element_type(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return arrow::boolean();
    case FieldType::i8:
      return arrow::int8();
    case FieldType::i16:
      return arrow::int16();
    case FieldType::i32:
      return arrow::int32();
    case FieldType::i64:
      return arrow::int64();
    case FieldType::u8:
      return arrow::uint8();
    case FieldType::u16:
      return arrow::uint16();
    case FieldType::u32:
      return arrow::uint32();
    case FieldType::u64:
      return arrow::uint64();
    case FieldType::f32:
      return arrow::float32();
    case FieldType::f64:
      return arrow::float64();
    case FieldType::date:
      return arrow::date32();
    case FieldType::timestamp_s:
      return arrow::timestamp(arrow::TimeUnit::SECOND);
    case FieldType::timestamp_ms:
      return arrow::timestamp(arrow::TimeUnit::MILLI);
    case FieldType::timestamp_us:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case FieldType::timestamp_ns:
      return arrow::timestamp(arrow::TimeUnit::NANO);
    case FieldType::uuid:
      return arrow::fixed_size_binary(16);
    case FieldType::string:
      return arrow::utf8();
    case FieldType::bytes:
      return arrow::binary();
  }
  return arrow::binary();
}

TypePointer type_of(const Field& field) {
  if (field.type == FieldType::bytes && field.count)
    return arrow::fixed_size_binary(static_cast<int32_t>(field.count));
  if (!field.is_vector()) return element_type(field.type);
  return arrow::fixed_size_list(element_type(field.type), static_cast<int32_t>(field.count));
}

// Appends one element of a type with a width.
arrow::Status append_element(FieldType type, Bytes cell, arrow::ArrayBuilder* builder) {
  using arrow::internal::checked_cast;
  if (type == FieldType::boolean)
    return checked_cast<arrow::BooleanBuilder&>(*builder).Append(cell[0] != std::byte{0});
  arrow::Status status;
  with_number_of(type, [&](auto number) {
    using T = decltype(number);
    std::memcpy(&number, cell.data(), sizeof number);
    if (type == FieldType::date) {
      status = static_cast<arrow::Date32Builder*>(builder)->Append(static_cast<int32_t>(number));
    } else if (type >= FieldType::timestamp_s && type <= FieldType::timestamp_ns) {
      status = static_cast<arrow::TimestampBuilder*>(builder)->Append(static_cast<int64_t>(number));
    } else {
      using Builder = typename arrow::CTypeTraits<T>::BuilderType;
      status = static_cast<Builder*>(builder)->Append(number);
    }
  });
  return status;
}

arrow::Status append_cell(const Field& field, Bytes cell, arrow::ArrayBuilder* builder) {
  if (field.type == FieldType::string || (field.type == FieldType::bytes && field.count == 0))
    return static_cast<arrow::BinaryBuilder*>(builder)->Append(
        reinterpret_cast<const uint8_t*>(cell.data()), static_cast<int32_t>(cell.size()));
  if (field.type == FieldType::uuid || field.type == FieldType::bytes)
    return static_cast<arrow::FixedSizeBinaryBuilder*>(builder)->Append(
        reinterpret_cast<const uint8_t*>(cell.data()));
  if (!field.is_vector()) return append_element(field.type, cell, builder);
  auto* list = static_cast<arrow::FixedSizeListBuilder*>(builder);
  ARROW_RETURN_NOT_OK(list->Append());
  const uint32_t width = width_of(field.type);
  for (uint32_t i = 0; i < field.count; ++i)
    ARROW_RETURN_NOT_OK(
        append_element(field.type, cell.subspan(i * width, width), list->value_builder()));
  return arrow::Status::OK();
}

// The output as Arrow writes to it.
class OutputStream final : public arrow::io::OutputStream {
 public:
  explicit OutputStream(Output* out) : out_(*out) {}
  const ExitStatus& outcome() const { return outcome_; }

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Status Write(const void* data, int64_t bytes) override {
    outcome_ = out_.write({static_cast<const char*>(data), static_cast<size_t>(bytes)});
    if (!outcome_.ok()) return arrow::Status::IOError(outcome_.message());
    at_ += bytes;
    return arrow::Status::OK();
  }

 private:
  Output& out_;
  ExitStatus outcome_;
  int64_t at_ = 0;
  bool closed_ = false;
};

// What the columns of a file are: first those of the key, then those of the value.
class ArrowColumnFile final : public ColumnFile {
 public:
  ArrowColumnFile(Format format, const KeyForm& form, const Table& table,
                  std::vector<size_t> columns, Output* out)
      : format_(format),
        form_(form),
        keys_(form),
        schema_(table.schema()),
        columns_(std::move(columns)),
        stream_(std::make_shared<OutputStream>(out)) {
    if (form_.columns) key_reader_.emplace(*form_.columns);
    if (schema_.has_values()) reader_.emplace(schema_);
  }

  ExitStatus open(const std::vector<std::string>& key_names, const Table& table) {
    for (size_t i = 0; i < key_names.size(); ++i) {
      Field field = form_.columns ? form_.columns->key()[i] : Field{"", FieldType::string};
      if (form_.type == KeyType::u64) field.type = FieldType::u64;
      if (form_.type == KeyType::i64) field.type = FieldType::i64;
      if (form_.type == KeyType::bytes) field.type = FieldType::bytes;
      field.name = key_names[i];
      fields_.push_back(field);
    }
    for (size_t i : columns_) fields_.push_back(schema_.values()[i]);
    if (!schema_.has_values()) fields_.push_back(value_field(table.numbers()));
    return guarded([&]() -> arrow::Status {
      arrow::FieldVector fields;
      for (const Field& field : fields_)
        fields.push_back(arrow::field(field.name, type_of(field), field.nullable));
      arrow_schema_ = arrow::schema(fields);
      ARROW_ASSIGN_OR_RAISE(
          builder_, arrow::RecordBatchBuilder::Make(arrow_schema_, arrow::default_memory_pool()));
      if (format_ == Format::arrow) {
        ARROW_ASSIGN_OR_RAISE(ipc_, arrow::ipc::MakeStreamWriter(stream_, arrow_schema_));
        return arrow::Status::OK();
      }
      auto properties = parquet::WriterProperties::Builder()
                            .compression(parquet::Compression::SNAPPY)
                            ->enable_page_checksum()
                            ->build();
      auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
      ARROW_ASSIGN_OR_RAISE(
          parquet_, parquet::arrow::FileWriter::Open(*arrow_schema_, arrow::default_memory_pool(),
                                                     stream_, properties, arrow_properties));
      return arrow::Status::OK();
    });
  }

  ExitStatus add(Bytes key, Bytes value) override {
    if (reader_ && !reader_->read(value)) return no_row_of_schema(keys_.text(key));
    if (key_reader_ && !key_reader_->read(key))
      return ExitStatus(ExitCode::damaged, "key " + in_quotes(key) + " is none of type " +
                                               name_of(form_) + ": delete it");
    STRIDE_CLI_TRY(guarded([&] { return append(key, value); }));
    return ++rows_ == batch_rows ? flush() : ExitStatus();
  }

  ExitStatus finish() override {
    STRIDE_CLI_TRY(flush());
    return guarded([&] { return format_ == Format::arrow ? ipc_->Close() : parquet_->Close(); });
  }

 private:
  static Field value_field(NumberType numbers) {
    Field field{"value", FieldType::bytes};
    if (numbers == NumberType::i32) field.type = FieldType::i32;
    if (numbers == NumberType::i64) field.type = FieldType::i64;
    if (numbers == NumberType::f32) field.type = FieldType::f32;
    if (numbers == NumberType::f64) field.type = FieldType::f64;
    return field;
  }

  arrow::Status append(Bytes key, Bytes value) {
    int at = 0;
    if (key_reader_) {
      for (size_t i = 0; i < form_.parts(); ++i, ++at)
        ARROW_RETURN_NOT_OK(append_cell(fields_[at], (*key_reader_)[i], builder_->GetField(at)));
    } else {
      ARROW_RETURN_NOT_OK(append_key(key, builder_->GetField(at)));
      ++at;
    }
    if (!reader_) return append_cell(fields_[at], value, builder_->GetField(at));
    for (size_t column : columns_) {
      arrow::ArrayBuilder* builder = builder_->GetField(at);
      ARROW_RETURN_NOT_OK(reader_->is_null(column)
                              ? builder->AppendNull()
                              : append_cell(fields_[at], (*reader_)[column], builder));
      ++at;
    }
    return arrow::Status::OK();
  }
  arrow::Status append_key(Bytes key, arrow::ArrayBuilder* builder) {
    if (!is_number(form_.type)) {
      const std::string text =
          form_.type == KeyType::bytes ? std::string(as_text(key)) : keys_.text(key);
      return append_cell(fields_[0], as_bytes(text), builder);
    }
    if (key.size() != 8) return arrow::Status::Invalid("a key of ", key.size(), " bytes");
    std::string memory;
    Bytes cell;
    take_key_cell(fields_[0], /*last=*/true, &key, &memory, &cell);
    return append_cell(fields_[0], cell, builder);
  }

  ExitStatus flush() {
    if (rows_ == 0) return {};
    rows_ = 0;
    return guarded([&]() -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatch> batch, builder_->Flush());
      return format_ == Format::arrow ? ipc_->WriteRecordBatch(*batch)
                                      : parquet_->WriteRecordBatch(*batch);
    });
  }

  // What failed while writing is told as it was, and not as the library words it.
  template <class Call>
  ExitStatus guarded(const Call& call) {
    try {
      const arrow::Status status = call();
      if (status.ok()) return {};
      if (!stream_->outcome().ok()) return stream_->outcome();
      return ExitStatus(status.IsOutOfMemory() ? ExitCode::no_room : ExitCode::failure,
                        std::string(name_of(format_)) + ": " + status.message());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      if (!stream_->outcome().ok()) return stream_->outcome();
      return ExitStatus(ExitCode::failure, std::string(name_of(format_)) + ": " + e.what());
    }
  }

  Format format_;
  KeyForm form_;
  KeyText keys_;
  Schema schema_;
  std::vector<size_t> columns_;
  std::vector<Field> fields_;
  std::optional<KeyReader> key_reader_;
  std::optional<RowReader> reader_;
  std::shared_ptr<OutputStream> stream_;
  std::shared_ptr<arrow::Schema> arrow_schema_;
  std::unique_ptr<arrow::RecordBatchBuilder> builder_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> ipc_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  int64_t rows_ = 0;
};

}  // namespace

bool ColumnFile::available() { return true; }

ExitStatus ColumnFile::make(Format format, const KeyForm& key_form,
                            const std::vector<std::string>& key_names, const Table& table,
                            const std::vector<size_t>& columns, Output* out,
                            std::unique_ptr<ColumnFile>* file) {
  auto made = std::make_unique<ArrowColumnFile>(format, key_form, table, columns, out);
  STRIDE_CLI_TRY(made->open(key_names, table));
  *file = std::move(made);
  return {};
}

}  // namespace stride::cli
