// Rows that are put where their key is not there: which of them are new.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/write/staging.h"

namespace stride {

// What the callers of put_if_absent() are told once the commit has succeeded.
class AbsentAnswers {
 public:
  // Keeps, of rows that are put if absent, those that are new, and puts their chunks behind all
  // others. New is the first row of a key that the version does not have, as the other rows of the
  // table have changed it by then. Ranges must have been expanded.
  Status decide(const Version& version, StagedTable* table);
  // Sets the callers' bits.
  void give() const;

 private:
  struct Decided {
    std::vector<AbsentChunk::Answer> answers;
    Bitmap is_new;  // of the rows as they were staged
  };
  std::vector<Decided> decided_;
};

}  // namespace stride
