// Long calls that their caller can end.
//
//   std::atomic<bool> interrupted = false;  // which a signal sets, say
//   Status s = call_watched([&] { return database->compact(); }, [&] { return !interrupted; });
//   if (s.code() == StatusCode::cancelled) ...  // nothing was changed
#pragma once

#include <functional>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// Calls call() on a thread of its own and returns what it does. Meanwhile calls goes_on() on this
// thread, at once and then at least every 50 ms; where that is false or throws, it is called no
// more, and these calls in call() end with `cancelled`, some tenths of a second later:
//
// - Database::compact(): tables that it has merged stay merged, of others nothing is changed.
// - Database::verify() and calibrate(); the latter changes nothing then.
// - Of a snapshot get(), find(), lower_bound() and match() of columns, and count(). What they have
//   written of a result means nothing.
// - group_by(), ScatterPlan::make() and of_table(), and DedupTable::open().
//
// All others are carried out to their end; a commit has CommitOptions::progress. An exception of
// goes_on() becomes a part of the status, as it does there. resource_exhausted: there is no thread,
// and nothing was called; or call() has thrown.
STRIDE_API Status call_watched(const std::function<Status()>& call,
                               const std::function<bool()>& goes_on);

}  // namespace stride
